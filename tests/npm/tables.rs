//! The tables, whoever made them: those that our hub makes are npm's, and what npm made stays as it is; ours has more
//! columns that may be null, more indexes and more tables.

use std::collections::BTreeSet;

use sea_orm::sqlx::Row;

use crate::{
    scratch::Scratch,
    stack::{database::Database, deployment::Deployment},
    world::{PHRASE, ROUNDS, World},
};

/// What can be asked of a schema, a line each. Columns first.
const ASPECTS: &[&str] = &[
    "select concat_ws(' ', table_name, column_name, column_type, is_nullable, column_default, collation_name, extra) \
     from information_schema.columns where table_schema = database()",
    // By what they hold: names are free.
    "select concat_ws(' ', table_name, non_unique, group_concat(column_name order by seq_in_index)) \
     from information_schema.statistics where table_schema = database() group by table_name, index_name, non_unique",
    "select concat_ws(' ', k.table_name, k.column_name, k.referenced_table_name, r.delete_rule, r.update_rule) \
     from information_schema.key_column_usage k join information_schema.referential_constraints r \
     on r.constraint_schema = k.constraint_schema and r.constraint_name = k.constraint_name \
     and r.table_name = k.table_name where k.table_schema = database()",
    // npm's archive splits them by name.
    "select concat_ws(' ', table_name, partition_name, partition_method, partition_expression, partition_description) \
     from information_schema.partitions where table_schema = database() and partition_name is not null",
    "select concat_ws(' ', table_name, engine, table_collation) from information_schema.tables \
     where table_schema = database()",
    "select concat_ws(' ', table_name, check_clause) from information_schema.check_constraints \
     where constraint_schema = database()",
];

/// All aspects of all tables.
async fn shape(database: &Database) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for aspect in ASPECTS {
        for row in database.rows(aspect, &[]).await {
            let line: Vec<u8> = row.get_unchecked(0);
            lines.insert(String::from_utf8(line).unwrap());
        }
    }
    lines
}

/// What npm makes of an empty database.
async fn npms() -> Option<BTreeSet<String>> {
    let scratch = Scratch::new().await?;
    let npm = Deployment::new(&scratch.url, PHRASE, ROUNDS);
    npm.database.create_tables().await;
    let shape = shape(&npm.database).await;
    npm.database.close().await;
    scratch.drop_database().await;
    assert!(shape.len() > 90, "{shape:?}");
    Some(shape)
}

/// Nothing of npm's is missing or different, and an insert of npm's needs no column of ours.
async fn serves_npm(database: &Database, npms: &BTreeSet<String>) {
    let present = shape(database).await;
    let missing: Vec<_> = npms.difference(&present).collect();
    assert!(missing.is_empty(), "npm has, and we have not: {missing:#?}");
    let demanding = "select concat(table_name, '.', column_name) from information_schema.columns \
                     where table_schema = database() and is_nullable = 'NO' and column_default is null \
                     and table_name in ('certificate', 'hub', 'event', 'event_published', 'event_scheduled', \
                     'event_cpid', 'event_eid', 'log') and column_name in ('v1_hub', 'seq')";
    assert_eq!(database.get::<String>(demanding, &[]).await, None);
}

#[tokio::test]
async fn those_that_our_hub_makes_are_npms() {
    let Some(npms) = npms().await else { return };
    let Some(world) = World::start().await else { return };
    serves_npm(&world.npm.database, &npms).await;
    // npm runs its own creation at each start.
    let before = shape(&world.npm.database).await;
    world.npm.database.create_tables().await;
    assert_eq!(shape(&world.npm.database).await, before);
    world.end().await;
}

#[tokio::test]
async fn those_that_npm_made_stay_npms() {
    let Some(npms) = npms().await else { return };
    let Some(scratch) = Scratch::new().await else { return };
    let npm = Deployment::new(&scratch.url, PHRASE, ROUNDS);
    npm.database.create_tables().await;
    let world = World::on(scratch, npm, |_| {}).await;
    serves_npm(&world.npm.database, &npms).await;
    world.end().await;
}
