//! The operator's token: made at the first start, kept in the data folder.

use std::{
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::AdminError;

/// The token's file in the data folder.
pub const TOKEN_FILE: &str = "admin-token";
/// 256 bits, written in hexadecimal.
const RANDOM_BYTES: usize = 32;
/// An operator may put a token of their own there, but none that can be guessed.
pub(super) const MIN_LEN: usize = 32;

/// What a request must bear. `Debug` doesn't show it.
#[derive(Clone)]
pub struct AdminToken(Arc<str>);

impl AdminToken {
    /// Reads the token from the data folder, or makes one there (mode 0600) if there is none.
    ///
    /// # Errors
    /// [`AdminError::TokenFile`] when the file can't be read or written, [`AdminError::TokenDamaged`] when it
    /// holds something else.
    pub fn load_or_create(folder: &Path) -> Result<Self, AdminError> {
        let path = folder.join(TOKEN_FILE);
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(text.trim()).ok_or(AdminError::TokenDamaged { path }),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Self::create(folder, path),
            Err(source) if source.kind() == io::ErrorKind::InvalidData => {
                Err(AdminError::TokenDamaged { path })
            }
            Err(source) => Err(AdminError::TokenFile { path, action: "read", source }),
        }
    }

    /// A token that is kept in no file.
    ///
    /// # Errors
    /// [`AdminError::Random`].
    pub fn random() -> Result<Self, AdminError> {
        random().map(|token| Self(token.into()))
    }

    fn parse(text: &str) -> Option<Self> {
        let sound = text.len() >= MIN_LEN && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        sound.then(|| Self(text.into()))
    }

    fn create(folder: &Path, path: PathBuf) -> Result<Self, AdminError> {
        let token = random()?;
        let written = || -> io::Result<()> {
            // A temporary file has mode 0600 from its first moment, and takes its name when it is whole.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            writeln!(file, "{token}")?;
            file.as_file().sync_all()?;
            file.persist_noclobber(&path)?;
            Ok(())
        };
        match written() {
            Ok(()) => Ok(Self(token.into())),
            Err(source) => Err(AdminError::TokenFile { path, action: "written", source }),
        }
    }

    /// Whether `offered` is the token. Takes equally long wherever the two differ.
    pub(super) fn is(&self, offered: &str) -> bool {
        let (ours, offered) = (self.0.as_bytes(), offered.as_bytes());
        let differing =
            ours.iter().zip(offered).fold(0u8, |bits, (a, b)| std::hint::black_box(bits | (a ^ b)));
        ours.len() == offered.len() && differing == 0
    }

    /// The token itself, for those who may see it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

fn random() -> Result<String, AdminError> {
    let mut bytes = [0u8; RANDOM_BYTES];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| AdminError::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let first = AdminToken::load_or_create(folder.path()).unwrap();
        let second = AdminToken::load_or_create(folder.path()).unwrap();
        assert!(second.is(first.expose()));
        assert_eq!(first.expose().len(), 2 * RANDOM_BYTES);
        let mode = fs::metadata(folder.path().join(TOKEN_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn it_is_compared_as_a_whole() {
        let token = AdminToken::parse(&"a".repeat(MIN_LEN)).unwrap();
        assert!(token.is(&"a".repeat(MIN_LEN)));
        assert!(!token.is(&"a".repeat(MIN_LEN - 1)));
        assert!(!token.is(&"a".repeat(MIN_LEN + 1)));
        assert!(!token.is(&format!("{}b", "a".repeat(MIN_LEN - 1))));
        assert!(!token.is(""));
    }

    #[test]
    fn it_is_never_shown_by_debug() {
        let token = AdminToken::parse(&"a".repeat(MIN_LEN)).unwrap();
        assert_eq!(format!("{token:?}"), "AdminToken(…)");
    }

    #[test]
    fn a_file_of_something_else_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TOKEN_FILE);
        for content in [&b""[..], b"short\n", b"\xff\xfe", b"thirty-two and more characters, but spaces"] {
            fs::write(&path, content).unwrap();
            let error = AdminToken::load_or_create(folder.path()).unwrap_err();
            assert!(matches!(error, AdminError::TokenDamaged { .. }), "{error}");
            assert!(error.to_string().contains(TOKEN_FILE), "{error}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = AdminToken::load_or_create(&folder.path().join("gone")).unwrap_err();
        assert!(matches!(&error, AdminError::TokenFile { action: "written", .. }), "{error}");
        assert!(error.to_string().contains("gone"), "{error}");
    }
}
