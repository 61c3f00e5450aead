//! Redis Streams: XADD, and XREADGROUP by one group, with an XACK for each event.

use std::{path::PathBuf, sync::Arc, time::Instant};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use redis::{
    AsyncCommands as _, Client, ClientTlsConfig, TlsCertificates,
    aio::MultiplexedConnection,
    streams::{StreamReadOptions, StreamReadReply},
};
use tokio::{process::Command, sync::oneshot};

use crate::{
    Failure,
    broker::{Broker, Class, Server, Setting, free_port},
    work::{CREDIT, WINDOW, Work},
};

const STREAM: &str = "bench";
const GROUP: &str = "workers";

pub struct Redis {
    server: Server,
    client: Client,
}

/// Starts one; `program` is redis-server.
pub async fn start(setting: &Setting, program: PathBuf) -> Result<Box<dyn Broker>, Failure> {
    let port = free_port()?;
    let sync = match setting.class {
        Class::Fsync => "always",
        Class::Crash => "everysec",
    };
    let mut command = Command::new(program);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", sync]);
    command.arg("--dir").arg(&setting.folder);
    let port_text = port.to_string();
    let client = if setting.tls {
        let certificates = &setting.certificates;
        command.args(["--port", "0", "--tls-port", &port_text, "--tls-auth-clients", "yes"]);
        command.arg("--tls-cert-file").arg(&certificates.server_file);
        command.arg("--tls-key-file").arg(&certificates.server_key_file);
        command.arg("--tls-ca-cert-file").arg(&certificates.root_file);
        let tls = TlsCertificates {
            client_tls: Some(ClientTlsConfig {
                client_cert: certificates.client.clone().into_bytes(),
                client_key: certificates.client_key.clone().into_bytes(),
            }),
            root_cert: Some(certificates.root.clone().into_bytes()),
        };
        Client::build_with_tls(format!("rediss://127.0.0.1:{port}"), tls)?
    } else {
        command.args(["--port", &port_text]);
        Client::open(format!("redis://127.0.0.1:{port}"))?
    };
    let mut server = Server::start(command, &setting.folder)?;
    let mut first = server.answers(&setting.folder, || async { Ok(connect(&client).await?) }).await?;
    let _: () = first.xgroup_create_mkstream(STREAM, GROUP, "0").await?;
    Ok(Box::new(Redis { server, client }))
}

async fn connect(client: &Client) -> Result<MultiplexedConnection, redis::RedisError> {
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(std::time::Duration::from_secs(5)))
        .set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&config).await
}

#[async_trait::async_trait]
impl Broker for Redis {
    async fn publish(&self, publisher: usize, work: Arc<Work>) -> Result<(), Failure> {
        let connection = connect(&self.client).await?;
        let mut sent = FuturesUnordered::new();
        work.begin().await;
        let began = Instant::now();
        for number in work.numbers(publisher) {
            let data = work.next(number, began).await;
            while sent.len() >= WINDOW {
                confirmed(sent.next().await, &work)?;
            }
            let mut connection = connection.clone();
            sent.push(async move { connection.xadd::<_, _, _, _, ()>(STREAM, "*", &[("d", data)]).await });
            // A future is sent when it is polled.
            if let Some(done) = futures_util::FutureExt::now_or_never(sent.next()) {
                confirmed(done, &work)?;
            }
        }
        while !sent.is_empty() {
            confirmed(sent.next().await, &work)?;
        }
        Ok(())
    }

    async fn consume(&self, work: Arc<Work>, ready: oneshot::Sender<()>) -> Result<(), Failure> {
        let mut connection = connect(&self.client).await?;
        let name = format!("{:?}", Instant::now());
        let options = StreamReadOptions::default().group(GROUP, &name).count(CREDIT).block(100);
        let _ = ready.send(());
        loop {
            let reply: Option<StreamReadReply> =
                connection.xread_options(&[STREAM], &[">"], &options).await?;
            let mut acks = redis::pipe();
            let mut count = 0;
            for entry in reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids) {
                let data: Vec<u8> = entry.get("d").ok_or("an entry without data")?;
                work.see(&data);
                acks.xack(STREAM, GROUP, &[&entry.id]).ignore();
                count += 1;
            }
            if count > 0 {
                let _: () = acks.query_async(&mut connection).await?;
                work.ack(count);
            }
        }
    }

    async fn end(&mut self) {
        self.server.end().await;
    }
}

fn confirmed(done: Option<Result<(), redis::RedisError>>, work: &Work) -> Result<(), Failure> {
    if let Some(done) = done {
        done?;
        work.confirm();
    }
    Ok(())
}
