//! `event_scheduled`: events with a due time.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event_scheduled")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub event_id: String,
    pub timestamp: DateTime,
    pub scheduled: DateTime,
    pub executed: Option<DateTime>,
    pub success: Option<DateTime>,
    pub failed: Option<DateTime>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
