//! Reads a file into text, or says precisely why that is not possible.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_keys::Name;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::format::Document;
use crate::locations::Place;

/// A file that was read.
pub(crate) struct Content {
    pub text: String,
    pub metadata: Metadata,
    /// It stays open, so that one can tell whether another has taken its place.
    pub file: File,
}

/// Reads a file as text. A file that does not exist is none, which is no error.
pub(crate) fn text(path: &Path) -> Result<Option<Content>, StoreError> {
    let failed = |cause: io::Error| StoreError::io("read the file", path, cause);
    // A named pipe would otherwise be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(Errno::ISDIR.into()));
    }
    if !metadata.is_file() {
        return Err(failed(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not an ordinary file",
        )));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(failed)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(Content {
            text,
            metadata,
            file,
        })),
        Err(error) => Err(not_utf8(path, error)),
    }
}

/// Understands a text, all of it or not at all.
pub(crate) fn document(place: &Place, text: &str) -> Result<Box<dyn Document>, StoreError> {
    let (document, diagnostics) = place.format.parse(text);
    if diagnostics.is_empty() {
        return Ok(document);
    }
    let source = Source::new(place.path.display().to_string(), text);
    Err(StoreError::Text {
        source,
        diagnostics,
    })
}

/// Hands every key of a text to `each`, which refuses a key that it was given
/// before. Names are whole, with the mount point.
///
/// This is what loading does; [`document`] is for those who edit, and for the
/// errors, which it finds all.
pub(crate) fn keys(
    place: &Place,
    text: &str,
    mut each: impl FnMut(&Name, &str, u32) -> bool,
) -> Result<(), StoreError> {
    let loaded = if place.mount.is_root() {
        place.format.load(text, &mut each)
    } else {
        let mut whole =
            |name: &Name, value: &str, line| each(&place.mount.mounted(name), value, line);
        place.format.load(text, &mut whole)
    };
    if loaded {
        return Ok(());
    }
    let document = document(place, text)?;
    debug_assert!(false, "loading refuses what a document accepts: {text:?}");
    for entry in document.keys() {
        each(&place.mount.mounted(&entry.name), &entry.value, entry.line);
    }
    Ok(())
}

fn not_utf8(path: &Path, error: std::string::FromUtf8Error) -> StoreError {
    let start = error.utf8_error().valid_up_to();
    let byte = error.as_bytes()[start];
    // What precedes the byte is valid, so its place is the same in the text
    // that shows it as a replacement character.
    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
    let span = Span::new(start, start + char::REPLACEMENT_CHARACTER.len_utf8());
    let diagnostic = Diagnostic::error(format!("the byte 0x{byte:02x} is not UTF-8"))
        .label(span, "here")
        .help("convert the file, for example with `iconv -f LATIN1 -t UTF-8`");
    let source = Source::new(path.display().to_string(), text);
    StoreError::Text {
        source,
        diagnostics: vec![diagnostic],
    }
}
