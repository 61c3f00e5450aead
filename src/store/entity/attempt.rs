//! `v1_attempt`: deliveries that ended without success.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "v1_attempt")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub event_id: String,
    /// The group; empty is the default one.
    pub grp: String,
    pub round: i32,
    pub number: i32,
    pub consumer: String,
    pub started: DateTime,
    pub ended: DateTime,
    pub reason: String,
    pub error: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
