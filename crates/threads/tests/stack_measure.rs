//! Stacks of real threads: where they lie, and how deep they were.

mod common;

use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::ptr::null_mut;
use std::sync::mpsc;

use common::{dig, on_stack_of, own_stack};
use milieu_threads::stack::{
    Errno, Hint, Key, Known, Peak, Process, Stack, Way, page_bytes, thread,
};

const KILOBYTE: usize = 1024;

/// The ways that this machine has. Sandboxes and old kernels lack some of them.
fn ways(process: &Process, stack: &Stack) -> Vec<Way> {
    let ways = Way::ALL.into_iter();
    ways.filter(|way| process.depth_by(*way, stack).is_ok())
        .collect()
}

/// Whether the kernel's files about this process are about the memory that it sees. An
/// emulator of processes may have put that elsewhere, or have pages of another size; the
/// files then are about the emulator, and the library finds nothing that is right. Says so.
fn memory_is_shown() -> bool {
    let value = std::hint::black_box(0x5eed_cafe_0123_4567_u64);
    let address = (&raw const value) as usize as u64;
    // A sandbox may hide the files, which is the library's to find out.
    let word = |path: &str, offset| {
        let mut bytes = [0; 8];
        let file = File::open(path).ok()?;
        file.read_exact_at(&mut bytes, offset).ok()?;
        Some(u64::from_ne_bytes(bytes))
    };
    let memory = word("/proc/self/mem", address);
    let page = word("/proc/self/pagemap", address / page_bytes() * 8);
    let is_shown = memory.is_none_or(|it| it == value) && page.is_none_or(|it| it >> 62 != 0);
    if !is_shown {
        eprintln!("not tried: the files in /proc are not about the memory that this process sees");
    }
    is_shown
}

/// What the C library says of the stack of this thread.
fn said_by_the_library() -> (u64, u64) {
    let (mut start, mut bytes) = (null_mut::<c_void>(), 0);
    // SAFETY: the attributes are written before they are read.
    unsafe {
        let mut attributes = std::mem::zeroed();
        assert_eq!(
            libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
            0
        );
        assert_eq!(
            libc::pthread_attr_getstack(&attributes, &mut start, &mut bytes),
            0
        );
        libc::pthread_attr_destroy(&mut attributes);
    }
    (start as u64, start as u64 + bytes as u64)
}

/// The smallest stack that the C library grants, which differs between machines.
fn least_bytes() -> usize {
    // SAFETY: no memory is involved.
    let said = unsafe { libc::sysconf(libc::_SC_THREAD_STACK_MIN) };
    usize::try_from(said).expect("the C library says it")
}

/// The bounds are exact, but where a thread got a larger stack than it asked for, of one
/// that has ended, and its descriptor does not tell where that ends: all of it is found.
#[track_caller]
fn assert_bounds(stack: &Stack, said: (u64, u64), asked_bytes: usize) {
    let is_larger = said.1 - said.0 > asked_bytes as u64;
    if is_larger && !cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        let has_all = stack.low <= said.0 && said.1 <= stack.high;
        assert!(has_all, "{stack:?}, {said:?}");
    } else {
        assert_eq!((stack.low, stack.high), said, "{asked_bytes} bytes");
    }
}

#[test]
fn bounds_are_those_that_the_library_says() {
    let process = Process::own().unwrap();
    for bytes in [
        least_bytes().max(64 * KILOBYTE),
        256 * KILOBYTE,
        8192 * KILOBYTE,
        1000 * KILOBYTE,
    ] {
        for guard in [None, Some(4096), Some(65536)] {
            let (stack, said) = on_stack_of(bytes, guard, None, || {
                (own_stack(&process, Some(bytes)), said_by_the_library())
            });
            assert_bounds(&stack, said, bytes);
            let guard = guard.unwrap_or(4096) as u64;
            assert!(
                stack.guard_bytes >= guard,
                "{bytes} bytes: {stack:?}, guard {guard}"
            );
            assert!(stack.is_guard(stack.low - 1) && !stack.is_guard(stack.low));
        }
    }
}

#[test]
fn a_larger_stack_from_the_cache_is_seen_as_what_it_is() {
    let process = Process::own().unwrap();
    // The library keeps the first for the second, if nobody else takes it meanwhile.
    for _ in 0..20 {
        on_stack_of(512 * KILOBYTE, None, None, || ());
        let asked = 192 * KILOBYTE;
        let (stack, said) = on_stack_of(asked, None, None, || {
            (own_stack(&process, Some(asked)), said_by_the_library())
        });
        assert_bounds(&stack, said, asked);
    }
}

#[test]
fn every_way_finds_the_lowest_page_that_was_touched() {
    if !memory_is_shown() {
        return;
    }
    let process = Process::own().unwrap();
    let bytes = 4096 * KILOBYTE;
    for depth in [100 * KILOBYTE, 700 * KILOBYTE, 1500 * KILOBYTE] {
        let (stack, ways) = on_stack_of(bytes, None, None, || {
            let stack = own_stack(&process, Some(bytes));
            dig(depth);
            let ways = ways(&process, &stack);
            let found: Vec<_> = ways
                .iter()
                .map(|way| (*way, process.depth_by(*way, &stack).unwrap()))
                .collect();
            (stack, found)
        });
        assert!(!ways.is_empty(), "none of the ways works here");
        for (way, found) in &ways {
            let least = depth as u64;
            // A sanitizer makes frames larger.
            let most = (2 * depth + 64 * KILOBYTE) as u64;
            assert!(
                (least..most).contains(found),
                "{way:?}: {found} for {depth} of {stack:?}"
            );
            assert_eq!(*found, ways[0].1, "{ways:?}");
        }
    }
}

#[test]
fn a_large_frame_that_leaves_pages_out_counts_whole() {
    #[inline(never)]
    fn sparse() -> u8 {
        let mut frame = std::mem::MaybeUninit::<[u8; 1024 * KILOBYTE]>::uninit();
        // Without the box a compiler that optimizes makes a frame of one byte.
        let lowest = std::hint::black_box(frame.as_mut_ptr()).cast::<u8>();
        // SAFETY: the first byte is that of the frame.
        unsafe { lowest.write_volatile(1) };
        // SAFETY: it has just been written.
        unsafe { lowest.read_volatile() }
    }
    if !memory_is_shown() {
        return;
    }
    let process = Process::own().unwrap();
    let bytes = 4096 * KILOBYTE;
    let depth = on_stack_of(bytes, None, None, || {
        let stack = own_stack(&process, Some(bytes));
        std::hint::black_box(sparse());
        process.depth(&stack).unwrap()
    });
    assert!(depth >= 1024 * KILOBYTE as u64, "{depth}");
}

#[test]
fn memory_that_was_touched_before_is_no_peak() {
    if !memory_is_shown() {
        return;
    }
    let bytes = 256 * KILOBYTE;
    let page = page_bytes() as usize;
    let mut memory = vec![1_u8; bytes + page];
    let offset = memory.as_ptr().align_offset(page);
    let start = memory[offset..].as_mut_ptr();
    let process = Process::own().unwrap();
    let stack = Stack {
        low: start as u64,
        high: start as u64 + bytes as u64,
        guard_bytes: 0,
    };
    let peak = on_stack_of(bytes, None, Some(start.cast()), || {
        let before = process.depth(&stack).unwrap();
        dig(32 * KILOBYTE);
        Peak::between(before, process.depth(&stack).unwrap(), stack.bytes())
    });
    assert_eq!(peak, Peak::Unknown);
}

#[test]
fn a_thread_without_a_guard_page_is_not_read_as_its_neighbour() {
    let process = Process::own().unwrap();
    let bytes = 256 * KILOBYTE;
    let (first, second) = on_stack_of(bytes, Some(0), None, || {
        let first = own_stack(&process, Some(bytes));
        // While this one lives, the next stack is beside it.
        (
            first,
            on_stack_of(bytes, Some(0), None, || own_stack(&process, Some(bytes))),
        )
    });
    for stack in [first, second] {
        assert!(stack.bytes() >= bytes as u64, "{stack:?}");
    }
}

/// As C libraries make them since glibc 2.42: pages of the mapping itself.
#[test]
fn guard_pages_within_a_mapping_bound_the_stack() {
    const MADV_GUARD_INSTALL: libc::c_int = 102;
    let pages = 64_u64;
    let page = page_bytes();
    let bytes = (pages * page) as usize;
    // SAFETY: a mapping of its own is in nobody's way.
    let start = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    assert_ne!(start, libc::MAP_FAILED);
    let at = |index: u64| start as u64 + index * page;
    for index in [16, 48] {
        // SAFETY: the page is one of the mapping, and nobody uses it.
        let said = unsafe { libc::madvise(at(index) as *mut _, page as usize, MADV_GUARD_INSTALL) };
        if said != 0 {
            eprintln!("not tried: kernels before 6.13 have none, and then no C library makes them");
            return;
        }
    }
    // SAFETY: a path that the kernel cannot read is an error, not a fault.
    let said = unsafe { libc::access(at(16) as *const c_char, libc::F_OK) };
    assert_eq!(said, -1);
    if std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT) {
        eprintln!("not tried: the page can be read, as emulators of processes ignore the advice");
        return;
    }
    // SAFETY: the page is one of the mapping, and nobody uses it.
    unsafe { (at(30) as *mut u8).write_volatile(1) };
    let process = Process::own().unwrap();
    let stack = process.stack_around(at(40), Hint::default()).unwrap();
    // Kernels before 6.15 do not tell where they are.
    if stack.low != start as u64 {
        let expected = Stack {
            low: at(17),
            high: at(48),
            guard_bytes: page,
        };
        assert_eq!(stack, expected);
        assert_eq!(process.depth(&stack), Ok(18 * page));
    }
    // SAFETY: the mapping is ours.
    unsafe { libc::munmap(start, bytes) };
}

#[test]
fn a_stack_that_is_had_again_is_known_and_another_in_its_place_is_not() {
    let page = page_bytes();
    let process = Process::own().unwrap();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let bytes = (67 * page) as usize;
    let (none, all) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a mapping of its own is in nobody's way.
    let start = unsafe { libc::mmap(null_mut(), bytes, all, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    let at = |index: u64| start as u64 + index * page;
    let forbid = |first: u64, pages: u64| {
        // SAFETY: the pages are the mapping's, and nobody uses them.
        let said = unsafe { libc::mprotect(at(first) as *mut _, (pages * page) as usize, none) };
        assert_eq!(said, 0);
    };
    // A page of somebody else, the guard, the stack, and what it is not joined to.
    forbid(1, 1);
    forbid(66, 1);
    let hint = Hint {
        descriptor: Some(at(66) - 64),
        asked_bytes: Some(64 * page),
    };
    let mut known = Known::default();
    let mut again = || {
        let stack = process.stack_again(at(60), hint, page, &mut known).unwrap();
        assert_eq!(stack, process.stack_around(at(60), hint).unwrap());
        stack
    };
    let stack = |low| Stack {
        low: at(low),
        high: at(66),
        guard_bytes: (low - 1) * page,
    };
    assert_eq!(again(), stack(2));
    assert_eq!(again(), stack(2));
    // A smaller one ends at the same place.
    forbid(2, 10);
    assert_eq!(again(), stack(12));
    // SAFETY: the mapping is ours.
    unsafe { libc::munmap(start, bytes) };
}

/// Whether the stack pointer that the kernel tells of a thread is the one that the
/// thread has. An emulator of processes has one of its own, which is told instead; a
/// sandbox may hide it.
fn stack_pointers_are_told() -> bool {
    let path = format!("/proc/self/task/{}/syscall", thread());
    let line = std::fs::read_to_string(path).unwrap_or_default();
    let pointer = line.split_whitespace().rev().nth(1).unwrap_or_default();
    let pointer = u64::from_str_radix(pointer.trim_start_matches("0x"), 16).unwrap_or_default();
    let local = (&raw const line) as usize as u64;
    pointer.abs_diff(local) < 64 * KILOBYTE as u64
}

#[test]
fn the_main_thread_and_others_are_found_by_their_stack_pointer() {
    if !stack_pointers_are_told() {
        eprintln!("not tried: the kernel does not tell the stack pointer that a thread has");
        return;
    }
    let process = Process::own().unwrap();
    let bytes = 1024 * KILOBYTE;
    let (tell, told) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            on_stack_of(bytes, None, None, move || {
                let process = Process::own().unwrap();
                dig(200 * KILOBYTE);
                tell.send((thread(), own_stack(&process, Some(bytes))))
                    .unwrap();
                ended.recv().unwrap_err();
            })
        });
        let (thread, known) = told.recv().unwrap();
        // It will soon wait for us, and then says where it is.
        let found = loop {
            match process.stack_of(thread) {
                Err(Errno(libc::EAGAIN)) => std::thread::yield_now(),
                other => break other.unwrap(),
            }
        };
        assert_eq!(found.low, known.low);
        assert!(found.high >= known.high, "{found:?} {known:?}");
        assert!(process.depth(&found).unwrap() >= 200 * KILOBYTE as u64);
        drop(end);
    });
}

#[test]
fn threads_of_another_process_are_measured_where_that_is_permitted() {
    // A child waits for its input to end; `cat` has one thread, with the program's stack.
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"ready\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let number = child.id() as i32;
    let process = Process::other(number).unwrap();
    let found = loop {
        match process.stack_of(number) {
            Err(Errno(libc::EAGAIN)) => std::thread::yield_now(),
            Err(Errno(libc::EPERM | libc::EACCES | libc::ENOENT)) => break None,
            other => break Some(other.unwrap()),
        }
    };
    if let Some(stack) = found {
        assert_eq!(
            process.depth_by(Way::Mincore, &stack),
            Err(Errno(libc::EPERM))
        );
        let depth = process.depth(&stack).unwrap();
        assert!(
            depth >= page_bytes() && depth <= stack.bytes(),
            "{depth} of {stack:?}"
        );
    }
    drop(input);
    child.wait().unwrap();
    assert!(process.stack_around(0x1000, Hint::default()).is_err());
    assert!(Process::other(number).is_err());
}

#[test]
fn files_that_the_program_closed_and_opened_anew_are_noticed() {
    let process = Process::own().unwrap();
    assert!(process.is_intact());
    let copy = format!("{process:?}");
    // `File(3)`: the number of the first file that it holds.
    let number = copy
        .split("File(")
        .nth(1)
        .unwrap()
        .split(')')
        .next()
        .unwrap();
    let number: i32 = number.parse().unwrap();
    // SAFETY: the file in its place is closed by nobody else.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        assert_eq!(libc::dup2(null, number), number);
        libc::close(null);
    }
    assert!(!process.is_intact());
    process.forget();
    // SAFETY: it was forgotten, and is ours to close.
    assert_eq!(unsafe { libc::close(number) }, 0);
}

#[test]
fn the_number_of_an_error_is_left_as_it_was() {
    let number = || std::io::Error::last_os_error().raw_os_error();
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::close(-1) }, -1);
    assert_eq!(number(), Some(libc::EBADF));
    assert!(Process::other(-7).is_err());
    let process = Process::own().unwrap();
    assert!(process.stack_around(1, Hint::default()).is_err());
    assert!(Key::of(1, 1).is_none());
    assert_eq!(number(), Some(libc::EBADF));
}

#[test]
fn keys_tell_start_functions_and_closures_apart() {
    extern "C" fn one(_: *mut c_void) -> *mut c_void {
        null_mut()
    }
    extern "C" fn other(argument: *mut c_void) -> *mut c_void {
        argument
    }
    type Work = Box<dyn Fn() -> u32>;
    fn work(index: u32) -> Work {
        match index {
            0 => Box::new(move || index + 1),
            _ => Box::new(move || index * 2),
        }
    }
    let key = |start: extern "C" fn(*mut c_void) -> *mut c_void, argument: usize| {
        Key::of(start as usize, argument).expect("linkers are told to write a build id")
    };
    assert_ne!(key(one, 0), key(other, 0));
    assert_eq!(key(one, 0), key(one, 0));
    // Numbers, and addresses of nothing, say no more; nor does what holds numbers.
    let numbers = [1_usize, 2, 3, 4];
    for argument in [1, usize::MAX - 8, 4096, (&raw const numbers) as usize] {
        assert_eq!(key(one, argument), key(one, 0), "{argument:#x}");
    }
    if !memory_is_shown() {
        return;
    }
    // The pointer to data comes first, then the virtual table: as std's threads have it.
    let boxes = [work(0), work(1), work(0)];
    let found = boxes
        .each_ref()
        .map(|work| key(one, (&raw const *work) as usize));
    assert_ne!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    assert!(found[0].argument.is_some());
    let calls: Vec<u32> = boxes.iter().map(|work| work()).collect();
    assert_eq!(calls, [1, 2, 1]);
    // The same in memory that ends behind the second word.
    let functions = [0_usize, one as *const () as usize];
    let function = key(other, (&raw const functions) as usize)
        .argument
        .unwrap();
    assert_eq!(function, key(one, 0).start);
}
