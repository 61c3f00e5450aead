//! Doors open one way: which room of `src/` may use which, and which room may use which crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// A room, and the rooms that it may use besides itself.
const ROOMS: &[(&str, &[&str])] = &[
    ("event", &[]),
    ("wire", &["event"]),
    ("recurrence", &["event", "wire"]),
    ("config", &["event"]),
    ("pki", &["event", "wire"]),
    ("metrics", &["event"]),
    // The certificate table is the authority's, behind its trait.
    ("store", &["event", "recurrence", "wire", "pki"]),
    ("spoke", &["event", "wire", "pki"]),
    ("actors", &["event", "recurrence", "wire", "store", "config", "pki", "metrics"]),
    ("admin", &["event", "metrics"]),
    ("hub", &["event", "wire", "store", "actors", "config", "pki", "metrics", "admin"]),
    ("bin", &["event", "wire", "store", "actors", "config", "pki", "metrics", "admin", "hub", "spoke"]),
];

/// Crates that belong to some rooms only.
const CRATES: &[(&str, &[&str])] = &[
    ("actix", &["actors", "hub"]),
    ("actix_rt", &["actors", "hub", "bin"]),
    ("actix_web", &["admin", "hub"]),
    ("aes_gcm", &["pki"]),
    ("anyhow", &["bin"]),
    ("clap", &["bin"]),
    ("clap_complete", &["bin"]),
    ("clap_mangen", &["bin"]),
    ("crrl", &["pki"]),
    ("hdrhistogram", &["bin"]),
    ("indicatif", &["bin"]),
    ("jiff", &["recurrence"]),
    ("p256", &["pki"]),
    ("p384", &["pki"]),
    ("p521", &["pki"]),
    ("pkcs8", &["pki"]),
    ("plotters", &["bin"]),
    ("prometheus_client", &["metrics"]),
    ("rcgen", &["pki"]),
    ("ring", &["pki"]),
    ("rustls", &["pki", "spoke", "actors", "hub", "admin"]),
    ("sea_orm", &["store"]),
    ("sea_orm_migration", &["store"]),
    ("tokio", &["metrics", "pki", "store", "spoke", "actors", "admin", "hub", "bin"]),
    ("tokio_rustls", &["pki", "spoke", "actors", "hub"]),
    ("tracing_subscriber", &["bin"]),
    ("ureq", &["bin"]),
    ("x509_cert", &["pki"]),
    ("x509_parser", &["pki"]),
];

#[test]
fn rooms_use_only_what_stands_to_their_left() {
    let rooms: BTreeMap<_, _> = ROOMS.iter().copied().collect();
    let mut wrong = Vec::new();
    for file in sources() {
        let Some(room) = file.room() else { continue };
        let Some(allowed) = rooms.get(room.as_str()) else {
            wrong.push(format!("{}: the room `{room}` isn't in the table of this test", file.name));
            continue;
        };
        // The programs see the library from outside.
        let own = if room == "bin" { "eventflow" } else { "crate" };
        for used in uses(&file.code, own) {
            if used != room && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: `{room}` uses `{own}::{used}`", file.name));
            }
        }
    }
    assert!(wrong.is_empty(), "imports point only to the left:\n{}", wrong.join("\n"));
}

#[test]
fn crates_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for file in sources() {
        let Some(room) = file.room() else { continue };
        let foreign = CRATES.iter().filter(|(_, rooms)| !rooms.contains(&room.as_str()));
        for (krate, _) in foreign.filter(|(krate, _)| !uses(&file.code, krate).is_empty()) {
            wrong.push(format!("{}: `{room}` uses the crate `{krate}`", file.name));
        }
    }
    assert!(wrong.is_empty(), "these crates belong elsewhere:\n{}", wrong.join("\n"));
}

/// `super::super::…` up to the root would be a door that the test above doesn't see.
#[test]
fn nobody_climbs_out_of_a_room() {
    let mut wrong = Vec::new();
    for file in sources().into_iter().filter(|file| file.room().is_some()) {
        let depth = file.depth();
        let (mut longest, mut rest) = (0, file.code.as_str());
        while let Some(start) = rest.find("super::") {
            let climb = &rest[start..];
            let steps = climb.split("super::").skip(1).take_while(|between| between.is_empty()).count() + 1;
            longest = longest.max(steps);
            rest = &climb[steps * "super::".len()..];
        }
        // A module in the file, such as its tests, is one step deeper.
        let inline = usize::from(file.code.contains("mod tests {"));
        if longest >= depth + inline && longest > 0 {
            wrong.push(file.name);
        }
    }
    assert!(wrong.is_empty(), "these climb to the root by `super::`; say `crate::` instead: {wrong:?}");
}

#[test]
fn modules_have_names() {
    let nameless: Vec<_> =
        sources().into_iter().map(|file| file.name).filter(|name| name.ends_with("mod.rs")).collect();
    assert!(nameless.is_empty(), "`foo.rs` beside `foo/`, no `mod.rs`: {nameless:?}");
}

#[test]
fn no_source_asks_for_unsafe() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""), "Cargo.toml forbids unsafe code");
    for file in sources() {
        let words: BTreeSet<_> = file.code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        assert!(!words.contains("unsafe"), "{} holds unsafe code", file.name);
        assert!(!words.contains("unsafe_code"), "{} changes the lint against unsafe code", file.name);
    }
}

#[test]
fn the_scanner_finds_what_it_should() {
    let code = without_comments(
        "use crate::event::Event; // crate::store\nuse crate::{\n    wire::{Record, npm},\n    metrics::Meter, pki,\n};\n\
         let text = \"crate::hub\"; $crate::actors::mail!(); mycrate::spoke();\n/* crate::admin */",
    );
    assert_eq!(uses(&code, "crate"), ["actors", "event", "metrics", "pki", "wire"].map(String::from).into());
    assert_eq!(uses("use actix_web::web;", "actix"), BTreeSet::new());
    assert_eq!(uses("actix::spawn(())", "actix"), ["spawn".to_owned()].into());
}

struct Source {
    /// Relative to `src`, with `/`.
    name: String,
    /// Without comments and texts.
    code: String,
}

impl Source {
    /// None for `lib.rs`, which may name every room.
    fn room(&self) -> Option<String> {
        let first = self.name.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        Some(first.to_owned()).filter(|room| room != "lib")
    }

    /// How many `super::` lead from this file's module to the root.
    fn depth(&self) -> usize {
        self.name.split('/').count()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let src = root().join("src");
    let mut files = Vec::new();
    collect(&src, &mut files);
    assert!(files.len() > 10, "the sources stand in {}", src.display());
    let read = |path: PathBuf| {
        let name = path.strip_prefix(&src).unwrap().to_str().unwrap().replace('\\', "/");
        Source { name, code: without_comments(&fs::read_to_string(&path).unwrap()) }
    };
    files.into_iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Blanks comments and string literals. Knows no raw strings with `#`: a quote in one would at worst hide code
/// up to the next quote.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("'\"'") {
            3
        } else if next == '"' {
            text_len(rest)
        } else {
            code.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        code.push(' ');
        rest = &rest[skip..];
    }
    code
}

/// The bytes of the string literal that `rest` begins with.
fn text_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The names that follow `root::` in `code`; of a group `root::{…}` each first name.
fn uses(code: &str, root: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let door = format!("{root}::");
    for (at, _) in code.match_indices(&door) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let after = &code[at + door.len()..];
        match after.strip_prefix('{') {
            Some(group) => names.extend(group_names(group)),
            None => names.extend(first_name(after)),
        }
    }
    names
}

fn first_name(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(name).filter(|name| !name.is_empty())
}

fn group_names(group: &str) -> Vec<String> {
    let (mut depth, mut item, mut names) = (0usize, String::new(), Vec::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.extend(first_name(std::mem::take(&mut item).trim_start())),
            _ if depth == 0 => item.push(c),
            _ => {}
        }
    }
    names.extend(first_name(item.trim_start()));
    names
}
