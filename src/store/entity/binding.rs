//! `v1_binding`: who wants what.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "v1_binding")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    /// The group; empty is the default one.
    pub grp: String,
    pub domain: String,
    pub name: String,
    pub start_seq: i64,
    pub created: DateTime,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
