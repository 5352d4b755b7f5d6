//! Overflows: a thread that hits the guard page of its stack is reported by number and
//! role, its key is not tuned again, and then happens what would have happened.
//!
//! The handler of `SIGSEGV` runs on an alternate stack that the thread has been given.
//! For an overflow of a known stack it writes one line to the standard error output
//! and one to the profile, puts the program's own action back, and returns: the
//! instruction fails again, and the kernel does what the program has asked for.
//! Any other fault goes to the program's handler. A program whose handler shall not
//! run on an alternate stack could not handle an overflow at all; its action is then
//! left in place, and overflows are not seen. A frame that reaches over the whole
//! guard page is not seen either: compilers prevent that when told to probe stacks.
//!
//! A stack of an [`Arena`] overflows when it is as large as what the program asked for, or
//! when there is no address space left for it to grow.
//!
//! Everything here may be called by a signal handler, but where it says otherwise.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};

use super::arena::Arena;
use super::live::{Live, Seat};
use super::measure::{Peak, Process, Stack};
use super::profile::{Entry, Name, Note, Notes, append};
use super::system::{self, Errno, signal_bytes};
use super::text::Text;
use crate::action::{StoredAction, no_action};

/// `sigaction` of the C library, not that of whoever stands before it.
pub type SetAction =
    unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

/// The one that is armed, for the handler.
static ARMED: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

const FREE: u32 = 0;
const TAKEN: u32 = u32::MAX;

/// The notes are full, or could not be made when they were wanted.
const NO_PLACE: u32 = u32::MAX;

/// A stack that a thread has.
struct Known {
    /// The kernel's number of the thread.
    thread: AtomicU32,
    /// Its overflow was reported. Who handles it besides us may let it happen again.
    is_reported: AtomicBool,
    /// `pthread_self()`, by which the table has it.
    identity: AtomicUsize,
    low: AtomicUsize,
    high: AtomicUsize,
    guard_bytes: AtomicUsize,
    /// How deep it was when the thread began.
    depth_at_start: AtomicUsize,
    /// One more than the number of its key's seat; 0 if it has none.
    seat: AtomicUsize,
}

impl Known {
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = Self {
        thread: AtomicU32::new(FREE),
        is_reported: AtomicBool::new(false),
        identity: AtomicUsize::new(0),
        low: AtomicUsize::new(0),
        high: AtomicUsize::new(0),
        guard_bytes: AtomicUsize::new(0),
        depth_at_start: AtomicUsize::new(0),
        seat: AtomicUsize::new(0),
    };

    fn stack(&self) -> Stack {
        Stack {
            low: self.low.load(Ordering::Relaxed) as u64,
            high: self.high.load(Ordering::Relaxed) as u64,
            guard_bytes: self.guard_bytes.load(Ordering::Relaxed) as u64,
        }
    }

    fn seat(&self) -> Option<Seat> {
        let number = self.seat.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Seat::of_number(number))
    }

    /// Measures it, beside a thread that may end at any time.
    fn measure(
        &self,
        process: &Process,
        now: impl Fn(Stack) -> Stack,
    ) -> Result<Option<Running>, Errno> {
        let thread = self.thread.load(Ordering::Acquire);
        if matches!(thread, FREE | TAKEN) {
            return Ok(None);
        }
        let (identity, seat) = (self.identity.load(Ordering::Relaxed), self.seat());
        let stack = now(self.stack());
        let at_start = self.depth_at_start.load(Ordering::Relaxed) as u64;
        let depth = process.depth(&stack)?;
        fence(Ordering::Acquire);
        if self.thread.load(Ordering::Relaxed) != thread {
            // It has ended meanwhile: what was measured may be another's.
            return Ok(None);
        }
        let peak = Peak::between(at_start, depth, stack.bytes());
        Ok(peak.bytes().map(|peak_bytes| Running {
            identity: identity as u64,
            thread: thread as c_int,
            seat,
            peak_bytes,
        }))
    }
}

/// A thread that runs, and how deep it was so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Who, as the thread information table has it.
    pub identity: u64,
    /// The kernel's number of the thread.
    pub thread: c_int,
    seat: Option<Seat>,
    /// What its stack must have had until now.
    pub peak_bytes: u64,
}

/// Where a thread stands among those whose stacks are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing(usize);

/// The stacks of this process and what is known of their threads; one `static`.
pub struct Watch {
    /// What is known of threads, by key.
    pub live: Live,
    /// What is noted of that, for the case that the process is ended.
    pub notes: Notes,
    known: [Known; Self::THREADS],
    /// No place from here on was ever taken.
    highest: AtomicUsize,
    /// The profile in which overflows are noted, a text that stays.
    path: AtomicPtr<c_char>,
    action: StoredAction,
    set_action: AtomicPtr<c_void>,
    is_quiet: AtomicBool,
    /// Where stacks are that grow.
    arena: AtomicPtr<Arena>,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// How many threads it knows at once; further ones go on unseen.
    pub const THREADS: usize = 4096;

    /// With nothing in it.
    pub const fn new() -> Self {
        Self {
            live: Live::new(),
            notes: Notes::new(),
            known: [Known::FREE; Self::THREADS],
            highest: AtomicUsize::new(0),
            path: AtomicPtr::new(null_mut()),
            action: StoredAction::new(),
            set_action: AtomicPtr::new(null_mut()),
            is_quiet: AtomicBool::new(false),
            arena: AtomicPtr::new(null_mut()),
        }
    }

    /// Stacks may be of this arena from now on.
    pub fn grows_in(&self, arena: &'static Arena) {
        let arena = (&raw const *arena).cast_mut();
        self.arena.store(arena, Ordering::Release);
    }

    fn arena(&self) -> Option<&'static Arena> {
        // SAFETY: null is none, and what is stored stays.
        unsafe { self.arena.load(Ordering::Acquire).as_ref() }
    }

    /// Says nothing of overflows; the profile does.
    pub fn hush(&self) {
        self.is_quiet.store(true, Ordering::Relaxed);
    }

    fn complain(&self, text: &[u8]) {
        if !self.is_quiet.load(Ordering::Relaxed) {
            system::complain(text);
        }
    }

    /// A thread begins on this stack, and is so deep then: its number, and its identity in
    /// the thread information table. None if there are too many.
    pub fn enter(
        &self,
        thread: c_int,
        identity: u64,
        stack: &Stack,
        depth_at_start: u64,
        seat: Option<Seat>,
    ) -> Option<Standing> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        // Where this thread's predecessor on the same stack was, it is probably free.
        let first = (size(stack.low) >> 16).wrapping_mul(0x9e37_79b1) % Self::THREADS;
        for step in 0..Self::THREADS {
            let place = (first + step) % Self::THREADS;
            let known = self.known.get(place)?;
            let is_mine = known
                .thread
                .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
            if is_mine {
                known.identity.store(size(identity), Ordering::Relaxed);
                known.low.store(size(stack.low), Ordering::Relaxed);
                known.high.store(size(stack.high), Ordering::Relaxed);
                known
                    .guard_bytes
                    .store(size(stack.guard_bytes), Ordering::Relaxed);
                known
                    .depth_at_start
                    .store(size(depth_at_start), Ordering::Relaxed);
                let seat = seat.map_or(0, |seat| seat.number() + 1);
                known.seat.store(seat, Ordering::Relaxed);
                known.is_reported.store(false, Ordering::Relaxed);
                known.thread.store(thread as u32, Ordering::Release);
                self.highest.fetch_max(place + 1, Ordering::Relaxed);
                return Some(Standing(place));
            }
        }
        None
    }

    /// The stack of a thread as it is now, which may have grown.
    pub fn stack(&self, standing: Standing) -> Option<Stack> {
        self.known.get(standing.0).map(|it| self.now(it.stack()))
    }

    /// A thread ends; its stack may be another's now.
    pub fn leave(&self, standing: Standing) {
        if let Some(known) = self.known.get(standing.0) {
            known.thread.store(FREE, Ordering::Release);
        }
    }

    /// Calls with the threads whose stacks are known: their numbers, stacks and keys.
    /// A thread that ends meanwhile may be told with the stack of its successor.
    pub fn each(&self, mut one: impl FnMut(c_int, Stack, Option<Seat>)) {
        for known in self.taken() {
            match known.thread.load(Ordering::Acquire) {
                FREE | TAKEN => {}
                thread => one(thread as c_int, known.stack(), known.seat()),
            }
        }
    }

    /// A thread of a key is about to be created: it has a line in the notes. This asks the
    /// loader.
    pub fn creates(&self, seat: Seat) {
        let Some(place) = self.live.place(seat).filter(|_| self.notes.is_open()) else {
            return;
        };
        if place.load(Ordering::Relaxed) != 0 {
            return;
        }
        let line = self.live.key(seat).and_then(|it| self.notes.place(it.0));
        let number = line.map_or(NO_PLACE, Note::number);
        // Where two do this at once, one line stays empty.
        let _ = place.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A thread has been measured at its end, and that is noted if it says anything new.
    pub fn measures(&self, seat: Seat, peak: Peak) {
        if self.live.measures(seat, peak) {
            self.note(seat);
        }
    }

    /// Notes what was seen of a key so far; whether there was nothing, or it is noted.
    fn note(&self, seat: Seat) -> bool {
        /// Whoever is later writes what all know.
        const TIMES: usize = 3;
        let number = self.live.place(seat).map(|it| it.load(Ordering::Relaxed));
        let place = number.filter(|it| *it != NO_PLACE);
        let place = place.and_then(Note::of_number);
        let mut known = self.live.so_far(seat);
        for _ in 0..TIMES {
            let (Some(entry), Some(place)) = (known, place) else {
                break;
            };
            if !self.notes.write(place, &entry) {
                return false;
            }
            known = self.live.so_far(seat);
            if known == Some(entry) {
                break;
            }
        }
        known.is_none() || place.is_some()
    }

    /// Notes all that was seen so far; whether that has been done.
    pub fn note_all(&self) -> bool {
        let left = self.live.seats().filter(|seat| !self.note(*seat));
        left.count() == 0
    }

    /// Measures the threads that run, and notes what is new; whether there was anything.
    /// Each is told of. For a thread that has time, with a file of its own, and beside any
    /// other.
    pub fn look(&self, process: &Process, tell: &mut dyn FnMut(&Running)) -> bool {
        let mut running = [0_u16; Live::SEATS];
        let mut is_new = [false; Live::SEATS];
        for known in self.taken() {
            let Ok(Some(found)) = known.measure(process, |it| self.now(it)) else {
                continue;
            };
            tell(&found);
            let Some(seat) = found.seat else {
                continue;
            };
            let number = seat.number();
            let is_deeper = self.live.reaches(seat, found.peak_bytes);
            if let (Some(running), Some(is_new)) = (running.get_mut(number), is_new.get_mut(number))
            {
                *running = running.saturating_add(1);
                *is_new |= is_deeper;
            }
        }
        let seen = self.live.seats().filter_map(|seat| {
            let number = seat.number();
            let running = running.get(number).filter(|it| **it > 0)?;
            Some((seat, *running, is_new.get(number) == Some(&true)))
        });
        seen.fold(false, |was_new, (seat, running, is_deeper)| {
            let is_new = self.live.runs_now(seat, running.into()) || is_deeper;
            if is_new {
                self.note(seat);
            }
            was_new || is_new
        })
    }

    /// Measures one thread that runs; none where its stack is not known.
    ///
    /// # Errors
    /// As those of [`Process::depth`].
    pub fn look_at(&self, thread: c_int, process: &Process) -> Result<Option<Running>, Errno> {
        let is_it = |it: &&Known| it.thread.load(Ordering::Relaxed) == thread as u32;
        let known = self.taken().iter().find(is_it);
        known.map_or(Ok(None), |it| it.measure(process, |it| self.now(it)))
    }

    fn taken(&self) -> &[Known] {
        let highest = self.highest.load(Ordering::Relaxed);
        self.known.get(..highest).unwrap_or(&self.known)
    }

    /// In the child of a fork, which has one thread: the others are not here, and what
    /// was seen before is the parent's to keep.
    pub fn forked(&self, own: Option<Standing>) {
        system::forked();
        let own = own.and_then(|standing| self.known.get(standing.0));
        for known in self.taken() {
            match own {
                Some(own) if core::ptr::eq(own, known) => {
                    known
                        .thread
                        .store(system::thread() as u32, Ordering::Release);
                }
                _ => known.thread.store(FREE, Ordering::Relaxed),
            }
        }
        self.live.forked();
        self.notes.forked();
        self.action.forked();
    }

    /// Handles `SIGSEGV` from now on, in front of what the program has asked for and
    /// will ask for by [`change`](Self::change). Overflows are noted in this profile.
    /// False if that was refused. Not for signal handlers.
    ///
    /// # Safety
    /// The function is `sigaction`, or does what it does; nobody else arms a watch.
    pub unsafe fn arm(&'static self, set_action: SetAction, path: Option<&'static CStr>) -> bool {
        if let Some(path) = path {
            self.path.store(path.as_ptr().cast_mut(), Ordering::Release);
        }
        let mut before = no_action();
        // SAFETY: the C library writes one such structure.
        if unsafe { set_action(libc::SIGSEGV, null(), &mut before) } != 0 {
            return false;
        }
        self.action.store(&before);
        self.set_action
            .store(set_action as *mut c_void, Ordering::Release);
        ARMED.store((&raw const *self).cast_mut(), Ordering::Release);
        // SAFETY: the action is that of the program.
        unsafe { self.install(&before) == 0 }
    }

    /// Notes overflows in this profile from now on. It keeps the text, for good if it is
    /// another one than before.
    pub(super) fn note_in(&self, path: &CStr) {
        // SAFETY: null is none, and a text that is stored stays.
        let before = unsafe { self.path.load(Ordering::Relaxed).as_ref() };
        // SAFETY: the same.
        if before.is_some_and(|it| unsafe { CStr::from_ptr(it) } == path) {
            return;
        }
        if let Ok(kept) = crate::kernel::keep(path.to_bytes()) {
            self.path.store(kept.as_ptr().cast_mut(), Ordering::Release);
        }
    }

    /// Whether overflows of stacks are seen: it is armed, and the program has no handler
    /// that must not run on an alternate stack.
    pub fn sees_overflows(&self) -> bool {
        self.set_action().is_some() && is_before(&self.action.load())
    }

    /// What the program's `sigaction(SIGSEGV, …)` does, and answers; none before it is
    /// armed. As there, of two threads that call it at once the later one wins.
    ///
    /// # Safety
    /// As `sigaction`: each is null, or points at such a structure.
    pub unsafe fn change(
        &self,
        new: *const libc::sigaction,
        old: *mut libc::sigaction,
    ) -> Option<c_int> {
        self.set_action()?;
        let before = self.action.load();
        // SAFETY: the caller's. They may be the same, so one is read before the other
        // is written.
        if let Some(new) = unsafe { new.as_ref() }.copied() {
            self.action.store(&new);
            // SAFETY: the action is that of the program.
            let said = unsafe { self.install(&new) };
            if said != 0 {
                self.action.store(&before);
                return Some(said);
            }
        }
        // SAFETY: the caller's.
        if let Some(old) = unsafe { old.as_mut() } {
            *old = before;
        }
        Some(0)
    }

    fn set_action(&self) -> Option<SetAction> {
        let function = self.set_action.load(Ordering::Acquire);
        // SAFETY: null is none, and nothing else than such a function was stored.
        unsafe { core::mem::transmute::<*mut c_void, Option<SetAction>>(function) }
    }

    /// Puts the handler before the program's action, or steps aside.
    ///
    /// # Safety
    /// The action can be installed.
    unsafe fn install(&self, action: &libc::sigaction) -> c_int {
        let Some(set_action) = self.set_action() else {
            return -1;
        };
        let mut installed = *action;
        if is_before(action) {
            installed.sa_sigaction = handle as Handler as usize;
            installed.sa_flags &= libc::SA_NODEFER | libc::SA_RESTART;
            installed.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
        }
        // SAFETY: the caller's; the handler is one.
        unsafe { set_action(libc::SIGSEGV, &installed, null_mut()) }
    }

    /// Lets the kernel do what the program has asked for.
    fn give_back(&self) {
        if let Some(set_action) = self.set_action() {
            // SAFETY: the action is the one that the program has set.
            unsafe { set_action(libc::SIGSEGV, &self.action.load(), null_mut()) };
        }
    }

    /// The stack of this thread, if the address is in its guard page, or where it could not
    /// grow.
    fn hit(&self, address: u64) -> Option<&Known> {
        let thread = system::thread() as u32;
        let arena = self.arena();
        let is_hit = |stack: Stack| {
            stack.is_guard(address) || arena.is_some_and(|it| it.is_below(&stack, address))
        };
        let mut taken = self.taken().iter();
        taken.find(|it| it.thread.load(Ordering::Acquire) == thread && is_hit(it.stack()))
    }

    /// A stack as it is now, which may have grown.
    fn now(&self, stack: Stack) -> Stack {
        self.arena().and_then(|it| it.now(&stack)).unwrap_or(stack)
    }

    fn report(&self, known: &Known) {
        let bytes = self.now(known.stack()).bytes();
        let thread = known.thread.load(Ordering::Relaxed);
        let (key, role) = match known.seat() {
            Some(seat) => {
                self.live.overflows(seat, bytes);
                self.live
                    .key(seat)
                    .map_or((None, Name::NONE), |(key, role)| (Some(key), role))
            }
            None => (None, Name::NONE),
        };
        let mut text = Text::<512>::of(format_args!("milieu: thread {thread} "));
        if !role.is_empty() {
            text.push(b"`");
            text.push(role.as_bytes());
            text.push(b"` ");
        }
        text.push(
            Text::<64>::of(format_args!("has overflowed its stack of {bytes} bytes")).as_bytes(),
        );
        if let Some(key) = key {
            text.push(
                Text::<256>::of(format_args!("; its size is not tuned again: {key}")).as_bytes(),
            );
        }
        text.push(b"\n");
        self.complain(text.as_bytes());
        // SAFETY: null is none, and whoever armed the watch keeps the text.
        let path = unsafe {
            self.path
                .load(Ordering::Acquire)
                .as_ref()
                .map(|it| CStr::from_ptr(it))
        };
        let (Some(key), Some(path)) = (key, path) else {
            return;
        };
        let overflow = Entry {
            overflow_bytes: bytes.max(1),
            role,
            ..Entry::new(key)
        };
        const PATIENCE_MILLISECONDS: u32 = 2000;
        if let Err(error) = append(path, PATIENCE_MILLISECONDS, &overflow) {
            let text = Text::<512>::of(format_args!("milieu: that is not noted: {error}\n"));
            self.complain(text.as_bytes());
        }
    }
}

/// Whether the handler may stand before this action of the program.
fn is_before(action: &libc::sigaction) -> bool {
    let is_function = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
    !is_function || action.sa_flags & libc::SA_ONSTACK != 0
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The handler. It leaves `errno` as it was.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: what is stored stays for as long as the process lives.
    let Some(watch) = (unsafe { ARMED.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    // SAFETY: the kernel hands over such a description.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize as u64) };
    // Otherwise somebody has sent the signal.
    let is_fault = code > 0;
    if let Some(known) = watch.hit(address).filter(|_| is_fault) {
        if !known.is_reported.swap(true, Ordering::Relaxed) {
            watch.report(known);
        }
        watch.give_back();
        return;
    }
    let mut action = watch.action.load();
    match action.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // A fault happens again; a signal that was sent is sent again.
            watch.give_back();
            if !is_fault {
                let (process, thread) = (system::process(), system::thread());
                // SAFETY: the kernel reads the description that it has handed over.
                unsafe {
                    libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info)
                };
            }
        }
        function => {
            if action.sa_flags & libc::SA_RESETHAND != 0 {
                action.sa_sigaction = libc::SIG_DFL;
                watch.action.store(&action);
            }
            if action.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: the program says that it is such a function.
                let function: Handler = unsafe { core::mem::transmute(function) };
                function(signal, info, context);
            } else {
                // SAFETY: the program says that it is such a function.
                let function: extern "C" fn(c_int) = unsafe { core::mem::transmute(function) };
                function(signal);
            }
        }
    }
}

/// An alternate signal stack of this thread, until it is dropped.
#[derive(Debug)]
pub struct AlternateStack {
    start: *mut c_void,
}

impl AlternateStack {
    /// What it must have: the kernel's part for two signals, one within the other, and
    /// enough for a handler.
    pub fn bytes() -> usize {
        const HANDLER: u64 = 16 << 10;
        (2 * signal_bytes() + HANDLER) as usize
    }

    /// Gives this thread an alternate stack; none if it has one, or this is too small.
    ///
    /// # Safety
    /// The memory stays and is nobody else's until what this returns is dropped, which
    /// happens in the same thread.
    pub unsafe fn enter(memory: &mut [MaybeUninit<u8>]) -> Option<Self> {
        if memory.len() < Self::bytes() {
            return None;
        }
        let wanted = libc::stack_t {
            ss_sp: memory.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: memory.len(),
        };
        // SAFETY: the memory is the thread's for as long as it is its alternate stack.
        let before = unsafe { exchange(Some(&wanted)) }?;
        if before.ss_flags & libc::SS_DISABLE == 0 {
            // SAFETY: it was this thread's.
            unsafe { exchange(Some(&before)) };
            return None;
        }
        Some(Self {
            start: wanted.ss_sp,
        })
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        let none = libc::stack_t {
            ss_flags: libc::SS_DISABLE,
            ..no_stack()
        };
        // SAFETY: none is needed any more.
        let now = unsafe { exchange(Some(&none)) };
        // The program may have put its own in the place.
        if let Some(theirs) = now.filter(|it| it.ss_sp != self.start) {
            // SAFETY: it was this thread's.
            unsafe { exchange(Some(&theirs)) };
        }
    }
}

/// Gives this thread another alternate stack, or leaves it the one that it has: what it
/// had, unless that was refused.
///
/// # Safety
/// The memory is nobody else's for as long as it is the alternate stack.
pub(super) unsafe fn exchange(wanted: Option<&libc::stack_t>) -> Option<libc::stack_t> {
    let mut before = no_stack();
    // The way back to it has no bits that only an answer has.
    let wanted = wanted.map(|it| libc::stack_t {
        ss_flags: it.ss_flags & libc::SS_DISABLE,
        ..*it
    });
    let wanted = wanted.as_ref().map_or(null(), core::ptr::from_ref);
    // SAFETY: the caller's; the kernel reads one such structure, if any, and writes one.
    let said = unsafe { libc::sigaltstack(wanted, &mut before) };
    (said == 0).then_some(before)
}

fn no_stack() -> libc::stack_t {
    libc::stack_t {
        ss_sp: null_mut(),
        ss_flags: 0,
        ss_size: 0,
    }
}
