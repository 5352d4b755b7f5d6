//! The hardware profile's identifier, read from a file.
//!
//! An EEPROM and a device-tree node are files, too; so an identifier may end
//! with a NUL byte, and what follows its first line does not belong to it.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The longest identifier. EEPROMs go on with other things.
const LENGTH_MAX: usize = 128;

/// A file that holds no identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProfile {
    /// The file.
    pub file: PathBuf,
    /// What is wrong and what to do.
    pub reason: String,
}

impl fmt::Display for NoProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.reason)
    }
}

impl std::error::Error for NoProfile {}

/// The identifier in a file; `None` if there is no such file, for most
/// machines have none.
///
/// # Errors
/// If the file is there and holds no identifier.
pub fn identifier(file: &Path) -> Result<Option<String>, NoProfile> {
    let no = |reason: String| NoProfile {
        file: file.to_owned(),
        reason,
    };
    let mut bytes = Vec::new();
    match File::open(file).and_then(|f| f.take(LENGTH_MAX as u64 + 1).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(no(format!(
                "it cannot be read: {error}; name a file that this user may read"
            )));
        }
    }
    let line = bytes
        .split(|b| matches!(b, 0 | b'\n'))
        .next()
        .unwrap_or_default()
        .trim_ascii();
    if line.is_empty() {
        return Err(no(
            "it holds no identifier; write one into its first line".to_owned()
        ));
    }
    if line.len() > LENGTH_MAX {
        return Err(no(format!(
            "its first line is longer than {LENGTH_MAX} bytes; write a shorter identifier"
        )));
    }
    match std::str::from_utf8(line) {
        Ok(text) if !text.chars().any(char::is_control) => Ok(Some(text.to_owned())),
        _ => Err(no(
            "its first line is not UTF-8 text; write an identifier such as `pi`".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &[u8]) -> Result<Option<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        std::fs::write(&file, content).unwrap();
        identifier(&file).map_err(|e| e.reason)
    }

    #[test]
    fn identifiers_from_text_device_tree_and_eeprom() {
        assert_eq!(of(b"elitebook\n"), Ok(Some("elitebook".to_owned())));
        assert_eq!(
            of(b"Raspberry Pi Model B Rev 2\0"),
            Ok(Some("Raspberry Pi Model B Rev 2".to_owned()))
        );
        assert_eq!(of(b"pi\0\xff\xff\xff\xff"), Ok(Some("pi".to_owned())));
        assert_eq!(identifier(Path::new("/nowhere/at/all")), Ok(None));
    }

    #[test]
    fn what_is_no_identifier_is_refused() {
        assert!(of(b"").unwrap_err().starts_with("it holds no identifier"));
        assert!(
            of(b"\xff\xfe\n")
                .unwrap_err()
                .starts_with("its first line is not UTF-8")
        );
        assert!(
            of(b"a\x1b[2Jb\n")
                .unwrap_err()
                .starts_with("its first line is not UTF-8")
        );
        assert!(
            of(&[b'a'; 200])
                .unwrap_err()
                .starts_with("its first line is longer")
        );
        assert!(identifier(Path::new("/proc")).is_err());
    }
}
