use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
    x509::X509Version,
};

use super::*;
use crate::pki::{Vault, testing::*};

async fn established(rows: &MemoryRows, lifetimes: Lifetimes, now: SystemTime) -> Authority {
    establish(rows, &vault(), &names(), lifetimes, now).await.unwrap()
}

/// The current certificate of each id.
fn standing(rows: &MemoryRows) -> Vec<(String, String)> {
    let rows = rows.0.lock().unwrap();
    let current = rows.iter().filter(|row| row.version == 0);
    current.map(|row| (row.id.clone(), row.cert.clone())).collect::<BTreeSet<_>>().into_iter().collect()
}

fn changed(before: &[(String, String)], after: &[(String, String)]) -> Vec<String> {
    after.iter().filter(|row| !before.contains(row)).map(|(id, _)| id.clone()).collect()
}

fn now() -> SystemTime {
    from_unix(i64::from(1_800_000_000_u32))
}

fn from_unix(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap())
}

/// What stands in a certificate, extension by extension: its name, whether critical, its content.
fn extensions(certificate: &X509Certificate<'_>) -> Vec<(&'static str, bool, String)> {
    let mut found: Vec<_> = certificate
        .extensions()
        .iter()
        .map(|extension| {
            let (name, content) = match extension.parsed_extension() {
                ParsedExtension::BasicConstraints(basic) => {
                    ("basicConstraints", format!("{} {:?}", basic.ca, basic.path_len_constraint))
                }
                ParsedExtension::KeyUsage(usage) => ("keyUsage", usage.to_string()),
                ParsedExtension::ExtendedKeyUsage(usage) => (
                    "extKeyUsage",
                    format!("server {} client {} {:?}", usage.server_auth, usage.client_auth, usage.other),
                ),
                ParsedExtension::NameConstraints(names) => (
                    "nameConstraints",
                    format!(
                        "{:?} {:?}",
                        names.permitted_subtrees.iter().flatten().map(|tree| &tree.base).collect::<Vec<_>>(),
                        names.excluded_subtrees
                    ),
                ),
                ParsedExtension::SubjectAlternativeName(names) => {
                    ("SAN", format!("{:?}", names.general_names))
                }
                ParsedExtension::SubjectKeyIdentifier(_) => ("SKI", String::new()),
                ParsedExtension::AuthorityKeyIdentifier(key) => (
                    "AKI",
                    format!(
                        "{} {} {}",
                        key.key_identifier.is_some(),
                        key.authority_cert_issuer.is_some(),
                        key.authority_cert_serial.is_some()
                    ),
                ),
                other => panic!("no other extension belongs there: {other:?}"),
            };
            (name, extension.critical, content)
        })
        .collect();
    found.sort();
    found
}

fn ski<'a>(certificate: &'a X509Certificate<'_>) -> &'a [u8] {
    let found = certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
        _ => None,
    });
    found.unwrap()
}

/// The AKI names exactly this issuer.
fn assert_points_to(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) {
    let aki = certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(aki) => Some(aki),
        _ => None,
    });
    let aki = aki.unwrap();
    assert_eq!(aki.key_identifier.as_ref().unwrap().0, ski(issuer));
    assert_eq!(aki.authority_cert_serial.unwrap(), issuer.raw_serial());
    match aki.authority_cert_issuer.as_deref().unwrap() {
        [GeneralName::DirectoryName(name)] => assert_eq!(name.as_raw(), issuer.issuer().as_raw()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn certificates_have_the_shape_that_npm_makes() {
    let authority = established(&MemoryRows::default(), Lifetimes::default(), now()).await;
    let chain = authority.hub_identity().chain();
    assert_eq!(chain.len(), 2);
    let root = x509::parse(authority.root(), "root").unwrap();
    let intermediate = x509::parse(&chain[1], "intermediate").unwrap();
    let leaf = x509::parse(&chain[0], "leaf").unwrap();
    let text = str::to_owned;
    let (ca, cert_sign) = ("basicConstraints", text("Key Cert Sign, CRL Sign"));

    assert_eq!(
        extensions(&root),
        [
            ("AKI", false, text("true false false")),
            ("SKI", false, text("")),
            (ca, true, text("true Some(1)")),
            ("keyUsage", true, cert_sign.clone()),
        ]
    );
    let names = "[DNSName(\".eventflow-hub\"), IPAddress([127, 0, 0, 1, 255, 255, 255, 255])] None";
    assert_eq!(
        extensions(&intermediate),
        [
            ("AKI", false, text("true true true")),
            ("SKI", false, text("")),
            (ca, true, text("true Some(0)")),
            ("keyUsage", true, cert_sign),
            ("nameConstraints", true, text(names)),
        ]
    );
    let names = format!("[DNSName(\"{}\"), IPAddress([127, 0, 0, 1])]", HUB_ID.to_ascii_lowercase());
    assert_eq!(
        extensions(&leaf),
        [
            ("AKI", false, text("true true true")),
            ("SAN", true, names),
            ("SKI", false, text("")),
            (ca, false, text("false None")),
            ("extKeyUsage", false, text("server true client true []")),
            ("keyUsage", true, text("Digital Signature, Key Encipherment")),
        ]
    );

    let days = |days: i64| days * 86_400;
    for (certificate, subject, issuer, life) in [
        (&root, ROOT_ID, ROOT_ID, days(3_650)),
        (&intermediate, "EVENTFLOW-HUB", ROOT_ID, days(365)),
        (&leaf, HUB_ID, "EVENTFLOW-HUB", days(7)),
    ] {
        assert_eq!(certificate.version(), X509Version::V3);
        assert_eq!(certificate.subject().iter().count(), 1, "the UID is all there is");
        assert_eq!(x509::subject_uid(certificate).unwrap(), subject);
        assert_eq!(certificate.issuer().iter_attributes().next().unwrap().as_str().unwrap(), issuer);
        assert_eq!(certificate.signature_algorithm.algorithm.to_id_string(), "1.3.101.112");
        let (start, end) = x509::lifetime(certificate);
        assert_eq!((start, end), (1_800_000_000 - 300, 1_800_000_000 + life));
        assert_eq!(certificate.raw_serial().len(), 20);
    }
    assert_points_to(&intermediate, &root);
    assert_points_to(&leaf, &intermediate);
}

#[tokio::test]
async fn openssl_agrees() {
    let authority = authority().await;
    let issued = authority.issue_spoke_leaf(SPOKE_ID, SystemTime::now()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let root = file("root.pem", &authority.root_pem());
    let chain = file("chain.pem", &issued.cert);
    let key = file("key.pem", issued.key.expose());
    let verify =
        ["verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", &root, "-untrusted", &chain, &chain];
    let Some(output) = openssl(&verify) else { return };
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let text =
        String::from_utf8(openssl(&["x509", "-text", "-noout", "-in", &chain]).unwrap().unwrap().stdout);
    let text = text.unwrap();
    for part in [
        "Subject: UID = KEEN-WREN-MX000002.EVENTFLOW-SPOKE",
        "Issuer: UID = EVENTFLOW-SPOKE",
        "DNS:keen-wren-mx000002.eventflow-spoke, IP Address:127.0.0.1",
        "X509v3 Subject Alternative Name: critical",
        "DirName:/UID=EVENTFLOW-ROOT-CA",
        "CA:FALSE",
        "TLS Web Server Authentication, TLS Web Client Authentication",
    ] {
        // OpenSSL 3.2 and later write no spaces around `=`.
        assert!(text.contains(part) || text.contains(&part.replace(" = ", "=")), "{part:?} in {text}");
    }
    // It reads the key, and it is the certificate's.
    let public = |arguments: &[&str]| openssl(arguments).unwrap().unwrap().stdout;
    let of_key = public(&["pkey", "-pubout", "-in", &key]);
    assert!(!of_key.is_empty());
    assert_eq!(of_key, public(&["x509", "-pubkey", "-noout", "-in", &chain]));
    let print =
        String::from_utf8(public(&["x509", "-fingerprint", "-sha256", "-noout", "-in", &root])).unwrap();
    assert!(print.trim_end().ends_with(&authority.root_fingerprint()), "{print}");
}

#[tokio::test]
async fn what_stands_is_used_again() {
    let rows = MemoryRows::default();
    let first = established(&rows, Lifetimes::default(), now()).await;
    let before = standing(&rows);
    assert_eq!(before.len(), 4, "root, two intermediates, the hub's leaf");
    let second = established(&rows, Lifetimes::default(), now() + 4 * DAY).await;
    assert_eq!(standing(&rows), before);
    assert_eq!(first.root_fingerprint(), second.root_fingerprint());
    assert_eq!(first.hub_identity().chain(), second.hub_identity().chain());
    assert_eq!(first.hub_identity().key(), second.hub_identity().key());
}

#[tokio::test]
async fn hubs_and_spokes_of_one_name_share_its_intermediate() {
    let rows = MemoryRows::default();
    let names = Names { spoke_name: "eventflow-hub".to_owned(), ..names() };
    let authority = establish(&rows, &vault(), &names, Lifetimes::default(), now()).await.unwrap();
    assert_eq!(standing(&rows).len(), 3);
    authority.issue_spoke_leaf("A-B-1.EVENTFLOW-HUB", now()).unwrap();
}

#[tokio::test]
async fn the_hubs_leaf_is_renewed_at_two_thirds_of_its_life() {
    let rows = MemoryRows::default();
    let first = established(&rows, Lifetimes::default(), now()).await;
    let before = standing(&rows);
    // 7 days from the issue; the five minutes before it don't count.
    let due = now() + Duration::from_secs(7 * 86_400 / 3 * 2);
    assert_eq!(first.renew_at(), due);
    established(&rows, Lifetimes::default(), due - Duration::from_secs(1)).await;
    assert_eq!(standing(&rows), before);
    let second = established(&rows, Lifetimes::default(), due).await;
    assert_eq!(changed(&before, &standing(&rows)), [HUB_ID]);
    assert!(second.renew_at() > due);
    // The old row has the next version, and isn't revoked.
    let rows = rows.0.lock().unwrap();
    let versions: Vec<_> =
        rows.iter().filter(|row| row.id == HUB_ID).map(|row| (row.version, row.revoked)).collect();
    assert_eq!(versions, [(1, None), (0, None)]);
}

#[tokio::test]
async fn shared_certificates_stay_until_ten_minutes_before_their_end() {
    let rows = MemoryRows::default();
    established(&rows, Lifetimes::default(), now()).await;
    let before = standing(&rows);
    let end = now() + 365 * DAY;
    established(&rows, Lifetimes::default(), end - Duration::from_secs(601)).await;
    let between = standing(&rows);
    assert_eq!(changed(&before, &between), [HUB_ID]);
    // No certificate outlives its issuer.
    let hub = between.iter().find(|(id, _)| id == HUB_ID).unwrap();
    let chain = x509::pem_chain(&hub.1, "hub").unwrap();
    assert_eq!(x509::lifetime(&x509::parse(&chain[0], "hub").unwrap()).1, 1_800_000_000 + 365 * 86_400);

    established(&rows, Lifetimes::default(), end - Duration::from_secs(600)).await;
    let after = standing(&rows);
    assert_eq!(changed(&between, &after), [HUB_ID, "EVENTFLOW-HUB", "EVENTFLOW-SPOKE"]);
}

#[tokio::test]
async fn a_new_root_makes_all_below_it_anew() {
    let rows = MemoryRows::default();
    established(&rows, Lifetimes::default(), now()).await;
    let before = standing(&rows);
    let root = rows.0.lock().unwrap().iter().find(|row| row.id == ROOT_ID).cloned().unwrap();
    rows.retire(&root).await.unwrap();
    let authority = established(&rows, Lifetimes::default(), now()).await;
    assert_eq!(changed(&before, &standing(&rows)).len(), 4);
    authority.issue_bundle(SPOKE_ID, vec![], now()).unwrap().check(now()).unwrap();
}

#[tokio::test]
async fn lives_of_seconds_work() {
    let short = Duration::from_secs(90);
    let lifetimes =
        Lifetimes { root: 4 * short, intermediate: 2 * short, hub_leaf: short, spoke_leaf: short };
    let rows = MemoryRows::default();
    let mut now = now();
    let first = established(&rows, lifetimes, now).await;
    assert_eq!(first.renew_at(), now + Duration::from_secs(60));
    for _ in 0..20 {
        let authority = established(&rows, lifetimes, now).await;
        authority.issue_bundle(SPOKE_ID, vec![], now).unwrap().check(now).unwrap();
        assert!(authority.renew_at() > now, "it must not spin");
        now = authority.renew_at();
    }
}

#[tokio::test]
async fn two_hubs_that_start_at_once_end_up_under_one_root() {
    let rows = MemoryRows::default();
    // The second time over an expiring set, which both want to replace.
    for now in [now(), now() + 3_650 * DAY - Duration::from_secs(60)] {
        let other = Names { hub_id: "BOLD-TERN-MX000009.EVENTFLOW-HUB".to_owned(), ..names() };
        let (one, two) = (names(), other);
        let (vault_one, vault_two) = (vault(), vault());
        let (one, two) = tokio::join!(
            establish(&rows, &vault_one, &one, Lifetimes::default(), now),
            establish(&rows, &vault_two, &two, Lifetimes::default(), now),
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.root(), two.root());
        assert_eq!(one.hub_identity().chain()[1], two.hub_identity().chain()[1]);
        assert_eq!(one.spoke_intermediate(), two.spoke_intermediate());
        let current = standing(&rows);
        assert_eq!(current.len(), 5);
        assert!(current.contains(&(ROOT_ID.to_owned(), one.root_pem())));
    }
}

#[tokio::test]
async fn a_wrong_phrase_names_the_certificate() {
    let rows = MemoryRows::default();
    established(&rows, Lifetimes::default(), now()).await;
    let before = standing(&rows);
    let other = Vault::new(Secret::new("another phrase"), 10).unwrap();
    let error = establish(&rows, &other, &names(), Lifetimes::default(), now()).await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_VAULT");
    assert!(error.to_string().contains(ROOT_ID), "{error}");
    assert_eq!(standing(&rows), before, "nothing is thrown away");
}

#[tokio::test]
async fn names_and_ids_are_checked() {
    let rows = MemoryRows::default();
    for (names, code) in [
        (Names { hub_name: "a b".to_owned(), ..names() }, "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME"),
        (Names { spoke_name: String::new(), ..names() }, "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME"),
        (Names { hub_id: "A-B-1.OTHER".to_owned(), ..names() }, "E_EVENTFLOW_CERTIFICATE"),
    ] {
        let error = establish(&rows, &vault(), &names, Lifetimes::default(), now()).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    let authority = authority().await;
    for uid in ["A-B-1.EVENTFLOW-HUB", ".EVENTFLOW-SPOKE", "EVENTFLOW-SPOKE", "A_B*.EVENTFLOW-SPOKE", ""] {
        assert!(authority.issue_spoke_leaf(uid, SystemTime::now()).is_err(), "{uid}");
    }
}
