use std::time::Duration;

use super::{
    CertificateSettings, Durability, FileText, Flag, HubConfig, Keep, Loaded, Origin, Problem, QuitSignal,
    help, load, table::SETTINGS,
};
use crate::event::code;

fn file(text: &str) -> Option<FileText<'_>> {
    Some(FileText { path: "hub.toml", text })
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn flags(pairs: &[(&str, &str)]) -> Vec<Flag> {
    pairs
        .iter()
        .map(|(name, value)| Flag { name: (*name).to_owned(), value: Some((*value).to_owned()) })
        .collect()
}

fn problems(result: Result<Loaded, super::ConfigProblems>) -> Vec<Problem> {
    result.expect_err("should be refused").problems
}

fn from_variables(pairs: &[(&str, &str)]) -> Loaded {
    load(None, variables(pairs), []).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A valid value for each setting that differs from its default, as text.
fn sample(key: &str) -> &'static str {
    match key {
        "data" => "/tmp/hub",
        "orphan_keep" => "forever",
        "expire_after" => "2d",
        key if key.starts_with("keep_") => "30d",
        "retention.interval" => "5s",
        "hub.name" => "MY-HUB",
        "spoke.name" => "MY-SPOKE",
        "hub.internal_ip" | "admin.ip" => "127.0.0.2",
        "hub.external_ip" => "hub.example.org",
        "hub.internal_port" | "hub.external_port" | "admin.port" => "50099",
        "hub.signal_quit" => "SIGQUIT",
        "store.url" => "postgres://h/d",
        "mysql.socket_path" => "/run/x",
        "mysql.pass" => "***",
        "mysql.npm_time_zone" => "server",
        "store.durability" => "relaxed",
        "log.format" => "json",
        "log.level" => "debug",
        "limits.data_bytes" => "2 MiB",
        "certificates.phrase" => "***",
        "certificates.cipher" => "aes-192-gcm",
        "certificates.hash" => "sha384",
        "admin.enabled" | "spokes.may_delete" => "false",
        "limits.silence" | "groups.max_delay" => "70s",
        key if key.ends_with("bytes") => "9 MiB",
        key if key.starts_with("certificates.") && !key.ends_with("iterations") => "25h",
        "limits.handshake"
        | "limits.drain"
        | "limits.lease"
        | "limits.ping"
        | "limits.late_window"
        | "schedules.poll"
        | "schedules.npm_overdue"
        | "groups.delay"
        | "collect.interval"
        | "collect.age" => "50s",
        key if key.starts_with("npm.") => "50s",
        _ => "33",
    }
}

fn value_and_origin(loaded: &Loaded, key: &str) -> (String, Origin) {
    let found = loaded.effective().find(|(other, ..)| *other == key);
    found.map(|(_, value, origin)| (value, origin)).expect("every setting is listed")
}

#[test]
fn every_setting_can_be_set_by_file_variable_and_flag() {
    for setting in SETTINGS {
        let wanted = sample(setting.key);
        assert_ne!(
            (setting.show)(&HubConfig::default()),
            wanted,
            "{}: the sample is the default",
            setting.key
        );
        let text = match setting.key.split_once('.') {
            Some((section, key)) => format!("# a comment\n[{section}]\n{key} = \"{wanted}\"\n"),
            None => format!("\n\n{} = \"{wanted}\"\n", setting.key),
        };
        let by_file = load(file(&text), [], []).unwrap_or_else(|problems| panic!("{problems}"));
        let by_variable = load(None, variables(&[(&setting.variable(), wanted)]), []).unwrap();
        let by_flag = load(None, [], flags(&[(&setting.flag(), wanted)])).unwrap();

        let origin = Origin::File { path: "hub.toml".to_owned(), line: 3 };
        assert_eq!(value_and_origin(&by_file, setting.key), (wanted.to_owned(), origin));
        let origin = Origin::Variable(setting.variable());
        assert_eq!(value_and_origin(&by_variable, setting.key), (wanted.to_owned(), origin));
        let origin = Origin::Flag(setting.flag());
        assert_eq!(value_and_origin(&by_flag, setting.key), (wanted.to_owned(), origin));
        assert_eq!(by_file.config, by_variable.config, "{}", setting.key);
        assert_eq!(by_file.config, by_flag.config, "{}", setting.key);
        assert!(by_variable.warnings.is_empty(), "{:?}", by_variable.warnings);
    }
}

#[test]
fn every_default_can_be_written_back() {
    for setting in SETTINGS {
        let shown = (setting.show)(&HubConfig::default());
        if shown.starts_with('(') {
            continue; // not set
        }
        let loaded = load(None, [], flags(&[(&setting.flag(), &shown)])).unwrap();
        assert_eq!(loaded.config, HubConfig::default(), "{} = {shown}", setting.key);
    }
}

#[test]
fn nothing_set_gives_the_defaults() {
    let loaded = load(None, variables(&[("PATH", "/bin"), ("EVENTFLOW_HUB_NAME", "")]), []).unwrap();
    assert_eq!(loaded.config, HubConfig::default());
    assert!(loaded.warnings.is_empty());
    assert!(loaded.effective().all(|(_, _, origin)| origin == Origin::Default));
}

#[test]
fn flags_override_variables_and_those_the_file() {
    let text = "[limits]\nping = \"1s\"\ndrain = \"1s\"\nhandshake = \"1s\"\nunits = 32\n";
    let given = variables(&[("EVENTFLOW_LIMITS_DRAIN", "2s"), ("EVENTFLOW_LIMITS_HANDSHAKE", "2s")]);
    let limits = load(file(text), given, flags(&[("limits-handshake", "3s")])).unwrap().config.limits;
    assert_eq!(limits.ping, Duration::from_secs(1));
    assert_eq!(limits.drain, Duration::from_secs(2));
    assert_eq!(limits.handshake, Duration::from_secs(3));
    assert_eq!(limits.units, 32);
}

#[test]
fn unknown_keys_and_flags_are_refused_with_the_nearest() {
    let cases = [
        ("[limits]\npnig = \"1s\"\n", "hub.toml:2: limits.pnig is not a setting; did you mean limits.ping?"),
        ("ping = \"1s\"\n", "hub.toml:1: ping is not a setting; did you mean limits.ping?"),
        ("[limit]\nping = \"1s\"\n", "hub.toml:1: limit is not a section; did you mean [limits]?"),
        ("limits = 3\n", "hub.toml:1: limits is a section: write [limits] and its settings below"),
        ("wholly_different = 1\n", "hub.toml:1: wholly_different is not a setting"),
        ("[limits]\nping = [1]\n", "hub.toml:2: limits.ping must be one text, number, or true or false"),
        (
            "[store]\nurl = \"mysql://a\"\n",
            "hub.toml:2: store.url = \"***\" must name host and database, such as postgres://",
        ),
    ];
    for (text, sentence) in cases {
        let found = problems(load(file(text), [], []));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.starts_with(sentence), "{}\n{sentence}", found[0].message);
        assert_eq!(found[0].code, code::INVALID_CONFIG);
    }
    let found = problems(load(None, [], flags(&[("hub-nmae", "a")])));
    assert_eq!(found[0].message, "--hub-nmae is not a flag; did you mean --hub-name?");
    let found = problems(load(None, [], flags(&[("pnig", "a")])));
    assert_eq!(found[0].message, "--pnig is not a flag; did you mean --limits-ping?");
    let bare = Flag { name: "hub-name".to_owned(), value: None };
    assert_eq!(problems(load(None, [], [bare]))[0].message, "--hub-name needs a value: --hub-name NAME");
}

#[test]
fn a_broken_line_is_told_alone_and_warnings_with_it() {
    for (text, line) in [
        ("[limits]\nping =\n", 2),
        ("[limits\nping = \"5s\"\n", 1),
        ("[hub]\ninternal_ip = \"0.0.0.0\"\nexternal_ip = 192.0.2.7\n", 3),
        ("data = \"/tmp\n[limits]\npnig = 1\n", 1),
        ("[limits]\nunits 32\n[log]\nlevel = \"info\"\n", 2),
    ] {
        let refused = load(file(text), variables(&[("EVENTFLOW_HUB_NMAE", "a")]), []).unwrap_err();
        let start = format!("hub.toml:{line}: not TOML: ");
        assert!(refused.to_string().starts_with(&start), "{text}{refused}");
        assert_eq!(refused.problems.len(), 1, "{text}{refused}");
        assert_eq!(refused.warnings.len(), 1, "{:?}", refused.warnings);
    }
}

#[test]
fn all_problems_are_told_at_once_each_with_its_place() {
    let text = "\n[hub]\nname = \"a b\"\ninternal_port = 70000\n[log]\nlevl = \"info\"\noops\n";
    let given = variables(&[
        ("EVENTFLOW_LIMITS_PING", "30"),
        ("EVENTFLOW_MYSQL_PORT", "0"),
        ("EVENTFLOW_DATABASE_URL", "postgres://u:secret-of-db@h"),
    ]);
    let found = problems(load(file(text), given, flags(&[("limits-units", "1"), ("bogus", "1")])));
    let all = super::ConfigProblems { problems: found, warnings: Vec::new() }.to_string();
    for sentence in [
        "hub.toml:7: not TOML: ",
        "hub.toml:3: hub.name = \"a b\" must hold only letters, digits, dots and hyphens, at least one \
         (E_EVENTFLOW_HUB_INVALID_CONFIG_NAME)",
        "hub.toml:4: hub.internal_port = \"70000\" must be a port from 0 to 65535 (E_EVENTFLOW_INVALID_CONFIG)",
        "hub.toml:6: log.levl is not a setting; did you mean log.level?",
        "EVENTFLOW_LIMITS_PING (limits.ping) = \"30\" must be a number and a unit",
        "EVENTFLOW_MYSQL_PORT (mysql.port) = \"0\" must be from 1 to 65535",
        "EVENTFLOW_DATABASE_URL (store.url) = \"***\" must name host and database",
        "--limits-units (limits.units) = \"1\" must be from 16 to 4096",
        "--bogus is not a flag",
    ] {
        assert!(all.contains(sentence), "{sentence}\nis not in\n{all}");
    }
    assert_eq!(all.lines().count(), 9, "{all}");
    assert!(!all.contains("secret-of-db"));
}

#[test]
fn settings_must_agree() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("limits-silence", "30s")],
            "limits.silence = 30s (--limits-silence), limits.ping = 30s (default): silence must be longer",
        ),
        (
            &[("admin-port", "50001")],
            "admin.port = 50001 (--admin-port), hub.internal_port = 50001 (default): ",
        ),
        (&[("hub-internal-ip", "0.0.0.0")], "hub.internal_ip = 0.0.0.0 (--hub-internal-ip), hub.external_ip"),
        (
            &[("spoke-name", "eventflow-hub")],
            "hub.name = EVENTFLOW-HUB (default), spoke.name = eventflow-hub",
        ),
        (&[("spoke-name", "a.EVENTFLOW-HUB")], "hub.name = EVENTFLOW-HUB (default), spoke.name"),
        (
            &[("limits-data-bytes", "8 MiB")],
            "limits.outbound_bytes = 8 MiB (default), limits.data_bytes = 8 MiB",
        ),
        (
            &[("limits-data-bytes", "2 MiB"), ("limits-queue-bytes", "2 MiB")],
            "limits.queue_bytes = 2 MiB (--limits-queue-bytes), limits.data_bytes",
        ),
    ];
    for (given, sentence) in cases {
        let found = problems(load(None, [], flags(given)));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.starts_with(sentence), "{}\n{sentence}", found[0].message);
    }
    for fine in [
        &[("admin-port", "50001"), ("admin-enabled", "false")][..],
        &[("admin-port", "50001"), ("admin-ip", "127.0.0.2")],
        &[("admin-port", "0"), ("hub-internal-port", "0")],
        &[("hub-internal-ip", "0.0.0.0"), ("hub-external-ip", "hub.example.org")],
    ] {
        assert!(load(None, [], flags(fine)).is_ok(), "{fine:?}");
    }
    // What can't be read isn't blamed a second time.
    assert_eq!(problems(load(None, [], flags(&[("limits-silence", "1"), ("limits-ping", "2d")]))).len(), 2);
}

#[test]
fn npm_variables_are_honoured() {
    let config = from_variables(&[
        ("EVENTFLOW_HUB_NAME", "Orders.Hub"),
        ("EVENTFLOW_SPOKE_NAME", "Orders.Spoke"),
        ("EVENTFLOW_HUB_SIGNAL_QUIT", "SIGINT"),
        ("EVENTFLOW_HUB_INTERNAL_IP", "10.0.0.1"),
        ("EVENTFLOW_HUB_INTERNAL_PORT", "6000"),
        ("EVENTFLOW_HUB_EXTERNAL_IP", "10.0.0.2"),
        ("EVENTFLOW_HUB_EXTERNAL_PORT", "6001"),
        ("EVENTFLOW_HUB_KEEP_ALIVE_INTERVAL", "45000"),
        ("EVENTFLOW_HUB_PEER_HUB_ONLINE_TIMEOUT", "2500"),
        ("EVENTFLOW_CERT_PASS_ENCRYPTION_KEY", " correct horse "),
        ("EVENTFLOW_CERT_ROOT_DAYS", "100"),
        ("EVENTFLOW_HUB_CERT_LEAF_DAYS", "3"),
        ("EVENTFLOW_CERT_PASS_PBKDF2_ITERATIONS", "5000"),
    ])
    .config;
    assert_eq!(config.hub.name.as_str(), "Orders.Hub");
    assert_eq!(config.hub.spoke_name.as_str(), "Orders.Spoke");
    assert_eq!(config.hub.signal_quit, QuitSignal::Int);
    assert_eq!(config.hub.internal_ip.to_string(), "10.0.0.1");
    assert_eq!(config.hub.external_host(), "10.0.0.2");
    assert_eq!((config.hub.internal_port, config.hub.external_port), (6000, Some(6001)));
    assert_eq!(config.npm.keep_alive, Duration::from_secs(45));
    assert_eq!(config.npm.online_timeout, Duration::from_millis(2_500));
    let day = Duration::from_secs(86_400);
    assert_eq!(config.certificates.phrase.as_ref().map(|phrase| phrase.reveal()), Some(" correct horse "));
    assert_eq!(config.certificates.root, 100 * day);
    assert_eq!(config.certificates.intermediate, 30 * day, "npm's default, since a phrase is set");
    assert_eq!(config.certificates.hub_leaf, 3 * day);
    assert_eq!(config.certificates.iterations, 5_000);

    for spelling in ["EVENTFLOW_HUB_SHEDULED_INTERVAL_DELAY", "EVENTFLOW_HUB_SCHEDULED_INTERVAL_DELAY"] {
        let config = from_variables(&[(spelling, "250")]).config;
        assert_eq!(config.schedules.poll, Duration::from_millis(250), "npm's spelling and the right one");
    }

    let both = [("EVENTFLOW_CERT_ROOT_DAYS", "100"), ("EVENTFLOW_CERTIFICATES_ROOT", "4000d")];
    assert_eq!(from_variables(&both).config.certificates.root, 4_000 * day, "our own name holds");
}

#[test]
fn variables_without_meaning_get_one_warning_each() {
    let cases = [
        ("EVENTFLOW_CERT_ALGORITHM", "EVENTFLOW_CERT_ALGORITHM has no effect: this hub makes Ed25519 keys"),
        ("EVENTFLOW_HUB_CERT_ALGORITHM", "EVENTFLOW_HUB_CERT_ALGORITHM has no effect"),
        ("EVENTFLOW_CERT_HASH", "EVENTFLOW_CERT_HASH has no effect"),
        ("EVENTFLOW_HUB_SPOKE_ID_MESSAGE_TIMEOUT", "EVENTFLOW_HUB_SPOKE_ID_MESSAGE_TIMEOUT has no effect"),
        ("EVENTFLOW_SPOKE_CONNECT_TO_HUB_TIMEOUT", "EVENTFLOW_SPOKE_CONNECT_TO_HUB_TIMEOUT has no effect"),
        ("EVENTFLOW_HUB_NMAE", "EVENTFLOW_HUB_NMAE is not a setting; did you mean EVENTFLOW_HUB_NAME?"),
        ("EVENTFLOW_SOMETHING_ELSE", "EVENTFLOW_SOMETHING_ELSE is not a setting"),
    ];
    for (name, sentence) in cases {
        let loaded = from_variables(&[(name, "1")]);
        assert_eq!(loaded.config, HubConfig::default());
        assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
        assert!(loaded.warnings[0].0.starts_with(sentence), "{}", loaded.warnings[0]);
    }
    let quiet =
        from_variables(&[("EVENTFLOW_BUNDLE", "a"), ("EVENTFLOW_HUB", "b"), ("EVENTFLOW_CONFIG", "c")]);
    assert!(quiet.warnings.is_empty());
}

#[test]
fn other_servers_and_nonsense_are_refused() {
    let cases = [
        (
            "EVENTFLOW_DATABASE_URL",
            "oracle://u:pw@h/d",
            "EVENTFLOW_DATABASE_URL (store.url) = \"***\" must begin with",
        ),
        (
            "EVENTFLOW_STORE_URL",
            "sqlite://a",
            "EVENTFLOW_STORE_URL (store.url) = \"***\" is the embedded database's",
        ),
        (
            "EVENTFLOW_CERT_ROOT_DAYS",
            "many",
            "EVENTFLOW_CERT_ROOT_DAYS (certificates.root) = \"many\" must be",
        ),
    ];
    for (name, value, sentence) in cases {
        let found = problems(load(None, variables(&[(name, value)]), []));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.starts_with(sentence), "{}", found[0].message);
        assert!(!found[0].message.contains("pw"));
    }
}

#[test]
fn a_database_server_is_named_by_its_url_or_in_npms_words() {
    let none = from_variables(&[("EVENTFLOW_MYSQL_NPM_TIME_ZONE", "server")]).config;
    assert_eq!((none.server(), none.certificates), (None, CertificateSettings::default()));
    let npm = from_variables(&[("EVENTFLOW_MYSQL_PASS", "pw")]);
    assert_eq!(npm.config.server().unwrap().reveal(), "mysql://root:pw@localhost:3306/eventflow");
    assert_eq!(npm.config.certificates, CertificateSettings::on_server());
    let shown: String = npm.effective().map(|(key, value, _)| format!("{key} {value}\n")).collect();
    assert!(shown.contains("mysql.pass ***\n"), "{shown}");
    let url = from_variables(&[("EVENTFLOW_DATABASE_URL", "postgres://u:pw@h/d")]);
    let shown: String = url.effective().map(|(key, value, _)| format!("{key} {value}\n")).collect();
    assert!(shown.contains("store.url postgres://h/d\n") && !format!("{url:?}").contains("pw"), "{shown}");
    // Both are too many, wherever they stand.
    let both =
        load(file("[store]\nurl = \"mysql://a/b\"\n"), variables(&[("EVENTFLOW_MYSQL_HOST", "h")]), []);
    assert_eq!(
        problems(both)[0].message,
        "store.url (hub.toml:2), mysql.host (EVENTFLOW_MYSQL_HOST): both name a database server: leave one of them out"
    );
}

#[test]
fn an_address_that_npms_table_has_no_room_for_is_refused() {
    let with = |host: &str, url: &str| {
        load(None, variables(&[("EVENTFLOW_HUB_EXTERNAL_IP", host), ("EVENTFLOW_STORE_URL", url)]), [])
    };
    assert!(with("hub-1.example.org", "postgres://h/d").is_ok());
    assert!(with("192.168.100.200", "mysql://h/d").is_ok());
    for host in ["hub-1.example.org", "2001:db8::1234:5678"] {
        let found = problems(with(host, "mysql://h/d"));
        assert!(found[0].message.contains("set hub.external_ip to an IPv4"), "{}", found[0].message);
    }
}

#[test]
fn a_certificate_longer_than_its_issuer_is_warned_of() {
    let loaded =
        load(None, [], flags(&[("certificates-root", "10d"), ("certificates-hub-leaf", "400d")])).unwrap();
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].0.contains("certificates.hub_leaf = 400d (--certificates-hub-leaf)"));
}

#[test]
fn secrets_never_show() {
    let phrase = "correct horse battery";
    let loaded = from_variables(&[("EVENTFLOW_CERTIFICATES_PHRASE", phrase)]);
    let shown: String =
        loaded.effective().map(|(key, value, origin)| format!("{key} {value} {origin}\n")).collect();
    assert!(!shown.contains(phrase) && !format!("{loaded:?}").contains(phrase));
    assert!(shown.contains("certificates.phrase *** EVENTFLOW_CERTIFICATES_PHRASE"));
    let found = problems(load(file("[certificates]\nphrase = \"\"\n"), [], []));
    assert_eq!(found[0].message, "hub.toml:2: certificates.phrase = \"***\" must not be empty");
}

#[test]
fn names_are_checked() {
    for wrong in ["a b", "a_b", "é", "", ".a", "a.", "a..b", "-a", "a.-b", &"a".repeat(40)] {
        let result = load(file(&format!("[hub]\nname = \"{wrong}\"\n")), [], []);
        let found = problems(result);
        assert_eq!(found[0].code, code::INVALID_CONFIG_NAME, "{wrong}");
    }
    assert!(super::ConfiguredName::parse("Hub-1.example").is_ok());
}

#[test]
fn values_have_meaningful_types() {
    let config =
        load(file("orphan_keep = \"7d\"\n[store]\ndurability = \"relaxed\"\n"), [], []).unwrap().config;
    assert_eq!(config.orphan_keep, Keep::For(Duration::from_secs(7 * 86_400)));
    assert_eq!(config.store.durability, Durability::Relaxed);
    assert_eq!(config.certificates, CertificateSettings::default());
}

#[test]
fn the_documentation_lists_every_setting() {
    assert!(
        include_str!("../../docs/configuration.md") == help::markdown(),
        "write it anew: cargo run --bin eventflow-hub -- --help-markdown > docs/configuration.md"
    );
    let flags = help::flags();
    for setting in SETTINGS {
        assert!(flags.contains(&format!("--{} ", setting.flag())), "{}", setting.key);
    }
}
