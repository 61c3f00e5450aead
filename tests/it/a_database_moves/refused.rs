//! What can't be moved is told with its reason, before anything is lost by it.

use std::{fs, path::Path};

use eventflow::hub::Hub;

use super::{done, engine, lived, run, text, words};
use crate::support::TestHub;

/// What the program says about this file, as an import into a new folder.
async fn refusal(folder: &Path, file: &Path) -> String {
    let target = folder.join(format!("target-{:08x}", fastrand::u32(..)));
    let output = run(&["import", text(file), "--to", text(&target)]).await;
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    assert!(words(&output).contains("(E_EVENTFLOW_TRANSFER)"), "{}", words(&output));
    words(&output)
}

#[tokio::test]
async fn a_file_that_is_damaged_is_told_by_its_line() {
    if engine::is_only_for_sqlite("it is the embedded database's") {
        return;
    }
    let (folder, _) = lived().await;
    let file = folder.path().join("moved.ndjson");
    done(&["export", "--from", text(&folder.path().join("data")), text(&file)]).await;
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let event = lines.iter().position(|line| line.starts_with("[\"event\"")).unwrap();
    let write = |name: &str, lines: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    };
    let changed = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        write("changed.ndjson", &lines)
    };
    let said = async |file: &Path, parts: &[&str]| {
        let said = refusal(folder.path(), file).await;
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    };

    let number = format!("line {} ", event + 1);
    let half = &lines[event][..lines[event].len() / 2];
    said(&changed(event, half), &[&number, "no JSON array", "goes on where it was"]).await;
    said(&changed(event, lines[event - 1]), &[&number]).await;
    let other = lines[event].replace("out of", "in of").replace("created", "cheated");
    said(&changed(event, &other), &["its sum differs", "hubs won't start on this database"]).await;
    said(&write("cut.ndjson", &lines[..event]), &["without its last line", "--resume"]).await;
    let mut fewer = lines.clone();
    fewer.remove(event + 1);
    said(&write("fewer.ndjson", &fewer), &["goes on where it was"]).await;
    said(&write("none.ndjson", &["[]"]), &["line 1 is no head of an export"]).await;
    let later = lines[0].replace("\"eventflow-export\":1", "\"eventflow-export\":2");
    said(&changed(0, &later), &["its format is 2, not 1"]).await;
    let column = lines[0].replacen("\"hub_id\"", "\"hub_age\"", 1);
    said(&changed(0, &column), &["hub_age", "import it by that version"]).await;
    let mut longer = lines.clone();
    longer.push("[]");
    said(&write("longer.ndjson", &longer), &["stands behind the last line"]).await;
}

#[tokio::test]
async fn no_hub_starts_on_half_an_import_and_a_mended_file_goes_on() {
    if engine::is_only_for_sqlite("it is the embedded database's") {
        return;
    }
    let (folder, _) = lived().await;
    let file = folder.path().join("moved.ndjson");
    let data = folder.path().join("data");
    let exported = done(&["export", "--from", text(&data), text(&file)]).await;
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let part = folder.path().join("part.ndjson");
    fs::write(&part, lines[..lines.len() / 2].join("\n") + "\n").unwrap();
    let target = folder.path().join("target");
    let import = async |file: &Path| run(&["import", text(file), "--to", text(&target)]).await;
    assert_eq!(import(&part).await.status.code(), Some(1));

    fs::copy(data.join("key-phrase"), target.join("key-phrase")).unwrap();
    let start = || Hub::builder().data(&target).free_ports().start();
    let error = start().await.expect_err("half of it is in");
    assert!(error.to_string().contains("`eventflow import`"), "{error}");
    assert_eq!(error.code(), eventflow::event::code::TRANSFER);
    let half = run(&["export", "--from", text(&target), text(&folder.path().join("x"))]).await;
    assert!(words(&half).contains("isn't over"), "{}", words(&half));

    let imported = import(&file).await;
    assert!(imported.status.success(), "{}", words(&imported));
    let imported: serde_json::Value = serde_json::from_slice(&imported.stdout).unwrap();
    assert_eq!(imported["states"], exported["states"]);
    start().await.expect("it is whole").shutdown().await.unwrap();
}

#[tokio::test]
async fn a_database_in_use_or_with_rows_is_refused() {
    let hub = TestHub::start().await;
    let from = engine::url(hub.folder.path()).unwrap_or_else(|| text(&hub.data()).to_owned());
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("moved.ndjson");
    for command in [&["export", "--from", &from, text(&file)][..], &["import", text(&file), "--to", &from]] {
        let mut command = super::program(command);
        let output = command.env("EVENTFLOW_MYSQL_NPM_TIME_ZONE", "server").output().await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(words(&output).contains("(E_EVENTFLOW_DB_IN_USE)"), "{}", words(&output));
        assert!(!file.exists());
    }
    let folder = hub.stop().await;
    if engine::server().is_some() {
        return;
    }
    done(&["export", "--from", &from, text(&file)]).await;
    let used = run(&["import", text(&file), "--to", &from]).await;
    assert!(words(&used).contains("isn't empty"), "{}", words(&used));
    let nothing = run(&["export", "--from", text(&folder.path().join("nothing")), "-"]).await;
    assert!(words(&nothing).contains("no database in"), "{}", words(&nothing));
    assert!(!folder.path().join("nothing").exists(), "looking makes nothing");
}
