//! What is known of damage to the database's file: once SQLite has met it, no write is acknowledged any more.

use std::sync::Arc;

use sea_orm::DbErr;
use tokio::sync::watch;

use super::{
    Store, StoreError,
    sql::{Class, refused},
};

/// Whether damage was met, by reads or by writes. All clones know the same; it stays until the store is opened again.
#[derive(Debug, Clone)]
pub(super) struct Damage(Arc<watch::Sender<Option<DbErr>>>);

impl Damage {
    /// None is known.
    pub(super) fn none() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Looks at how a statement went, and keeps in mind what it says of the file.
    pub(super) fn look<T>(&self, done: Result<T, DbErr>) -> Result<T, DbErr> {
        if let Err(error) = &done
            && Class::of(error) == Class::Corrupt
        {
            self.0.send_if_modified(|known| {
                let first = known.is_none();
                if first {
                    tracing::error!(%error, "the database is damaged: nothing is written to it any more");
                    *known = Some(error.clone());
                }
                first
            });
        }
        done
    }

    /// The first that was met, if any.
    pub(super) fn known(&self) -> Result<(), DbErr> {
        self.0.borrow().clone().map_or(Ok(()), Err)
    }

    async fn met(&self) -> DbErr {
        let mut known = self.0.subscribe();
        match known.wait_for(Option::is_some).await.ok().and_then(|error| error.clone()) {
            Some(error) => error,
            // It is never forgotten, and its sender lives as long as this.
            None => std::future::pending().await,
        }
    }
}

impl Store {
    /// Waits until a read or a write finds the database's file damaged, and says how. It stays so until the store is
    /// opened again, on a file that is sound.
    pub async fn damaged(&self) -> StoreError {
        refused("work")(self.writer.damage().met().await)
    }
}
