//! `log`: what happened to hubs and spokes, for people.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "log")]
pub struct Model {
    // The table has no key, and sea-orm wants one: rows are only added and listed.
    #[sea_orm(primary_key, auto_increment = false)]
    pub timestamp: DateTime,
    #[sea_orm(primary_key, auto_increment = false)]
    pub agent: String,
    pub message: String,
    /// A JSON object.
    pub error: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
