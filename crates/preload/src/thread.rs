//! Threads: how they are created, begin and end.
//!
//! A thread begins in a function of ours, which says so and goes over to the program's.
//! It ends in the destructor of a key of ours, whether it returns, calls `pthread_exit`,
//! or is cancelled.

mod trampoline;

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use libc::{pthread_attr_t, pthread_t, sigset_t};
use milieu_threads::attributes::Attributes;
use milieu_threads::kernel;
use milieu_threads::promise::Delivery;
use milieu_threads::run::Thread;
use milieu_threads::stack::{Asked, Decision, Key, Name, is_space_short};
use milieu_threads::table::{Region, Scheduling};

use crate::real::{self, Start};
use crate::record::{self, Birth, Record};
use crate::state::{self, Served, WATCH};
use crate::{attributes, device, growing, helper, nursery, site};

/// How many threads the process has created.
static CREATED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    fn pthread_attr_getstackaddr(attr: *const pthread_attr_t, at: *mut *mut c_void) -> c_int;
    fn pthread_getattr_default_np(attr: *mut pthread_attr_t) -> c_int;
    fn pthread_attr_getinheritsched(attr: *const pthread_attr_t, inherits: *mut c_int) -> c_int;
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attr: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let Some(served) = state::serve() else {
        // SAFETY: the caller's.
        return unsafe { real::pthread_create(thread, attr, start, argument) };
    };
    // SAFETY: the caller's; null is the default attributes.
    let asked = Asking::of(unsafe { attr.as_ref() });
    let creation = state::uncancelled(|| {
        served.note();
        Creation::new(served, &asked, attr, start, argument)
    });
    let Some(record) = record::take(creation.birth) else {
        // SAFETY: the caller's.
        return unsafe { real::pthread_create(thread, attr, start, argument) };
    };
    let delivery = Delivery::new(thread);
    record.promise().expects(&delivery);
    let error = creation.create(attr, &asked, record);
    match error {
        0 => delivery.finish(record.promise()),
        _ => {
            record.give_back();
        }
    }
    error
}

/// As C has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(
    thread: *mut pthread_t,
    start: unsafe extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the C library passes what such a function returns through as a number in
    // a pointer's place, as `thrd_join` expects; all of glibc's architectures
    // return both in the same register. `thrd_t` is `pthread_t`.
    let error = unsafe {
        let start: Start = core::mem::transmute(start);
        pthread_create(thread, core::ptr::null(), start, argument)
    };
    said_as_in_c(error)
}

/// What C's functions of threads answer where POSIX's have answered this. Where there is no
/// memory for a thread that is EAGAIN, of which glibc says nothing else.
pub fn said_as_in_c(error: c_int) -> c_int {
    const SUCCESS: c_int = 0;
    const ERROR: c_int = 2;
    match error {
        0 => SUCCESS,
        _ => ERROR,
    }
}

/// Whether the program has said what stacks of others than those with a size are.
static IS_DEFAULT_SET: AtomicBool = AtomicBool::new(false);

/// As glibc has it. A size is one that the program sets, for all threads.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setattr_default_np(attr: *const pthread_attr_t) -> c_int {
    // SAFETY: the caller's.
    let error = unsafe { real::pthread_setattr_default_np(attr) };
    // SAFETY: the caller's, and it was accepted.
    if error == 0 && unsafe { attr.as_ref() }.and_then(is_size_set) != Some(false) {
        IS_DEFAULT_SET.store(true, Ordering::Relaxed);
    }
    error
}

/// What the program asks for in its attributes.
struct Asking {
    stack: Asked,
    /// Whether it is that of every thread, so that whoever wants another one has it.
    is_of_all: bool,
    guard_bytes: u64,
    /// Whether it has the policy of its creator.
    inherits: bool,
}

impl Asking {
    fn of(attr: Option<&pthread_attr_t>) -> Asking {
        let mut default = MaybeUninit::<pthread_attr_t>::uninit();
        let (mut default_bytes, mut bytes, mut guard) = (0, 0, 0);
        // Whoever asks for what is the default wants that, whatever was learned.
        let is_set = attr.and_then(is_size_set);
        let (mut address, mut inherits) = (null_mut(), libc::PTHREAD_INHERIT_SCHED);
        // SAFETY: each is initialized before it is asked, and writes to what lives.
        unsafe {
            // That of the process, which differs from that of attributes.
            real::pthread_attr_init(default.as_mut_ptr());
            libc::pthread_attr_getstacksize(default.as_ptr(), &mut default_bytes);
            let attr = attr.map_or(default.as_ptr(), |it| it);
            libc::pthread_attr_getstacksize(attr, &mut bytes);
            libc::pthread_attr_getguardsize(attr, &mut guard);
            pthread_attr_getstackaddr(attr, &mut address);
            pthread_attr_getinheritsched(attr, &mut inherits);
            real::pthread_attr_destroy(default.as_mut_ptr());
        }
        let is_of_all = address.is_null() && !is_set.unwrap_or(bytes != default_bytes);
        let is_set = !is_of_all || IS_DEFAULT_SET.load(Ordering::Relaxed);
        Asking {
            stack: match (address.is_null(), is_set) {
                (false, _) => Asked::Memory,
                (true, false) => Asked::Default(bytes as u64),
                (true, true) => Asked::Set(bytes as u64),
            },
            is_of_all,
            guard_bytes: guard as u64,
            inherits: inherits == libc::PTHREAD_INHERIT_SCHED,
        }
    }

    fn bytes(&self) -> Option<u64> {
        match self.stack {
            Asked::Default(bytes) | Asked::Set(bytes) => Some(bytes),
            Asked::Memory => None,
        }
    }
}

/// Whether the size of the stack is set in attributes; none where the C library does not keep
/// it where glibc does, which keeps 0 while it is not.
fn is_size_set(attr: &pthread_attr_t) -> Option<bool> {
    /// Before it come a priority, a policy and flags, the guard's size and an address.
    const WORD: usize = if cfg!(target_pointer_width = "64") {
        4
    } else {
        5
    };
    const { assert!((WORD + 1) * size_of::<usize>() <= size_of::<pthread_attr_t>()) };
    const TRIED: usize = 1 << 20;
    const UNKNOWN: u8 = 0;
    const KNOWN: u8 = 1;
    const ELSEWHERE: u8 = 2;
    static PLACE: AtomicU8 = AtomicU8::new(UNKNOWN);
    // SAFETY: attributes are plain memory of the C library's, and have this word.
    let word = |attr: *const pthread_attr_t| unsafe { attr.cast::<usize>().add(WORD).read() };
    if PLACE.load(Ordering::Relaxed) == UNKNOWN {
        let mut tried = MaybeUninit::<pthread_attr_t>::zeroed();
        // SAFETY: initialized before anything else is done with it.
        let (before, after) = unsafe {
            real::pthread_attr_init(tried.as_mut_ptr());
            let before = word(tried.as_ptr());
            libc::pthread_attr_setstacksize(tried.as_mut_ptr(), TRIED);
            let after = word(tried.as_ptr());
            real::pthread_attr_destroy(tried.as_mut_ptr());
            (before, after)
        };
        let is_known = (before, after) == (0, TRIED);
        PLACE.store(if is_known { KNOWN } else { ELSEWHERE }, Ordering::Relaxed);
    }
    (PLACE.load(Ordering::Relaxed) == KNOWN).then(|| word(attr) != 0)
}

/// What is known of a thread before it is.
struct Creation {
    birth: Birth,
    decision: Option<Decision>,
    /// Whether that is because of what was learned.
    is_learned: bool,
}

impl Creation {
    fn new(
        served: &Served,
        asking: &Asking,
        attr: *const pthread_attr_t,
        start: Start,
        argument: *mut c_void,
    ) -> Creation {
        let number = CREATED.fetch_add(1, Ordering::Relaxed) + 1;
        let said = attributes::of_attr(attr);
        let start_at = start as usize;
        let mut birth = Birth {
            start,
            argument,
            attributes: said.unwrap_or_default(),
            is_excluded: false,
            is_said: said.is_some(),
            seat: None,
            is_measured: true,
            asked_bytes: asking.bytes(),
            guard_bytes: asking.guard_bytes,
            creator: None,
            creator_to_tell: None,
            signals: None,
        };
        if !served.rules.is_empty() {
            let mut space = [0; 256];
            let symbol = served.has_starts && state::is_loader_free();
            let rule = served.rule(&Thread {
                start: symbol
                    .then(|| crate::name::symbol(start_at, &mut space))
                    .flatten(),
                name: None,
                number: Some(number),
            });
            if let Some(rule) = rule {
                birth.is_excluded = rule.is_excluded;
                if said.is_none() {
                    birth.attributes = rule.attributes;
                }
            }
        }
        if asking.inherits {
            birth.creator = own_of_creator(served);
            if birth.creator.is_none() {
                birth.creator_to_tell = device::creator();
            }
        }
        let learned = Creation::decide(served, asking, &mut birth, start_at);
        let decision = learned.or_else(|| Creation::wanted(served, asking, &birth));
        Creation {
            birth,
            decision,
            is_learned: learned.is_some(),
        }
    }

    /// The stack that a thread asks for by its attributes, which is one that it has set.
    fn wanted_bytes(asking: &Asking, birth: &Birth) -> Option<u64> {
        let wanted = birth.attributes.stack().map(|it| it.bytes());
        wanted.filter(|_| asking.is_of_all)
    }

    fn wanted(served: &Served, asking: &Asking, birth: &Birth) -> Option<Decision> {
        let bytes = Creation::wanted_bytes(asking, birth)?;
        Some(Decision::Apply {
            bytes: served.settings.stacks.enough_bytes(0).max(bytes),
            guard_bytes: asking.guard_bytes,
        })
    }

    /// Whether its stack is made smaller by what was learned; nothing where it is not.
    fn decide(
        served: &Served,
        asking: &Asking,
        birth: &mut Birth,
        start: usize,
    ) -> Option<Decision> {
        let policy = &served.settings.stacks;
        let wanted = Creation::wanted_bytes(asking, birth);
        let asked = wanted.map_or(asking.stack, Asked::Set);
        let mut decision = None;
        if policy.mode.learns() {
            let key = state::is_loader_free()
                .then(|| Key::of(start, birth.argument as usize))
                .flatten();
            if let Some(key) = &key {
                site::note(served, key);
            }
            let role = Name::new(birth.attributes.role().as_str().as_bytes());
            birth.seat = key.and_then(|it| WATCH.live.enter(&it, role));
            let learned = birth.seat.map(|seat| {
                WATCH.live.creates(seat, asked);
                WATCH.creates(seat);
                WATCH.live.learned(seat)
            });
            let guard_bytes = asking.guard_bytes;
            let decided = policy.decide(learned.as_ref(), asked, guard_bytes, is_space_short);
            decision = Some(decided).filter(|it| matches!(it, Decision::Apply { .. }));
            let is_in_turn = birth.seat.is_none_or(|it| WATCH.live.is_in_turn(it));
            birth.is_measured = is_in_turn || decision.is_some();
        }
        decision
    }

    /// Creates it, once more as the program asked if a smaller stack is refused.
    fn create(
        mut self,
        attr: *const pthread_attr_t,
        asking: &Asking,
        record: &'static Record,
    ) -> c_int {
        let argument = (&raw const *record).cast_mut().cast::<c_void>();
        let thread = record.promise().place();
        if is_begun_for(&self.birth) {
            record.set_signals(blocked_signals());
        }
        let create = |attr| {
            let begin = trampoline::begin;
            if record.birth().signals.is_some() {
                // SAFETY: as below.
                let created = unsafe { nursery::create(thread, attr, begin, argument) };
                if let Some(error) = created {
                    return error;
                }
            }
            // SAFETY: the caller's, and the record is the new thread's.
            unsafe { real::pthread_create(thread, attr, begin, argument) }
        };
        let Some(decision @ Decision::Apply { bytes, guard_bytes }) = self.decision else {
            return create(attr);
        };
        let mut own = MaybeUninit::<pthread_attr_t>::uninit();
        let is_default = attr.is_null();
        // SAFETY: ours is initialized, or a copy of theirs, of which only numbers are
        // changed; nothing is given back that belongs to theirs.
        let error = unsafe {
            if is_default {
                pthread_getattr_default_np(own.as_mut_ptr());
            } else {
                own.write(*attr);
            }
            let whole = asking.bytes().filter(|_| self.is_learned);
            let made =
                whole.and_then(|it| growing::take(bytes, guard_bytes, it, own.assume_init_ref()));
            let size = usize::try_from(bytes).unwrap_or(usize::MAX);
            let guard = usize::try_from(guard_bytes).unwrap_or(0);
            let set = match made {
                Some(it) => libc::pthread_attr_setstack(own.as_mut_ptr(), it.low, it.bytes),
                None => libc::pthread_attr_setstacksize(own.as_mut_ptr(), size),
            };
            let error = match set {
                0 => {
                    libc::pthread_attr_setguardsize(own.as_mut_ptr(), guard);
                    record.set_asked(bytes, guard_bytes);
                    create(own.as_ptr())
                }
                error => error,
            };
            if let Some(made) = made.filter(|_| error != 0) {
                growing::give_back(made);
            }
            if is_default {
                real::pthread_attr_destroy(own.as_mut_ptr());
            }
            error
        };
        if !decision.is_to_be_repeated(error) {
            return error;
        }
        if let Some(seat) = self.birth.seat.take() {
            WATCH.live.refuses(seat);
        }
        if let Some(bytes) = asking.bytes() {
            record.set_asked(bytes, asking.guard_bytes);
        }
        create(attr)
    }
}

/// What the program wants of this thread, which may be elsewhere, and hands on where it is.
/// What is begun by a lazy thread that a mediator of the whole device has says that to it.
fn own_of_creator(served: &Served) -> Option<Scheduling> {
    let identity = kernel::identity();
    if state::mediated().is_some() {
        return served.program.own(identity).ok();
    }
    let is_critical = |it: Attributes| it.is_time_critical();
    let is_fast = device::serves() && served.program.get(identity).is_ok_and(is_critical);
    is_fast.then(|| device::own(kernel::thread_id())).flatten()
}

/// Whether another thread has to create this one, or it would be lazy for ever, which it
/// is not to be.
fn is_begun_for(birth: &Birth) -> bool {
    let is_to_run = birth.is_excluded || birth.attributes.is_time_critical();
    let is_lazy = || {
        let served = state::mediated()?;
        let lines = served.program.table().lines();
        let own = lines.entry(kernel::identity()).ok()?;
        Some(own.region == Region::Lazy)
    };
    is_to_run && nursery::is_there() && is_lazy() == Some(true)
}

/// The signals that this thread does not take.
fn blocked_signals() -> sigset_t {
    let mut signals = MaybeUninit::zeroed();
    // SAFETY: writes a set, of which zeros are one.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), signals.as_mut_ptr());
        signals.assume_init()
    }
}

/// Tells a thread that begins what the program's function is, and says that it begins.
extern "C" fn prepare(record: *mut c_void) -> trampoline::Call {
    // SAFETY: its creator has handed over a record, which stays.
    let record: &'static Record = unsafe { &*record.cast::<Record>() };
    let birth = record.birth();
    record.promise().deliver();
    if let Some(served) = state::served() {
        // Without the key nobody would say when it ends.
        if state::set_own_record(served, record) {
            state::uncancelled(|| record.begin(served, &birth));
        } else {
            // What is of it is given back once it is gone.
            growing::ends(kernel::thread_id());
            record.give_back();
        }
    }
    if let Some(signals) = &birth.signals {
        // SAFETY: reads a set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, signals, null_mut()) };
    }
    trampoline::call(birth.start, birth.argument)
}

/// Where they end: the destructor of our key.
pub extern "C" fn end(record: *mut c_void) {
    // SAFETY: nothing else than a record was set, and they stay.
    let record: &'static Record = unsafe { &*record.cast::<Record>() };
    let Some(served) = state::served() else {
        return;
    };
    if record.is_to_wait() {
        state::set_own_record(served, record);
        return;
    }
    if record.end(served) {
        nursery::end_first();
        helper::end_first();
    }
}
