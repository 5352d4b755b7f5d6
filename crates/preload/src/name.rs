//! Names: of threads, by which patterns know them, and of start functions.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::Write;
use core::mem::MaybeUninit;

use libc::pthread_t;
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
    let name = name.get(..KERNEL_BYTES).unwrap_or(name);
    let rule = served.rule(&Thread {
        name: Some(name),
        ..Thread::default()
    });
    let Some(rule) = rule else {
        return;
    };
    let identity = identity_of(thread);
    if record::of(identity).is_some_and(|it| it.is_said()) {
        return;
    }
    if rule.is_excluded {
        served.program.exclude(identity);
    }
    served.prepares(&rule.attributes);
    if served.program.set(identity, &rule.attributes).is_ok() {
        served.notices(&rule.attributes);
    }
}

/// The symbol of a function, or `FILE+0xOFFSET` where it has none.
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
            let start = file
                .iter()
                .rposition(|it| *it == b'/')
                .map_or(0, |it| it + 1);
            into.push(file.get(start..)?);
            let _ = write!(into, "+{:#x}", address.wrapping_sub(base));
        }
    }
    let length = into.length;
    space.get(..length)
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
