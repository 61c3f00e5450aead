//! Flow: connect. An npm spoke finds our hub in the table, makes its leaf under the certificates that stand, whoever
//! made them, and is let in by them; who isn't of the deployment is not.

use std::process::Stdio;

use eventflow::config::HubConfig;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{
    scratch::{PATIENCE, Scratch, until},
    stack::{
        channel::Channel,
        deployment::{Deployment, HUBS, SPOKES},
        id, openssl,
        spoke::Spoke,
    },
    world::{PHRASE, ROUNDS, World},
};

const ROWS: &str = "select count(*) from certificate where version = 0 and revoked is null and id like ?";

fn as_in_production(config: &mut HubConfig) {
    config.certificates.iterations = 1_000_000;
}

#[tokio::test]
async fn a_spoke_makes_its_leaf_under_what_our_hub_made() {
    let Some(scratch) = Scratch::new().await else { return };
    let npm = Deployment::new(&scratch.url, PHRASE, 1_000_000);
    let world = World::on(scratch, npm, as_in_production).await;
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let online = world.npm.database.hubs_online().await;
    assert_eq!(online, [(hub.clone(), address.ip().to_string(), address.port())]);

    let spoke = Spoke::connected(&world.npm).await;
    assert_eq!(spoke.hubs().await, [&*hub]);
    until("the link counts as npm's", || async { world.hub.metrics().hub.links["npm"] == 1 }).await;
    for id in ["EVENTFLOW-ROOT-CA", HUBS, SPOKES, &hub, spoke.id()] {
        assert_eq!(world.npm.database.get::<i64>(ROWS, &[id]).await, Some(1), "{id}");
    }
    // Who connected is in the log, by its certificate.
    let logged = "select count(*) from log where agent = ? and message like concat('%', ?, '%')";
    until("the link is in the log", || async {
        world.npm.database.get::<i64>(logged, &[&hub, spoke.id()]).await.unwrap() > 0
    })
    .await;
    spoke.close().await;
    until("the link is over", || async { world.hub.metrics().hub.links["npm"] == 0 }).await;
    world.end().await;
}

#[tokio::test]
async fn our_hub_works_under_what_an_npm_spoke_made() {
    let Some(scratch) = Scratch::new().await else { return };
    let npm = Deployment::new(&scratch.url, PHRASE, ROUNDS);
    npm.database.create_tables().await;
    // No hub is there yet: it goes on looking for one.
    let spoke = Spoke::start(&npm).await;
    assert_eq!(spoke.hubs().await, [""; 0]);
    let before = npm.certificates.of(spoke.id()).await;
    let world = World::on(scratch, npm, |_| {}).await;
    until("the spoke finds the hub", || async { !spoke.hubs().await.is_empty() }).await;
    let after = world.npm.certificates.of(spoke.id()).await;
    assert_eq!((before.root_pem, before.leaf_pem), (after.root_pem, after.leaf_pem), "what stands is used");
    spoke.close().await;
    world.end().await;
}

/// OpenSSL is what node has for TLS.
#[tokio::test]
async fn openssl_is_let_in_and_verifies_the_hub() {
    let Some(world) = World::start().await else { return };
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let credentials = world.npm.certificates.of(&id::party(SPOKES)).await;
    let folder = tempfile::tempdir().unwrap();
    for (asked, welcome) in [(&*hub, true), (&*hub.to_lowercase(), true), ("OTHER.EVENTFLOW-HUB", false)] {
        let mut client = openssl::client(&folder, &address.to_string(), asked, &credentials)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut first = [0; 16];
        let stdout = client.stdout.as_mut().unwrap();
        let read = timeout(PATIENCE, stdout.read(&mut first)).await.expect("ready, or the end").unwrap();
        assert_eq!(first[..read], if welcome { vec![2] } else { vec![] }, "asked for {asked}");
        if welcome {
            // What the hub serves verifies under the root alone, by the chain that it sends.
            client.stdin.as_mut().unwrap().write_all(b"subscribe\x1forders\x1f*\x1e").await.unwrap();
            until("it is heard", || async { world.hub.metrics().hub.links["npm"] > 0 }).await;
            drop(client.stdin.take());
        }
        let output = timeout(PATIENCE, client.wait_with_output()).await.expect("it ends").unwrap();
        assert_eq!(output.status.success(), welcome, "{}", String::from_utf8_lossy(&output.stderr));
    }
    world.end().await;
}

#[tokio::test]
async fn the_hub_presents_leaf_and_intermediate_and_serves_its_own_id_only() {
    let Some(world) = World::start().await else { return };
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let ip = address.ip().to_string();
    let credentials = world.npm.certificates.of(&id::party(SPOKES)).await;
    let channel = Channel::connect((&ip, address.port()), &hub, &credentials).await.unwrap();
    let own = world.npm.certificates.of(&hub).await;
    assert_eq!(channel.peer_chain(), own.chain.iter().map(|der| der.to_vec()).collect::<Vec<_>>());
    let other = id::party(HUBS);
    let refused = Channel::connect((&ip, address.port()), &other, &credentials).await;
    assert!(refused.is_err(), "it isn't {other}");

    // Another deployment: same names, other keys.
    let scratch = Scratch::new().await.unwrap();
    let stranger = Deployment::new(&scratch.url, PHRASE, ROUNDS);
    stranger.database.create_tables().await;
    let mut foreign = stranger.certificates.of(&id::party(SPOKES)).await;
    let refused = Channel::connect((&ip, address.port()), &hub, &foreign).await;
    assert!(refused.is_err(), "a client doesn't take a hub of another root");
    foreign.root = credentials.root.clone();
    let refused = Channel::connect((&ip, address.port()), &hub, &foreign).await;
    assert!(refused.is_err(), "the hub doesn't take a client of another root");
    stranger.database.close().await;
    scratch.drop_database().await;
    drop(channel);
    world.end().await;
}
