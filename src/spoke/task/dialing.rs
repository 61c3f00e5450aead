//! Getting the next link, while commands are taken.

use tokio::time::{Instant, sleep_until};

use super::{FAR, Over, Task, lost};
use crate::{
    event::{Fault, code},
    spoke::{
        command::closed,
        dial::{Dialer, Link, NoLink},
    },
};

impl Task {
    /// The next link that is this task's to serve.
    pub(super) async fn connect(&mut self, dialer: &mut Dialer) -> Result<Link, Over> {
        loop {
            let link = self.reconnect(dialer).await?;
            if self.crew.admit(&link.welcome) {
                return Ok(link);
            }
            if !dialer.mislead(Instant::now()) {
                let hub = &link.welcome.hub;
                return Err(Over::Link(lost(
                    code::LINK_LOST,
                    format!("there is a link to the hub {hub} already"),
                )));
            }
        }
    }

    /// Waits for another link; commands are taken meanwhile. The error is why there won't be one.
    async fn reconnect(&mut self, dialer: &mut Dialer) -> Result<Link, Over> {
        loop {
            self.reach.drain(..).for_each(|hub| dialer.reach(hub));
            match self.dial(dialer).await? {
                Ok(link) => return Ok(link),
                // There is one more address.
                Err(None) => {}
                Err(Some(refusal)) if self.crew.refused(&refusal) => return Err(Over::Spoke(refusal)),
                // Other hubs take this spoke.
                Err(Some(_)) => dialer.pause(Instant::now()),
            }
        }
    }

    /// One round of that, until a hub refuses for good or another address is known.
    async fn dial(&mut self, dialer: &mut Dialer) -> Result<Result<Link, Option<Fault>>, Over> {
        let dialing = dialer.link(None);
        tokio::pin!(dialing);
        loop {
            let now = Instant::now();
            self.session.expire(now);
            self.hand_over();
            self.report();
            if let Some(fault) = self.end.take() {
                return Err(Over::Spoke(fault));
            }
            if let Some(closing) = &self.closing
                && (self.session.is_drained() || now >= closing.by)
            {
                return Err(Over::Spoke(closed()));
            }
            if !self.reach.is_empty() {
                return Ok(Err(None));
            }
            let given_up = match self.crew.gives_up(|| self.session.standing()) {
                Ok(()) => {
                    let text = "the hub didn't answer any more, and no other one named it".to_owned();
                    return Err(Over::Link(lost(code::LINK_LOST, text)));
                }
                Err(again) => again,
            };
            let due = [self.session.next_due(), self.closing.as_ref().map(|closing| closing.by), given_up];
            let due = due.into_iter().flatten().fold(now + FAR, Instant::min);
            tokio::select! {
                link = &mut dialing => return Ok(link.map_err(|end| match end {
                    NoLink::Refused(fault) => Some(fault),
                    NoLink::Late => None,
                })),
                command = self.commands.recv(), if !self.orphaned => self.take_commands(command),
                Some(command) = self.posted.recv() => self.take_posted(command),
                Some(remark) = self.remarks.recv() => self.take_remarks(remark),
                () = sleep_until(due) => {}
            }
        }
    }
}
