//! `event_cpid`: further processes that an event belongs to.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event_cpid")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub event_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub domain: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub cpid: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
