//! The limit of time in real time: the program has its own, and our guard one before it.

use core::ffi::c_int;

use libc::{pid_t, rlimit, rlimit64};
use milieu_threads::kernel;
use milieu_threads::rung::guard;

use crate::real;

/// A limit as programs have it, of 32 or of 64 bits.
trait Limit: Copy {
    fn widened(self) -> rlimit64;
    /// What is too large is none.
    fn narrowed(limit: rlimit64) -> Self;
}

impl Limit for rlimit64 {
    fn widened(self) -> rlimit64 {
        self
    }

    fn narrowed(limit: rlimit64) -> Self {
        limit
    }
}

impl Limit for rlimit {
    // It is of 32 bits on machines of 32 bits.
    #[allow(clippy::useless_conversion)]
    fn widened(self) -> rlimit64 {
        let wide = |it| match it {
            libc::RLIM_INFINITY => libc::RLIM64_INFINITY,
            it => u64::from(it),
        };
        rlimit64 {
            rlim_cur: wide(self.rlim_cur),
            rlim_max: wide(self.rlim_max),
        }
    }

    fn narrowed(limit: rlimit64) -> Self {
        let narrow = |it| libc::rlim_t::try_from(it).unwrap_or(libc::RLIM_INFINITY);
        rlimit {
            rlim_cur: narrow(limit.rlim_cur),
            rlim_max: narrow(limit.rlim_max),
        }
    }
}

/// What these functions do and answer where our guard keeps a limit as well; `None` where
/// it is the kernel's alone.
///
/// # Safety
/// Both are null or point at a limit.
unsafe fn change<L: Limit>(
    process: pid_t,
    resource: c_int,
    new: *const L,
    old: *mut L,
) -> Option<c_int> {
    let is_ours = resource == libc::RLIMIT_RTTIME as c_int
        && (process == 0 || process as u32 == kernel::process_id());
    if !is_ours {
        return None;
    }
    // SAFETY: the caller's.
    let new = unsafe { new.as_ref() };
    Some(match guard::own_limit(new.map(|it| it.widened()))? {
        Ok(before) => {
            // SAFETY: the caller's.
            if let Some(old) = unsafe { old.as_mut() } {
                *old = L::narrowed(before);
            }
            0
        }
        Err(error) => {
            // SAFETY: the address is that of this thread's own.
            unsafe { *libc::__errno_location() = error.0 };
            -1
        }
    })
}

macro_rules! of_this_process {
    ($($get:ident $set:ident $limit:ty;)*) => {
        $(
            /// As POSIX has it.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $get(resource: c_int, into: *mut $limit) -> c_int {
                // SAFETY: the caller's.
                unsafe {
                    let said = change(0, resource, core::ptr::null(), into);
                    said.unwrap_or_else(|| real::$get(resource, into))
                }
            }

            /// As POSIX has it.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $set(resource: c_int, limit: *const $limit) -> c_int {
                // SAFETY: the caller's.
                unsafe {
                    let said = change(0, resource, limit, core::ptr::null_mut());
                    said.unwrap_or_else(|| real::$set(resource, limit))
                }
            }
        )*
    };
}

of_this_process! {
    getrlimit setrlimit rlimit;
    getrlimit64 setrlimit64 rlimit64;
}

macro_rules! of_any_process {
    ($($name:ident $limit:ty;)*) => {
        $(
            /// As Linux has it.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                process: pid_t,
                resource: c_int,
                new: *const $limit,
                old: *mut $limit,
            ) -> c_int {
                // SAFETY: the caller's.
                unsafe {
                    let said = change(process, resource, new, old);
                    said.unwrap_or_else(|| real::$name(process, resource, new, old))
                }
            }
        )*
    };
}

of_any_process! {
    prlimit rlimit;
    prlimit64 rlimit64;
}
