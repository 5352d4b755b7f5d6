//! `milieu key`: reads and writes the settings of an application.

mod check;
mod complete;
mod conflict;
mod edit;
mod export;
mod failure;
mod history;
mod import;
mod json;
mod migrate;
mod mount;
mod scope;
mod show;
mod suggest;
mod verbs;
mod watch;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use failure::Failure;

/// Read and write the settings of an application
///
/// Settings are keys such as /sw/pi/anna/language, kept in files: those of the
/// user in ~/.config/APP/APP.ini, which win, and those of the system in
/// /etc/xdg/APP/APP.ini and /etc/APP.ini. The variables XDG_CONFIG_HOME and
/// XDG_CONFIG_DIRS move them. `milieu key mount` has parts of the tree in other
/// files, also in TOML and JSON.
///
/// Values of keys that the specification calls secret are printed by `get` and
/// `export --secrets` only, and shown as (secret) by everything else.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Exit codes, of every verb:
  0  done; there may have been warnings
  1  the key is not there, or did not change in time
  2  a file cannot be read, understood or written, or wrong usage
  3  the specification does not allow a value
  4  others have changed the same keys"
)]
pub(crate) struct Key {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Get(verbs::Get),
    Set(verbs::Set),
    Rm(verbs::Rm),
    Ls(verbs::Ls),
    Explain(verbs::Explain),
    Watch(watch::Watch),
    Check(check::Check),
    Log(history::Log),
    Undo(history::Undo),
    Edit(edit::Edit),
    Export(export::Export),
    Import(import::Import),
    Migrate(migrate::Migrate),
    Mount(mount::Mount),
}

impl Key {
    pub(crate) fn run(&self) -> ExitCode {
        match &self.verb {
            Verb::Get(get) => get.scope.end(get.run()),
            Verb::Set(set) => set.scope.end(set.run()),
            Verb::Rm(rm) => rm.scope.end(rm.run()),
            Verb::Ls(ls) => ls.scope.end(ls.run()),
            Verb::Explain(explain) => explain.scope.end(explain.run()),
            Verb::Watch(watch) => watch.scope.end(watch.run()),
            Verb::Check(check) => check.scope.end(check.run()),
            Verb::Log(log) => log.scope.end(log.run()),
            Verb::Undo(undo) => undo.scope.end(undo.run()),
            Verb::Edit(edit) => edit.scope.end(edit.run()),
            Verb::Export(export) => export.scope.end(export.run()),
            Verb::Import(import) => import.scope.end(import.run()),
            Verb::Migrate(migrate) => migrate.scope.end(migrate.run()),
            Verb::Mount(mount) => failure::end(mount.run(), mount.json, || None),
        }
    }
}
