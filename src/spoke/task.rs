//! The task that owns the socket: it moves bytes between the link and the session, and gets the next link.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{
    Drained, Status,
    command::{Command, Remark, closed},
    dial::{Dialer, Io, Link, NoLink, ends_the_spoke},
    pulse::{Beat, Pulse},
    session::{Heard, Session},
};
use crate::{
    event::{Fault, Retry, code},
    wire::{Reader, RecordFault, Reply},
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
    pub(super) remarks: mpsc::UnboundedReceiver<Remark>,
    pub(super) status: watch::Sender<Status>,
    pub(super) close_deadline: Duration,
    /// Why the spoke ended, for its handles.
    pub(super) ended: Arc<OnceLock<Fault>>,
    pub(super) closing: Option<Closing>,
    /// Whether any handle is left to command.
    pub(super) orphaned: bool,
}

pub(super) struct Closing {
    by: Instant,
    callers: Vec<oneshot::Sender<Drained>>,
}

/// Why a link isn't served any more.
enum End {
    /// Get another one, after this wait if the hub asked for one.
    Lost { fault: Fault, wait: Option<Duration> },
    /// The spoke ends, for this reason.
    Final(Fault),
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
    pub(super) async fn run(mut self, mut dialer: Dialer, first: Link) {
        let mut next = Ok(first);
        let reason = loop {
            let link = match next {
                Ok(link) => link,
                Err(reason) => break reason,
            };
            let since = Instant::now();
            tracing::info!(hub.id = link.welcome.hub, "the link is up");
            let mut socket = self.begin(link, since);
            match self.serve(&mut dialer, &mut socket).await {
                End::Final(reason) => {
                    if self.closing.is_some() {
                        self.leave(socket).await;
                    }
                    break reason;
                }
                End::Lost { fault, wait } => {
                    tracing::warn!(
                        hub.id = socket.hub,
                        code = fault.code,
                        "the link is lost: {}",
                        fault.message
                    );
                    // Closed before another one is sought: the hub shouldn't hold two links of this spoke.
                    drop(socket);
                    self.session.link_down(&fault);
                    dialer.lost(since, wait, Instant::now());
                }
            }
            next = self.reconnect(&mut dialer).await;
        };
        self.end(&reason);
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

    async fn serve(&mut self, dialer: &mut Dialer, socket: &mut Socket) -> End {
        // Records may have come with `welcome`.
        if let Err(end) = self.take_records(dialer, socket) {
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
            self.report();
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
                    if let Err(end) = self.took(read, dialer, socket) {
                        return end;
                    }
                }
                wrote = write(output, out), if waits => match wrote {
                    Ok(flushed) => socket.unflushed = !flushed,
                    Err(error) => return self.last_words(dialer, socket, &error).await,
                },
                command = self.commands.recv(), if !self.orphaned && !full => {
                    self.take_commands(command);
                }
                Some(remark) = self.remarks.recv() => self.take_remarks(remark),
                () = &mut timer => {
                    if socket.pulse.beat(Instant::now()) == Beat::Dead
                        && let Err(end) = self.revive(dialer, socket).await
                    {
                        return end;
                    }
                }
            }
        }
    }

    /// The end of one read.
    fn took(&mut self, read: io::Result<usize>, dialer: &mut Dialer, socket: &mut Socket) -> Result<(), End> {
        match read {
            Ok(0) => Err(broken(&socket.hub, &io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {
                socket.pulse.heard(Instant::now());
                self.take_records(dialer, socket)
            }
            Err(error) => Err(broken(&socket.hub, &error)),
        }
    }

    /// Nothing was heard for too long. If this program was itself held up, something is there to read.
    async fn revive(&mut self, dialer: &mut Dialer, socket: &mut Socket) -> Result<(), End> {
        match timeout(Duration::ZERO, socket.input.read_buf(socket.reader.spare())).await {
            Ok(read) => self.took(read, dialer, socket),
            Err(_) => {
                let silence = socket.pulse.silence().as_secs_f64();
                let text = format!("nothing was heard from hub {} for {silence:.1} s", socket.hub);
                Err(End::Lost { fault: lost(code::LINK_SILENT, text), wait: None })
            }
        }
    }

    /// Nothing can be written any more, but answers and the reason may be there to read.
    async fn last_words(&mut self, dialer: &mut Dialer, socket: &mut Socket, error: &io::Error) -> End {
        let by = Instant::now() + LAST_WORDS;
        while let Ok(read) = timeout_at(by, socket.input.read_buf(socket.reader.spare())).await {
            match self.took(read, dialer, socket) {
                Ok(()) => {}
                Err(End::Lost { fault, wait: None }) if fault.code == code::LINK_LOST => break,
                Err(end) => return end,
            }
        }
        broken(&socket.hub, error)
    }

    /// Waits for another link; commands are taken meanwhile. The error is why there won't be one.
    async fn reconnect(&mut self, dialer: &mut Dialer) -> Result<Link, Fault> {
        let dialing = dialer.link(None);
        tokio::pin!(dialing);
        loop {
            let now = Instant::now();
            self.session.expire(now);
            self.report();
            if let Some(closing) = &self.closing
                && (self.session.is_drained() || now >= closing.by)
            {
                return Err(closed());
            }
            let due = [self.session.next_due(), self.closing.as_ref().map(|closing| closing.by)];
            let due = due.into_iter().flatten().fold(now + FAR, Instant::min);
            tokio::select! {
                link = &mut dialing => return link.map_err(|end| match end {
                    NoLink::Refused(fault) => fault,
                    NoLink::Late => closed(),
                }),
                command = self.commands.recv(), if !self.orphaned => self.take_commands(command),
                Some(remark) = self.remarks.recv() => self.take_remarks(remark),
                () = sleep_until(due) => {}
            }
        }
    }

    fn take_records(&mut self, dialer: &mut Dialer, socket: &mut Socket) -> Result<(), End> {
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
                Ok(Heard::Hub(hub)) => dialer.learn(hub),
                Ok(Heard::Bye(fault)) => return Err(goodbye(fault)),
                Err(RecordFault::UnknownVerb { verb }) => {
                    tracing::debug!(verb, "a record of a newer hub is skipped")
                }
                Err(error) => tracing::warn!(hub.id = socket.hub, %error, "a record of the hub is skipped"),
            }
        }
    }

    fn take_commands(&mut self, first: Option<Command>) {
        let Some(first) = first else {
            // Every handle is gone: what they left behind is brought to its end.
            self.orphaned = true;
            self.begin_close(None);
            return;
        };
        let now = Instant::now();
        self.take_command(first, now);
        for _ in 1..TURN {
            match self.commands.try_recv() {
                Ok(command) => self.take_command(command, now),
                Err(_) => break,
            }
        }
    }

    fn take_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::Close { answer } => self.begin_close(Some(answer)),
            command => self.session.command(command, now),
        }
    }

    fn take_remarks(&mut self, first: Remark) {
        self.session.remark(first);
        for _ in 1..TURN {
            match self.remarks.try_recv() {
                Ok(remark) => self.session.remark(remark),
                Err(_) => break,
            }
        }
    }

    fn begin_close(&mut self, caller: Option<oneshot::Sender<Drained>>) {
        let by = Instant::now() + self.close_deadline;
        let closing = self.closing.get_or_insert_with(|| Closing { by, callers: Vec::new() });
        closing.callers.extend(caller);
        self.session.begin_close();
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

    /// Everybody who waits is told why; from here on handles say the same.
    fn end(mut self, reason: &Fault) {
        if reason.code != code::CLOSED {
            tracing::error!(code = reason.code, "the spoke is closed: {}", reason.message);
        }
        // Set once, here.
        let _ = self.ended.set(reason.clone());
        self.commands.close();
        let (drained, now) = (self.session.close(reason), Instant::now());
        let mut callers = self.closing.map(|closing| closing.callers).unwrap_or_default();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Close { answer } => callers.push(answer),
                command => self.session.command(command, now),
            }
        }
        self.status.send_replace(Status { closed: true, ..self.session.status() });
        for caller in callers {
            // A caller that has gone away needs no answer.
            let _ = caller.send(drained);
        }
    }

    fn report(&self) {
        let now = self.session.status();
        self.status.send_if_modified(|status| {
            let changed = *status != now;
            if changed {
                *status = now;
            }
            changed
        });
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
        Retry::Never if ends_the_spoke(&fault) => End::Final(fault),
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
