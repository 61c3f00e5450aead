//! How groups stand: what memory knows, and what the database counts, put together away from the hot path.

use std::{collections::HashMap, time::Duration};

use super::{
    deliveries::{Deliveries, GroupStanding, Standings},
    mail::Handle,
};
use crate::{
    event::{Fault, Group, Uid, code},
    store::{self, GroupKey, Store},
    wire::{Backlog, BacklogQuery, BindingInfo, MOST_LISTED},
};

/// How long deliveries are asked for.
const DEADLINE: Duration = Duration::from_secs(2);

/// Looks at the groups that are asked for.
///
/// # Errors
/// There is no group of that name, or the hub or its database can't answer now.
pub async fn look(
    store: &Store,
    deliveries: &Handle<Deliveries>,
    hub: &Uid,
    query: BacklogQuery,
) -> Result<Vec<Backlog>, Fault> {
    let standings = deliveries.ask(Standings { group: query.group.clone() }, DEADLINE).await;
    let standings = standings.map_err(|error| {
        Fault::retryable(code::HUB_BUSY, format!("how the groups stand isn't known now: {error}"), DEADLINE)
    })?;
    if let (Some(name), true) = (&query.group, standings.is_empty()) {
        let why = format!("the group {name:?} isn't there: it was never made, or it was removed");
        return Err(Fault::refused(code::GROUP_NOT_FOUND, why));
    }
    let bindings = if query.group.is_some() { store.bindings().await? } else { Vec::new() };
    let mut all = Vec::with_capacity(standings.len());
    for standing in standings {
        all.push(one(store, hub, standing, &bindings).await?);
    }
    Ok(all)
}

async fn one(
    store: &Store,
    hub: &Uid,
    standing: GroupStanding,
    bindings: &[store::Binding],
) -> Result<Backlog, Fault> {
    let name = standing.group.as_ref().map(Group::as_str).unwrap_or_default();
    let counts = store.group_counts(hub, GroupKey { name, round: standing.round }).await?;
    // Numbers are microseconds.
    let waits = standing.oldest.map(|seq| i64::try_from(seq / 1_000).unwrap_or(i64::MAX));
    let consumers: HashMap<_, _> =
        standing.bound.iter().map(|(domain, name, count)| ((domain, name), *count)).collect();
    let bindings = bindings.iter().filter(|binding| binding.group == name).take(MOST_LISTED);
    let bindings = bindings
        .map(|binding| BindingInfo {
            domain: binding.domain.clone(),
            name: binding.name.clone(),
            created: binding.created,
            consumers: consumers.get(&(&binding.domain, &binding.name)).copied().unwrap_or(0),
        })
        .collect();
    Ok(Backlog {
        bindings,
        pending: standing.pending,
        in_flight: standing.in_flight,
        retrying: counts.retrying,
        dead: counts.dead,
        oldest: [waits, counts.oldest_retry].into_iter().flatten().min(),
        consumers: standing.consumers,
        settings: standing.settings,
        connected: standing.connected,
        group: standing.group,
    })
}
