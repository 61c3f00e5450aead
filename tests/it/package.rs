//! What a newcomer reads first is true.

use std::{fs, path::Path};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code of all fenced blocks of one language, in order.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{language}") {
            let code: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(code.join("\n") + "\n");
        }
    }
    blocks
}

#[test]
fn the_readme_begins_with_its_two_commands() {
    let readme = file("README.md");
    let first = blocks(&readme, "sh").into_iter().next().expect("the README has commands");
    let commands: Vec<_> = first.lines().map(|line| line.split('#').next().unwrap_or(line).trim()).collect();
    assert_eq!(commands, ["cargo run --release", "cargo test"]);
}

#[test]
fn the_readme_shows_the_example_that_is_compiled() {
    let readme = file("README.md");
    let shown = blocks(&readme, "rust").into_iter().next().expect("the README has a Rust client");
    let compiled = file("examples/quickstart.rs");
    let (_, compiled) = compiled.split_once("\n\n").expect("the example begins with its documentation");
    assert_eq!(shown, compiled, "README.md and examples/quickstart.rs differ");
    assert!(shown.lines().count() < 25, "the client in the README has under 25 lines");
}

#[test]
fn every_file_that_a_document_links_to_is_there() {
    for name in [
        "README.md",
        "CONTRIBUTING.md",
        "docs/client.md",
        "docs/commands/README.md",
        "docs/databases.md",
        "docs/migrating-from-npm.md",
        "docs/semantics.md",
        "docs/operations.md",
        "docs/performance.md",
    ] {
        let text = file(name);
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or(target);
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target);
            assert!(path.exists(), "{name} links to {target}, which isn't there");
        }
    }
}

/// Whoever follows the way from npm by hand finds each command, setting, variable and number that it names.
#[test]
fn what_the_way_from_npm_names_is_there() {
    let page = file("docs/migrating-from-npm.md");
    let (settings, numbers) = (file("docs/configuration.md"), file("docs/operations.md"));
    let mut seen = [0; 4];
    let spans = page.split('`').skip(1).step_by(2).filter(|span| !span.contains('\n'));
    for command in blocks(&page, "sh").iter().flat_map(|block| block.lines()).chain(spans) {
        let mut words = command.split_whitespace();
        if words.next() != Some("eventflow") {
            continue;
        }
        let words: Vec<&str> =
            words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
        let name = |count: usize| format!("docs/commands/{}.md", words[..count].join("-"));
        let path = (1..=words.len().min(2)).rev().map(name);
        let found =
            path.map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).find(|path| path.exists());
        let found = found.unwrap_or_else(|| panic!("there is no command as in `{command}`"));
        let manual = std::fs::read_to_string(found).unwrap();
        for flag in command.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(manual.contains(flag), "`{command}`: there is no {flag}");
        }
        seen[0] += 1;
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    for name in page.split(|c| !word(c)).map(|name| name.trim_end_matches('.')) {
        let key = name.strip_prefix("EVENTFLOW_").map(|rest| {
            let (room, key) = rest.split_once('_').unwrap_or((rest, ""));
            format!("`{}.{}`", room.to_ascii_lowercase(), key.to_ascii_lowercase())
        });
        if let Some(key) = key {
            assert!(settings.contains(&format!("`{name}`")) || settings.contains(&key), "there is no {name}");
            seen[1] += 1;
        } else if name.starts_with("eventflow_") {
            assert!(numbers.contains(name), "there is no metric {name}");
            seen[2] += 1;
        }
    }
    let rooms = ["store.", "schedules.", "collect.", "certificates.", "mysql.", "hub."];
    let spans = page.split('`').skip(1).step_by(2);
    for key in
        spans.filter(|span| span.split(' ').count() == 1 && rooms.iter().any(|room| span.starts_with(room)))
    {
        assert!(settings.contains(&format!("`{key}`")), "there is no setting {key}");
        seen[3] += 1;
    }
    assert!(seen.iter().all(|count| *count > 3), "{seen:?}");
}

#[test]
fn every_test_that_the_semantics_name_is_there() {
    let (semantics, root) = (file("docs/semantics.md"), file("tests/it/main.rs"));
    let named = semantics.split('`').filter_map(|text| text.strip_prefix("tests/it/")?.strip_suffix(".rs"));
    let missing: Vec<_> = named.filter(|name| !root.contains(&format!("mod {name};"))).collect();
    assert!(
        missing.is_empty(),
        "docs/semantics.md names tests that tests/it/main.rs doesn't have: {missing:?}"
    );
}

#[test]
fn the_changelog_knows_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        file("CHANGELOG.md").contains(&format!("## [{version}]")),
        "CHANGELOG.md has no section {version}"
    );
}
