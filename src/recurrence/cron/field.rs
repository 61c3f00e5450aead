//! One field of a cron rule: `*`, numbers, names, ranges, steps, and lists of them.

use super::super::error::{RuleError, shown};

/// What a field may hold.
pub(super) struct Kind {
    name: &'static str,
    low: u32,
    high: u32,
    /// Names of the numbers from `low` on.
    names: &'static [&'static str],
}

pub(super) const SECONDS: Kind = Kind { name: "second", low: 0, high: 59, names: &[] };
pub(super) const MINUTES: Kind = Kind { name: "minute", low: 0, high: 59, names: &[] };
pub(super) const HOURS: Kind = Kind { name: "hour", low: 0, high: 23, names: &[] };
pub(super) const DAYS: Kind = Kind { name: "day of month", low: 1, high: 31, names: &[] };
pub(super) const MONTHS: Kind = Kind {
    name: "month",
    low: 1,
    high: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
pub(super) const WEEKDAYS: Kind =
    Kind { name: "day of week", low: 0, high: 7, names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] };

/// Reads a field, which begins at this character of its rule, as a set of bits.
pub(super) fn read(rule: &str, kind: &Kind, (start, text): &(usize, String)) -> Result<u64, RuleError> {
    let mut set = 0;
    let mut position = *start;
    for item in text.split(',') {
        set |= kind.item(item).map_err(|reason| RuleError::Field {
            rule: shown(rule),
            field: kind.name,
            position,
            text: shown(item),
            reason,
        })?;
        position += item.chars().count() + 1;
    }
    Ok(set)
}

impl Kind {
    /// `*`, `5`, `MON`, `1-5`, each with `/2` or without.
    fn item(&self, item: &str) -> Result<u64, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (item, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.low, self.high.min(self.last())),
            Some((from, to)) => (self.number(from)?, self.number(to)?),
            None => {
                let number = self.number(range)?;
                // `5/15` is from 5 on, each 15.
                (number, if step.is_some() { self.last().max(number) } else { number })
            }
        };
        // From Saturday to Sunday, which is 7 too.
        let to = if to == 0 && from > 0 && self.high == 7 { 7 } else { to };
        if from > to {
            return Err("goes backwards: the first number of a range is the lower one".to_owned());
        }
        let step = step.unwrap_or(1);
        Ok((from..=to).step_by(step).fold(0, |set, number| set | 1 << number))
    }

    /// The highest number without a second name.
    fn last(&self) -> u32 {
        if self.high == 7 { 6 } else { self.high }
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        let step = digits(text).filter(|step| (1..=self.high).contains(step));
        step.and_then(|step| usize::try_from(step).ok())
            .ok_or_else(|| format!("has no step that fits: give 1 to {} after `/`", self.high))
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        let named = || self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = digits(text).or_else(|| u32::try_from(named()?).ok().map(|at| at + self.low));
        number.filter(|number| (self.low..=self.high).contains(number)).ok_or_else(|| {
            let names = match (self.names.first(), self.names.last()) {
                (Some(first), Some(last)) => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            format!(
                "is none: give {} to {}{names}, a range such as {}-{}, `*`, each perhaps with a step such as `/2`, or a \
                 list of them with commas",
                self.low,
                self.high,
                self.low,
                self.low + 2
            )
        })
    }
}

/// Up to four digits and nothing else.
fn digits(text: &str) -> Option<u32> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}
