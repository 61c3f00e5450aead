//! `v1_hub_seq`: the last sequence number that a hub gave.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "v1_hub_seq")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hub_id: String,
    pub seq: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
