//! What an operator asks a hub, and what the command line says when the hub doesn't answer.

use super::*;

#[test]
fn hub_status_finds_the_hub_by_its_data_folder() {
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created"]), 0);
    let (stdout, _) = run(hub.client(&["hub", "status"]), 0);
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    let status: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&status["state"], &status["epoch"], &status["published"]),
        (&"ready".into(), &1.into(), &1.into())
    );
    assert!(hub.banner.contains(status["hub"].as_str().unwrap()), "{status}");
    assert!(status["database_bytes"].as_u64().unwrap() > 0, "{status}");

    let address = std::fs::read_to_string(hub.data().join("admin-address")).unwrap();
    let token = std::fs::read_to_string(hub.data().join("admin-token")).unwrap();
    let nowhere = Path::new("/nowhere");
    let named = ["hub", "status", "--admin", address.trim()];
    run(client(nowhere, &[&named[..], &["--admin-token", token.trim()]].concat()), 0);
    let (_, stderr) = run(client(nowhere, &named), 77);
    assert!(stderr.contains("(E_EVENTFLOW_ADMIN_TOKEN)") && stderr.contains("--data-folder"), "{stderr}");
    let wrong = "0".repeat(64);
    let (_, stderr) = run(client(nowhere, &[&named[..], &["--admin-token", &wrong]].concat()), 77);
    assert!(stderr.contains("doesn't take this admin token"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_hub_that_is_gone_leaves_no_address_behind() {
    let mut hub = Started::new();
    let data = hub.data.take().unwrap();
    assert!(data.path().join("admin-address").exists());
    assert_eq!(hub.stop("TERM"), Some(0));
    assert!(!data.path().join("admin-address").exists());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (_, stderr) = run(client(data.path(), &["hub", "status", "--admin", &nobody]), 69);
    assert!(stderr.contains("(E_EVENTFLOW_NO_HUB)"), "{stderr}");
}

#[test]
fn a_named_folder_without_admin_http_is_not_taken_for_another_hub() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("admin-token"), "0".repeat(64)).unwrap();
    for command in [&["hub", "status"][..], &["cert", "list"]] {
        let (_, stderr) = run(client(folder.path(), command), 69);
        let path = folder.path().to_str().unwrap();
        assert!(stderr.contains("no hub with admin HTTP runs") && stderr.contains(path), "{stderr}");
    }
}

#[test]
fn a_log_level_for_nobody_is_doubted() {
    let hub = Started::new();
    let (_, stderr) = run(hub.client(&["hub", "log-level", "evenflow=debug,info"]), 0);
    assert!(stderr.contains("no part of Eventflow is called \"evenflow\""), "{stderr}");
    let (_, stderr) = run(hub.client(&["hub", "log-level", "eventflow::store=debug,info"]), 0);
    assert_eq!(stderr, "");
}
