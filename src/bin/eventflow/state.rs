//! `eventflow state`: the data of a log, composed.

use std::{io, time::Duration};

use clap::Args;
use eventflow::{
    event::{State, code},
    spoke::{Spoke, SpokeConfig, StateError},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    connect,
    failure::{CUT_SHORT, Failure},
    ndjson::{self, Input},
    output::{Printer, Style, json},
    parse,
    stop::Stop,
};

/// Print the state of a process: the data of its events, oldest first, composed to one object.
///
/// Objects merge member by member, arrays are put together without equal primitives, anything else is replaced by
/// the later value. Without any event it is {}, and the exit code is 3.
///
/// With `-` the events are read from standard input, one JSON object a line, as `eventflow log` prints them. Of each
/// only `data` counts. No lines make {}.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow state orders order-1")]
pub(crate) struct Arguments {
    /// The domain; `-`: read events from standard input
    #[arg(value_name = "DOMAIN|-")]
    pub(crate) domain: String,
    /// The process
    pub(crate) pid: Option<String>,
    /// How long to wait for each answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

impl Arguments {
    /// Whether events come from standard input, which needs no hub.
    pub(crate) fn is_stream(&self) -> bool {
        self.domain == "-"
    }
}

/// Reads the log and prints its state.
pub(crate) async fn run(
    arguments: Arguments,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Arguments { domain, pid, timeout } = arguments;
    let pid = pid.unwrap_or_default();
    config.request_deadline = timeout;
    let spoke = connect::connect(config, &stop).await?;
    let (state, events) = stop.unless_requested(compose(&spoke, &domain, &pid)).await?;
    spoke.close().await;
    print(state, &mut printer)?;
    if events > 0 {
        return Ok(());
    }
    let sentence = format!("no event of the process {pid:?} is in the domain {domain:?}");
    Err(Failure::new(code::EVENT_NOT_FOUND, sentence))
}

/// As the library's `state`, and how many events there were: an unknown process is told apart from one without data.
async fn compose(spoke: &Spoke, domain: &str, pid: &str) -> Result<(State, u64), StateError> {
    let (mut state, mut events) = (State::default(), 0);
    let mut log = spoke.log(domain, pid);
    while let Some(page) = log.next_page().await? {
        for event in page {
            state.apply(&event.data).map_err(|source| StateError::Data { id: event.id, source })?;
            events += 1;
        }
    }
    Ok((state, events))
}

/// Composes what standard input brings.
pub(crate) async fn stream(mut printer: Printer, stop: Stop) -> Result<(), Failure> {
    // In a thread of its own, which the end of the program doesn't wait for.
    let (sender, composed) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let input = io::BufReader::with_capacity(256 << 10, io::stdin());
        // Nobody waits any more after a signal.
        let _ = sender.send(compose_lines(input));
    });
    let state = tokio::select! {
        state = composed => state.unwrap_or(Err(CUT_SHORT))?,
        () = stop.requested() => return Err(CUT_SHORT),
    };
    print(state, &mut printer)
}

/// Of a line, only this counts.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

fn compose_lines(mut input: impl io::BufRead) -> Result<State, Failure> {
    let (mut state, mut number) = (State::default(), 0_u64);
    while let Some(line) = ndjson::next_line(&mut input, ndjson::MAX_LINE)? {
        number += 1;
        let wrong = |code: &str, why: &str| Failure::new(code, format!("line {number}: {why}"));
        let line = match line {
            Input::Line(line) => line,
            Input::Bad(fault) => return Err(wrong(&fault.code, &fault.message)),
        };
        let line = if number == 1 { ndjson::without_mark(&line) } else { &line };
        if line.trim().is_empty() {
            continue;
        }
        let event: Line<'_> = serde_json::from_str(line).map_err(|error| {
            let why = format!(
                "the line is no event: {error}: it must be a JSON object as `eventflow log` prints it"
            );
            wrong(code::INVALID_RECORD, &why)
        })?;
        let Some(data) = event.data else { continue };
        let data =
            ndjson::payload(data.get()).map_err(|error| wrong(code::INVALID_DATA, &error.to_string()))?;
        state.apply(&data).map_err(|error| wrong(code::INVALID_DATA, &error.to_string()))?;
    }
    Ok(state)
}

fn print(state: State, printer: &mut Printer) -> Result<(), Failure> {
    let state: Value = state.into_value();
    let text = match printer.style() {
        Style::Json => json(&state),
        // It escapes control characters.
        Style::People { .. } => serde_json::to_string_pretty(&state).unwrap_or_else(|_| json(&state)),
    };
    printer.line(&text)?;
    Ok(printer.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_compose() {
        let lines = "{\"id\":\"a\",\"data\":{\"a\":{\"b\":1}}}\n\n{\"data\":null}\n{}\n{\"data\": {\"a\": {\"c\": [2]}}}\n";
        assert_eq!(json(&compose_lines(lines.as_bytes()).unwrap().into_value()), r#"{"a":{"b":1,"c":[2]}}"#);
        assert_eq!(json(&compose_lines(&b""[..]).unwrap().into_value()), "{}");
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        let Err(Failure::Told { code, sentence }) = compose_lines(&b"{}\nno\n"[..]) else {
            panic!("it is told")
        };
        assert_eq!(code, code::INVALID_RECORD);
        assert!(sentence.starts_with("line 2: the line is no event"), "{sentence}");
    }
}
