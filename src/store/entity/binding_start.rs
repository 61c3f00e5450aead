//! `v1_binding_start`: from where a binding is offered what is in some domains. Of several that match the first holds.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "v1_binding_start")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub binding_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub place: i32,
    pub domain: String,
    pub start_seq: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
