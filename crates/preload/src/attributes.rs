//! Attributes, as programs built against `milieu/threads.h` set and read them.
//!
//! The header asks for a table of functions by a policy that nobody else knows; where
//! that is refused, it does without. What a program says of a
//! `pthread_attr_t` is kept beside it, by its address, until that is initialized anew
//! or destroyed; a copy of it says nothing.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::{pthread_attr_t, pthread_t, sched_param, size_t};
use milieu_threads::attributes::{Attributes, Priority, Role, SCHED_TEK};
pub use milieu_threads::host::POLICY;
use milieu_threads::host::{Described, Functions, Request, VERSION, role_in};
use milieu_threads::program::Program;
use milieu_threads::table::TableError;

use crate::state::{self, Served};
use crate::{device, information, real, record};

/// # Safety
/// Null, or a text that ends with a zero.
unsafe fn role_at(text: *const c_char) -> Result<Role, c_int> {
    if text.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's.
    role_in(unsafe { CStr::from_ptr(text) }.to_bytes_with_nul())
}

/// A place for what is said of one `pthread_attr_t`.
struct Place {
    /// Its address, or one of these two.
    of: AtomicUsize,
    said: UnsafeCell<MaybeUninit<Attributes>>,
}

const FREE: usize = 0;
/// Somebody is about to write there for the first time.
const TAKEN: usize = 1;

// SAFETY: it is written by whoever has taken it, and later by whoever changes the
// `pthread_attr_t`, of which the program sees to it that nobody else reads or writes.
unsafe impl Sync for Place {}

static PLACES: [Place; 512] = [const {
    Place {
        of: AtomicUsize::new(FREE),
        said: UnsafeCell::new(MaybeUninit::uninit()),
    }
}; 512];

/// How many are not free: mostly none, and then nobody looks.
static TAKEN_COUNT: AtomicUsize = AtomicUsize::new(0);

fn place_of(attr: *const pthread_attr_t) -> Option<&'static Place> {
    if TAKEN_COUNT.load(Ordering::Acquire) == 0 || attr as usize <= TAKEN {
        return None;
    }
    let mut all = PLACES.iter();
    all.find(|it| it.of.load(Ordering::Acquire) == attr as usize)
}

/// What was said of attributes.
pub fn of_attr(attr: *const pthread_attr_t) -> Option<Attributes> {
    let place = place_of(attr)?;
    // SAFETY: it was written before the address was.
    Some(unsafe { (*place.said.get()).assume_init() })
}

fn say_of(attr: *mut pthread_attr_t, attributes: Attributes) -> c_int {
    if attr.is_null() {
        return libc::EINVAL;
    }
    let take = || {
        let (new, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let is_taken = |it: &&Place| it.of.compare_exchange(FREE, TAKEN, new, failure).is_ok();
        PLACES.iter().find(is_taken)
    };
    let (place, is_new) = match place_of(attr) {
        Some(place) => (place, false),
        None => match take() {
            Some(place) => (place, true),
            None => return libc::ENOMEM,
        },
    };
    // SAFETY: it is ours, or that of attributes that are the caller's to change.
    unsafe { (*place.said.get()).write(attributes) };
    if is_new {
        place.of.store(attr as usize, Ordering::Release);
        TAKEN_COUNT.fetch_add(1, Ordering::AcqRel);
    }
    0
}

fn forget(attr: *const pthread_attr_t) {
    if let Some(place) = place_of(attr) {
        place.of.store(FREE, Ordering::Release);
        TAKEN_COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// As POSIX has it; what was said of the attributes is forgotten.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_init(attr: *mut pthread_attr_t) -> c_int {
    forget(attr);
    // SAFETY: the caller's.
    unsafe { real::pthread_attr_init(attr) }
}

/// As POSIX has it; what was said of the attributes is forgotten.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_destroy(attr: *mut pthread_attr_t) -> c_int {
    forget(attr);
    // SAFETY: the caller's.
    unsafe { real::pthread_attr_destroy(attr) }
}

/// As POSIX has it, and `SCHED_TEK` makes the thread time-critical.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_setschedpolicy(
    attr: *mut pthread_attr_t,
    policy: c_int,
) -> c_int {
    let before = of_attr(attr);
    if policy == SCHED_TEK && state::served().is_some() {
        let attributes = before.unwrap_or_default();
        return say_of(attr, attributes.time_critical(attributes.priority()));
    }
    // SAFETY: the caller's.
    let error = unsafe { real::pthread_attr_setschedpolicy(attr, policy) };
    match before {
        Some(before) if error == 0 && before.is_time_critical() => {
            say_of(attr, before.not_critical())
        }
        _ => error,
    }
}

/// As POSIX has it; the priority of a time-critical thread is a nice value.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_setschedparam(
    attr: *mut pthread_attr_t,
    param: *const sched_param,
) -> c_int {
    let critical = of_attr(attr).filter(Attributes::is_time_critical);
    // SAFETY: the caller's.
    match (critical, unsafe { param.as_ref() }) {
        (Some(before), Some(param)) => match Priority::new(param.sched_priority) {
            Ok(priority) => say_of(attr, before.time_critical(priority)),
            Err(_) => libc::EINVAL,
        },
        // SAFETY: the caller's.
        _ => unsafe { real::pthread_attr_setschedparam(attr, param) },
    }
}

/// As POSIX has it, and `SCHED_TEK` for a time-critical thread.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_getschedpolicy(
    attr: *const pthread_attr_t,
    policy: *mut c_int,
) -> c_int {
    let is_critical = of_attr(attr).is_some_and(|it| it.is_time_critical());
    // SAFETY: the caller's.
    match unsafe { policy.as_mut() } {
        Some(policy) if is_critical => {
            *policy = SCHED_TEK;
            0
        }
        // SAFETY: the caller's.
        _ => unsafe { real::pthread_attr_getschedpolicy(attr, policy) },
    }
}

/// As POSIX has it; the priority of a time-critical thread is a nice value.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_getschedparam(
    attr: *const pthread_attr_t,
    param: *mut sched_param,
) -> c_int {
    let critical = of_attr(attr).filter(Attributes::is_time_critical);
    // SAFETY: the caller's.
    match (critical, unsafe { param.as_mut() }) {
        (Some(attributes), Some(param)) => {
            param.sched_priority = attributes.priority().nice();
            0
        }
        // SAFETY: the caller's.
        _ => unsafe { real::pthread_attr_getschedparam(attr, param) },
    }
}

/// The number of an error of the table.
pub fn number_of(error: TableError) -> c_int {
    match error {
        TableError::Unknown | TableError::NoIdentity => libc::ESRCH,
        TableError::Full => libc::ENOMEM,
        TableError::Busy => libc::EAGAIN,
        TableError::Damaged => libc::EIO,
    }
}

#[allow(clippy::unnecessary_cast, reason = "narrower on 32 bits")]
pub fn identity_of(thread: pthread_t) -> u64 {
    thread as u64
}

/// Sets what a thread is for; the program has said so.
pub fn set(thread: pthread_t, attributes: &Attributes) -> c_int {
    let Some(served) = state::serve() else {
        return libc::ENOSYS;
    };
    let identity = identity_of(thread);
    // Means are there before the thread is put anywhere.
    served.prepares(attributes);
    let mut applied = apply(served, identity, attributes);
    if applied == Err(TableError::Unknown) {
        let waits = record::promised(identity, |record, said| {
            record.set_said();
            *said = *attributes;
        });
        if waits.is_some() {
            return 0;
        }
        // It may have begun meanwhile.
        applied = apply(served, identity, attributes);
    }
    match applied {
        Ok(()) => {
            state::set_said(served, identity);
            0
        }
        Err(error) => number_of(error),
    }
}

/// Puts a thread where it belongs that is for this.
fn apply(served: &Served, identity: u64, attributes: &Attributes) -> Result<(), TableError> {
    served.program.set(identity, attributes)?;
    served.notices(attributes);
    if *attributes == Attributes::default() {
        // It has ceased to be anything.
        device::tell(served);
    }
    Ok(())
}

pub fn get(thread: pthread_t) -> Result<Attributes, c_int> {
    let served = state::serve().ok_or(libc::ENOSYS)?;
    let identity = identity_of(thread);
    match served.program.get(identity) {
        Err(TableError::Unknown) => get_promised(served, identity),
        found => found,
    }
    .map_err(number_of)
}

/// The same of a thread that is not listed, as it has not begun perhaps.
#[cold]
fn get_promised(served: &Served, identity: u64) -> Result<Attributes, TableError> {
    // Without one it may have begun meanwhile.
    record::promised(identity, |_, said| *said).map_or_else(|| served.program.get(identity), Ok)
}

unsafe extern "C" fn set_attributes(thread: pthread_t, described: *const Described) -> c_int {
    // SAFETY: the caller's.
    match unsafe { described.as_ref() }.map(Described::attributes) {
        Some(Ok(attributes)) => set(thread, &attributes),
        Some(Err(error)) => error,
        None => libc::EINVAL,
    }
}

unsafe extern "C" fn get_attributes(thread: pthread_t, into: *mut Described) -> c_int {
    // SAFETY: the caller's.
    let Some(into) = (unsafe { into.as_mut() }) else {
        return libc::EINVAL;
    };
    let Some(served) = state::serve() else {
        return libc::ENOSYS;
    };
    let identity = identity_of(thread);
    // Nothing is between the table and the program: they stay in registers on their way.
    match served.program.get(identity) {
        Ok(attributes) => {
            *into = Described::of(&attributes);
            0
        }
        Err(TableError::Unknown) => tell(
            get_promised(served, identity).map_err(number_of),
            Some(into),
        ),
        Err(error) => number_of(error),
    }
}

fn tell(attributes: Result<Attributes, c_int>, into: Option<&mut Described>) -> c_int {
    match (attributes, into) {
        (Ok(attributes), Some(into)) => {
            *into = Described::of(&attributes);
            0
        }
        (Err(error), _) => error,
        (_, None) => libc::EINVAL,
    }
}

unsafe extern "C" fn attr_set_attributes(
    attr: *mut pthread_attr_t,
    described: *const Described,
) -> c_int {
    // SAFETY: the caller's.
    match unsafe { described.as_ref() }.map(Described::attributes) {
        Some(Ok(attributes)) => say_of(attr, attributes),
        Some(Err(error)) => error,
        None => libc::EINVAL,
    }
}

unsafe extern "C" fn attr_get_attributes(
    attr: *const pthread_attr_t,
    into: *mut Described,
) -> c_int {
    // SAFETY: the caller's.
    tell(Ok(of_attr(attr).unwrap_or_default()), unsafe {
        into.as_mut()
    })
}

unsafe extern "C" fn set_role(thread: pthread_t, role: *const c_char) -> c_int {
    // SAFETY: the caller's.
    let role = unsafe { role_at(role) };
    match role.and_then(|role| Ok(get(thread)?.with_role(role))) {
        Ok(attributes) => set(thread, &attributes),
        Err(error) => error,
    }
}

unsafe extern "C" fn attr_set_role(attr: *mut pthread_attr_t, role: *const c_char) -> c_int {
    // SAFETY: the caller's.
    match unsafe { role_at(role) } {
        Ok(role) => say_of(attr, of_attr(attr).unwrap_or_default().with_role(role)),
        Err(error) => error,
    }
}

/// Writes as many threads of a role as there is room for, and how many there are.
unsafe extern "C" fn find(
    role: *const c_char,
    threads: *mut pthread_t,
    room: size_t,
    count: *mut size_t,
) -> c_int {
    // SAFETY: the caller's.
    let role = match unsafe { role_at(role) } {
        Ok(role) => role,
        Err(error) => return error,
    };
    let Some(served) = state::serve() else {
        return libc::ENOSYS;
    };
    let mut found = 0;
    for (_, entry) in served.program.table().lines().with_role(role) {
        if found < room && !threads.is_null() {
            // SAFETY: there is room for as many.
            unsafe { threads.add(found).write(entry.identity as pthread_t) };
        }
        found += 1;
    }
    // SAFETY: the caller's.
    if let Some(count) = unsafe { count.as_mut() } {
        *count = found;
    }
    0
}

/// Leaves a thread alone.
unsafe extern "C" fn exclude(thread: pthread_t) -> c_int {
    tell_program(|program| program.exclude(identity_of(thread)))
}

unsafe extern "C" fn set_blocked(thread: pthread_t, is_blocked: c_int) -> c_int {
    tell_program(|program| program.set_blocked(identity_of(thread), is_blocked != 0))
}

unsafe extern "C" fn waits(thread: pthread_t, owner: c_uint) -> c_int {
    let identity = identity_of(thread);
    if let Some(served) = state::served().filter(|_| device::serves()) {
        let waiter = served.program.table().lines().entry(identity);
        match waiter.map(|it| (it.tid, owner)) {
            Ok((waiter, 0)) => device::has_waited(served, waiter),
            Ok((waiter, owner)) => device::waits(served, waiter, owner),
            Err(_) => {}
        }
        return 0;
    }
    tell_program(|program| match owner {
        0 => program.served(identity),
        owner => program.waits(identity, owner),
    })
}

fn tell_program(event: impl FnOnce(&Program)) -> c_int {
    match state::serve() {
        Some(served) => {
            event(&served.program);
            0
        }
        None => libc::ENOSYS,
    }
}

static FUNCTIONS: Functions = Functions {
    version: VERSION,
    set_attributes,
    get_attributes,
    attr_set_attributes,
    attr_get_attributes,
    set_role,
    attr_set_role,
    find,
    exclude,
    set_blocked,
    waits,
    get_information: information::get,
};

/// Answers a program that asks, for headers of this version and of earlier ones.
///
/// # Safety
/// It is the beginning of a request.
pub unsafe fn answer(request: *const sched_param) -> c_int {
    let request = request.cast_mut().cast::<Request>();
    // SAFETY: the caller's.
    let Some(request) = (unsafe { request.as_mut() }) else {
        return libc::EINVAL;
    };
    if request.param.sched_priority > VERSION as c_int || state::serve().is_none() {
        return libc::EINVAL;
    }
    request.here = &raw const FUNCTIONS;
    0
}
