//! Eventflow: the program `eventflow-hub`, SQLite, mutual TLS. An ack is answered once the outcome is stored.

use std::{path::PathBuf, sync::Arc, time::Instant};

use eventflow::{
    pki::Bundle,
    spoke::{Consume, Pending, Publish, Spoke, SpokeConfig},
};
use tokio::{
    process::Command,
    sync::{mpsc, oneshot},
};

use crate::{
    Failure,
    broker::{Broker, Class, Server, Setting, free_port},
    work::{CREDIT, WINDOW, Work},
};

pub struct Hub {
    server: Server,
    config: SpokeConfig,
}

/// Starts one; `program` is the hub's.
pub async fn start(setting: &Setting, program: PathBuf) -> Result<Box<dyn Broker>, Failure> {
    let data = setting.folder.join("data");
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EVENTFLOW_") {
            command.env_remove(name);
        }
    }
    let durability = match setting.class {
        Class::Fsync => "full",
        Class::Crash => "relaxed",
    };
    command.arg("--data").arg(&data).args([
        format!("--hub-internal-port={}", free_port()?),
        "--admin-port=0".to_owned(),
        "--log-level=warn".to_owned(),
        format!("--store-durability={durability}"),
    ]);
    let mut server = Server::start(command, &setting.folder)?;
    let config = server
        .answers(&setting.folder, || async {
            let config = SpokeConfig::from_bundle(Bundle::read(data.join("operator.toml"))?);
            Spoke::connect(config.clone()).await?.close().await;
            Ok(config)
        })
        .await?;
    Ok(Box::new(Hub { server, config }))
}

#[async_trait::async_trait]
impl Broker for Hub {
    async fn publish(&self, publisher: usize, work: Arc<Work>) -> Result<(), Failure> {
        let spoke = Spoke::connect(self.config.clone()).await?;
        let (sent, mut awaited) = mpsc::channel::<Pending>(WINDOW - 1);
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
            let publish = Publish::new("bench", "made", "p").data_text(data)?;
            if sent.send(spoke.publish_later(publish).await?).await.is_err() {
                break;
            }
        }
        drop(sent);
        answers.await??;
        spoke.close().await;
        Ok(())
    }

    async fn consume(&self, work: Arc<Work>, ready: oneshot::Sender<()>) -> Result<(), Failure> {
        let spoke = Spoke::connect(self.config.clone()).await?;
        let seen = work.clone();
        let credit = u32::try_from(CREDIT)?;
        let consume = Consume::new("bench", "*").concurrency(credit).credit(credit);
        let consumer = spoke
            .consume(consume, move |event| {
                seen.see(event.data.as_str().as_bytes());
                async { Ok::<(), String>(()) }
            })
            .await?;
        let _ = ready.send(());
        let mut told = 0;
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let acked = consumer.counts().acked;
            work.ack(usize::try_from(acked - told)?);
            told = acked;
        }
    }

    async fn end(&mut self) {
        self.server.end().await;
    }
}
