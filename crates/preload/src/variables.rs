//! The variables of programs that are begun. One of another C library, such as musl, does
//! not start with a preload of glibc's: it gets its variables without us.

use core::ffi::{CStr, c_char, c_void};
use core::fmt::Write;
use core::ptr::{NonNull, null_mut};

use milieu_threads::kernel::{self, Text};
use milieu_threads::loader;
use milieu_threads::run::LIBRARY;

use crate::process::environ;
use crate::real::Strings;

const PRELOADS: &[u8] = b"LD_PRELOAD=";

/// Which program is begun.
#[derive(Clone, Copy)]
pub enum Program {
    At(*const c_char),
    /// Where `PATH` says, if its name has no `/`.
    Named(*const c_char),
    Opened(i32),
}

/// Begins a program with variables that suit it.
///
/// # Safety
/// The program's name and the variables are as `execvpe` wants them.
pub unsafe fn suiting<T>(
    program: Program,
    variables: Strings,
    begin: impl FnOnce(Strings) -> T,
) -> T {
    // SAFETY: the caller's.
    let without = unsafe {
        let has_us = each(variables).any(|it| others(it).is_some_and(|it| it.has_us));
        let is_foreign = has_us && program.is_foreign();
        is_foreign.then(|| Without::us(variables)).flatten()
    };
    match without {
        Some(without) => begin(without.list()),
        None => begin(variables),
    }
}

/// All of them.
///
/// # Safety
/// It is null, or a list of texts that ends with null; they live for as long as is said.
unsafe fn each<'l>(list: Strings) -> impl Iterator<Item = &'l CStr> {
    let mut at = 0;
    core::iter::from_fn(move || {
        if list.is_null() {
            return None;
        }
        // SAFETY: the caller's; nothing is read behind the end.
        let text = unsafe { *list.add(at) };
        at += usize::from(!text.is_null());
        // SAFETY: the caller's.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    })
}

/// A variable that names preloads.
struct Preloads<'v> {
    names: &'v [u8],
    has_us: bool,
}

fn others(variable: &CStr) -> Option<Preloads<'_>> {
    let names = variable.to_bytes().strip_prefix(PRELOADS)?;
    Some(Preloads {
        names,
        has_us: parts(names).any(is_us),
    })
}

fn parts(names: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = names.split(|it| b": ".contains(it));
    parts.filter(|it| !it.is_empty())
}

fn is_us(name: &[u8]) -> bool {
    name.ends_with(LIBRARY.as_bytes())
}

impl Program {
    /// Names that are null are left to the C library.
    ///
    /// # Safety
    /// The name is null, or ends with a zero.
    unsafe fn is_foreign(self) -> bool {
        match self {
            Program::At(name) | Program::Named(name) if name.is_null() => false,
            // SAFETY: the caller's.
            Program::At(path) => loader::is_foreign(unsafe { CStr::from_ptr(path) }),
            Program::Opened(file) => {
                let path = Text::<64>::of(format_args!("/proc/self/fd/{file}"));
                path.is_some_and(|it| loader::is_foreign(it.as_c_str()))
            }
            Program::Named(name) => {
                // SAFETY: the caller's.
                let name = unsafe { CStr::from_ptr(name) };
                if name.to_bytes().contains(&b'/') {
                    return loader::is_foreign(name);
                }
                let found = found(name);
                found.is_some_and(|it| loader::is_foreign(it.as_c_str()))
            }
        }
    }
}

/// Where a program is that is looked for.
fn found(name: &CStr) -> Option<Text<1024>> {
    // SAFETY: the process's own variables.
    let path = unsafe { each(environ) }.find_map(|it| it.to_bytes().strip_prefix(b"PATH="));
    let path = core::str::from_utf8(path.unwrap_or(b"/bin:/usr/bin")).ok()?;
    let name = name.to_str().ok()?;
    path.split(':').find_map(|folder| {
        let mut place = Text::new();
        let folder = if folder.is_empty() { "." } else { folder };
        write!(place, "{folder}/{name}").ok()?;
        kernel::is_executable(place.as_c_str()).then_some(place)
    })
}

/// Variables of which none names us.
struct Without {
    memory: NonNull<c_void>,
    bytes: usize,
}

impl Without {
    /// None if there is no memory.
    ///
    /// # Safety
    /// As for [`each`].
    unsafe fn us(variables: Strings) -> Option<Without> {
        // SAFETY: the caller's.
        let all = || unsafe { each(variables) };
        let texts = all().filter(|it| others(it).is_some());
        let text_bytes: usize = texts.map(|it| it.to_bytes_with_nul().len()).sum();
        let list_bytes = (all().count() + 1) * size_of::<*mut c_char>();
        let bytes = list_bytes + text_bytes;
        let memory = kernel::reserve(bytes).ok()?;
        let mut list = memory.cast::<*mut c_char>().as_ptr();
        let mut text = memory.cast::<u8>().as_ptr().wrapping_add(list_bytes);
        for variable in all() {
            let mut kept = variable.as_ptr().cast_mut();
            if let Some(preloads) = others(variable) {
                let mut names = parts(preloads.names).filter(|it| !is_us(it)).peekable();
                if names.peek().is_none() {
                    continue;
                }
                kept = text.cast();
                let mut put = |bytes: &[u8]| {
                    // SAFETY: all that is kept of a variable is no longer than that, and
                    // there is room for all such.
                    unsafe {
                        text.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                        text = text.add(bytes.len());
                    }
                };
                put(PRELOADS);
                while let Some(name) = names.next() {
                    put(name);
                    put(if names.peek().is_some() { b":" } else { b"\0" });
                }
            }
            // SAFETY: there is room for all, and for the end.
            unsafe {
                list.write(kept);
                list = list.add(1);
            }
        }
        // SAFETY: as there.
        unsafe { list.write(null_mut()) };
        Some(Without { memory, bytes })
    }

    fn list(&self) -> Strings {
        self.memory.cast::<*mut c_char>().as_ptr()
    }
}

impl Drop for Without {
    fn drop(&mut self) {
        // SAFETY: it is ours alone, and has so many bytes.
        unsafe { kernel::release(self.memory, self.bytes) };
    }
}
