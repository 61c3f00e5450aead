//! A hub of the npm stack, as far as its peers and spokes see one: it writes its row, says `online` to the others, lets
//! spokes in, claims and broadcasts, relays `online`.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustls::{ServerConfig, crypto::ring::default_provider, server::WebPkiClientVerifier, version::TLS13};
use tokio::{
    io::{AsyncWriteExt, WriteHalf},
    net::{TcpListener, TcpStream},
    sync::Mutex as AsyncMutex,
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    certificates::Credentials,
    channel::{self, Channel, READY, Writer},
    deployment::{Deployment, HUBS},
    id,
};

/// A running hub. Cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    id: String,
    port: u16,
    deployment: Deployment,
    next: AtomicU64,
    spokes: AsyncMutex<BTreeMap<u64, Connected>>,
    /// Hubs that said they are online.
    online: Mutex<Vec<String>>,
    /// Hubs that weren't reached, and so were marked as stopped.
    unreachable: Mutex<Vec<String>>,
    tasks: Mutex<JoinSet<()>>,
}

struct Connected {
    writer: Writer<WriteHalf<TlsStream<TcpStream>>>,
    wanted: HashSet<(String, String)>,
}

impl Hub {
    /// Listens, writes its row, tells the others.
    pub async fn start(deployment: &Deployment) -> Self {
        let hub = Self::listening(deployment).await;
        hub.announce().await;
        hub
    }

    /// Without telling the others.
    pub async fn listening(deployment: &Deployment) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hub = Self(Arc::new(Inner {
            id: id::party(HUBS),
            port: listener.local_addr().unwrap().port(),
            deployment: deployment.clone(),
            next: AtomicU64::new(0),
            spokes: AsyncMutex::default(),
            online: Mutex::default(),
            unreachable: Mutex::default(),
            tasks: Mutex::default(),
        }));
        let credentials = deployment.certificates.of(hub.id()).await;
        deployment.database.persist_hub(hub.id(), "127.0.0.1", hub.0.port).await;
        let accepting = hub.clone();
        hub.spawn(async move { accepting.accept(listener, acceptor(&credentials)).await });
        hub
    }

    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Hubs that have said `online`, in that order.
    pub fn heard_online(&self) -> Vec<String> {
        lock(&self.0.online).clone()
    }

    /// Hubs that it couldn't reach.
    pub fn unreachable(&self) -> Vec<String> {
        lock(&self.0.unreachable).clone()
    }

    /// A one-shot connection to each other hub that hasn't quit. Who can't be reached is marked as stopped.
    pub async fn announce(&self) {
        let deployment = &self.0.deployment;
        let others = deployment.database.hubs_online().await;
        for (hub, ip, port) in others.into_iter().filter(|(hub, ..)| hub != self.id()) {
            let credentials = deployment.certificates.of(self.id()).await;
            match Channel::connect((&ip, port), &hub, &credentials).await {
                Ok(channel) => {
                    let (_reader, mut writer) = channel.split();
                    writer.send(&["online", self.id(), "127.0.0.1", &self.port().to_string()]).await;
                    writer.end().await;
                }
                Err(error) => {
                    println!("{hub} isn't reached: {error}");
                    deployment.database.set_hub_quit(&hub).await;
                    lock(&self.0.unreachable).push(hub);
                }
            }
        }
    }

    /// Marks its row and ends.
    pub async fn stop(self) {
        self.0.deployment.database.set_hub_quit(self.id()).await;
        let mut tasks = std::mem::take(&mut *lock(&self.0.tasks));
        tasks.shutdown().await;
        self.0.spokes.lock().await.clear();
    }

    async fn accept(&self, listener: TcpListener, acceptor: TlsAcceptor) {
        while let Ok((stream, _)) = listener.accept().await {
            let (hub, acceptor) = (self.clone(), acceptor.clone());
            self.spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let asked = stream.get_ref().1.server_name().map(str::to_uppercase);
                // It serves its own name only.
                if asked.as_deref() != Some(hub.id()) || stream.write_all(&[READY]).await.is_err() {
                    return;
                }
                let _ = stream.flush().await;
                hub.serve(stream).await;
            });
        }
    }

    async fn serve(&self, stream: TlsStream<TcpStream>) {
        let (mut reader, writer) = channel::split(stream);
        let own = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.spokes.lock().await.insert(own, Connected { writer, wanted: HashSet::new() });
        while let Some(record) = reader.receive().await {
            match &*record.iter().map(String::as_str).collect::<Vec<_>>() {
                ["subscribe", domain, name] => {
                    if let Some(spoke) = self.0.spokes.lock().await.get_mut(&own) {
                        spoke.wanted.insert(((*domain).to_owned(), (*name).to_owned()));
                    }
                }
                ["unsubscribe", domain, name] => {
                    if let Some(spoke) = self.0.spokes.lock().await.get_mut(&own) {
                        spoke.wanted.remove(&((*domain).to_owned(), (*name).to_owned()));
                    }
                }
                ["publish", domain, id, name, pid] => self.on_publish(domain, id, name, pid).await,
                ["online", hub, ip, port] if *hub != self.id() => {
                    lock(&self.0.online).push((*hub).to_owned());
                    self.relay(own, &["online", hub, ip, port]).await;
                }
                ignored => println!("{}: {ignored:?} is ignored", self.id()),
            }
        }
        self.0.spokes.lock().await.remove(&own);
    }

    /// Claims, and the winner broadcasts.
    async fn on_publish(&self, domain: &str, id: &str, name: &str, pid: &str) {
        if !self.0.deployment.database.claim_for_hub(id, self.id()).await {
            return;
        }
        let fits = |wanted: &HashSet<(String, String)>| {
            wanted.iter().any(|(d, n)| d == domain && (n == name || n == "*"))
        };
        for spoke in self.0.spokes.lock().await.values_mut().filter(|spoke| fits(&spoke.wanted)) {
            spoke.writer.send(&["publish", domain, id, name, pid]).await;
        }
    }

    async fn relay(&self, but: u64, record: &[&str]) {
        for (_, spoke) in self.0.spokes.lock().await.iter_mut().filter(|(key, _)| **key != but) {
            spoke.writer.send(record).await;
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.0.tasks).spawn(task);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn acceptor(credentials: &Credentials) -> TlsAcceptor {
    let provider = Arc::new(default_provider());
    let roots = Arc::new(channel::roots(credentials));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(credentials.chain.clone(), credentials.key.clone_key())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
