//! Tables for people, and spans of time in them.

use crate::output::harmless;

/// Rows under a head, each column as wide as its widest cell. Cells that are numbers stand to the right.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> Vec<String> {
    let mut all = vec![head.map(str::to_owned)];
    all.extend(rows.into_iter().map(|row| row.map(|cell| harmless(&cell))));
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let is_number = |cell: &str| !cell.is_empty() && cell.chars().all(|c| c.is_ascii_digit() || c == '-');
    let numbers: [bool; N] =
        std::array::from_fn(|column| all.len() > 1 && all[1..].iter().all(|row| is_number(&row[column])));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).zip(numbers).map(|((cell, width), number)| match number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

/// The two largest units: `2d 3h`, `5m 0s`, `7s`.
pub(crate) fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    let units =
        [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let first = units.iter().position(|(count, _)| *count > 0).unwrap_or(units.len() - 1);
    let shown: Vec<_> = units[first..].iter().take(2).map(|(count, unit)| format!("{count}{unit}")).collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_for_people() {
        for (millis, text) in
            [(999, "0s"), (7_000, "7s"), (300_000, "5m 0s"), (7_384_000, "2h 3m"), (183_600_000, "2d 3h")]
        {
            assert_eq!(span(millis), text);
        }
    }

    #[test]
    fn columns_are_as_wide_as_they_must_and_numbers_stand_to_the_right() {
        let row = |group: &str, dead: &str, end: &str| [group, dead, end].map(str::to_owned);
        let lines = table(["group", "dead", "end"], vec![row("billing", "7", "x"), row("a\u{1b}", "-", "")]);
        assert_eq!(lines, ["group    dead  end", "billing     7  x", "a\u{FFFD}          -"]);
    }
}
