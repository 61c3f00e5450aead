//! Files that hold secrets: mode 0600 from their first byte on, and either whole or absent.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use tempfile::NamedTempFile;

/// Replaces `path` by `bytes`: a reader sees the old file or the new one, even after a crash.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    written(folder, bytes)?.persist(path)?;
    sync(folder)
}

/// Makes `path` with `bytes`; if it is there already, it stays as it is.
///
/// # Errors
/// `AlreadyExists` if somebody else made it first.
#[cfg(feature = "hub")]
pub(super) fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    written(folder, bytes)?.persist_noclobber(path)?;
    sync(folder)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// `tempfile` makes its files with mode 0600.
fn written(folder: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Makes the new name itself durable; only Unix lets a folder be synced.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
