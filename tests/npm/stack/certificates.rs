//! The table `certificate`, and how a party comes to its chain: it reads what stands and makes what is missing, all
//! under one lock of the server.

use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use sea_orm::sqlx::{self, Connection, MySqlConnection, Row};

use super::{
    database::Database,
    openssl::{self, ED25519, Issuer, Made},
    vault::{Sealed, Vault},
};

const ROOT: &str = "EVENTFLOW-ROOT-CA";

/// A certificate this near to its end is revoked and made anew.
const NEAR_ITS_END: Duration = Duration::from_secs(600);

/// What a party proves itself with, and whom it trusts.
#[derive(Debug)]
pub struct Credentials {
    /// Leaf and intermediate.
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub root: CertificateDer<'static>,
    /// The three as PEM.
    pub leaf_pem: String,
    pub intermediate_pem: String,
    pub root_pem: String,
    pub key_pem: String,
}

/// The certificates of one configured name. Cheap to clone.
#[derive(Clone)]
pub struct Certificates {
    database: Database,
    vault: Vault,
}

impl Certificates {
    pub fn new(database: &Database, vault: &Vault) -> Self {
        Self { database: database.clone(), vault: vault.clone() }
    }

    /// The chain of a party: as npm does on every handshake, under the lock of all of the server's certificates.
    pub async fn of(&self, id: &str) -> Credentials {
        let (_, name) = id.split_once('.').expect("an id ends with its configured name");
        let mut connection = self.database.own_connection().await;
        let locked: i64 = sqlx::query("select get_lock('eventflow:certificates', 30)")
            .fetch_one(&mut connection)
            .await
            .unwrap()
            .get(0);
        assert_eq!(locked, 1, "the lock is free within 30 s");
        let root = self.one(&mut connection, ROOT, || openssl::root(ROOT, 365, ED25519)).await;
        let intermediate = self
            .one(&mut connection, name, || openssl::intermediate(&issuer(&root), name, 30, ED25519))
            .await;
        let leaf =
            self.one(&mut connection, id, || openssl::leaf(&issuer(&intermediate), id, 7, ED25519)).await;
        sqlx::query("select release_lock('eventflow:certificates')").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let key_pem = openssl::decrypted(&leaf.key, &leaf.pass);
        Credentials {
            chain: vec![der(&leaf.cert), der(&intermediate.cert)],
            key: PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap(),
            root: der(&root.cert),
            leaf_pem: leaf.cert,
            intermediate_pem: intermediate.cert,
            root_pem: root.cert,
            key_pem,
        }
    }

    /// Sets `revoked`, and the version to the number of rows that the id has, which frees version 0.
    pub async fn revoke(&self, id: &str) {
        let sql = "select count(*) from certificate where id = ?";
        let count: i64 = self.database.get(sql, &[id]).await.unwrap();
        let sql =
            "update certificate set revoked = utc_timestamp(), version = ? where id = ? and version = 0";
        assert_eq!(self.database.run(sql, &[&count.to_string(), id]).await, 1, "{id} has a row");
    }

    async fn one(&self, connection: &mut MySqlConnection, id: &str, make: impl FnOnce() -> Made) -> Made {
        if let Some(made) = self.read(connection, id).await {
            return made;
        }
        let made = make();
        let (key, pass) = (self.vault.seal(made.key.as_bytes()), self.vault.seal(&made.pass));
        let sql = "insert into certificate (id, cert, `key`, key_iv, key_salt, key_tag, pass, pass_iv, pass_salt, \
                   pass_tag, validity) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, date_add('1970-01-01', interval ? second))";
        let done = sqlx::query(sql)
            .bind(id)
            .bind(&made.cert)
            .bind(key.text)
            .bind(key.iv)
            .bind(key.salt)
            .bind(key.tag)
            .bind(pass.text)
            .bind(pass.iv)
            .bind(pass.salt)
            .bind(pass.tag)
            .bind(ends(&made.cert))
            .execute(&mut *connection)
            .await;
        match done {
            Ok(_) => made,
            Err(error) if error.as_database_error().is_some_and(|error| error.is_unique_violation()) => {
                self.read(connection, id).await.expect("another one has made it")
            }
            Err(error) => panic!("the certificate of {id}: {error}"),
        }
    }

    async fn read(&self, connection: &mut MySqlConnection, id: &str) -> Option<Made> {
        let sql = "select cert, `key`, key_iv, key_salt, key_tag, pass, pass_iv, pass_salt, pass_tag, \
                   timestampdiff(second, utc_timestamp(), validity) \
                   from certificate where id = ? and version = 0 and revoked is null";
        let row = sqlx::query(sql).bind(id).fetch_optional(connection).await.unwrap()?;
        let left: i64 = row.get(9);
        assert!(
            left > NEAR_ITS_END.as_secs().cast_signed(),
            "{id} isn't near its end, since tests are short"
        );
        let sealed = |first: usize| Sealed {
            text: row.get(first),
            iv: row.get(first + 1),
            salt: row.get(first + 2),
            tag: row.get(first + 3),
        };
        let key = String::from_utf8(self.vault.open(&sealed(1))).expect("a key is PEM");
        assert!(key.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"), "{id}");
        Some(Made { cert: row.get(0), key, pass: self.vault.open(&sealed(5)) })
    }
}

fn issuer(made: &Made) -> Issuer<'_> {
    Issuer { cert: &made.cert, key: &made.key, pass: &made.pass }
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// The end of a certificate, in seconds since 1970.
fn ends(pem: &str) -> i64 {
    let der = der(pem);
    let (_, certificate) = x509_parser::parse_x509_certificate(&der).unwrap();
    certificate.validity().not_after.timestamp()
}
