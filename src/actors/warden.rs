//! Keeps the certificates in order while the hub runs.

mod desk;
mod message;
mod own;
mod snapshot;
mod watch;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, ResponseActFuture, ResponseFuture, SpawnHandle,
    fut::wrap_future,
};
use tokio::sync::watch as channel;
use tokio_rustls::TlsAcceptor;

pub use desk::Office;
pub use message::{Attend, Handout, Issue, Renew, Revocation, Revoke};
pub use own::OwnConfig;

use self::{
    own::Established,
    watch::{Look, Watch},
};
use super::{
    life::Life,
    listener::{CutRevoked, Listener},
    mail::{Handle, measured},
    monitor::{Monitor, Notice},
    snapshot::Snapshot,
};
use crate::{
    event::Fault,
    metrics::{Meter, Metrics},
    pki::{Authority, Bundle, PkiError, Revoked, unix_seconds},
    wire::Renewed,
};

/// How often it is looked for what somebody else revoked.
const LOOK: Duration = Duration::from_secs(5);
/// The shortest rest between two turns of the timer.
const REST: Duration = Duration::from_millis(100);
/// Bounds of the wait after a renewal that failed; it doubles.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// How long the listener may take to cut links.
const CUT: Duration = Duration::from_secs(5);

/// - **Role**: renews the hub's own certificates and the operator's bundle in time, issues and renews leaves of
///   spokes, and knows which certificates are revoked.
/// - **Owns**: the opened certificates of the hub, the operator's bundle, what TLS is served with, the revoked certificates.
/// - **Receives**: [`Renew`] from connections; [`Issue`] and [`Revoke`] from the admin HTTP; [`Attend`] once from the
///   guardian; [`Snapshot`] from the hub.
/// - **Sends**: `CutRevoked` to the listener, [`Notice`]s to the monitor.
/// - **Capacity**: a link has one renewal under way, the admin HTTP one request per connection; they are asked, with
///   deadlines. Signing and files go to blocking tasks. One look and one renewal of its own at a time.
/// - **On failure**: the hub drains and ends: one that can't tell who is revoked mustn't go on. What failed by itself,
///   a look or a renewal, is tried again.
pub struct Warden {
    meter: Meter,
    metrics: Metrics,
    office: Arc<Office>,
    own: Arc<OwnConfig>,
    established: Established,
    watch: Watch,
    tls: channel::Sender<Tls>,
    bundle: channel::Sender<Bundle>,
    authority: channel::Sender<Arc<Authority>>,
    listener: Option<Handle<Listener>>,
    monitor: Option<Handle<Monitor>>,
    /// No renewal of its own before then: the last one failed. Not by the wall clock, which may be set back.
    rest_until: Instant,
    failures: u32,
    renewing: bool,
    /// Another renewal is to follow the one under way.
    again: bool,
    look_at: Instant,
    looking: bool,
    timer: Option<SpawnHandle>,
    _life: Life,
}

measured!(Warden: Attend, Renew, Issue, Revoke, Snapshot);

impl std::fmt::Debug for Warden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warden").field("due", &self.established.due).finish_non_exhaustive()
    }
}

/// What a warden begins with: certificates that stand, and what is revoked.
#[derive(Debug)]
pub struct Commission {
    office: Office,
    own: OwnConfig,
    established: Established,
    watch: Watch,
    tls: channel::Sender<Tls>,
    bundle: channel::Sender<Bundle>,
    authority: channel::Sender<Arc<Authority>>,
}

/// What new links are let in by.
#[derive(Clone)]
pub struct Tls(pub TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(…)")
    }
}

impl Commission {
    /// Opens the hub's certificates, makes what is missing or due, and reads what is revoked.
    ///
    /// # Errors
    /// [`PkiError`] says which certificate, key or file can't be used.
    pub async fn prepare(office: Office, own: OwnConfig) -> Result<Self, PkiError> {
        let now = unix_seconds(SystemTime::now());
        let revoked = Look::whole(now).read(&office.store).await;
        let watch = Watch::new(revoked.map_err(|error| PkiError::Rows(Box::new(error)))?, now);
        let established = own::establish(&office, &own, &watch.revoked()).await?;
        let tls = own::acceptor(&office, &established, watch.revoked())?;
        let (tls, bundle) =
            (channel::Sender::new(Tls(tls)), channel::Sender::new(established.bundle.clone()));
        let authority = channel::Sender::new(established.shared_authority());
        Ok(Self { office, own, established, watch, tls, bundle, authority })
    }

    /// The hub's certificates.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        self.established.authority()
    }

    /// The same, and others after each renewal.
    #[must_use]
    pub fn authorities(&self) -> channel::Receiver<Arc<Authority>> {
        self.authority.subscribe()
    }

    /// What new links are let in by: another one after each renewal.
    #[must_use]
    pub fn tls(&self) -> channel::Receiver<Tls> {
        self.tls.subscribe()
    }

    /// The operator's bundle: another one after each renewal.
    #[must_use]
    pub fn bundle(&self) -> channel::Receiver<Bundle> {
        self.bundle.subscribe()
    }

    /// The revoked certificates.
    #[must_use]
    pub fn revoked(&self) -> channel::Receiver<Revoked> {
        self.watch.revoked()
    }
}

impl Warden {
    /// A warden who goes on from there.
    #[must_use]
    pub fn new(commission: Commission, metrics: Metrics, meter: Meter, life: Life) -> Self {
        let Commission { office, own, established, watch, tls, bundle, authority } = commission;
        Self {
            meter,
            metrics,
            office: Arc::new(office),
            own: Arc::new(own),
            rest_until: Instant::now(),
            established,
            watch,
            tls,
            bundle,
            authority,
            listener: None,
            monitor: None,
            failures: 0,
            renewing: false,
            again: false,
            look_at: Instant::now() + LOOK,
            looking: false,
            timer: None,
            _life: life,
        }
    }

    /// Does what is due.
    fn turn(&mut self, ctx: &mut Context<Self>) {
        let (now, instant) = (SystemTime::now(), Instant::now());
        self.metrics.hub().leaf_left.set(self.established.left(now));
        if !self.renewing && self.until_renewal().is_zero() {
            self.renew(ctx);
        }
        if !self.looking && self.look_at <= instant {
            self.look(ctx);
        }
        self.meter.progress();
        self.set_timer(ctx);
    }

    /// Sets the one timer to what is due next; again whenever that changes.
    fn set_timer(&mut self, ctx: &mut Context<Self>) {
        let mut rest = LOOK;
        if !self.looking {
            rest = rest.min(self.look_at.saturating_duration_since(Instant::now()));
        }
        if !self.renewing {
            rest = rest.min(self.until_renewal());
        }
        let timer = ctx.run_later(rest.max(REST), Self::turn);
        if let Some(before) = self.timer.replace(timer) {
            ctx.cancel_future(before);
        }
    }

    /// How long nothing of its own is to be renewed, if the clock goes on as it does.
    fn until_renewal(&self) -> Duration {
        let now = SystemTime::now();
        let due = self.established.due.duration_since(now).unwrap_or_default();
        let due = if self.again || self.established.is_due(now) { Duration::ZERO } else { due };
        due.max(self.rest_until.saturating_duration_since(Instant::now()))
    }

    /// Renews the hub's own certificates and the operator's bundle.
    fn renew(&mut self, ctx: &mut Context<Self>) {
        (self.renewing, self.again) = (true, false);
        let (office, own) = (self.office.clone(), self.own.clone());
        let (standing, revoked) = (self.established.clone(), self.watch.revoked());
        let renewed = async move { own::renew(&office, &own, &standing, &revoked).await };
        ctx.spawn(wrap_future::<_, Self>(renewed).map(|renewed, warden, ctx| {
            warden.renewing = false;
            match renewed {
                Ok((established, tls)) => warden.renewed(established, tls),
                Err(error) => warden.not_renewed(&error),
            }
            warden.set_timer(ctx);
        }));
    }

    fn renewed(&mut self, established: Established, tls: Option<TlsAcceptor>) {
        self.failures = 0;
        self.bundle.send_replace(established.bundle.clone());
        self.authority.send_replace(established.shared_authority());
        self.established = established;
        self.metrics.hub().leaf_left.set(self.established.left(SystemTime::now()));
        if let Some(tls) = tls {
            self.tls.send_replace(Tls(tls));
            tracing::info!("the hub's certificates were renewed: new links see them, those that are up stay");
            self.note(Notice::told("the hub's certificates were renewed"));
        }
        self.note_early();
    }

    /// Leaves a row about what a clock that was ahead had made.
    fn note_early(&self) {
        let early = self.established.authority().early();
        if !early.is_empty() {
            let what = "certificates that didn't hold yet were made anew: the clock was set back";
            self.note(Notice::fault(what, &early.join("; ")));
        }
    }

    fn not_renewed(&mut self, error: &PkiError) {
        let (first, most) = BACKOFF;
        let wait = first.saturating_mul(2_u32.saturating_pow(self.failures)).min(most);
        let wait = wait.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.failures = self.failures.saturating_add(1);
        self.rest_until = Instant::now() + wait;
        self.metrics.hub().renewals_failed.inc();
        let left = self.established.left(SystemTime::now());
        tracing::error!(%error, left, ?wait, "the hub's certificates can't be renewed; trying again");
        self.note(Notice::fault("the hub's certificates can't be renewed", &error.to_string()));
    }

    /// Looks for what was revoked by others.
    fn look(&mut self, ctx: &mut Context<Self>) {
        self.looking = true;
        let look = self.watch.look(unix_seconds(SystemTime::now()));
        let office = self.office.clone();
        let read = async move { look.read(&office.store).await };
        ctx.spawn(wrap_future::<_, Self>(read).then(move |read, warden, ctx| {
            warden.looking = false;
            warden.look_at = Instant::now() + LOOK;
            let fresh = match read {
                Ok(found) => warden.watch.take(look, found),
                Err(error) => {
                    tracing::error!(%error, "it isn't known what was revoked since; trying again");
                    0
                }
            };
            if fresh > 0 {
                tracing::warn!(fresh, "certificates were revoked");
                warden.replace_revoked(ctx);
            }
            warden.set_timer(ctx);
            let listener = warden.listener.clone().filter(|_| fresh > 0);
            wrap_future::<_, Self>(async move { _ = cut_revoked(listener).await })
        }));
    }

    /// What was revoked may be the operator's, or the hub's own: then others are made.
    fn replace_revoked(&mut self, ctx: &mut Context<Self>) {
        if self.renewing {
            // The one under way may not know of it yet.
            self.again = true;
        } else {
            self.renew(ctx);
        }
    }

    fn note(&self, notice: Notice) {
        if let Some(monitor) = &self.monitor {
            monitor.note(notice);
        }
    }
}

/// Cuts the links of revoked certificates; how many there were.
async fn cut_revoked(listener: Option<Handle<Listener>>) -> usize {
    let Some(listener) = listener else { return 0 };
    listener.ask(CutRevoked, CUT).await.unwrap_or_else(|error| {
        tracing::error!(%error, "it isn't known whether links of revoked certificates were cut");
        0
    })
}

impl Actor for Warden {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.turn(ctx);
    }
}

impl Handler<Attend> for Warden {
    type Result = ();

    fn handle(&mut self, message: Attend, _: &mut Self::Context) {
        let Attend { listener, monitor } = message;
        (self.listener, self.monitor) = (Some(listener), Some(monitor));
        self.note_early();
    }
}

impl Handler<Renew> for Warden {
    type Result = ResponseFuture<Result<Renewed, Fault>>;

    fn handle(&mut self, message: Renew, _: &mut Self::Context) -> Self::Result {
        let (office, metrics) = (self.office.clone(), self.metrics.clone());
        Box::pin(async move {
            let Renew { uid, shown, key } = message;
            let renewed = office.renew(&uid, &shown, &key).await?;
            metrics.hub().leaves_issued.inc();
            Ok(renewed)
        })
    }
}

impl Handler<Issue> for Warden {
    type Result = ResponseFuture<Result<Handout, Fault>>;

    fn handle(&mut self, message: Issue, _: &mut Self::Context) -> Self::Result {
        let (office, metrics) = (self.office.clone(), self.metrics.clone());
        Box::pin(async move {
            let handout = office.issue(message).await?;
            metrics.hub().leaves_issued.inc();
            Ok(handout)
        })
    }
}

impl Handler<Revoke> for Warden {
    type Result = ResponseActFuture<Self, Result<Revocation, Fault>>;

    fn handle(&mut self, message: Revoke, _: &mut Self::Context) -> Self::Result {
        let office = self.office.clone();
        let revoked = async move { office.revoke(&message.id).await };
        Box::pin(wrap_future::<_, Self>(revoked).then(|revoked, warden, ctx| {
            if let Ok(rows) = &revoked {
                warden.watch.add(rows);
                warden.replace_revoked(ctx);
            }
            let listener = warden.listener.clone();
            wrap_future::<_, Self>(async move {
                let versions = revoked?.iter().map(|row| row.version).collect();
                Ok(Revocation { versions, links: cut_revoked(listener).await })
            })
        }))
    }
}

#[cfg(test)]
mod tests;
