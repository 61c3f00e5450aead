//! Which hubs live.

use super::*;

#[tokio::test]
async fn hubs_live_by_their_leases_until_they_stop() {
    let store = fresh().await;
    let seat = |folder: &str| Seat { host: "here".to_owned(), folder: folder.to_owned() };
    let live = async || {
        let rows = store.live_hubs(10).await.unwrap();
        rows.into_iter().map(|row| row.id.to_string()).collect::<Vec<_>>()
    };
    // Registered, as an npm hub is, but without a lease.
    assert_eq!(live().await, [""; 0]);
    for id in ["HUB-2", "HUB-3"] {
        store.take_hub(&hub_row(id), &seat(id)).await.unwrap();
    }
    if !store.is_on_server() {
        assert_eq!(live().await, [""; 0], "there is one hub, which knows itself");
        return;
    }
    assert_eq!(live().await, ["HUB-2", "HUB-3"]);
    assert_eq!(store.live_hubs(1).await.unwrap(), [hub_row("HUB-2")]);
    sql(&store, "UPDATE v1_hub_lease SET until_ms = 0 WHERE hub_id = 'HUB-2'").await;
    assert_eq!(live().await, ["HUB-3"]);
    store.hub_quit(&uid("HUB-3")).await.unwrap();
    assert_eq!(live().await, [""; 0]);
}
