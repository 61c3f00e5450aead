//! The table itself, and that no row is without its test.

use std::{collections::BTreeSet, fs, path::Path};

/// A row of the table "Every ability".
pub struct Row {
    pub ability: String,
    /// The first command that the row shows.
    pub command: String,
}

impl Row {
    /// The words as the name of a function.
    fn name(&self) -> String {
        let letters = self.ability.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' });
        letters.collect::<String>().split_whitespace().collect::<Vec<_>>().join("_")
    }
}

/// All rows.
pub fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/client.md");
    let guide = fs::read_to_string(path).unwrap();
    let (_, table) = guide.split_once("\n| ability | Rust | command line |\n").expect("the table is there");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        // An escaped bar is part of a cell.
        let line = line.replace("\\|", "\u{1}");
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        let [_, ability, rust, command, _] = cells.as_slice() else { panic!("three cells: {line}") };
        assert!(rust.starts_with('`'), "{ability}: what the Rust client calls");
        let command = command.split('`').nth(1).unwrap_or_default().to_owned();
        assert!(command.starts_with("eventflow "), "{ability}: a command that can be run, not {command:?}");
        Row { ability: ability.clone(), command }
    })
    .collect()
}

/// The command that the row shows.
pub fn command(ability: &str) -> String {
    let row = rows().into_iter().find(|row| row.ability == ability);
    row.unwrap_or_else(|| panic!("docs/client.md has no row {ability:?}")).command
}

#[test]
fn every_row_of_the_guide_is_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/abilities");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources: String = files
        .filter(|path| !path.ends_with("table.rs"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let tests: BTreeSet<_> = sources
        .split("#[tokio::test]\nasync fn ")
        .skip(1)
        .filter_map(|test| Some(test.split_once("()")?.0.to_owned()))
        .collect();
    let rows = rows();
    assert!(rows.len() > 40, "{} rows", rows.len());
    let names: BTreeSet<_> = rows.iter().map(Row::name).collect();
    assert_eq!(names.len(), rows.len(), "two rows have the same words");
    let missing: Vec<_> = names.difference(&tests).collect();
    assert!(missing.is_empty(), "rows of docs/client.md without a test in tests/it/abilities: {missing:?}");
    let surplus: Vec<_> = tests.difference(&names).collect();
    assert!(surplus.is_empty(), "tests in tests/it/abilities without a row in docs/client.md: {surplus:?}");
    for row in &rows {
        let run = format!("\"{}\"", row.ability);
        assert!(sources.contains(&run), "nothing runs the command of the row {run}");
    }
}
