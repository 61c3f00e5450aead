//! `v1_removed`: what retention has removed, a row per batch and domain. Between `first_seq` and `last_seq`, both
//! included, `events` events of the domain are gone.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "v1_removed")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub hub: String,
    pub domain: String,
    pub first_seq: i64,
    pub last_seq: i64,
    pub events: i64,
    /// When.
    pub removed: DateTime,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
