//! What can go wrong, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use milieu_diagnostics::{Diagnostic, Source, render};
use milieu_keys::rules::REDACTED;
use milieu_keys::{Name, Namespace};
use rustix::io::Errno;

use crate::format::Unwritable;
use crate::history::Author;
use crate::ini;
use crate::redact::wordless;

/// What is tried with a specification.
pub(crate) const READ_SPECIFICATION: &str = "read the specification";

/// An error of the store. Printed, it names place, reason and remedy.
///
/// After every error the files are as they were, unless it is
/// [`StoreError::Unsettled`].
#[non_exhaustive]
pub enum StoreError {
    /// This cannot be the name of an application.
    Application {
        /// What was given.
        name: String,
    },
    /// No file holds the keys of this namespace.
    NoFile {
        /// The namespace. That of the user has no file when the environment
        /// names no folder for it.
        namespace: Namespace,
    },
    /// A file or folder could not be used.
    Io {
        /// What was tried: `read the file`, `make the folder`, …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// The content of a file cannot be understood.
    Text {
        /// The file and its content.
        source: Source,
        /// What is wrong with it, and where.
        diagnostics: Vec<Diagnostic>,
    },
    /// Others changed the same keys since they were read.
    Conflict {
        /// The file.
        path: PathBuf,
        /// Each key that two writers want to have different values.
        conflicts: Vec<Conflict>,
    },
    /// Another process kept the file locked.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that says it holds the lock.
        holder: Option<u32>,
        /// How long was waited for it.
        waited: Duration,
    },
    /// The specification does not allow these values.
    Refused {
        /// The specification's text.
        source: Source,
        /// Each refused value with the rule that refuses it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The format of a file has no way to say this.
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The key.
        name: Name,
        /// Why, and what to do instead.
        cause: Unwritable,
    },
    /// The change is in force, but file or folder could not be synchronized: a
    /// loss of power may still undo it. To commit it again synchronizes again.
    Unsettled {
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
}

/// A key that two writers changed differently.
///
/// Errors and `{:?}` do not show the values of a secret; whoever decides has
/// them.
#[derive(Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The key.
    pub name: Name,
    /// Its value when it was read; nothing if it was not there.
    pub base: Option<String>,
    /// What this commit makes of it; nothing to remove it.
    pub ours: Option<String>,
    /// What it is now; nothing if another writer removed it.
    pub theirs: Option<String>,
    /// Who made it so, where the history of the file knows.
    pub by: Option<Author>,
    /// Whether the values are secret.
    pub secret: bool,
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path, cause: impl Into<io::Error>) -> StoreError {
        StoreError::Io {
            action,
            path: path.to_owned(),
            cause: cause.into(),
        }
    }

    /// The place, with the text that the diagnostics point into if they do, and the diagnostics.
    pub fn diagnostics(&self) -> (Source, Vec<Diagnostic>) {
        let of =
            |path: &Path, diagnostics| (Source::new(path.display().to_string(), ""), diagnostics);
        match self {
            StoreError::Text {
                source,
                diagnostics,
            }
            | StoreError::Refused {
                source,
                diagnostics,
            } => (source.clone(), diagnostics.clone()),
            StoreError::Conflict { path, conflicts } => {
                of(path, conflicts.iter().map(Conflict::diagnostic).collect())
            }
            StoreError::Io { path, .. }
            | StoreError::Locked { path, .. }
            | StoreError::Unwritable { path, .. }
            | StoreError::Unsettled { path, .. } => of(path, vec![self.diagnostic()]),
            StoreError::Application { .. } => of(
                Path::new("the name of the application"),
                vec![self.diagnostic()],
            ),
            StoreError::NoFile { .. } => of(Path::new("the environment"), vec![self.diagnostic()]),
        }
    }

    fn diagnostic(&self) -> Diagnostic {
        match self {
            StoreError::Application { name } => {
                Diagnostic::error(format!("`{}` is not the name of an application", name.escape_debug()))
                    .help("give the name of its folder below `~/.config`, such as `weather-station`")
            }
            StoreError::NoFile { namespace: Namespace::User } => {
                Diagnostic::error("there is no folder for the user's settings: HOME is not set to an absolute path")
                    .help("set HOME, or set XDG_CONFIG_HOME to the folder that holds the settings")
            }
            StoreError::NoFile { namespace } => {
                Diagnostic::error(format!("no file is open for the keys of the namespace `{namespace}`"))
                    .help("write to the namespace `user` or `system`")
            }
            StoreError::Io { action: action @ READ_SPECIFICATION, cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
                Diagnostic::error(format!("cannot {action}: {}", reason(cause)))
                    .help("mend the path of the specification")
            }
            StoreError::Io { action, path, cause } => {
                let diagnostic = Diagnostic::error(format!("cannot {action}: {}", reason(cause)));
                match remedy(cause, path) {
                    Some(remedy) => diagnostic.help(remedy),
                    None => diagnostic,
                }
            }
            StoreError::Locked { holder, waited, .. } => {
                let who = holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"));
                Diagnostic::error(format!("{who} has kept the file locked for {} s", waited.as_secs()))
                    .help("try again, or end that process; the lock goes with it")
            }
            StoreError::Unwritable { name, cause, .. } => {
                let name = ini::encode_name(name.as_str());
                Diagnostic::error(format!("cannot write `{name}`: {cause}")).help(cause.help.clone())
            }
            StoreError::Unsettled { cause, .. } => Diagnostic::error(format!(
                "the change is in force, but cannot be synchronized: {}",
                reason(cause)
            ))
            .help("it may be lost with the power: commit it again, or run `sync`, before you rely on it"),
            _ => unreachable!("the other errors have diagnostics of their own"),
        }
    }

    /// The error without the lines of a file that cannot be understood, where
    /// nobody knows which of them are secrets; the places stay.
    #[must_use]
    pub fn without_lines(self) -> StoreError {
        match self {
            StoreError::Text {
                source,
                mut diagnostics,
            } => StoreError::Text {
                source: wordless(&source, &mut diagnostics),
                diagnostics,
            },
            error => error,
        }
    }

    /// The error as a person should read it, with colours for a terminal if wanted.
    pub fn render(&self, colour: bool) -> String {
        let (source, diagnostics) = self.diagnostics();
        render(&source, &diagnostics, colour)
    }
}

impl Conflict {
    fn diagnostic(&self) -> Diagnostic {
        let name = ini::encode_name(self.name.as_str());
        let other = match &self.by {
            Some(by) => format!("{} (process {} of {})", by.program, by.process, by.user),
            None => "another process".to_owned(),
        };
        Diagnostic::error(format!("{other} changed `{name}` as well"))
            .note(format!(
                "it was {}; the other process made it {}; you make it {}",
                Shown(&self.base, self.secret),
                Shown(&self.theirs, self.secret),
                Shown(&self.ours, self.secret)
            ))
            .help("read the file again and decide, or commit with the strategy `ours` or `theirs`")
    }
}

impl fmt::Debug for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value| format_args!("{}", Shown(value, self.secret)).to_string();
        f.debug_struct("Conflict")
            .field("name", &self.name)
            .field("base", &value(&self.base))
            .field("ours", &value(&self.ours))
            .field("theirs", &value(&self.theirs))
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

/// A value, and whether it is secret.
struct Shown<'a>(&'a Option<String>, bool);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(_) if self.1 => f.write_str(REDACTED),
            Some(value) => write!(f, "`{}`", ini::encode_value(value)),
            None => f.write_str("absent"),
        }
    }
}

/// The system's words without the number behind them.
fn reason(cause: &io::Error) -> String {
    let mut text = cause.to_string();
    if let Some(at) = text.find(" (os error") {
        text.truncate(at);
    }
    // It stands in the middle of a sentence.
    let lower = text.chars().next().map(|c| c.to_lowercase().to_string());
    lower.map_or_else(String::new, |first| {
        first + &text[text.chars().next().map_or(0, char::len_utf8)..]
    })
}

fn remedy(cause: &io::Error, path: &Path) -> Option<String> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let folder = folder.display();
    let something_else = "something else stands where the file should be; remove or rename it";
    let Some(error) = Errno::from_io_error(cause) else {
        return (cause.kind() == io::ErrorKind::InvalidInput).then(|| something_else.to_owned());
    };
    Some(match error {
        Errno::ACCESS | Errno::PERM => {
            format!(
                "`ls -ld {folder} {}` shows who may use it; become one of them, or change it",
                path.display()
            )
        }
        Errno::NOSPC | Errno::DQUOT => {
            format!("make room on the file system of {folder} and try again")
        }
        Errno::FBIG => {
            "the file would be larger than this process may write; see `ulimit -f`".to_owned()
        }
        Errno::ROFS => {
            format!("the file system of {folder} is read-only; remount it, or choose another file")
        }
        Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS => {
            format!("the file system of {folder} has no locks; keep the file on one that has them")
        }
        Errno::BUSY => {
            "the file is a mount point of its own and cannot be replaced; mount its folder instead"
                .to_owned()
        }
        Errno::ISDIR => "a folder stands where the file should be; remove or rename it".to_owned(),
        Errno::NOTDIR => {
            "a part of the path is a file and no folder; remove or rename it".to_owned()
        }
        Errno::LOOP => "the symbolic links lead in a circle; mend one of them".to_owned(),
        Errno::NOENT => {
            format!("make the folder {folder}, or mend the symbolic link that leads there")
        }
        Errno::NAMETOOLONG => "choose a shorter name".to_owned(),
        Errno::NXIO => something_else.to_owned(),
        Errno::MFILE | Errno::NFILE => {
            "close files that are not needed, or allow more; see `ulimit -n`".to_owned()
        }
        Errno::IO => "the device fails; `dmesg` shows what it says".to_owned(),
        _ => return None,
    })
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

/// The same as `Display`: it is what a program whose `main` returns the error prints.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { cause, .. } | StoreError::Unsettled { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
