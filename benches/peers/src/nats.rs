//! NATS JetStream: one stream on disk, a durable pull consumer that both consumers share, explicit acks. Its acks aren't
//! confirmed: nobody waits for that in practice, so neither is it here.

use std::{path::PathBuf, sync::Arc, time::Instant};

use async_nats::{
    ConnectOptions,
    jetstream::{
        self,
        consumer::{AckPolicy, PullConsumer, pull},
        context::{ContextBuilder, PublishAckFuture},
        stream,
    },
};
use futures_util::StreamExt as _;
use tokio::{
    process::Command,
    sync::{mpsc, oneshot},
};

use crate::{
    Failure,
    broker::{Broker, Class, Server, Setting, free_port},
    certificates::Certificates,
    work::{CONSUMERS, CREDIT, WINDOW, Work},
};

const STREAM: &str = "bench";
const SUBJECT: &str = "bench.made";
const DURABLE: &str = "workers";

pub struct JetStream {
    server: Server,
    url: String,
    tls: Option<Arc<Certificates>>,
    folder: PathBuf,
}

/// Starts one; `program` is nats-server.
pub async fn start(setting: &Setting, program: PathBuf) -> Result<Box<dyn Broker>, Failure> {
    let port = free_port()?;
    let sync = match setting.class {
        Class::Fsync => "sync_interval: always",
        Class::Crash => "",
    };
    let store = setting.folder.join("store");
    let mut config = format!(
        "listen: \"127.0.0.1:{port}\"\njetstream {{\n store_dir: \"{}\"\n max_file_store: 20GB\n {sync}\n}}\n",
        store.display()
    );
    if setting.tls {
        let certificates = &setting.certificates;
        config += &format!(
            "tls {{\n cert_file: \"{}\"\n key_file: \"{}\"\n ca_file: \"{}\"\n verify: true\n}}\n",
            certificates.server_file.display(),
            certificates.server_key_file.display(),
            certificates.root_file.display()
        );
    }
    let file = setting.folder.join("nats.conf");
    std::fs::write(&file, config)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&file);
    let server = Server::start(command, &setting.folder)?;
    let tls = setting.tls.then(|| setting.certificates.clone());
    let scheme = if setting.tls { "tls" } else { "nats" };
    let url = format!("{scheme}://127.0.0.1:{port}");
    let mut broker = JetStream { server, url, tls, folder: setting.folder.clone() };
    if let Some(certificates) = &broker.tls {
        std::fs::write(broker.folder.join("client.pem"), &certificates.client)?;
        std::fs::write(broker.folder.join("client.key"), &certificates.client_key)?;
    }
    let (url, tls, folder) = (broker.url.clone(), broker.tls.clone(), broker.folder.clone());
    let context = broker.server.answers(&setting.folder, || connect(&url, tls.clone(), &folder)).await?;
    let made = context
        .create_stream(stream::Config {
            name: STREAM.to_owned(),
            subjects: vec!["bench.>".to_owned()],
            storage: stream::StorageType::File,
            ..stream::Config::default()
        })
        .await?;
    made.create_consumer(pull::Config {
        durable_name: Some(DURABLE.to_owned()),
        ack_policy: AckPolicy::Explicit,
        max_ack_pending: i64::try_from(CONSUMERS * CREDIT * 2)?,
        ..pull::Config::default()
    })
    .await?;
    Ok(Box::new(broker))
}

async fn connect(
    url: &str,
    tls: Option<Arc<Certificates>>,
    folder: &std::path::Path,
) -> Result<jetstream::Context, Failure> {
    let mut options = ConnectOptions::new();
    if let Some(certificates) = tls {
        options = options
            .require_tls(true)
            .add_root_certificates(certificates.root_file.clone())
            .add_client_certificate(folder.join("client.pem"), folder.join("client.key"));
    }
    let client = options.connect(url).await?;
    Ok(ContextBuilder::new().max_ack_inflight(2 * WINDOW).build(client))
}

#[async_trait::async_trait]
impl Broker for JetStream {
    async fn publish(&self, publisher: usize, work: Arc<Work>) -> Result<(), Failure> {
        let context = connect(&self.url, self.tls.clone(), &self.folder).await?;
        let (sent, mut awaited) = mpsc::channel::<PublishAckFuture>(WINDOW - 1);
        let confirming = work.clone();
        let answers = tokio::spawn(async move {
            while let Some(pending) = awaited.recv().await {
                pending.await?;
                confirming.confirm();
            }
            Ok::<_, Failure>(())
        });
        work.begin().await;
        let began = Instant::now();
        for number in work.numbers(publisher) {
            let data = work.next(number, began).await;
            let pending = context.publish(SUBJECT, data.into()).await?;
            if sent.send(pending).await.is_err() {
                break;
            }
        }
        drop(sent);
        answers.await?
    }

    async fn consume(&self, work: Arc<Work>, ready: oneshot::Sender<()>) -> Result<(), Failure> {
        let context = connect(&self.url, self.tls.clone(), &self.folder).await?;
        let stream = context.get_stream(STREAM).await?;
        let consumer: PullConsumer = stream.get_consumer(DURABLE).await?;
        let mut messages = consumer.stream().max_messages_per_batch(CREDIT).messages().await?;
        let _ = ready.send(());
        while let Some(message) = messages.next().await {
            let message = message?;
            work.see(&message.payload);
            message.ack().await.map_err(|error| error.to_string())?;
            work.ack(1);
        }
        Ok(())
    }

    async fn end(&mut self) {
        self.server.end().await;
    }
}
