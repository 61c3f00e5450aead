//! The tables that the npm stack has, with `v1_hub` and `seq` added, and the first of ours.
//!
//! `if not exists` everywhere: on a shared database the npm stack may have made its tables first. On MySQL they are made
//! as that stack makes them, see [`npm`].

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKey, ForeignKeyAction, TableCreateStatement},
};

use super::{
    super::engine::Engine,
    npm,
    shape::{Shape, Wanted, key, of_event},
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261201_000001_core"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        if shape.0 == Engine::MySql {
            npm::make(manager).await?;
        } else {
            let tables = [
                certificate(shape),
                hub(shape),
                event(shape),
                event_published(shape),
                event_scheduled(shape),
                event_cpid(shape),
                event_eid(shape),
                log(shape),
            ];
            for table in tables {
                manager.create_table(table).await?;
            }
        }
        for table in [binding(shape), cursor(shape), attempt(shape), epoch(shape), sequence(shape)] {
            manager.create_table(table).await?;
        }
        for index in INDEXES {
            index.make(manager).await?;
        }
        Ok(())
    }
}

/// A lean set: each index costs throughput, so each serves a read that needs it.
const INDEXES: [Wanted; 5] = [
    // Deleting an event looks for its answers.
    Wanted::all("event_rid", "event", &["rid"]).only("rid IS NOT NULL", &[]).not_on_mysql(),
    // The log of a process.
    Wanted::all("event_log", "event", &["domain", "pid", "timestamp"]).not_on_mysql(),
    // What a hub still has to serve.
    Wanted::all("event_published_open", "event_published", &["v1_hub", "seq"]).only(
        "success IS NULL AND failed IS NULL AND orphan IS NULL",
        &["v1_hub", "success", "failed", "orphan", "seq"],
    ),
    // The attempts of an event.
    Wanted::all("v1_attempt_event", "v1_attempt", &["event_id"]),
    Wanted::all("v1_binding_unique", "v1_binding", &["grp", "domain", "name"]).unique(),
];

fn certificate(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.time("created"),
        shape.time("updated"),
        shape.count("version").default(0).take(),
        shape.short("id"),
        shape.text("cert"),
        shape.bytes("key"),
        shape.bytes("key_iv"),
        shape.bytes("key_salt"),
        shape.bytes("key_tag"),
        shape.bytes("pass"),
        shape.bytes("pass_iv"),
        shape.bytes("pass_salt"),
        shape.bytes("pass_tag"),
        shape.moment("validity").not_null().take(),
        shape.moment("revoked"),
    ];
    shape.table("certificate", columns).primary_key(&mut key(&["version", "id"])).take()
}

fn hub(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.short("id"),
        shape.time("timestamp"),
        shape.short("external_ip"),
        shape.short("internal_ip"),
        shape.port("external_port"),
        shape.port("internal_port"),
        shape.moment("quit"),
    ];
    shape.table("hub", columns).primary_key(&mut key(&["id"])).take()
}

fn event(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.short("id"),
        shape.time("timestamp"),
        shape.short("domain"),
        shape.short_or_null("rid"),
        shape.short("pid"),
        shape.short("name"),
        shape.json("data"),
    ];
    let mut answers = ForeignKey::create()
        .name("fk_event_rid")
        .from("event", "rid")
        .to("event", "id")
        .on_delete(ForeignKeyAction::SetNull)
        .take();
    shape.table("event", columns).primary_key(&mut key(&["id"])).foreign_key(&mut answers).take()
}

fn event_published(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.short("event_id"),
        shape.time("published"),
        shape.short("publisher"),
        shape.short_or_null("consumer"),
        shape.short_or_null("hub"),
        shape.moment("consumed_hub"),
        shape.moment("consumed_spoke"),
        shape.moment("success"),
        shape.moment("failed"),
        shape.moment("orphan"),
        shape.short_or_null("v1_hub"),
        ColumnDef::new("seq").big_integer().null().take(),
    ];
    let mut by = ForeignKey::create()
        .name("fk_event_published_hub")
        .from("event_published", "hub")
        .to("hub", "id")
        .take();
    shape
        .table_in_key("event_published", columns)
        .primary_key(&mut key(&["event_id"]))
        .foreign_key(&mut of_event("event_published"))
        .foreign_key(&mut by)
        .take()
}

fn event_scheduled(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.short("event_id"),
        shape.time("timestamp"),
        shape.moment("scheduled").not_null().take(),
        shape.moment("executed"),
        shape.moment("success"),
        shape.moment("failed"),
    ];
    shape
        .table("event_scheduled", columns)
        .primary_key(&mut key(&["event_id"]))
        .foreign_key(&mut of_event("event_scheduled"))
        .take()
}

fn event_cpid(shape: Shape) -> TableCreateStatement {
    shape
        .table("event_cpid", [shape.short("event_id"), shape.short("domain"), shape.short("cpid")])
        .primary_key(&mut key(&["event_id", "domain", "cpid"]))
        .foreign_key(&mut of_event("event_cpid"))
        .take()
}

fn event_eid(shape: Shape) -> TableCreateStatement {
    shape
        .table("event_eid", [shape.short("event_id"), shape.short("eid")])
        .primary_key(&mut key(&["event_id", "eid"]))
        .foreign_key(&mut of_event("event_eid"))
        .take()
}

fn log(shape: Shape) -> TableCreateStatement {
    let columns = [shape.time("timestamp"), shape.short("agent"), shape.text("message"), shape.json("error")];
    shape.table("log", columns)
}

fn binding(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.counted("id"),
        shape.short("grp"),
        shape.short("domain"),
        shape.short("name"),
        shape.number("start_seq"),
        shape.time("created"),
    ];
    shape.table("v1_binding", columns)
}

fn cursor(shape: Shape) -> TableCreateStatement {
    shape
        .table("v1_cursor", [shape.short("hub_id"), shape.short("grp"), shape.number("seq")])
        .primary_key(&mut key(&["hub_id", "grp"]))
        .take()
}

fn attempt(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.counted("id"),
        shape.short("event_id"),
        shape.short("grp"),
        ColumnDef::new("round").integer().not_null().take(),
        ColumnDef::new("number").integer().not_null().take(),
        shape.short("consumer"),
        shape.time("started"),
        shape.time("ended"),
        shape.words("reason", 64),
        shape.text("error"),
    ];
    shape.table("v1_attempt", columns).foreign_key(&mut of_event("v1_attempt")).take()
}

fn epoch(shape: Shape) -> TableCreateStatement {
    shape
        .table("v1_hub_epoch", [shape.short("hub_id"), shape.number("epoch")])
        .primary_key(&mut key(&["hub_id"]))
        .take()
}

/// The last sequence number of a hub. A table of its own: it changes with each publish, the epoch doesn't.
fn sequence(shape: Shape) -> TableCreateStatement {
    shape
        .table("v1_hub_seq", [shape.short("hub_id"), shape.number("seq")])
        .primary_key(&mut key(&["hub_id"]))
        .take()
}
