//! What the hub says to people on standard output.

use std::{fmt::Write as _, net::SocketAddr, path::Path};

use eventflow::config::Loaded;

/// What a started hub tells of itself.
pub(crate) struct Ready<'a> {
    pub(crate) id: &'a str,
    pub(crate) address: SocketAddr,
    pub(crate) data: &'a Path,
    /// SHA-256 of the root certificate, hexadecimal with colons.
    pub(crate) fingerprint: &'a str,
    pub(crate) admin: Option<SocketAddr>,
}

/// The banner: where the hub is, and what to type next.
pub(crate) fn ready(ready: &Ready<'_>) -> String {
    let data = ready.data.display();
    let admin = ready.admin.map_or_else(|| "off".to_owned(), |address| format!("http://{address}/"));
    // The client looks in the same place by default.
    let folder = if ready.data == Path::new("./eventflow-data") {
        String::new()
    } else {
        format!(" --data {}", quoted(ready.data))
    };
    format!(
        "\
Eventflow {version} is ready

  hub          {id}
  address      {address}
  data folder  {data}
  CA (SHA-256) {fingerprint}
  admin        {admin}

Next, in two other terminals:

  eventflow subscribe{folder} orders
  eventflow publish{folder} orders created --pid order-1 --data '{{\"total\":12}}'

",
        version = env!("CARGO_PKG_VERSION"),
        id = ready.id,
        address = ready.address,
        fingerprint = ready.fingerprint,
    )
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
            data: Path::new("./eventflow-data"),
            fingerprint: "AB:CD",
            admin: Some(([127, 0, 0, 1], 50080).into()),
        };
        let text = ready(&hub);
        for part in [
            "127.0.0.1:50001",
            "./eventflow-data",
            "AB:CD",
            "http://127.0.0.1:50080/",
            "eventflow subscribe orders\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let elsewhere = ready(&Ready { data: Path::new("/var/lib/it's here"), admin: None, ..hub });
        assert!(
            elsewhere.contains(r"eventflow subscribe --data '/var/lib/it'\''s here' orders"),
            "{elsewhere}"
        );
        assert!(elsewhere.contains("admin        off"), "{elsewhere}");
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
