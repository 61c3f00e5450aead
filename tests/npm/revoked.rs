//! Flow: revoked certificate. Who is revoked in the table is cut and let in no more; with a new certificate, which npm
//! makes by itself, it comes back. npm's renewal, which revokes too, cuts nobody.

use crate::{
    scratch::until,
    stack::{channel::Channel, deployment::SPOKES, id, spoke::Spoke},
    world::World,
};

#[tokio::test]
async fn a_revoked_spoke_is_cut_and_let_in_no_more() {
    let Some(world) = World::start().await else { return };
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let ip = address.ip().to_string();
    let (victim, other) = (id::party(SPOKES), Spoke::connected(&world.npm).await);
    let credentials = world.npm.certificates.of(&victim).await;
    let channel = Channel::connect((&ip, address.port()), &hub, &credentials).await.unwrap();
    let (mut reader, _writer) = channel.split();
    world.npm.certificates.revoke(&victim).await;
    assert_eq!(reader.receive().await, None, "the link is cut");
    let refused = Channel::connect((&ip, address.port()), &hub, &credentials).await;
    assert!(refused.is_err(), "and not let in again");
    until("the other link lives", || async { world.hub.metrics().hub.links["npm"] == 1 }).await;
    assert_eq!(other.hubs().await, [&*hub]);

    // The id may have another certificate: version 0 is free.
    let again = world.npm.certificates.of(&victim).await;
    assert_ne!(again.leaf_pem, credentials.leaf_pem);
    let channel = Channel::connect((&ip, address.port()), &hub, &again).await;
    assert!(channel.is_ok(), "{:?}", channel.err());
    let versions = "select count(*) from certificate where id = ?";
    assert_eq!(world.npm.database.get::<i64>(versions, &[&victim]).await, Some(2));
    drop(channel);
    other.close().await;
    world.end().await;
}

#[tokio::test]
async fn spokes_under_a_revoked_intermediate_are_cut() {
    let Some(world) = World::start().await else { return };
    let spoke = Spoke::connected(&world.npm).await;
    world.npm.certificates.revoke(SPOKES).await;
    until("the link is cut", || async { world.hub.metrics().hub.links["npm"] == 0 }).await;
    // It comes back by itself under another intermediate, once its leaf is made anew too.
    world.npm.certificates.revoke(spoke.id()).await;
    until("it is back", || async { world.hub.metrics().hub.links["npm"] == 1 }).await;
    spoke.close().await;
    world.end().await;
}

/// The last ten minutes of a certificate: npm revokes it and makes another one.
#[tokio::test]
async fn npms_renewal_near_the_end_cuts_nobody() {
    let Some(world) = World::start().await else { return };
    let spoke = Spoke::connected(&world.npm).await;
    let (id, database) = (spoke.id(), &world.npm.database);
    // As if the leaf had been made a week ago: what counts is the row.
    let sql = "update certificate set revoked = validity - interval 9 minute, version = 1 where id = ?";
    assert_eq!(database.run(sql, &[id]).await, 1);
    let other = id::party(SPOKES);
    let credentials = world.npm.certificates.of(&other).await;
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let ip = address.ip().to_string();
    let channel = Channel::connect((&ip, address.port()), &hub, &credentials).await.unwrap();
    let (mut reader, _writer) = channel.split();
    // When the hub has seen this one it has seen the other one too.
    world.npm.certificates.revoke(&other).await;
    assert_eq!(reader.receive().await, None);
    assert_eq!(spoke.hubs().await, [&*hub], "its link lives");
    spoke.close().await;
    world.end().await;
}
