//! `v1_hub_epoch`: raised at each start of a hub.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "v1_hub_epoch")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hub_id: String,
    pub epoch: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
