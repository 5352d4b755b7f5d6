//! The hardware profile's identifier, read from a file.
//!
//! An EEPROM and a device-tree node are files, too; so an identifier may end
//! with a NUL byte, and what follows its first line does not belong to it.

use serde::{Deserialize, Serialize};

/// The longest identifier. EEPROMs go on with other things.
const LENGTH_MAX: usize = 128;

/// Which hardware this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Profile {
    identifier: String,
}

/// The identifier that a file begins with, or what is wrong and what to do.
pub(crate) fn identifier(content: &str) -> Result<Profile, String> {
    let line = content
        .split(['\0', '\n'])
        .next()
        .unwrap_or_default()
        .trim();
    if line.is_empty() {
        return Err("it holds no identifier; write one into its first line".to_owned());
    }
    if line.len() > LENGTH_MAX {
        return Err(format!(
            "its first line is longer than {LENGTH_MAX} bytes; write a shorter identifier"
        ));
    }
    if line.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
        return Err(
            "its first line is not UTF-8 text; write an identifier such as `pi`".to_owned(),
        );
    }
    let identifier = line.to_owned();
    Ok(Profile { identifier })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &[u8]) -> Result<String, String> {
        identifier(&String::from_utf8_lossy(content)).map(|profile| profile.identifier)
    }

    #[test]
    fn identifiers_from_text_device_tree_and_eeprom() {
        assert_eq!(of(b"elitebook\n").as_deref(), Ok("elitebook"));
        let pi = "Raspberry Pi Model B Rev 2";
        assert_eq!(of(format!("{pi}\0").as_bytes()).as_deref(), Ok(pi));
        assert_eq!(of(b"pi\0\xff\xff\xff\xff").as_deref(), Ok("pi"));
    }

    #[test]
    fn what_is_no_identifier_is_refused() {
        for (content, why) in [
            (&b""[..], "it holds no identifier"),
            (b"\xff\xfe\n", "its first line is not UTF-8"),
            (b"a\x1b[2Jb\n", "its first line is not UTF-8"),
            (&[b'a'; 200], "its first line is longer"),
        ] {
            assert!(of(content).unwrap_err().starts_with(why), "{content:?}");
        }
    }
}
