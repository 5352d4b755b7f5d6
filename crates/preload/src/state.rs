//! What there is of a process that is served, and whether it is.
//!
//! The process begins to be served when this library is initialized, or when a library
//! that is initialized before creates a thread. A word that says so lies in memory that
//! the kernel clears in every child: one that was made without the C library's handlers
//! for `fork` finds zero there, and everything passes through, for good.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use milieu_threads::attributes::Attributes;
use milieu_threads::kernel::{self, complain, keep, keep_all};
use milieu_threads::lock::{PriorityMutex, are_owners_known, own_number};
use milieu_threads::program::Program;
use milieu_threads::run::{self, Choice, Rule, Settings, Thread, What};
use milieu_threads::rung::{self, Return, Rung, scheduling};
use milieu_threads::stack::{self, Process, Standing, Watch};

use crate::record::Record;
use crate::{blocking, device, growing, helper, lock, nursery, process, real, record};

/// Everything that a served process has.
pub struct Served {
    pub program: Program,
    pub settings: Settings<'static>,
    pub rules: &'static [Rule<'static>],
    /// Whether a rule is about start functions, whose symbols are looked for then.
    pub has_starts: bool,
    /// Learned sizes.
    pub profile: Option<&'static CStr>,
    /// Its destructor is how threads end.
    pub key: libc::pthread_key_t,
    measuring: PriorityMutex<Option<Process>>,
    /// Whether the C library tells threads their numbers.
    tells_numbers: bool,
    /// The profile was read, and overflows are seen.
    is_learning: AtomicBool,
    /// The rung has been chosen, or that was tried in vain.
    is_chosen: AtomicBool,
    /// It is not mediated any more, because threads could not return.
    has_lost_rights: AtomicBool,
    has_told_of_rights: AtomicBool,
    /// Notes are there, or that was tried in vain.
    is_noted: AtomicBool,
}

/// The stacks of this process, and what is known of its threads.
pub static WATCH: Watch = Watch::new();

const NEW: u32 = 0;
const BEGINNING: u32 = 1;
const SERVED: u32 = 2;

/// How far it is; a word of its own where the kernel clears it in children.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// The process that is served; a child of `vfork` is another one.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether that has been made by `fork`.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

struct Space(UnsafeCell<MaybeUninit<Served>>);

// SAFETY: written once, before the word says so.
unsafe impl Sync for Space {}

static SPACE: Space = Space(UnsafeCell::new(MaybeUninit::uninit()));

/// Whether threads may be elsewhere than the program wants them.
static IS_MEDIATED: AtomicBool = AtomicBool::new(false);

/// Whether a thread of it is time-critical, or was.
static HAS_CRITICAL: AtomicBool = AtomicBool::new(false);

/// Whether another thread than the one of this process can have had the loader's lock
/// when it was made.
static IS_LOADER_FREE: AtomicBool = AtomicBool::new(true);

/// The process, if it is served.
#[inline]
pub fn served() -> Option<&'static Served> {
    // SAFETY: the word stays for as long as the process lives.
    let word = unsafe { WORD.load(Ordering::Acquire).as_ref() }?;
    if word.load(Ordering::Acquire) != SERVED {
        return None;
    }
    // SAFETY: it was written before the word was.
    Some(unsafe { (*SPACE.0.get()).assume_init_ref() })
}

/// The process, if threads of it may be elsewhere than it wants.
#[inline]
pub fn mediated() -> Option<&'static Served> {
    if IS_MEDIATED.load(Ordering::Relaxed) {
        served()
    } else {
        None
    }
}

/// The process, if threads of it may wait for critical ones, or be waited for by them.
#[inline]
pub fn urging() -> Option<&'static Served> {
    if IS_MEDIATED.load(Ordering::Relaxed) || device::serves() {
        served()
    } else {
        None
    }
}

/// Whether this is the process that is served, and not a child of it with its memory.
pub fn is_this_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == kernel::process_id()
}

/// Who waits for a lock is seen wherever somebody may be critical.
pub fn watch_locks() {
    let is_urgent = device::serves() && HAS_CRITICAL.load(Ordering::Acquire);
    lock::watch(IS_MEDIATED.load(Ordering::Acquire) || is_urgent);
}

/// The process, if critical threads are out of the fast region while they block.
#[inline]
pub fn leaving() -> Option<&'static Served> {
    mediated().filter(|it| it.settings.mediator.leaves_while_blocked)
}

/// Whether the loader may be asked what is loaded.
pub fn is_loader_free() -> bool {
    IS_LOADER_FREE.load(Ordering::Relaxed)
}

/// The process, which begins to be served unless it was; none where that has failed.
#[inline]
pub fn serve() -> Option<&'static Served> {
    served().or_else(begin_once)
}

#[cold]
fn begin_once() -> Option<&'static Served> {
    if !HAS_BEGUN.swap(true, Ordering::AcqRel) {
        begin();
    }
    served()
}

/// The loader calls this when it has loaded everything that this library needs.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALIZE: extern "C" fn() = initialize;

extern "C" fn initialize() {
    serve();
}

/// And this when the process exits.
#[used]
#[unsafe(link_section = ".fini_array")]
static FINISH: extern "C" fn() = process::finish;

fn begin() {
    let Some(word) = word() else {
        return;
    };
    word.store(BEGINNING, Ordering::Relaxed);
    WORD.store((&raw const *word).cast_mut(), Ordering::Release);
    let Some(served) = Served::new() else {
        return;
    };
    // SAFETY: nobody reads it before the word says so, and this runs once.
    let served = unsafe { (*SPACE.0.get()).write(served) };
    PROCESS.store(kernel::process_id(), Ordering::Relaxed);
    word.store(SERVED, Ordering::Release);
    record::begin_main(served);
    device::register(served);
    let own = served.program.get(kernel::identity()).unwrap_or_default();
    if own.is_time_critical() && device::serves() {
        served.notices(&own);
    }
    if served.rules.iter().any(|it| is_moved(&it.attributes))
        || matches!(served.settings.rung, Choice::Only(_))
    {
        served.mediate();
    }
}

/// Whether threads with these attributes go to a region.
fn is_moved(attributes: &Attributes) -> bool {
    attributes.is_time_critical() || attributes.is_lazy()
}

/// A word in memory that the kernel clears in children.
fn word() -> Option<&'static AtomicU32> {
    let page = keep_all(1024, NEW).ok()?;
    let start = page.as_mut_ptr();
    // SAFETY: the page is ours alone. Kernels before 4.14 know no such advice; then
    // every child must call the handlers for `fork`.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::madvise(start.cast(), 4096, libc::MADV_WIPEONFORK);
        *errno = before;
        Some(AtomicU32::from_ptr(start))
    }
}

impl Served {
    fn new() -> Option<Served> {
        // SAFETY: the name ends with a zero; the text is copied before anybody else
        // runs who could change it.
        let text = unsafe {
            let text = libc::getenv(run::VARIABLE.as_ptr());
            match text.is_null() {
                true => None,
                false => Some(keep(CStr::from_ptr(text).to_bytes()).ok()?),
            }
        };
        let has_settings = text.is_some();
        let text = text.unwrap_or_default();
        let is_text = text.to_str().is_ok();
        let text = text.to_str().unwrap_or("");
        let is_quiet = Settings::parse(text, &mut |_| ()).is_quiet;
        let say = |arguments: core::fmt::Arguments<'_>| {
            if !is_quiet {
                complain(arguments);
            }
        };
        if !is_text {
            say(format_args!(
                "MILIEU_THREADS is no text in UTF-8; nothing of it counts"
            ));
        }
        let mut settings = Settings::parse(text, &mut |wrong| say(format_args!("{wrong}")));
        if !has_settings {
            settings.socket = milieu_threads::device::usual_socket();
        }
        let rules = settings.roles.map_or(&[][..], |path| {
            let loaded = keep(path.as_bytes())
                .and_then(|it| run::load(it, &mut |wrong| say(format_args!("{path}: {wrong}"))));
            loaded.unwrap_or_else(|error| {
                say(format_args!("{path}: the patterns cannot be read: {error}"));
                &[]
            })
        });
        let program = Program::start(settings.capacity, None, settings.mediator, |_| ());
        let program = program
            .inspect_err(|error| say(format_args!("this program is not served: {error}")))
            .ok()?;
        let mut key = 0;
        // SAFETY: the destructor is a function that stays.
        if unsafe { real::pthread_key_create(&mut key, Some(crate::thread::end)) } != 0 {
            return None;
        }
        let served = Served {
            program,
            settings,
            rules,
            has_starts: rules.iter().any(|it| matches!(it.what, What::Start(_))),
            profile: settings.profile.and_then(|it| keep(it.as_bytes()).ok()),
            key,
            measuring: PriorityMutex::new(None),
            tells_numbers: are_owners_known(),
            is_learning: AtomicBool::new(false),
            is_chosen: AtomicBool::new(false),
            has_lost_rights: AtomicBool::new(false),
            has_told_of_rights: AtomicBool::new(false),
            is_noted: AtomicBool::new(false),
        };
        process::handle_forks();
        Some(served)
    }

    /// Gets stacks ready to be measured, unless they are.
    fn learn(&self) {
        if self.is_learning.load(Ordering::Relaxed) || self.is_learning.swap(true, Ordering::AcqRel)
        {
            return;
        }
        if let Some(path) = self.profile {
            // What others have noted; if it does not work now, somebody else does it.
            let _ = milieu_threads::stack::settle(path, 0);
            let mut load = |entry: &_| WATCH.live.load(entry);
            let loaded = milieu_threads::stack::load(path, &mut load, &mut |wrong| {
                self.say(format_args!(
                    "{}: {wrong}",
                    self.settings.profile.unwrap_or("")
                ));
            });
            if let Err(error) = loaded {
                let path = self.settings.profile.unwrap_or("");
                self.say(format_args!("{path}: {error}; no sizes are known"));
            }
        }
        if self.settings.is_quiet {
            WATCH.hush();
        }
        // SAFETY: it is `sigaction`, and nobody else arms a watch.
        unsafe { WATCH.arm(set_action, self.profile) };
    }

    /// The process is about to give up its rights, and may be unable to open any of this
    /// then. Root's processes alone have it early: most have never a thread.
    fn prepare_for_loss(&self) {
        // A child of `vfork` has the memory of its parent, whose notes these are.
        let is_own = is_this_process();
        // SAFETY: no memory is involved.
        let is_root = unsafe { libc::geteuid() } == 0;
        if is_own && is_root && self.settings.stacks.mode.learns() {
            self.learn();
            // Children that are about to execute something would leave theirs behind.
            if !IS_CHILD.load(Ordering::Relaxed) {
                self.open_notes();
            }
        }
    }

    /// Does something that may take rights from the process, or give them back. Threads are
    /// where the program wants them meanwhile, and are mediated afterwards if they could
    /// return.
    pub fn change_rights<T>(&self, change: impl FnOnce() -> T) -> T {
        uncancelled(|| self.prepare_for_loss());
        let has_lost = self.has_lost_rights.load(Ordering::Acquire);
        let may_lose = mediated().is_some() && scheduling::has_privilege();
        let is_concerned = is_this_process() && (has_lost || may_lose && self.may_rest());
        if is_concerned {
            uncancelled(|| self.rest());
        }
        let result = change();
        if let Some(rung) = self.program.resting_rung().filter(|_| is_concerned) {
            uncancelled(|| self.see_rights(rung));
        }
        result
    }

    fn see_rights(&self, rung: Rung) {
        let may_return = always_returns(rung);
        self.has_lost_rights.store(!may_return, Ordering::Release);
        if may_return {
            self.go_on();
        } else if !self.has_told_of_rights.swap(true, Ordering::AcqRel) {
            self.say(format_args!(
                "threads are not mediated any more: the program has given up the rights by \
                 which `{rung}` lets them return; give them up before a thread is critical, or \
                 leave it RLIMIT_NICE"
            ));
        }
    }

    /// Whether anything was learned, or can have been.
    pub fn is_learning(&self) -> bool {
        self.is_learning.load(Ordering::Acquire)
    }

    /// What is learned is noted from now on, by threads that end, and by one of ours of
    /// those that run. Whoever is about to create a thread calls this.
    pub fn note(&self) {
        if self.settings.stacks.mode.learns() {
            self.learn();
            self.open_notes();
        }
        if WATCH.notes.is_open() || device::serves() {
            helper::attend(self, record::living());
        }
    }

    fn open_notes(&self) {
        // Threads have no keys without the loader, and so no notes.
        let Some(path) = self.profile.filter(|_| is_loader_free()) else {
            return;
        };
        if !self.is_noted.load(Ordering::Relaxed) && !self.is_noted.swap(true, Ordering::AcqRel) {
            // Without them, all is as if it were to end by itself.
            let _ = WATCH.notes.open(path);
        }
    }

    /// Says something on the standard error output, unless that is not wanted.
    pub fn say(&self, arguments: core::fmt::Arguments<'_>) {
        if !self.settings.is_quiet {
            complain(arguments);
        }
    }

    /// What the patterns say of a thread.
    pub fn rule(&self, thread: &Thread<'_>) -> Option<&'static Rule<'static>> {
        self.rules.iter().find(|it| it.is_about(thread))
    }

    /// Threads are mediated from now on, if that is wanted and works.
    pub fn mediate(&self) {
        self.mediate_by(false);
    }

    /// The same, by the helper, whose threads would have no files in common with the program:
    /// nobody can be begun by one of them.
    pub fn mediate_by_helper(&self) {
        self.mediate_by(true);
    }

    fn mediate_by(&self, is_helper: bool) {
        let chosen = self.settings.rung;
        let has_lost_rights = self.has_lost_rights.load(Ordering::Acquire);
        if chosen == Choice::Off || device::is_awaited() || has_lost_rights {
            return;
        }
        if self.program.is_resting() {
            return uncancelled(|| self.go_on());
        }
        if !self.is_chosen.swap(true, Ordering::AcqRel) {
            uncancelled(|| self.choose(chosen, is_helper));
        }
    }

    /// Somebody else moves the threads from now on, until [`Served::go_on`]. False where that
    /// cannot be, because lazy ones could not return.
    pub fn rest(&self) -> bool {
        if self.program.is_resting() || mediated().is_none() {
            return true;
        }
        let rests = self.program.rest();
        if rests {
            self.set_mediated(false);
        }
        rests
    }

    /// Whether somebody else can move the threads from now on.
    pub fn may_rest(&self) -> bool {
        let returns = self.program.rung().map(|(_, returns)| returns);
        returns != Some(Return::Never)
    }

    /// Threads are mediated as before, after [`Served::rest`].
    pub fn go_on(&self) {
        if !self.program.is_resting() || self.has_lost_rights.load(Ordering::Acquire) {
            return;
        }
        self.set_mediated(true);
        if let Err(error) = self.program.go_on(helper::tell) {
            self.set_mediated(false);
            helper::say(|| {
                self.say(format_args!("threads are not mediated any more: {error}"));
            });
        }
    }

    fn choose(&self, chosen: Choice, is_helper: bool) {
        let rung = match chosen {
            Choice::Only(rung) => Some(rung),
            _ => rung::best(&rung::probe()),
        };
        let Some(rung) = rung else {
            return self.say(format_args!(
                "threads are not mediated: nothing works here; `milieu thread probe` says why"
            ));
        };
        if is_helper && !always_returns(rung) {
            // A thread of the program's does it when something changes.
            return self.is_chosen.store(false, Ordering::Release);
        }
        // Before anybody is lazy: it inherits from its creator.
        if !helper::start(self) {
            return self.say(format_args!(
                "threads are not mediated: no thread for that could be created"
            ));
        }
        self.set_mediated(true);
        match self.program.mediate(rung, helper::tell) {
            Ok(returns) => {
                if returns == Return::Never {
                    nursery::start();
                }
                helper::wake();
            }
            Err(error) => {
                self.set_mediated(false);
                self.say(format_args!("threads are not mediated: {error}"));
            }
        }
    }

    /// A thread is about to get attributes: threads are mediated if they say so.
    pub fn prepares(&self, attributes: &Attributes) {
        if is_moved(attributes) {
            self.mediate();
        }
    }

    /// A thread has got attributes.
    pub fn notices(&self, attributes: &Attributes) {
        self.prepares(attributes);
        if *attributes != Attributes::default() {
            device::tell(self);
        }
        if attributes.is_time_critical() {
            if !HAS_CRITICAL.swap(true, Ordering::AcqRel) {
                watch_locks();
            }
            helper::wake();
        }
    }

    /// Everything is as the program wants it, to stay so.
    pub fn stop(&self) {
        self.set_mediated(false);
        self.program.stop();
    }

    fn set_mediated(&self, is_mediated: bool) {
        IS_MEDIATED.store(is_mediated, Ordering::Release);
        watch_locks();
        if self.settings.mediator.leaves_while_blocked {
            blocking::watch(is_mediated);
        }
    }

    /// The kernel's number of a thread that the C library has begun, in that thread.
    pub fn own_number(&self) -> u32 {
        let told = self.tells_numbers.then(own_number).flatten();
        told.unwrap_or_else(kernel::thread_id)
    }

    /// Calls with what measures stacks, which is opened when it is needed, and again if the
    /// program has closed it. `me` is the number of this thread.
    pub fn measure<T>(
        &self,
        me: u32,
        mut measure: impl FnMut(&Process) -> Result<T, stack::Errno>,
    ) -> Option<T> {
        let mut process = self.measuring.lock_as(me).ok()?;
        if let Some(open) = process.take() {
            let found = measure(&open);
            if found.is_ok() || open.is_intact() {
                *process = Some(open);
                return found.ok();
            }
            // Their numbers are the program's.
            open.forget();
        }
        *process = Process::own().ok();
        measure(process.as_ref()?).ok()
    }

    /// Before `fork`.
    pub fn before_fork(&self) {
        self.measuring.hold();
        self.program.before_fork(kernel::identity());
    }

    /// After `fork`, in the parent.
    pub fn after_fork_in_parent(&self) {
        self.program.after_fork_in_parent();
        self.measuring.let_go();
    }
}

/// After `fork`, in the child. `was_alone` if the parent had but one thread.
pub fn after_fork_in_child(was_alone: bool) {
    // SAFETY: the word stays for as long as the process lives.
    let Some(word) = (unsafe { WORD.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    // SAFETY: handlers for forks are there only if it was written.
    let served = unsafe { (*SPACE.0.get()).assume_init_ref() };
    if !was_alone {
        IS_LOADER_FREE.store(false, Ordering::Relaxed);
    }
    served.measuring.reset();
    if let Ok(mut process) = served.measuring.lock() {
        // They show the parent.
        if let Some(before) = process.take().filter(|it| !it.is_intact()) {
            before.forget();
        }
    }
    served.is_noted.store(false, Ordering::Relaxed);
    if served.program.after_fork_in_child().is_err() {
        return;
    }
    let standing: Option<Standing> = record::after_fork(served);
    WATCH.forked(standing);
    helper::after_fork();
    nursery::after_fork();
    growing::after_fork();
    PROCESS.store(kernel::process_id(), Ordering::Relaxed);
    IS_CHILD.store(true, Ordering::Relaxed);
    word.store(SERVED, Ordering::Release);
    device::after_fork(served);
}

/// The record of this thread, if it is served.
pub fn own_record(served: &Served) -> Option<&'static Record> {
    // SAFETY: it has a key; null is no record, and nothing else than one was set.
    unsafe {
        let record = libc::pthread_getspecific(served.key);
        record.cast::<Record>().as_ref()
    }
}

/// A program has said itself what a thread is for: patterns do not count any more.
pub fn set_said(served: &Served, identity: u64) {
    // Without patterns nobody asks, and whoever is critical was made so by the program.
    if served.rules.is_empty() {
        return;
    }
    if let Some(record) = record_of(served, identity) {
        record.set_said();
    }
}

/// Whether a program has said itself what a thread is for.
pub fn is_said(served: &Served, identity: u64) -> bool {
    served.rules.is_empty() || record_of(served, identity).is_some_and(|it| it.is_said())
}

/// The record of a thread, mostly of this one, which need not be looked for.
pub fn record_of(served: &Served, identity: u64) -> Option<&'static Record> {
    let own = own_record(served).filter(|it| it.is_of(identity));
    own.or_else(|| record::of(identity))
}

/// Remembers the record of this thread.
pub fn set_own_record(served: &Served, record: &'static Record) -> bool {
    let record: *const Record = record;
    // SAFETY: it has a key.
    unsafe { libc::pthread_setspecific(served.key, record.cast::<c_void>()) == 0 }
}

/// `sigaction` of the C library.
unsafe extern "C" fn set_action(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { real::sigaction(signal, new, old) }
}

/// Does something in the program's thread, which cannot be cancelled meanwhile: what the
/// C library calls cancellation points is ours then, and not the program's.
pub fn uncancelled<T>(action: impl FnOnce() -> T) -> T {
    unsafe extern "C" {
        fn pthread_setcancelstate(new: c_int, old: *mut c_int) -> c_int;
    }
    const DISABLE: c_int = 1;
    let mut before = 0;
    // SAFETY: writes a number.
    unsafe { pthread_setcancelstate(DISABLE, &mut before) };
    let result = action();
    // SAFETY: sets what was.
    unsafe { pthread_setcancelstate(before, null_mut()) };
    result
}

/// Whether lazy threads can return on a rung, by what the process may do now.
fn always_returns(rung: Rung) -> bool {
    let reports = rung::probe();
    let mut reports = reports.iter();
    reports.any(|it| it.rung == rung && it.verdict == Ok(Return::Always))
}
