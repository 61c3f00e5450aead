//! A spoke of the npm stack: publisher, subscriber, consumer, scheduler.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    channel::{Channel, Incoming, Outgoing},
    database::Event,
    deployment::{Deployment, SPOKES},
    id,
};

/// How often a spoke without any hub looks into the table `hub`.
const LOOK_FOR_HUBS: Duration = Duration::from_secs(3);

type Consumer = Arc<dyn Fn(&Event) -> Result<(), String> + Send + Sync>;

/// A running spoke. Cheap to clone.
#[derive(Clone)]
pub struct Spoke(Arc<Inner>);

struct Inner {
    id: String,
    deployment: Deployment,
    /// By the hub's id.
    hubs: AsyncMutex<HashMap<String, Outgoing>>,
    wanted: Mutex<Wanted>,
    tasks: Mutex<JoinSet<()>>,
}

/// What the application has registered, by domain and name.
#[derive(Default)]
struct Wanted {
    subscriptions: Vec<(String, String, mpsc::UnboundedSender<Event>)>,
    consumers: Vec<(String, String, Consumer)>,
    /// All that hubs were told of, in that order: told again to each hub that comes.
    told: Vec<(String, String)>,
}

impl Spoke {
    /// Connects to all hubs that haven't quit; without any it goes on looking for one.
    pub async fn start(deployment: &Deployment) -> Self {
        Self::named(deployment, &id::party(SPOKES)).await
    }

    /// The same, when at least one hub let it in.
    pub async fn connected(deployment: &Deployment) -> Self {
        let spoke = Self::start(deployment).await;
        assert!(!spoke.hubs().await.is_empty(), "a hub lets the spoke in");
        spoke
    }

    pub async fn named(deployment: &Deployment, id: &str) -> Self {
        let spoke = Self(Arc::new(Inner {
            id: id.to_owned(),
            deployment: deployment.clone(),
            hubs: AsyncMutex::default(),
            wanted: Mutex::default(),
            tasks: Mutex::default(),
        }));
        spoke.connect_to_all().await;
        spoke.look_for_hubs_if_alone().await;
        spoke
    }

    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The hubs that it is connected to, sorted.
    pub async fn hubs(&self) -> Vec<String> {
        let mut hubs: Vec<_> = self.0.hubs.lock().await.keys().cloned().collect();
        hubs.sort();
        hubs
    }

    /// Persists, and tells every hub; the event's id.
    pub async fn publish(&self, event: (&str, &str, &str), data: &str) -> String {
        let id = self.persist_published(event, data).await;
        let (domain, name, pid) = event;
        self.tell(&["publish", domain, &id, name, pid]).await;
        id
    }

    /// The two inserts of a publish alone.
    pub async fn persist_published(&self, event: (&str, &str, &str), data: &str) -> String {
        let database = &self.0.deployment.database;
        let id = database.persist(event, data).await;
        database.persist_published(&id, self.id()).await;
        id
    }

    /// The three inserts; no hub is told. `at`: UTC, whole seconds.
    pub async fn schedule(&self, event: (&str, &str, &str), data: &str, at: &str) -> String {
        let id = self.persist_published(event, data).await;
        self.0.deployment.database.persist_scheduled(&id, at).await;
        id
    }

    /// The events that its callback is run with.
    pub async fn subscribe(&self, domain: &str, name: &str) -> mpsc::UnboundedReceiver<Event> {
        let (sender, events) = mpsc::unbounded_channel();
        self.wanted(|wanted| wanted.subscriptions.push((domain.into(), name.into(), sender)));
        self.tell_wanted(domain, name).await;
        events
    }

    /// Drops the local subscriptions, and tells the hubs.
    pub async fn unsubscribe(&self, domain: &str, name: &str) {
        let is = |d: &str, n: &str| d == domain && n == name;
        self.wanted(|wanted| {
            wanted.subscriptions.retain(|(d, n, _)| !is(d, n));
            wanted.told.retain(|(d, n)| !is(d, n));
        });
        self.tell(&["unsubscribe", domain, name]).await;
    }

    /// A consumer whose error is the outcome `failed`.
    pub async fn consume(
        &self,
        domain: &str,
        name: &str,
        consumer: impl Fn(&Event) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.wanted(|wanted| wanted.consumers.push((domain.into(), name.into(), Arc::new(consumer))));
        self.tell_wanted(domain, name).await;
    }

    /// The name of the first event of that process that has one of the names, from now on. None: not in time.
    ///
    /// What it subscribed is dropped locally, with all else of the domain, while the hubs go on sending it.
    pub async fn wait(&self, domain: &str, pid: &str, names: &[&str], limit: Duration) -> Option<String> {
        let (sender, mut events) = mpsc::unbounded_channel();
        for name in names {
            self.wanted(|wanted| wanted.subscriptions.push((domain.into(), (*name).into(), sender.clone())));
            self.tell_wanted(domain, name).await;
        }
        let first = async {
            loop {
                let event: Event = events.recv().await.expect("the sender is here");
                if event.pid == pid {
                    return event.name;
                }
            }
        };
        let name = timeout(limit, first).await.ok();
        self.wanted(|wanted| wanted.subscriptions.retain(|(d, ..)| d != domain));
        name
    }

    /// Sends one record to every hub.
    pub async fn tell(&self, record: &[&str]) {
        for hub in self.0.hubs.lock().await.values_mut() {
            hub.send(record).await;
        }
    }

    /// Ends all links.
    pub async fn close(self) {
        let mut tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
        for hub in self.0.hubs.lock().await.values_mut() {
            hub.end().await;
        }
    }

    /// Connects to a hub, unless it is.
    ///
    /// # Errors
    /// What the handshake says.
    pub async fn connect_to(&self, hub: &str, ip: &str, port: u16) -> io::Result<()> {
        if self.0.hubs.lock().await.contains_key(hub) {
            return Ok(());
        }
        let credentials = self.0.deployment.certificates.of(self.id()).await;
        let (reader, mut writer) = Channel::connect((ip, port), hub, &credentials).await?.split();
        let mut hubs = self.0.hubs.lock().await;
        let told = self.wanted(|wanted| wanted.told.clone());
        for (domain, name) in &told {
            writer.send(&["subscribe", domain, name]).await;
        }
        hubs.insert(hub.to_owned(), writer);
        drop(hubs);
        self.spawn(self.clone().serve(hub.to_owned(), reader));
        Ok(())
    }

    async fn connect_to_all(&self) {
        for (hub, ip, port) in self.0.deployment.database.hubs_online().await {
            // A hub that can't be reached is passed over.
            let _ = self.connect_to(&hub, &ip, port).await;
        }
    }

    async fn look_for_hubs_if_alone(&self) {
        if !self.0.hubs.lock().await.is_empty() {
            return;
        }
        let spoke = self.clone();
        self.spawn(async move {
            while spoke.0.hubs.lock().await.is_empty() {
                sleep(LOOK_FOR_HUBS).await;
                spoke.connect_to_all().await;
            }
        });
    }

    /// Until the link ends. Boxed, since what it hears makes it connect to more hubs.
    fn serve(self, hub: String, mut reader: Incoming) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            while let Some(record) = reader.receive().await {
                match &*record.iter().map(String::as_str).collect::<Vec<_>>() {
                    ["publish", domain, id, name, _pid] => self.on_publish(domain, id, name).await,
                    ["online", hub, ip, port] => {
                        let _ = self.connect_to(hub, ip, port.parse().unwrap_or_default()).await;
                    }
                    unknown => println!("{}: {unknown:?} is not known", self.id()),
                }
            }
            self.0.hubs.lock().await.remove(&hub);
            self.look_for_hubs_if_alone().await;
        })
    }

    /// Runs subscriptions; claims, also when nobody here consumes; runs the consumer that has won.
    async fn on_publish(&self, domain: &str, id: &str, name: &str) {
        let database = &self.0.deployment.database;
        let Some(event) = database.read_event(id).await else { return };
        let fits = |d: &str, n: &str| d == domain && (n == name || n == "*");
        let consumers = self.wanted(|wanted| {
            for (.., callback) in wanted.subscriptions.iter().filter(|(d, n, _)| fits(d, n)) {
                let _ = callback.send(event.clone());
            }
            let fitting = wanted.consumers.iter().filter(|(d, n, _)| fits(d, n));
            fitting.map(|(.., consumer)| Arc::clone(consumer)).collect::<Vec<_>>()
        });
        if !database.claim_for_spoke(id, self.id()).await || consumers.is_empty() {
            return;
        }
        match consumers.iter().try_for_each(|consumer| consumer(&event)) {
            Ok(()) => database.set_success(id).await,
            Err(error) => {
                database.set_failed(id).await;
                database.log(self.id(), &error).await;
            }
        }
    }

    async fn tell_wanted(&self, domain: &str, name: &str) {
        self.wanted(|wanted| wanted.told.push((domain.to_owned(), name.to_owned())));
        self.tell(&["subscribe", domain, name]).await;
    }

    fn wanted<T>(&self, change: impl FnOnce(&mut Wanted) -> T) -> T {
        change(&mut self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }
}

/// The next event of a subscription.
pub async fn next(events: &mut mpsc::UnboundedReceiver<Event>) -> Event {
    timeout(Duration::from_secs(30), events.recv()).await.expect("an event in time").expect("a subscription")
}
