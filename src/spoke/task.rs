//! The task that owns the socket: it moves bytes between the link and the session, and gets the next link.

mod commands;
mod dialing;

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{
    Drained, Status,
    command::{Command, Remark, closed},
    dial::{Dialer, Io, Link, ends_the_spoke},
    fleet::Crew,
    pulse::{Beat, Pulse},
    session::{Heard, Session},
};
use crate::{
    event::{Fault, Retry, code},
    wire::{HubAddress, Reader, RecordFault, Reply},
};

/// Bytes that are encoded before the socket takes the ones before them.
const OUT_BYTES: usize = 256 << 10;
/// Commands taken in one turn, before the socket gets its turn.
const TURN: usize = 256;
/// How long a hub may take to close its side once all is answered.
const LEAVE: Duration = Duration::from_secs(2);
/// How long the last words of a hub are read once nothing can be written.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// A timer for when nothing is due.
const FAR: Duration = Duration::from_secs(3600);

pub(super) struct Task {
    pub(super) session: Session,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) posted: mpsc::UnboundedReceiver<Command>,
    pub(super) remarks: mpsc::UnboundedReceiver<Remark>,
    /// The links beside this one.
    pub(super) crew: Crew,
    /// How long the end takes at most if nobody says so.
    pub(super) close_deadline: Duration,
    /// Why the spoke ended, for its handles.
    pub(super) ended: Arc<OnceLock<Fault>>,
    pub(super) closing: Option<Closing>,
    /// Whether any handle is left to command.
    pub(super) orphaned: bool,
    /// Further addresses of this hub, to be dialed next time.
    pub(super) reach: Vec<HubAddress>,
    /// Why the spoke ends now.
    pub(super) end: Option<Fault>,
    /// What was told last of how the link stands.
    pub(super) reported: Option<Status>,
}

pub(super) struct Closing {
    by: Instant,
    callers: Vec<oneshot::Sender<Drained>>,
}

/// Why a link isn't served any more.
enum End {
    /// Get another one, after this wait if the hub asked for one.
    Lost { fault: Fault, wait: Option<Duration> },
    /// The hub won't have this spoke any more, for this reason.
    Refused(Fault),
    /// The spoke ends, for this reason.
    Final(Fault),
}

/// Why there is no next link.
enum Over {
    /// The spoke has ended.
    Spoke(Fault),
    /// Only this link: its hub is gone, or has another one.
    Link(Fault),
}

struct Socket {
    input: ReadHalf<Box<dyn Io>>,
    output: WriteHalf<Box<dyn Io>>,
    reader: Reader,
    pulse: Pulse,
    /// Encoded, not written yet.
    out: BytesMut,
    /// Written, not flushed yet.
    unflushed: bool,
    hub: String,
}

impl Task {
    /// Serves one link after the other; the first one may be there, and known as up.
    pub(super) async fn run(mut self, mut dialer: Dialer, first: Option<Link>) {
        let mut next = match first {
            Some(link) => Ok(link),
            None => self.connect(&mut dialer).await,
        };
        let reason = loop {
            let link = match next {
                Ok(link) => link,
                Err(reason) => break reason,
            };
            let since = Instant::now();
            tracing::info!(hub.id = link.welcome.hub, "the link is up");
            let mut socket = self.begin(link, since);
            let (fault, wait) = match self.serve(&mut socket).await {
                End::Final(reason) => {
                    if self.closing.is_some() {
                        self.leave(socket).await;
                    }
                    break Over::Spoke(reason);
                }
                End::Refused(reason) if self.crew.refused(&reason) => break Over::Spoke(reason),
                End::Refused(fault) => (fault, None),
                End::Lost { fault, wait } => (fault, wait),
            };
            tracing::warn!(hub.id = socket.hub, code = fault.code, "the link is lost: {}", fault.message);
            // Closed before another one is sought: the hub shouldn't hold two links of this spoke.
            drop(socket);
            self.session.link_down(&fault);
            self.hand_over();
            dialer.lost(since, wait, Instant::now());
            next = self.connect(&mut dialer).await;
        };
        self.end(reason);
    }

    fn begin(&mut self, link: Link, now: Instant) -> Socket {
        let Link { io, reader, welcome } = link;
        let (input, output) = tokio::io::split(io);
        self.session.link_up(&welcome);
        Socket {
            input,
            output,
            reader,
            pulse: Pulse::new(&welcome.limits, now),
            out: BytesMut::new(),
            unflushed: false,
            hub: welcome.hub,
        }
    }

    async fn serve(&mut self, socket: &mut Socket) -> End {
        // Records may have come with `welcome`.
        if let Err(end) = self.take_records(socket) {
            return end;
        }
        let timer = sleep_until(socket.pulse.next());
        tokio::pin!(timer);
        loop {
            let now = Instant::now();
            self.session.expire(now);
            if socket.pulse.beat(now) == Beat::Ping {
                self.session.ping();
                // Said once, even if the socket takes nothing for a while.
                socket.pulse.sent(now);
            }
            if self.session.fill(&mut socket.out, OUT_BYTES, now) {
                socket.pulse.sent(now);
            }
            if self.session.is_draining() {
                self.hand_over();
            }
            self.report();
            if let Some(fault) = self.end.take() {
                return End::Final(fault);
            }
            if let Some(closing) = &self.closing {
                let done = self.session.is_drained() && socket.out.is_empty() && !socket.unflushed;
                if done || now >= closing.by {
                    return End::Final(closed());
                }
            }
            let due = [self.session.next_due(), self.closing.as_ref().map(|closing| closing.by)];
            let due = due.into_iter().flatten().fold(socket.pulse.next(), Instant::min);
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            let Socket { input, output, reader, out, unflushed, .. } = &mut *socket;
            let (waits, full) = (!out.is_empty() || *unflushed, out.len() >= OUT_BYTES);
            tokio::select! {
                read = input.read_buf(reader.spare()) => {
                    if let Err(end) = self.took(read, socket) {
                        return end;
                    }
                }
                wrote = write(output, out), if waits => match wrote {
                    Ok(flushed) => socket.unflushed = !flushed,
                    Err(error) => return self.last_words(socket, &error).await,
                },
                command = self.commands.recv(), if !self.orphaned && !full => {
                    self.take_commands(command);
                }
                Some(command) = self.posted.recv(), if !full => self.take_posted(command),
                Some(remark) = self.remarks.recv() => self.take_remarks(remark),
                () = &mut timer => {
                    if socket.pulse.beat(Instant::now()) == Beat::Dead
                        && let Err(end) = self.revive(socket).await
                    {
                        return end;
                    }
                }
            }
        }
    }

    /// The end of one read.
    fn took(&mut self, read: io::Result<usize>, socket: &mut Socket) -> Result<(), End> {
        match read {
            Ok(0) => Err(broken(&socket.hub, &io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {
                socket.pulse.heard(Instant::now());
                self.take_records(socket)
            }
            Err(error) => Err(broken(&socket.hub, &error)),
        }
    }

    /// Nothing was heard for too long. If this program was itself held up, something is there to read.
    async fn revive(&mut self, socket: &mut Socket) -> Result<(), End> {
        match timeout(Duration::ZERO, socket.input.read_buf(socket.reader.spare())).await {
            Ok(read) => self.took(read, socket),
            Err(_) => {
                let silence = socket.pulse.silence().as_secs_f64();
                let text = format!("nothing was heard from hub {} for {silence:.1} s", socket.hub);
                Err(End::Lost { fault: lost(code::LINK_SILENT, text), wait: None })
            }
        }
    }

    /// Nothing can be written any more, but answers and the reason may be there to read.
    async fn last_words(&mut self, socket: &mut Socket, error: &io::Error) -> End {
        let by = Instant::now() + LAST_WORDS;
        while let Ok(read) = timeout_at(by, socket.input.read_buf(socket.reader.spare())).await {
            match self.took(read, socket) {
                Ok(()) => {}
                Err(End::Lost { fault, wait: None }) if fault.code == code::LINK_LOST => break,
                Err(end) => return end,
            }
        }
        broken(&socket.hub, error)
    }

    fn take_records(&mut self, socket: &mut Socket) -> Result<(), End> {
        let now = Instant::now();
        loop {
            let record = match socket.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let text = format!("hub {} sent what is no record: {error}", socket.hub);
                    return Err(End::Lost { fault: lost(error.code(), text), wait: None });
                }
            };
            match Reply::parse(&record).map(|reply| self.session.reply(reply, now)) {
                Ok(Heard::Taken) => {}
                Ok(Heard::Hub(hub)) => self.crew.learn(hub),
                Ok(Heard::Bye(fault)) => return Err(goodbye(fault)),
                Err(RecordFault::UnknownVerb { verb }) => {
                    tracing::debug!(verb, "a record of a newer hub is skipped")
                }
                Err(error) => tracing::warn!(hub.id = socket.hub, %error, "a record of the hub is skipped"),
            }
        }
    }

    /// Shuts the link down and reads what the hub still says, to its end.
    async fn leave(&mut self, mut socket: Socket) {
        let now = Instant::now();
        // Everything is answered: a hub that doesn't close its side isn't worth the rest of the deadline.
        let by = self.closing.as_ref().map_or(now, |closing| closing.by);
        let by = by.clamp(now + Duration::from_millis(100), now + LEAVE);
        let leaving = async {
            socket.output.shutdown().await?;
            let mut rest = BytesMut::with_capacity(4096);
            while socket.input.read_buf(&mut rest).await? > 0 {
                rest.clear();
            }
            io::Result::Ok(())
        };
        match timeout_at(by, leaving).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(hub.id = socket.hub, %error, "the link ended while it was shut down")
            }
            Err(_) => tracing::debug!(hub.id = socket.hub, "the hub didn't close the link in time"),
        }
    }

    /// Everybody who waits is told why; from here on handles say the same, if the spoke has ended.
    fn end(mut self, over: Over) {
        let (reason, is_end) = match over {
            Over::Spoke(reason) => (reason, true),
            Over::Link(reason) => (reason, false),
        };
        if is_end {
            if reason.code != code::CLOSED {
                tracing::error!(code = reason.code, "the spoke is closed: {}", reason.message);
            }
            // All of them say the same.
            let _ = self.ended.set(reason.clone());
        } else {
            tracing::info!(code = reason.code, "a link is given up: {}", reason.message);
            self.hand_over();
            self.session.abandon();
        }
        self.crew.leave();
        self.commands.close();
        self.posted.close();
        let (drained, now) = (self.session.close(&reason), Instant::now());
        let mut callers = self.closing.take().map(|closing| closing.callers).unwrap_or_default();
        let left = std::iter::from_fn(|| self.posted.try_recv().or_else(|_| self.commands.try_recv()).ok());
        for command in left {
            match command {
                Command::Close { answer, .. } => callers.push(answer),
                command => self.session.command(command, now),
            }
        }
        self.report();
        self.crew.ended(is_end);
        for caller in callers {
            // A caller that has gone away needs no answer.
            let _ = caller.send(drained);
        }
    }

    fn report(&mut self) {
        let now = self.session.status();
        if self.reported.as_ref() != Some(&now) {
            self.crew.report(now.clone());
            self.reported = Some(now);
        }
    }
}

/// However it ended: nobody takes it for alive.
impl Drop for Task {
    fn drop(&mut self) {
        self.crew.leave();
        self.crew.ended(true);
    }
}

/// Writes some, or flushes if all is written. True: it is flushed. Safe to cancel.
async fn write(output: &mut WriteHalf<Box<dyn Io>>, out: &mut BytesMut) -> io::Result<bool> {
    if out.is_empty() {
        output.flush().await?;
        return Ok(true);
    }
    output.write_buf(out).await?;
    Ok(false)
}

/// The hub's last word decides whether another link makes sense.
fn goodbye(fault: Fault) -> End {
    match fault.retry {
        // The link's own certificate: it may have been renewed since. If not, the next dial says so.
        Retry::Never if fault.code == code::CERTIFICATE_REVOKED => End::Lost { fault, wait: None },
        Retry::Never if ends_the_spoke(&fault) => End::Refused(fault),
        Retry::Never => End::Lost { fault, wait: None },
        Retry::After(wait) => End::Lost { fault, wait: Some(wait) },
    }
}

fn lost(code: &str, text: String) -> Fault {
    Fault::retryable(code, text, Duration::ZERO)
}

fn broken(hub: &str, error: &io::Error) -> End {
    let text = match error.kind() {
        // With or without TLS's own goodbye, which a killed process doesn't say.
        io::ErrorKind::UnexpectedEof => "the hub ended the link without a goodbye".to_owned(),
        _ => format!("the link to hub {hub} broke ({error})"),
    };
    End::Lost { fault: lost(code::LINK_LOST, text), wait: None }
}
