//! Promise: where hubs aren't to change the database's tables they refuse what isn't up to date, and `eventflow migrate`
//! tells and does what is to be done.

use std::{path::Path, process::Output};

use eventflow::{event::code, hub::Hub};
use sea_orm::ConnectionTrait;
use serde_json::Value;
use tokio::process::Command;

use crate::support::{config, engine};

/// `eventflow migrate` on the database of this data folder, or its server.
async fn migrate(what: &str, data: &Path) -> (Output, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eventflow"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("EVENTFLOW_"))
    {
        command.env_remove(name);
    }
    if let Some(url) = engine::url(data.parent().unwrap()) {
        command.env("EVENTFLOW_DATABASE_URL", url).env("EVENTFLOW_MYSQL_NPM_TIME_ZONE", "server");
    }
    let output = command.args(["migrate", what, "--data-folder"]).arg(data).output().await.unwrap();
    let told = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, told)
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn hubs_do_not_where_they_may_not_and_the_command_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = config(&folder);
    settings.store.migrate = false;
    let data = settings.data.clone();
    let start = || Hub::builder().config(settings.clone()).start();

    let error = start().await.expect_err("there are no tables");
    assert_eq!(error.code(), code::DB_SCHEMA_PENDING);
    assert!(error.to_string().contains("`eventflow migrate up`"), "{error}");
    let (output, told) = migrate("status", &data).await;
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    assert!(words(&output).contains("(E_EVENTFLOW_DB_SCHEMA_PENDING)"), "{}", words(&output));
    let pending = told["pending"].as_array().unwrap().len();
    assert!(pending > 10 && told["applied"].as_array().unwrap().is_empty(), "{told}");
    assert_eq!(told["npm_tables"], serde_json::json!([]));

    let (output, told) = migrate("up", &data).await;
    assert!(output.status.success(), "{}", words(&output));
    assert!(words(&output).contains(&format!("{pending} migrations were applied")), "{}", words(&output));
    assert_eq!(told["applied"].as_array().unwrap().len(), pending);
    assert_eq!(told["npm_tables"].as_array().unwrap().len(), 8);

    let hub = start().await.expect("the tables are up to date");
    // While a hub is at work it can be looked at.
    let (output, _) = migrate("status", &data).await;
    assert!(output.status.success(), "{}", words(&output));
    hub.shutdown().await.unwrap();

    // A newer version was here.
    let db = engine::open(&data.join("eventflow.db")).await;
    let newer = "INSERT INTO v1_migration (version, applied_at) VALUES ('m29990101_000001_later', 0)";
    db.execute_unprepared(newer).await.unwrap();
    db.close().await.unwrap();
    assert_eq!(start().await.expect_err("it is newer").code(), code::DB_SCHEMA_NEWER);
    for what in ["status", "up"] {
        let (output, _) = migrate(what, &data).await;
        assert_eq!(output.status.code(), Some(1), "{}", words(&output));
        let told = words(&output);
        assert!(
            told.contains("m29990101_000001_later") && told.contains("(E_EVENTFLOW_DB_SCHEMA_NEWER)"),
            "{told}"
        );
    }
}
