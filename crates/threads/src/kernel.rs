//! System calls, made so that a program does not notice: no cancellation points,
//! `errno` stays what it was, nothing is allocated.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::fmt::{self, Write as _};
use core::ptr::{NonNull, null_mut};

/// Why the kernel refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Its name, for those that occur here.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            libc::EPERM => "EPERM, not permitted",
            libc::ENOENT => "ENOENT, does not exist",
            libc::ESRCH => "ESRCH, no such thread",
            libc::EAGAIN => "EAGAIN, try again",
            libc::ENOMEM => "ENOMEM, no memory",
            libc::EACCES => "EACCES, no access",
            libc::EBUSY => "EBUSY, in use",
            libc::EEXIST => "EEXIST, is there",
            libc::EINVAL => "EINVAL, not valid",
            libc::EMFILE => "EMFILE, too many open files",
            libc::EROFS => "EROFS, read-only",
            libc::ENOSYS => "ENOSYS, this kernel cannot",
            libc::EOPNOTSUPP => "EOPNOTSUPP, not supported here",
            _ => return None,
        })
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl core::error::Error for Errno {}

/// # Safety
/// As the system call, for which the arguments are meant.
pub(crate) unsafe fn call(number: c_long, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller answers for the arguments; `errno` is the thread's own
    // and its address is valid while the thread lives.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = libc::syscall(number, a, b, c, d, e, f);
        if result == -1 {
            let error = Errno(*errno);
            *errno = before;
            return Err(error);
        }
        Ok(result as usize)
    }
}

/// The kernel's number of this thread.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: has no arguments and cannot fail.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// The C library's number of this thread, as `pthread_self` gives it: by it the
/// thread information table knows threads.
#[must_use]
pub fn identity() -> u64 {
    // SAFETY: has no arguments and cannot fail.
    #[allow(clippy::unnecessary_cast, reason = "narrower on 32 bits")]
    let identity = unsafe { libc::pthread_self() } as u64;
    identity
}

/// The kernel's number of this process.
#[must_use]
pub fn process_id() -> u32 {
    // SAFETY: has no arguments and cannot fail.
    unsafe { call(libc::SYS_getpid, [0; 6]) }.unwrap_or(0) as u32
}

/// Whether a thread of this process is there.
pub(crate) fn is_alive(thread: u32) -> bool {
    let arguments = [process_id() as usize, thread as usize, 0, 0, 0, 0];
    // SAFETY: signal 0 only asks.
    let result = unsafe { call(libc::SYS_tgkill, arguments) };
    result != Err(Errno(libc::ESRCH))
}

/// Sleeps for so long, less if a signal comes.
pub fn sleep_ns(nanoseconds: c_long) {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    let arguments = [&raw const time as usize, 0, 0, 0, 0, 0];
    // SAFETY: reads `time`, which lives; that a signal cuts it short does no harm.
    let _ = unsafe { call(libc::SYS_nanosleep, arguments) };
}

/// Nanoseconds since the machine started, sleep included, as `/proc/PID/stat`
/// counts the beginnings of threads.
#[must_use]
pub fn boot_time_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME).unwrap_or(0)
}

/// The processor time that this process has had, in nanoseconds.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// The processor time that a thread of this process has had.
#[must_use]
pub fn thread_cpu_ns(thread: u32) -> Option<u64> {
    // The kernel's encoding of a thread's clock: its number inverted, and the
    // bits for one thread and for scheduled time.
    let clock = ((!thread) << 3) | 4 | 2;
    clock_ns(clock as c_int)
}

/// How many processors the calling thread may use.
#[must_use]
pub fn processors() -> u64 {
    let mut mask = [0_u64; 128];
    let arguments = [0, size_of_val(&mask), mask.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes no more than there is space.
    match unsafe { call(libc::SYS_sched_getaffinity, arguments) } {
        Ok(_) => mask.iter().map(|it| u64::from(it.count_ones())).sum(),
        Err(_) => 1,
    }
}

/// How often a thread of this process has given the processor away because it had
/// to wait for something.
#[must_use]
pub fn thread_blockings(thread: u32) -> Option<u64> {
    let path = Text::<48>::of(format_args!("/proc/self/task/{thread}/status"))?;
    let mut space = [0; 4096];
    let text = core::str::from_utf8(read_file(path.as_c_str(), &mut space).ok()?).ok()?;
    let number = |line: &str| {
        let rest = line.strip_prefix("voluntary_ctxt_switches:")?;
        rest.trim().parse().ok()
    };
    text.lines().find_map(number)
}

/// Whether a thread of this process has a processor, or waits for nothing but one.
#[must_use]
pub fn is_runnable(thread: u32) -> bool {
    let Some(path) = Text::<48>::of(format_args!("/proc/self/task/{thread}/stat")) else {
        return false;
    };
    let mut space = [0; 512];
    let text = read_file(path.as_c_str(), &mut space).unwrap_or_default();
    // The name before it may have parentheses and blanks.
    let mut parts = text.rsplitn(2, |it| *it == b')');
    parts.next().is_some_and(|rest| rest.starts_with(b" R"))
}

fn clock_ns(clock: c_int) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to `time`; a clock that is not known is an error. `errno` is
    // put back as in `call`.
    let result = unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = libc::clock_gettime(clock, &raw mut time);
        *errno = before;
        result
    };
    #[allow(clippy::unnecessary_cast, reason = "narrower on 32 bits")]
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Does something after which `errno` is what it was.
pub fn unnoticed<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: the address is that of this thread's own, and valid while it lives.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = action();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

/// Whether a file of this process may be so long. A process that makes one longer is ended
/// by a signal.
pub fn may_be_as_long(bytes: u64) -> bool {
    // SAFETY: zeros are such a structure, which the kernel writes.
    let limit = unsafe {
        let mut limit: libc::rlimit64 = core::mem::zeroed();
        let said = unnoticed(|| libc::getrlimit64(libc::RLIMIT_FSIZE, &mut limit));
        (said == 0).then_some(limit.rlim_cur)
    };
    limit.is_none_or(|it| bytes <= it)
}

/// Why the last call of the C library has failed.
#[must_use]
pub fn last_error() -> c_int {
    // SAFETY: the address is that of this thread's own.
    unsafe { *libc::__errno_location() }
}

/// A file of this process, by another number and to be read only, until it is dropped.
pub struct Reopened(File);

impl Reopened {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> c_int {
        self.0.raw()
    }
}

/// Opens a file of this process anew, so that who gets it can only read it.
#[must_use]
pub fn reopened(descriptor: c_int) -> Option<Reopened> {
    let path = Text::<40>::of(format_args!("/proc/self/fd/{descriptor}"))?;
    let file = File::open(path.as_c_str(), libc::O_RDONLY).ok()?;
    Some(Reopened(file))
}

/// Gives a file that stays open a high number, if one is to be had: programs expect the
/// low ones to be theirs.
///
/// # Safety
/// The file is the caller's, who uses the new number from now on.
#[must_use]
pub unsafe fn out_of_the_way(descriptor: c_int) -> c_int {
    let file = File(descriptor).out_of_the_way();
    let number = file.raw();
    core::mem::forget(file);
    number
}

/// Files that stay open have numbers from here on, where that is permitted: programs
/// expect the low ones to be theirs.
pub(crate) const OUT_OF_THE_WAY: c_int = 800;

/// An open file, closed in the end.
pub(crate) struct File(c_int);

impl File {
    pub fn open(path: &CStr, flags: c_int) -> Result<File, Errno> {
        File::open_at(libc::AT_FDCWD, path, flags)
    }

    fn open_at(folder: c_int, path: &CStr, flags: c_int) -> Result<File, Errno> {
        let flags = flags | libc::O_CLOEXEC;
        let arguments = [
            folder as usize,
            path.as_ptr() as usize,
            flags as usize,
            0o600,
            0,
            0,
        ];
        // SAFETY: the path ends with a zero and lives.
        unsafe { call(libc::SYS_openat, arguments) }.map(|it| File(it as c_int))
    }

    /// Takes what somebody opened.
    ///
    /// # Safety
    /// Nobody else closes it.
    pub unsafe fn from_raw(descriptor: c_int) -> File {
        File(descriptor)
    }

    /// The same by a high number, if one is to be had.
    pub fn out_of_the_way(self) -> File {
        let command = libc::F_DUPFD_CLOEXEC as usize;
        let arguments = [self.0 as usize, command, OUT_OF_THE_WAY as usize, 0, 0, 0];
        // SAFETY: no memory is involved, and the new number is ours.
        match unsafe { call(libc::SYS_fcntl, arguments) } {
            Ok(high) => File(high as c_int),
            Err(_) => self,
        }
    }

    pub fn raw(&self) -> c_int {
        self.0
    }

    /// Reads until the space is full or there is no more.
    pub fn read<'s>(&self, space: &'s mut [u8]) -> Result<&'s [u8], Errno> {
        let mut length = 0;
        while length < space.len() {
            let rest = &mut space[length..];
            let arguments = [
                self.0 as usize,
                rest.as_mut_ptr() as usize,
                rest.len(),
                0,
                0,
                0,
            ];
            // SAFETY: writes into `rest`, no more than it has.
            match unsafe { call(libc::SYS_read, arguments) } {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&space[..length])
    }

    /// Writes all of it at once, as files of the kernel want it.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Errno> {
        let arguments = [
            self.0 as usize,
            bytes.as_ptr() as usize,
            bytes.len(),
            0,
            0,
            0,
        ];
        loop {
            // SAFETY: reads `bytes`, no more than there are.
            match unsafe { call(libc::SYS_write, arguments) } {
                Ok(_) => return Ok(()),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: it is ours alone. Nobody could do anything about an error.
        let _ = unsafe { call(libc::SYS_close, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

pub(crate) fn write_file(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    File::open(path, libc::O_WRONLY)?.write(bytes)
}

pub(crate) fn read_file<'s>(path: &CStr, space: &'s mut [u8]) -> Result<&'s [u8], Errno> {
    File::open(path, libc::O_RDONLY)?.read(space)
}

pub(crate) fn make_folder(path: &CStr) -> Result<(), Errno> {
    let arguments = [
        libc::AT_FDCWD as usize,
        path.as_ptr() as usize,
        0o755,
        0,
        0,
        0,
    ];
    // SAFETY: the path ends with a zero and lives.
    unsafe { call(libc::SYS_mkdirat, arguments) }.map(|_| ())
}

pub(crate) fn remove_folder(path: &CStr) -> Result<(), Errno> {
    let arguments = [
        libc::AT_FDCWD as usize,
        path.as_ptr() as usize,
        libc::AT_REMOVEDIR as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the path ends with a zero and lives.
    unsafe { call(libc::SYS_unlinkat, arguments) }.map(|_| ())
}

/// Notes something of a file or folder, by an attribute of its own.
pub(crate) fn set_note(path: &CStr, name: &CStr) -> Result<(), Errno> {
    // SAFETY: path and name end with a zero and live; the value is empty.
    unsafe { call(libc::SYS_setxattr, note(path, name)) }.map(|_| ())
}

/// Whether that was noted.
pub(crate) fn has_note(path: &CStr, name: &CStr) -> bool {
    // SAFETY: as above; nothing is written into a space without length.
    unsafe { call(libc::SYS_getxattr, note(path, name)) }.is_ok()
}

/// It was not.
pub(crate) fn remove_note(path: &CStr, name: &CStr) -> Result<(), Errno> {
    // SAFETY: as above.
    unsafe { call(libc::SYS_removexattr, note(path, name)) }.map(|_| ())
}

fn note(path: &CStr, name: &CStr) -> [usize; 6] {
    [path.as_ptr() as usize, name.as_ptr() as usize, 0, 0, 0, 0]
}

/// Tells the names in a folder.
pub(crate) fn each_name(folder: &File, mut tell: impl FnMut(&str)) -> Result<(), Errno> {
    let mut space = [0u8; 2048];
    loop {
        let arguments = [
            folder.raw() as usize,
            space.as_mut_ptr() as usize,
            space.len(),
            0,
            0,
            0,
        ];
        // SAFETY: writes into the space.
        let length = unsafe { call(libc::SYS_getdents64, arguments) }?;
        if length == 0 {
            return Ok(());
        }
        let mut rest = &space[..length];
        // Inode and offset, 8 bytes each, the entry's length, its kind, its name.
        while rest.len() > 19 {
            let entry_length = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
            let Some((entry, others)) = rest.split_at_checked(entry_length.max(19)) else {
                return Ok(());
            };
            let name = CStr::from_bytes_until_nul(&entry[19..]);
            if let Some(name) = name.ok().and_then(|it| it.to_str().ok()) {
                tell(name);
            }
            rest = others;
        }
    }
}

/// Waits until somebody [`wake`]s who waits for this word, at most so long; not at all
/// if it has another value.
pub fn wait(word: &core::sync::atomic::AtomicU32, value: u32, span_ns: Option<u64>) {
    let span = span_ns.map(|it| libc::timespec {
        tv_sec: (it / 1_000_000_000) as _,
        tv_nsec: (it % 1_000_000_000) as _,
    });
    let span = span.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let word = word.as_ptr() as usize;
    let arguments = [
        word,
        operation as usize,
        value as usize,
        span as usize,
        0,
        0,
    ];
    // SAFETY: word and span live as long as the call.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// Wakes who waits for this word.
pub fn wake(word: &core::sync::atomic::AtomicU32) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    let arguments = [
        word.as_ptr() as usize,
        operation,
        i32::MAX as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the word lives as long as the call.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// New memory of zeros, which the system gives as it is used, for who gives it back by
/// [`release`] or keeps it.
///
/// # Errors
/// There is none.
pub fn reserve(bytes: usize) -> Result<NonNull<c_void>, Errno> {
    memory(bytes)
}

/// Gives memory back.
///
/// # Safety
/// It came from [`reserve`], has so many bytes, and nobody uses it any more.
pub unsafe fn release(start: NonNull<c_void>, bytes: usize) {
    let arguments = [start.as_ptr() as usize, bytes, 0, 0, 0, 0];
    // SAFETY: the caller's.
    let _ = unsafe { call(libc::SYS_munmap, arguments) };
}

/// New memory of zeros, which the system gives as it is used.
pub(crate) fn memory(bytes: usize) -> Result<NonNull<c_void>, Errno> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory.
    unsafe { map(null_mut(), bytes, protection, flags, -1) }
}

/// A text that stays for as long as the process lives.
///
/// # Errors
/// There is no memory.
pub fn keep(text: &[u8]) -> Result<&'static CStr, Errno> {
    let end = text.iter().position(|it| *it == 0).unwrap_or(text.len());
    let start = memory(end + 1)?.cast::<u8>();
    // SAFETY: there are as many bytes and one more, which is zero, as new memory is;
    // nobody else has it, and nobody gives it back.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), start.as_ptr(), end);
        Ok(CStr::from_ptr(start.as_ptr().cast()))
    }
}

/// One value, or several equal ones, that stay for as long as the process lives.
///
/// # Errors
/// There is no memory.
pub fn keep_all<T: Copy>(count: usize, value: T) -> Result<&'static mut [T], Errno> {
    // A mapping begins with a page, which is enough for any alignment below.
    const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) };
    if count == 0 {
        return Ok(&mut []);
    }
    let start = memory(count.saturating_mul(size_of::<T>()))?.cast::<T>();
    // SAFETY: there is room for as many, which are written before anybody sees them;
    // nobody else has it, and nobody gives it back.
    unsafe {
        for index in 0..count {
            start.add(index).write(value);
        }
        Ok(core::slice::from_raw_parts_mut(start.as_ptr(), count))
    }
}

/// A line on the standard error output, for whom it may concern: `milieu: …`.
pub fn complain(arguments: fmt::Arguments<'_>) {
    let mut text = Text::<512>::new();
    // What does not fit is left out.
    let _ = text.write_fmt(format_args!("milieu: {arguments}"));
    let _ = text.write_str("\n");
    let length = text.length;
    let arguments = [2, text.bytes.as_ptr() as usize, length, 0, 0, 0];
    // SAFETY: reads the text, no more than there is.
    let _ = unsafe { call(libc::SYS_write, arguments) };
}

/// # Safety
/// As `mmap`: where the flags say that memory is to be replaced, it may be.
pub(crate) unsafe fn map(
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
) -> Result<NonNull<c_void>, Errno> {
    // SAFETY: the caller answers for it; `errno` is put back as in `call`.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let start = libc::mmap(at, bytes, protection, flags, descriptor, 0);
        let error = Errno(*errno);
        *errno = before;
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => Ok(start),
            _ => Err(error),
        }
    }
}

/// Whether there is such a process.
pub(crate) fn is_process(process: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let result = unsafe { call(libc::SYS_kill, [process as usize, 0, 0, 0, 0, 0]) };
    result != Err(Errno(libc::ESRCH))
}

/// Whether this process may execute a file.
#[must_use]
pub fn is_executable(path: &CStr) -> bool {
    let (folder, path) = (libc::AT_FDCWD as usize, path.as_ptr() as usize);
    let arguments = [folder, path, libc::X_OK as usize, 0, 0, 0];
    // SAFETY: the path ends with a zero and lives.
    unsafe { call(libc::SYS_faccessat, arguments) }.is_ok()
}

/// The limits of this process, and perhaps new ones.
pub(crate) fn limit(resource: u32, new: Option<libc::rlimit64>) -> Result<libc::rlimit64, Errno> {
    let mut old = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let new = new.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let arguments = [
        0,
        resource as usize,
        new as usize,
        &raw mut old as usize,
        0,
        0,
    ];
    // SAFETY: reads `new` unless it is null, and writes to `old`.
    unsafe { call(libc::SYS_prlimit64, arguments) }?;
    Ok(old)
}

/// Text of bounded length that ends with a zero, for paths; what does not fit
/// makes it invalid.
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Text<N> {
        Text::new()
    }
}

impl<const N: usize> Text<N> {
    /// An empty one.
    #[must_use]
    pub fn new() -> Text<N> {
        Text {
            bytes: [0; N],
            length: 0,
        }
    }

    /// This, if it fits.
    #[must_use]
    pub fn of(arguments: fmt::Arguments<'_>) -> Option<Text<N>> {
        let mut text = Text::new();
        text.write_fmt(arguments).ok()?;
        Some(text)
    }

    /// As C has it.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// As Rust has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.length + part.len();
        // One is left for the zero at the end.
        if end >= N || part.contains('\0') {
            return Err(fmt::Error);
        }
        self.bytes[self.length..end].copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn an_error_leaves_errno_alone() {
        // SAFETY: the address of this thread's own `errno`.
        let errno = unsafe { &mut *libc::__errno_location() };
        *errno = 4711;
        assert_eq!(
            File::open(c"/nowhere/at/all", libc::O_RDONLY).err(),
            Some(Errno(libc::ENOENT))
        );
        assert_eq!(thread_cpu_ns(u32::MAX >> 4), None);
        assert_eq!(*errno, 4711);
    }

    #[test]
    fn a_path_that_does_not_fit_is_none() {
        assert!(Text::<4>::of(format_args!("abcd")).is_none());
        let text = Text::<5>::of(format_args!("ab{}", 12)).expect("it fits");
        assert_eq!((text.as_c_str(), text.as_str()), (c"ab12", "ab12"));
    }

    #[test]
    fn threads_are_alive_and_have_used_the_processor() {
        assert!(is_alive(thread_id()) && !is_alive(u32::MAX >> 1));
        assert!(thread_cpu_ns(thread_id()).is_some_and(|it| it > 0));
        let before = thread_blockings(thread_id()).expect("it is alive");
        // A sleep that is over before the processor is given away is none.
        let blocks = |_| {
            sleep_ns(1_000_000);
            thread_blockings(thread_id()) > Some(before)
        };
        assert!((0..1000).any(blocks));
        assert_eq!(thread_blockings(u32::MAX >> 1), None);
    }
}
