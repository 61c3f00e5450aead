//! What the hub says to people on standard output.

use std::{ffi::OsStr, fmt::Write as _, net::SocketAddr, path::Path};

use eventflow::config::Loaded;

/// What a started hub tells of itself.
pub(crate) struct Ready<'a> {
    pub(crate) id: &'a str,
    pub(crate) address: SocketAddr,
    pub(crate) data: &'a Path,
    /// Then a client finds it by itself, if it is started in the same place.
    pub(crate) is_default_folder: bool,
    /// SHA-256 of the root certificate, hexadecimal with colons.
    pub(crate) fingerprint: &'a str,
    pub(crate) admin: Option<SocketAddr>,
    /// What to type for the client program; nothing where nobody is there to type it: with a log for programs.
    pub(crate) client: Option<&'a str>,
}

/// The banner: where the hub is, and for people what to type next.
pub(crate) fn ready(ready: &Ready<'_>) -> String {
    let data = ready.data.display();
    let admin = ready.admin.map_or_else(|| "off".to_owned(), |address| format!("http://{address}/"));
    let next = ready.client.map_or_else(String::new, |client| next(client, ready));
    format!(
        "\
Eventflow {version} is ready

  hub          {id}
  address      {address}
  data folder  {data}
  CA (SHA-256) {fingerprint}
  admin        {admin}
{next}
",
        version = env!("CARGO_PKG_VERSION"),
        id = ready.id,
        address = ready.address,
        fingerprint = ready.fingerprint,
    )
}

fn next(client: &str, ready: &Ready<'_>) -> String {
    let folder = if ready.is_default_folder {
        String::new()
    } else {
        format!(" --data-folder {}", quoted(ready.data))
    };
    format!(
        "
Next, in two other terminals:

  {client} subscribe{folder} orders
  {client} publish{folder} orders created --pid order-1 --data '{{\"total\":12}}'
"
    )
}

/// What to type for the client: its name if the shell finds it, else where it stands beside the hub's program, else,
/// if cargo runs the hub and it isn't built yet, what builds and runs it.
pub(crate) fn client(
    exe: &Path,
    here: &Path,
    path: Option<&OsStr>,
    by_cargo: bool,
    exists: fn(&Path) -> bool,
) -> String {
    const NAME: &str = "eventflow";
    let folder = exe.parent().unwrap_or(Path::new(""));
    let beside = folder.join(NAME);
    let in_path = path.is_some_and(|path| std::env::split_paths(path).any(|entry| entry == folder));
    if in_path {
        NAME.to_owned()
    } else if exists(&beside) {
        quoted(beside.strip_prefix(here).unwrap_or(&beside))
    } else if by_cargo {
        let profile = if folder.ends_with("release") { "--release " } else { "" };
        format!("cargo run {profile}--bin {NAME} --")
    } else {
        NAME.to_owned()
    }
}

/// The path as a shell reads it.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if path.bytes().all(plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// The answer to `--check`.
pub(crate) fn effective(loaded: &Loaded) -> String {
    let rows: Vec<_> = loaded.effective().collect();
    let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let keys = widest(&mut rows.iter().map(|(key, ..)| key.len()));
    let values = widest(&mut rows.iter().map(|(_, value, _)| value.chars().count()));
    let mut out = String::from("configuration is valid\n\n");
    for (key, value, origin) in &rows {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{key:<keys$}  {value:<values$}  {origin}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventflow::config;

    #[test]
    fn the_banner_says_what_to_type_next() {
        let hub = Ready {
            id: "VIVID-BIRD-1.EVENTFLOW-HUB",
            address: ([127, 0, 0, 1], 50001).into(),
            data: Path::new("/home/me/eventflow-data"),
            is_default_folder: true,
            client: Some("eventflow"),
            fingerprint: "AB:CD",
            admin: Some(([127, 0, 0, 1], 50080).into()),
        };
        let text = ready(&hub);
        for part in [
            "127.0.0.1:50001",
            "/home/me/eventflow-data",
            "AB:CD",
            "http://127.0.0.1:50080/",
            "eventflow subscribe orders\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let data = Path::new("/var/lib/it's here");
        let unread = ready(&Ready { client: None, ..hub });
        assert!(unread.contains("CA (SHA-256) AB:CD") && !unread.contains("Next"), "{unread}");
        let elsewhere = ready(&Ready { data, is_default_folder: false, admin: None, ..hub });
        assert!(
            elsewhere.contains(r"eventflow subscribe --data-folder '/var/lib/it'\''s here' orders"),
            "{elsewhere}"
        );
        assert!(elsewhere.contains("admin        off"), "{elsewhere}");
    }

    #[test]
    fn the_client_is_named_as_the_shell_finds_it() {
        let here = Path::new("/src/eventflow");
        let built = Path::new("/src/eventflow/target/release/eventflow-hub");
        let path = Some(OsStr::new("/bin:/usr/local/bin"));
        assert_eq!(
            client(Path::new("/usr/local/bin/eventflow-hub"), here, path, true, |_| true),
            "eventflow"
        );
        assert_eq!(client(built, here, path, true, |_| true), "target/release/eventflow");
        assert_eq!(client(built, here, path, false, |_| false), "eventflow");
        assert_eq!(client(built, here, path, true, |_| false), "cargo run --release --bin eventflow --");
        assert_eq!(
            client(Path::new("/opt/e/eventflow-hub"), here, path, false, |_| true),
            "/opt/e/eventflow"
        );
        assert_eq!(client(Path::new(""), here, None, false, |_| false), "eventflow");
    }

    #[test]
    fn check_lists_values_with_their_origin_and_no_secret() {
        let variables = [
            ("EVENTFLOW_HUB_NAME".to_owned(), "A".to_owned()),
            ("EVENTFLOW_CERT_PASS_ENCRYPTION_KEY".to_owned(), "hidden".to_owned()),
        ];
        let text = effective(&config::load(None, variables, []).unwrap());
        assert!(text.starts_with("configuration is valid\n"));
        let line = |key: &str| {
            text.lines().find(|line| line.starts_with(key)).unwrap().split_whitespace().collect::<Vec<_>>()
        };
        assert_eq!(line("hub.name"), ["hub.name", "A", "EVENTFLOW_HUB_NAME"]);
        assert_eq!(line("limits.ping"), ["limits.ping", "30s", "default"]);
        assert!(!text.contains("hidden"));
    }
}
