//! Files that are read whole, and written whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use milieu_diagnostics::{Diagnostic, Source};

/// Who may read a file that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Whoever could read it before; for a new file as the process's mask says.
    Usual,
    /// Its owner alone.
    Owner,
}

/// The text of a file, or what is to be said where there is none. `what` it is
/// that the file should hold; `-` is standard input.
pub(crate) fn read(path: &Path, what: &str) -> Result<Source, Box<(Source, Diagnostic)>> {
    let is_input = path == Path::new("-");
    let name = if is_input {
        "<standard input>".to_owned()
    } else {
        path.display().to_string()
    };
    let read = if is_input {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let wrong = match read.map(String::from_utf8) {
        Ok(Ok(text)) => return Ok(Source::new(name, text)),
        Ok(Err(error)) => {
            let valid = error.utf8_error().valid_up_to();
            Diagnostic::error(format!("the {what} is not UTF-8 from byte {valid} on"))
                .help("save it as UTF-8")
        }
        Err(error) => Diagnostic::error(format!("cannot read the {what}: {error}")),
    };
    Err(Box::new((Source::new(name, ""), wrong)))
}

/// Writes a file such that it has its old content or the new one, whatever
/// happens: beside it first, then in its place.
pub(crate) fn write_whole(
    path: &Path,
    content: impl AsRef<[u8]>,
    audience: Audience,
) -> io::Result<()> {
    // Behind a link stands the file that is meant; what is no regular file, as
    // a pipe, takes it as it comes.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(&target, content);
    }
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is no name of a file",
        ));
    };
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.new", std::process::id()));
    let beside = target.with_file_name(beside);
    let written = (|| {
        let mode = match audience {
            Audience::Usual => 0o666,
            Audience::Owner => 0o600,
        };
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        file.write_all(content.as_ref())?;
        if let (Some(old), Audience::Usual) = (old, audience) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, &target)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}
