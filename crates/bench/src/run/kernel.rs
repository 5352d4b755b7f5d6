//! System calls that count for a control group, and that no library here has.
//!
//! Each function is safe to call with anything: it gives the kernel only memory
//! that lives as long as the call, of the length that it says.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::libc::{self, c_int, c_long};

const MAP_CREATE: c_int = 0;
const MAP_LOOKUP: c_int = 1;
const PROGRAM_LOAD: c_int = 5;
const PROGRAM_ATTACH: c_int = 8;
const MAP_ARRAY: u32 = 2;
const PROGRAM_CGROUP_SKB: u32 = 8;
/// Programs of others at the same group go on.
const ATTACH_BESIDE_OTHERS: u32 = 2;

/// Which packets of a control group a program sees; the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Received = 0,
    Sent = 1,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapLookup {
    map: c_int,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log: [u64; 2],
    version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attaches: u32,
}

#[repr(C)]
struct ProgramAttach {
    target: c_int,
    program: c_int,
    direction: u32,
    flags: u32,
}

/// Calls bpf(2).
///
/// # Safety
/// `T` is what the command expects, or its first part; addresses in it are of
/// memory that lives and is as long as the command expects.
unsafe fn bpf<T>(command: c_int, told: &mut T) -> io::Result<c_long> {
    // SAFETY: the kernel reads as many bytes as `told` has; the rest is the caller's word.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(told),
            size_of::<T>(),
        )
    };
    match answer {
        0.. => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A file that a system call has opened.
///
/// # Safety
/// The number is that of an open file which nobody else owns.
unsafe fn opened(number: c_long) -> OwnedFd {
    let number = c_int::try_from(number).expect("numbers of files are small");
    // SAFETY: the caller's word.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Two numbers for each direction, which programs add to.
pub(super) struct Sums(OwnedFd);

impl Sums {
    pub fn new() -> io::Result<Sums> {
        let mut told = MapCreate {
            kind: MAP_ARRAY,
            key_bytes: 4,
            value_bytes: 16,
            entries: 2,
            flags: 0,
        };
        // SAFETY: the command takes this struct, and opens a file.
        unsafe { bpf(MAP_CREATE, &mut told).map(|number| Sums(opened(number))) }
    }

    /// The number by which programs know it.
    pub fn number(&self) -> c_int {
        self.0.as_raw_fd()
    }

    pub fn read(&self, direction: Direction) -> io::Result<[u64; 2]> {
        let key = direction as u32;
        let mut value = [0_u64; 2];
        let mut told = MapLookup {
            map: self.0.as_raw_fd(),
            unused: 0,
            key: std::ptr::from_ref(&key).addr() as u64,
            value: std::ptr::from_mut(&mut value).expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: keys have 4 bytes and values 16, as `key` and `value` have.
        unsafe { bpf(MAP_LOOKUP, &mut told) }?;
        Ok(value)
    }
}

/// Loads a program that sees packets of a control group.
pub(super) fn load(instructions: &[u64]) -> io::Result<OwnedFd> {
    let license = c"MIT";
    let mut told = ProgramLoad {
        kind: PROGRAM_CGROUP_SKB,
        count: u32::try_from(instructions.len()).map_err(io::Error::other)?,
        instructions: instructions.as_ptr().expose_provenance() as u64,
        license: license.as_ptr().expose_provenance() as u64,
        ..ProgramLoad::default()
    };
    // SAFETY: `count` instructions of 8 bytes are there, and a text that ends with 0;
    // the kernel checks what the program does.
    unsafe { bpf(PROGRAM_LOAD, &mut told).map(|number| opened(number)) }
}

/// Lets a program see the packets of a control group, as long as that is there.
pub(super) fn attach(group: BorrowedFd, program: &OwnedFd, direction: Direction) -> io::Result<()> {
    let mut told = ProgramAttach {
        target: group.as_raw_fd(),
        program: program.as_raw_fd(),
        direction: direction as u32,
        flags: ATTACH_BESIDE_OTHERS,
    };
    // SAFETY: the command takes this struct, which has no addresses.
    unsafe { bpf(PROGRAM_ATTACH, &mut told) }.map(|_| ())
}

/// The first version of what perf_event_open(2) is told.
#[repr(C)]
#[derive(Default)]
struct PerfEvent {
    kind: u32,
    bytes: u32,
    config: u64,
    sampling: [u64; 3],
    flags: u64,
    others: [u64; 2],
}

/// A file whose 8 bytes are how often a processor has switched away from a process
/// of a control group.
pub(super) fn switches(group: &impl AsFd, processor: u32) -> io::Result<OwnedFd> {
    const SOFTWARE: u32 = 1;
    const CONTEXT_SWITCHES: u64 = 3;
    const OF_A_GROUP: u64 = 4;
    const CLOSE_ON_EXEC: u64 = 8;
    let mut told = PerfEvent {
        kind: SOFTWARE,
        config: CONTEXT_SWITCHES,
        ..PerfEvent::default()
    };
    told.bytes = u32::try_from(size_of_val(&told)).expect("it is short");
    // SAFETY: the kernel reads as many bytes as `told` says it has, and opens a file.
    unsafe {
        let number = libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_mut(&mut told),
            group.as_fd().as_raw_fd(),
            processor,
            -1,
            OF_A_GROUP | CLOSE_ON_EXEC,
        );
        match number {
            0.. => Ok(opened(number)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
