//! The kit within one program: its threads' table, the mediator, and a rung.
//!
//! This is what a preload, a C library or a typed interface calls when threads
//! begin, end, wait, or are told something. Nothing here allocates but in
//! [`Program::start`], which asks the system for memory once; nothing is a
//! cancellation point, `errno` stays, and what a thread may have to wait for is a
//! lock whose owner inherits its priority. Nobody has that lock, or waits for it, while it
//! is lazy: a lazy thread returns before, and goes back by itself when it has let it go.
//! Only where lazy threads cannot return, one has it as it is.
//!
//! What the kernel refuses for one thread ([`Program::refused`]) leaves it where
//! it is; the program never fails by being mediated.
//!
//! A thread in another region than its own keeps what the program wants of it in
//! its line of the table, so the program's wishes ([`Program::wish`]) take effect
//! when it returns, and so does everything it had.

mod fork;
mod rests;
mod visits;
mod wishes;

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::attributes::{Attributes, Role};
use crate::kernel::{self, Errno, call};
use crate::lock::{Once, PriorityMutex};
use crate::mediator::{Action, Kind, Machine, Node, Placement, Settings, Watch};
use crate::promise::Promise;
use crate::rung::guard::{self, Guard};
use crate::rung::scheduling::Haste;
use crate::rung::{self, Means, Obstacle, Return, Rung, scheduling};
use crate::table::{Entry, Region, Scheduling, Slot, Table, TableError};
use crate::visit::{self, Put, Visitor};

/// Why a program cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartError {
    /// The system has refused memory.
    Memory(Errno),
    /// The rung does not work here.
    Rung(Rung, Obstacle),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Memory(error) => {
                write!(f, "no memory for the thread information table: {error}")
            }
            StartError::Rung(rung, obstacle) => write!(f, "{rung}: {obstacle}"),
        }
    }
}

impl core::error::Error for StartError {}

/// A program whose threads have attributes and are mediated.
pub struct Program {
    table: Table,
    state: PriorityMutex<State>,
    /// Set by who has the lock, and there for as long as this is.
    means: Once<Means>,
    /// Nobody is moved any more.
    is_over: AtomicBool,
    /// Nobody is moved for the time being.
    is_resting: AtomicBool,
    refused: AtomicU32,
    /// Why the last time, or 0.
    refused_last: AtomicI32,
    /// How many have ended without telling the mediator, as they were lazy for ever.
    untold: AtomicU32,
}

struct State {
    machine: Machine<'static>,
    guard: Option<Guard>,
    /// Somebody was moved who was about to make itself lazy.
    is_doubtful: bool,
    /// What there is to know of a thread that forks, and whether it visits.
    forking: Option<(Slot, Entry)>,
    forking_visitor: Option<Visitor>,
    /// When critical threads were looked at last.
    observed_ns: u64,
    /// The machine's memory, given back after it.
    _nodes: Nodes,
}

/// Whoever moves so many threads does so in haste.
const MANY: u32 = 4;

/// How often critical threads are looked at in a turn, at most.
const OBSERVING_NS: u64 = 50_000_000;

impl Program {
    /// Serves a program of at least so many threads, of which none is known yet.
    /// Without a rung threads are listed and not mediated, until
    /// [`Program::mediate`]. `tell` hears of critical threads that have run away in
    /// real time, in a signal handler on that thread.
    ///
    /// # Errors
    /// If there is no memory, or if the rung does not work.
    pub fn start(
        threads: u32,
        rung: Option<Rung>,
        settings: Settings,
        tell: fn(u32),
    ) -> Result<Program, StartError> {
        let table = Table::new(threads).map_err(StartError::Memory)?;
        let nodes = Nodes::new(table.lines().capacity()).map_err(StartError::Memory)?;
        // SAFETY: the machine is the only one that has it, and goes first.
        let mut machine = Machine::new(unsafe { nodes.all() }, settings);
        // Nobody is put anywhere without means.
        machine.set_open(false, &mut |_| ());
        let program = Program {
            table,
            state: PriorityMutex::new(State {
                machine,
                guard: None,
                is_doubtful: false,
                forking: None,
                forking_visitor: None,
                observed_ns: 0,
                _nodes: nodes,
            }),
            means: Once::new(),
            is_over: AtomicBool::new(false),
            is_resting: AtomicBool::new(false),
            refused: AtomicU32::new(0),
            refused_last: AtomicI32::new(0),
            untold: AtomicU32::new(0),
        };
        if let Some(rung) = rung {
            program.mediate(rung, tell)?;
        }
        Ok(program)
    }

    /// Mediates a program that was started without a rung. Where lazy threads cannot
    /// return, those that have begun before stay where they are.
    ///
    /// # Errors
    /// If the rung does not work, or if it is mediated, or was until [`Program::stop`].
    pub fn mediate(&self, rung: Rung, tell: fn(u32)) -> Result<Return, StartError> {
        let refused = |obstacle| StartError::Rung(rung, obstacle);
        let busy = |error| refused(Obstacle::Refused(error));
        let mut state = self.visit().map_err(busy)?;
        if self.means.get().is_some() {
            return Err(busy(Errno(libc::EBUSY)));
        }
        let means = Means::open(rung).map_err(refused)?;
        if rung == Rung::Realtime {
            let microseconds = state.machine.settings().spin_ns_max / 1000;
            let guard = Guard::new(microseconds, tell);
            state.guard = Some(guard.map_err(|error| refused(Obstacle::NoGuard(error)))?);
        }
        let returns = means.returns();
        state.machine.set_returns(returns != Return::Never);
        state.machine.set_makes_way(rung::makes_way(rung));
        // SAFETY: this thread has the lock.
        unsafe { self.means.set(means) };
        for (slot, entry) in self.table.lines().iter() {
            let kind = self.kind_of(&entry);
            state.machine.set_kind(slot, kind, &mut |_| ());
        }
        drop(state);
        self.tell(|machine, out| machine.set_open(true, out));
        Ok(returns)
    }

    /// What is known of its threads.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// By which means its threads are mediated, and whether they return.
    #[must_use]
    pub fn rung(&self) -> Option<(Rung, Return)> {
        let means = self.means()?;
        Some((means.rung(), means.returns()))
    }

    /// How often the kernel has refused to put a thread where it belongs, and why
    /// the last time. Threads that have ended meanwhile do not count.
    #[must_use]
    pub fn refused(&self) -> (u32, Option<Errno>) {
        let last = self.refused_last.load(Ordering::Relaxed);
        let last = (last != 0).then_some(Errno(last));
        (self.refused.load(Ordering::Relaxed), last)
    }

    /// A thread begins, best told by itself before anything else of it runs; or
    /// one is found that has begun before. `is_excluded` leaves it alone for ever.
    ///
    /// # Errors
    /// If it cannot be listed; it is not mediated then.
    pub fn began(
        &self,
        identity: u64,
        tid: u32,
        attributes: &Attributes,
        is_excluded: bool,
    ) -> Result<Slot, TableError> {
        self.began_by(None, identity, tid, attributes, is_excluded)
    }

    /// As [`Program::began`], of a thread that another has begun which had this for
    /// its [own](Program::own) right before: what a new thread has inherited from one
    /// that the mediator has put elsewhere is not what it returns to.
    ///
    /// # Errors
    /// As there.
    pub fn began_by(
        &self,
        creator: Option<Scheduling>,
        identity: u64,
        tid: u32,
        attributes: &Attributes,
        is_excluded: bool,
    ) -> Result<Slot, TableError> {
        let me = kernel::thread_id();
        let list = |it| {
            let attributes = *attributes;
            let slot = self.table.lines().insert(Entry { attributes, ..it })?;
            Ok((slot, attributes))
        };
        let (slot, _) = self.begin(me, creator, identity, tid, is_excluded, list)?;
        Ok(slot)
    }

    /// As [`Program::began_by`], of the thread that tells, which knows its number and is for
    /// what was promised: for what, in the end.
    ///
    /// # Errors
    /// As there.
    pub fn begins(
        &self,
        creator: Option<Scheduling>,
        identity: u64,
        tid: u32,
        promise: &Promise,
        is_excluded: bool,
    ) -> Result<Attributes, TableError> {
        // From then on whoever says what it is for finds it listed.
        let list = |it| {
            promise.close(|said| {
                let attributes = *said;
                let slot = self.table.lines().insert(Entry { attributes, ..it })?;
                Ok((slot, attributes))
            })
        };
        let (_, said) = self.begin(tid, creator, identity, tid, is_excluded, list)?;
        Ok(said)
    }

    /// Lists a thread with attributes that `list` knows, and mediates it.
    fn begin(
        &self,
        me: u32,
        creator: Option<Scheduling>,
        identity: u64,
        tid: u32,
        is_excluded: bool,
        list: impl FnOnce(Entry) -> Result<(Slot, Attributes), TableError>,
    ) -> Result<(Slot, Attributes), TableError> {
        let means = self.means();
        // While nobody is mediated, nobody needs to know.
        let here = match means {
            Some(_) => scheduling::of(tid).unwrap_or_default(),
            None => Scheduling::default(),
        };
        let is_self = tid == me;
        let (own, mut from) = match creator {
            Some(own) if means.is_some_and(|it| it.is_inherited(tid, &here, &own)) => {
                (own.handed_on(), Region::Lazy)
            }
            // From a critical one it has another nice value, or has lost a policy.
            Some(own) if is_handed_on(&own) && scheduling::set(tid, &own).is_ok() => {
                (own, Region::Own)
            }
            _ => (here, Region::Own),
        };
        if let Some(means) = means.filter(|_| is_self && from == Region::Lazy) {
            let returned = means.apply(tid, Placement::Lazy, Placement::Own, &own);
            if returned.is_ok() {
                from = Region::Own;
            }
        }
        let is_visiting = is_self && means.is_some() && from == Region::Own;
        let (slot, attributes) = list(Entry {
            own,
            region: from,
            is_excluded,
            is_visiting,
            created_us: kernel::boot_time_ns() / 1000,
            ..Entry::of(identity, tid, Attributes::default())
        })?;
        let visitor = is_visiting.then_some(Visitor {
            identity,
            slot,
            tid,
            has_come: false,
        });
        let visit = match visitor {
            Some(visitor) => self.visit_as(Some(visitor), tid),
            None => self.visit_by(me),
        };
        if let Ok(mut visit) = visit {
            // Whoever has said something of it since it is listed was too early here.
            let entry = self.means().and_then(|_| self.table.lines().at(slot).ok());
            let kind = match (entry, means) {
                (Some(entry), Some(_)) => kind(entry.is_excluded, &entry.own, &entry.attributes),
                // Threads are mediated since.
                (Some(entry), None) => self.kind_of(&entry),
                (None, _) => kind(is_excluded, &own, &attributes),
            };
            visit.apply(self, |machine, out| match is_visiting {
                true => machine.add_visiting(slot, tid, kind, out),
                false => machine.add_from(slot, tid, kind, from, out),
            });
        }
        Ok((slot, attributes))
    }

    /// Asks the kernel how a thread is scheduled that began before anybody was mediated, and
    /// notes it. Whoever calls this has the lock.
    fn kind_of(&self, entry: &Entry) -> Kind {
        let own = scheduling::of(entry.tid).unwrap_or_default();
        let _ = self.table.lines().update(entry.identity, |it| it.own = own);
        kind(entry.is_excluded, &own, &entry.attributes)
    }

    /// Puts a thread or process, which has inherited its place from a thread that the
    /// mediator has put elsewhere, where it would be without.
    ///
    /// # Errors
    /// If there is no way back.
    pub fn bring(&self, tid: u32, own: &Scheduling) -> Result<(), Errno> {
        match self.means() {
            Some(means) => means.apply(tid, Placement::Lazy, Placement::Own, own),
            None => Ok(()),
        }
    }

    /// A thread is about to become another program, or to create a process: it
    /// returns. Or that has failed, or is done, and it goes back to its region.
    pub fn set_away(&self, identity: u64, is_away: bool) {
        let lines = self.table.lines();
        let Ok(entry) = lines.entry(identity) else {
            return;
        };
        let Some(slot) = lines.slot(identity) else {
            return;
        };
        let is_left_alone = entry.is_excluded || scheduling::is_realtime(entry.own.policy);
        self.tell(|machine, out| {
            if is_away || is_left_alone {
                return machine.set_kind(slot, Kind::Excluded, out);
            }
            machine.set_kind(slot, Kind::from(&entry.attributes), out);
            if entry.is_demoted {
                machine.demote(slot, out);
            }
        });
    }

    /// A thread ends, told by itself after everything else of it, or by who knows.
    /// It returns before.
    ///
    /// # Errors
    /// If it was not listed.
    pub fn ended(&self, identity: u64) -> Result<(), TableError> {
        self.ends(identity, kernel::thread_id())
    }

    /// As [`Program::ended`], told by a thread that knows its number.
    ///
    /// # Errors
    /// As there.
    pub fn ends(&self, identity: u64, me: u32) -> Result<(), TableError> {
        let lines = self.table.lines();
        let slot = lines.slot(identity).ok_or(TableError::Unknown)?;
        let is_for_ever = |it: &Means| it.returns() == Return::Never;
        if self.means().is_some_and(is_for_ever) && lines.entry(identity)?.region == Region::Lazy {
            // Nobody is moved by that, and it would have the lock while it is lazy.
            lines.remove(identity)?;
            self.untold.fetch_add(1, Ordering::Release);
            return Ok(());
        }
        if let Ok(mut visit) = self.visit_by(me) {
            visit.apply(self, |machine, out| {
                // It may have something left to do, or go on unlisted.
                machine.set_kind(slot, Kind::Excluded, out);
                machine.remove(slot, out);
            });
        }
        lines.remove(identity).map(|_| ())
    }

    /// Sets what a thread is for, and moves it where that belongs.
    ///
    /// # Errors
    /// If it is not listed, or if its line is being written to.
    pub fn set(&self, identity: u64, to: &Attributes) -> Result<(), TableError> {
        let lines = self.table.lines();
        let (slot, before, was_demoted) = lines.exchange(identity, to)?;
        let is_same = Kind::from(&before) == Kind::from(to);
        if !is_same || was_demoted {
            lines.update(identity, |it| it.is_demoted = false)?;
            self.look_at(slot);
        }
        Ok(())
    }

    /// Leaves a thread alone from now on: it returns, for ever.
    pub fn exclude(&self, identity: u64) {
        let lines = self.table.lines();
        if let Ok(slot) = lines.update(identity, |it| it.is_excluded = true) {
            self.tell(|machine, out| machine.set_kind(slot, Kind::Excluded, out));
        }
    }

    /// Sets what all threads of a role are for, whatever was set for each of them;
    /// the stacks that they asked for stay noted.
    pub fn set_role(&self, role: Role, to: &Attributes) {
        let lines = self.table.lines();
        for (_, entry) in lines.with_role(role) {
            let mut is_new = false;
            let updated = lines.update(entry.identity, |it| {
                let wanted = match it.attributes.stack() {
                    Some(stack) => to.with_stack(stack),
                    None => to.without_stack(),
                };
                // The number may be another thread's by now.
                is_new = it.attributes.role() == role && it.attributes != wanted;
                if is_new {
                    it.attributes = wanted;
                    it.is_demoted = false;
                }
            });
            match updated {
                Ok(slot) if is_new => self.look_at(slot),
                _ => {}
            }
        }
    }

    /// The attributes of a thread have changed.
    fn look_at(&self, slot: Slot) {
        let lines = self.table.lines();
        self.tell(|machine, out| {
            if let Ok(entry) = lines.at(slot) {
                if !machine.is_excluded(slot) {
                    machine.set_kind(slot, Kind::from(&entry.attributes), out);
                }
            }
        });
    }

    /// What a thread is for.
    ///
    /// # Errors
    /// If it is not listed, or if its line is being written to.
    #[inline]
    pub fn get(&self, identity: u64) -> Result<Attributes, TableError> {
        self.table.lines().get(identity)
    }

    /// A thread begins, or ceases, to wait for something that is no lock. Costs
    /// nothing unless threads leave the fast region while they block.
    pub fn set_blocked(&self, identity: u64, is_blocked: bool) {
        let Some(slot) = self.table.lines().slot(identity) else {
            return;
        };
        self.tell(|machine, out| machine.set_blocked(slot, is_blocked, out));
    }

    /// A thread is about to wait for a lock that the thread of this number has, as
    /// [`owner_of`](crate::lock::owner_of) tells: an urgent one lends its priority.
    pub fn waits(&self, identity: u64, owner: u32) {
        let lines = self.table.lines();
        let owner = lines.by_thread_id(owner);
        if let (Some(waiter), Some((owner, _))) = (lines.slot(identity), owner) {
            self.tell(|machine, out| machine.waits(waiter, owner, out));
        }
    }

    /// A thread has got the lock, or waits for it no more.
    pub fn served(&self, identity: u64) {
        if let Some(slot) = self.table.lines().slot(identity) {
            self.tell(|machine, out| machine.served(slot, out));
        }
    }

    /// Time goes on: demotes critical threads that have run away, and gives the
    /// others their turns. To be called about every quarter of a second, and when
    /// it says, by a thread that is excluded.
    pub fn tick(&self, now_ns: u64) -> Option<u64> {
        self.tick_and_tell(now_ns, &mut |_| ())
    }

    /// Whether a thread is in the fast region.
    #[must_use]
    pub fn has_critical(&self) -> bool {
        let state = self.visit();
        state.is_ok_and(|it| it.machine.fast_count() > 0)
    }

    /// Whether turns were too short for all threads that have waited for too long, as
    /// [`Settings::turn_percent_max`] wants it.
    #[must_use]
    pub fn were_turns_too_short(&self) -> bool {
        let state = self.visit();
        state.is_ok_and(|it| it.machine.was_too_short())
    }

    /// As [`Program::tick`], and tells of each that was found to have run away. Who ran
    /// away in real time has been told of before.
    pub fn tick_and_tell(&self, now_ns: u64, tell: &mut dyn FnMut(&Entry)) -> Option<u64> {
        let mut state = self.visit().ok()?;
        let lines = self.table.lines();
        self.make_up(&mut state);
        let mut demoted = [0; 64];
        let noted = state.guard.iter().flat_map(Guard::demoted);
        for (space, tid) in demoted.iter_mut().zip(noted) {
            *space = tid;
        }
        for (slot, entry) in demoted
            .iter()
            .take_while(|it| **it != 0)
            .filter_map(|it| lines.by_thread_id(*it))
        {
            self.note_demotion(&entry);
            state.apply(self, |machine, out| machine.demote(slot, out));
        }
        // In a turn it is called more often than there is something to see.
        let is_seen = state.machine.is_turn() && now_ns < state.observed_ns + OBSERVING_NS;
        if !is_seen {
            state.observed_ns = now_ns;
            self.find_wishes(&mut state);
        }
        // The list changes where somebody is demoted, so it is asked anew each time.
        let mut seen = 0;
        loop {
            let next = state.machine.fast_threads().nth(seen);
            let next = next.filter(|_| !is_seen);
            let Some((slot, tid)) = next else {
                break;
            };
            seen += 1;
            let (cpu, blockings) = (kernel::thread_cpu_ns(tid), kernel::thread_blockings(tid));
            let (Some(cpu), Some(blockings)) = (cpu, blockings) else {
                continue;
            };
            let mut is_demoted = false;
            state.apply(self, |machine, out| {
                is_demoted = machine.observe(slot, cpu, blockings, out);
            });
            if is_demoted {
                seen -= 1;
                if let Ok(entry) = lines.at(slot) {
                    self.note_demotion(&entry);
                    if state.guard.is_none() || guard::note_seen(tid) {
                        tell(&entry);
                    }
                }
            }
        }
        let mut next = None;
        state.apply(self, |machine, out| {
            next = machine.tick(now_ns, &mut OfThisProcess, out);
        });
        next
    }

    fn note_demotion(&self, entry: &Entry) {
        let lines = self.table.lines();
        let _ = lines.update(entry.identity, |it| it.is_demoted = true);
    }

    /// What others could not do, or not to the end.
    fn make_up(&self, state: &mut State) {
        let lines = self.table.lines();
        if self.untold.swap(0, Ordering::Acquire) > 0 {
            let is_there = |slot, tid| lines.at(slot).is_ok_and(|it| it.tid == tid);
            state.apply(self, |machine, out| machine.retain(is_there, out));
        }
        if let Some(means) = self.means().filter(|_| state.is_doubtful) {
            state.is_doubtful = visit::put_again(lines, means);
        }
    }

    /// Lets every thread return, to stay with what the program wants.
    pub fn stop(&self) {
        let Ok(mut state) = self.visit() else {
            return;
        };
        state.apply(self, |machine, out| machine.set_open(false, out));
        // What comes from now on moves nobody. The group goes, and the limit.
        self.is_over.store(true, Ordering::Release);
        state.guard = None;
        if let Some(means) = self.means.get() {
            means.retire();
        }
    }

    fn tell(&self, event: impl FnOnce(&mut Machine<'static>, &mut dyn FnMut(Action))) {
        // It fails in a signal handler that has interrupted just this. Then the
        // table says what the mediator does not know, until the next event.
        if let Ok(mut visit) = self.visit() {
            visit.apply(self, event);
        }
    }

    /// By which means threads are moved, unless they are not.
    fn means(&self) -> Option<&Means> {
        let means = self.means.get()?;
        let is_left = self.is_over.load(Ordering::Acquire) || self.is_resting();
        (!is_left).then_some(means)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    /// Tells the machine of an event and does what it says.
    fn apply(
        &mut self,
        program: &Program,
        event: impl FnOnce(&mut Machine<'static>, &mut dyn FnMut(Action)),
    ) {
        let State {
            machine,
            is_doubtful,
            ..
        } = self;
        let Some(means) = program.means() else {
            return event(machine, &mut |_| ());
        };
        let lines = program.table.lines();
        let (mut count, mut haste) = (0, None::<Haste>);
        event(machine, &mut |action| {
            count += 1;
            if count == MANY {
                haste = Haste::begin();
            }
            let put = visit::put(lines, action, means);
            *is_doubtful |= put == Ok(Put::Doubtful);
            program.note_refusal(put.map(|_| ()));
            // What this thread has now is what it was given.
            if haste.as_ref().is_some_and(|it| it.tid() == action.tid) {
                haste = Haste::begin();
            }
        });
        if let Some(haste) = haste {
            haste.end();
        }
    }
}

/// What the kernel says of threads of this process.
struct OfThisProcess;

impl Watch for OfThisProcess {
    fn takes_ns(&self) -> u64 {
        500
    }

    fn processors(&self) -> u64 {
        kernel::processors()
    }

    fn cpu_ns(&mut self, _: Slot, tid: u32) -> Option<u64> {
        kernel::thread_cpu_ns(tid)
    }

    fn is_runnable(&mut self, _: Slot, tid: u32) -> bool {
        kernel::is_runnable(tid)
    }
}

fn kind(is_excluded: bool, own: &Scheduling, attributes: &Attributes) -> Kind {
    match is_excluded || scheduling::is_realtime(own.policy) {
        true => Kind::Excluded,
        false => Kind::from(attributes),
    }
}

/// Whether new threads have what their creator has.
fn is_handed_on(own: &Scheduling) -> bool {
    !own.is_reset_on_fork && !scheduling::is_realtime(own.policy)
}

/// Memory for the machine's nodes, which the system gives as it is used.
struct Nodes {
    start: NonNull<Node>,
    count: usize,
}

// SAFETY: it is memory, and a machine's alone.
unsafe impl Send for Nodes {}

impl Nodes {
    fn new(count: u32) -> Result<Nodes, Errno> {
        let count = count as usize;
        let start = kernel::memory(count * size_of::<Node>())?.cast();
        Ok(Nodes { start, count })
    }

    /// # Safety
    /// Once, and nobody uses it when this is dropped.
    unsafe fn all(&self) -> &'static mut [Node] {
        // SAFETY: there are as many, aligned to pages; zeros are a node, as it has
        // numbers, flags and a region of which one is 0. The caller answers for the
        // lifetime.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.count) }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let length = self.count * size_of::<Node>();
        let arguments = [self.start.as_ptr() as usize, length, 0, 0, 0, 0];
        // SAFETY: it is ours, and nobody refers to it any more.
        let _ = unsafe { call(libc::SYS_munmap, arguments) };
    }
}
