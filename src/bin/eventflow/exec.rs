//! Runs a command for one event: JSON on its standard input, the verdict by its exit code.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use eventflow::event::Event;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
};

use crate::{
    legible::Legible,
    output::{json, pass_on},
};

/// How much of the end of standard error becomes the reason of a failure.
const TAIL: usize = 2_048;
/// The exit code by which a command says that no further attempt makes sense: qmail's for a hard error, and Grid
/// Engine's for a job that is not to be tried again.
const GIVE_UP: i32 = 100;
/// How long standard error is read on after the command has ended: something that it left behind may hold it.
const LINGER: Duration = Duration::from_millis(500);

/// What a command made of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Exit code 0.
    Done,
    /// Any other end.
    Failed {
        /// The exit code or the signal.
        how: String,
        /// The end of its standard error.
        said: String,
        /// No further attempt makes sense: exit code 100.
        gives_up: bool,
    },
    /// It couldn't be run at all: that says nothing about the event.
    Unrunnable(String),
}

/// A command's end and its last words, as the reason for the record.
pub(crate) fn reason(how: &str, said: &str) -> String {
    if said.is_empty() { how.to_owned() } else { format!("{how}: {said}") }
}

/// An event in a consumer's hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) event: &'a Event,
    pub(crate) seq: u64,
    pub(crate) attempt: u32,
}

impl Job<'_> {
    /// The variables that a command gets; an absent `rid` is empty, lest it be inherited.
    fn variables(&self) -> [(&'static str, String); 8] {
        let Self { event, seq, attempt } = self;
        [
            ("EVENTFLOW_EVENT_ID", event.id.to_string()),
            ("EVENTFLOW_EVENT_TIMESTAMP", event.timestamp.to_string()),
            ("EVENTFLOW_EVENT_DOMAIN", event.domain.to_string()),
            ("EVENTFLOW_EVENT_NAME", event.name.to_string()),
            ("EVENTFLOW_EVENT_PID", event.pid.to_string()),
            ("EVENTFLOW_EVENT_RID", event.rid.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("EVENTFLOW_EVENT_SEQ", seq.to_string()),
            ("EVENTFLOW_EVENT_ATTEMPT", attempt.to_string()),
        ]
    }
}

/// Runs the command by `sh -c`. Dropping the future kills it, with all that it has started.
pub(crate) async fn run(command: &str, job: Job<'_>) -> Verdict {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).envs(job.variables());
    shell.stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A group of its own: Ctrl-C on the terminal is for us, and we let it finish the event in hand.
    #[cfg(unix)]
    shell.process_group(0);
    let mut child = match shell.spawn() {
        Ok(child) => child,
        Err(error) => return Verdict::Unrunnable(format!("the shell can't be run: {error}")),
    };
    let mut group = Group::of(&child);
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());

    let input = json(&Legible(job.event)) + "\n";
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A command needn't read what it gets.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let mut tail = Tail::default();
    let ended = {
        let read = async {
            if let Some(stderr) = stderr {
                tail.read(stderr).await;
            }
        };
        tokio::pin!(feed, read);
        let (mut fed, mut all_read) = (false, false);
        let ended = loop {
            tokio::select! {
                ended = child.wait() => {
                    // Its number may be somebody else's from here on, and what it left behind is left alone.
                    group.disband();
                    break ended;
                }
                () = &mut feed, if !fed => fed = true,
                () = &mut read, if !all_read => all_read = true,
            }
        };
        if !all_read {
            // What is lost after that time was not this command's last word.
            let _ = tokio::time::timeout(LINGER, read).await;
        }
        ended
    };
    verdict(ended, tail.text())
}

fn verdict(ended: io::Result<ExitStatus>, said: String) -> Verdict {
    let status = match ended {
        Ok(status) if status.success() => return Verdict::Done,
        Ok(status) => status,
        Err(error) => {
            let how = format!("the command's end is not known: {error}");
            return Verdict::Failed { how, said, gives_up: false };
        }
    };
    match status.code() {
        Some(code @ (126 | 127)) => {
            Verdict::Unrunnable(reason(&format!("the command can't be run ({code})"), &said))
        }
        Some(code) => Verdict::Failed { how: format!("exit code {code}"), said, gives_up: code == GIVE_UP },
        // "signal: 9 (SIGKILL)"
        None => Verdict::Failed { how: status.to_string(), said, gives_up: false },
    }
}

/// The process group of a running command, killed when dropped: a shell's own end leaves what it has started.
#[cfg(unix)]
struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Self(number.and_then(rustix::process::Pid::from_raw))
    }

    fn disband(&mut self) {
        self.0 = None;
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails only if nobody of it is left.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Elsewhere only the command itself can be killed.
#[cfg(not(unix))]
struct Group;

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self
    }

    fn disband(&mut self) {}
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    /// Reads to the end, and shows all of it on our own standard error.
    async fn read(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = [0; 4_096];
        while let Ok(length @ 1..) = from.read(&mut chunk).await {
            let part = &chunk[..length];
            pass_on(part);
            self.0.extend_from_slice(part);
            let surplus = self.0.len().saturating_sub(TAIL);
            self.0.drain(..surplus);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::output::tests::event;

    async fn verdict_of(command: &str, event: &Event) -> Verdict {
        run(command, Job { event, seq: 7, attempt: 2 }).await
    }

    fn failed(how: &str, said: &str) -> Verdict {
        Verdict::Failed { how: how.to_owned(), said: said.to_owned(), gives_up: false }
    }

    #[tokio::test]
    async fn exit_codes_are_verdicts() {
        let event = event(None, "{}");
        assert_eq!(verdict_of("exit 0", &event).await, Verdict::Done);
        assert_eq!(verdict_of("exit 3", &event).await, failed("exit code 3", ""));
        assert_eq!(
            verdict_of("echo '  no such order' >&2; exit 1", &event).await,
            failed("exit code 1", "no such order")
        );
        assert!(
            matches!(verdict_of("kill -9 $$", &event).await, Verdict::Failed { how, .. } if how.contains("signal: 9"))
        );
        assert!(matches!(verdict_of("no-such-command-here", &event).await, Verdict::Unrunnable(_)));
        assert!(matches!(verdict_of("exit 100", &event).await, Verdict::Failed { gives_up: true, .. }));
    }

    #[tokio::test]
    async fn a_command_gets_the_event_twice() {
        let event = event(Some("id-0"), r#"{"total":12}"#);
        let checks = [
            r#"read -r line; test "$line" = '{"id":"id-1","timestamp":1700000000123,"domain":"orders","name":"created","pid":"order-1","rid":"id-0","data":{"total":12}}'"#,
            r#"test "$EVENTFLOW_EVENT_ID $EVENTFLOW_EVENT_TIMESTAMP $EVENTFLOW_EVENT_DOMAIN $EVENTFLOW_EVENT_NAME" = "id-1 1700000000123 orders created""#,
            r#"test "$EVENTFLOW_EVENT_PID $EVENTFLOW_EVENT_RID $EVENTFLOW_EVENT_SEQ $EVENTFLOW_EVENT_ATTEMPT" = "order-1 id-0 7 2""#,
        ];
        for check in checks {
            assert_eq!(verdict_of(check, &event).await, Verdict::Done, "{check}");
        }
    }

    #[tokio::test]
    async fn neither_unread_input_nor_much_output_blocks() {
        let big = event(None, &format!("\"{}\"", "x".repeat(300_000)));
        assert_eq!(verdict_of("exit 0", &big).await, Verdict::Done);
        let loud = "head -c 200000 /dev/zero | tr '\\0' x >&2; cat >/dev/null; echo end >&2; exit 1";
        let Verdict::Failed { said, .. } = verdict_of(loud, &big).await else { panic!("it fails") };
        assert!(said.ends_with("xend") && said.len() <= TAIL, "{}", said.len());
    }

    #[tokio::test]
    async fn what_a_command_leaves_behind_is_not_waited_for() {
        let event = event(None, "{}");
        let waited = tokio::time::timeout(Duration::from_secs(20), verdict_of("sleep 60 & exit 4", &event));
        assert_eq!(waited.await.unwrap(), failed("exit code 4", ""));
    }
}
