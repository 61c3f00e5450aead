//! `v1_cursor`: how far a group has come on a hub.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "v1_cursor")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hub_id: String,
    /// The group; empty is the default one.
    #[sea_orm(primary_key, auto_increment = false)]
    pub grp: String,
    pub seq: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
