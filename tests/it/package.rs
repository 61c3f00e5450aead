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
