//! Overflows of stacks: a process that has had one cannot put it into the store any
//! more. A signal handler notes it in a file beside the user's, and whoever starts next
//! finds it there.
//!
//! The file is `.APP.ini.stacks`, a profile of stacks as the preload has them, and has a
//! line for each role and build of the program. A line is written at once, under the lock
//! of that file, and is understood as a whole or not at all.

use std::ffi::CString;

use milieu_threads::stack::{
    self, Entry, Key, Name, Place, ReportStack, Standing, Watch, load, update,
};

use super::Role;
use super::living::Began;
use crate::Milieu;

/// What sees them.
pub(super) struct Overflows {
    watch: &'static Watch,
    /// Where this build of the program is told by; none where the linker was told to
    /// write no build id. They are reported then, and not noted.
    start: Option<Place>,
}

/// A thread whose overflow is seen, until it ends.
pub(super) struct Watched {
    watch: &'static Watch,
    standing: Standing,
    _stack: Option<ReportStack>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.leave(self.standing);
    }
}

impl Overflows {
    /// Sees them from now on; and which roles have had one in this build of the program.
    pub fn begin(milieu: &Milieu, start: Option<Place>) -> (Overflows, Vec<Role>) {
        let file = file(milieu);
        let noted = match (&file, start) {
            (Some(file), Some(start)) => noted(file, start),
            _ => Vec::new(),
        };
        let watch = stack::watch(file.as_deref());
        (Overflows { watch, start }, noted)
    }

    /// This thread begins, which is so deep on its stack then; none if there are too many.
    pub fn watch(&self, identity: u64, began: &Began, role: Role) -> Option<Watched> {
        let key = self.start.and_then(|start| key(start, role));
        let name = Name::new(role.as_str().as_bytes());
        let seat = key.and_then(|key| self.watch.live.enter(&key, name));
        let Overflows { watch, .. } = self;
        let standing = watch.enter(
            stack::thread(),
            identity,
            &began.stack,
            began.depth_at_start,
            seat,
        )?;
        let is_seen = watch.sees_overflows();
        Some(Watched {
            watch,
            standing,
            _stack: is_seen.then(ReportStack::enter).flatten(),
        })
    }
}

/// The threads of a role are known by their role: they all begin in the same function.
fn key(start: Place, role: Role) -> Option<Key> {
    if role.is_none() {
        return None;
    }
    // Fowler, Noll and Vo, as wide as an offset.
    let bytes = role.as_str().bytes();
    let offset = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let argument = Some(Place { offset, ..start });
    Some(Key { start, argument })
}

/// What was noted in runs before. What cannot be read says nothing.
fn noted(file: &CString, start: Place) -> Vec<Role> {
    let mut lines: Vec<Entry> = Vec::new();
    let _ = load(file, &mut |line| lines.push(*line), &mut |_| ());
    let count = lines.len();
    lines.sort_by_key(|it| it.key);
    lines.dedup_by_key(|it| it.key);
    if lines.len() < count {
        // Who overflows again and again would make it long. If it cannot be written, or
        // somebody has its lock, the next one does it.
        let _ = update(file, 0, &[], &mut |_| ());
    }
    let roles = lines.iter().filter_map(|line| {
        let role = std::str::from_utf8(line.role.as_bytes()).ok()?;
        let role = Role::new(role).ok()?;
        let is_own = line.overflow_bytes > 0 && key(start, role) == Some(line.key);
        is_own.then_some(role)
    });
    roles.collect()
}

#[cfg(feature = "store")]
fn file(milieu: &Milieu) -> Option<CString> {
    use std::os::unix::ffi::OsStringExt;

    let path = milieu.files.path_of_user()?;
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name()?);
    name.push(".stacks");
    let path = path.with_file_name(name);
    CString::new(path.into_os_string().into_vec()).ok()
}

#[cfg(not(feature = "store"))]
fn file(_: &Milieu) -> Option<CString> {
    None
}
