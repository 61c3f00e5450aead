//! A database server instead of the embedded database: its URL, or npm's variables.

use std::{fmt, fmt::Write as _, path::PathBuf};

use super::Secret;

/// The URL of a database on a server: `postgres://user:password@host:5432/eventflow`, `mysql://…` or `mariadb://…`. It is
/// shown without user and password, here and in `Debug`.
#[derive(Clone, PartialEq, Eq, PartialOrd)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// Takes a URL of a scheme that is known and with the name of a database; all else is looked at when it is dialed.
    ///
    /// # Errors
    /// A sentence that says what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match scheme.to_ascii_lowercase().as_str() {
            "postgres" | "postgresql" | "mysql" | "mariadb" => {}
            "sqlite" => {
                return Err("is the embedded database's, which lives in the data folder: set `data` instead"
                    .to_owned());
            }
            _ => return Err("must begin with postgres://, mysql:// or mariadb://".to_owned()),
        }
        let place = rest.strip_prefix("//").and_then(|rest| rest.split(['?', '#']).next());
        match place.and_then(|place| place.rsplit_once('/')) {
            Some((_, name)) if !name.is_empty() => Ok(Self(text.to_owned())),
            _ => Err("must name host and database, such as postgres://user:password@host:5432/eventflow"
                .to_owned()),
        }
    }

    /// The URL itself, with its password.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it is MySQL or MariaDB, which npm hubs may share.
    #[must_use]
    pub fn is_mysql(&self) -> bool {
        let scheme = self.0.split(':').next().unwrap_or_default();
        ["mysql", "mariadb"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", &self.0));
        let place = rest.split(['?', '#']).next().unwrap_or_default();
        write!(f, "{scheme}://{}", place.rsplit_once('@').map_or(place, |(_, place)| place))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

/// What an npm hub is told of its database. Any of the first six means MySQL or MariaDB; what is `None` is as npm's own
/// default is: `localhost`, 3306, `root` with the password `root`, `eventflow`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MysqlSettings {
    /// The server's host.
    pub host: Option<String>,
    /// Its port.
    pub port: Option<u16>,
    /// Who logs in.
    pub user: Option<String>,
    /// With which password.
    pub pass: Option<Secret>,
    /// The database's name.
    pub db: Option<String>,
    /// The server's socket, instead of host and port.
    pub socket_path: Option<PathBuf>,
    /// In which zone npm hubs write some times.
    pub npm_time_zone: NpmTimeZone,
}

impl MysqlSettings {
    /// Where that is; none: nothing of it is set.
    #[must_use]
    pub fn url(&self) -> Option<DatabaseUrl> {
        let is_set = self.host.is_some()
            || self.port.is_some()
            || self.user.is_some()
            || self.pass.is_some()
            || self.db.is_some()
            || self.socket_path.is_some();
        is_set.then(|| {
            let host = self.host.as_deref().unwrap_or("localhost");
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            let mut url = format!(
                "mysql://{}:{}@{host}:{}/{}",
                escaped(self.user.as_deref().unwrap_or("root")),
                escaped(self.pass.as_ref().map_or("root", Secret::reveal)),
                self.port.unwrap_or(3306),
                escaped(self.db.as_deref().unwrap_or("eventflow")),
            );
            if let Some(path) = &self.socket_path {
                url.push_str("?socket=");
                url.push_str(&escaped(&path.to_string_lossy()));
            }
            DatabaseUrl(url)
        })
    }
}

/// As a part of a URL.
fn escaped(text: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// In which zone a MySQL server's columns are that the npm stack fills by the time of its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub enum NpmTimeZone {
    /// UTC: on a server in another zone the hub doesn't start, since it might read them hours off.
    #[default]
    Utc,
    /// The server's, whatever that is: they are read and written in it.
    Server,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npms_variables_make_a_url() {
        let url = |mysql: &MysqlSettings| mysql.url().map(|url| url.reveal().to_owned());
        let mut mysql = MysqlSettings { npm_time_zone: NpmTimeZone::Server, ..MysqlSettings::default() };
        assert_eq!(url(&mysql), None);
        mysql.port = Some(3307);
        assert_eq!(url(&mysql).unwrap(), "mysql://root:root@localhost:3307/eventflow");
        mysql.host = Some("::1".to_owned());
        mysql.pass = Some(Secret::new("p@ss/wörd"));
        mysql.socket_path = Some("/run/my.sock".into());
        assert_eq!(
            url(&mysql).unwrap(),
            "mysql://root:p%40ss%2Fw%C3%B6rd@[::1]:3307/eventflow?socket=%2Frun%2Fmy.sock"
        );
        let url = mysql.url().unwrap();
        assert_eq!(url.to_string(), "mysql://[::1]:3307/eventflow");
        assert!(url.is_mysql() && !format!("{url:?}").contains("ss"));
    }

    #[test]
    fn what_is_no_url_is_told() {
        for (text, sentence) in [
            ("sqlite://a", "embedded"),
            ("localhost", "begin"),
            ("mysql://a", "database"),
            ("postgres://h/?x=/y", "database"),
        ] {
            let why = DatabaseUrl::parse(text).unwrap_err();
            assert!(why.contains(sentence), "{text}: {why}");
        }
        assert!(!DatabaseUrl::parse("postgres://u:p%40@h/d?sslmode=require").unwrap().is_mysql());
    }
}
