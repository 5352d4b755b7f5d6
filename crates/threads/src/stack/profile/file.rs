//! Profiles in files, which any number of processes write.
//!
//! Whoever changes a profile has the lock, the file beside it whose name ends in
//! `.lock` and which stays; a new profile takes the place of the old one at once,
//! so readers need no lock and never see half of it. Only what a program adds while it
//! runs, an overflow or where it creates threads, is a line at the end.

use core::ffi::CStr;
use core::fmt;

use super::line::{HEADER, encode, thread};
use super::{Entry, Line, LineError, Lines, Module, Profile, ProfileError, Room};
use crate::kernel::may_be_as_long;
use crate::stack::key::{BuildId, each_module};
use crate::stack::system::{self, Errno, File, Scratch};
use crate::stack::text::Text;

/// Larger files are no profiles.
const BYTES_MAX: usize = 64 << 20;

/// Why a profile in a file could not be read or changed; the file is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// It cannot be locked: no `.lock` can be made beside it, or somebody has it.
    Lock(Errno),
    /// It cannot be read.
    Read(Errno),
    /// It cannot be written.
    Write(Errno),
    /// There is no memory for it.
    Memory(Errno),
    /// It is no profile.
    Profile(ProfileError),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(Errno(libc::EAGAIN)) => f.write_str(
                "another process has had the lock of the profile for long; \
                 end it if it hangs, and try again",
            ),
            Self::Lock(errno) => write!(
                f,
                "the file `.lock` beside the profile cannot be opened: {errno}; \
                 name a profile in a folder that you may write"
            ),
            Self::Read(errno) => write!(f, "the profile cannot be read: {errno}"),
            Self::Write(errno) => write!(
                f,
                "the profile cannot be written: {errno}; \
                 name a profile in a folder that you may write"
            ),
            Self::Memory(errno) => write!(f, "there is no memory for the profile: {errno}"),
            Self::Profile(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FileError {}

/// Calls with what a profile says of threads; a file that is not there says nothing.
///
/// # Errors
/// It cannot be read, or is no profile.
pub fn load(
    path: &CStr,
    entry: &mut dyn FnMut(&Entry),
    wrong: &mut dyn FnMut(LineError<'_>),
) -> Result<(), FileError> {
    let mut memory = None;
    for line in Lines::of(whole(path, &mut memory)?).map_err(FileError::Profile)? {
        match line {
            Ok(Line::Thread(found)) => entry(&found),
            Ok(Line::Module(_) | Line::Site(_) | Line::Remark(_)) => {}
            Err(error) => wrong(error),
        }
    }
    Ok(())
}

/// Adds what this run has seen to a profile, and where the modules lie that are loaded.
/// It waits for others who do the same, so long at most.
///
/// # Errors
/// Nothing was added: what was seen may be kept and added later.
pub fn update(
    path: &CStr,
    patience_milliseconds: u32,
    seen: &[Entry],
    wrong: &mut dyn FnMut(LineError<'_>),
) -> Result<(), FileError> {
    let _lock = lock(path, patience_milliseconds)?;
    let mut loaded = Scratch::new(1 << 20).map_err(FileError::Memory)?;
    let loaded = modules_of(&|build| are_of(seen, build), loaded.bytes());
    change(path, loaded, b"", seen, wrong)
}

/// Joins with a profile what is loaded, and adds notes and what was seen. Whoever calls
/// this has the lock.
pub(super) fn change(
    path: &CStr,
    loaded: &[u8],
    notes: &[u8],
    seen: &[Entry],
    wrong: &mut dyn FnMut(LineError<'_>),
) -> Result<(), FileError> {
    let mut memory = None;
    let text = whole(path, &mut memory)?;
    let room = [text, loaded, notes].map(Room::of);
    let entries = seen.len() + room.iter().map(|it| it.entries).sum::<usize>();
    let modules: usize = room.iter().map(|it| it.modules).sum();
    let lines: usize = room.iter().map(|it| it.lines).sum();
    let scratch = |bytes| Scratch::new(bytes).map_err(FileError::Memory);
    let mut entries = scratch(entries * size_of::<Entry>())?;
    let mut modules = scratch(modules * size_of::<Module<'_>>())?;
    let mut kept = scratch(lines * size_of::<&[u8]>())?;
    let mut profile = Profile::new(
        entries.filled(Entry::EMPTY),
        modules.filled(Module::EMPTY),
        kept.filled(&b""[..]),
    );
    let full = FileError::Profile;
    profile.read(text, wrong).map_err(full)?;
    profile.read(loaded, &mut |_| ()).map_err(full)?;
    profile.take_in(notes).map_err(full)?;
    seen.iter()
        .try_for_each(|it| profile.add(it))
        .map_err(full)?;
    replace(path, &profile).map_err(FileError::Write)
}

/// Adds a line to a profile, and nothing else: all that a signal handler may do.
///
/// # Errors
/// It was not added.
pub fn append(path: &CStr, patience_milliseconds: u32, entry: &Entry) -> Result<(), FileError> {
    let _lock = lock(path, patience_milliseconds)?;
    let flags = libc::O_RDWR | libc::O_APPEND | libc::O_CREAT;
    let file = File::open(path, flags).map_err(FileError::Write)?;
    let mut line = Text::<576>::new();
    let is_empty = file.read_at(&mut [0], 0).map_err(FileError::Read)? == 0;
    line.push(if is_empty { HEADER } else { b"" });
    // Who has written by hand may have ended without a new line.
    line.push(b"\n");
    line.push(thread(entry).as_bytes());
    line.push(b"\n");
    file.write_all(line.as_bytes()).map_err(FileError::Write)
}

/// Adds a line that says where threads were created, and where these modules lie, to a
/// profile that does not have it.
pub(in crate::stack) fn add_site(
    path: &CStr,
    patience_milliseconds: u32,
    line: &[u8],
    is_named: &dyn Fn(BuildId) -> bool,
) -> Result<(), FileError> {
    let _lock = lock(path, patience_milliseconds)?;
    let mut memory = None;
    let text = whole(path, &mut memory)?;
    // Nothing is added to what is no profile.
    Lines::of(text).map_err(FileError::Profile)?;
    if text.split(|&byte| byte == b'\n').any(|it| it == line) {
        return Ok(());
    }
    const ROOM: usize = 64 << 10;
    let scratch = || Scratch::new(ROOM).map_err(FileError::Memory);
    let (mut modules, mut added) = (scratch()?, scratch()?);
    let modules = modules_of(
        is_named,
        modules.bytes().get_mut(..ROOM / 2).unwrap_or_default(),
    );
    let modules = modules.strip_prefix(HEADER).unwrap_or(modules);
    let head = if text.is_empty() { HEADER } else { b"" };
    // Who has written by hand may have ended without a new line.
    let parts = [head, b"\n", modules, line, b"\n"];
    let bytes = parts.iter().flat_map(|it| it.iter());
    let added = added.bytes();
    let count = added
        .iter_mut()
        .zip(bytes)
        .map(|(into, byte)| *into = *byte)
        .count();
    let before = text.len() as u64;
    if !may_be_as_long(before + count as u64) {
        return Err(FileError::Write(Errno(libc::EFBIG)));
    }
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT;
    let file = File::open(path, flags).map_err(FileError::Write)?;
    let written = file.write_all(added.get(..count).unwrap_or_default());
    if written.is_err() {
        // Half a line may be another.
        let _ = file.extend(before);
    }
    written.map_err(FileError::Write)
}

/// The lock of a profile, until it is dropped. A process that is forked meanwhile has the
/// file, too, and not the lock.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

pub(super) fn lock(path: &CStr, patience_milliseconds: u32) -> Result<Lock, FileError> {
    const STEP_MILLISECONDS: u16 = 5;
    let path = beside(path, b".lock");
    let path = path.as_path();
    let path = path.ok_or(FileError::Lock(Errno(libc::ENAMETOOLONG)))?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW;
    let file = File::open(path, flags).map_err(FileError::Lock)?;
    let mut waited = 0;
    loop {
        match file.lock() {
            Ok(()) => return Ok(Lock(file)),
            Err(Errno(libc::EAGAIN)) if waited < patience_milliseconds => {
                system::sleep(STEP_MILLISECONDS);
                waited += u32::from(STEP_MILLISECONDS);
            }
            Err(errno) => return Err(FileError::Lock(errno)),
        }
    }
}

pub(super) fn beside(path: &CStr, end: &[u8]) -> Text<1024> {
    let mut beside = Text::new();
    beside.push(path.to_bytes());
    beside.push(end);
    beside
}

/// All that the file has; nothing if it is not there.
pub(super) fn whole<'m>(
    path: &CStr,
    memory: &'m mut Option<Scratch>,
) -> Result<&'m [u8], FileError> {
    let file = match File::open(path, libc::O_RDONLY) {
        Ok(file) => file,
        Err(Errno(libc::ENOENT)) => return Ok(b""),
        Err(errno) => return Err(FileError::Read(errno)),
    };
    let mut room = 64 << 10;
    while room <= 2 * BYTES_MAX {
        let mut scratch = Scratch::new(room).map_err(FileError::Memory)?;
        let into = scratch.bytes();
        let mut length = 0;
        while let Some(rest) = into.get_mut(length..).filter(|rest| !rest.is_empty()) {
            let read = file.read_at(rest, length as u64).map_err(FileError::Read)?;
            if read == 0 {
                let text: &'m mut [u8] = memory.insert(scratch).bytes();
                return Ok(text.get(..length).unwrap_or_default());
            }
            length += read;
        }
        room *= 2;
    }
    Err(FileError::Read(Errno(libc::EFBIG)))
}

/// Whether keys name a module.
pub(super) fn are_of(seen: &[Entry], build: BuildId) -> bool {
    let places = seen
        .iter()
        .flat_map(|it| [Some(it.key.start), it.key.argument]);
    places.flatten().any(|it| it.build == build)
}

/// A profile with the modules that are named, as far as they are loaded.
pub(super) fn modules_of<'m>(is_named: &dyn Fn(BuildId) -> bool, memory: &'m mut [u8]) -> &'m [u8] {
    let mut program = [0; 1024];
    let length = system::link(c"/proc/self/exe", &mut program).unwrap_or(0);
    let program = program.get(..length).unwrap_or_default();
    let mut length = 0;
    // What does not fit is left out as a whole.
    let mut add = |build: BuildId, path: &[u8]| {
        let mut end = length;
        let mut put = |part: &[u8]| {
            if let Some(place) = memory.get_mut(end..end + part.len()) {
                place.copy_from_slice(part);
            }
            end += part.len();
        };
        if length == 0 {
            put(HEADER);
            put(b"\n");
        }
        put(Text::<64>::of(format_args!("module {build} ")).as_bytes());
        encode(path, &mut put);
        put(b"\n");
        if end <= memory.len() {
            length = end;
        }
    };
    let mut is_first = true;
    each_module(&mut |module| {
        let path = if is_first {
            program
        } else {
            module.path.to_bytes()
        };
        is_first = false;
        // The loader's own, and what was removed meanwhile, nobody finds by their names.
        let is_findable = path.starts_with(b"/") && !path.ends_with(b" (deleted)");
        if let Some(build) = module.build_id().filter(|it| is_findable && is_named(*it)) {
            add(build, path);
        }
    });
    memory.get(..length).unwrap_or_default()
}

/// Puts the profile in the place of the one that is there.
fn replace(path: &CStr, profile: &Profile<'_, '_>) -> Result<(), Errno> {
    let mut bytes = 0;
    profile.write(&mut |part| bytes += part.len() as u64);
    if !may_be_as_long(bytes) {
        return Err(Errno(libc::EFBIG));
    }
    let new = beside(path, b".new");
    let new = new.as_path().ok_or(Errno(libc::ENAMETOOLONG))?;
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOFOLLOW;
    let file = File::open(new, flags)?;
    // A program that ends does not wait for the disk: should the machine fail just then, the
    // profile may be empty, and is learned anew.
    let written = write(&file, profile).and_then(|()| system::rename(new, path));
    if written.is_err() {
        // What is in the way is overwritten the next time.
        let _ = system::unlink(new);
    }
    written
}

fn write(file: &File, profile: &Profile<'_, '_>) -> Result<(), Errno> {
    let mut buffer = Text::<4096>::new();
    let mut written = Ok(());
    profile.write(&mut |part| {
        for part in part.chunks(1024) {
            if buffer.as_bytes().len() + part.len() >= 4096 {
                written = written.and_then(|()| file.write_all(buffer.as_bytes()));
                buffer = Text::new();
            }
            buffer.push(part);
        }
    });
    written.and_then(|()| file.write_all(buffer.as_bytes()))
}
