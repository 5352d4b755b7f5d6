//! The table in memory that other processes can read.
//!
//! It is a sealed `memfd`: nobody can make it shorter under those who look at it,
//! and nobody but the process itself maps it writable (Linux 5.1). A reader finds
//! it among the descriptors of a process, by its name, and believes nothing of
//! what it finds: bounds are checked once, against the file's own length, and a
//! line that no program of ours wrote is left out.

use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::AtomicI32;

use super::{Entry, Header, LINE_BYTES, LINES_MAX, Line, Lines, Slot, TableError};
use crate::attributes::Role;
use crate::kernel::{self, Errno, File, Text, call};
use crate::sync::Ordering;

/// Tells a table from everything else, and the order of bytes from the other.
const MAGIC: u64 = u64::from_be_bytes(*b"MilieuTT");

/// Changes with what a line means.
const VERSION: u32 = 2;

/// How the memory is called in `/proc/PID/fd` and `/proc/PID/maps`.
const NAME: &CStr = c"milieu-threads";

/// The seal that leaves only mappings that were there before writable.
const SEAL_FUTURE_WRITE: c_int = 0x10;

/// The thread information table of this process.
pub struct Table {
    memory: Mapping,
    /// Others reach the memory by it; −1 where there is none.
    descriptor: AtomicI32,
}

/// Bytes of memory that a table of so many lines takes.
fn bytes_of(lines: u32) -> usize {
    LINE_BYTES * (1 + lines as usize)
}

impl Table {
    /// A table for at least so many threads. Memory is used as threads come.
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub fn new(threads: u32) -> Result<Table, Errno> {
        let lines = threads.clamp(16, LINES_MAX).next_power_of_two();
        let file = sealable(bytes_of(lines))?;
        let memory = Mapping::new(Some(&file), lines, None)?;
        seal(&file)?;
        let table = Table {
            memory,
            descriptor: AtomicI32::new(into_raw(file)),
        };
        table.begin();
        Ok(table)
    }

    /// The lines.
    #[must_use]
    #[inline]
    pub fn lines(&self) -> Lines<'_> {
        self.memory.lines()
    }

    /// The descriptor by which others reach the memory, unless there is none.
    #[must_use]
    pub fn descriptor(&self) -> Option<c_int> {
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        (descriptor >= 0).then_some(descriptor)
    }

    /// Closes the descriptor, unless the program did: some close all that they do
    /// not know, and then have a file of theirs by the same number.
    fn close(&self) {
        let descriptor = self.descriptor.swap(-1, Ordering::Relaxed);
        let link = Text::<40>::of(format_args!("/proc/self/fd/{descriptor}"));
        if descriptor >= 0 && link.is_some_and(|it| is_table(it.as_c_str())) {
            // SAFETY: it is ours, and nobody else has seen it since the swap.
            drop(unsafe { File::from_raw(descriptor) });
        }
    }

    /// Frees the lines of threads that ended unseen, and of those whose number
    /// the kernel has given to a later one since.
    pub fn sweep(&self) {
        let lines = self.lines();
        lines.retain(|slot, entry| {
            let is_earlier =
                |other: &Entry| other.tid == entry.tid && other.created_us > entry.created_us;
            let mut others = lines.iter().filter(|(other, _)| *other != slot);
            kernel::is_alive(entry.tid) && !others.any(|(_, it)| is_earlier(&it))
        });
    }

    /// Makes the table one of the child that `fork` has made, in which only the
    /// thread lives that called it, and leaves the parent's to the parent. To be
    /// called in the child, before anything else here, with what was known of the
    /// thread before: the table that is shared already tells of the parent's. Where
    /// the thread is now.
    ///
    /// Without a descriptor to spare the table works, but others cannot see it.
    ///
    /// # Errors
    /// If there is no memory; then the table must not be used.
    pub fn after_fork(&self, own: Option<Entry>) -> Result<Option<Slot>, Errno> {
        let count = self.memory.line_count;
        let at = Some(self.memory.start);
        // The parent's goes first, for where no descriptor is to spare.
        self.close();
        let shared = sealable(bytes_of(count)).and_then(|file| {
            core::mem::forget(Mapping::new(Some(&file), count, at)?);
            seal(&file)?;
            Ok(file)
        });
        match shared {
            Ok(file) => self.descriptor.store(into_raw(file), Ordering::Relaxed),
            // Its memory is this table's, which gives it back.
            Err(_) => core::mem::forget(Mapping::new(None, count, at)?),
        }
        self.begin();
        let tid = kernel::thread_id();
        Ok(own.and_then(|own| self.lines().insert(Entry { tid, ..own }).ok()))
    }

    /// Writes the header; the magic last, so that nobody reads half of it.
    fn begin(&self) {
        let header = self.memory.header();
        let count = self.memory.line_count;
        header.version.store(VERSION, Ordering::Relaxed);
        let line_bytes = LINE_BYTES as u32;
        header.line_bytes.store(line_bytes, Ordering::Relaxed);
        header.lines.store(count, Ordering::Relaxed);
        let process = kernel::process_id();
        header.process.store(process, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.close();
    }
}

/// Why a table of another process cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachError {
    /// The process or file is not there, or is not ours to look at.
    Unreachable(Errno),
    /// None of the process's descriptors is a table.
    NoTable,
    /// What was found could become shorter while it is read.
    Unsealed,
    /// It is no table, or a damaged one.
    Damaged,
    /// It is a table of another version of Milieu.
    Version(u32),
    /// It is the table of another process, of which this one inherited it.
    OfProcess(u32),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Unreachable(error) => write!(
                f,
                "the process cannot be looked at: {error}; look at one of the same user, or as root"
            ),
            AttachError::NoTable => f.write_str(
                "the process has no thread information table; start it with Milieu, or give it \
                 a moment",
            ),
            AttachError::Unsealed => {
                f.write_str("this is no table of Milieu's: it is not sealed against truncation")
            }
            AttachError::Damaged => f.write_str("this is no table of Milieu's, or a damaged one"),
            AttachError::Version(version) => write!(
                f,
                "the table has version {version}, and this Milieu reads {VERSION}; use the one \
                 that the process was started with"
            ),
            AttachError::OfProcess(process) => {
                write!(f, "this is the table of process {process}; look there")
            }
        }
    }
}

impl core::error::Error for AttachError {}

/// The table of another process, to look at.
pub struct View {
    memory: Mapping,
    process: u32,
}

impl View {
    /// The table of this process.
    ///
    /// # Errors
    /// If there is none, or it may not be looked at.
    pub fn of_process(process: u32) -> Result<View, AttachError> {
        let folder = Text::<32>::of(format_args!("/proc/{process}/fd"));
        let folder = folder.ok_or(AttachError::NoTable)?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let folder = File::open(folder.as_c_str(), flags).map_err(AttachError::Unreachable)?;
        let mut error = AttachError::NoTable;
        let mut found = None;
        kernel::each_name(&folder, |name| {
            let path = Text::<48>::of(format_args!("/proc/{process}/fd/{name}"));
            let Some(path) = path.filter(|it| found.is_none() && is_table(it.as_c_str())) else {
                return;
            };
            match View::open(path.as_c_str()) {
                Ok(view) if view.process == process => found = Some(view),
                Ok(view) => error = AttachError::OfProcess(view.process),
                Err(reason) => error = reason,
            }
        })
        .map_err(AttachError::Unreachable)?;
        found.ok_or(error)
    }

    /// The table that this path leads to, `/proc/PID/fd/N` for instance.
    ///
    /// # Errors
    /// If it is no table, or may not be looked at.
    pub fn open(path: &CStr) -> Result<View, AttachError> {
        // Nobody should be able to make this wait, by a pipe for instance.
        let flags = libc::O_RDONLY | libc::O_NONBLOCK;
        let file = File::open(path, flags).map_err(AttachError::Unreachable)?;
        let arguments = [file.raw() as usize, libc::F_GET_SEALS as usize, 0, 0, 0, 0];
        // SAFETY: asks about our descriptor.
        let seals = unsafe { call(libc::SYS_fcntl, arguments) };
        // From here on its length is what it is.
        if !seals.is_ok_and(|it| it as c_int & libc::F_SEAL_SHRINK != 0) {
            return Err(AttachError::Unsealed);
        }
        let length = length_of(&file).map_err(AttachError::Unreachable)?;
        if length < LINE_BYTES as u64 {
            return Err(AttachError::Damaged);
        }
        let header = Mapping::read_only(&file, 0).map_err(AttachError::Unreachable)?;
        let lines = believed(header.header(), length)?;
        let process = header.header().process.load(Ordering::Relaxed);
        let memory = Mapping::read_only(&file, lines).map_err(AttachError::Unreachable)?;
        Ok(View { memory, process })
    }

    /// The process whose threads these are.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// All threads, each as of one moment. A process that was killed leaves the
    /// last that it wrote.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, Entry)> {
        self.memory.lines().iter()
    }

    /// The threads of a role.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = (Slot, Entry)> {
        self.memory.lines().with_role(role)
    }

    /// All that is known of a thread.
    ///
    /// # Errors
    /// If it has no line, or why it cannot be told.
    pub fn entry(&self, identity: u64) -> Result<Entry, TableError> {
        self.memory.lines().entry(identity)
    }

    /// The thread that the kernel gives this number.
    #[must_use]
    pub fn by_thread_id(&self, tid: u32) -> Option<(Slot, Entry)> {
        self.memory.lines().by_thread_id(tid)
    }

    /// How many threads found no line.
    #[must_use]
    pub fn unlisted(&self) -> u32 {
        self.memory.lines().unlisted()
    }
}

/// How many lines a header may be believed to have.
fn believed(header: &Header, length: u64) -> Result<u32, AttachError> {
    if header.magic.load(Ordering::Acquire) != MAGIC {
        return Err(AttachError::Damaged);
    }
    let version = header.version.load(Ordering::Relaxed);
    if version != VERSION {
        return Err(AttachError::Version(version));
    }
    let lines = header.lines.load(Ordering::Relaxed);
    let is_sound = header.line_bytes.load(Ordering::Relaxed) == LINE_BYTES as u32
        && lines.is_power_of_two()
        && lines <= LINES_MAX
        && bytes_of(lines) as u64 <= length;
    if is_sound {
        Ok(lines)
    } else {
        Err(AttachError::Damaged)
    }
}

/// Memory of a table, given back in the end.
struct Mapping {
    start: NonNull<c_void>,
    line_count: u32,
}

// SAFETY: it is memory of atomics, at a place that does not change.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn read_only(file: &File, lines: u32) -> Result<Mapping, Errno> {
        Mapping::map(Some(file), lines, None, libc::PROT_READ)
    }

    /// Memory of a file or, without one, of nobody else; at a place of ours that
    /// has at least as much, or anywhere.
    fn new(file: Option<&File>, lines: u32, at: Option<NonNull<c_void>>) -> Result<Mapping, Errno> {
        Mapping::map(file, lines, at, libc::PROT_READ | libc::PROT_WRITE)
    }

    fn map(
        file: Option<&File>,
        lines: u32,
        at: Option<NonNull<c_void>>,
        protection: c_int,
    ) -> Result<Mapping, Errno> {
        let address = at.map_or(core::ptr::null_mut(), NonNull::as_ptr);
        let mut flags = if at.is_some() { libc::MAP_FIXED } else { 0 };
        flags |= match file {
            Some(_) => libc::MAP_SHARED,
            None => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        };
        let descriptor = file.map_or(-1, File::raw);
        // SAFETY: new memory, or memory that a table has, which is all atomics and
        // for which everybody's references stay what they are.
        let start = unsafe { kernel::map(address, bytes_of(lines), protection, flags, descriptor) };
        start.map(|start| Mapping {
            start,
            line_count: lines,
        })
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the memory begins with a header, is aligned to pages, lives as
        // long as this, and every pattern of bits is a header, as it is all atomics.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    #[inline]
    fn lines(&self) -> Lines<'_> {
        // SAFETY: as many lines follow the header, which is as long as one; and as
        // in `header`.
        let lines = unsafe {
            let first = self.start.cast::<Line>().add(1);
            core::slice::from_raw_parts(first.as_ptr(), self.line_count as usize)
        };
        Lines {
            header: self.header(),
            lines,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let length = bytes_of(self.line_count);
        let arguments = [self.start.as_ptr() as usize, length, 0, 0, 0, 0];
        // SAFETY: it is ours, and nobody refers to it any more.
        let _ = unsafe { call(libc::SYS_munmap, arguments) };
    }
}

/// Leaves closing it to somebody else.
fn into_raw(file: File) -> c_int {
    let descriptor = file.raw();
    core::mem::forget(file);
    descriptor
}

fn sealable(bytes: usize) -> Result<File, Errno> {
    if !kernel::may_be_as_long(bytes as u64) {
        return Err(Errno(libc::EFBIG));
    }
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let arguments = [NAME.as_ptr() as usize, flags as usize, 0, 0, 0, 0];
    // SAFETY: the name ends with a zero; the descriptor is new, so it is ours.
    let file = unsafe {
        let descriptor = call(libc::SYS_memfd_create, arguments)?;
        File::from_raw(descriptor as c_int).out_of_the_way()
    };
    let arguments = [file.raw() as usize, bytes, 0, 0, 0, 0];
    // SAFETY: it is ours and nobody has mapped it yet.
    unsafe { call(libc::SYS_ftruncate, arguments) }?;
    Ok(file)
}

fn seal(file: &File) -> Result<(), Errno> {
    let always = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let add = |seals: c_int| {
        let arguments = [
            file.raw() as usize,
            libc::F_ADD_SEALS as usize,
            seals as usize,
            0,
            0,
            0,
        ];
        // SAFETY: the file is ours.
        unsafe { call(libc::SYS_fcntl, arguments) }
    };
    // Kernels before 5.1 know no such seal.
    add(always | SEAL_FUTURE_WRITE)
        .or_else(|_| add(always))
        .map(|_| ())
}

fn length_of(file: &File) -> Result<u64, Errno> {
    let end = [file.raw() as usize, 0, libc::SEEK_END as usize, 0, 0, 0];
    // SAFETY: the descriptor is ours, and where it stands does not count.
    unsafe { call(libc::SYS_lseek, end) }.map(|it| it as u64)
}

/// Whether a link in `/proc/PID/fd` leads to memory of our name.
fn is_table(link: &CStr) -> bool {
    let mut space = [0; 64];
    let arguments = [
        libc::AT_FDCWD as usize,
        link.as_ptr() as usize,
        space.as_mut_ptr() as usize,
        space.len(),
        0,
        0,
    ];
    // SAFETY: the path ends with a zero; writes into the space.
    let length = unsafe { call(libc::SYS_readlinkat, arguments) }.unwrap_or(0);
    let target = space
        .get(..length)
        .and_then(|it| it.strip_prefix(b"/memfd:"));
    target.is_some_and(|it| it.strip_suffix(b" (deleted)") == Some(NAME.to_bytes()))
}

#[cfg(all(test, not(miri)))]
mod tests;
