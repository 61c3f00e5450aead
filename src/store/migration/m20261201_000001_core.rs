//! The tables that the npm stack has, with `v1_hub` and `seq` added, and the first of ours.
//!
//! `if not exists` everywhere: on a shared database the npm stack may have made its tables first.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{
        ColumnDef, ConditionalStatement, Expr, ExprTrait, ForeignKey, ForeignKeyAction,
        ForeignKeyCreateStatement, Index, IndexCreateStatement, Table, TableCreateStatement,
    },
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
        let tables = [
            certificate(),
            hub(),
            event(),
            event_published(),
            event_scheduled(),
            event_cpid(),
            event_eid(),
            log(),
            binding(),
            cursor(),
            attempt(),
            epoch(),
            sequence(),
        ];
        for table in tables {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }
}

/// A text of at most 64 characters, as ids, names and pids are.
fn short(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).string_len(64).not_null().take()
}

fn short_or_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).string_len(64).null().take()
}

fn number(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().not_null().take()
}

/// A time that the database gives if the insert doesn't.
fn time(name: &'static str) -> ColumnDef {
    let now = Expr::cust("(strftime('%Y-%m-%d %H:%M:%f', 'now'))");
    ColumnDef::new(name).date_time().not_null().default(now).take()
}

fn time_or_null(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).date_time().null().take()
}

fn bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).blob().not_null().take()
}

fn table(name: &'static str, columns: impl IntoIterator<Item = ColumnDef>) -> TableCreateStatement {
    let mut table = Table::create();
    table.table(name).if_not_exists();
    for column in columns {
        table.col(column);
    }
    table
}

fn key(columns: &[&'static str]) -> IndexCreateStatement {
    let mut key = Index::create();
    for column in columns {
        key.col(*column);
    }
    key
}

/// A column that names an event, and goes with it.
fn of_event(table: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("fk_{table}_event"))
        .from(table, "event_id")
        .to("event", "id")
        .on_delete(ForeignKeyAction::Cascade)
        .take()
}

fn certificate() -> TableCreateStatement {
    let columns = [
        time("created"),
        time("updated"),
        ColumnDef::new("version").unsigned().not_null().default(0).take(),
        short("id"),
        ColumnDef::new("cert").text().not_null().take(),
        bytes("key"),
        bytes("key_iv"),
        bytes("key_salt"),
        bytes("key_tag"),
        bytes("pass"),
        bytes("pass_iv"),
        bytes("pass_salt"),
        bytes("pass_tag"),
        ColumnDef::new("validity").date_time().not_null().take(),
        time_or_null("revoked"),
    ];
    table("certificate", columns).primary_key(&mut key(&["version", "id"])).take()
}

fn hub() -> TableCreateStatement {
    let columns = [
        short("id"),
        time("timestamp"),
        ColumnDef::new("external_ip").string_len(64).not_null().take(),
        ColumnDef::new("internal_ip").string_len(64).not_null().take(),
        ColumnDef::new("external_port").small_unsigned().not_null().take(),
        ColumnDef::new("internal_port").small_unsigned().not_null().take(),
        time_or_null("quit"),
    ];
    table("hub", columns).primary_key(&mut key(&["id"])).take()
}

fn event() -> TableCreateStatement {
    let columns = [
        short("id"),
        time("timestamp"),
        short("domain"),
        short_or_null("rid"),
        short("pid"),
        short("name"),
        ColumnDef::new("data").text().not_null().take(),
    ];
    let answers = ForeignKey::create()
        .name("fk_event_rid")
        .from("event", "rid")
        .to("event", "id")
        .on_delete(ForeignKeyAction::SetNull)
        .take();
    table("event", columns).primary_key(&mut key(&["id"])).foreign_key(&mut answers.clone()).take()
}

fn event_published() -> TableCreateStatement {
    let columns = [
        short("event_id"),
        time("published"),
        short("publisher"),
        short_or_null("consumer"),
        short_or_null("hub"),
        time_or_null("consumed_hub"),
        time_or_null("consumed_spoke"),
        time_or_null("success"),
        time_or_null("failed"),
        time_or_null("orphan"),
        short_or_null("v1_hub"),
        ColumnDef::new("seq").big_integer().null().take(),
    ];
    let by = ForeignKey::create()
        .name("fk_event_published_hub")
        .from("event_published", "hub")
        .to("hub", "id")
        .take();
    table("event_published", columns)
        .primary_key(&mut key(&["event_id"]))
        .foreign_key(&mut of_event("event_published"))
        .foreign_key(&mut by.clone())
        .extra("WITHOUT ROWID")
        .take()
}

fn event_scheduled() -> TableCreateStatement {
    let columns = [
        short("event_id"),
        time("timestamp"),
        ColumnDef::new("scheduled").date_time().not_null().take(),
        time_or_null("executed"),
        time_or_null("success"),
        time_or_null("failed"),
    ];
    table("event_scheduled", columns)
        .primary_key(&mut key(&["event_id"]))
        .foreign_key(&mut of_event("event_scheduled"))
        .take()
}

fn event_cpid() -> TableCreateStatement {
    table("event_cpid", [short("event_id"), short("domain"), short("cpid")])
        .primary_key(&mut key(&["event_id", "domain", "cpid"]))
        .foreign_key(&mut of_event("event_cpid"))
        .take()
}

fn event_eid() -> TableCreateStatement {
    table("event_eid", [short("event_id"), short("eid")])
        .primary_key(&mut key(&["event_id", "eid"]))
        .foreign_key(&mut of_event("event_eid"))
        .take()
}

fn log() -> TableCreateStatement {
    let columns = [
        time("timestamp"),
        short("agent"),
        ColumnDef::new("message").text().not_null().take(),
        ColumnDef::new("error").text().not_null().take(),
    ];
    table("log", columns)
}

fn binding() -> TableCreateStatement {
    let columns = [
        ColumnDef::new("id").big_integer().not_null().auto_increment().primary_key().take(),
        short("grp"),
        short("domain"),
        short("name"),
        number("start_seq"),
        time("created"),
    ];
    table("v1_binding", columns)
}

fn cursor() -> TableCreateStatement {
    table("v1_cursor", [short("hub_id"), short("grp"), number("seq")])
        .primary_key(&mut key(&["hub_id", "grp"]))
        .take()
}

fn attempt() -> TableCreateStatement {
    let columns = [
        ColumnDef::new("id").big_integer().not_null().auto_increment().primary_key().take(),
        short("event_id"),
        short("grp"),
        ColumnDef::new("round").integer().not_null().take(),
        ColumnDef::new("number").integer().not_null().take(),
        short("consumer"),
        time("started"),
        time("ended"),
        short("reason"),
        ColumnDef::new("error").text().not_null().take(),
    ];
    table("v1_attempt", columns).foreign_key(&mut of_event("v1_attempt")).take()
}

fn epoch() -> TableCreateStatement {
    table("v1_hub_epoch", [short("hub_id"), number("epoch")]).primary_key(&mut key(&["hub_id"])).take()
}

/// The last sequence number of a hub. A table of its own: it changes with each publish, the epoch doesn't.
fn sequence() -> TableCreateStatement {
    table("v1_hub_seq", [short("hub_id"), number("seq")]).primary_key(&mut key(&["hub_id"])).take()
}

/// A lean set: each index costs throughput, so each serves a read that needs it.
fn indexes() -> Vec<IndexCreateStatement> {
    let index = |name: &str, table: &'static str, columns: &[&'static str]| {
        key(columns).name(name.to_owned()).table(table).if_not_exists().take()
    };
    let open = ["success", "failed", "orphan"].map(|outcome| Expr::col(outcome).is_null());
    vec![
        // Deleting an event looks for its answers.
        index("event_rid", "event", &["rid"]).and_where(Expr::col("rid").is_not_null()).take(),
        // The log of a process.
        index("event_log", "event", &["domain", "pid", "timestamp"]),
        // What a hub still has to serve.
        open.into_iter()
            .fold(index("event_published_open", "event_published", &["v1_hub", "seq"]), |mut index, part| {
                index.and_where(part).take()
            }),
        // The attempts of an event.
        index("v1_attempt_event", "v1_attempt", &["event_id"]),
        index("v1_binding_unique", "v1_binding", &["grp", "domain", "name"]).unique().take(),
    ]
}
