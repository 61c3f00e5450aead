//! What is printed: lines for people on a terminal, JSON for programs.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use chrono::{DateTime, Local, TimeZone, Utc};
use eventflow::event::{Event, Position};
use indicatif::ProgressBar;

use crate::{group::called, legible::Legible};

/// The most characters of an event's data on a line for people.
const DATA_SHOWN: usize = 160;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// One JSON object a line.
    Json,
    /// Aligned lines, perhaps in colours.
    People {
        /// Whether to colour.
        colours: bool,
    },
}

impl Style {
    /// JSON if asked for or if standard output is no terminal. `NO_COLOR` is heeded (no-color.org).
    pub(crate) fn choose(json: bool) -> Self {
        if json || !io::stdout().is_terminal() {
            return Self::Json;
        }
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self::People { colours: !plain }
    }
}

/// Writes lines to standard output.
pub(crate) struct Printer {
    style: Style,
    quiet: bool,
    columns: Columns,
    out: io::BufWriter<io::Stdout>,
}

impl Printer {
    /// `quiet`: what is under way is not shown.
    pub(crate) fn new(style: Style, quiet: bool) -> Self {
        Self { style, quiet, columns: Columns::default(), out: io::BufWriter::new(io::stdout()) }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A remark on what has begun, for somebody who watches: neither in a pipe nor with `--json` or `--quiet`.
    pub(crate) fn greet(&self, text: &str) {
        if self.style != Style::Json && !self.quiet && io::stderr().is_terminal() {
            remark(text);
        }
    }

    /// What was done to an event: `deleted ID`, or `{"id":ID,"deleted":true}`.
    pub(crate) fn done(&mut self, what: &str, id: &str) -> io::Result<()> {
        let line = match self.style {
            Style::Json => json(&serde_json::json!({ "id": id, what: true })),
            Style::People { .. } => format!("{what} {}", harmless(id)),
        };
        self.line(&line)
    }

    /// What was done to something that has a name: `group billing removed`, or `{"group":"billing","removed":true}`.
    pub(crate) fn did(&mut self, kind: &str, name: &str, what: &str) -> io::Result<()> {
        let line = match self.style {
            Style::Json => json(&serde_json::json!({ kind: name, what: true })),
            Style::People { .. } => format!("{kind} {} {what}", harmless(called(name))),
        };
        self.line(&line)
    }

    /// A claimed event, on one line, with which attempt it is.
    pub(crate) fn claimed(&mut self, event: &Event, attempt: u32) -> io::Result<()> {
        let line = match self.style {
            Style::Json => json(&Claimed { event: Legible(event), attempt }),
            Style::People { colours } => {
                let line = self.columns.line(event, &Local, colours);
                if attempt > 1 { format!("{line}  attempt {attempt}") } else { line }
            }
        };
        self.line(&line)
    }

    /// An event, on one line.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        let line = match self.style {
            Style::Json => json(&Legible(event)),
            Style::People { colours } => self.columns.line(event, &Local, colours),
        };
        self.line(&line)
    }

    /// An event, and for programs the position behind it.
    pub(crate) fn event_at(&mut self, event: &Event, position: &Position) -> io::Result<()> {
        match self.style {
            Style::Json => self.line(&json(&At { event: Legible(event), position })),
            Style::People { .. } => self.event(event),
        }
    }

    /// For programs: events that were asked for are gone.
    pub(crate) fn removed(&mut self, from: u64, to: u64, events: u64) -> io::Result<()> {
        match self.style {
            Style::Json => {
                let removed = serde_json::json!({ "from": from, "to": to, "events": events });
                self.line(&json(&serde_json::json!({ "removed": removed })))
            }
            Style::People { .. } => Ok(()),
        }
    }

    /// A line as it is.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Makes what was written so far visible.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A claimed event as programs read it.
#[derive(serde::Serialize)]
struct Claimed<'a> {
    #[serde(flatten)]
    event: Legible<'a>,
    attempt: u32,
}

/// An event with the position behind it, one object.
#[derive(serde::Serialize)]
struct At<'a> {
    #[serde(flatten)]
    event: Legible<'a>,
    position: &'a Position,
}

/// Whether what somebody else wrote to standard error ended within a line.
static WITHIN_LINE: AtomicBool = AtomicBool::new(false);

/// A bar that stays below whatever is remarked.
static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Keeps this bar below all remarks from now on; only the first one can be.
pub(crate) fn keep_below(bar: ProgressBar) {
    BAR.get_or_init(|| bar);
}

/// A remark for people, on a line of its own on standard error. Whether it can be written changes nothing.
pub(crate) fn remark(text: &str) {
    let start = if WITHIN_LINE.swap(false, Ordering::Relaxed) { "\n" } else { "" };
    let write = || drop(writeln!(io::stderr(), "{start}eventflow: {text}"));
    match BAR.get() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Shows on our standard error what a command wrote to its own.
pub(crate) fn pass_on(part: &[u8]) {
    if let Some(last) = part.last() {
        WITHIN_LINE.store(*last != b'\n', Ordering::Relaxed);
    }
    let _ = io::stderr().write_all(part);
}

/// Bytes in the unit that leaves one to three digits before the point.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn size(bytes: u64) -> String {
    let mut shown = bytes as f64;
    let mut units = ["KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = None;
    while shown >= 1_024.0 {
        let Some(next) = units.next() else { break };
        shown /= 1_024.0;
        unit = Some(next);
    }
    unit.map_or_else(|| format!("{bytes} bytes"), |unit| format!("{shown:.1} {unit}"))
}

/// A value as one line of JSON.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> String {
    // Fails only for maps with keys that are no text, and none of ours has such.
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}

/// Milliseconds since 1970 as people read them, in this zone and with its offset.
pub(crate) fn time<Z: TimeZone>(millis: i64, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    match DateTime::<Utc>::from_timestamp_millis(millis) {
        Some(time) => time.with_timezone(zone).format("%Y-%m-%d %H:%M:%S%.3f %:z").to_string(),
        None => format!("{millis} ms"),
    }
}

/// The widths of the columns: they grow with what has been seen, up to a limit.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    domain: usize,
    name: usize,
    pid: usize,
}

impl Default for Columns {
    fn default() -> Self {
        Self { domain: 8, name: 10, pid: 10 }
    }
}

impl Columns {
    const MOST: usize = 28;

    /// Time, domain, name, pid, id, data; and what it answers, if it does.
    pub(crate) fn line<Z: TimeZone>(&mut self, event: &Event, zone: &Z, colours: bool) -> String
    where
        Z::Offset: std::fmt::Display,
    {
        let paint =
            |code: &str, text: String| if colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text };
        let column = |width: &mut usize, text: &str| {
            let text = harmless(text);
            *width = (*width).max(text.chars().count().min(Self::MOST));
            format!("{text:<width$}", width = *width)
        };
        let answered = match &event.rid {
            Some(rid) => format!("  answers {}", harmless(rid)),
            None => String::new(),
        };
        format!(
            "{}  {}  {}  {}  {}  {}{answered}",
            paint("2", time(event.timestamp, zone)),
            paint("36", column(&mut self.domain, &event.domain)),
            paint("1", column(&mut self.name, &event.name)),
            column(&mut self.pid, &event.pid),
            paint("2", harmless(&event.id)),
            short(event.data.as_str()),
        )
    }
}

/// Without what could steer a terminal: old rows may hold anything.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

fn short(data: &str) -> String {
    let mut shown: String = harmless(data).chars().take(DATA_SHOWN).collect();
    if shown.len() < data.len() && data.chars().nth(DATA_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
pub(crate) mod tests {
    use chrono::FixedOffset;
    use eventflow::event::{Data, Domain, EventId, Name, Pid};

    use super::*;

    pub(crate) fn event(rid: Option<&str>, data: &str) -> Event {
        Event {
            id: EventId::parse("id-1").unwrap(),
            timestamp: 1_700_000_000_123,
            domain: Domain::parse("orders").unwrap(),
            name: Name::parse("created").unwrap(),
            pid: Pid::parse("order-1").unwrap(),
            rid: rid.map(|rid| EventId::parse(rid.to_owned()).unwrap()),
            data: Data::parse(data.to_owned()).unwrap(),
        }
    }

    #[test]
    fn people_read_an_aligned_line_in_their_time() {
        let zone = FixedOffset::east_opt(3_600).unwrap();
        let mut columns = Columns::default();
        assert_eq!(
            columns.line(&event(Some("id-0"), r#"{"total":12}"#), &zone, false),
            "2023-11-14 23:13:20.123 +01:00  orders    created     order-1     id-1  {\"total\":12}  answers id-0"
        );
        let mut long = event(None, "1");
        long.name = Name::parse("created.in.shop").unwrap();
        columns.line(&long, &zone, false);
        let next = columns.line(&event(None, "1"), &zone, false);
        assert!(next.contains("  created          order-1 "), "{next}");
    }

    #[test]
    fn colours_only_when_asked_and_control_characters_never() {
        let mut columns = Columns::default();
        let mut odd = event(None, "1");
        odd.name = Name::from_stored("\u{1b}[31mred\u{9b}");
        let plain = columns.line(&odd, &Utc, false);
        assert!(!plain.contains(char::is_control), "{plain:?}");
        assert!(columns.line(&odd, &Utc, true).contains("\u{1b}[36m"));
    }

    #[test]
    fn long_data_is_cut_for_people() {
        let text = format!("\"{}\"", "x".repeat(300));
        let line = Columns::default().line(&event(None, &text), &Utc, false);
        assert!(line.ends_with("x…"), "{line}");
        let whole = format!("\"{}\"", "x".repeat(DATA_SHOWN - 2));
        assert_eq!(short(&whole), whole);
    }

    #[test]
    fn programs_read_the_event_as_json() {
        assert_eq!(
            json(&event(None, "[1]")),
            r#"{"id":"id-1","timestamp":1700000000123,"domain":"orders","name":"created","pid":"order-1","data":[1]}"#
        );
    }

    #[test]
    fn programs_read_the_attempt_beside_the_event() {
        assert_eq!(
            json(&Claimed { event: Legible(&event(None, r#"{"b":1,"a":[1.50]}"#)), attempt: 2 }),
            r#"{"id":"id-1","timestamp":1700000000123,"domain":"orders","name":"created","pid":"order-1","data":{"b":1,"a":[1.50]},"attempt":2}"#
        );
    }

    #[test]
    fn programs_read_the_position_behind_an_event() {
        let position = Position::default();
        let line = json(&At { event: Legible(&event(None, "[1]")), position: &position });
        assert!(line.ends_with(&format!(r#","data":[1],"position":"{position}"}}"#)), "{line}");
    }

    #[test]
    fn times_beyond_the_calendar_are_shown_as_they_are() {
        assert_eq!(time(i64::MAX, &Utc), format!("{} ms", i64::MAX));
    }

    #[test]
    fn sizes_for_people() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1_536, "1.5 KiB"),
            (3 << 30, "3.0 GiB"),
            (5 << 40, "5.0 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
