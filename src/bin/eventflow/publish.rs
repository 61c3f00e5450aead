//! `eventflow publish`: one event, or a stream of them.

use std::{
    collections::VecDeque,
    io::{self, Read as _},
    time::Instant,
};

use eventflow::{
    event::{Data, EventId, Fault, code},
    spoke::{Pending, PublishError, Spoke, SpokeConfig},
    wire::Published,
};
use tokio::sync::mpsc;

use crate::{
    arguments::Publish,
    connect,
    failure::{CUT_SHORT, Failure, sentence, with_code},
    ndjson::{self, Input},
    output::{self, Printer, Style},
    stop::Stop,
};

/// Lines read ahead of the link.
const LINES_AHEAD: usize = 64;
/// Publishes whose answer is awaited at most; the spoke bounds their bytes.
const IN_FLIGHT: usize = 4_096;

/// Publishes what the arguments say.
pub(crate) async fn run(
    arguments: Publish,
    mut config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.publish_deadline = arguments.timeout;
    if arguments.is_stream() {
        stream(config, printer, stop).await
    } else {
        one(arguments, config, printer, stop).await
    }
}

async fn one(
    arguments: Publish,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    // Checked before the link is made: what is wrong here needs no hub to say so.
    let data = arguments.data.as_deref().map(data).transpose()?;
    let Publish { domain, name, pid, id, rid, timeout, .. } = arguments;
    let id = EventId::parse(id.unwrap_or_else(new_id)).map_err(|error| refused(error.into()))?;
    let name = name.unwrap_or_default();
    let event =
        ndjson::event(&domain, &name, pid, Some(id.to_string()), rid, data, new_id).map_err(refused)?;

    let began = Instant::now();
    let spoke = connect::connect(config, &stop).await?;
    let left = timeout.saturating_sub(began.elapsed());
    let done = tokio::select! {
        done = spoke.publish(event.deadline(left)) => done?,
        // The event may be stored or not, so the first signal waits for the answer.
        () = stop.forced() => return Err(CUT_SHORT),
    };
    spoke.close().await;
    printer.line(&published(&id, done, printer.style()))?;
    printer.flush()?;
    Ok(())
}

fn refused(fault: Fault) -> Failure {
    Failure::new(&fault.code, fault.message)
}

fn new_id() -> String {
    ulid::Ulid::new().to_string()
}

/// What became of one publish, for programs.
#[derive(serde::Serialize)]
struct Answer<'a> {
    id: &'a EventId,
    duplicate: bool,
    timestamp: i64,
    seq: u64,
}

/// What became of one publish.
fn published(id: &EventId, done: Published, style: Style) -> String {
    match style {
        Style::Json => {
            output::json(&Answer { id, duplicate: !done.fresh, timestamp: done.timestamp, seq: done.seq })
        }
        Style::People { .. } => {
            let word = if done.fresh { "published" } else { "was there already:" };
            format!("{word} {id} at {}", output::time(done.timestamp, &chrono::Local))
        }
    }
}

/// The payload: JSON text, `-` for standard input, `@FILE` for a file.
fn data(given: &str) -> Result<Data, Failure> {
    let text = match (given, given.strip_prefix('@')) {
        ("-", _) => read("standard input", io::stdin())?,
        (_, Some(path)) => {
            let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
            read(path, file)?
        }
        _ => given.to_owned(),
    };
    ndjson::payload(&text).map_err(|error| refused(error.into()))
}

fn read(name: &str, from: impl io::Read) -> Result<String, Failure> {
    let limit = ndjson::MAX_LINE as u64;
    let mut text = String::new();
    from.take(limit + 1).read_to_string(&mut text).map_err(|error| unreadable(name, &error))?;
    if text.len() as u64 > limit {
        let sentence = format!("{name} is longer than {limit} bytes: no hub takes an event of that size");
        return Err(Failure::new(code::EVENT_TOO_LARGE, sentence));
    }
    Ok(text)
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::new(code::INVALID_DATA, format!("the data can't be read from {name}: {error}"))
}

/// What became of a stream.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
struct Counts {
    published: u64,
    duplicate: u64,
    refused: u64,
}

impl Counts {
    fn line(&self, style: Style) -> String {
        let Self { published, duplicate, refused } = self;
        match style {
            Style::Json => output::json(self),
            Style::People { .. } => {
                format!("published {published}, there already {duplicate}, refused {refused}")
            }
        }
    }

    fn answered(&mut self, line: u64, answer: Result<Published, PublishError>) {
        match answer {
            Ok(Published { fresh: true, .. }) => self.published += 1,
            Ok(Published { fresh: false, .. }) => self.duplicate += 1,
            Err(error) => self.refused(line, &with_code(&sentence(&error), error.code())),
        }
    }

    fn refused(&mut self, line: u64, sentence: &str) {
        self.refused += 1;
        output::remark(&format!("line {line}: {sentence}"));
    }
}

async fn stream(config: SpokeConfig, mut printer: Printer, stop: Stop) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let mut counts = Counts::default();
    let ended = tokio::select! {
        ended = pump(&spoke, read_ahead(), &mut counts, &stop) => ended,
        () = stop.forced() => Err(CUT_SHORT),
    };
    if ended.is_ok() {
        spoke.close().await;
    }
    printer.line(&counts.line(printer.style()))?;
    printer.flush()?;
    ended?;
    if counts.refused > 0 { Err(Failure::Silent { exit: 1 }) } else { Ok(()) }
}

/// Publishes line after line and awaits the answers in the order of the lines.
async fn pump(
    spoke: &Spoke,
    mut lines: mpsc::Receiver<io::Result<Input>>,
    counts: &mut Counts,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut pending: VecDeque<(u64, Pending)> = VecDeque::new();
    let mut number = 0;
    let mut more = true;
    while more || !pending.is_empty() {
        tokio::select! {
            biased;
            (line, answer) = front(&mut pending), if !pending.is_empty() => {
                pending.pop_front();
                counts.answered(line, answer);
            }
            () = stop.requested(), if more => more = false,
            line = lines.recv(), if more && pending.len() < IN_FLIGHT => {
                let Some(line) = line else {
                    more = false;
                    continue;
                };
                number += 1;
                let event = match line? {
                    Input::Line(line) => {
                        let line = if number == 1 { ndjson::without_mark(&line) } else { &line };
                        if line.trim().is_empty() {
                            continue;
                        }
                        ndjson::parse(line, new_id)
                    }
                    Input::Bad(fault) => Err(fault),
                };
                match event {
                    Err(fault) => counts.refused(number, &fault.to_string()),
                    Ok(event) => match spoke.publish_later(event).await {
                        Ok(answer) => pending.push_back((number, answer)),
                        Err(error) => counts.answered(number, Err(error)),
                    },
                }
            }
        }
    }
    Ok(())
}

/// The answer to the oldest publish. Safe to cancel: the publish stays where it is.
async fn front(pending: &mut VecDeque<(u64, Pending)>) -> (u64, Result<Published, PublishError>) {
    match pending.front_mut() {
        Some((line, answer)) => (*line, answer.await),
        None => std::future::pending().await,
    }
}

/// Reads standard input on a thread of its own, which the end of the program doesn't wait for.
fn read_ahead() -> mpsc::Receiver<io::Result<Input>> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    std::thread::spawn(move || {
        let mut input = io::BufReader::with_capacity(256 << 10, io::stdin());
        while let Some(line) = ndjson::next_line(&mut input, ndjson::MAX_LINE).transpose() {
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_for_people_and_programs() {
        let counts = Counts { published: 253, duplicate: 1, refused: 3 };
        assert_eq!(counts.line(Style::Json), r#"{"published":253,"duplicate":1,"refused":3}"#);
        let people = Style::People { colours: false };
        assert_eq!(counts.line(people), "published 253, there already 1, refused 3");
    }

    #[test]
    fn answers_for_people_and_programs() {
        let id = EventId::parse("a").unwrap();
        let done = Published { fresh: true, timestamp: 5, seq: 7 };
        assert_eq!(
            published(&id, done, Style::Json),
            r#"{"id":"a","duplicate":false,"timestamp":5,"seq":7}"#
        );
        let again = Published { fresh: false, ..done };
        let people = Style::People { colours: false };
        assert!(published(&id, done, people).starts_with("published a at 19"));
        assert!(published(&id, again, people).starts_with("was there already: a at 19"));
    }

    #[test]
    fn data_comes_from_a_file_or_the_argument() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.json");
        std::fs::write(&path, "{\n  \"a\": 1\n}\n").unwrap();
        assert_eq!(data(&format!("@{}", path.display())).unwrap().as_str(), r#"{"a":1}"#);
        assert_eq!(data("[1]").unwrap().as_str(), "[1]");
        for wrong in ["@/nowhere", "{", "@"] {
            let Failure::Told { code, .. } = data(wrong).unwrap_err() else { panic!("it is to be told") };
            assert_eq!(code, code::INVALID_DATA, "{wrong}");
        }
    }
}
