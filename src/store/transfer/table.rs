//! What is moved: a table of tables, with their columns and keys. A test compares it with the schema.

use super::super::engine::Engine;

/// A table that is moved.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name in the file.
    pub(super) name: &'static str,
    /// Its name in the database.
    pub(super) of: &'static str,
    /// What is moved of it. The first of them are its key.
    pub(super) columns: &'static [Column],
    /// So many.
    pub(super) key: usize,
    /// Which rows, in SQL; empty: all.
    pub(super) only: &'static str,
    /// A column that may be large: pages are cut by it.
    pub(super) large: Option<&'static str>,
    /// How rows are written.
    pub(super) how: How,
    /// Only servers have it.
    pub(super) servers: bool,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// As new ones.
    Insert,
    /// The second column is set in rows that are there.
    Set,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// What a column holds, and so how it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text, as it is.
    Text,
    /// JSON, as a text.
    Json,
    /// A moment, in milliseconds since 1970.
    Moment,
    /// A whole number.
    Whole,
    /// Yes or no.
    Flag,
    /// Bytes, in Base64.
    Bytes,
    /// A text of which MySQL's table takes 16 characters: where a hub was, which it writes anew at its start.
    Address,
}

impl Table {
    const fn new(name: &'static str, key: usize, columns: &'static [Column]) -> Self {
        Self { name, of: name, columns, key, only: "", large: None, how: How::Insert, servers: false }
    }

    const fn large(self, column: &'static str) -> Self {
        Self { large: Some(column), ..self }
    }

    const fn on_servers(self) -> Self {
        Self { servers: true, ..self }
    }

    /// A column of rows of another table that is set once all of those are there.
    const fn set(self, of: &'static str, only: &'static str) -> Self {
        Self { of, only, how: How::Set, ..self }
    }

    /// Whether this engine has it.
    pub(super) fn is_on(&self, engine: Engine) -> bool {
        !(self.servers && engine.is_sqlite())
    }

    /// Its place in [`TABLES`].
    pub(super) fn place(name: &str) -> Option<usize> {
        TABLES.iter().position(|table| table.name == name)
    }
}

impl Column {
    /// Its name for a statement: one of them is a word of MySQL's.
    pub(super) fn quoted(&self, engine: Engine) -> String {
        if engine == Engine::MySql { format!("`{}`", self.name) } else { self.name.to_owned() }
    }
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

const fn text(name: &'static str) -> Column {
    column(name, Kind::Text)
}

const fn json(name: &'static str) -> Column {
    column(name, Kind::Json)
}

const fn moment(name: &'static str) -> Column {
    column(name, Kind::Moment)
}

const fn whole(name: &'static str) -> Column {
    column(name, Kind::Whole)
}

const fn bytes(name: &'static str) -> Column {
    column(name, Kind::Bytes)
}

const fn address(name: &'static str) -> Column {
    column(name, Kind::Address)
}

/// All that is moved, in an order in which what is named stands before what names it.
pub(super) const TABLES: &[Table] = &[
    Table::new(
        "hub",
        1,
        &[
            text("id"),
            moment("timestamp"),
            address("external_ip"),
            whole("external_port"),
            address("internal_ip"),
            whole("internal_port"),
            moment("quit"),
        ],
    ),
    Table::new(
        "certificate",
        2,
        &[
            whole("version"),
            text("id"),
            moment("created"),
            moment("updated"),
            text("cert"),
            bytes("key"),
            bytes("key_iv"),
            bytes("key_salt"),
            bytes("key_tag"),
            bytes("pass"),
            bytes("pass_iv"),
            bytes("pass_salt"),
            bytes("pass_tag"),
            moment("validity"),
            moment("revoked"),
        ],
    ),
    Table::new("v1_hub_epoch", 1, &[text("hub_id"), whole("epoch")]),
    Table::new("v1_hub_seq", 1, &[text("hub_id"), whole("seq")]),
    Table::new(
        "v1_hub_lease",
        1,
        &[
            text("hub_id"),
            whole("epoch"),
            text("host"),
            text("folder"),
            whole("until_ms"),
            text("adopted_by"),
        ],
    )
    .on_servers(),
    Table::new("v1_marker", 1, &[text("name"), whole("at")]),
    Table::new("v1_group", 1, &[text("name"), text("settings"), whole("round"), moment("created")]),
    Table::new(
        "v1_binding",
        1,
        &[whole("id"), text("grp"), text("domain"), text("name"), whole("start_seq"), moment("created")],
    ),
    Table::new(
        "v1_binding_start",
        2,
        &[whole("binding_id"), whole("place"), text("domain"), whole("start_seq")],
    ),
    Table::new("v1_cursor", 2, &[text("hub_id"), text("grp"), whole("seq")]),
    Table::new(
        "v1_recurring",
        1,
        &[
            text("name"),
            text("domain"),
            text("event"),
            text("pid"),
            text("data"),
            text("rule"),
            text("zone"),
            text("missed"),
            whole("window_ms"),
            whole("start_at"),
            whole("end_at"),
            column("paused", Kind::Flag),
            whole("due"),
            whole("last"),
            whole("ran"),
            whole("left_out"),
            text("publisher"),
            whole("made"),
        ],
    )
    .large("data"),
    Table::new(
        "v1_removed",
        1,
        &[
            whole("id"),
            text("hub"),
            text("domain"),
            whole("first_seq"),
            whole("last_seq"),
            whole("events"),
            moment("removed"),
        ],
    ),
    Table::new(
        "event",
        1,
        &[text("id"), moment("timestamp"), text("domain"), text("pid"), text("name"), json("data")],
    )
    .large("data"),
    Table::new("answer", 1, &[text("id"), text("rid")]).set("event", "t.rid IS NOT NULL"),
    Table::new(
        "event_published",
        1,
        &[
            text("event_id"),
            moment("published"),
            text("publisher"),
            text("consumer"),
            text("hub"),
            moment("consumed_hub"),
            moment("consumed_spoke"),
            moment("success"),
            moment("failed"),
            moment("orphan"),
            text("v1_hub"),
            whole("seq"),
        ],
    ),
    Table::new(
        "event_scheduled",
        1,
        &[
            text("event_id"),
            moment("timestamp"),
            moment("scheduled"),
            moment("executed"),
            moment("success"),
            moment("failed"),
        ],
    ),
    Table::new("event_cpid", 3, &[text("event_id"), text("domain"), text("cpid")]),
    Table::new("event_eid", 2, &[text("event_id"), text("eid")]),
    Table::new("v1_claim", 1, &[text("event_id")]),
    Table::new("v1_schedule", 1, &[text("event_id"), whole("due")]),
    Table::new("v1_occurrence", 1, &[text("event_id"), text("name"), whole("due")]),
    Table::new(
        "v1_attempt",
        1,
        &[
            whole("id"),
            text("event_id"),
            text("grp"),
            whole("round"),
            whole("number"),
            text("consumer"),
            moment("started"),
            moment("ended"),
            text("reason"),
            text("error"),
        ],
    ),
    Table::new(
        "v1_outcome",
        3,
        &[
            text("event_id"),
            text("grp"),
            whole("round"),
            text("hub"),
            whole("seq"),
            text("outcome"),
            text("consumer"),
            moment("ended"),
            moment("dead"),
        ],
    ),
    Table::new(
        "v1_retry",
        2,
        &[
            text("event_id"),
            text("grp"),
            text("hub"),
            whole("seq"),
            text("pid"),
            whole("round"),
            whole("attempts"),
            whole("due"),
        ],
    ),
];

/// Tables whose `id` the database counts up: PostgreSQL is told where to go on.
pub(super) const COUNTED: [&str; 3] = ["v1_binding", "v1_attempt", "v1_removed"];

/// What isn't moved: which migrations the database has, which each database knows of itself, and the protocol of what its
/// hubs did, which isn't their state.
#[cfg(test)]
pub(super) const LEFT_OUT: [&str; 2] = ["v1_migration", "log"];

/// Columns that aren't moved either: of a transaction that was under way.
#[cfg(test)]
pub(super) const LEFT_OUT_COLUMNS: [(&str, &str); 1] = [("v1_hub_epoch", "mark")];
