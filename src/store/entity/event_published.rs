//! `event_published`: who serves an event, and what became of it in the default group.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event_published")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub event_id: String,
    pub published: DateTime,
    pub publisher: String,
    pub consumer: Option<String>,
    pub hub: Option<String>,
    pub consumed_hub: Option<DateTime>,
    pub consumed_spoke: Option<DateTime>,
    pub success: Option<DateTime>,
    pub failed: Option<DateTime>,
    pub orphan: Option<DateTime>,
    /// The hub that dispatches it to links of our own dialect.
    pub v1_hub: Option<String>,
    /// Its number on that hub.
    pub seq: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
