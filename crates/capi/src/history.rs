//! Who has changed what in the files, and taking it back.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
    time::SystemTime,
};

use milieu::{
    Milieu,
    keys::Namespace,
    store::{Changed, Logged},
};

use crate::{
    abi::{
        MILIEU_NO_SUCH, milieu_author, milieu_change, milieu_commit, milieu_result, milieu_text,
    },
    call::{Failure, call, null, out},
    conflicts::{deciding, milieu_decide},
    coordinator::{Coordinator, milieu_coordinator},
    files::strategy_of,
    handle::{self, Slot, handle},
};

/// Commits as the other side reads them.
pub struct Log {
    commits: Vec<milieu_commit>,
    // What the commits point to goes last.
    _kept: Vec<Kept>,
}

/// What one of them points to.
struct Kept {
    logged: Logged,
    file: String,
    changes: Vec<milieu_change>,
}

// SAFETY: the commits point to what `_kept` keeps, which nobody alters.
unsafe impl Send for Log {}
// SAFETY: as above.
unsafe impl Sync for Log {}

handle!(Log, b"logs", "milieu_log");

/// See `files.h`.
#[allow(non_camel_case_types)]
pub type milieu_log = Slot<Log>;

impl Kept {
    fn new(logged: Logged) -> Self {
        Kept {
            file: file_of(&logged),
            changes: Vec::new(),
            logged,
        }
    }

    /// As the other side reads it, for as long as this stays where it is.
    fn shown(&mut self) -> milieu_commit {
        let record = &self.logged.record;
        self.changes = record.changes.iter().map(change).collect();
        let since = record.time.duration_since(SystemTime::UNIX_EPOCH);
        milieu_commit {
            file: milieu_text::of(&self.file),
            whose: milieu_text::of(self.logged.namespace.as_str()),
            id: record.id,
            time_ns: since.map_or(0, |time| time.as_nanos().try_into().unwrap_or(i64::MAX)),
            author: milieu_author::of(&record.author),
            undoes: record.undoes.unwrap_or(0),
            undone_by: self.logged.undone_by.unwrap_or(0),
            changes: self.changes.as_ptr(),
            count: self.changes.len(),
        }
    }
}

fn change(change: &Changed) -> milieu_change {
    // What was noted before anybody said that it is a secret is one now.
    let text =
        |value: &Option<String>| milieu_text::of_some(value.as_deref().filter(|_| !change.secret));
    milieu_change {
        name: milieu_text::of(change.name.as_str()),
        before: text(&change.old),
        after: text(&change.new),
        origin: milieu_text::EMPTY,
        secret: change.secret,
    }
}

fn file_of(logged: &Logged) -> String {
    logged.path.display().to_string()
}

/// Reads the histories of all files.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_log_new(
    coordinator: *const milieu_coordinator,
    log: *mut *mut milieu_log,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), log) =
            unsafe { (handle::shared(coordinator)?, out(log, "log")?) };
        let mut kept: Vec<Kept> = milieu.log()?.into_iter().map(Kept::new).collect();
        *log = handle::new(Log {
            commits: kept.iter_mut().map(Kept::shown).collect(),
            _kept: kept,
        });
        Ok(())
    })
}

/// Gives a log back.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_log_free(log: *mut milieu_log) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(log)? });
        Ok(())
    });
}

/// The commits.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_log_commits(
    log: *const milieu_log,
    commits: *mut *const milieu_commit,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (log, commits, count) = unsafe {
            (
                handle::shared(log)?,
                out(commits, "commits")?,
                out(count, "count")?,
            )
        };
        *commits = log.commits.as_ptr();
        *count = log.commits.len();
        Ok(())
    })
}

/// The commit of the user's that is meant.
fn find(milieu: &Milieu, file: &str, id: u64) -> Result<Logged, Failure> {
    let is_it = |logged: &Logged| match id {
        0 => logged.undone_by.is_none() && logged.record.undoes.is_none(),
        id => logged.record.id == id,
    };
    let mut log = milieu.log()?.into_iter();
    let found = log.rfind(|logged| {
        let is_of_file = file.is_empty() || file_of(logged) == file;
        logged.namespace == Namespace::User && is_of_file && is_it(logged)
    });
    found.ok_or_else(|| {
        let what = if id == 0 {
            "none".to_owned()
        } else {
            format!("no {id}")
        };
        let files = if file.is_empty() {
            "the user's files"
        } else {
            file
        };
        let message =
            format!("of the commits in {files} there is {what} to take back; see milieu_log");
        Failure::new(MILIEU_NO_SUCH, message)
    })
}

/// Takes a commit back.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_undo(
    coordinator: *const milieu_coordinator,
    file: milieu_text,
    id: u64,
    strategy: c_int,
    written: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), file, written) = unsafe {
            (
                handle::shared(coordinator)?,
                file.read("file")?,
                written.as_mut(),
            )
        };
        let strategy = strategy_of(strategy)?;
        let undone = milieu.undo(Some(&find(milieu, file, id)?), strategy)?;
        if let Some(written) = written {
            *written = undone.names.len();
        }
        Ok(())
    })
}

/// Takes a commit back, and asks about conflicts.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_undo_deciding(
    coordinator: *const milieu_coordinator,
    file: milieu_text,
    id: u64,
    decide: milieu_decide,
    user: *mut c_void,
    written: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), file, written) = unsafe {
            (
                handle::shared(coordinator)?,
                file.read("file")?,
                written.as_mut(),
            )
        };
        let decide = decide.ok_or_else(|| null("decide"))?;
        // Whoever decides may give the handle back.
        let milieu = Arc::clone(milieu);
        let logged = find(&milieu, file, id)?;
        let undone = deciding(decide, user, |decide| milieu.undo(Some(&logged), decide))?;
        if let Some(written) = written {
            *written = undone.names.len();
        }
        Ok(())
    })
}
