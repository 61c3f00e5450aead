//! Bindings and cursors: who wants what, and how far a group has come.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};

use super::{
    Binding, Store, StoreError,
    engine::Ask,
    entity::{binding, binding_start, cursor},
    sql::{pieces, refused, unsigned},
    time,
};
use crate::event::{DomainStart, Pattern, Uid};

/// The bindings of a group that a hub knows: their number, and the sum of their ids, which tell whether the store has others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownBindings {
    count: u64,
    sum: i64,
}

impl FromIterator<i64> for KnownBindings {
    fn from_iter<I: IntoIterator<Item = i64>>(ids: I) -> Self {
        let add = |known: Self, id: i64| Self { count: known.count + 1, sum: known.sum.wrapping_add(id) };
        ids.into_iter().fold(Self::default(), add)
    }
}

/// What the store has of a group.
pub(super) async fn known(db: &impl ConnectionTrait, group: &str) -> Result<KnownBindings, DbErr> {
    let sql = "SELECT count(*), @whole(coalesce(sum(id), 0)) FROM v1_binding WHERE grp = ?";
    let row = db.row(sql, vec![group.into()]).await?;
    row.map_or(Ok(KnownBindings::default()), |row| {
        Ok(KnownBindings { count: unsigned(row.try_get_by_index(0)?), sum: row.try_get_by_index(1)? })
    })
}

impl Store {
    /// All bindings, oldest first.
    ///
    /// # Errors
    /// Whatever the database says; [`StoreError::Damaged`] if a row holds no pattern.
    pub async fn bindings(&self) -> Result<Vec<Binding>, StoreError> {
        list(&self.readers, None).await.map_err(refused("list the bindings"))?
    }

    /// How far the group has come on this hub, if that was ever saved; the empty group is the default one.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn cursor(&self, hub: &Uid, group: &str) -> Result<Option<u64>, StoreError> {
        let key = (hub.to_string(), group.to_owned());
        let row = cursor::Entity::find_by_id(key).one(&self.readers).await;
        row.map(|row| row.map(|row| unsigned(row.seq))).map_err(refused("read a cursor"))
    }
}

/// All bindings, or the one of this id, oldest first. The inner error: a row holds no pattern.
pub(super) async fn list(
    db: &impl ConnectionTrait,
    id: Option<i64>,
) -> Result<Result<Vec<Binding>, StoreError>, DbErr> {
    let (mut bindings, mut starts) = (binding::Entity::find(), binding_start::Entity::find());
    if let Some(id) = id {
        bindings = bindings.filter(binding::Column::Id.eq(id));
        starts = starts.filter(binding_start::Column::BindingId.eq(id));
    }
    let bindings = bindings.order_by_asc(binding::Column::Id).all(db).await?;
    let starts = starts
        .order_by_asc(binding_start::Column::BindingId)
        .order_by_asc(binding_start::Column::Place)
        .all(db)
        .await?;
    Ok(join(bindings, starts))
}

/// Those of one group, oldest first. The inner error: a row holds no pattern.
pub(super) async fn list_of(
    db: &impl ConnectionTrait,
    group: &str,
) -> Result<Result<Vec<Binding>, StoreError>, DbErr> {
    let of_group = binding::Column::Grp.eq(group);
    let bindings = binding::Entity::find().filter(of_group).order_by_asc(binding::Column::Id).all(db).await?;
    let ids: Vec<i64> = bindings.iter().map(|row| row.id).collect();
    let mut starts = Vec::new();
    for piece in pieces(&ids) {
        let of_these = binding_start::Column::BindingId.is_in(piece.iter().copied());
        let rows = binding_start::Entity::find().filter(of_these);
        let rows = rows
            .order_by_asc(binding_start::Column::BindingId)
            .order_by_asc(binding_start::Column::Place)
            .all(db)
            .await?;
        starts.extend(rows);
    }
    Ok(join(bindings, starts))
}

fn join(
    bindings: Vec<binding::Model>,
    starts: Vec<binding_start::Model>,
) -> Result<Vec<Binding>, StoreError> {
    let mut of: HashMap<i64, Vec<DomainStart>> = HashMap::new();
    for row in starts {
        let domain = pattern(row.domain, row.binding_id)?;
        of.entry(row.binding_id).or_default().push(DomainStart { domain, seq: unsigned(row.start_seq) });
    }
    let bound = |row: binding::Model| {
        Ok(Binding {
            id: row.id,
            domain: pattern(row.domain, row.id)?,
            name: pattern(row.name, row.id)?,
            group: row.grp,
            start_seq: unsigned(row.start_seq),
            starts: of.remove(&row.id).unwrap_or_default(),
            created: time::millis(row.created),
        })
    };
    bindings.into_iter().map(bound).collect()
}

fn pattern(text: String, binding: i64) -> Result<Pattern, StoreError> {
    Pattern::parse(text).map_err(|error| StoreError::Damaged {
        what: format!("the binding {binding}"),
        reason: error.to_string(),
    })
}
