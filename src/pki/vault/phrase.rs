//! The generated phrase of a hub that was given none.

use std::{fmt::Write, fs, io, path::Path};

use zeroize::Zeroizing;

use crate::pki::{PkiError, Secret, files, random};

/// Reads the phrase from `path`; if no file is there, makes one: 32 random bytes in hexadecimal, mode 0600.
///
/// A file that others than its owner may read is closed to them, with a warning.
///
/// # Errors
/// [`PkiError::File`] if the file can't be read or written, or is empty.
pub fn phrase_file(path: impl AsRef<Path>) -> Result<Secret, PkiError> {
    let path = path.as_ref();
    let failed = |action, source| PkiError::File { action, path: path.to_owned(), source };
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other.map_err(|source| failed("read", source)),
    }
    let phrase = new_phrase()?;
    let line = Zeroizing::new(format!("{}\n", phrase.expose()));
    match files::create_private(path, line.as_bytes()) {
        Ok(()) => Ok(phrase),
        // Another start was faster: its phrase is the one.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(path).map_err(|source| failed("read", source))
        }
        Err(source) => Err(failed("write", source)),
    }
}

/// A phrase that nobody can guess: 32 random bytes in hexadecimal.
///
/// # Errors
/// [`PkiError::Random`].
pub fn new_phrase() -> Result<Secret, PkiError> {
    let bytes = Zeroizing::new(random::<32>()?);
    let mut phrase = Zeroizing::new(String::with_capacity(64));
    for byte in bytes.iter() {
        // Writing to a string doesn't fail.
        let _ = write!(phrase, "{byte:02x}");
    }
    Ok(Secret::new(phrase.as_str()))
}

fn read(path: &Path) -> io::Result<Secret> {
    let text = Zeroizing::new(fs::read_to_string(path)?);
    close_to_others(path)?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the file of the key phrase is empty: restore it, no key in the database opens without it",
        )),
        phrase => Ok(Secret::new(phrase)),
    }
}

#[cfg(unix)]
fn close_to_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!(path = %path.display(), mode = format!("{:o}", mode & 0o777), "others could read the key phrase: the file's mode is now 0600");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn close_to_others(_path: &Path) -> io::Result<()> {
    Ok(())
}
