//! Events that applications have put into the database in transactions of their own: many at once, by the claims of
//! [`takes`].

use std::collections::HashSet;

use sea_orm::{DbErr, Value};

use super::{
    super::{
        Collected, CollectedAs, Collecting, NotTaken, Taken, Write, Written,
        engine::Ask,
        sql::{Script, fill, marks, pieces, rounded, rows_of, signed, update_from, update_which},
        time,
        writer::Db,
    },
    Answer, publishes,
    takes::{self, Found},
};
use crate::event::{Data, Domain, Event, EventId, Fault, Name, Pid, Uid, code};

/// Collects what the batch's writes name, in their order, and answers them.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    for (write, answer) in writes.iter().zip(answers) {
        let Write::Collect { events, hub, at, data_bytes } = write else { continue };
        *answer = Ok(Written::Collected(collect(db, events, hub, *at, *data_bytes).await?));
    }
    Ok(())
}

async fn collect(
    db: &Db<'_>,
    events: &[Collecting],
    hub: &Uid,
    at: i64,
    data_bytes: usize,
) -> Result<Vec<Collected>, DbErr> {
    let ids: Vec<&EventId> = events.iter().map(|event| &event.id).collect();
    let mut found = takes::find(db, &ids).await?;
    let mut wanted = Vec::with_capacity(events.len());
    let mut judged = Vec::with_capacity(events.len());
    for event in events {
        // An id that is named twice is collected once.
        let verdict = judge(found.remove(&event.id), data_bytes);
        if verdict.is_ok() {
            wanted.push(event);
        }
        judged.push((event, verdict));
    }
    let told = tell_npm(db, &wanted, hub, at).await?;
    let served = serve(db, &wanted, hub).await?;
    let mut script = Script::new(db.engine());
    let given = wanted.iter().filter(|event| served.contains(&event.id));
    publishes::save_seq(given.map(|event| (hub, event.seq)), &mut script);
    script.run(db).await?;

    let answer = |(event, verdict): (&Collecting, Result<Found, CollectedAs>)| {
        let what = match verdict {
            Err(why) => why,
            Ok(_) if !served.contains(&event.id) => CollectedAs::Before,
            Ok(Found { event: stored, claimed, .. }) => CollectedAs::Taken(Box::new(Taken {
                broadcasts: told.contains(&event.id),
                serves: true,
                claimed,
                event: stored,
            })),
        };
        Collected { id: event.id.clone(), seq: event.seq, what }
    };
    Ok(judged.into_iter().map(answer).collect())
}

/// Whether an event is to be collected.
fn judge(found: Option<Found>, data_bytes: usize) -> Result<Found, CollectedAs> {
    let found = found.ok_or(CollectedAs::NotTaken(NotTaken::Unknown))?;
    if !found.published {
        return Err(CollectedAs::NotTaken(NotTaken::Unpublished));
    }
    if found.waits {
        return Err(CollectedAs::NotTaken(NotTaken::Scheduled));
    }
    if found.served || found.over {
        return Err(CollectedAs::Before);
    }
    match fault_of(&found.event, data_bytes) {
        Some(fault) => Err(CollectedAs::Invalid(fault.message)),
        None => Ok(found),
    }
}

/// What a publish of this event would be refused for.
fn fault_of(event: &Event, data_bytes: usize) -> Option<Fault> {
    let text = |text: &str| text.to_owned();
    let check = || {
        EventId::parse(text(&event.id))?;
        Domain::parse(text(&event.domain))?;
        Name::parse(text(&event.name))?;
        Pid::parse(text(&event.pid))?;
        event.rid.as_ref().map(|rid| EventId::parse(text(rid))).transpose()?;
        if event.data.len() > data_bytes {
            let (len, id) = (event.data.len(), &event.id);
            let text =
                format!("the event {id:?} has {len} bytes of data and this hub takes at most {data_bytes}");
            return Err(Fault::refused(code::EVENT_TOO_LARGE, text));
        }
        Data::parse(event.data.as_bytestring().clone())?;
        Ok::<(), Fault>(())
    };
    check().err()
}

/// The claim that npm hubs make too: of those that it wins npm spokes are told.
async fn tell_npm(
    db: &Db<'_>,
    events: &[&Collecting],
    hub: &Uid,
    at: i64,
) -> Result<HashSet<EventId>, DbErr> {
    let mut told = HashSet::with_capacity(events.len());
    for piece in pieces(events) {
        let mut ids = piece.iter().map(|event| event.id.as_str().into()).collect();
        fill(&mut ids, piece.len(), 1);
        let which = format!("event_id IN ({}) AND consumed_hub IS NULL", marks(rounded(piece.len())));
        let set = ("consumed_hub = ?, hub = ?".to_owned(), vec![time::value(at), hub.as_str().into()]);
        told.extend(update_which(db, "event_published", set, (which, ids)).await?);
    }
    Ok(told)
}

/// The claim among our own hubs: who wins it serves them.
async fn serve(db: &Db<'_>, events: &[&Collecting], hub: &Uid) -> Result<HashSet<EventId>, DbErr> {
    let mut served = HashSet::with_capacity(events.len());
    for piece in pieces(events) {
        let mut ids = piece.iter().map(|event| event.id.as_str().into()).collect();
        fill(&mut ids, piece.len(), 1);
        let which = format!("event_id IN ({}) AND v1_hub IS NULL", marks(rounded(piece.len())));
        let set = ("v1_hub = ?".to_owned(), vec![hub.as_str().into()]);
        let won = update_which(db, "event_published", set, (which, ids)).await?;
        let given: Vec<&Collecting> = piece.iter().copied().filter(|event| won.contains(&event.id)).collect();
        number(db, &given).await?;
        served.extend(won);
    }
    Ok(served)
}

/// Gives the numbers to those that were won.
async fn number(db: &Db<'_>, events: &[&Collecting]) -> Result<(), DbErr> {
    if events.is_empty() {
        return Ok(());
    }
    let mut values: Vec<Value> = Vec::with_capacity(rounded(events.len()) * 2);
    for event in events {
        values.extend([event.id.as_str().into(), signed(event.seq).into()]);
    }
    fill(&mut values, events.len(), 2);
    let (sql, values) = update_from(
        db.engine(),
        "event_published",
        ("seq = n.column2".to_owned(), Vec::new()),
        (format!("{} n", rows_of(events.len(), 2)), values),
        "event_id = @id(n.column1)",
    );
    db.run(sql, values).await.map(drop)
}
