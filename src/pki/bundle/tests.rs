use std::fs;

use super::*;
use crate::pki::testing::*;

/// What reading a bundle file with this text says.
#[track_caller]
fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.toml");
    fs::write(&path, text).unwrap();
    let error = Bundle::read(&path).unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_BUNDLE");
    let text = error.to_string();
    assert!(text.contains("bundle.toml"), "{text}");
    text
}

fn toml_of(bundle: &Bundle) -> String {
    toml::to_string_pretty(bundle).unwrap()
}

#[tokio::test]
async fn what_is_written_is_read() {
    let bundle = bundle(&authority().await);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.toml");
    bundle.write_atomically(&path).unwrap();
    assert_eq!(Bundle::read(&path).unwrap(), bundle);
    assert_eq!(bundle.uid().unwrap().as_str(), SPOKE_ID);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("-----BEGIN CERTIFICATE-----\n"), "readable, not escaped: {text}");
    assert!(!format!("{bundle:?}").contains("PRIVATE KEY"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Also over a file that others could read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        bundle.write_atomically(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let authority = authority().await;
    let good = bundle(&authority);
    let missing = Bundle::read("/nowhere/bundle.toml").unwrap_err().to_string();
    assert!(missing.contains("isn't there") && missing.contains("--data-folder"), "{missing}");

    assert!(refusal("this is no toml").contains("is no bundle"));
    let without_root = toml_of(&good).replace("root = ", "toor = ");
    assert!(refusal(&without_root).contains("missing field `root`"));

    let mut keyless = good.clone();
    keyless.key = Secret::new("");
    assert!(refusal(&toml_of(&keyless)).contains("private key"));

    let mut mixed = good.clone();
    mixed.key = bundle(&authority).key;
    assert!(refusal(&toml_of(&mixed)).contains("doesn't belong to the private key"));

    let mut short = good.clone();
    short.cert.truncate(short.cert.rfind("-----BEGIN").unwrap());
    assert!(refusal(&toml_of(&short)).contains("intermediate"));

    let mut foreign = good.clone();
    foreign.root = bundle(&crate::pki::testing::authority().await).root;
    assert!(refusal(&toml_of(&foreign)).contains("isn't signed by the next one"));
}

#[tokio::test]
async fn an_expired_one_has_a_name_of_its_own() {
    let authority = authority().await;
    let old = authority.issue_bundle(SPOKE_ID, vec![], SystemTime::now() - 100 * DAY).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.toml");
    old.write_atomically(&path).unwrap();
    let error = Bundle::read(&path).unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_CERTIFICATE_EXPIRED");
    let text = error.to_string();
    for part in [SPOKE_ID, "bundle.toml", "expired at", "eventflow cert issue"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn it_knows_its_file_and_when_it_is_due() {
    let bundle = bundle(&authority().await);
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("bundle.toml"), folder.path().join("link"));
    bundle.write_atomically(&path).unwrap();
    assert_eq!(bundle.path(), None);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let path = path.canonicalize().unwrap();
        assert_eq!(Bundle::read(&link).unwrap().path(), Some(path.as_path()));
    }
    let left = bundle.renew_at().unwrap().duration_since(SystemTime::now()).unwrap();
    assert!(left <= 60 * DAY && left > 59 * DAY, "{left:?}");
}

#[tokio::test]
async fn a_refusal_never_shows_the_key() {
    let good = bundle(&authority().await);
    let body = good.key.expose().lines().nth(1).unwrap().to_owned();
    let broken = toml_of(&good).replace(&body, &format!("{body}\"\"\"'''"));
    assert!(!refusal(&broken).contains(&body));
}

#[tokio::test]
async fn the_hubs_name_comes_from_an_id_else_the_field_else_the_default() {
    let mut bundle = bundle(&authority().await);
    bundle.hub_name = Some("FIELD".to_owned());
    assert_eq!(bundle.hub_name(), "EVENTFLOW-HUB");
    bundle.hubs[0].id = Some("A-B-1.SHOP.HUBS".to_owned());
    assert_eq!(bundle.hub_name(), "SHOP.HUBS");
    bundle.hubs[0].id = None;
    assert_eq!(bundle.hub_name(), "FIELD");
    bundle.hub_name = None;
    assert_eq!(bundle.hub_name(), "EVENTFLOW-HUB");
}
