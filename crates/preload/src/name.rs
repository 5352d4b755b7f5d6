//! Names: of threads, by which patterns know them, and of start functions.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use libc::pthread_t;
use milieu_threads::kernel;
use milieu_threads::run::Thread;

use crate::attributes::identity_of;
use crate::state::{self, Served};
use crate::{real, record};

/// As glibc has it; patterns may have something to say then.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    let error = unsafe { real::pthread_setname_np(thread, name) };
    if let Some(served) = state::served().filter(|_| error == 0) {
        // SAFETY: the caller's, and it was accepted.
        named(served, thread, unsafe { CStr::from_ptr(name) });
    }
    error
}

/// As the kernel has it. All of its options have at most four arguments, of the size of
/// a register, and take no notice of more.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    // SAFETY: the caller's.
    let said = unsafe { real::prctl(option, a, b, c, d) };
    if option == libc::PR_SET_NAME && said == 0 {
        if let Some(served) = state::served() {
            // SAFETY: the caller's, and the kernel has read it. What is beyond 15 bytes
            // it leaves out, and so do we.
            let name = unsafe { CStr::from_ptr(a as *const c_char) };
            // SAFETY: has no arguments.
            named(served, unsafe { libc::pthread_self() }, name);
        }
    }
    said
}

/// A thread has got a name.
fn named(served: &Served, thread: pthread_t, name: &CStr) {
    const KERNEL_BYTES: usize = 15;
    let name = name.to_bytes();
    named_by_bytes(served, thread, name.get(..KERNEL_BYTES).unwrap_or(name));
}

fn named_by_bytes(served: &Served, thread: pthread_t, name: &[u8]) {
    let rule = served.rule(&Thread {
        name: Some(name),
        ..Thread::default()
    });
    let Some(rule) = rule else {
        return;
    };
    let identity = identity_of(thread);
    if state::is_said(served, identity) {
        return;
    }
    served.prepares(&rule.attributes);
    let set = || {
        if rule.is_excluded {
            served.program.exclude(identity);
        }
        served.program.set(identity, &rule.attributes).is_ok()
    };
    let is_set = set()
        || match state::record_of(served, identity) {
            // It has begun since that was tried.
            Some(_) => set(),
            None => early(identity, set),
        };
    if is_set {
        served.notices(&rule.attributes);
    }
}

/// Threads that others gave names before they have begun: what patterns say of these they
/// find themselves then. 0 is a place for one; where many are created at once, each waits
/// for a processor.
static EARLY: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// How many they are: mostly none, and then nobody looks.
static EARLY_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Nothing could be set of a thread that is not listed. It is left for it, and tried once
/// more, as it may have looked before that: true if that sets it.
fn early(identity: u64, set: impl FnOnce() -> bool) -> bool {
    let (new, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    let has = |it: &AtomicU64| it.load(Ordering::Relaxed) == identity;
    let takes = |it: &AtomicU64| it.compare_exchange(0, identity, new, failure).is_ok();
    // Who is never served may be given many names.
    if !EARLY.iter().any(has) {
        if !EARLY.iter().any(takes) {
            return false;
        }
        EARLY_COUNT.fetch_add(1, Ordering::AcqRel);
    }
    // Whoever begins is listed first and looks here then: one of us sees the other.
    fence(Ordering::SeqCst);
    if !set() {
        return false;
    }
    is_early(identity);
    true
}

/// Whether it was left for a thread to look for what its name says; it is not any more.
fn is_early(identity: u64) -> bool {
    let (new, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    let takes = |it: &AtomicU64| it.compare_exchange(identity, 0, new, failure).is_ok();
    let was = EARLY.iter().any(takes);
    if was {
        EARLY_COUNT.fetch_sub(1, Ordering::AcqRel);
    }
    was
}

/// This thread has begun, and is listed: what its name says if it was given one before.
pub fn begun(served: &Served, identity: u64) {
    fence(Ordering::SeqCst);
    if EARLY_COUNT.load(Ordering::Acquire) == 0 || !is_early(identity) {
        return;
    }
    if let Some(name) = record::own_name(&mut [0; 16]) {
        // SAFETY: has no arguments.
        named_by_bytes(served, unsafe { libc::pthread_self() }, name);
    }
}

/// The symbol of a function that its file exports, or `FILE+0xOFFSET`, from where the file's
/// first segment is loaded, where it exports none. FILE is the name of a library as it was
/// loaded, and of the program's file whatever it was started as.
pub fn symbol(address: usize, space: &mut [u8; 256]) -> Option<&[u8]> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the loader writes one such structure if it answers something else than 0;
    // its texts stay while what they name is loaded.
    let (name, file, base) = unsafe {
        if libc::dladdr(address as *const c_void, found.as_mut_ptr()) == 0 {
            return None;
        }
        let found = found.assume_init();
        let text = |at: *const c_char| (!at.is_null()).then(|| CStr::from_ptr(at).to_bytes());
        let is_exact = found.dli_saddr as usize == address;
        let name = text(found.dli_sname).filter(|_| is_exact);
        (name, text(found.dli_fname)?, found.dli_fbase as usize)
    };
    let mut into = Into { space, length: 0 };
    match name {
        Some(name) => into.push(name),
        None => {
            let mut program = [0; 1024];
            let program = is_program(base).then(|| own_file(&mut program)).flatten();
            into.push(file_name(program.unwrap_or(file)));
            let _ = write!(into, "+{:#x}", address.wrapping_sub(base));
        }
    }
    let length = into.length;
    space.get(..length)
}

fn file_name(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|it| *it == b'/');
    path.get(slash.map_or(0, |it| it + 1)..).unwrap_or(path)
}

/// Whether what is loaded there is the program, which the loader calls by what it was
/// started as: a link, or any word.
fn is_program(base: usize) -> bool {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: asks for a number; the loader writes one such structure if it answers
    // something else than 0.
    unsafe {
        let headers = libc::getauxval(libc::AT_PHDR) as *const c_void;
        libc::dladdr(headers, found.as_mut_ptr()) != 0
            && found.assume_init().dli_fbase as usize == base
    }
}

/// The path of the program's file.
fn own_file(space: &mut [u8; 1024]) -> Option<&[u8]> {
    let (path, length) = (c"/proc/self/exe".as_ptr(), space.len());
    // SAFETY: the kernel writes at most so many bytes.
    let read =
        kernel::unnoticed(|| unsafe { libc::readlink(path, space.as_mut_ptr().cast(), length) });
    let path = space.get(..usize::try_from(read).ok()?)?;
    Some(path.strip_suffix(b" (deleted)").unwrap_or(path))
}

struct Into<'s> {
    space: &'s mut [u8; 256],
    length: usize,
}

impl Into<'_> {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.space.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }
}

impl Write for Into<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
