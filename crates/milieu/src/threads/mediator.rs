//! The CPU mediator of a program, and what its threads are asked and told by.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use milieu_context::{Context, ContextOptions, Environment};
use milieu_threads::host::Host;
use milieu_threads::kernel;
use milieu_threads::lock::{Locked, PriorityMutex};
use milieu_threads::program::Program;

use super::device::{Creator, Device};
use super::handle::Running;
use super::keeper::{Keeper, Message};
use super::living::Began;
use super::options::{Choice, Joining};
use super::overflows::Watched;
use super::roles::{Bounds, Roles};
use super::stacks::Stacks;
use super::{
    Attributes, Entry, Errno, Invalid, NO_HANDLER, Options, Report, Return, Role, Rung, TableError,
    Thread, ThreadBuilder, best, probe,
};
use crate::{Error, Milieu};

/// The CPU mediator of this program: it has the threads' table and moves threads
/// between the regions, until it is dropped. Then every thread is as it was.
///
/// Besides the threads that it begins, it finds those that were begun in other ways
/// within half a second or so, and makes them wait for critical ones as well. Where lazy
/// threads cannot return ([`Return::Never`]) it leaves those alone.
///
/// Where a mediator of the whole device is, it serves this program, with those of others: it
/// is told what threads are for, and moves them ([`Mediator::is_registered`]). When it goes,
/// the program mediates its threads itself, until it is back.
///
/// Where the program runs under the preload, that mediates: a thread is moved by one
/// alone. What is said here is said to it, and what it does with threads is seen here
/// ([`Mediator::is_joined`]).
pub struct Mediator {
    shared: Arc<Shared>,
    reports: Vec<Report>,
    keeper: Option<JoinHandle<()>>,
}

impl fmt::Debug for Mediator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mediator");
        shown.field("rung", &self.rung()).finish_non_exhaustive()
    }
}

impl Mediator {
    /// Starts one by the best means that work here.
    ///
    /// # Errors
    /// As [`Options::start`].
    pub fn start() -> Result<Mediator, Error> {
        Mediator::options().start()
    }

    /// How one may be started.
    pub fn options() -> Options {
        Options::new()
    }

    pub(super) fn with(options: Options) -> Result<Mediator, Error> {
        // Before there is a table of this program's own.
        let host = match options.choice {
            Choice::Best | Choice::This(_) => Host::find(),
            Choice::Nothing => None,
        };
        let device = match (&host, options.choice, options.device) {
            // He would not leave others alone.
            (None, Choice::Best, Joining::Usual) => options.finds_others.then(|| Device::of(None)),
            (None, Choice::Best, Joining::At(path)) => Some(Device::of(Some(path))),
            _ => None,
        };
        let is_elsewhere = host.is_some() || device.as_ref().is_some_and(Device::is_there);
        let choice = match is_elsewhere {
            true => Choice::Nothing,
            false => options.choice,
        };
        let reports = match choice {
            Choice::Best => probe().to_vec(),
            Choice::This(_) | Choice::Nothing => Vec::new(),
        };
        let rung = match choice {
            Choice::Best => best(&reports),
            Choice::This(rung) => Some(rung),
            Choice::Nothing => None,
        };
        let program = Program::start(options.capacity, rung, options.settings, |_| ())?;
        if let Some(device) = device.as_ref().filter(|_| is_elsewhere) {
            if !device.register(program.table()) {
                mediate(&program);
            }
        }
        let (to_keeper, inbox) = channel();
        let shared = Arc::new(Shared {
            program,
            host,
            device,
            to_keeper: to_keeper.clone(),
            roles: PriorityMutex::new(Roles::default()),
            asked: Asked::default(),
            listing: PriorityMutex::new(()),
            stacks: options.stacks,
        });
        let keeper = Keeper::new(
            shared.clone(),
            inbox,
            to_keeper,
            options.told,
            options.finds_others,
        );
        let keeper = keeper.start().map_err(Error::System)?;
        Ok(Mediator {
            shared,
            reports,
            keeper: Some(keeper),
        })
    }

    /// Whether the program runs under the preload, which mediates its threads with
    /// settings and a rung of its own; what [`Options`] say of those does not count then.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.shared.host.is_some()
    }

    /// Whether a mediator of the whole device has the program now, and moves its threads with
    /// settings and a rung of its own.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.shared.device.as_ref().is_some_and(Device::serves)
    }

    /// Why the mediator of the device does not serve this program, if it has refused that.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.shared.device.as_ref()?.refusal()
    }

    /// By which means threads are mediated, and whether they return; nothing if
    /// they are only listed, or mediated by the preload or for the whole device.
    #[must_use]
    pub fn rung(&self) -> Option<(Rung, Return)> {
        self.shared.program.rung()
    }

    /// What each rung can do here, best first, as it was tried before the start,
    /// with what would make it work; none if the choice was made by the program, or a
    /// mediator of the device was there.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// How often the kernel has refused to put a thread where it belongs, and why
    /// the last time.
    #[must_use]
    pub fn refused(&self) -> (u32, Option<Errno>) {
        self.shared.program.refused()
    }

    /// How many threads found no place in the table, and run unmediated.
    #[must_use]
    pub fn unlisted(&self) -> u32 {
        self.shared.program.table().lines().unlisted()
    }

    /// A thread of this role, to be begun.
    ///
    /// # Errors
    /// If the text is no role.
    pub fn thread(&self, role: &str) -> Result<ThreadBuilder<'_>, Invalid> {
        let attributes = Attributes::of(Role::new(role)?);
        Ok(ThreadBuilder::new(self, attributes))
    }

    /// A thread with these attributes, to be begun.
    pub fn thread_of(&self, attributes: Attributes) -> ThreadBuilder<'_> {
        ThreadBuilder::new(self, attributes)
    }

    /// What this thread is for.
    #[must_use]
    pub fn current(&self) -> Attributes {
        let known = self.shared.program.get(kernel::identity());
        known.unwrap_or_default()
    }

    /// Sets what this thread is for, and moves it where that belongs. Threads that
    /// were begun in other ways are listed from then on under their own name, until
    /// they end.
    ///
    /// # Errors
    /// If there is no place left in the table.
    pub fn set_current(&self, attributes: &Attributes) -> Result<(), TableError> {
        let identity = kernel::identity();
        match self.shared.set(identity, attributes) {
            Err(TableError::Unknown) => self.list_current(attributes),
            result => result,
        }
    }

    fn list_current(&self, attributes: &Attributes) -> Result<(), TableError> {
        thread_local! {
            /// Ends with the thread, after its body.
            static LISTED: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
        }
        let listing = self.shared.listing();
        // It comes back first, so that what it returns to is its own.
        let _ = self.shared.program.ended(found(kernel::thread_id()));
        let thread = Thread::asked(&self.shared, *attributes, *attributes);
        let running = thread.clone().begins(None, false);
        drop(listing);
        if thread.entry().is_none() {
            return Err(TableError::Full);
        }
        LISTED.with_borrow_mut(|it| it.push(running));
        Ok(())
    }

    /// All threads that are known. Where stacks are measured, that is done now.
    pub fn threads(&self) -> impl Iterator<Item = Entry> + '_ {
        let lines = self.shared.program.table().lines();
        lines.iter().map(|(_, entry)| self.shared.looked_at(entry))
    }

    /// The threads of a role.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = Entry> + '_ {
        let lines = self.shared.program.table().lines();
        let found = lines.with_role(role);
        found.map(|(_, entry)| self.shared.looked_at(entry))
    }

    /// The thread that the kernel knows under this number.
    #[must_use]
    pub fn by_thread_id(&self, tid: u32) -> Option<Entry> {
        let lines = self.shared.program.table().lines();
        let found = lines.by_thread_id(tid);
        found.map(|(_, entry)| self.shared.looked_at(entry))
    }

    /// What threads of a role are for, if that was said of the role as a whole: by
    /// [`set_role`](Mediator::set_role), or by a context that it follows.
    #[must_use]
    pub fn role(&self, role: Role) -> Option<Attributes> {
        self.shared.of_role(role)
    }

    /// Sets what all threads of a role are for, and what those of it that begin
    /// later are for, whatever their builders say.
    pub fn set_role(&self, attributes: &Attributes) {
        self.shared.set_role(attributes);
        self.shared.look_at(None, attributes);
    }

    /// Tells that this thread waits for something while `wait` runs: with the
    /// setting `leaves_while_blocked` a critical thread is out of the fast region
    /// for so long.
    pub fn blocking<R>(&self, wait: impl FnOnce() -> R) -> R {
        struct Blocked<'s>(&'s Shared, u64);
        impl Drop for Blocked<'_> {
            fn drop(&mut self) {
                self.0.set_blocked(self.1, false);
            }
        }
        let identity = kernel::identity();
        self.shared.set_blocked(identity, true);
        let _blocked = Blocked(&self.shared, identity);
        wait()
    }

    /// A context for this thread, whose role is the thread's: thread-based layers
    /// select by it. A thread of the role `pool` has a context of `/pool`.
    ///
    /// # Errors
    /// As [`Milieu::context`].
    pub fn context<E: Environment>(&self, milieu: &Milieu) -> Result<Context<E>, Error> {
        let options = match self.current().role() {
            Role::NONE => ContextOptions::new(),
            role => ContextOptions::new().role(name_of(role)),
        };
        milieu.context_with(options)
    }

    /// Waits until what contexts that are [followed](Mediator::follow) have taken
    /// notice of so far has moved the threads.
    pub fn settle(&self) {
        let (done, is_done) = channel();
        self.ask(Message::Settle(done));
        // Without its thread there is nothing to wait for.
        let _ = is_done.recv();
    }

    /// Lets every thread return, and moves nobody any more. Dropping it does so, too.
    pub fn stop(self) {}

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn ask(&self, message: Message) {
        self.shared.ask(message);
    }
}

impl Drop for Mediator {
    fn drop(&mut self) {
        self.ask(Message::End);
        if let Some(keeper) = self.keeper.take() {
            // What it panicked with was printed by then.
            let _ = keeper.join();
        }
        if let Some(device) = &self.shared.device {
            device.leave();
        }
        self.shared.program.stop();
        if let Some(host) = &self.shared.host {
            for (_, entry) in self.shared.program.table().lines().iter() {
                // Who has ended meanwhile is not known any more.
                let _ = host.set(entry.identity, &Attributes::default());
            }
        }
    }
}

/// What a mediator and its threads share.
pub(super) struct Shared {
    pub program: Program,
    /// Who mediates in its place.
    host: Option<Host>,
    /// Who does so while he is there.
    device: Option<Device>,
    to_keeper: Sender<Message>,
    /// What threads are for, by what was said of their roles and by themselves.
    roles: PriorityMutex<Roles>,
    asked: Asked,
    /// Held while a thread that somebody else has begun is listed.
    listing: PriorityMutex<()>,
    stacks: Option<Stacks>,
}

/// Threads that were asked for and have not begun yet: they are not to be found
/// among the program's threads and taken for others.
#[derive(Default)]
struct Asked {
    pending: AtomicU32,
    count: AtomicU32,
}

impl Shared {
    pub fn is_asked(&self) {
        self.asked.pending.fetch_add(1, Ordering::SeqCst);
        self.asked.count.fetch_add(1, Ordering::SeqCst);
    }

    pub fn has_begun(&self) {
        self.asked.pending.fetch_sub(1, Ordering::SeqCst);
    }

    /// It was begun, or will never be.
    pub fn was_asked(&self, is_begun: bool) {
        if !is_begun {
            self.has_begun();
        }
    }

    /// How many were asked for, unless one of them has not begun.
    pub fn asked_and_begun(&self) -> Option<u32> {
        let count = self.asked.count.load(Ordering::SeqCst);
        (self.asked.pending.load(Ordering::SeqCst) == 0).then_some(count)
    }

    pub fn listing(&self) -> Locked<'_, ()> {
        self.listing.lock().expect(NO_HANDLER)
    }

    pub fn set(&self, identity: u64, attributes: &Attributes) -> Result<(), TableError> {
        self.program.set(identity, attributes)?;
        self.roles().says(identity, *attributes);
        self.tell_others(identity, attributes);
        self.look_at(Some(identity), attributes);
        Ok(())
    }

    /// A thread begins, which is this one.
    pub fn began(&self, identity: u64, attributes: &Attributes, is_excluded: bool) {
        match &self.host {
            Some(host) if is_excluded => host.exclude(identity),
            _ => self.tell_others(identity, attributes),
        }
        self.look_at(Some(identity), attributes);
    }

    /// A thread has ended which was for this, and is not listed any more.
    pub fn has_ended(&self, attributes: &Attributes) {
        if let Some(device) = &self.device {
            if *attributes != Attributes::default() {
                device.tell();
            }
        }
    }

    /// Whoever else moves its threads hears what one of them is for.
    fn tell_others(&self, identity: u64, attributes: &Attributes) {
        if let Some(host) = &self.host {
            // A thread for which it has no place runs as if nobody had asked.
            let _ = host.set(identity, attributes);
        }
        if let Some(device) = &self.device {
            device.tell();
        }
    }

    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Who serves the whole device, if it has this program.
    fn serving(&self) -> Option<&Device> {
        self.device().filter(|it| it.serves())
    }

    /// This thread, which is about to begin another.
    pub fn creator(&self) -> Option<Creator> {
        self.device()?.creator()
    }

    /// This thread has begun, and this one has begun it.
    pub fn has_begun_by(&self, creator: Option<Creator>) {
        if let (Some(device), Some(creator)) = (self.device(), &creator) {
            device.begun(creator);
        }
    }

    /// Sees to it that either the mediator of the device has the program, or its own has.
    pub fn attend_device(&self, has_critical: bool) {
        let Some(device) = self.device() else {
            return;
        };
        if device.serves() && device.attend() {
            return;
        }
        let program = &self.program;
        let returns = program.rung().map(|(_, returns)| returns);
        // Nobody is moved by two, and who cannot return is its own for ever.
        if returns != Some(Return::Never) && device.is_there() {
            let may_come = returns.is_none() || program.rest();
            if may_come && device.register(program.table()) {
                return;
            }
        }
        if has_critical && !device.is_awaited() {
            mediate(program);
        }
    }

    /// What is known of a thread, with what whoever mediates it has done.
    pub fn seen(&self, entry: Entry) -> Entry {
        let found = self.host.as_ref().and_then(|it| it.entry(entry.tid));
        match found.filter(|it| it.identity == entry.identity) {
            Some(found) => Entry {
                region: found.region,
                own: found.own,
                is_demoted: found.is_demoted,
                is_excluded: found.is_excluded,
                ..entry
            },
            None => entry,
        }
    }

    pub fn set_blocked(&self, identity: u64, is_blocked: bool) {
        match &self.host {
            Some(host) => host.set_blocked(identity, is_blocked),
            None => self.program.set_blocked(identity, is_blocked),
        }
    }

    fn is_critical(&self, identity: u64) -> bool {
        let attributes = self.program.get(identity);
        attributes.is_ok_and(|it| it.is_time_critical())
    }

    /// A thread is about to wait for a lock that the thread of this number has.
    pub fn waits(&self, identity: u64, owner: u32) {
        match (&self.host, self.serving()) {
            (Some(host), _) => host.waits(identity, owner),
            (None, Some(device)) if self.is_critical(identity) => device.waits(owner),
            (None, Some(_)) => {}
            (None, None) => self.program.waits(identity, owner),
        }
    }

    /// It has got the lock.
    pub fn served(&self, identity: u64) {
        match (&self.host, self.serving()) {
            (Some(host), _) => host.served(identity),
            (None, Some(device)) if self.is_critical(identity) => device.has_waited(),
            (None, Some(_)) => {}
            (None, None) => self.program.served(identity),
        }
    }

    pub fn ask(&self, message: Message) {
        // Its thread ends when the mediator does, or by a panic of somebody's code.
        let _ = self.to_keeper.send(message);
    }

    /// Has the mediator's thread watch, if somebody is critical from now on.
    pub fn look_at(&self, identity: Option<u64>, attributes: &Attributes) {
        if attributes.is_time_critical() {
            self.ask(Message::Look(identity));
        }
    }

    pub fn set_role(&self, attributes: &Attributes) {
        let mut roles = self.roles();
        roles.set(*attributes);
        // Who begins in between has what was before, and is listed by now or later.
        self.program.set_role(attributes.role(), attributes);
        let lines = self.program.table().lines();
        for (_, entry) in lines.with_role(attributes.role()) {
            self.tell_others(entry.identity, &entry.attributes);
        }
    }

    /// What a context says of the threads of a role, of those that begin later as well.
    pub fn bound_role(&self, role: Role, bounds: Bounds) {
        let mut roles = self.roles();
        roles.bound(role, bounds);
        // While this is held, no other thread begins with the identity of one that ends.
        for (_, entry) in self.program.table().lines().with_role(role) {
            let identity = entry.identity;
            let wanted = roles.bounded(identity, entry.attributes);
            // What stack it has does not change any more.
            let wanted = match entry.attributes.stack() {
                Some(stack) => wanted.with_stack(stack),
                None => wanted.without_stack(),
            };
            if wanted != entry.attributes && self.program.set(identity, &wanted).is_ok() {
                self.tell_others(identity, &wanted);
            }
        }
    }

    pub fn of_role(&self, role: Role) -> Option<Attributes> {
        self.roles().of_role(role)
    }

    /// What was said of threads, and by whom.
    pub fn roles(&self) -> Locked<'_, Roles> {
        self.roles.lock().expect(NO_HANDLER)
    }

    pub fn stacks(&self) -> Option<&Stacks> {
        self.stacks.as_ref()
    }

    pub fn stack_bytes(&self, role: Role, asked: Option<u64>) -> Option<u64> {
        let learned = self.stacks.as_ref().and_then(|it| it.bytes(role, asked));
        learned.or(asked)
    }

    /// A thread of this role begins, which is this one and not listed yet. None if its
    /// stack is not measured.
    pub fn measure(&self, identity: u64, role: Role) -> Option<(Began, Option<Watched>)> {
        self.stacks.as_ref()?.begins(identity, role)
    }

    /// It is listed by now.
    pub fn measures(&self, identity: u64, began: &Began) {
        self.note_stack(identity, kib(began.stack.bytes()), kib(began.used_bytes));
        if began.is_alone {
            // The mediator's thread looks at it from time to time.
            self.ask(Message::Look(None));
        }
    }

    /// A thread has ended, which is this one and not listed any more.
    pub fn measured(&self, identity: u64, role: Role) {
        if let Some(stacks) = &self.stacks {
            stacks.ends(identity, role);
        }
    }

    /// What is known of a thread, with how deep its stack is by now.
    pub fn looked_at(&self, entry: Entry) -> Entry {
        let entry = self.seen(entry);
        let role = entry.attributes.role();
        let stacks = self.stacks.as_ref();
        let Some(seen) = stacks.and_then(|it| it.looks_at(entry.identity, role)) else {
            return entry;
        };
        let peak = kib(seen.peak.bytes().unwrap_or(0));
        let looked_at = Entry {
            stack_kib: kib(seen.stack_bytes),
            stack_kib_peak: peak.max(entry.stack_kib_peak),
            ..entry
        };
        if looked_at != entry {
            self.note_stack(entry.identity, looked_at.stack_kib, peak);
        }
        looked_at
    }

    /// Looks at the stacks of all threads that run; whether one is deeper than it was.
    pub fn look_at_stacks(&self) -> bool {
        let living = self.stacks.as_ref().map(Stacks::living);
        let lines = self.program.table().lines();
        let entries = living.unwrap_or_default().into_iter();
        let entries = entries.filter_map(|identity| lines.entry(identity).ok());
        let is_deeper = |it: Entry| self.looked_at(it).stack_kib_peak > it.stack_kib_peak;
        // Each of them, also after one that is.
        entries.filter(|it| is_deeper(*it)).count() > 0
    }

    /// Looks at the same; of how many threads of each role it is known how deep they are.
    pub fn running(&self) -> HashMap<Role, u64> {
        let mut running = HashMap::new();
        let Some(stacks) = &self.stacks else {
            return running;
        };
        for identity in stacks.living() {
            // Who has no line has no role that anybody could ask for.
            let Ok(attributes) = self.program.get(identity) else {
                continue;
            };
            let seen = stacks.looks_at(identity, attributes.role());
            if seen.is_some_and(|it| it.peak.bytes().is_some()) {
                *running.entry(attributes.role()).or_default() += 1;
            }
        }
        running
    }

    fn note_stack(&self, identity: u64, kib: u32, peak: u32) {
        // A line that somebody is writing to is read without it.
        let lines = self.program.table().lines();
        let _ = lines.note_stack(identity, kib, peak);
    }
}

/// Mediates by itself, by the best means that work, unless that is done.
fn mediate(program: &Program) {
    if program.rung().is_some() {
        return;
    }
    // Where that does not work any more, nobody is moved, as `Mediator::rung` tells.
    if program.is_resting() {
        let _ = program.go_on(|_| ());
    } else if let Some(rung) = best(&probe()) {
        let _ = program.mediate(rung, |_| ());
    }
}

fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes / 1024).unwrap_or(u32::MAX)
}

/// Under which number a thread is listed that somebody else has begun: none that
/// the C library gives, as it is no address of a program's.
pub(super) fn found(tid: u32) -> u64 {
    1 << 63 | u64::from(tid)
}

/// The name whose threads have this role.
pub(super) fn name_of(role: Role) -> String {
    format!("/{role}")
}
