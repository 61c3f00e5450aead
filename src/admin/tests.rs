//! Over real sockets: what a monitoring system and a browser would see.

mod crowds;

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

use super::*;
use crate::{
    event::Fault,
    metrics::{ActorKind, ActorsReport},
};

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

#[async_trait::async_trait]
impl Inspect for Stub {
    async fn actors(&self) -> ActorsReport {
        ActorsReport::new(&Metrics::new(), std::collections::BTreeMap::new())
    }

    fn about(&self) -> About {
        About {
            hub: "a.EVENTFLOW-HUB".into(),
            version: "0.0.0",
            epoch: 3,
            address: ([127, 0, 0, 1], 50_000).into(),
            uptime: Duration::from_secs(90),
            engine: "SQLite",
            database_bytes: Some(4_096),
        }
    }
}

/// A log that knows two levels.
#[derive(Debug, Default)]
struct Dial(std::sync::Mutex<String>);

impl LogControl for Dial {
    fn filter(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn set_filter(&self, filter: &str) -> Result<(), String> {
        if !["low", "high"].contains(&filter) {
            return Err(format!("{filter} is neither low nor high"));
        }
        filter.clone_into(&mut self.0.lock().unwrap());
        Ok(())
    }
}

#[async_trait::async_trait]
impl Histories for Stub {
    async fn page(&self, asked: AskedHistory) -> Result<Adopted, Fault> {
        Ok(Adopted { first_start: asked.since, ..Adopted::default() })
    }
}

#[async_trait::async_trait]
impl Retention for Stub {
    async fn outlook(&self) -> Result<Outlook, Fault> {
        Ok(Outlook { looked: 7, complete: true, ..Outlook::default() })
    }
}

#[async_trait::async_trait]
impl Certificates for Stub {
    async fn issue(&self, wish: IssueCertificate) -> Result<IssuedBundle, Fault> {
        let id = wish.id.ok_or_else(|| Fault::refused(code::CERTIFICATE_EXISTS, "So."))?;
        Ok(IssuedBundle { id, not_after: 1, bundle: "cert = \"…\"\n".into() })
    }

    async fn list(&self, page: &str, limit: u32) -> Result<CertificatePage, Fault> {
        Ok(CertificatePage { certificates: Vec::new(), next: Some(format!("{page} {limit}")) })
    }

    async fn revoke(&self, id: &str) -> Result<RevokedCertificates, Fault> {
        match id {
            "root" => Err(Fault::refused(code::CERTIFICATE_PROTECTED, "So.")),
            "none" => Err(Fault::refused(code::CERTIFICATE_NOT_FOUND, "So.")),
            id => Ok(RevokedCertificates { id: id.into(), versions: vec![0], links_cut: 2 }),
        }
    }
}

#[async_trait::async_trait]
impl Backlogs for Stub {
    async fn backlog(&self, group: Option<String>) -> Result<serde_json::Value, Fault> {
        match group.as_deref() {
            Some("nobody") => Err(Fault::refused(code::GROUP_NOT_FOUND, "So.")),
            group => Ok(serde_json::json!([{ "group": group }])),
        }
    }
}

#[async_trait::async_trait]
impl Events for Stub {
    async fn life(&self, id: &str) -> Result<Box<serde_json::value::RawValue>, Fault> {
        match id {
            "none" => Err(Fault::refused(code::EVENT_NOT_FOUND, "So.")),
            "later" => Err(Fault::retryable(code::HUB_BUSY, "So.", Duration::from_secs(1))),
            id => Ok(serde_json::value::to_raw_value(&serde_json::json!({ "event": id })).unwrap()),
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
            backlog: Arc::new(Stub),
            events: Arc::new(Stub),
            log: Some(Arc::new(Dial::default())),
            certificates: Arc::new(Stub),
            retention: Arc::new(Stub),
            history: Arc::new(Stub),
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
async fn the_log_level_is_changed_by_those_who_may_and_only_to_what_there_is() {
    let world = World::start();
    let put = |token: &str, body: &str| {
        let length = body.len();
        let head = format!("PUT /log HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}");
        format!("{head}Content-Length: {length}\r\n\r\n{body}")
    };
    let bearer = format!("Authorization: Bearer {}\r\n", world.token.expose());
    let (low, high) = ("{\"level\":\"low\"}", "{\"level\":\" high \"}");
    assert_eq!(status(&world.ask(&put("", low)).await), 401);
    let changed = world.ask(&put(&bearer, high)).await;
    assert_eq!(status(&changed), 200, "{changed}");
    let long = format!("{{\"level\":\"{}\"}}", "x".repeat(5_000));
    for (body, expected, part) in [
        ("{\"level\":\"odd\"}", 400, "odd is neither low nor high"),
        ("low", 400, "the JSON that is expected, such as"),
        ("", 400, "missing field `level`"),
        ("[\"low\"]", 400, "expected a map"),
        ("{\"level\":\"low\",\"for\":1}", 400, "unknown field"),
        (&long, 413, "\"message\":\"the body has more than 4096 bytes"),
    ] {
        let answer = world.ask(&put(&bearer, body)).await;
        assert_eq!(status(&answer), expected, "{body}: {answer}");
        assert!(answer.contains(part), "{answer}");
    }
    let shown = world.get("/log", &bearer).await;
    assert!(shown.ends_with("{\"filter\":\"high\"}\n"), "{shown}");
    world.stop().await;
}

#[actix_web::test]
async fn the_life_of_an_event_is_told_to_those_who_have_the_token() {
    let world = World::start();
    let bearer = format!("Authorization: Bearer {}\r\n", world.token.expose());
    assert_eq!(status(&world.get("/events/e1", "").await), 401);
    for (path, expected, part) in [
        ("/events/e1", 200, "{\"event\":\"e1\"}\n"),
        ("/events/a%2Fb%20c", 200, "{\"event\":\"a/b c\"}\n"),
        ("/events/none", 404, "{\"code\":\"E_EVENTFLOW_DB_EVENT_NOT_FOUND\",\"message\":\"So.\"}\n"),
        ("/events/later", 503, code::HUB_BUSY),
        ("/events", 404, code::UNSUPPORTED),
    ] {
        let answer = world.get(path, &bearer).await;
        assert_eq!(status(&answer), expected, "{path}: {answer}");
        assert!(answer.contains(part), "{path}: {answer}");
    }
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

#[actix_web::test]
async fn certificates_are_issued_listed_and_revoked_by_the_operator_alone() {
    let world = World::start();
    let token = format!("Authorization: Bearer {}\r\n", world.token.expose());
    let json = format!("{token}Accept: application/json\r\n");
    let post = async |path: &str, more: &str, body: &str| {
        let addr = world.addr;
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n{more}");
        world.ask(&format!("{head}Content-Length: {length}\r\n\r\n{body}")).await
    };
    for (path, body) in [("/certificates", r#"{"id":"a"}"#), ("/certificates/revoke", r#"{"id":"a"}"#)] {
        let answer = post(path, "", body).await;
        assert!(
            answer.starts_with("HTTP/1.1 401 ") && answer.contains("E_EVENTFLOW_ADMIN_TOKEN"),
            "{answer}"
        );
        let answer = post(path, &token, "rubbish").await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("is not the JSON"), "{answer}");
        let answer = post(path, &token, r#"{"idd":"a"}"#).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("unknown field"), "{answer}");
        let answer = post(path, &token, &"x".repeat(20_000)).await;
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("\"message\":\"the body"), "{answer}");
        let answer = post(path, &token, "[]").await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("expected a map"), "{answer}");
    }
    assert!(world.get("/certificates", "").await.starts_with("HTTP/1.1 401 "));

    let toml = post("/certificates", &token, r#"{"id":"a"}"#).await;
    assert!(toml.starts_with("HTTP/1.1 201 ") && toml.contains("application/toml"), "{toml}");
    assert!(toml.ends_with("\r\n\r\ncert = \"…\"\n") && toml.contains("no-store"), "{toml}");
    let answer = post("/certificates", &json, r#"{"id":"a"}"#).await;
    assert!(answer.contains(r#"{"id":"a","not_after":1,"bundle":"cert = "#), "{answer}");
    let answer = post("/certificates", &token, "").await;
    assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");

    let answer = world.get("/certificates?page=x&limit=7", &token).await;
    assert!(answer.ends_with("{\"certificates\":[],\"next\":\"x 7\"}\n"), "{answer}");
    let answer = world.get("/certificates?limit=100000", &token).await;
    assert!(answer.contains("\" 1000\""), "{answer}");
    for wrong in ["x", "0", "-1"] {
        let answer = world.get(&format!("/certificates?limit={wrong}"), &token).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("\"message\""), "{answer}");
    }
    assert!(world.get("/certificates/revoke", &token).await.starts_with("HTTP/1.1 405 "));

    let answer = post("/certificates/revoke", &token, r#"{"id":"b"}"#).await;
    assert!(answer.ends_with("{\"id\":\"b\",\"versions\":[0],\"links_cut\":2}\n"), "{answer}");
    assert!(post("/certificates/revoke", &token, r#"{"id":"root"}"#).await.starts_with("HTTP/1.1 403 "));
    assert!(post("/certificates/revoke", &token, r#"{"id":"none"}"#).await.starts_with("HTTP/1.1 404 "));
    world.stop().await;
}
