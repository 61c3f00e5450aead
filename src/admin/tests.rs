//! Over real sockets: what a monitoring system and a browser would see.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

use super::*;
use crate::{event::Fault, metrics::ActorKind};

const DEADLINE: Duration = Duration::from_secs(10);

struct World {
    addr: SocketAddr,
    metrics: Metrics,
    ready: watch::Sender<Readiness>,
    token: AdminToken,
    server: actix_web::dev::ServerHandle,
    serving: tokio::task::JoinHandle<io::Result<()>>,
    _folder: tempfile::TempDir,
}

/// A hub that isn't there.
#[derive(Debug)]
struct Stub;

impl Inspect for Stub {
    fn about(&self) -> About {
        About {
            hub: "a.EVENTFLOW-HUB".into(),
            version: "0.0.0",
            epoch: 3,
            address: ([127, 0, 0, 1], 50_000).into(),
            uptime: Duration::from_secs(90),
            database_bytes: Some(4_096),
        }
    }
}

#[async_trait::async_trait]
impl Backup for Stub {
    async fn snapshot(&self) -> Result<Snapshot, Fault> {
        Err(Fault::refused(code::BACKUP, "one is being made"))
    }
}

/// Tells of the begin of a copy and of its end; it has none of its own.
#[derive(Debug)]
struct Endless(mpsc::UnboundedSender<&'static str>);

#[async_trait::async_trait]
impl Backup for Endless {
    async fn snapshot(&self) -> Result<Snapshot, Fault> {
        struct Told(mpsc::UnboundedSender<&'static str>);
        impl Drop for Told {
            fn drop(&mut self) {
                let _ = self.0.send("ended");
            }
        }
        let _told = Told(self.0.clone());
        let _ = self.0.send("began");
        std::future::pending().await
    }
}

impl World {
    fn start() -> Self {
        Self::with(Arc::new(Stub))
    }

    fn with(backup: Arc<dyn Backup>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token = AdminToken::load_or_create(folder.path()).unwrap();
        let metrics = Metrics::new();
        let (ready, receiver) = watch::channel(Readiness::Starting);
        let state = AdminState {
            metrics: metrics.clone(),
            ready: receiver,
            token: token.clone(),
            inspect: Arc::new(Stub),
            backup,
        };
        let bound = bind(AdminConfig { addr: ([127, 0, 0, 1], 0).into() }).unwrap();
        let addr = bound.addr();
        let server = bound.serve(state).unwrap();
        let handle = server.handle();
        let serving = actix_web::rt::spawn(server);
        Self { addr, metrics, ready, token, server: handle, serving, _folder: folder }
    }

    async fn stop(self) {
        self.server.stop(true).await;
        timeout(DEADLINE, self.serving).await.expect("the server stops").unwrap().unwrap();
    }

    /// Sends the head of a request and reads the answer to its end.
    async fn ask(&self, head: &str) -> String {
        let mut link = TcpStream::connect(self.addr).await.unwrap();
        link.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(DEADLINE, link.read_to_string(&mut answer)).await.expect("an answer in time").unwrap();
        answer
    }

    async fn get(&self, path: &str, more: &str) -> String {
        let addr = self.addr;
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n{more}\r\n")).await
    }
}

fn status(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("no status: {answer:?}"))
}

#[actix_web::test]
async fn readyz_says_why_not() {
    let world = World::start();
    for (readiness, expected, word) in [
        (Readiness::Starting, 503, "starting"),
        (Readiness::Ready, 200, "ready"),
        (Readiness::Degraded { reason: "the disk is full".into() }, 503, "the disk is full"),
        (Readiness::Draining, 503, "draining"),
    ] {
        world.ready.send_replace(readiness.clone());
        let answer = world.get("/readyz", "").await;
        assert_eq!(status(&answer), expected, "{readiness}: {answer}");
        assert!(answer.contains(word), "{answer}");
        assert_eq!(status(&world.get("/livez", "").await), 200);
    }
    world.stop().await;
}

#[actix_web::test]
async fn metrics_are_open_and_typed() {
    let world = World::start();
    world.metrics.meter(ActorKind::Journal).spawned();
    let answer = world.get("/metrics", "").await;
    assert_eq!(status(&answer), 200);
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("eventflow_actors_alive{actor=\"journal\"} 1\n"), "{answer}");
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let answer = world.get("/metrics", accept).await;
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0"), "{answer}");
    assert!(answer.contains("# EOF"), "{answer}");
    world.stop().await;
}

#[actix_web::test]
async fn the_rest_needs_the_token() {
    let world = World::start();
    let token = world.token.expose().to_owned();
    for wrong in
        ["", "Authorization: Bearer wrong\r\n", "Authorization: Bearer \r\n", "Authorization: Basic eDp5\r\n"]
    {
        let answer = world.get("/actors", wrong).await;
        assert_eq!(status(&answer), 401, "{wrong}: {answer}");
        assert!(answer.contains("www-authenticate: Bearer"), "{answer}");
        assert!(!answer.contains(&token), "{answer}");
        assert!(answer.contains("/livez, /readyz and /metrics") && answer.ends_with("}\n"), "{answer}");
        assert!(answer.contains(code::ADMIN_TOKEN), "{answer}");
    }
    let answer = world.get("/nothing", &format!("Authorization: Bearer {token}\r\n")).await;
    assert_eq!(status(&answer), 404, "{answer}");
    world.stop().await;
}

#[actix_web::test]
async fn status_is_the_hub_on_one_page() {
    let world = World::start();
    world.ready.send_replace(Readiness::Degraded { reason: "the disk is full".into() });
    world.metrics.hub().published.inc();
    assert_eq!(status(&world.get("/status", "").await), 401);
    let bearer = format!("Authorization: Bearer {}\r\n", world.token.expose());
    let answer = world.get("/status", &bearer).await;
    assert_eq!(status(&answer), 200, "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["hub"], "a.EVENTFLOW-HUB");
    assert_eq!((&body["epoch"], &body["uptime_ms"]), (&3.into(), &90_000.into()));
    assert_eq!((&body["state"], &body["reason"]), (&"degraded".into(), &"the disk is full".into()));
    assert_eq!((&body["published"], &body["database_bytes"]), (&1.into(), &4_096.into()));
    let head = format!("DELETE /status HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", world.addr);
    assert_eq!(status(&world.ask(&format!("{head}\r\n")).await), 401, "the token comes first");
    let answer = world.ask(&format!("{head}{bearer}\r\n")).await;
    assert_eq!(status(&answer), 405, "{answer}");
    assert!(answer.contains("allow: GET\r\n"), "{answer}");
    world.stop().await;
}

#[actix_web::test]
async fn a_backup_needs_the_token_and_says_why_there_is_none() {
    let world = World::start();
    let ask = async |method: &str, more: &str| {
        let head = format!("{method} /backup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
        world.ask(&head).await
    };
    let bearer = format!("Authorization: Bearer {}\r\n", world.token.expose());
    assert_eq!(status(&ask("POST", "").await), 401);
    assert_eq!(status(&ask("GET", &bearer).await), 405);
    let answer = ask("POST", &bearer).await;
    assert_eq!(status(&answer), 409, "{answer}");
    assert!(answer.contains(code::BACKUP), "{answer}");
    world.stop().await;
}

#[actix_web::test]
async fn a_client_that_goes_away_ends_its_backup() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let world = World::with(Arc::new(Endless(tell)));
    let mut link = TcpStream::connect(world.addr).await.unwrap();
    let token = world.token.expose();
    let head = format!("POST /backup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    link.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(timeout(DEADLINE, told.recv()).await.unwrap(), Some("began"));
    drop(link);
    assert_eq!(timeout(DEADLINE, told.recv()).await.unwrap(), Some("ended"));
    world.stop().await;
}

#[actix_web::test]
async fn a_foreign_host_is_not_served() {
    let world = World::start();
    for head in [
        "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /metrics HTTP/1.0\r\n\r\n",
    ] {
        let answer = world.ask(head).await;
        assert!(matches!(status(&answer), 400 | 421), "{head}: {answer}");
        assert!(!answer.contains("eventflow_"), "{answer}");
    }
    let named = world.ask("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&named), 200, "{named}");
    world.stop().await;
}

#[actix_web::test]
async fn other_methods_are_refused() {
    let world = World::start();
    let addr = world.addr;
    let answer =
        world.ask(&format!("DELETE /livez HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n")).await;
    assert_eq!(status(&answer), 405, "{answer}");
    assert!(answer.contains("allow: GET, HEAD") && answer.ends_with("use GET or HEAD\"}\n"), "{answer}");
    world.stop().await;
}

#[actix_web::test]
async fn an_address_in_use_is_named_with_the_setting() {
    let world = World::start();
    let error = bind(AdminConfig { addr: world.addr }).expect_err("two servers on one address");
    assert_eq!(error.code(), code::ADDRESS);
    let text = error.to_string();
    assert!(text.contains(&world.addr.to_string()) && text.contains("admin.port"), "{text}");
    world.stop().await;
}
