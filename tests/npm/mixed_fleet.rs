//! Two hubs of ours and one of npm's, spokes of both stacks that publish and consume one domain: each event is run once
//! and has one outcome, whichever hub and whichever stack wins.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use eventflow::spoke::{Consume, Consumer, Publish, Spoke as OurSpoke, SpokeConfig};

use crate::{
    scratch::until,
    stack::{hub::Hub, spoke::Spoke},
    world::{World, stop},
};

const EVENTS: usize = 150;

/// Who ran each event.
type Runs = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

fn note(runs: &Runs, id: &str, who: &str) {
    runs.lock().unwrap().entry(id.to_owned()).or_default().push(who.to_owned());
}

async fn consume(spoke: &OurSpoke, who: &'static str, runs: &Runs) -> Consumer {
    let runs = Arc::clone(runs);
    spoke
        .consume(Consume::new("orders", "*").credit(2), move |event| {
            note(&runs, event.id.as_str(), who);
            async { Ok::<_, std::io::Error>(()) }
        })
        .await
        .unwrap()
}

#[tokio::test]
async fn each_event_is_run_once_whoever_wins() {
    let Some(world) = World::start().await else { return };
    let (second, _folder) = world.another_hub().await;
    let peer = Hub::start(&world.npm).await;
    let runs = Runs::default();
    let theirs = [Spoke::connected(&world.npm).await, Spoke::connected(&world.npm).await];
    for spoke in &theirs {
        assert_eq!(spoke.hubs().await.len(), 3);
        let (runs, who) = (Arc::clone(&runs), spoke.id().to_owned());
        let run = move |event: &crate::stack::database::Event| {
            note(&runs, &event.id, &who);
            Ok(())
        };
        spoke.consume("orders", "*", run).await;
    }
    world.taken("SubscribeNpm", 2).await;
    let ours =
        [world.ours().await, OurSpoke::connect(SpokeConfig::from_bundle(second.bundle())).await.unwrap()];
    let consumers = [
        consume(&ours[0], "ours at the first", &runs).await,
        consume(&ours[1], "ours at the second", &runs).await,
    ];
    let npms = async {
        for n in 0..EVENTS {
            theirs[n % 2].publish(("orders", "created", "p1"), "{}").await;
        }
    };
    let own = async {
        for n in 0..EVENTS {
            ours[n % 2].publish(Publish::new("orders", "created", "p1")).await.unwrap();
        }
    };
    tokio::join!(npms, own);
    let database = &world.npm.database;
    let all = 2 * EVENTS as i64;
    until("all have their outcome", || async {
        database.published_where("success is not null and failed is null and orphan is null").await == all
    })
    .await;
    let runs = runs.lock().unwrap().clone();
    assert_eq!(runs.len(), 2 * EVENTS);
    let twice: Vec<_> = runs.iter().filter(|(_, by)| by.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(database.published_where("consumer is not null and consumed_spoke is not null").await, all);
    for consumer in consumers {
        consumer.stop().await.unwrap();
    }
    for spoke in theirs {
        spoke.close().await;
    }
    for spoke in ours {
        spoke.close().await;
    }
    peer.stop().await;
    stop(second).await;
    world.end().await;
}
