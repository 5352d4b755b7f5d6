//! `milieu key edit`.

use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use milieu_diagnostics::{Diagnostic, Severity, Source};
use milieu_store::StoreError;

use super::complete;
use super::conflict::Conflicts;
use super::failure::{Failure, shown};
use super::scope::{Scope, prefix};
use crate::terminal;

/// Edit settings with a text editor
///
/// Opens a copy of the file in the editor that VISUAL or EDITOR names. When the
/// editor ends, the text is checked, and replaces the file whole. If others
/// have changed the file meanwhile, the keys are merged instead.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key edit --app weather-station
  EDITOR=nano milieu key edit --app weather-station --spec station.spec.ini")]
pub(super) struct Edit {
    /// Edit the file that this key belongs to
    #[arg(add = complete::names())]
    name: Option<String>,
    #[command(flatten)]
    conflicts: Conflicts,
    #[command(flatten)]
    pub(super) scope: Scope,
}

impl Edit {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = prefix(self.name.as_deref())?;
        let namespace = self.scope.namespace();
        let mut store = self.scope.open()?;
        let key = store.keys().get(namespace, name.as_str());
        let path = match key.and_then(|key| store.path_of(key)) {
            Some(path) => path.to_owned(),
            None => match store.target(namespace, &name) {
                Some(path) => path.to_owned(),
                None => return Err(StoreError::NoFile { namespace }.into()),
            },
        };
        let before = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|error| failed(&path, "cannot read the file", &error))?,
        };
        let copy = Copy::of(&path, &before)?;
        loop {
            let after = copy.edit()?;
            if after == before {
                return Ok(());
            }
            let resolve = self.conflicts.resolve(store.schema());
            let error = match store.edit(&path, &before, &after, resolve) {
                Ok(edited) => {
                    copy.remove();
                    self.scope.tell_if_unlogged(&edited.commit);
                    if !edited.as_written {
                        self.note(
                            &path,
                            "others have changed the file meanwhile: keys are merged, comments are theirs",
                        );
                    }
                    return Ok(());
                }
                Err(error) => error,
            };
            let (source, diagnostics) = shown(&error, store.schema());
            if !again(&source, &diagnostics, self.scope.json) {
                let kept = copy.keep();
                self.note(&kept, "your text is kept here");
                return Err(error.into());
            }
        }
    }
}

impl Edit {
    fn note(&self, path: &Path, message: &str) {
        let note = Diagnostic::new(Severity::Note, message);
        let place = Source::new(path.display().to_string(), "");
        terminal::report(&place, &[note], self.scope.json);
    }
}

/// Shows what is wrong; asks on a terminal whether to edit again.
fn again(source: &Source, diagnostics: &[Diagnostic], json: bool) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    terminal::report(source, diagnostics, json);
    eprint!("edit again? [Y/n] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok_and(|read| read > 0) && !answer.trim().starts_with(['n', 'N'])
}

/// The copy that is edited, which only its user can read.
struct Copy(tempfile::NamedTempFile);

impl Copy {
    fn of(path: &Path, text: &str) -> Result<Copy, Failure> {
        let mut ending = OsString::from(".");
        ending.push(path.extension().unwrap_or("ini".as_ref()));
        let stem = path.file_stem().unwrap_or("settings".as_ref()).to_owned();
        let made = tempfile::Builder::new()
            .prefix(&stem)
            .suffix(&ending)
            .tempfile()
            .and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
        Ok(Copy(made.map_err(|error| {
            failed(&std::env::temp_dir(), "cannot make a copy", &error)
        })?))
    }

    /// Lets the user edit it, and returns its text.
    fn edit(&self) -> Result<String, Failure> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let editor = set("VISUAL").or_else(|| set("EDITOR"));
        let editor = editor.unwrap_or_else(|| "vi".into());
        // The shell splits the editor's own arguments off, as users expect.
        let mut line = editor.clone();
        line.push(" \"$1\"");
        let status = Command::new("sh")
            .arg("-c")
            .arg(line)
            .arg("sh")
            .arg(self.0.path())
            .status();
        let editor = PathBuf::from(editor);
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                let message = format!("the editor ended with {status}; nothing is changed");
                return Err(reported(&editor, Diagnostic::error(message)));
            }
            Err(error) => return Err(failed(&editor, "cannot start the editor", &error)),
        }
        // Editors replace files, so it is read by its name.
        std::fs::read_to_string(self.0.path())
            .map_err(|error| failed(self.0.path(), "cannot read the edited text", &error))
    }

    fn remove(self) {
        // What stays in the folder for temporary files harms nobody.
        let _ = self.0.close();
    }

    fn keep(self) -> PathBuf {
        let path = self.0.path().to_owned();
        match self.0.keep() {
            Ok((_, path)) => path,
            Err(_) => path,
        }
    }
}

fn reported(path: &Path, diagnostic: Diagnostic) -> Failure {
    Failure::new(path.display().to_string(), diagnostic, terminal::ERROR)
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Failure {
    reported(path, Diagnostic::error(format!("{what}: {error}")))
}
