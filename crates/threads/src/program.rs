//! The kit within one program: its threads' table, the mediator, and a rung.
//!
//! This is what a preload, a C library or a typed interface calls when threads
//! begin, end, wait, or are told something. Nothing here allocates but in
//! [`Program::start`], which asks the system for memory once; nothing is a
//! cancellation point, `errno` stays, and what a thread may have to wait for is a
//! lock whose owner inherits its priority.
//!
//! What the kernel refuses for one thread ([`Program::refused`]) leaves it where
//! it is; the program never fails by being mediated.
//!
//! A thread in another region than its own keeps what the program wants of it in
//! its line of the table, so the program's wishes ([`Program::wish`]) take effect
//! when it returns, and so does everything it had.

use core::fmt;
use core::ptr::NonNull;

use crate::attributes::{Attributes, Role};
use crate::kernel::{self, Errno, call};
use crate::lock::PriorityMutex;
use crate::mediator::{Action, Kind, Machine, Node, Placement, Settings, Watch};
use crate::rung::guard::Guard;
use crate::rung::{Means, Obstacle, Return, Rung, scheduling};
use crate::table::{Entry, Lines, Region, Scheduling, Slot, Table, TableError};

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
}

struct State {
    machine: Machine<'static>,
    means: Option<Means>,
    guard: Option<Guard>,
    refused: u32,
    refused_last: Option<Errno>,
    /// What there is to know of a thread that forks.
    forking: Option<(Slot, Entry)>,
    /// When critical threads were looked at last.
    observed_ns: u64,
    /// The machine's memory, given back after it.
    _nodes: Nodes,
}

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
                means: None,
                guard: None,
                refused: 0,
                refused_last: None,
                forking: None,
                observed_ns: 0,
                _nodes: nodes,
            }),
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
    /// If the rung does not work, or if it is mediated.
    pub fn mediate(&self, rung: Rung, tell: fn(u32)) -> Result<Return, StartError> {
        let refused = |obstacle| StartError::Rung(rung, obstacle);
        let busy = |error| refused(Obstacle::Refused(error));
        let mut state = self.state.lock().map_err(busy)?;
        if state.means.is_some() {
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
        state.means = Some(means);
        let lines = self.table.lines();
        state.apply(lines, |machine, out| machine.set_open(true, out));
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
        let state = self.state.lock().ok()?;
        let means = state.means.as_ref()?;
        Some((means.rung(), means.returns()))
    }

    /// How often the kernel has refused to put a thread where it belongs, and why
    /// the last time. Threads that have ended meanwhile do not count.
    #[must_use]
    pub fn refused(&self) -> (u32, Option<Errno>) {
        let state = self.state.lock();
        state.map_or((0, None), |it| (it.refused, it.refused_last))
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
        let here = scheduling::of(tid).unwrap_or_default();
        let (own, from) = match creator {
            Some(own) if self.is_inherited(tid, &here, &own) => (own, Region::Lazy),
            // From a critical one it has another nice value, or has lost a policy.
            Some(own) if is_handed_on(&own) && scheduling::set(tid, &own).is_ok() => {
                (own, Region::Own)
            }
            _ => (here, Region::Own),
        };
        let kind = if is_excluded || scheduling::is_realtime(own.policy) {
            Kind::Excluded
        } else {
            Kind::from(attributes)
        };
        let entry = Entry {
            own,
            region: from,
            is_excluded,
            created_us: kernel::boot_time_ns() / 1000,
            ..Entry::of(identity, tid, *attributes)
        };
        let slot = self.table.lines().insert(entry)?;
        self.tell(|machine, out| machine.add_from(slot, tid, kind, from, out));
        Ok(slot)
    }

    /// Puts a thread or process, which has inherited its place from a thread that the
    /// mediator has put elsewhere, where it would be without.
    ///
    /// # Errors
    /// If there is no way back.
    pub fn bring(&self, tid: u32, own: &Scheduling) -> Result<(), Errno> {
        let state = self.state.lock()?;
        match &state.means {
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

    fn is_inherited(&self, tid: u32, here: &Scheduling, own: &Scheduling) -> bool {
        let state = self.state.lock();
        let means = state.as_ref().ok().and_then(|it| it.means.as_ref());
        means.is_some_and(|it| it.is_inherited(tid, here, own))
    }

    /// A thread ends, told by itself after everything else of it, or by who knows.
    /// It returns before.
    ///
    /// # Errors
    /// If it was not listed.
    pub fn ended(&self, identity: u64) -> Result<(), TableError> {
        let lines = self.table.lines();
        let slot = lines.slot(identity).ok_or(TableError::Unknown)?;
        self.tell(|machine, out| {
            // It may have something left to do, or go on unlisted.
            machine.set_kind(slot, Kind::Excluded, out);
            machine.remove(slot, out);
        });
        lines.remove(identity).map(|_| ())
    }

    /// Sets what a thread is for, and moves it where that belongs.
    ///
    /// # Errors
    /// If it is not listed, or if its line is being written to.
    pub fn set(&self, identity: u64, to: &Attributes) -> Result<(), TableError> {
        let lines = self.table.lines();
        let before = lines.entry(identity)?;
        let slot = lines.set(identity, to)?;
        let is_same = Kind::from(&before.attributes) == Kind::from(to);
        if !is_same || before.is_demoted {
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

    /// The program wants a thread to be scheduled so. In its own region it is so at
    /// once; elsewhere when it returns, and [`Program::own`] says it meanwhile. Who
    /// is to run in real time is left alone while it does.
    ///
    /// # Errors
    /// Why the kernel would refuse it now.
    pub fn wish(&self, identity: u64, wish: Scheduling) -> Result<(), Errno> {
        let lines = self.table.lines();
        let entry = lines.entry(identity).map_err(|_| Errno(libc::ESRCH))?;
        if scheduling::is_realtime(wish.policy) {
            let slot = lines.slot(identity).ok_or(Errno(libc::ESRCH))?;
            self.tell(|machine, out| machine.set_kind(slot, Kind::Excluded, out));
            return scheduling::set(entry.tid, &wish);
        }
        if entry.region == Region::Own {
            let before = scheduling::of(entry.tid)?;
            scheduling::set(entry.tid, &wish)?;
            if scheduling::is_realtime(before.policy) && !entry.is_excluded {
                let slot = lines.slot(identity).ok_or(Errno(libc::ESRCH))?;
                let kind = Kind::from(&entry.attributes);
                self.tell(|machine, out| machine.set_kind(slot, kind, out));
            }
            return Ok(());
        }
        // What it could not have at home it cannot have later either.
        if wish.nice < entry.own.nice && !scheduling::may_have_nice(wish.nice) {
            return Err(Errno(libc::EACCES));
        }
        let updated = lines.update(identity, |it| it.own = wish);
        updated.map(|_| ()).map_err(|_| Errno(libc::EAGAIN))
    }

    /// How the program has its thread scheduled, wherever the mediator has put it.
    ///
    /// # Errors
    /// If it is not listed, or has ended.
    pub fn own(&self, identity: u64) -> Result<Scheduling, Errno> {
        // Nobody is moved meanwhile, except by whom a signal handler has interrupted.
        let _state = self.state.lock();
        let entry = self.table.lines().entry(identity);
        let entry = entry.map_err(|_| Errno(libc::ESRCH))?;
        if entry.region == Region::Own {
            scheduling::of(entry.tid)
        } else {
            Ok(entry.own)
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
        let state = self.state.lock();
        state.is_ok_and(|it| it.machine.fast_count() > 0)
    }

    /// Whether turns were too short for all threads that have waited for too long, as
    /// [`Settings::turn_percent_max`] wants it.
    #[must_use]
    pub fn were_turns_too_short(&self) -> bool {
        let state = self.state.lock();
        state.is_ok_and(|it| it.machine.was_too_short())
    }

    /// As [`Program::tick`], and tells of each that was found to have run away. Who ran
    /// away in real time has been told of before.
    pub fn tick_and_tell(&self, now_ns: u64, tell: &mut dyn FnMut(&Entry)) -> Option<u64> {
        let mut state = self.state.lock().ok()?;
        let lines = self.table.lines();
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
            state.apply(lines, |machine, out| machine.demote(slot, out));
        }
        // In a turn it is called more often than there is something to see.
        let is_seen = state.machine.is_turn() && now_ns < state.observed_ns + OBSERVING_NS;
        if !is_seen {
            state.observed_ns = now_ns;
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
            state.apply(lines, |machine, out| {
                is_demoted = machine.observe(slot, cpu, blockings, out);
            });
            if is_demoted {
                seen -= 1;
                if let Ok(entry) = lines.at(slot) {
                    self.note_demotion(&entry);
                    tell(&entry);
                }
            }
        }
        let mut next = None;
        state.apply(lines, |machine, out| {
            next = machine.tick(now_ns, &mut OfThisProcess, out);
        });
        next
    }

    fn note_demotion(&self, entry: &Entry) {
        let lines = self.table.lines();
        let _ = lines.update(entry.identity, |it| it.is_demoted = true);
    }

    /// Lets every thread return, to stay with what the program wants.
    pub fn stop(&self) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        let lines = self.table.lines();
        state.apply(lines, |machine, out| machine.set_open(false, out));
        // What comes from now on moves nobody. The group goes, and the limit.
        state.means = None;
        state.guard = None;
    }

    /// Before `fork`, by the thread that calls it: waits until nobody is in the middle
    /// of something, and keeps it so.
    pub fn before_fork(&self, identity: u64) {
        // It fails in a signal handler that has interrupted who holds it.
        if let Ok(mut state) = self.state.lock() {
            let lines = self.table.lines();
            let entry = lines.entry(identity).ok();
            state.forking = lines.slot(identity).zip(entry);
            core::mem::forget(state);
        }
    }

    /// After `fork`, in the parent, whether or not there is a child.
    pub fn after_fork_in_parent(&self) {
        self.state.let_go();
    }

    /// After `fork`, in the child, where only this thread is left: the table is its
    /// own, and it has returned.
    ///
    /// # Errors
    /// If there is no memory; then the program must not be used.
    pub fn after_fork_in_child(&self) -> Result<(), Errno> {
        self.state.reset();
        let mut state = self.state.lock()?;
        let forking = state.forking.take();
        let slot = self.table.after_fork(forking.map(|(_, entry)| entry))?;
        if let Some(means) = &mut state.means {
            means.after_fork();
        }
        let before = forking.map_or(Slot(!0), |(slot, _)| slot);
        let (slot, tid) = (slot.unwrap_or(before), kernel::thread_id());
        state.apply(self.table.lines(), |machine, out| {
            machine.after_fork(before, slot, tid, out);
        });
        Ok(())
    }

    fn tell(&self, event: impl FnOnce(&mut Machine<'static>, &mut dyn FnMut(Action))) {
        // It fails in a signal handler that has interrupted just this. Then the
        // table says what the mediator does not know, until the next event.
        if let Ok(mut state) = self.state.lock() {
            state.apply(self.table.lines(), event);
        }
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
        lines: Lines<'_>,
        event: impl FnOnce(&mut Machine<'static>, &mut dyn FnMut(Action)),
    ) {
        let State {
            machine,
            means,
            refused,
            refused_last,
            ..
        } = self;
        let Some(means) = means else {
            return event(machine, &mut |_| ());
        };
        event(machine, &mut |action| match place(lines, means, action) {
            Ok(()) | Err(Errno(libc::ESRCH)) => {}
            Err(error) => {
                *refused = refused.saturating_add(1);
                *refused_last = Some(error);
            }
        });
    }
}

/// What the kernel says of threads of this process.
struct OfThisProcess;

impl Watch for OfThisProcess {
    fn takes_ns(&self) -> u64 {
        500
    }

    fn cpu_ns(&mut self, _: Slot, tid: u32) -> Option<u64> {
        kernel::thread_cpu_ns(tid)
    }

    fn is_runnable(&mut self, _: Slot, tid: u32) -> bool {
        kernel::is_runnable(tid)
    }
}

/// Whether new threads have what their creator has.
fn is_handed_on(own: &Scheduling) -> bool {
    !own.is_reset_on_fork && !scheduling::is_realtime(own.policy)
}

fn place(lines: Lines<'_>, means: &Means, action: Action) -> Result<(), Errno> {
    let gone = Errno(libc::ESRCH);
    let entry = lines.at(action.slot).map_err(|_| gone)?;
    if entry.tid != action.tid {
        return Err(gone);
    }
    let (from, own) = match entry.region {
        Region::Own => (Placement::Own, scheduling::of(action.tid)?),
        Region::Fast => (Placement::Fast(entry.attributes.priority()), entry.own),
        Region::Lazy => (Placement::Lazy, entry.own),
    };
    // By ways that nobody has told of: it is the program's, and stays where it is.
    if scheduling::is_realtime(own.policy) {
        return Ok(());
    }
    means.apply(action.tid, from, action.placement, &own)?;
    let region = action.placement.region();
    let updated = lines.update(entry.identity, |it| {
        it.region = region;
        it.own = own;
    });
    updated.map(|_| ()).map_err(|_| Errno(libc::EAGAIN))
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
