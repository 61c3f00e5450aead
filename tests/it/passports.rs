//! The passport of each actor names what the actor handles: its line **Receives** against the list that is measured.

use std::{collections::BTreeSet, fs, path::Path};

/// Files of actors.
const FOLDERS: &[&str] = &["src/actors", "src/hub"];
/// What a passport names besides, since it comes by another way than the mailbox.
const BESIDES: &[(&str, &str)] = &[("Connection", "Word")];

struct Actor {
    name: String,
    measured: BTreeSet<String>,
    received: BTreeSet<String>,
}

fn actors() -> Vec<Actor> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = FOLDERS.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let files = files.map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.filter_map(|path| actor(&fs::read_to_string(path).unwrap())).collect()
}

/// The actor of a file, if it has one.
fn actor(source: &str) -> Option<Actor> {
    let (_, list) = source.split_once("\nmeasured!(")?;
    let (list, _) = list.split_once(");").unwrap();
    let (name, list) = list.split_once(':').unwrap();
    let measured = list.split(',').map(|message| message.trim().to_owned()).collect();

    let (_, passport) =
        source.split_once("/// - **Receives**:").unwrap_or_else(|| panic!("{name}: a passport"));
    let (receives, _) =
        passport.split_once("/// - **Sends**:").unwrap_or_else(|| panic!("{name}: what it sends"));
    let links = receives.split("[`").skip(1).map(|link| link.split('`').next().unwrap().to_owned());
    let received = links.filter(|link| !BESIDES.contains(&(name, link))).collect();
    Some(Actor { name: name.to_owned(), measured, received })
}

#[test]
fn the_passport_of_each_actor_names_what_it_receives() {
    let actors = actors();
    let names: BTreeSet<_> = actors.iter().map(|actor| actor.name.as_str()).collect();
    let expected = [
        "Announcer",
        "Collector",
        "Connection",
        "Deliveries",
        "Guardian",
        "Journal",
        "Keeper",
        "Listener",
        "Monitor",
        "Registry",
        "Scheduler",
        "Warden",
    ];
    assert_eq!(names, expected.into(), "the actors of the hub");
    for Actor { name, measured, received } in &actors {
        assert_eq!(received, measured, "{name}: its passport (left) and what it measures (right)");
    }
}
