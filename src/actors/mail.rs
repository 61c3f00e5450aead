//! How actors send each other messages: three verbs, each with its rule for a full mailbox, all of them measured.

use std::time::{Duration, Instant};

use actix::{Actor, Addr, Context, Handler, Message, dev::ToEnvelope};

use crate::metrics::Meter;

/// A message with its name for the metrics.
pub trait Mail: Message + Send + 'static {
    /// Its type, in the imperative or as a past fact.
    const NAME: &'static str;
}

/// A message under way, with the time at which it was sent.
#[derive(Debug)]
pub struct Envelope<M> {
    /// The message.
    pub body: M,
    /// When it entered the mailbox.
    pub sent: Instant,
}

impl<M: Message> Message for Envelope<M> {
    type Result = M::Result;
}

/// Why a message didn't get an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MailError {
    /// The mailbox is full; nothing was sent.
    #[error("the mailbox is full")]
    Full,
    /// The actor is gone, or ended before it answered.
    #[error("the actor is gone")]
    Gone,
    /// It didn't answer in time.
    #[error("the actor didn't answer in time")]
    Late,
}

/// An actor's address with its meter. Each clone is a sender of its own with one guaranteed place in the mailbox:
/// clone once per owner.
#[derive(Debug)]
pub struct Handle<A: Actor> {
    addr: Addr<A>,
    meter: Meter,
}

impl<A: Actor> Clone for Handle<A> {
    fn clone(&self) -> Self {
        Self { addr: self.addr.clone(), meter: self.meter.clone() }
    }
}

impl<A: Actor<Context = Context<A>>> Handle<A> {
    /// A handle for an actor that reports to `meter`.
    #[must_use]
    pub fn new(addr: Addr<A>, meter: Meter) -> Self {
        Self { addr, meter }
    }

    /// Sends and waits for the answer, up to a deadline.
    ///
    /// # Errors
    /// [`MailError::Gone`] or [`MailError::Late`].
    pub async fn ask<M>(&self, body: M, deadline: Duration) -> Result<M::Result, MailError>
    where
        M: Mail,
        M::Result: Send,
        A: Handler<Envelope<M>>,
        A::Context: ToEnvelope<A, Envelope<M>>,
    {
        self.meter.queued();
        let sent = self.addr.send(Envelope { body, sent: Instant::now() });
        match tokio::time::timeout(deadline, sent).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => {
                self.meter.unqueued();
                Err(MailError::Gone)
            }
            Err(_) => Err(MailError::Late),
        }
    }

    /// Sends and waits until the actor has taken it, however long that takes: for a task that has nothing else to do
    /// and ends with the actor.
    ///
    /// # Errors
    /// [`MailError::Gone`].
    pub async fn deliver<M>(&self, body: M) -> Result<M::Result, MailError>
    where
        M: Mail,
        M::Result: Send,
        A: Handler<Envelope<M>>,
        A::Context: ToEnvelope<A, Envelope<M>>,
    {
        self.meter.queued();
        self.addr.send(Envelope { body, sent: Instant::now() }).await.map_err(|_| {
            self.meter.unqueued();
            MailError::Gone
        })
    }

    /// Sends if there is room; a full mailbox is the caller's to handle.
    ///
    /// # Errors
    /// [`MailError::Full`] or [`MailError::Gone`]; nothing was sent.
    pub fn offer<M>(&self, body: M) -> Result<(), MailError>
    where
        M: Mail,
        M::Result: Send,
        A: Handler<Envelope<M>>,
        A::Context: ToEnvelope<A, Envelope<M>>,
    {
        self.meter.offering(|| self.addr.try_send(Envelope { body, sent: Instant::now() })).map_err(|error| {
            match error {
                actix::prelude::SendError::Full(_) => MailError::Full,
                actix::prelude::SendError::Closed(_) => MailError::Gone,
            }
        })
    }

    /// Sends past the mailbox's capacity: only for messages whose number is bounded by construction, such as
    /// one per link or one per commit under way. To an actor that is gone it is lost, which is counted.
    pub fn signal<M>(&self, body: M)
    where
        M: Mail,
        M::Result: Send,
        A: Handler<Envelope<M>>,
        A::Context: ToEnvelope<A, Envelope<M>>,
    {
        if !self.addr.connected() {
            self.meter.refused();
            return;
        }
        self.meter.queued();
        #[expect(clippy::disallowed_methods, reason = "this is the one place that may: see above")]
        self.addr.do_send(Envelope { body, sent: Instant::now() });
    }

    /// Whether the actor is there.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.addr.connected()
    }
}

/// Lets an actor with a `meter: Meter` field take these messages, which it has a [`Handler`] for, by [`Envelope`].
macro_rules! measured {
    ($actor:ty: $($message:ty),+ $(,)?) => {$(
        impl actix::Handler<$crate::actors::mail::Envelope<$message>> for $actor {
            type Result = <$actor as actix::Handler<$message>>::Result;

            fn handle(
                &mut self,
                mail: $crate::actors::mail::Envelope<$message>,
                ctx: &mut Self::Context,
            ) -> Self::Result {
                let began = std::time::Instant::now();
                self.meter.started(mail.sent);
                let result = actix::Handler::<$message>::handle(self, mail.body, ctx);
                self.meter.handled(<$message as $crate::actors::mail::Mail>::NAME, began.elapsed());
                result
            }
        }
    )+};
}
pub(crate) use measured;

/// A message type with its result and its name.
macro_rules! mail {
    ($name:ty => $result:ty) => {
        impl actix::Message for $name {
            type Result = $result;
        }
        impl $crate::actors::mail::Mail for $name {
            const NAME: &'static str = stringify!($name);
        }
    };
}
pub(crate) use mail;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{ActorKind, Metrics};

    #[derive(Debug)]
    struct Note;
    mail!(Note => ());

    struct Sink {
        meter: Meter,
    }

    measured!(Sink: Note);

    impl Actor for Sink {
        type Context = Context<Self>;
    }

    impl Handler<Note> for Sink {
        type Result = ();

        fn handle(&mut self, _: Note, _: &mut Self::Context) {}
    }

    #[test]
    fn a_mailbox_has_the_capacity_that_it_was_given_and_a_place_for_each_other_handle() {
        actix::System::new().block_on(async {
            let meter = Metrics::new().meter(ActorKind::Monitor);
            let addr = Sink::create(|ctx| {
                ctx.set_mailbox_capacity(4);
                Sink { meter: meter.clone() }
            });
            let handle = Handle::new(addr, meter);
            // Nothing is taken out before this task waits.
            for _ in 0..4 {
                assert_eq!(handle.offer(Note), Ok(()));
            }
            assert_eq!(handle.offer(Note), Err(MailError::Full));
            let other = handle.clone();
            assert_eq!(other.offer(Note), Ok(()));
            assert_eq!(other.offer(Note), Err(MailError::Full));
            assert_eq!(handle.ask(Note, Duration::from_secs(5)).await, Ok(()), "who asks waits for a place");
            assert_eq!(handle.offer(Note), Ok(()));
        });
    }
}
