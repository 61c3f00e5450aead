//! How the text of one setting is read, checked and shown again.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use super::{
    database::{DatabaseUrl, NpmTimeZone},
    value::{ConfiguredName, Durability, KeyCipher, KeyHash, LogFormat, LogLevel, QuitSignal, Secret},
};
use crate::event::Keep;

/// How values of one kind are written.
pub(super) struct Form<T> {
    /// Stands for the value in help: `DURATION`.
    pub(super) placeholder: &'static str,
    /// Reads it; the error says what would be right.
    read: fn(&str) -> Result<T, String>,
    show: fn(&T) -> String,
    range: Option<(T, T)>,
}

impl<T: PartialOrd> Form<T> {
    /// The same, from `least` to `most`, both included.
    pub(super) fn within(mut self, least: T, most: T) -> Self {
        self.range = Some((least, most));
        self
    }

    /// Reads and checks.
    pub(super) fn read(&self, text: &str) -> Result<T, String> {
        let value = (self.read)(text)?;
        match &self.range {
            Some((least, most)) if value < *least || value > *most => {
                Err(format!("must be from {} to {}", (self.show)(least), (self.show)(most)))
            }
            _ => Ok(value),
        }
    }

    /// The value as it would be written.
    pub(super) fn show(&self, value: &T) -> String {
        (self.show)(value)
    }

    /// The same, where nothing may be set: shown as `absent`.
    pub(super) fn or(self, absent: &'static str) -> Optional<T> {
        Optional { form: self, absent }
    }
}

/// A form whose value may be absent.
pub(super) struct Optional<T> {
    form: Form<T>,
    absent: &'static str,
}

impl<T: PartialOrd> Optional<T> {
    pub(super) fn placeholder(&self) -> &'static str {
        self.form.placeholder
    }

    pub(super) fn read(&self, text: &str) -> Result<Option<T>, String> {
        self.form.read(text).map(Some)
    }

    pub(super) fn show(&self, value: &Option<T>) -> String {
        value.as_ref().map_or_else(|| self.absent.to_owned(), |value| self.form.show(value))
    }
}

const fn form<T>(
    placeholder: &'static str,
    read: fn(&str) -> Result<T, String>,
    show: fn(&T) -> String,
) -> Form<T> {
    Form { placeholder, read, show, range: None }
}

pub(super) fn duration() -> Form<Duration> {
    form("DURATION", read_duration, |value| show_duration(*value))
}

pub(super) fn bytes() -> Form<u64> {
    form("SIZE", read_bytes, |value| show_bytes(*value))
}

pub(super) fn count() -> Form<u32> {
    form("NUMBER", |text| read_number(text, "a whole number"), u32::to_string)
}

pub(super) fn port() -> Form<u16> {
    form("PORT", |text| read_number(text, "a port from 0 to 65535"), u16::to_string)
}

pub(super) fn ip() -> Form<IpAddr> {
    let read =
        |text: &str| text.trim().parse().map_err(|_| "must be an IP address, such as 127.0.0.1".to_owned());
    form("IP", read, IpAddr::to_string)
}

pub(super) fn host() -> Form<String> {
    form("HOST", read_host, String::clone)
}

pub(super) fn folder() -> Form<PathBuf> {
    let read = |text: &str| match text {
        "" => Err("must name a folder".to_owned()),
        text => Ok(PathBuf::from(text)),
    };
    form("FOLDER", read, |path| path.display().to_string())
}

pub(super) fn switch() -> Form<bool> {
    form("true|false", |text| choose(text, &[("true", true), ("false", false)]), bool::to_string)
}

pub(super) fn name() -> Form<ConfiguredName> {
    let read = |text: &str| ConfiguredName::parse(text).map_err(|error| error.reason.to_owned());
    form("NAME", read, ConfiguredName::to_string)
}

pub(super) fn url() -> Form<DatabaseUrl> {
    form("URL", DatabaseUrl::parse, DatabaseUrl::to_string)
}

/// Any text, such as a name that a database knows.
pub(super) fn text() -> Form<String> {
    let read = |text: &str| match text.trim() {
        "" => Err("must not be empty".to_owned()),
        text => Ok(text.to_owned()),
    };
    form("TEXT", read, String::clone)
}

pub(super) fn file() -> Form<PathBuf> {
    let read = |text: &str| match text.trim() {
        "" => Err("must name a file".to_owned()),
        text => Ok(PathBuf::from(text)),
    };
    form("FILE", read, |path| path.display().to_string())
}

const TIME_ZONES: &[(&str, NpmTimeZone)] = &[("utc", NpmTimeZone::Utc), ("server", NpmTimeZone::Server)];

pub(super) fn npm_time_zone() -> Form<NpmTimeZone> {
    form("utc|server", |text| choose(text, TIME_ZONES), |value| chosen(value, TIME_ZONES))
}

pub(super) fn secret() -> Form<Secret> {
    let read = |text: &str| match text {
        "" => Err("must not be empty".to_owned()),
        text => Ok(Secret::new(text)),
    };
    form("PHRASE", read, |_| "***".to_owned())
}

pub(super) fn keep() -> Form<Keep> {
    let read = |text: &str| match text {
        "forever" => Ok(Keep::Forever),
        text => read_duration(text).map(Keep::For).map_err(|error| format!("{error}, or `forever`")),
    };
    let show = |keep: &Keep| match keep {
        Keep::Forever => "forever".to_owned(),
        Keep::For(time) => show_duration(*time),
    };
    form("DURATION|forever", read, show)
}

/// How old something must be; `never` is for ever.
pub(super) fn never() -> Form<Keep> {
    let read = |text: &str| match text {
        "never" => Ok(Keep::Forever),
        text => read_duration(text).map(Keep::For).map_err(|error| format!("{error}, or `never`")),
    };
    let show = |keep: &Keep| match keep {
        Keep::Forever => "never".to_owned(),
        Keep::For(time) => show_duration(*time),
    };
    form("DURATION|never", read, show)
}

/// How long overdue something may be: `all` has no limit, `none` is nothing at all.
pub(super) fn overdue() -> Form<Keep> {
    let read = |text: &str| match text {
        "all" => Ok(Keep::Forever),
        "none" => Ok(Keep::For(Duration::ZERO)),
        text => read_duration(text).map(Keep::For).map_err(|error| format!("{error}, or `all`, or `none`")),
    };
    let show = |keep: &Keep| match keep {
        Keep::Forever => "all".to_owned(),
        Keep::For(Duration::ZERO) => "none".to_owned(),
        Keep::For(time) => show_duration(*time),
    };
    form("DURATION|all|none", read, show)
}

const DURABILITIES: &[(&str, Durability)] = &[("full", Durability::Full), ("relaxed", Durability::Relaxed)];

pub(super) fn durability() -> Form<Durability> {
    form("full|relaxed", |text| choose(text, DURABILITIES), |value| chosen(value, DURABILITIES))
}

const CIPHERS: &[(&str, KeyCipher)] = &[
    ("aes-128-gcm", KeyCipher::Aes128Gcm),
    ("aes-192-gcm", KeyCipher::Aes192Gcm),
    ("aes-256-gcm", KeyCipher::Aes256Gcm),
];

pub(super) fn cipher() -> Form<KeyCipher> {
    form("CIPHER", |text| choose(text, CIPHERS), |value| chosen(value, CIPHERS))
}

const HASHES: &[(&str, KeyHash)] =
    &[("sha256", KeyHash::Sha256), ("sha384", KeyHash::Sha384), ("sha512", KeyHash::Sha512)];

pub(super) fn hash() -> Form<KeyHash> {
    form("HASH", |text| choose(text, HASHES), |value| chosen(value, HASHES))
}

const SIGNALS: &[(&str, QuitSignal)] = &[
    ("SIGTERM", QuitSignal::Term),
    ("SIGINT", QuitSignal::Int),
    ("SIGQUIT", QuitSignal::Quit),
    ("SIGHUP", QuitSignal::Hup),
    ("SIGUSR1", QuitSignal::Usr1),
    ("SIGUSR2", QuitSignal::Usr2),
];

pub(super) fn signal() -> Form<QuitSignal> {
    form("SIGNAL", |text| choose(text, SIGNALS), |value| chosen(value, SIGNALS))
}

const FORMATS: &[(&str, LogFormat)] = &[("human", LogFormat::Human), ("json", LogFormat::Json)];

pub(super) fn log_format() -> Form<LogFormat> {
    form("human|json", |text| choose(text, FORMATS), |value| chosen(value, FORMATS))
}

const LEVELS: &[(&str, LogLevel)] = &[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

pub(super) fn log_level() -> Form<LogLevel> {
    form("LEVEL", |text| choose(text, LEVELS), |value| chosen(value, LEVELS))
}

fn choose<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        format!("must be one of {}", words.join(", "))
    })
}

fn chosen<T: PartialEq>(value: &T, choices: &[(&str, T)]) -> String {
    let found = choices.iter().find(|(_, choice)| choice == value);
    found.map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// `10_000` and `10,000` are read as people write them.
fn read_number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.trim().replace(['_', ','], "").parse().map_err(|_| format!("must be {what}"))
}

fn read_host(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if text.parse::<IpAddr>().is_ok() || (!text.is_empty() && text.bytes().all(plain)) {
        Ok(text.to_owned())
    } else {
        Err("must be an IP address or a host name, without port".to_owned())
    }
}

const DURATION_UNITS: &[(&str, u64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads `30s`, `500ms`, `1h30m`.
///
/// # Errors
/// A sentence that says what would be right.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    const WORDS: &str = "must be a number and a unit (ms, s, m, h or d), such as 30s or 24h";
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(WORDS.to_owned());
    }
    while !rest.is_empty() {
        let (number, after) = split_at_first(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_at_first(after.trim_start(), |c| !c.is_ascii_alphabetic());
        let factor = DURATION_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let part = number.parse::<u64>().ok().zip(factor).and_then(|(n, factor)| n.checked_mul(factor));
        total = part.and_then(|part| total.checked_add(part)).ok_or(WORDS)?;
        rest = after.trim_start();
    }
    Ok(Duration::from_millis(total))
}

/// Shows a duration in the largest unit that loses nothing.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fits = |(_, factor): &&(&str, u64)| millis > 0 && millis.is_multiple_of(*factor);
    match DURATION_UNITS.iter().find(fits) {
        Some((unit, factor)) => format!("{}{unit}", millis / factor),
        None => "0s".to_owned(),
    }
}

const SIZE_UNITS: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

fn read_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_at_first(text.trim(), |c| !(c.is_ascii_digit() || c == '_'));
    let unit = match unit.trim() {
        "" => "B",
        unit => unit,
    };
    let factor =
        SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor);
    let size = number.replace('_', "").parse::<u64>().ok().zip(factor);
    size.and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| "must be a size in bytes, or with a unit such as 64 KiB, 8 MiB or 1 GiB".to_owned())
}

fn show_bytes(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*factor);
    match SIZE_UNITS[..3].iter().find(fits) {
        Some((unit, factor)) => format!("{} {unit}", bytes / factor),
        None => format!("{bytes} B"),
    }
}

fn split_at_first(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in
            [("30s", 30_000), ("500ms", 500), ("5 m", 300_000), ("24h", 86_400_000), ("1h30m", 5_400_000)]
        {
            assert_eq!(read_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "30", "s", "1.5s", "-1s", "1 fortnight", "99999999999999999999d", "1s 2"] {
            assert!(read_duration(wrong).is_err(), "{wrong}");
        }
        for text in ["0s", "1ms", "90s", "5m", "36h", "7d"] {
            assert_eq!(show_duration(read_duration(text).unwrap()), text);
        }
    }

    #[test]
    fn sizes() {
        for (text, size) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("1 MiB", 1 << 20),
            ("8mib", 8 << 20),
            ("2 KB", 2_000),
            ("1_000", 1_000),
        ] {
            assert_eq!(read_bytes(text), Ok(size), "{text}");
        }
        for wrong in ["", "MiB", "1 PB", "-1", "1.5 MiB", "99999999999999999999"] {
            assert!(read_bytes(wrong).is_err(), "{wrong}");
        }
        for text in ["0 B", "1000 B", "64 KiB", "8 MiB", "3 GiB"] {
            assert_eq!(show_bytes(read_bytes(text).unwrap()), text);
        }
    }

    #[test]
    fn hosts() {
        for host in ["10.0.0.1", "::1", "hub-1.example.org", "hub_1"] {
            assert_eq!(read_host(host).as_deref(), Ok(host));
        }
        for wrong in ["", "a:50001", "http://a", "a b"] {
            assert!(read_host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_part_of_the_sentence() {
        let form = duration().within(Duration::from_secs(1), Duration::from_secs(3_600));
        assert_eq!(form.read("0s"), Err("must be from 1s to 1h".to_owned()));
        assert_eq!(form.read("2h"), Err("must be from 1s to 1h".to_owned()));
        assert!(form.read("1h").is_ok());
    }
}
