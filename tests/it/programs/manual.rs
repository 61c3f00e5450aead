//! What the program tells of itself is true: its pages, its examples, its completions.

use std::collections::BTreeMap;

use super::*;

const PAGES: &str = "docs/commands";

/// What `eventflow docs` writes, by file name.
fn pages() -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    run(client(Path::new("/nowhere"), &["docs", folder.path().to_str().unwrap()]), 0);
    files(folder.path())
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(read).collect()
}

#[test]
fn the_pages_of_the_commands_are_what_the_program_says() {
    let committed = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGES));
    let made = pages();
    let again = format!("make them again: rm {PAGES}/*.md; cargo run --bin eventflow -- docs {PAGES}");
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&committed), names(&made), "{again}");
    for (name, page) in &made {
        assert!(&committed[name] == page, "{PAGES}/{name} isn't what the program says; {again}");
    }
}

/// What must be there for an example, as commands.
fn before(example: &str) -> &'static [&'static str] {
    let words: Vec<_> = example.split(' ').skip(1).take(2).collect();
    match words.as_slice() {
        ["cancel", _] => &["eventflow schedule orders reminded --pid order-1 --id reminder-1 --in 1h"],
        ["recur", "show" | "pause" | "resume" | "run" | "remove"] => {
            &["eventflow recur create nightly '30 2 * * *' reports due --zone Europe/Berlin"]
        }
        ["cert", "renew"] => &["eventflow cert issue --out billing.toml"],
        ["cert", "revoke"] => {
            &["eventflow cert issue --id KEEN-WREN-MX000002.EVENTFLOW-SPOKE --out other.toml"]
        }
        ["wait", _] => &["eventflow publish orders paid --pid order-1"],
        ["export", _] => &["eventflow migrate up --database ./eventflow-data"],
        ["import", _] => &[
            "eventflow migrate up --database ./eventflow-data",
            "eventflow export --from ./eventflow-data eventflow.ndjson",
        ],
        ["group", "show" | "seek" | "purge" | "remove"] => &["eventflow group set billing --max-attempts 8"],
        ["group", "unbind"] => &["eventflow consume orders created --group billing --timeout 1s --exec true"],
        ["dead", _] => &[
            "eventflow publish orders created --pid order-2",
            "eventflow consume orders created --timeout 1s --exec 'exit 100'",
        ],
        // Somebody who answers.
        ["request", _] => &["eventflow consume stock asked --count 1 --exec \
             'eventflow publish stock answered --rid \"$EVENTFLOW_EVENT_ID\"' >answers 2>&1 &"],
        _ => &[],
    }
}

#[test]
fn every_example_of_the_help_runs() {
    let hub = Started::new();
    let programs = Path::new(env!("CARGO_BIN_EXE_eventflow")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let pages = pages();
    let mut seen = 0;
    for (name, page) in pages.iter().filter(|(name, _)| *name != "README.md") {
        let (_, example) = page.split_once("\n## Example\n```sh\n").unwrap_or_else(|| panic!("{name}"));
        let example = example.strip_suffix("\n```\n").unwrap();
        let command = format!("eventflow {}", name.trim_end_matches(".md").replace('-', " "));
        let known = example.replace('-', " ").starts_with(&command);
        assert!(known, "{name} shows another command: {example}");

        let folder = tempfile::tempdir().unwrap();
        let shell = |line: &str| {
            let mut shell = program("sh");
            shell.args(["-c", line]).current_dir(folder.path());
            shell.env("PATH", &path).env("EVENTFLOW_DATA", hub.data());
            run(shell, 0)
        };
        // Some orders, one of them with the id that examples name.
        shell("eventflow publish orders created --pid order-1 --data '{\"total\":1}'");
        shell("eventflow publish orders created --pid order-1 --id 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2");
        before(example).iter().for_each(|line| drop(shell(line)));
        shell(example);
        if example.starts_with("eventflow hub log-level") {
            // Its words aren't for this test.
            shell("eventflow hub log-level error");
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} examples");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let nowhere = Path::new("/nowhere");
    let folder = tempfile::tempdir().unwrap();
    let commands: Vec<_> = pages().into_keys().filter(|name| name != "README.md").collect();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (script, _) = run(client(nowhere, &["completions", shell]), 0);
        for command in commands.iter().filter(|name| !name.contains('-')) {
            assert!(script.contains(command.trim_end_matches(".md")), "{shell}: {command}");
        }
        std::fs::write(folder.path().join(shell), script).unwrap();
    }
    if crate::support::process::has("bash", "the script for bash is one") {
        let mut bash = program("bash");
        run(
            {
                bash.arg("-n").arg(folder.path().join("bash"));
                bash
            },
            0,
        );
    }

    let man = folder.path().join("made/man1");
    run(client(nowhere, &["man", man.to_str().unwrap()]), 0);
    let pages = files(&man);
    assert!(pages["eventflow.1"].contains("Exit codes"), "{}", pages["eventflow.1"]);
    for command in &commands {
        let page = format!("eventflow-{}", command.replace(".md", ".1"));
        assert!(pages.contains_key(&page), "{page}");
    }
    let (_, stderr) = run(client(nowhere, &["man", "/dev/null/man1"]), 1);
    assert!(stderr.contains("/dev/null/man1"), "{stderr}");
}
