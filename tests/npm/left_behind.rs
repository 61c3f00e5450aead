//! What was begun and not finished: by an npm hub that ended between its claim and its broadcast, by spokes while no hub
//! was there, and before the first start of our hub, which is history.

use eventflow::spoke::{Claims, Consume};
use tokio::time::{Instant, timeout};

use crate::{
    scratch::{PATIENCE, Scratch, until},
    stack::{deployment::Deployment, hub::Hub, spoke::Spoke},
    world::{PHRASE, ROUNDS, World},
};

async fn next(claims: &mut Claims) -> String {
    let claim = timeout(PATIENCE, claims.next()).await.expect("a claim").unwrap();
    let id = claim.event().id.to_string();
    claim.ack().await.unwrap();
    id
}

#[tokio::test]
async fn what_an_npm_hub_claimed_and_never_told_is_ours_after_ten_seconds() {
    let Some(world) = World::start().await else { return };
    let peer = Hub::start(&world.npm).await;
    let spoke = Spoke::connected(&world.npm).await;
    let ours = world.ours().await;
    let mut claims = ours.claims(Consume::new("orders", "*")).await.unwrap();
    let began = Instant::now();
    let id = spoke.persist_published(("orders", "created", "p1"), r#"{"a":1}"#).await;
    assert!(world.npm.database.claim_for_hub(&id, peer.id()).await);
    peer.stop().await;
    assert_eq!(next(&mut claims).await, id);
    // Its time has whole seconds, so that it may seem up to one second older than it is.
    assert!(began.elapsed().as_millis() > 8_900, "not before: {:?}", began.elapsed());
    let done = format!("event_id = '{id}' and success is not null and hub != v1_hub");
    assert_eq!(world.npm.database.published_where(&done).await, 1, "who claimed it stays in its column");
    spoke.close().await;
    ours.close().await;
    world.end().await;
}

#[tokio::test]
async fn what_is_older_than_the_first_start_is_history() {
    let Some(scratch) = Scratch::new().await else { return };
    let npm = Deployment::new(&scratch.url, PHRASE, ROUNDS);
    npm.database.create_tables().await;
    let spoke = Spoke::start(&npm).await;
    let old = spoke.persist_published(("orders", "created", "old"), "{}").await;
    let sql = "select timestampdiff(second, published, now()) from event_published";
    until("a second is over", || async { npm.database.get::<i64>(sql, &[]).await > Some(1) }).await;
    let world = World::on(scratch, npm, |_| {}).await;
    let ours = world.ours().await;
    let mut claims = ours.claims(Consume::new("orders", "*")).await.unwrap();
    let new = spoke.persist_published(("orders", "created", "new"), "{}").await;
    // No hub was told of either: the look at what nobody has goes by age.
    assert_eq!(next(&mut claims).await, new);
    let untouched = format!("event_id = '{old}' and v1_hub is null and consumed_hub is null");
    assert_eq!(world.npm.database.published_where(&untouched).await, 1);
    // Whoever names it gets it.
    until("the spoke is connected", || async { !spoke.hubs().await.is_empty() }).await;
    spoke.tell(&["publish", "orders", &old, "created", "old"]).await;
    assert_eq!(next(&mut claims).await, old);
    spoke.close().await;
    ours.close().await;
    world.end().await;
}
