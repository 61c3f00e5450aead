//! `eventflow cert …` as an operator and a spoke's owner meet it.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use eventflow::pki::Bundle;
use sea_orm::ConnectionTrait as _;
use serde_json::Value;

use super::*;

fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// With another bundle than the operator's.
fn with_bundle(bundle: &Path, arguments: &[&str]) -> Command {
    let mut command = client(Path::new("/nowhere"), arguments);
    command.env("EVENTFLOW_BUNDLE", bundle);
    command
}

#[test]
fn a_spoke_gets_a_bundle_renews_it_and_is_shut_out() {
    let hub = Started::new();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("billing.toml");
    let out = bundle.to_str().unwrap();
    let (stdout, _) = run(hub.client(&["cert", "issue", "--out", out, "--lifetime", "30d"]), 0);
    let issued = &lines(&stdout)[0];
    let id = issued["id"].as_str().unwrap();
    assert!(id.ends_with(".EVENTFLOW-SPOKE") && issued["file"] == out, "{issued}");
    assert_eq!(fs::metadata(&bundle).unwrap().permissions().mode() & 0o777, 0o600);
    run(with_bundle(&bundle, &["publish", "orders", "created"]), 0);

    let before = fs::read_to_string(&bundle).unwrap();
    let (stdout, _) = run(with_bundle(&bundle, &["cert", "renew"]), 0);
    let renewed = &lines(&stdout)[0];
    assert_eq!(renewed["id"], id);
    assert!(renewed["not_after"].as_i64() > issued["not_after"].as_i64(), "30 days became 90: {renewed}");
    assert_ne!(fs::read_to_string(&bundle).unwrap(), before);
    assert_eq!(fs::metadata(&bundle).unwrap().permissions().mode() & 0o777, 0o600);

    let (stdout, _) = run(hub.client(&["cert", "list"]), 0);
    let states: Vec<_> =
        lines(&stdout).into_iter().filter(|row| row["id"] == id).map(|row| row["state"].clone()).collect();
    assert_eq!(states, ["current", "replaced"]);

    let (stdout, _) = run(hub.client(&["cert", "revoke", id]), 0);
    assert_eq!(lines(&stdout)[0]["versions"].as_array().unwrap().len(), 2);
    let (_, stderr) = run(with_bundle(&bundle, &["publish", "orders", "created"]), 77);
    assert!(
        stderr.contains("(E_EVENTFLOW_CERTIFICATE_REVOKED)") && stderr.contains("cert issue"),
        "{stderr}"
    );
    let (_, stderr) = run(hub.client(&["cert", "revoke", id]), 3);
    assert!(stderr.contains("(E_EVENTFLOW_CERTIFICATE_NOT_FOUND)"), "{stderr}");
}

/// Changes the hub's database as somebody else would.
fn change(hub: &Started, sql: &str) {
    // Programs are started as they come, with the database in their data folder.
    let url = format!("sqlite://{}", hub.data().join("eventflow.db").display());
    let changed = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let database = sea_orm::Database::connect(url).await.unwrap();
        let changed = database.execute_unprepared(sql).await.unwrap().rows_affected();
        database.close().await.unwrap();
        changed
    });
    assert_eq!(changed, 1, "{sql}");
}

#[test]
fn a_renewal_without_a_root_is_refused_by_name_and_the_bundle_stays() {
    let hub = Started::new();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("billing.toml");
    run(hub.client(&["cert", "issue", "--out", bundle.to_str().unwrap()]), 0);
    let before = fs::read_to_string(&bundle).unwrap();

    change(&hub, "UPDATE certificate SET version = 99 WHERE id = 'EVENTFLOW-ROOT-CA' AND version = 0");
    let (stdout, stderr) = run(with_bundle(&bundle, &["cert", "renew"]), 1);
    assert_eq!(stdout, "");
    for part in ["(E_EVENTFLOW_AUTHORITY_GONE)", "EVENTFLOW-ROOT-CA", "backup"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    assert_eq!(fs::read_to_string(&bundle).unwrap(), before);
    run(with_bundle(&bundle, &["publish", "orders", "created"]), 0);

    change(&hub, "UPDATE certificate SET version = 0 WHERE id = 'EVENTFLOW-ROOT-CA' AND version = 99");
    run(with_bundle(&bundle, &["cert", "renew"]), 0);
    assert_ne!(fs::read_to_string(&bundle).unwrap(), before);
}

#[test]
fn what_cannot_be_is_said_and_leaves_no_file_behind() {
    let hub = Started::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.toml");
    let file = out.to_str().unwrap();
    let issue = |more: &[&str]| hub.client(&[&["cert", "issue", "--out", file][..], more].concat());
    for (more, code) in [
        (&["--name", "EVENTFLOW-HUB"][..], "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME"),
        (&["--id", "a.OTHER"], "E_EVENTFLOW_INVALID_CERTIFICATE"),
        (&["--lifetime", "soon"], "E_EVENTFLOW_INVALID_CERTIFICATE"),
    ] {
        let (_, stderr) = run(issue(more), 1);
        assert!(stderr.contains(&format!("({code})")) && stderr.lines().count() == 1, "{stderr}");
        assert!(!out.exists(), "{more:?}");
    }
    fs::write(&out, "mine").unwrap();
    let (_, stderr) = run(issue(&[]), 1);
    assert!(stderr.contains("remove it, or name another one"), "{stderr}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    let (_, stderr) = run(hub.client(&["cert", "revoke", "EVENTFLOW-ROOT-CA"]), 1);
    assert!(stderr.contains("(E_EVENTFLOW_CERTIFICATE_PROTECTED)"), "{stderr}");
    // To standard output it is the file's text.
    let (stdout, _) = run(hub.client(&["cert", "issue", "--name", "SHOP", "--out", "-"]), 0);
    let bundle: toml::Table = stdout.parse().unwrap();
    assert!(["cert", "key", "root", "hubs"].iter().all(|part| bundle.contains_key(*part)), "{stdout}");
    // A name without a flag looks like the client's own, and is not taken for that of all ids.
    run(hub.client(&["cert", "issue", "billing"]), 2);
    // Without a file's name it is the id's.
    let mut command = hub.client(&["cert", "issue", "--id", "A-B-1.EVENTFLOW-SPOKE"]);
    command.current_dir(folder.path());
    run(command, 0);
    assert!(folder.path().join("A-B-1.EVENTFLOW-SPOKE.toml").exists());
}

#[test]
fn an_expired_bundle_is_told_with_what_to_do() {
    let hub = Started::new();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("short.toml");
    let out = bundle.to_str().unwrap();
    run(hub.client(&["cert", "issue", "--out", out, "--lifetime", "1s"]), 0);
    // No command looks at it before: a link would renew it.
    let deadline = std::time::Instant::now() + PATIENCE;
    let read = Bundle::read(&bundle).unwrap();
    while read.check(std::time::SystemTime::now()).is_ok() {
        assert!(std::time::Instant::now() < deadline, "it never expires");
        std::thread::yield_now();
    }
    // Every command that needs a link says the same.
    let (_, stderr) = run(with_bundle(&bundle, &["show", "a"]), 77);
    for part in ["(E_EVENTFLOW_CERTIFICATE_EXPIRED)", "short.toml", "eventflow cert issue"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    let (_, stderr) = run(with_bundle(&bundle, &["cert", "renew"]), 77);
    assert!(stderr.contains("(E_EVENTFLOW_CERTIFICATE_EXPIRED)"), "{stderr}");
}

#[test]
fn a_bundles_file_says_whose_it_is_and_revokes_it() {
    let hub = Started::new();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("billing.toml");
    let out = bundle.to_str().unwrap();
    let (stdout, _) = run(hub.client(&["cert", "issue", "--out", out]), 0);
    let id = lines(&stdout)[0]["id"].as_str().unwrap().to_owned();
    let heading = format!("# {id}, until ");
    assert!(fs::read_to_string(&bundle).unwrap().starts_with(&heading));
    run(with_bundle(&bundle, &["cert", "renew"]), 0);
    assert!(fs::read_to_string(&bundle).unwrap().starts_with(&heading), "it stays when the file is replaced");

    let (stdout, _) = run(hub.client(&["cert", "revoke", out]), 0);
    assert_eq!(lines(&stdout)[0]["id"], id.as_str());
    // The refusal is final: it is told once, and nothing is tried again.
    let (_, stderr) = run(with_bundle(&bundle, &["show", "a"]), 77);
    assert!(stderr.lines().count() == 1 && !stderr.contains("hub.id="), "{stderr}");
    let (_, stderr) = run(hub.client(&["cert", "revoke", "./nowhere.toml"]), 77);
    assert!(stderr.contains("nowhere.toml isn't there"), "{stderr}");
}

#[test]
fn a_bundle_that_others_may_read_is_remarked_on() {
    let hub = Started::new();
    let bundle = hub.data().join("operator.toml");
    let publish = ["publish", "orders", "created"];
    assert_eq!(run(hub.client(&publish), 0).1, "");
    fs::set_permissions(&bundle, fs::Permissions::from_mode(0o644)).unwrap();
    let (_, stderr) = run(hub.client(&publish), 0);
    assert!(stderr.contains("others may read") && stderr.contains("chmod 600"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_revoked_link_is_told_once() {
    let hub = Started::new();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("billing.toml");
    let out = bundle.to_str().unwrap();
    run(hub.client(&["cert", "issue", "--out", out]), 0);
    let mut command =
        with_bundle(&bundle, &["consume", "orders", "created", "--count", "2", "--timeout", "30s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    run(hub.client(&["publish", "orders", "created"]), 0);
    // It is connected when it has printed what came.
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    run(hub.client(&["cert", "revoke", out]), 0);
    let output = child.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(77), "{stderr}");
    assert_eq!(stderr.matches("was revoked").count(), 1, "{stderr}");
    assert!(!stderr.contains("trying again"), "{stderr}");
}

#[test]
fn a_damaged_bundle_is_told_in_words() {
    let hub = Started::new();
    let bundle = hub.data().join("operator.toml");
    let text = fs::read_to_string(&bundle).unwrap();
    for (part, with, said) in [
        ("-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE", "begins with no proper line"),
        ("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n!", "something else than base64"),
    ] {
        fs::write(&bundle, text.replacen(part, with, 1)).unwrap();
        let (_, stderr) = run(hub.client(&["show", "a"]), 77);
        assert!(stderr.contains(said) && !stderr.contains("[45, "), "{stderr}");
    }
}
