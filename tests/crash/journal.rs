//! What a consumer process did, line by line, in a file that outlives it.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

/// What happened to one handling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The claim came to this process.
    Handed,
    /// The handler began.
    Began,
    /// The hub has the ack.
    Acked,
    /// The hub has the nack.
    Nacked,
    /// The claim was somebody else's by then.
    Lost,
    /// Nobody knows whether the hub got the ack.
    InDoubt,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Milliseconds since 1970.
    pub at: i64,
    pub step: Step,
    /// Which handling of this process.
    pub number: u64,
    /// The group; `-` is the default one.
    pub group: String,
    pub event: String,
    pub attempt: u32,
}

/// A file that lines are added to, each by one write.
#[derive(Debug)]
pub struct Journal(File);

impl Journal {
    pub fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    pub fn write(&self, line: &Line) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// What is whole in such a file.
pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| line.parse().expect(line)).collect()
}

pub fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, step, number, group, event, attempt } = self;
        write!(f, "{at} {step:?} {number} {group} {event} {attempt}")
    }
}

impl FromStr for Line {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or_else(|| format!("too few words: {line}"));
        let at = word()?.parse().map_err(|error| format!("{error}: {line}"))?;
        let step = match word()? {
            "Handed" => Step::Handed,
            "Began" => Step::Began,
            "Acked" => Step::Acked,
            "Nacked" => Step::Nacked,
            "Lost" => Step::Lost,
            "InDoubt" => Step::InDoubt,
            other => return Err(format!("no step: {other}")),
        };
        let number = word()?.parse().map_err(|error| format!("{error}: {line}"))?;
        let (group, event) = (word()?.to_owned(), word()?.to_owned());
        let attempt = word()?.parse().map_err(|error| format!("{error}: {line}"))?;
        Ok(Self { at, step, number, group, event, attempt })
    }
}
