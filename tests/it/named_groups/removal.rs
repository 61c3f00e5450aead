//! A removal that the journal refuses, and one that it takes its time for: consumers hear of it when it is true.

use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};

use super::ids;
use crate::support::{Raw, TestHub, engine, until};

const REMOVE: &str = r#"{"remove":{}}"#;

/// Another program at the hub's database.
async fn other(hub: &TestHub) -> DatabaseConnection {
    engine::open(&hub.database()).await
}

/// A link with a consumer of the group `billing`, and the tokens of these events, which it holds.
async fn holding(hub: &TestHub, events: &[String]) -> (Raw, Vec<String>) {
    let mut link = hub.v1().await;
    let consume = ["consume", "1", "1", "billing", "orders", "*", r#"{"credit":2,"from":"all"}"#];
    assert_eq!(link.ask(&consume).await[0], "ok");
    let mut tokens = Vec::new();
    for (n, id) in events.iter().enumerate() {
        publish(&mut link, 100 + n, id).await;
        tokens.push(claim(&mut link, id).await);
    }
    (link, tokens)
}

async fn publish(link: &mut Raw, req: usize, id: &str) {
    let published = link.ask(&["publish", &req.to_string(), id, "orders", "created", id, "", "{}"]).await;
    assert_eq!(published[0], "ok");
}

/// The token of the next claim, which is of this event and the first attempt.
async fn claim(link: &mut Raw, id: &str) -> String {
    let claim = link.event().await;
    assert_eq!((&*claim[0], &*claim[3], &*claim[5]), ("claim", "1", id), "{claim:?}");
    claim[2].clone()
}

/// Asks for the removal, settles both claims while the journal waits for the database, and lets that go on.
async fn remove_and_settle(link: &mut Raw, tokens: &[String], database: &DatabaseConnection) {
    database.execute_unprepared("BEGIN IMMEDIATE").await.unwrap();
    link.send(&["group", "10", "billing", REMOVE]).await;
    link.send(&["ack", "11", &tokens[0]]).await;
    link.send(&["nack", "12", &tokens[1], r#"{"reason":"no","final":true}"#]).await;
    // Whoever is to join a group that may end comes again.
    let joined = link.ask(&["consume", "13", "2", "billing", "orders", "*", r#"{"credit":1}"#]).await;
    assert_eq!(joined[..3], ["err", "13", "E_EVENTFLOW_HUB_BUSY"], "{joined:?}");
    assert!(link.put_aside().is_none(), "nothing is told before it is true");
    database.execute_unprepared("ROLLBACK").await.unwrap();
}

#[tokio::test]
async fn consumers_of_a_group_whose_removal_is_refused_go_on() {
    if engine::is_only_for_sqlite("it holds the one writer, and makes a trigger in SQLite's words") {
        return;
    }
    let hub = TestHub::start().await;
    let (mut link, tokens) = holding(&hub, &ids("a", 2)).await;
    let database = other(&hub).await;
    let trigger = "CREATE TRIGGER refused BEFORE DELETE ON v1_group BEGIN SELECT RAISE(ABORT, 'no'); END";
    database.execute_unprepared(trigger).await.unwrap();
    remove_and_settle(&mut link, &tokens, &database).await;
    assert_eq!(link.reply("10").await[0], "err");
    for req in ["11", "12"] {
        assert_eq!(link.reply(req).await, ["ok", req], "what was settled meanwhile is recorded");
    }
    publish(&mut link, 20, "b").await;
    let token = claim(&mut link, "b").await;
    assert_eq!(link.ask(&["ack", "21", &token]).await, ["ok", "21"], "its consumer goes on");
    for (id, state) in [("a000", "success"), ("a001", "dead"), ("b", "success")] {
        let asked = ["outcome", "22", id, r#"{"group":"billing","timeout_ms":30000}"#];
        let outcome = link.ask(&asked).await;
        assert!(outcome[3].contains(&format!("\"{state}\"")), "{outcome:?}");
    }

    // And once it may be removed, it is.
    database.execute_unprepared("DROP TRIGGER refused").await.unwrap();
    database.close().await.unwrap();
    assert_eq!(link.ask(&["group", "30", "billing", REMOVE]).await[0], "ok");
    assert_eq!(link.event().await[..3], ["ended", "1", "E_EVENTFLOW_GROUP_NOT_FOUND"]);
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn what_is_settled_while_its_group_is_being_removed_is_lost_with_it() {
    if engine::is_only_for_sqlite("it holds the one writer, and makes a trigger in SQLite's words") {
        return;
    }
    let hub = TestHub::start().await;
    let (mut link, tokens) = holding(&hub, &ids("a", 2)).await;
    let database = other(&hub).await;
    remove_and_settle(&mut link, &tokens, &database).await;
    database.close().await.unwrap();
    for req in ["11", "12"] {
        assert_eq!(link.reply(req).await[..3], ["err", req, "E_EVENTFLOW_CLAIM_LOST"]);
    }
    assert_eq!(link.reply("10").await[0], "ok");
    assert_eq!(link.event().await[..3], ["ended", "1", "E_EVENTFLOW_GROUP_NOT_FOUND"]);

    // Nothing of it came behind the removal: for a group of that name all is new.
    let consume = ["consume", "40", "3", "billing", "orders", "*", r#"{"credit":2,"from":"all"}"#];
    assert_eq!(link.ask(&consume).await[0], "ok");
    for id in ids("a", 2) {
        claim(&mut link, &id).await;
    }
    drop(link);
    hub.stop().await;
}

/// As a hub leaves it that is killed between the parts of a removal: the group is gone, its outcomes aren't.
#[tokio::test]
async fn a_removal_that_a_kill_interrupts_is_forgotten_at_once_and_done_at_the_next_start() {
    let hub = TestHub::start().await;
    let (mut link, tokens) = holding(&hub, &ids("a", 2)).await;
    assert_eq!(link.ask(&["ack", "11", &tokens[0]]).await[0], "ok");
    let failed = ["nack", "12", &tokens[1], r#"{"reason":"no","final":true}"#];
    assert_eq!(link.ask(&failed).await[0], "ok");
    let database = other(&hub).await;
    for table in ["v1_group", "v1_binding", "v1_cursor"] {
        let column = if table == "v1_group" { "name" } else { "grp" };
        let delete = format!("DELETE FROM {table} WHERE {column} = 'billing'");
        database.execute_unprepared(&delete).await.unwrap();
    }
    drop(link);
    let spoke = hub.spoke().await;
    for id in ids("a", 2) {
        let (_, trace) = spoke.show(&id).await.unwrap();
        assert!(
            trace.groups.iter().all(|of| of.group.is_none()),
            "what is left tells of no group: {trace:?}"
        );
    }
    spoke.close().await;
    database.close().await.unwrap();

    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let database = other(&hub).await;
    until("the rest of the removed group goes", || async {
        let backend = database.get_database_backend();
        let left = Statement::from_string(backend, "SELECT 1 FROM v1_outcome WHERE grp = 'billing' LIMIT 1");
        database.query_one_raw(left).await.unwrap().is_none()
    })
    .await;
    database.close().await.unwrap();
    hub.stop().await;
}
