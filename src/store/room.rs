//! How much the database can still take.

use super::{
    Store, StoreError,
    engine::Ask,
    sql::{refused, unsigned},
};

impl Store {
    /// Bytes that can be written before the disk or the limit of the size says that it is full. In memory only the
    /// limit counts.
    ///
    /// # Errors
    /// Whatever the database says, or the disk.
    pub async fn room(&self) -> Result<u64, StoreError> {
        let within = self.writer.room().await?;
        let Some(file) = &self.file else { return Ok(within) };
        let disk = rustix::fs::statvfs(&**file).map_err(|error| StoreError::Folder {
            action: "look for room beside",
            path: file.to_path_buf(),
            source: std::sync::Arc::new(error.into()),
        })?;
        Ok(within.min(disk.f_bavail.saturating_mul(disk.f_frsize)))
    }
}

impl super::sqlite::Writer {
    /// Bytes below the limit of the size, which is this connection's own.
    pub(super) async fn room(&self) -> Result<u64, StoreError> {
        let sql = "SELECT (max_page_count - page_count + freelist_count) * page_size FROM pragma_max_page_count(), \
                   pragma_page_count(), pragma_freelist_count(), pragma_page_size()";
        let turn = self.turn().await;
        let row = turn.db().row(sql, Vec::new()).await;
        let bytes = row.and_then(|row| row.map(|row| row.try_get_by_index::<i64>(0)).transpose());
        bytes.map(|bytes| bytes.map(unsigned).unwrap_or_default()).map_err(refused("say how large it is"))
    }
}
