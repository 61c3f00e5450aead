//! From a list of hubs to a link that has said `welcome`.

use std::{future::Future, io, pin::Pin, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep_until, timeout_at},
};

use super::{SpokeConfig, Tried, backoff::Backoff, credentials::Credentials, fleet::Crew};
use crate::{
    event::{Fault, Retry, code},
    pki::{self, PkiError},
    wire::{Hello, HubAddress, Limits, READY, Reader, Reply, Request, Welcome},
};

/// Addresses of a hub that are remembered at most, besides the configured ones.
const MOST_ADDRESSES: usize = 8;
/// A link that lived so long starts the back-off anew.
const SETTLED: Duration = Duration::from_secs(10);
/// The record limits of a hub are believed up to here.
const MOST_RECORD_BYTES: usize = 64 << 20;

/// A stream of bytes to a hub.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

pub(super) type Opening<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Io>, Fault>> + Send + 'a>>;

/// Opens streams to hubs.
pub(super) trait Connector: Send + Sync {
    /// Opens one; ends when what runs over it can begin.
    fn open<'a>(&'a self, hub: &'a HubAddress) -> Opening<'a>;
}

/// A link on which requests can be sent.
pub(super) struct Link {
    pub(super) io: Box<dyn Io>,
    /// Holds what came after `welcome` in the same read.
    pub(super) reader: Reader,
    pub(super) welcome: Welcome,
}

/// Why there is no link.
#[derive(Debug, PartialEq)]
pub(super) enum NoLink {
    /// Not in time.
    Late,
    /// Every hub refused for good; this is the last one's reason.
    Refused(Fault),
}

/// Tries addresses one after the other, again and again: all hubs' for the first link of a spoke, those of one hub from then
/// on.
pub(super) struct Dialer {
    connector: Arc<dyn Connector>,
    /// Who hears of dials that fail.
    crew: Option<Crew>,
    hubs: Vec<HubAddress>,
    /// Which one comes next.
    next: usize,
    client: String,
    handshake: Duration,
    backoff: Backoff,
    /// Earlier than this nothing is tried.
    not_before: Instant,
    tried: Vec<Tried>,
}

impl Dialer {
    pub(super) fn new(
        config: &SpokeConfig,
        connector: Arc<dyn Connector>,
        hubs: Vec<HubAddress>,
        now: Instant,
    ) -> Self {
        Self {
            connector,
            crew: None,
            hubs,
            next: 0,
            client: config.client.clone(),
            handshake: config.handshake_deadline,
            backoff: Backoff::new(config.backoff.0, config.backoff.1),
            not_before: now,
            tried: Vec::new(),
        }
    }

    /// What happened at each address since the last link.
    pub(super) fn tried(&mut self) -> Vec<Tried> {
        std::mem::take(&mut self.tried)
    }

    /// From now on it dials for this link.
    pub(super) fn of(self, crew: Crew) -> Self {
        Self { crew: Some(crew), ..self }
    }

    /// From now on it dials only the address that led to the last link.
    pub(super) fn settle(&mut self) -> HubAddress {
        let address = self.hubs[self.next % self.hubs.len()].clone();
        self.hubs = vec![address.clone()];
        address
    }

    /// The hub is to be found here too.
    pub(super) fn reach(&mut self, hub: HubAddress) {
        if !self.hubs.contains(&hub) && self.hubs.len() < MOST_ADDRESSES {
            self.hubs.push(hub);
        }
    }

    /// The address that was dialed last leads to another hub. False: it is the only one.
    pub(super) fn mislead(&mut self, now: Instant) -> bool {
        if self.hubs.len() < 2 {
            return false;
        }
        self.hubs.remove(self.next % self.hubs.len());
        self.pause(now);
        true
    }

    /// Nothing is tried for a while.
    pub(super) fn pause(&mut self, now: Instant) {
        self.not_before = now + self.backoff.next();
    }

    /// A link that came up at `since` is gone: the next attempt waits, at least as long as the hub asked.
    pub(super) fn lost(&mut self, since: Instant, wait: Option<Duration>, now: Instant) {
        if now.duration_since(since) >= SETTLED {
            self.backoff.reset();
        }
        self.not_before = now + self.backoff.next().max(wait.unwrap_or_default());
        if wait.is_some() {
            // It closes: another one is the better choice.
            self.next += 1;
        }
    }

    /// Tries until there is a link, at most until then.
    pub(super) async fn link(&mut self, until: Option<Instant>) -> Result<Link, NoLink> {
        loop {
            let mut refusal = None;
            let mut waiting_helps = false;
            let mut asked = Duration::ZERO;
            for _ in 0..self.hubs.len() {
                let start = self.not_before;
                if until.is_some_and(|until| until <= start) {
                    if let Some(until) = until {
                        sleep_until(until).await;
                    }
                    return Err(NoLink::Late);
                }
                sleep_until(start).await;
                let hub = self.hubs[self.next % self.hubs.len()].clone();
                let deadline = Instant::now() + self.handshake;
                let deadline = until.map_or(deadline, |until| deadline.min(until));
                match self.attempt(&hub, deadline).await {
                    Ok(link) => {
                        self.tried.clear();
                        return Ok(link);
                    }
                    Err(fault) => {
                        tracing::warn!(hub.address = %address(&hub), code = fault.code, "no link: {}", fault.message);
                        // At first anything final is told at once. A spoke that was connected goes on unless
                        // it is itself refused: what answers now may be somebody else, for the time of a
                        // restart.
                        let is_final =
                            if until.is_some() { !fault.is_retryable() } else { ends_the_spoke(&fault) };
                        waiting_helps |= !is_final;
                        if let Retry::After(wait) = fault.retry {
                            asked = asked.max(wait);
                        }
                        self.note(&hub, &fault);
                        if let Some(crew) = &self.crew {
                            crew.tried();
                        }
                        refusal = Some(fault);
                    }
                }
                self.next += 1;
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Err(NoLink::Late);
                }
            }
            match refusal {
                Some(fault) if !waiting_helps => return Err(NoLink::Refused(fault)),
                _ => self.not_before = Instant::now() + self.backoff.next().max(asked),
            }
        }
    }

    async fn attempt(&self, hub: &HubAddress, deadline: Instant) -> Result<Link, Fault> {
        let began = Instant::now();
        let late = |what: &str| {
            let text = format!("{what} within {:.1} s", began.elapsed().as_secs_f64());
            Fault::retryable(code::TIMEOUT, text, Duration::ZERO)
        };
        let mut io = timeout_at(deadline, self.connector.open(hub))
            .await
            .map_err(|_| late("no TCP connection and TLS handshake"))??;
        timeout_at(deadline, ready(&mut io))
            .await
            .map_err(|_| late("the hub didn't send its ready byte"))??;
        timeout_at(deadline, greet(io, &self.client)).await.map_err(|_| late("`hello` was not answered"))?
    }

    fn note(&mut self, hub: &HubAddress, fault: &Fault) {
        let tried = Tried { address: address(hub), reason: fault.message.clone() };
        match self.tried.iter_mut().find(|known| known.address == tried.address) {
            Some(known) => *known = tried,
            None => self.tried.push(tried),
        }
    }
}

/// Whether a hub's refusal holds at every hub and for good: it is about this spoke's certificate or its
/// protocol.
pub(super) fn ends_the_spoke(fault: &Fault) -> bool {
    let codes = [
        code::CERTIFICATE,
        code::CERTIFICATE_EXPIRED,
        code::CERTIFICATE_REVOKED,
        code::INVALID_HOSTNAME,
        code::UNKNOWN_VERSION,
    ];
    !fault.is_retryable() && codes.contains(&fault.code.as_str())
}

pub(super) fn address(hub: &HubAddress) -> String {
    match &hub.id {
        Some(id) => format!("{}:{} ({id})", hub.host, hub.port),
        None => format!("{}:{}", hub.host, hub.port),
    }
}

/// The hub sends one byte when it takes the link.
async fn ready(io: &mut (dyn Io + 'static)) -> Result<(), Fault> {
    match io.read_u8().await {
        Ok(READY) => Ok(()),
        Ok(byte) => {
            let text = format!(
                "the first byte is {byte:#04x} instead of {READY:#04x}: something else than a hub answers, \
                 check address and port"
            );
            Err(Fault::refused(code::INVALID_RECORD, text))
        }
        Err(error) => Err(broken(&error)),
    }
}

/// `hello`, and all that comes up to `welcome`.
async fn greet(mut io: Box<dyn Io>, client: &str) -> Result<Link, Fault> {
    let mut hello = BytesMut::new();
    Request::Hello(Hello { client: client.to_owned() }).encode(&mut hello)?;
    io.write_all(&hello).await.map_err(|error| broken(&error))?;
    io.flush().await.map_err(|error| broken(&error))?;
    let mut reader = Reader::new(Limits::default());
    loop {
        while let Some(record) = reader.next()? {
            match Reply::parse(&record) {
                Ok(Reply::Welcome(welcome)) => {
                    let limits = Limits::default();
                    let told = usize::try_from(welcome.limits.record_bytes).unwrap_or(usize::MAX);
                    let units = (welcome.limits.units as usize).max(limits.units);
                    let record_bytes = told.clamp(limits.record_bytes, MOST_RECORD_BYTES);
                    reader.set_limits(Limits { record_bytes, units });
                    return Ok(Link { io, reader, welcome });
                }
                Ok(Reply::Bye(fault) | Reply::Err { fault, .. }) => return Err(fault),
                // What an npm link would get; a hub doesn't know yet what this is.
                Ok(_) | Err(_) => {}
            }
        }
        if io.read_buf(reader.spare()).await.map_err(|error| broken(&error))? == 0 {
            return Err(broken(&io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

/// The stream broke before `welcome`: with TLS 1.3 only here a client learns that its certificate was
/// refused.
fn broken(error: &io::Error) -> Fault {
    match pki::tls::explain(error) {
        PkiError::Connection { source } if source.kind() == io::ErrorKind::UnexpectedEof => Fault::retryable(
            code::LINK_LOST,
            "the hub ended the link without a goodbye, before `welcome`: its log says why",
            Duration::ZERO,
        ),
        explained => explained.into(),
    }
}

/// TCP and TLS, as real hubs have it.
pub(super) struct Tls {
    credentials: Arc<Credentials>,
    /// Whether credentials that don't hold are shown to no hub.
    checks: bool,
}

impl Tls {
    pub(super) fn new(credentials: Arc<Credentials>) -> Self {
        Self { credentials, checks: true }
    }

    /// Whatever the credentials are, for tests of what a hub says of them.
    #[cfg(all(test, feature = "hub"))]
    pub(super) fn unchecked(bundle: crate::pki::Bundle) -> Self {
        Self { credentials: Arc::new(Credentials::new(bundle)), checks: false }
    }

    async fn connect(&self, hub: &HubAddress) -> Result<Box<dyn Io>, Fault> {
        let bundle = if self.checks { self.credentials.that_hold()? } else { self.credentials.bundle() };
        let (config, name) = pki::tls::client_config(&bundle, hub.id.as_deref())?;
        let tcp = TcpStream::connect((hub.host.as_str(), hub.port)).await.map_err(|error| {
            let text = format!("can't connect ({error})");
            Fault::retryable(code::NO_HUB, text, Duration::ZERO)
        })?;
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY can't be set");
        }
        let connector = tokio_rustls::TlsConnector::from(config);
        match connector.connect(name, tcp).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(broken(&error)),
        }
    }
}

impl Connector for Tls {
    fn open<'a>(&'a self, hub: &'a HubAddress) -> Opening<'a> {
        Box::pin(self.connect(hub))
    }
}
