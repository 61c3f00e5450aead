//! `certificate`: keys and certificates, encrypted.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "certificate")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub version: u32,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub created: DateTime,
    pub updated: DateTime,
    /// PEM.
    pub cert: String,
    pub key: Vec<u8>,
    pub key_iv: Vec<u8>,
    pub key_salt: Vec<u8>,
    pub key_tag: Vec<u8>,
    pub pass: Vec<u8>,
    pub pass_iv: Vec<u8>,
    pub pass_salt: Vec<u8>,
    pub pass_tag: Vec<u8>,
    pub validity: DateTime,
    pub revoked: Option<DateTime>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
