//! Handlers by event name: a map from name to handler, with a fallback and an error handler.

use std::{collections::HashMap, fmt, future::Future, ops::Deref, pin::Pin, sync::Arc};

use super::{Claim, Consume, ConsumeError, Consumer, Hold, Spoke, SubscribeError, Subscriber};
use crate::event::Event;

/// Any error: what handlers fail with. `?` makes it of every error type, `.into()` of a text.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Handled = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;
type Handler = Arc<dyn Fn(Received) -> Handled + Send + Sync>;
type ErrorHandler = Arc<dyn Fn(BoxError, Received) -> Handled + Send + Sync>;

/// An event as a handler gets it. It reads as the [`Event`] itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// The event.
    pub event: Event,
    /// The hub's sequence number.
    pub seq: u64,
    /// 1 at the first delivery to the group; for subscribers always 1.
    pub attempt: u32,
    /// Tells when the event isn't this consumer's any more; for subscribers never.
    pub hold: Hold,
}

impl Deref for Received {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// An event came that has no handler, and there is no fallback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no handler for events of the name {name:?}, and no fallback: add one, or consume by a narrower pattern"
)]
pub struct Unhandled {
    /// The event's name.
    pub name: String,
}

/// Handlers by the name of the event, to consume or to subscribe with.
///
/// What consuming makes of their results:
///
/// | what happened | outcome |
/// |---|---|
/// | the handler of the event's name, or else the fallback, returned `Ok` | ack |
/// | it returned an error | the error handler gets it: `Ok` is an ack, an error a nack with its text; without one, a nack with the handler's |
/// | there is neither handler nor fallback | the same, with [`Unhandled`] as the error: a nack that says so. Handed back it would only come again |
/// | a handler panicked | a nack with the panic's text |
/// | it took longer than the [`handler_timeout`](Consume::handler_timeout) | it is dropped: a nack that says so |
///
/// A nack is tried again as the group's back-off says. An error that is a [`Nack`](super::Nack), or has one among its
/// sources, says itself when, or that there is no sense in another attempt.
///
/// For subscribers nothing is acked: an event without handler is passed over, an error that is left is logged.
///
/// ```no_run
/// use eventflow::spoke::{Consume, Handlers, Spoke};
///
/// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
/// let handlers = Handlers::new()
///     .on("created", |event| async move {
///         println!("{} for the {}. time: {}", event.id, event.attempt, event.data);
///         Ok(())
///     })
///     .on("paid", |event| async move {
///         let amount: f64 = event.data.read()?;
///         println!("{} paid {amount}", event.pid);
///         Ok(())
///     })
///     .otherwise(|event| async move { Err(format!("{} is new to me", event.name).into()) })
///     .on_error(|error, event| async move {
///         eprintln!("{}: {error}", event.id);
///         Err(error)
///     });
/// let consumer = spoke.consume_with(Consume::new("orders", "*").concurrency(4), handlers).await?;
/// consumer.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "handlers work by `Spoke::consume_with` or `Spoke::subscribe_with`"]
pub struct Handlers {
    by_name: HashMap<String, Handler>,
    otherwise: Option<Handler>,
    on_error: Option<ErrorHandler>,
}

impl Handlers {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles events of exactly this name; of two for one name the later counts.
    pub fn on<H, F>(mut self, name: impl Into<String>, handler: H) -> Self
    where
        H: Fn(Received) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.by_name.insert(name.into(), boxed(handler));
        self
    }

    /// Handles events of all other names.
    pub fn otherwise<H, F>(mut self, handler: H) -> Self
    where
        H: Fn(Received) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.otherwise = Some(boxed(handler));
        self
    }

    /// Gets the errors of all handlers first: `Ok` makes the event done, an error takes the first one's place.
    pub fn on_error<H, F>(mut self, handler: H) -> Self
    where
        H: Fn(BoxError, Received) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.on_error = Some(Arc::new(move |error, received| Box::pin(handler(error, received))));
        self
    }

    /// The handler of an event, if there is one.
    fn of(&self, event: &Event) -> Option<&Handler> {
        self.by_name.get(event.name.as_str()).or(self.otherwise.as_ref())
    }

    /// Whether anything handles it.
    pub(super) fn handle(&self, received: &Received) -> bool {
        self.of(&received.event).is_some()
    }

    /// Begins to handle an event; the error handler has had its say in the result.
    pub(super) fn begin(&self, received: Received) -> Handled {
        let on_error = self.on_error.clone();
        let handled = self.of(&received.event).map(|handler| handler(received.clone()));
        Box::pin(async move {
            let result = match handled {
                Some(handled) => handled.await,
                None => Err(Unhandled { name: received.event.name.to_string() }.into()),
            };
            match (result, on_error) {
                (Err(error), Some(on_error)) => on_error(error, received).await,
                (result, _) => result,
            }
        })
    }
}

fn boxed<H, F>(handler: H) -> Handler
where
    H: Fn(Received) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    Arc::new(move |received| Box::pin(handler(received)))
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("names", &self.by_name.keys())
            .field("otherwise", &self.otherwise.is_some())
            .field("on_error", &self.on_error.is_some())
            .finish()
    }
}

impl Spoke {
    /// Consumes by handlers for each event name, as [`Handlers`] says. Otherwise as [`Spoke::consume`].
    ///
    /// # Errors
    /// As [`Spoke::consume`].
    pub async fn consume_with(&self, consume: Consume, handlers: Handlers) -> Result<Consumer, ConsumeError> {
        let manner = consume.manner();
        let claims = self.claims(consume).await?;
        Ok(Consumer::start(claims, manner, move |claim: &Claim| {
            let (event, seq, attempt) = (claim.event().clone(), claim.seq(), claim.attempt());
            handlers.begin(Received { event, seq, attempt, hold: claim.hold() })
        }))
    }

    /// Subscribes by handlers for each event name. A task runs them one after the other, in the order of the events;
    /// see [`Subscriber`].
    ///
    /// ```no_run
    /// use eventflow::spoke::{Handlers, Spoke};
    ///
    /// # async fn example(spoke: Spoke) -> Result<(), Box<dyn std::error::Error>> {
    /// let handlers = Handlers::new().on("created", |event| async move {
    ///     println!("{}", event.pid);
    ///     Ok(())
    /// });
    /// let subscriber = spoke.subscribe_with("orders", "*", handlers).await?;
    /// subscriber.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Spoke::subscribe`].
    pub async fn subscribe_with(
        &self,
        domain: &str,
        name: &str,
        handlers: Handlers,
    ) -> Result<Subscriber, SubscribeError> {
        Ok(self.subscribe(domain, name).await?.handle(handlers))
    }
}
