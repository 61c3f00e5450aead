//! Another hub of the same deployment: its certificate, its row, its links.

use std::{sync::Arc, time::SystemTime};

use eventflow::pki::{Authority, Lifetimes, Names, Vault, authority, tls, vault};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::{Raw, TestHub, engine, npm::Npm};

pub const PEER: &str = "KIND-HERON-MX000007.EVENTFLOW-HUB";

/// A peer hub as far as certificates go.
pub struct Peer {
    authority: Authority,
}

impl Peer {
    /// Gets its leaf as hubs do: from the table that they share.
    pub async fn of(hub: &TestHub) -> Self {
        let phrase = vault::phrase_file(hub.data().join("key-phrase")).unwrap();
        let vault = Vault::new(phrase, 1_000).unwrap();
        let table = engine::store(&hub.database()).await;
        let names = Names { hub_id: PEER.to_owned(), ..Names::default() };
        let now = SystemTime::now();
        let authority =
            authority::establish(&table, &vault, &names, Lifetimes::default(), now).await.unwrap();
        table.close().await;
        Self { authority }
    }

    /// What it serves links with.
    pub fn acceptor(&self) -> TlsAcceptor {
        let id = eventflow::event::Uid::parse(PEER).unwrap();
        TlsAcceptor::from(tls::server_config(&self.authority, &id, "EVENTFLOW-HUB").unwrap())
    }

    /// A link of its own to the hub.
    pub async fn link(&self, hub: &TestHub) -> Raw {
        let info = hub.handle.info();
        let (config, name) =
            tls::peer_config(self.authority.hub_identity(), self.authority.root(), &info.id).unwrap();
        let stream = TcpStream::connect(info.address).await.unwrap();
        Raw::with(Arc::clone(&config), name, stream).await
    }
}

/// A hub's row, open.
pub async fn row(npm: &Npm, id: &str, port: u16) {
    let sql = "insert into hub (id, external_ip, internal_ip, external_port, internal_port) \
               values (?, '127.0.0.1', '127.0.0.1', cast(? as integer), 1)";
    assert_eq!(npm.run(sql, &[id, &port.to_string()]).await, 1);
}
