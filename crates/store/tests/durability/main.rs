//! What was confirmed stays, whatever happens to the processes and disks around it.
//!
//! These tests run real processes on real files:
//! - [`trace`] kills a commit before and after each of its system calls;
//! - [`kills`] kills writers at random instants, a thousand times;
//! - [`processes`] lets many processes write at once, and checks what each was told;
//! - [`owners`], [`refusals`], [`links`] and [`clock`] commit under hostile conditions.
//!
//! Losses of power are simulated in `src/faults`.
//!
//! Three environment variables make them run longer, or repeat a run:
//! `MILIEU_KILLS` is the number of kills, `MILIEU_SECONDS` how long each group
//! of processes writes, and `MILIEU_SEED` where the random numbers begin. What a
//! machine does not allow is skipped, and standard error says so.

mod child;
mod clock;
mod kills;
mod links;
mod owners;
mod processes;
mod random;
mod refusals;
mod trace;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use milieu_keys::{Name, Namespace};
use milieu_store::ini::Document;
use milieu_store::{Change, Place, Store};

/// A folder of one test's own, empty at the start.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("durability")
        .join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The same for other users, who may not reach the folder of the build.
fn public_folder(test: &str) -> PathBuf {
    let name = format!("milieu-durability-{test}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

fn places(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Vec<Place> {
    let place = |path: PathBuf| Place::new(Namespace::User, path);
    paths.into_iter().map(|path| place(path.into())).collect()
}

fn open(path: &Path) -> Store {
    Store::read(places([path])).unwrap()
}

fn set(name: &str, value: impl Into<String>) -> Change {
    Change::set(Name::parse(name).unwrap(), value)
}

fn remove(name: &str) -> Change {
    Change::remove(Name::parse(name).unwrap())
}

/// The text of a file after some changes; there may be none before.
fn edited(text: Option<&str>, changes: &[Change]) -> String {
    let (mut document, diagnostics) = Document::parse(text.unwrap_or_default());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    for change in changes {
        match &change.value {
            Some(value) => document.set(&change.name, value),
            None => document.remove(change.name.as_str()),
        };
    }
    document.to_string()
}

/// The text of a file, if it is there.
fn text(path: &Path) -> Option<String> {
    match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// The names in a folder, in their order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Says why a test cannot run here, also where the output of tests is kept back.
fn skip(test: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}

/// Whether this may do what only root may; if not, says so.
fn is_root(test: &str) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip(test, "only root may do this");
    }
    is_root
}

/// What an error says, wherever the folder is.
fn shown(error: &impl ToString, folder: &Path) -> String {
    error
        .to_string()
        .replace(folder.to_str().unwrap(), "FOLDER")
}

/// A number from the environment.
fn number_from(variable: &str, otherwise: u64) -> u64 {
    let number = |text: &OsStr| text.to_str().and_then(|text| text.parse().ok());
    std::env::var_os(variable).map_or(otherwise, |text| {
        number(&text).unwrap_or_else(|| panic!("{variable} is to be a number"))
    })
}
