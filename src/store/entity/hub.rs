//! `hub`: the hubs, ours and npm's, and where spokes find them.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "hub")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub timestamp: DateTime,
    pub external_ip: String,
    pub internal_ip: String,
    pub external_port: u16,
    pub internal_port: u16,
    /// When it stopped.
    pub quit: Option<DateTime>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
