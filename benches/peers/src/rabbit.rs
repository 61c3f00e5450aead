//! RabbitMQ: a quorum queue, persistent messages, publisher confirms, explicit acks. A confirm always comes after the
//! fsync, so that it has one class only.

use std::{path::PathBuf, sync::Arc, time::Instant};

use futures_util::StreamExt as _;
use lapin::{
    BasicProperties, Connection, ConnectionProperties, PublisherConfirm,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
        QueueDeclareOptions,
    },
    tcp::{OwnedIdentity, OwnedTLSConfig},
    types::{AMQPValue, FieldTable},
};
use tokio::{
    process::Command,
    sync::{mpsc, oneshot},
};

use crate::{
    Failure,
    broker::{Broker, Server, Setting, find, free_port},
    certificates::Certificates,
    work::{CREDIT, WINDOW, Work},
};

const QUEUE: &str = "bench";

pub struct Rabbit {
    server: Server,
    url: String,
    tls: Option<Arc<Certificates>>,
    /// Erlang's port mapper: started here, since one that the server starts outlives it.
    mapper: Server,
}

/// Starts one; `program` is rabbitmq-server without Debian's wrapper, which would change the user.
pub async fn start(setting: &Setting, program: PathBuf) -> Result<Box<dyn Broker>, Failure> {
    let (port, mapper, between) = (free_port()?, free_port()?, free_port()?);
    let folder = &setting.folder;
    let mut config = String::from("log.console = true\nlog.console.level = warning\n");
    if setting.tls {
        let certificates = &setting.certificates;
        config += &format!(
            "listeners.tcp = none\nlisteners.ssl.default = 127.0.0.1:{port}\nssl_options.cacertfile = {}\n\
             ssl_options.certfile = {}\nssl_options.keyfile = {}\nssl_options.verify = verify_peer\n\
             ssl_options.fail_if_no_peer_cert = true\n",
            certificates.root_file.display(),
            certificates.server_file.display(),
            certificates.server_key_file.display()
        );
    } else {
        config += &format!("listeners.tcp.default = 127.0.0.1:{port}\n");
    }
    std::fs::write(folder.join("rabbitmq.conf"), config)?;
    std::fs::write(folder.join("plugins"), "[].")?;
    let mapper_folder = folder.join("epmd");
    std::fs::create_dir(&mapper_folder)?;
    let mut epmd = Command::new(find("epmd").ok_or("epmd isn't there: it belongs to Erlang")?);
    epmd.args(["-port", &mapper.to_string(), "-address", "127.0.0.1"]);
    let epmd = Server::start(epmd, &mapper_folder)?;
    let mut command = Command::new(program);
    command
        .env("HOME", folder)
        .env("ERL_EPMD_PORT", mapper.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODENAME", format!("bench{port}@localhost"))
        .env("RABBITMQ_DIST_PORT", between.to_string())
        .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"))
        .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", folder.join("logs"))
        .env("RABBITMQ_LOGS", "-");
    let server = Server::start(command, folder)?;
    let scheme = if setting.tls { "amqps" } else { "amqp" };
    let url = format!("{scheme}://guest:guest@localhost:{port}/%2f");
    let tls = setting.tls.then(|| setting.certificates.clone());
    let mut broker = Rabbit { server, url, tls, mapper: epmd };
    let (url, tls) = (broker.url.clone(), broker.tls.clone());
    let connection = broker.server.answers(folder, || connect(&url, tls.clone())).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let channel = connection.create_channel().await?;
    channel.queue_declare(QUEUE.into(), options, arguments).await?;
    // Nothing is lost if it doesn't end well: the queue is there.
    let _ = connection.close(200, "made".into()).await;
    Ok(Box::new(broker))
}

async fn connect(url: &str, tls: Option<Arc<Certificates>>) -> Result<Connection, Failure> {
    let tls = tls.map_or_else(OwnedTLSConfig::default, |certificates| OwnedTLSConfig {
        identity: Some(OwnedIdentity::PKCS8 {
            pem: certificates.client.clone().into_bytes(),
            key: certificates.client_key.clone().into_bytes(),
        }),
        cert_chain: Some(certificates.root.clone()),
    });
    let runtime = lapin::runtime::default_runtime()?;
    Ok(Connection::connect_with_config(url, ConnectionProperties::default(), tls, runtime).await?)
}

#[async_trait::async_trait]
impl Broker for Rabbit {
    async fn publish(&self, publisher: usize, work: Arc<Work>) -> Result<(), Failure> {
        let connection = connect(&self.url, self.tls.clone()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let (sent, mut awaited) = mpsc::channel::<PublisherConfirm>(WINDOW - 1);
        let confirming = work.clone();
        let answers = tokio::spawn(async move {
            while let Some(pending) = awaited.recv().await {
                if !pending.await?.is_ack() {
                    return Err("a message was refused".into());
                }
                confirming.confirm();
            }
            Ok::<_, Failure>(())
        });
        work.begin().await;
        let began = Instant::now();
        for number in work.numbers(publisher) {
            let data = work.next(number, began).await;
            let options = BasicPublishOptions::default();
            // Persistent.
            let properties = BasicProperties::default().with_delivery_mode(2);
            let pending =
                channel.basic_publish("".into(), QUEUE.into(), options, data.as_bytes(), properties).await?;
            if sent.send(pending).await.is_err() {
                break;
            }
        }
        drop(sent);
        answers.await??;
        // All is confirmed, however it ends.
        let _ = connection.close(200, "done".into()).await;
        Ok(())
    }

    async fn consume(&self, work: Arc<Work>, ready: oneshot::Sender<()>) -> Result<(), Failure> {
        let connection = connect(&self.url, self.tls.clone()).await?;
        let channel = connection.create_channel().await?;
        channel.basic_qos(u16::try_from(CREDIT)?, BasicQosOptions::default()).await?;
        let options = BasicConsumeOptions::default();
        let mut deliveries =
            channel.basic_consume(QUEUE.into(), "".into(), options, FieldTable::default()).await?;
        let _ = ready.send(());
        while let Some(delivery) = deliveries.next().await {
            let delivery = delivery?;
            work.see(&delivery.data);
            delivery.ack(BasicAckOptions::default()).await?;
            work.ack(1);
        }
        Ok(())
    }

    async fn end(&mut self) {
        self.server.end().await;
        self.mapper.end().await;
    }
}
