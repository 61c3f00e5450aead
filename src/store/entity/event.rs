//! `event`: what happened.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub timestamp: DateTime,
    pub domain: String,
    pub rid: Option<String>,
    pub pid: String,
    pub name: String,
    /// JSON text, as it was published.
    pub data: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(has_one = "super::event_published::Entity")]
    Published,
}

impl Related<super::event_published::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Published.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
