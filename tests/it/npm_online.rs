//! Promise: hubs tell each other that they are there, and their spokes; nobody else can say so, and only a hub itself
//! says that it stops.

use std::time::Duration;

use eventflow::{config::HubConfig, metrics::ActorKind, pki::tls::peer_uid};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};

use crate::support::{
    PATIENCE, TestHub,
    npm::{Npm, ignored, taken},
    peer::{PEER, Peer, row},
    until,
};

const ONLINE: [&str; 4] = ["online", PEER, "192.0.2.7", "50001"];

#[tokio::test]
async fn a_peer_hub_is_told_to_all_links_but_its_own() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let peer = Peer::of(&hub).await;
    row(&npm, PEER, 50_001).await;
    let (mut v1, mut spoke, mut silent) = (hub.v1().await, hub.raw().await, hub.raw().await);
    spoke.send(&["subscribe", "orders", "*"]).await;
    taken(&hub, "SubscribeNpm", 1).await;
    let mut link = peer.link(&hub).await;
    link.send(&ONLINE).await;
    for other in [&mut v1, &mut spoke, &mut silent] {
        assert_eq!(other.answer().await.unwrap(), ONLINE);
    }
    // Again on the same link: it was said.
    link.send(&ONLINE).await;
    ignored(&hub, 1).await;
    link.send(&["subscribe", "orders", "*"]).await;
    taken(&hub, "SubscribeNpm", 2).await;
    v1.ask(&["publish", "1", "e1", "orders", "created", "p", "", "{}"]).await;
    assert_eq!(link.record().await.unwrap()[..3], ["publish", "orders", "e1"], "it isn't told of itself");

    // npm hubs say it and close.
    let mut brief = peer.link(&hub).await;
    brief.send(&ONLINE).await;
    brief.stream.shutdown().await.unwrap();
    drop(brief);
    assert_eq!(v1.answer().await.unwrap(), ONLINE);
    drop((v1, spoke, silent, link));
    hub.stop().await;
}

/// In npm any client may send `online`, and so make all spokes dial wherever it likes.
#[tokio::test]
async fn any_client_may_not_say_that_a_hub_is_online() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let peer = Peer::of(&hub).await;
    let mut v1 = hub.v1().await;
    let own = hub.handle.info().id.clone();

    // The peer itself, but the database doesn't know it.
    peer.link(&hub).await.send(&ONLINE).await;
    ignored(&hub, 1).await;
    // Or knows that it stopped.
    row(&npm, PEER, 50_001).await;
    npm.run("update hub set quit = utc_timestamp() where id = ?", &[PEER]).await;
    peer.link(&hub).await.send(&ONLINE).await;
    ignored(&hub, 2).await;
    npm.run("update hub set quit = null where id = ?", &[PEER]).await;

    // A spoke in the name of a hub that runs, or of this one, or of itself.
    let mut spoke = hub.raw().await;
    let spoke_id = hub.bundle().identity().unwrap().uid().to_string();
    for (id, so_far) in [(PEER, 3), (&*own, 4), (&*spoke_id, 5)] {
        spoke.send(&["online", id, "192.0.2.66", "50001"]).await;
        ignored(&hub, so_far).await;
    }
    // A hub in the name of another.
    row(&npm, "OTHER.EVENTFLOW-HUB", 50_001).await;
    let mut link = peer.link(&hub).await;
    link.send(&["online", "OTHER.EVENTFLOW-HUB", "192.0.2.66", "50001"]).await;
    ignored(&hub, 6).await;

    v1.send(&["ping", "7"]).await;
    assert_eq!(v1.answer().await.unwrap(), ["pong", "7"], "nobody was told");
    drop((v1, spoke, link));
    hub.stop().await;
}

/// What a fake peer heard on one link.
struct Heard {
    uid: String,
    leaf: Vec<u8>,
    bytes: Vec<u8>,
    hello: Vec<u8>,
}

async fn hear(listener: &TcpListener, peer: &Peer) -> Heard {
    let hearing = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut hello = vec![0; 4_096];
        stream.readable().await.unwrap();
        let read = stream.peek(&mut hello).await.unwrap();
        hello.truncate(read);
        let mut stream = peer.acceptor().accept(stream).await.unwrap();
        let chain = stream.get_ref().1.peer_certificates().unwrap();
        let (uid, leaf) = (peer_uid(chain).unwrap().to_string(), chain[0].to_vec());
        stream.write_all(&[2]).await.unwrap();
        stream.flush().await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        Heard { uid, leaf, bytes, hello }
    };
    timeout(PATIENCE, hearing).await.expect("the hub dials its peer")
}

#[tokio::test]
async fn at_its_start_a_hub_tells_each_other_hub_that_runs_and_comes_back_after_a_panic() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let peer = Peer::of(&hub).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    row(&npm, PEER, listener.local_addr().unwrap().port()).await;
    let folder = hub.stop().await;

    let hub = TestHub::on(folder, |_| {}).await;
    let info = hub.handle.info().clone();
    let heard = hear(&listener, &peer).await;
    assert_eq!(heard.uid, info.id, "by its own certificate");
    let record = format!("online\u{1f}{}\u{1f}127.0.0.1\u{1f}{}\u{1e}", info.id, info.address.port());
    assert_eq!(String::from_utf8(heard.bytes).unwrap(), record, "one record, then the end");
    let asked = heard.hello.windows(PEER.len()).any(|window| window == PEER.as_bytes());
    assert!(asked, "the name is asked for as it is stored, since old hubs know it only so");

    hub.handle.inject_panic(ActorKind::Announcer);
    let heard = hear(&listener, &peer).await;
    assert_eq!(heard.uid, info.id, "it is back, and does its work");
    let snapshot = hub.handle.metrics();
    assert_eq!((snapshot.actors["announcer"].restarts, snapshot.actors["announcer"].alive), (1, 1));
    hub.stop().await;
}

/// The announcer may be made anew when the certificate of the start has long ended.
#[tokio::test]
async fn peers_are_dialed_with_the_certificate_that_stands() {
    let short = |config: &mut HubConfig| config.certificates.hub_leaf = Duration::from_secs(3);
    let hub = TestHub::with(short).await;
    let npm = Npm::of(&hub).await;
    let peer = Peer::of(&hub).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    row(&npm, PEER, listener.local_addr().unwrap().port()).await;
    let hub = TestHub::on(hub.stop().await, short).await;
    let first = hear(&listener, &peer).await.leaf;
    let served = || async { hub.raw().await.stream.get_ref().1.peer_certificates().unwrap()[0].to_vec() };
    until("another leaf is served", || async { served().await != first }).await;
    hub.handle.inject_panic(ActorKind::Announcer);
    assert_ne!(hear(&listener, &peer).await.leaf, first, "the one of the start is shown for ever");
    hub.stop().await;
}

/// An npm hub marks a peer as stopped when one dial of it fails.
#[tokio::test]
async fn one_failed_dial_marks_no_peer_as_stopped() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    // Nobody listens at the one, the other stopped by its own word.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    row(&npm, PEER, closed.local_addr().unwrap().port()).await;
    drop(closed);
    let stopped = TcpListener::bind("127.0.0.1:0").await.unwrap();
    row(&npm, "STOPPED.EVENTFLOW-HUB", stopped.local_addr().unwrap().port()).await;
    npm.run("update hub set quit = utc_timestamp() where id like 'STOPPED%'", &[]).await;
    let hub = TestHub::on(hub.stop().await, |_| {}).await;

    let told = "select count(*) from log where message like '%' || ? || '%can''t be told%'";
    until("the failed dial is in the log", || async { npm.get::<i64>(told, &[PEER]).await == Some(1) }).await;
    let quit = "select count(*) from hub where id = ? and quit is null";
    assert_eq!(npm.get::<i64>(quit, &[PEER]).await, Some(1), "only the peer itself knows whether it runs");
    let accepted = tokio::select! {
        biased;
        accepted = stopped.accept() => Some(accepted),
        () = std::future::ready(()) => None,
    };
    assert!(accepted.is_none(), "who has stopped isn't dialed");
    hub.stop().await;
}

#[tokio::test]
async fn the_row_of_a_hub_says_that_it_stops_when_it_does_and_not_before() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let own = hub.handle.info().id.clone();
    let open = "select quit is null from hub where id = ?";
    assert_eq!(npm.get::<bool>(open, &[&own]).await, Some(true));
    // An npm hub that couldn't reach this one.
    npm.run("update hub set quit = utc_timestamp() where id = ?", &[&own]).await;
    until("it is taken back", || async { npm.get::<bool>(open, &[&own]).await == Some(true) }).await;

    let folder = hub.stop().await;
    assert_eq!(npm.get::<bool>(open, &[&own]).await, Some(false), "at its end");
    let hub = TestHub::on(folder, |_| {}).await;
    assert_eq!(hub.handle.info().id, own);
    assert_eq!(npm.get::<bool>(open, &[&own]).await, Some(true), "at its start");
    hub.stop().await;
}
