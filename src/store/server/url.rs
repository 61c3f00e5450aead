//! Where a database server is.

use std::{fmt, str::FromStr};

use sea_orm::sqlx::{self, mysql::MySqlConnectOptions, postgres::PgConnectOptions};

use super::super::engine::Engine;

/// The URL of a database on a server: `postgres://user:password@host:5432/eventflow`, `mysql://…`, or `mariadb://…`.
/// Parameters of TLS stand behind a `?`: `sslmode` and `sslrootcert` for PostgreSQL, `ssl-mode` and `ssl-ca` for MySQL.
/// It is shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    engine: Engine,
    text: String,
}

/// Why a text is no URL of a database.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// It begins with another word.
    #[error(
        "it must begin with `postgres://`, `mysql://` or `mariadb://`; for SQLite leave it out: its file stands in the \
         data folder"
    )]
    Scheme,
    /// No URL.
    #[error("it is no URL of a database, as `postgres://user:password@host:5432/eventflow` is: {0}")]
    Malformed(String),
    /// It names no database.
    #[error(
        "it names no database: add its name behind the host, as in `postgres://user:password@host:5432/eventflow`"
    )]
    NoDatabase,
}

impl FromStr for ServerUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let engine = match text.split_once("://").map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => Engine::Postgres,
            Some("mysql" | "mariadb") => Engine::MySql,
            _ => return Err(UrlError::Scheme),
        };
        let url = Self { engine, text: text.to_owned() };
        let malformed = |error: sqlx::Error| UrlError::Malformed(error.to_string());
        let database = match engine {
            Engine::MySql => url.mysql().map_err(malformed)?.get_database().map(ToOwned::to_owned),
            _ => url.postgres().map_err(malformed)?.get_database().map(ToOwned::to_owned),
        };
        if database.is_none_or(|name| name.is_empty()) {
            return Err(UrlError::NoDatabase);
        }
        Ok(url)
    }
}

impl ServerUrl {
    /// Which engine it speaks to.
    pub(in super::super) fn engine(&self) -> Engine {
        self.engine
    }

    /// Whether it is MySQL or MariaDB, which the npm stack may share.
    #[must_use]
    pub fn is_mysql(&self) -> bool {
        self.engine == Engine::MySql
    }

    pub(super) fn mysql(&self) -> Result<MySqlConnectOptions, sqlx::Error> {
        self.text.parse()
    }

    pub(super) fn postgres(&self) -> Result<PgConnectOptions, sqlx::Error> {
        self.text.parse()
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.text.split_once("://").unwrap_or(("", &self.text));
        let place = rest.split(['?', '#']).next().unwrap_or_default();
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        write!(f, "{scheme}://{place}")
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let url: ServerUrl = "postgres://me:se@cret@db.example:5433/events?sslmode=require".parse().unwrap();
        assert_eq!(url.to_string(), "postgres://db.example:5433/events");
        assert_eq!(format!("{url:?}"), "ServerUrl(postgres://db.example:5433/events)");
        assert!(!url.is_mysql());
        assert!("mariadb://root@localhost/eventflow".parse::<ServerUrl>().unwrap().is_mysql());
    }

    #[test]
    fn what_is_no_url_is_told() {
        let why = |text: &str| text.parse::<ServerUrl>().unwrap_err();
        assert_eq!(why("sqlite:///tmp/x"), UrlError::Scheme);
        assert_eq!(why("localhost"), UrlError::Scheme);
        assert_eq!(why("mysql://localhost"), UrlError::NoDatabase);
        assert!(matches!(why("postgres://me:x@[::/x"), UrlError::Malformed(_)));
    }
}
