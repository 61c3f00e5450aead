//! Flow: the ready byte. npm's client compares the whole first chunk with `0x02`, and a chunk is what one TLS record
//! holds: the byte stands alone in its record, whatever else the hub has to say.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rustls::{ClientConnection, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    scratch::PATIENCE,
    stack::{
        certificates::Credentials, channel::client_config, deployment::SPOKES, hub::Hub, id, spoke::Spoke,
    },
    world::World,
};

/// A TLS client that looks at each record by itself.
struct Observer {
    stream: TcpStream,
    tls: ClientConnection,
}

impl Observer {
    async fn connect(address: std::net::SocketAddr, hub: &str, credentials: &Credentials) -> Self {
        let name = ServerName::try_from(hub.to_owned()).unwrap();
        let tls = ClientConnection::new(client_config(credentials), name).unwrap();
        Self { stream: TcpStream::connect(address).await.unwrap(), tls }
    }

    /// What the next record of application data holds. Records of the handshake and tickets are passed over.
    async fn record(&mut self) -> Vec<u8> {
        timeout(PATIENCE, async {
            loop {
                self.flush().await;
                let mut record = vec![0; 5];
                self.stream.read_exact(&mut record).await.unwrap();
                let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
                record.resize(5 + length, 0);
                self.stream.read_exact(&mut record[5..]).await.unwrap();
                let mut rest = record.as_slice();
                while !rest.is_empty() {
                    self.tls.read_tls(&mut rest).unwrap();
                }
                let length = self.tls.process_new_packets().unwrap().plaintext_bytes_to_read();
                if length > 0 {
                    let mut plain = vec![0; length];
                    std::io::Read::read_exact(&mut self.tls.reader(), &mut plain).unwrap();
                    return plain;
                }
            }
        })
        .await
        .expect("a record in time")
    }

    async fn send(&mut self, bytes: &[u8]) {
        std::io::Write::write_all(&mut self.tls.writer(), bytes).unwrap();
        self.flush().await;
    }

    async fn flush(&mut self) {
        while self.tls.wants_write() {
            let mut bytes = Vec::new();
            self.tls.write_tls(&mut bytes).unwrap();
            self.stream.write_all(&bytes).await.unwrap();
        }
    }
}

#[tokio::test]
async fn it_comes_first_and_alone_in_its_tls_record() {
    let Some(world) = World::start().await else { return };
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let credentials = world.npm.certificates.of(&id::party(SPOKES)).await;
    let publisher = Spoke::connected(&world.npm).await;
    let id = publisher.publish(("orders", "created", "p1"), "{}").await;

    let mut link = Observer::connect(address, &hub, &credentials).await;
    assert_eq!(link.record().await, [0x02]);
    // What waits for the link comes after, when it is asked for.
    link.send(b"subscribe\x1forders\x1fcreated\x1e").await;
    let record = format!("publish\x1forders\x1f{id}\x1fcreated\x1fp1\x1e");
    assert_eq!(String::from_utf8(link.record().await).unwrap(), record);
    drop(link);
    publisher.close().await;
    world.end().await;
}

#[tokio::test]
async fn it_is_alone_also_while_the_hub_tells_all_links_of_others() {
    const LINKS: usize = 40;
    let Some(world) = World::start().await else { return };
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let credentials = world.npm.certificates.of(&id::party(SPOKES)).await;
    let peer = Hub::start(&world.npm).await;
    let over = Arc::new(AtomicBool::new(false));
    let (announcing, ended) = (peer.clone(), Arc::clone(&over));
    let announcing = tokio::spawn(async move {
        let mut times = 0;
        while !ended.load(Ordering::Relaxed) {
            announcing.announce().await;
            times += 1;
        }
        times
    });
    let mut links = Vec::new();
    let mut told = 0;
    while links.len() < LINKS || told == 0 {
        let mut link = Observer::connect(address, &hub, &credentials).await;
        assert_eq!(link.record().await, [0x02]);
        links.push(link);
        let first = links.first_mut().unwrap();
        told += usize::from(first.record().await.starts_with(b"online\x1f"));
    }
    over.store(true, Ordering::Relaxed);
    let announced = announcing.await.unwrap();
    assert!(announced > 0, "{announced}");
    drop(links);
    peer.stop().await;
    world.end().await;
}
