//! The fields of cron: which wall times match.

mod field;

use jiff::{
    ToSpan,
    civil::{Date, DateTime, Time},
};

use self::field::{DAYS, HOURS, MINUTES, MONTHS, SECONDS, WEEKDAYS, read};
use super::error::{RuleError, shown};

/// The 29th of February falls on each weekday at least once in so many years.
const YEARS: i16 = 41;

/// Which wall times are due. Sets of numbers are bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both kinds of days are given: a day matches by either.
    either: bool,
}

impl Cron {
    /// Five fields, or six with the second before them.
    pub(super) fn parse(rule: &str) -> Result<Self, RuleError> {
        let mut fields = Vec::new();
        // Field by field, with the character at which it begins.
        let mut start = None;
        for (at, c) in rule.chars().chain([' ']).enumerate() {
            match (c.is_whitespace(), start) {
                (false, None) => start = Some(at),
                (true, Some(begin)) => {
                    let text: String = rule.chars().skip(begin).take(at - begin).collect();
                    fields.push((begin + 1, text));
                    start = None;
                }
                _ => {}
            }
        }
        let (second, rest) = match fields.as_slice() {
            [second, rest @ ..] if rest.len() == 5 => (Some(second), rest),
            rest if rest.len() == 5 => (None, rest),
            _ => return Err(RuleError::Fields { rule: shown(rule), count: fields.len() }),
        };
        let [minute, hour, day, month, weekday] = rest else {
            return Err(RuleError::Fields { rule: shown(rule), count: fields.len() });
        };
        let starred = |(_, text): &(usize, String)| text.starts_with('*');
        // Sunday is 0 and 7.
        let weekdays = read(rule, &WEEKDAYS, weekday)?;
        let cron = Self {
            seconds: second.map_or(Ok(1), |second| read(rule, &SECONDS, second))?,
            minutes: read(rule, &MINUTES, minute)?,
            hours: read(rule, &HOURS, hour)?,
            days: read(rule, &DAYS, day)?,
            months: read(rule, &MONTHS, month)?,
            weekdays: (weekdays | weekdays >> 7) & 0x7F,
            either: !starred(day) && !starred(weekday),
        };
        match cron.next(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)) {
            Some(_) => Ok(cron),
            None => Err(RuleError::Never { rule: shown(rule), bounds: "" }),
        }
    }

    /// The first wall time that matches, at `from` or after it. None: there is none up to the calendar's end.
    pub(super) fn next(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        if self.has(date)
            && let Some(time) = self.time_from(from.time())
        {
            return Some(date.to_datetime(time));
        }
        let last = from.year().saturating_add(YEARS);
        loop {
            date = self.day_after(date)?;
            if date.year() > last {
                return None;
            }
            if self.has(date) {
                return self.time_from(Time::midnight()).map(|time| date.to_datetime(time));
            }
        }
    }

    fn has(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        has(self.months, date.month()) && if self.either { day || weekday } else { day && weekday }
    }

    /// The next day whose month may match.
    fn day_after(&self, date: Date) -> Option<Date> {
        if has(self.months, date.month()) {
            return date.tomorrow().ok();
        }
        date.last_of_month().checked_add(1.day()).ok()
    }

    /// The first time of day that matches, at `from` or after it.
    fn time_from(&self, from: Time) -> Option<Time> {
        let second = first(self.seconds, from.second());
        let minute = first(self.minutes, from.minute());
        let time = |hour, minute, second| Time::new(hour, minute, second, 0).ok();
        if has(self.hours, from.hour()) {
            if let Some(second) = second.filter(|_| has(self.minutes, from.minute())) {
                return time(from.hour(), from.minute(), second);
            }
            let later = if has(self.minutes, from.minute()) {
                first(self.minutes, from.minute() + 1)
            } else {
                minute
            };
            if let Some(minute) = later {
                return time(from.hour(), minute, first(self.seconds, 0)?);
            }
        }
        let hour = first(self.hours, from.hour() + i8::from(has(self.hours, from.hour())))?;
        time(hour, first(self.minutes, 0)?, first(self.seconds, 0)?)
    }
}

fn has(set: u64, number: i8) -> bool {
    set >> number & 1 == 1
}

/// The lowest number of the set that isn't below `from`, which is below 64.
fn first(set: u64, from: i8) -> Option<i8> {
    let left = set >> from << from;
    (left != 0).then(|| i8::try_from(left.trailing_zeros()).ok()).flatten()
}

#[cfg(test)]
mod tests;
