//! What is asked of the kernel, in the few forms that stacks need.
//!
//! Nothing allocates, nothing panics, and `errno` is afterwards what it was: this
//! runs inside programs that know nothing of it. Every function gives the kernel
//! only memory that lives as long as the call, of the length that it says, and
//! is therefore safe to call with anything.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::text::Text;

/// Why the kernel refused; its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.0 {
            libc::EPERM => "not permitted",
            libc::ENOENT => "there is none",
            libc::ESRCH => "there is no such process or thread",
            libc::EIO => "the device failed",
            libc::EAGAIN => "held by somebody else",
            libc::ENOMEM => "there is no memory",
            libc::EACCES => "permission denied",
            libc::EINVAL => "refused as invalid",
            libc::ENOTDIR => "a part of the path is no folder",
            libc::EISDIR => "it is a folder",
            libc::EMFILE | libc::ENFILE => "too many open files",
            libc::EFBIG => "it is too large",
            libc::ENOSPC => "the disk is full",
            libc::EROFS => "the disk cannot be written",
            libc::ENAMETOOLONG => "the path is too long",
            _ => return write!(f, "error {}", self.0),
        };
        write!(f, "{word} (error {})", self.0)
    }
}

impl core::error::Error for Errno {}

/// Runs a system call; what it said, and `errno` is as before.
fn quietly(call: impl FnOnce() -> c_long) -> Result<usize, Errno> {
    // SAFETY: the address is that of this thread's errno, which lives as long as it.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    let said = call();
    let failure = core::mem::replace(errno, before);
    usize::try_from(said).map_err(|_| Errno(failure))
}

/// As [`quietly`], again for as long as a signal came between.
fn patiently(mut call: impl FnMut() -> c_long) -> Result<usize, Errno> {
    loop {
        match quietly(&mut call) {
            Err(Errno(libc::EINTR)) => {}
            said => return said,
        }
    }
}

/// A file that this process has open, and closes; no program that it executes has it.
#[derive(Debug)]
pub(super) struct File(c_int);

impl File {
    /// Opens a file with these flags; what is made thereby belongs to its user.
    pub(super) fn open(path: &CStr, flags: c_int) -> Result<Self, Errno> {
        // SAFETY: the path ends with a zero.
        let open = || unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) }.into();
        patiently(open).map(|number| Self(number as c_int))
    }

    /// The same file by a high number, if one is to be had: programs expect the low ones
    /// to be theirs.
    pub(super) fn out_of_the_way(self) -> Self {
        let lowest = crate::kernel::OUT_OF_THE_WAY;
        // SAFETY: no memory is involved.
        let raise = || unsafe { libc::fcntl(self.0, libc::F_DUPFD_CLOEXEC, lowest) }.into();
        let high = quietly(raise);
        high.map_or(self, |number| Self(number as c_int))
    }

    pub(super) fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        // SAFETY: the kernel writes at most so many bytes.
        patiently(|| unsafe { libc::read(self.0, into.as_mut_ptr().cast(), into.len()) } as c_long)
    }

    pub(super) fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let (start, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: the kernel writes at most so many bytes.
        patiently(|| unsafe { libc::pread64(self.0, start, bytes, offset as i64) } as c_long)
    }

    pub(super) fn write_all(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let (start, length) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: the kernel reads at most so many bytes.
            let written = patiently(|| unsafe { libc::write(self.0, start, length) } as c_long)?;
            if written == 0 {
                return Err(Errno(libc::EIO));
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Makes a file as long as this: shorter, or with zeros that take no place on the disk.
    /// It fails, and no signal comes, where files must not be so long.
    pub(super) fn extend(&self, bytes: u64) -> Result<(), Errno> {
        if !crate::kernel::may_be_as_long(bytes) {
            return Err(Errno(libc::EFBIG));
        }
        // SAFETY: no memory is involved.
        patiently(|| unsafe { libc::ftruncate64(self.0, bytes as i64) }.into()).map(|_| ())
    }

    /// The file in memory, which other processes have in common; children by `fork` do not.
    /// It is written by [`poke`], and stays when the file is closed.
    pub(super) fn share(&self, bytes: usize) -> Result<usize, Errno> {
        let mut start = core::ptr::null_mut();
        quietly(|| {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a mapping of its own is in nobody's way.
            unsafe {
                start = libc::mmap(start, bytes, rights, libc::MAP_SHARED, self.0, 0);
                if start == libc::MAP_FAILED {
                    return -1;
                }
                let said = libc::madvise(start, bytes, libc::MADV_DONTFORK);
                if said != 0 {
                    let why = *libc::__errno_location();
                    libc::munmap(start, bytes);
                    *libc::__errno_location() = why;
                }
                said.into()
            }
        })?;
        Ok(start as usize)
    }

    /// Whether it is a plain file of this user's, or of root's.
    pub(super) fn is_trusted(&self) -> bool {
        // SAFETY: all zeros are a value of this structure.
        let mut status: libc::stat64 = unsafe { core::mem::zeroed() };
        // SAFETY: the kernel writes one such structure.
        let asked = quietly(|| unsafe { libc::fstat64(self.0, &mut status) }.into());
        // SAFETY: no memory is involved.
        let user = unsafe { libc::geteuid() };
        let is_plain = status.st_mode & libc::S_IFMT == libc::S_IFREG;
        asked.is_ok() && is_plain && (status.st_uid == user || status.st_uid == 0)
    }

    /// Calls with the names in a folder.
    pub(super) fn each_name(&self, one: &mut dyn FnMut(&[u8])) -> Result<(), Errno> {
        /// Number, place of the next, length of the record, kind; then the name.
        const NAME: usize = 8 + 8 + 2 + 1;
        let mut records = [0_u64; 256];
        loop {
            let (start, bytes) = (records.as_mut_ptr(), size_of_val(&records));
            // SAFETY: the kernel writes at most so many bytes.
            let read =
                patiently(|| unsafe { libc::syscall(libc::SYS_getdents64, self.0, start, bytes) })?;
            if read == 0 {
                return Ok(());
            }
            // SAFETY: they are as many bytes, which all have values.
            let records = unsafe { core::slice::from_raw_parts(start.cast::<u8>(), read) };
            let mut rest = records;
            while let Some(length) = rest.get(16..18) {
                let length = length.try_into().map_or(0, u16::from_ne_bytes).into();
                let record = rest.get(NAME..length).unwrap_or_default();
                one(record.split(|byte| *byte == 0).next().unwrap_or_default());
                rest = rest.get(length.max(1)..).unwrap_or_default();
            }
        }
    }

    /// Takes the file for oneself if nobody has it, until it is closed.
    pub(super) fn lock(&self) -> Result<(), Errno> {
        // SAFETY: no memory is involved.
        patiently(|| unsafe { libc::flock(self.0, libc::LOCK_EX | libc::LOCK_NB) }.into())
            .map(|_| ())
    }

    /// Gives it back, also where processes have it that were forked meanwhile.
    pub(super) fn unlock(&self) {
        // SAFETY: no memory is involved.
        let _ = patiently(|| unsafe { libc::flock(self.0, libc::LOCK_UN) }.into());
    }

    /// Device and number, which tell whether a program has put another file in its place.
    pub(super) fn identity(&self) -> Result<(u64, u64), Errno> {
        // SAFETY: all zeros are a value of this structure.
        let mut status: libc::stat64 = unsafe { core::mem::zeroed() };
        // SAFETY: the kernel writes one such structure.
        quietly(|| unsafe { libc::fstat64(self.0, &mut status) }.into())?;
        // The types differ between architectures.
        #[allow(clippy::unnecessary_cast)]
        Ok((status.st_dev as u64, status.st_ino as u64))
    }

    /// Control codes are 32 bits; how C passes them differs between its libraries.
    fn control<T>(&self, code: u32, argument: &mut T) -> Result<usize, Errno> {
        let argument: *mut T = argument;
        // SAFETY: the codes below name the size of the structure that is handed over.
        quietly(|| unsafe { libc::ioctl(self.0, code as _, argument) }.into())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the number is ours, and nobody uses it afterwards.
        let _ = quietly(|| unsafe { libc::close(self.0) }.into());
    }
}

/// The code of a control that both reads and writes a structure of files in /proc.
const fn both_ways<T>(number: u32) -> u32 {
    3 << 30 | (size_of::<T>() as u32) << 16 | (b'f' as u32) << 8 | number
}

/// `struct procmap_query`, Linux 6.11.
#[repr(C)]
#[derive(Default)]
struct MapQuery {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    found: u64,
    page_bytes: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_bytes: u32,
    build_bytes: u32,
    name: u64,
    build: u64,
}

/// A mapping, as far as stacks want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Whether anything may be done with it; a guard page forbids everything.
    pub is_accessible: bool,
}

/// The mapping that has the address, asked of an open `/proc/…/maps`.
pub(super) fn query_mapping(maps: &File, address: u64) -> Result<Option<Mapping>, Errno> {
    const READ_WRITE_EXECUTE: u64 = 1 | 2 | 4;
    let mut query = MapQuery {
        size: size_of::<MapQuery>() as u64,
        address,
        ..MapQuery::default()
    };
    match maps.control(both_ways::<MapQuery>(17), &mut query) {
        Ok(_) => Ok(Some(Mapping {
            start: query.start,
            end: query.end,
            is_accessible: query.found & READ_WRITE_EXECUTE != 0,
        })),
        Err(Errno(libc::ENOENT)) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// `struct pm_scan_arg`, Linux 6.7.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walked: u64,
    regions: u64,
    regions_max: u64,
    pages_max: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    told: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// Pages that memory or swap has.
pub(super) const TOUCHED: u64 = 1 << 3 | 1 << 4;
/// Guard pages that are no mapping of their own, Linux 6.15.
pub(super) const GUARD: u64 = 1 << 8;

/// The lowest pages in a row that have one of the categories, asked of an open
/// `/proc/…/pagemap`: their start and their end.
pub(super) fn scan(
    pagemap: &File,
    (start, end): (u64, u64),
    any_of: u64,
) -> Result<Option<(u64, u64)>, Errno> {
    let mut region = PageRegion::default();
    let mut scan = Scan {
        size: size_of::<Scan>() as u64,
        start,
        end,
        regions: (&raw mut region) as usize as u64,
        regions_max: 1,
        any_of,
        // Pages in a row are told together where what is told of them is the same.
        told: any_of & GUARD,
        ..Scan::default()
    };
    let found = pagemap.control(both_ways::<Scan>(16), &mut scan)?;
    Ok((found > 0).then_some((region.start, region.end)))
}

/// Which pages of one's own memory are there; one byte a page.
pub(super) fn resident(start: usize, pages: &mut [u8], page_bytes: usize) -> Result<(), Errno> {
    let bytes = pages.len().saturating_mul(page_bytes);
    let (start, into) = (start as *mut c_void, pages.as_mut_ptr());
    // SAFETY: the kernel writes a byte for each page; what is there is not touched.
    patiently(|| unsafe { libc::mincore(start, bytes, into.cast()) }.into()).map(|_| ())
}

/// Copies one's own memory, which need not be there; how many bytes could be had.
pub(super) fn peek(address: usize, into: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: into.len(),
    };
    let process = process_once();
    // SAFETY: the kernel reads where it may and writes at most so many bytes.
    let read =
        quietly(|| unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) as c_long });
    match read {
        Ok(bytes) => bytes,
        Err(Errno(libc::EFAULT)) => 0,
        // A sandbox may forbid that; the file says the same.
        Err(_) => File::open(c"/proc/self/mem", libc::O_RDONLY)
            .and_then(|memory| memory.read_at(into, address as u64))
            .unwrap_or(0),
    }
}

/// Copies bytes into one's own memory, which need not be there: a disk that is full, or a
/// file that was cut, is no signal then, but `ENOSPC`. Sandboxes may refuse it.
pub(super) fn poke(address: usize, bytes: &[u8]) -> Result<(), Errno> {
    let local = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: bytes.len(),
    };
    let process = process_once();
    // SAFETY: the kernel writes where it may, and the callers have that memory for it.
    let written =
        quietly(|| unsafe { libc::process_vm_writev(process, &local, 1, &remote, 1, 0) as c_long });
    match written {
        Ok(count) if count == bytes.len() => Ok(()),
        Ok(_) | Err(Errno(libc::EFAULT)) => Err(Errno(libc::ENOSPC)),
        Err(errno) => Err(errno),
    }
}

/// When a process has begun, in ticks of the machine; 0 is this one. None if that is not
/// known, or if it is not there.
pub(super) fn began(process: c_int) -> Option<u64> {
    let path: Text<32> = match process {
        0 => Text::of(format_args!("/proc/self/stat")),
        number => Text::of(format_args!("/proc/{number}/stat")),
    };
    let mut room = [0; 1024];
    let read = File::open(path.as_path()?, libc::O_RDONLY).and_then(|it| it.read(&mut room));
    let text = room.get(..read.ok()?)?;
    // Behind its name, which may have spaces and brackets.
    let name = text.iter().rposition(|byte| *byte == b')')?;
    let word = text.get(name + 2..)?.split(|byte| *byte == b' ').nth(19)?;
    core::str::from_utf8(word).ok()?.parse().ok()
}

/// Among which processes the numbers are that this one sees: those of its namespace.
pub(super) fn processes() -> Option<u64> {
    let mut room = [0; 64];
    let length = link(c"/proc/self/ns/pid", &mut room).ok()?;
    let name = room.get(..length)?.strip_prefix(b"pid:[")?;
    let number = name.strip_suffix(b"]")?;
    core::str::from_utf8(number).ok()?.parse().ok()
}

/// Whether there is a process of this number.
pub(super) fn is_there(process: c_int) -> bool {
    // SAFETY: nothing is sent.
    let asked = quietly(|| unsafe { libc::kill(process, 0) }.into());
    asked != Err(Errno(libc::ESRCH))
}

/// Removes a file.
pub(super) fn unlink(path: &CStr) -> Result<(), Errno> {
    // SAFETY: the path ends with a zero.
    quietly(|| unsafe { libc::unlink(path.as_ptr()) }.into()).map(|_| ())
}

/// Puts a file in the place of another, at once.
pub(super) fn rename(from: &CStr, to: &CStr) -> Result<(), Errno> {
    // SAFETY: both paths end with a zero.
    quietly(|| unsafe { libc::rename(from.as_ptr(), to.as_ptr()) }.into()).map(|_| ())
}

/// Where a symbolic link points; as much as there is room for.
pub(super) fn link(path: &CStr, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the path ends with a zero, and the kernel writes at most so many bytes.
    quietly(|| unsafe {
        libc::readlink(path.as_ptr(), into.as_mut_ptr().cast(), into.len()) as c_long
    })
}

/// Sleeps for so many milliseconds, less if a signal comes.
pub(super) fn sleep(milliseconds: u16) {
    let span = libc::timespec {
        tv_sec: (milliseconds / 1000).into(),
        tv_nsec: (u32::from(milliseconds % 1000) * 1_000_000) as _,
    };
    // SAFETY: the kernel reads one such structure.
    let _ = quietly(|| unsafe { libc::nanosleep(&span, core::ptr::null_mut()) }.into());
}

/// Bytes on the standard error output, if somebody reads them.
pub(super) fn complain(text: &[u8]) {
    // SAFETY: the kernel reads at most so many bytes.
    let _ = patiently(|| unsafe { libc::write(2, text.as_ptr().cast(), text.len()) } as c_long);
}

/// The number of this process.
pub(super) fn process() -> c_int {
    // SAFETY: no memory is involved.
    unsafe { libc::getpid() }
}

/// The same, asked for once in each process.
static PROCESS: AtomicUsize = AtomicUsize::new(0);

fn process_once() -> c_int {
    once(&PROCESS, || process() as usize) as c_int
}

/// In the child of a fork, which has another number.
pub(super) fn forked() {
    PROCESS.store(0, Ordering::Relaxed);
}

/// The kernel's number of this thread.
pub fn thread() -> c_int {
    // SAFETY: no memory is involved.
    quietly(|| unsafe { libc::syscall(libc::SYS_gettid) }).map_or(0, |thread| thread as c_int)
}

/// Bytes of a page.
pub fn page_bytes() -> u64 {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    once(&KNOWN, || {
        // SAFETY: no memory is involved.
        quietly(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    }) as u64
}

/// What does not change while the process lives, and is not 0.
fn once(known: &AtomicUsize, ask: impl FnOnce() -> usize) -> usize {
    match known.load(Ordering::Relaxed) {
        0 => {
            let answer = ask();
            known.store(answer, Ordering::Relaxed);
            answer
        }
        answer => answer,
    }
}

/// The least stack on which a signal can be delivered: it grows with the registers
/// of the processor, and the kernel says it.
pub fn signal_bytes() -> u64 {
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    /// What C's headers still say, where the kernel says nothing.
    const FORMERLY: usize = 2048;
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    once(&KNOWN, || {
        let mut said = 0;
        let _ = quietly(|| {
            // SAFETY: no memory is involved.
            said = unsafe { libc::getauxval(AT_MINSIGSTKSZ) };
            0
        });
        (said as usize).max(FORMERLY)
    }) as u64
}

/// Whether the address space of this process is small: 32 bits, or limited.
pub fn is_space_limited() -> bool {
    space_bytes_max().is_some()
}

/// Whether the address space of this process is small, and more than an eighth of it used;
/// also where the kernel does not tell how much is.
pub fn is_space_short() -> bool {
    const SHARE: u64 = 8;
    space_bytes_max().is_some_and(|max| space_bytes().is_none_or(|used| used > max / SHARE))
}

/// How much address space this process uses.
fn space_bytes() -> Option<u64> {
    let mut room = [0; 128];
    let text = crate::kernel::read_file(c"/proc/self/statm", &mut room).ok()?;
    let pages = text.split(|byte| *byte == b' ').next()?;
    let pages: u64 = core::str::from_utf8(pages).ok()?.parse().ok()?;
    pages.checked_mul(page_bytes())
}

/// How much address space this process may use, if it is small.
fn space_bytes_max() -> Option<u64> {
    // Where the kernel has 32 bits as well, the rest is its own.
    const OF_32_BITS: u64 = 3 << 30;
    // SAFETY: all zeros are a value of this structure.
    let mut limit: libc::rlimit64 = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel writes one such structure.
    let asked = quietly(|| unsafe { libc::getrlimit64(libc::RLIMIT_AS, &mut limit) }.into());
    let limited = asked.ok().map(|_| limit.rlim_cur);
    let limited = limited.filter(|it| *it != libc::RLIM64_INFINITY);
    match cfg!(target_pointer_width = "32") {
        true => Some(limited.unwrap_or(OF_32_BITS).min(OF_32_BITS)),
        false => limited,
    }
}

/// Memory from the kernel for a while, all zeros at first; for what is done seldom.
pub(super) struct Scratch {
    start: *mut u8,
    bytes: usize,
}

impl Scratch {
    pub(super) fn new(bytes: usize) -> Result<Self, Errno> {
        let bytes = bytes.max(1);
        let mut start = core::ptr::null_mut();
        quietly(|| {
            // SAFETY: a mapping of its own is in nobody's way.
            start = unsafe {
                libc::mmap(
                    core::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if start == libc::MAP_FAILED { -1 } else { 0 }
        })?;
        Ok(Self {
            start: start.cast(),
            bytes,
        })
    }

    /// All of it as values of one type, each of them this one.
    pub(super) fn filled<T: Copy>(&mut self, value: T) -> &mut [T] {
        // A mapping begins with a page, which is enough for any alignment below.
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) };
        let count = self.bytes / size_of::<T>();
        let start: *mut T = self.start.cast();
        for index in 0..count {
            // SAFETY: this many values lie within the mapping, which nobody else has.
            unsafe { start.add(index).write(value) };
        }
        // SAFETY: they have all been written, and are borrowed as long as the mapping is.
        unsafe { core::slice::from_raw_parts_mut(start, count) }
    }
}

impl Scratch {
    /// All of it as bytes, zeros at first: what is not written takes no memory.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: all of the mapping is there and has a value, and is borrowed as long.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody uses it afterwards.
        let _ = quietly(|| unsafe { libc::munmap(self.start.cast(), self.bytes) }.into());
    }
}
