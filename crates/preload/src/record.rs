//! What is known of each thread that is served, in records that threads take and give
//! back without a lock.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use milieu_threads::attributes::Attributes;
use milieu_threads::kernel::{self, identity};
use milieu_threads::promise::Promise;
use milieu_threads::run::Thread;
use milieu_threads::stack::{AlternateStack, Hint, Known, Peak, Seat, Stack, Standing};
use milieu_threads::table::Scheduling;

use crate::device::{self, Creator};
use crate::real::Start;
use crate::state::{Served, WATCH};
use crate::{growing, key, name};

/// What its creator knows of a thread.
#[derive(Clone, Copy)]
pub struct Birth {
    pub start: Start,
    pub argument: *mut c_void,
    pub attributes: Attributes,
    pub is_excluded: bool,
    /// Whether the program itself has said what it is for; patterns do not count then.
    pub is_said: bool,
    pub seat: Option<Seat>,
    /// Whether its stack is measured when it ends.
    pub is_measured: bool,
    pub asked_bytes: Option<u64>,
    pub guard_bytes: u64,
    /// What its creator wants of itself, if that may be elsewhere.
    pub creator: Option<Scheduling>,
    /// The creator itself, if it hands that on and a mediator of the whole device may have it.
    pub creator_to_tell: Option<Creator>,
    /// The signals that its creator does not take, if another thread creates it for that.
    pub signals: Option<libc::sigset_t>,
}

/// What a thread knows of itself between its begin and its end.
#[derive(Default)]
struct Life {
    /// The kernel's number.
    tid: u32,
    stack: Option<Stack>,
    depth_at_start: u64,
    seat: Option<Seat>,
    is_measured: bool,
    standing: Option<Standing>,
    alternate: Option<AlternateStack>,
    /// How often the destructors of its keys have run.
    rounds: u32,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const BEGUN: u32 = 2;
/// Its thread ends.
const ENDING: u32 = 3;
/// It is measured by whoever ends the process.
const MEASURED: u32 = 4;

/// A thread, or a place for one.
pub struct Record {
    state: AtomicU32,
    /// `pthread_self()`, once it has begun.
    identity: AtomicU64,
    is_said: AtomicBool,
    /// One more than the file by which it is where the program wants it, or 0.
    visit: AtomicI32,
    birth: UnsafeCell<MaybeUninit<Birth>>,
    promise: Promise,
    /// Its thread's alone while it has begun, and of whoever ends the process.
    life: UnsafeCell<MaybeUninit<Life>>,
    alternate: UnsafeCell<*mut c_void>,
    /// The stack that the last thread with this record had; as `life`.
    known: UnsafeCell<Known>,
}

// SAFETY: birth and life are written by whoever has taken the record, before another
// thread reads them; the rest are atomics.
unsafe impl Sync for Record {}

const CHUNK: usize = 64;
const CHUNKS: usize = 256;

/// Threads and their alternate stacks, given by the kernel as they are used.
struct Chunk {
    records: [Record; CHUNK],
}

static ALL: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];

/// Where a place is probably free.
static HINT: AtomicUsize = AtomicUsize::new(0);

/// How many threads there are of which we know.
static LIVING: AtomicU32 = AtomicU32::new(0);

/// How many threads of which we know have not ended.
pub fn living() -> u32 {
    LIVING.load(Ordering::Acquire)
}

fn chunk(number: usize) -> Option<&'static Chunk> {
    let place = ALL.get(number)?;
    let chunk = place.load(Ordering::Acquire);
    if chunk.is_null() {
        return make(place);
    }
    // SAFETY: chunks stay.
    Some(unsafe { &*chunk })
}

#[cold]
fn make(place: &'static AtomicPtr<Chunk>) -> Option<&'static Chunk> {
    let stack = AlternateStack::bytes().next_multiple_of(64);
    let head = size_of::<Chunk>().next_multiple_of(64);
    let memory = kernel::reserve(head + CHUNK * stack).ok()?;
    let chunk = memory.cast::<Chunk>().as_ptr();
    // SAFETY: there is as much, and zeros are records that are free; where their
    // stacks are is written before anybody else sees it.
    unsafe {
        for (index, record) in (*chunk).records.iter().enumerate() {
            let start = memory.as_ptr().cast::<u8>().add(head + index * stack);
            *record.alternate.get() = start.cast();
        }
        let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match place.compare_exchange(null_mut(), chunk, new, failure) {
            Ok(_) => Some(&*chunk),
            Err(other) => {
                kernel::release(memory, head + CHUNK * stack);
                Some(&*other)
            }
        }
    }
}

/// All records that there are.
fn all() -> impl Iterator<Item = &'static Record> {
    let chunks = ALL.iter().map(|it| it.load(Ordering::Acquire));
    // SAFETY: chunks stay.
    let chunks = chunks.map_while(|it| unsafe { it.as_ref() });
    chunks.flat_map(|it| &it.records)
}

/// A record for a thread that is about to be created; none where there are too many.
pub fn take(birth: Birth) -> Option<&'static Record> {
    let hint = HINT.load(Ordering::Relaxed) % (CHUNK * CHUNKS);
    for step in 0..CHUNK * CHUNKS {
        // From the hint on, and then from the first one on, so that few are touched.
        let at = if step < CHUNK {
            (hint + step) % (CHUNK * CHUNKS)
        } else {
            step - CHUNK
        };
        let record = chunk(at / CHUNK)?.records.get(at % CHUNK)?;
        if record.becomes(FREE, TAKEN) {
            // SAFETY: it was free, so nobody else reads or writes it.
            unsafe { (*record.birth.get()).write(birth) };
            record.is_said.store(birth.is_said, Ordering::Relaxed);
            record.promise.begin(&birth.attributes);
            LIVING.fetch_add(1, Ordering::AcqRel);
            return Some(record);
        }
    }
    None
}

/// The record of a thread of which its identity is known.
pub fn of(identity: u64) -> Option<&'static Record> {
    all().find(|it| it.is_of(identity))
}

/// What a thread will be for that has not begun, of which its identity is known.
pub fn promised<R>(identity: u64, look: impl Fn(&Record, &mut Attributes) -> R) -> Option<R> {
    all().find_map(|record| record.promise.of(identity, |it| look(record, it)))
}

impl Record {
    /// What becomes of it before it begins.
    pub fn promise(&self) -> &Promise {
        &self.promise
    }

    /// What its creator knows of it.
    pub fn birth(&self) -> Birth {
        // SAFETY: whoever has a record has it from `take`, which wrote that.
        unsafe { (*self.birth.get()).assume_init() }
    }

    /// The program itself has said what it is for.
    pub fn is_said(&self) -> bool {
        self.is_said.load(Ordering::Relaxed)
    }

    /// Patterns do not count any more.
    pub fn set_said(&self) {
        self.is_said.store(true, Ordering::Relaxed);
    }

    /// Whether it is that of a thread which has begun and not ended.
    pub fn is_of(&self, identity: u64) -> bool {
        let is_begun = self.state.load(Ordering::Acquire) == BEGUN;
        is_begun && self.identity.load(Ordering::Relaxed) == identity
    }

    /// The kernel's number of its thread, which asks; 0 before it has begun.
    pub fn tid(&self) -> u32 {
        match self.state.load(Ordering::Acquire) {
            // SAFETY: it has begun, and its thread calls this.
            BEGUN | MEASURED => unsafe { (*self.life.get()).assume_init_ref().tid },
            _ => 0,
        }
    }

    /// Whether its thread has asked to be where the program wants it.
    pub fn is_visiting(&self) -> bool {
        self.visit.load(Ordering::Relaxed) != 0
    }

    /// Its thread is there until this file is closed.
    pub fn begin_visit(&self, file: c_int) {
        self.visit.store(file.wrapping_add(1), Ordering::Relaxed);
    }

    /// It goes back, if it is there.
    pub fn end_visit(&self) {
        let file = self.visit.swap(0, Ordering::Relaxed);
        if file != 0 {
            device::close(file.wrapping_sub(1));
        }
    }

    /// Nobody needs it: its thread was not created, or has ended. True if that was the
    /// last of which we know.
    pub fn give_back(&'static self) -> bool {
        self.promise.end();
        self.state.store(FREE, Ordering::Release);
        LIVING.fetch_sub(1, Ordering::AcqRel) == 1
    }

    fn becomes(&self, from: u32, to: u32) -> bool {
        let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let exchanged = self.state.compare_exchange(from, to, new, failure);
        exchanged.is_ok()
    }

    /// What its creator has asked for instead.
    pub fn set_asked(&self, bytes: u64, guard_bytes: u64) {
        // SAFETY: its thread has not been created yet, so it is its creator's.
        let birth = unsafe { (*self.birth.get()).assume_init_mut() };
        birth.asked_bytes = Some(bytes);
        birth.guard_bytes = guard_bytes;
    }

    /// Another thread creates it, which takes other signals than the one that wants it.
    pub fn set_signals(&self, signals: libc::sigset_t) {
        // SAFETY: as in `set_asked`.
        unsafe { (*self.birth.get()).assume_init_mut().signals = Some(signals) };
    }

    #[allow(clippy::mut_from_ref, reason = "it is its thread's alone")]
    fn life(&self) -> &mut MaybeUninit<Life> {
        // SAFETY: only its thread calls this while it lives, one thing at a time.
        unsafe { &mut *self.life.get() }
    }

    /// Its thread begins, and calls this before anything else of it runs.
    pub fn begin(&'static self, served: &Served, birth: &Birth) {
        let (identity, tid) = (identity(), served.own_number());
        self.identity.store(identity, Ordering::Relaxed);
        let life = self.life().write(Life {
            tid,
            seat: birth.seat,
            ..Life::default()
        });
        let program = &served.program;
        let listed = program.begins(
            birth.creator,
            identity,
            tid,
            &self.promise,
            birth.is_excluded,
        );
        if let Some(creator) = &birth.creator_to_tell {
            device::begun(served, tid, creator);
        }
        if served.settings.stacks.mode.learns() {
            self.begin_learning(served, life, birth);
        }
        self.state.store(BEGUN, Ordering::Release);
        if let Ok(said) = listed {
            served.notices(&said);
        }
        name::begun(served, identity);
    }

    fn begin_learning(&self, served: &Served, life: &mut Life, birth: &Birth) {
        let local = 0_u8;
        let address = (&raw const local) as usize as u64;
        let hint = Hint {
            descriptor: Some(identity()),
            asked_bytes: birth.asked_bytes,
        };
        // SAFETY: only its thread uses this, and here alone.
        let known = unsafe { &mut *self.known.get() };
        let guard_bytes = birth.guard_bytes;
        let again = known.again(hint, guard_bytes);
        let found = match again.filter(|_| known.was_ample()) {
            Some(stack) => Some((stack, 0)),
            None => served.measure(life.tid, |process| {
                let stack = match (again, birth.asked_bytes) {
                    (Some(stack), _) => stack,
                    (None, Some(_)) => process.stack_again(address, hint, guard_bytes, known)?,
                    (None, None) => process.stack_around(address, hint)?,
                };
                Ok((stack, process.depth_at_start(&stack)?))
            }),
        };
        let Some((stack, depth)) = found else {
            return;
        };
        life.is_measured = birth.is_measured;
        life.stack = Some(stack);
        life.depth_at_start = depth;
        let (me, number) = (identity(), life.tid as c_int);
        life.standing = WATCH.enter(number, me, &stack, depth, birth.seat);
        let lines = served.program.table().lines();
        let used = depth.max(stack.high.saturating_sub(address));
        let _ = lines.note_stack(me, kib(stack.bytes()), kib(used));
        if life.standing.is_some() && WATCH.sees_overflows() {
            // SAFETY: the record has this memory, and this thread the record, until it
            // ends; nobody else uses it.
            life.alternate = unsafe {
                let start = (*self.alternate.get()).cast::<MaybeUninit<u8>>();
                let bytes = AlternateStack::bytes();
                AlternateStack::enter(core::slice::from_raw_parts_mut(start, bytes))
            };
        }
    }

    /// Destructors of its keys run. Ours, which is among the first, wants to be the
    /// last: true if it is to be called again.
    pub fn is_to_wait(&self) -> bool {
        const ROUNDS: u32 = 4;
        if !key::has_others() {
            return false;
        }
        // SAFETY: it has begun, and its thread calls this.
        let life = unsafe { self.life().assume_init_mut() };
        // A sanitizer's destructor, in the last round, gives back whatever memory is there.
        drop(life.alternate.take());
        life.rounds += 1;
        life.rounds < ROUNDS
    }

    /// Its thread ends, and calls this after everything else of it. True if it was the
    /// last of which we know.
    pub fn end(&'static self, served: &Served) -> bool {
        while !self.becomes(BEGUN, ENDING) {
            // The process ends in a moment, and looks at this before.
            kernel::sleep_ns(100_000);
        }
        // SAFETY: it has begun, and its thread calls this.
        let life = unsafe { self.life().assume_init_mut() };
        let (identity, me) = (identity(), life.tid);
        growing::ends(me);
        self.end_visit();
        let attributes = served.program.get(identity).unwrap_or_default();
        let _ = served.program.ends(identity, me);
        if attributes != Attributes::default() {
            device::tell(served);
        }
        if life.is_measured {
            self.measure(served, me);
        }
        // SAFETY: as before.
        let life = unsafe { self.life().assume_init_mut() };
        if let Some(standing) = life.standing.take() {
            WATCH.leave(standing);
        }
        drop(life.alternate.take());
        self.give_back()
    }

    /// Takes how deep its stack was; by its thread, or while the process ends. `me` is the
    /// number of who does. The thread's number, and how deep it was.
    fn measure(&self, served: &Served, me: u32) -> Option<(u32, u64)> {
        // SAFETY: it has begun. Its thread calls this, or the process ends, when what
        // is read here does not change any more.
        let life = unsafe { (*self.life.get()).assume_init_ref() };
        let as_it_is = life.standing.and_then(|it| WATCH.stack(it));
        let stack = as_it_is.or(life.stack)?;
        let depth = served.measure(me, |it| it.depth(&stack))?;
        // SAFETY: as for its life.
        unsafe { (*self.known.get()).ends(&stack, depth) };
        let peak = Peak::between(life.depth_at_start, depth, stack.bytes());
        let bytes = peak.bytes()?;
        if let Some(seat) = life.seat {
            WATCH.measures(seat, peak);
        }
        Some((life.tid, bytes))
    }
}

/// Threads that have not ended when the process does: how deep they were so far.
pub fn measure_all(served: &Served) {
    let me = kernel::thread_id();
    // Whoever is just beginning has nothing yet, and whoever ends does it itself.
    for record in all().filter(|it| it.becomes(BEGUN, MEASURED)) {
        if let Some((tid, bytes)) = record.measure(served, me) {
            // Whoever looks at the table may do so when the process has gone.
            note_peak(served, record.identity.load(Ordering::Relaxed), tid, bytes);
        }
        record.state.store(BEGUN, Ordering::Release);
    }
}

/// The thread that the program began with.
pub fn begin_main(served: &Served) {
    extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
        null_mut()
    }
    let rule = served.rule(&Thread {
        number: Some(0),
        name: own_name(&mut [0; 16]),
        start: None,
    });
    let birth = Birth {
        start: nothing,
        argument: null_mut(),
        attributes: rule.map_or(Attributes::default(), |it| it.attributes),
        is_excluded: rule.is_some_and(|it| it.is_excluded),
        is_said: false,
        seat: None,
        is_measured: false,
        asked_bytes: None,
        guard_bytes: 0,
        creator: None,
        creator_to_tell: None,
        signals: None,
    };
    let Some(record) = take(birth) else {
        return;
    };
    record.identity.store(identity(), Ordering::Relaxed);
    let (is_excluded, tid) = (birth.is_excluded, kernel::thread_id());
    record.life().write(Life {
        tid,
        ..Life::default()
    });
    record.state.store(BEGUN, Ordering::Release);
    record.promise.close(|_| ());
    let _ = served
        .program
        .began(identity(), tid, &birth.attributes, is_excluded);
    crate::state::set_own_record(served, record);
}

/// The name of this thread.
pub fn own_name(space: &mut [u8; 16]) -> Option<&[u8]> {
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, space.as_mut_ptr()) };
    let end = space.iter().position(|it| *it == 0)?;
    space.get(..end)
}

/// In the child of `fork`, which has one thread: where that stands.
pub fn after_fork(served: &Served) -> Option<Standing> {
    let own = crate::state::own_record(served);
    for record in all() {
        if !own.is_some_and(|it| core::ptr::eq(it, record)) {
            record.promise.forked();
            record.state.store(FREE, Ordering::Relaxed);
        }
    }
    LIVING.store(u32::from(own.is_some()), Ordering::Relaxed);
    // SAFETY: it has begun, and this is its thread.
    let life = own.map(|it| unsafe { it.life().assume_init_mut() })?;
    life.tid = kernel::thread_id();
    life.standing
}

/// A thread that runs was so deep: the table says so.
pub fn note_peak(served: &Served, identity: u64, tid: u32, bytes: u64) {
    let lines = served.program.table().lines();
    // Who has no line is not told of.
    let _ = lines.note_peak(identity, tid, kib(bytes));
}

fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}
