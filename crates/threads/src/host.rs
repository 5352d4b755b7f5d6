//! What a program and whoever serves its process tell each other: the preload has a table
//! of functions, by which programs built against `milieu/threads.h`, and mediators within
//! a program, say what threads are for.
//!
//! A program asks for the table by a policy that neither the kernel nor the C library
//! knows, which works in whatever way it is linked; without the preload that is refused.

use core::ffi::{CStr, c_char, c_int, c_uint};
use core::fmt;
use core::ptr::{NonNull, null};

use libc::{pthread_attr_t, pthread_t, sched_param, size_t};

use crate::attributes::{Attributes, Priority, Role, StackSize};
use crate::kernel::{self, Errno};
use crate::table::{Entry, Region, View};

/// The policy by which a program asks for the table.
pub const POLICY: c_int = 0x0054_454C;

/// The version of the table: 1 is what the header asks for, which looks at the table's own
/// for what came later; 2 has what mediators within a program need; 3 tells of threads.
pub const VERSION: c_uint = 3;

/// The oldest that a [`Host`] can do with.
const NEEDED: c_uint = 2;

/// `struct pthread_attributes` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Described {
    role: [c_char; 32],
    is_time_critical: c_int,
    priority: c_int,
    is_lazy: c_int,
    stack_bytes: size_t,
}

impl Described {
    /// These attributes.
    // Part of whoever asks, so that they stay in registers on their way.
    #[inline(always)]
    #[must_use]
    pub fn of(attributes: &Attributes) -> Described {
        let stack = attributes.stack().map_or(0, |it| it.bytes());
        Described {
            role: text_of(attributes.role()),
            is_time_critical: attributes.is_time_critical().into(),
            priority: attributes.priority().nice(),
            is_lazy: attributes.is_lazy().into(),
            stack_bytes: size(stack),
        }
    }

    /// The attributes that it describes.
    ///
    /// # Errors
    /// `EINVAL` if there are none such.
    #[inline]
    pub fn attributes(&self) -> Result<Attributes, c_int> {
        let invalid = |_| libc::EINVAL;
        let mut attributes = Attributes::of(role_in(&self.role.map(|it| it as u8))?);
        let priority = Priority::new(self.priority).map_err(invalid)?;
        // Kept for when it becomes critical.
        attributes = attributes.time_critical(priority);
        match (self.is_time_critical != 0, self.is_lazy != 0) {
            (true, false) => {}
            (false, false) => attributes = attributes.not_critical(),
            (false, true) => attributes = attributes.lazy(),
            (true, true) => return Err(libc::EINVAL),
        }
        if self.stack_bytes > 0 {
            let size = StackSize::of_bytes(self.stack_bytes as u64).map_err(invalid)?;
            attributes = attributes.with_stack(size);
        }
        Ok(attributes)
    }
}

/// `struct pthread_information` of the header: what the thread information table says.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
    size: size_t,
    tid: c_int,
    is_time_critical: c_int,
    role: [c_char; 32],
    priority: c_int,
    is_lazy: c_int,
    region: c_int,
    policy: c_int,
    created_ns: u64,
    stack_bytes: size_t,
    stack_bytes_peak: size_t,
}

impl Information {
    /// What an entry says. Its own policy counts, and not that of its region.
    #[must_use]
    pub fn of(entry: &Entry) -> Information {
        let bytes = |kib: u32| size(u64::from(kib) << 10);
        Information {
            size: size_of::<Information>(),
            tid: entry.tid as c_int,
            is_time_critical: entry.attributes.is_time_critical().into(),
            role: text_of(entry.attributes.role()),
            priority: entry.attributes.priority().nice(),
            is_lazy: entry.attributes.is_lazy().into(),
            region: match entry.region {
                Region::Own => 0,
                Region::Fast => 1,
                Region::Lazy => 2,
            },
            policy: entry.own.policy.into(),
            created_ns: entry.created_us.saturating_mul(1000),
            stack_bytes: bytes(entry.stack_kib),
            stack_bytes_peak: bytes(entry.stack_kib_peak),
        }
    }
}

/// A role, with a zero behind it.
#[inline(always)]
fn text_of(role: Role) -> [c_char; 32] {
    let mut text = [0; 32];
    text[..Role::BYTES_MAX].copy_from_slice(role.bytes());
    text.map(|it| it as c_char)
}

fn size(bytes: u64) -> size_t {
    size_t::try_from(bytes).unwrap_or(size_t::MAX)
}

/// The role that a text says, which ends with a zero.
///
/// # Errors
/// `EINVAL` if it is none.
pub fn role_in(bytes: &[u8]) -> Result<Role, c_int> {
    if let Some(role) = Role::plain(bytes) {
        return Ok(role);
    }
    let text = CStr::from_bytes_until_nul(bytes).map_err(|_| libc::EINVAL)?;
    let name = text.to_str().map_err(|_| libc::EINVAL)?;
    Role::new(name).map_err(|_| libc::EINVAL)
}

/// `struct milieu_threads` of the header, with what later versions have at its end. Each
/// returns 0 or the number of an error.
#[repr(C)]
pub struct Functions {
    /// That of whoever has it.
    pub version: c_uint,
    /// Sets what a thread is for.
    pub set_attributes: unsafe extern "C" fn(pthread_t, *const Described) -> c_int,
    /// What a thread is for.
    pub get_attributes: unsafe extern "C" fn(pthread_t, *mut Described) -> c_int,
    /// Sets what a thread that does not exist yet is for.
    pub attr_set_attributes: unsafe extern "C" fn(*mut pthread_attr_t, *const Described) -> c_int,
    /// What was said of a thread that does not exist yet.
    pub attr_get_attributes: unsafe extern "C" fn(*const pthread_attr_t, *mut Described) -> c_int,
    /// Sets the role of a thread.
    pub set_role: unsafe extern "C" fn(pthread_t, *const c_char) -> c_int,
    /// Sets the role of a thread that does not exist yet.
    pub attr_set_role: unsafe extern "C" fn(*mut pthread_attr_t, *const c_char) -> c_int,
    /// Writes as many threads of a role as there is room for, and how many there are.
    pub find: unsafe extern "C" fn(*const c_char, *mut pthread_t, size_t, *mut size_t) -> c_int,
    /// Leaves a thread alone from now on.
    pub exclude: unsafe extern "C" fn(pthread_t) -> c_int,
    /// A thread begins (1), or ceases (0), to wait for something that is no lock.
    pub set_blocked: unsafe extern "C" fn(pthread_t, c_int) -> c_int,
    /// A thread is about to wait for a lock that the thread of this number has; or, by
    /// 0, waits for it no more.
    pub waits: unsafe extern "C" fn(pthread_t, c_uint) -> c_int,
    /// All that is known of a thread; the size of what it is written to stands there.
    pub get_information: unsafe extern "C" fn(pthread_t, *mut Information) -> c_int,
}

/// `struct milieu_threads_request` of the header.
#[repr(C)]
pub struct Request {
    /// Its priority is the version that is asked for.
    pub param: sched_param,
    /// The answer.
    pub here: *const Functions,
}

/// Whoever serves this process and mediates its threads: there is one of it, so that
/// no thread is moved by two.
pub struct Host {
    functions: NonNull<Functions>,
    view: Option<View>,
}

// SAFETY: any thread may call the functions, which stay, and the view only reads.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    /// Who serves this process, if somebody does. To be asked before the program makes
    /// a table of its own.
    #[must_use]
    pub fn find() -> Option<Host> {
        // SAFETY: zeros are a request without an answer, which whoever knows the policy
        // writes; all others read its first part.
        let request = unsafe {
            let mut request = Request {
                param: core::mem::zeroed(),
                here: null(),
            };
            request.param.sched_priority = NEEDED as c_int;
            let param = (&raw mut request).cast::<sched_param>();
            let itself = libc::pthread_self();
            let refused = kernel::unnoticed(|| libc::pthread_setschedparam(itself, POLICY, param));
            if refused != 0 {
                return None;
            }
            request
        };
        Some(Host {
            functions: NonNull::new(request.here.cast_mut())?,
            view: View::of_process(kernel::process_id()).ok(),
        })
    }

    fn functions(&self) -> &Functions {
        // SAFETY: whoever serves a process does so until it ends.
        unsafe { self.functions.as_ref() }
    }

    /// Sets what a thread is for, and moves it where that belongs.
    ///
    /// # Errors
    /// If it is not known, or if its line is being written to.
    pub fn set(&self, identity: u64, to: &Attributes) -> Result<(), Errno> {
        let described = Described::of(to);
        // SAFETY: it reads the description.
        said(unsafe { (self.functions().set_attributes)(identity as pthread_t, &described) })
    }

    /// Leaves a thread alone from now on.
    pub fn exclude(&self, identity: u64) {
        // SAFETY: has no pointers.
        unsafe { (self.functions().exclude)(identity as pthread_t) };
    }

    /// As [`Program::set_blocked`](crate::program::Program::set_blocked).
    pub fn set_blocked(&self, identity: u64, is_blocked: bool) {
        // SAFETY: has no pointers.
        unsafe { (self.functions().set_blocked)(identity as pthread_t, is_blocked.into()) };
    }

    /// As [`Program::waits`](crate::program::Program::waits).
    pub fn waits(&self, identity: u64, owner: u32) {
        // SAFETY: has no pointers.
        unsafe { (self.functions().waits)(identity as pthread_t, owner) };
    }

    /// As [`Program::served`](crate::program::Program::served).
    pub fn served(&self, identity: u64) {
        self.waits(identity, 0);
    }

    /// What it knows of a thread.
    #[must_use]
    pub fn entry(&self, tid: u32) -> Option<Entry> {
        let found = self.view.as_ref()?.by_thread_id(tid);
        found.map(|(_, entry)| entry)
    }
}

fn said(error: c_int) -> Result<(), Errno> {
    match error {
        0 => Ok(()),
        error => Err(Errno(error)),
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_described_is_what_was_meant() {
        let critical = Attributes::of(Role::new("gas-detection").expect("a role"))
            .time_critical(Priority::new(-5).expect("a nice value"))
            .with_stack(StackSize::of_bytes(300 << 10).expect("a size"));
        for attributes in [Attributes::default(), critical, critical.lazy()] {
            assert_eq!(Described::of(&attributes).attributes(), Ok(attributes));
        }
        let mut both = Described::of(&critical);
        both.is_lazy = 1;
        assert_eq!(both.attributes(), Err(libc::EINVAL));
    }

    #[test]
    fn an_entry_is_told_in_bytes_and_nanoseconds() {
        let role = Role::new("gas-detection").expect("a role");
        let critical = Attributes::of(role).time_critical(Priority::FIRST);
        let mut entry = Entry::of(5, 77, critical);
        (entry.region, entry.created_us) = (Region::Fast, 1_500_000);
        (entry.stack_kib, entry.stack_kib_peak) = (8192, 100);
        let told = Information::of(&entry);
        let expected = Information {
            tid: 77,
            is_time_critical: 1,
            priority: -20,
            region: 1,
            created_ns: 1_500_000_000,
            stack_bytes: 8 << 20,
            stack_bytes_peak: 100 << 10,
            ..told
        };
        assert_eq!(told, expected);
        assert_eq!(role_in(&told.role.map(|it| it as u8)), Ok(role));
    }

    #[test]
    fn a_process_without_the_preload_has_no_host() {
        assert!(Host::find().is_none());
    }
}
