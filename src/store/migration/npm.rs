//! The tables that the npm stack shares with us on MySQL and MariaDB, as it makes them: whoever comes first, the other
//! works on them. Its indexes bear the names that it gives them, since it makes none where its table is.

use sea_orm_migration::{
    SchemaManager,
    sea_orm::{ConnectionTrait, DbErr},
};

/// Behind each table.
const BYTEWISE: &str = "ENGINE = InnoDB DEFAULT CHARSET = ascii COLLATE = ascii_bin";

/// Name, columns, and what follows the table.
const TABLES: [(&str, &str, &str); 8] = [
    (
        "certificate",
        "created DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
         updated DATETIME(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),
         version INT UNSIGNED NOT NULL DEFAULT 0, id VARCHAR(64) NOT NULL, cert TEXT NOT NULL,
         `key` BLOB NOT NULL, key_iv VARBINARY(16) NOT NULL, key_salt VARBINARY(16) NOT NULL,
         key_tag VARBINARY(16) NOT NULL, pass BLOB NOT NULL, pass_iv VARBINARY(16) NOT NULL,
         pass_salt VARBINARY(16) NOT NULL, pass_tag VARBINARY(16) NOT NULL,
         validity DATETIME NOT NULL, revoked DATETIME NULL, PRIMARY KEY (version, id)",
        "PARTITION BY RANGE (version)
         (PARTITION p_hot VALUES LESS THAN (1), PARTITION p_cold VALUES LESS THAN MAXVALUE)",
    ),
    (
        "hub",
        "id VARCHAR(64) NOT NULL PRIMARY KEY, timestamp DATETIME NOT NULL DEFAULT current_timestamp(),
         external_ip VARCHAR(16) NOT NULL, external_port SMALLINT UNSIGNED NOT NULL,
         internal_ip VARCHAR(16) NOT NULL, internal_port SMALLINT UNSIGNED NOT NULL, quit DATETIME NULL,
         KEY idx_timestamp (timestamp), KEY idx_external_ip_port (external_ip, external_port),
         KEY idx_internal_ip_port (internal_ip, internal_port)",
        "",
    ),
    (
        "event",
        "id VARCHAR(64) NOT NULL PRIMARY KEY, timestamp DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
         domain VARCHAR(64) NOT NULL, rid VARCHAR(64) NULL, pid VARCHAR(64) NOT NULL, name VARCHAR(64) NOT NULL,
         data JSON NOT NULL, KEY idx_rid (rid), KEY idx_name (name, timestamp),
         KEY idx_domain (domain, timestamp), KEY idx_domain_pid (domain, pid, timestamp),
         FOREIGN KEY (rid) REFERENCES event (id) ON DELETE SET NULL",
        "",
    ),
    (
        "event_published",
        "event_id VARCHAR(64) NOT NULL PRIMARY KEY, published DATETIME NOT NULL DEFAULT current_timestamp(),
         publisher VARCHAR(64) NOT NULL, consumer VARCHAR(64) NULL, hub VARCHAR(64) NULL,
         consumed_hub DATETIME NULL, consumed_spoke DATETIME NULL, success DATETIME NULL,
         failed DATETIME NULL, orphan DATETIME NULL,
         KEY idx_published (published), KEY idx_consumed_hub (consumed_hub),
         KEY idx_consumed_spoke (consumed_spoke),
         FOREIGN KEY (hub) REFERENCES hub (id),
         FOREIGN KEY (event_id) REFERENCES event (id) ON DELETE CASCADE ON UPDATE CASCADE",
        "",
    ),
    (
        "event_scheduled",
        "event_id VARCHAR(64) NOT NULL PRIMARY KEY, timestamp DATETIME NOT NULL DEFAULT current_timestamp(),
         scheduled DATETIME NOT NULL, executed DATETIME NULL, success DATETIME NULL, failed DATETIME NULL,
         KEY idx_timestamp (timestamp), KEY idx_scheduled (scheduled), KEY idx_executed (executed),
         KEY idx_success (success), KEY idx_failed (failed),
         FOREIGN KEY (event_id) REFERENCES event (id) ON DELETE CASCADE ON UPDATE CASCADE",
        "",
    ),
    (
        "event_cpid",
        "event_id VARCHAR(64) NOT NULL, domain VARCHAR(64) NOT NULL, cpid VARCHAR(64) NOT NULL,
         PRIMARY KEY (event_id, domain, cpid), KEY idx_domain_cpid (domain, cpid),
         FOREIGN KEY (event_id) REFERENCES event (id) ON DELETE CASCADE ON UPDATE CASCADE",
        "",
    ),
    (
        "event_eid",
        "event_id VARCHAR(64) NOT NULL, eid VARCHAR(64) NOT NULL, PRIMARY KEY (event_id, eid),
         KEY idx_eid (eid), FOREIGN KEY (event_id) REFERENCES event (id) ON DELETE CASCADE ON UPDATE CASCADE",
        "",
    ),
    (
        "log",
        "timestamp DATETIME(3) NOT NULL DEFAULT current_timestamp(3), agent VARCHAR(64) NOT NULL,
         message TEXT CHARACTER SET utf8mb4 NOT NULL, error JSON NOT NULL,
         KEY idx_timestamp (timestamp), KEY idx_agent (agent)",
        "PARTITION BY RANGE (to_days(timestamp)) (PARTITION p_hot VALUES LESS THAN MAXVALUE)",
    ),
];

/// Makes those that aren't there, and adds our two columns to those that are.
pub(super) async fn make(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let db = manager.get_connection();
    for (name, columns, behind) in TABLES {
        let sql = format!("CREATE TABLE IF NOT EXISTS {name} ({columns}) {BYTEWISE} {behind}");
        db.execute_unprepared(&sql).await?;
    }
    for (column, kind) in [("v1_hub", "VARCHAR(64)"), ("seq", "BIGINT")] {
        if !manager.has_column("event_published", column).await? {
            let sql = format!("ALTER TABLE event_published ADD COLUMN {column} {kind} NULL");
            db.execute_unprepared(&sql).await?;
        }
    }
    Ok(())
}
