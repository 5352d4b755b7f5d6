//! One CPU mediator for all programs of a device (Thread Evolution Kit, section IV-A).
//!
//! ```text
//!  programs: tables, sockets ─┐
//!  rules: patterns, groups  ──┼─▶ Device ─▶ Machine ─▶ journal ─▶ kernel
//!  /proc: threads come and go ┘     (who is where)    (first written, then done)
//! ```
//!
//! [`Device`] looks at programs when it is told to, lets the state machine of
//! `milieu-threads` decide, and does what that says. It has no thread and no socket:
//! [`serve`](server::serve) calls it. Programs register and hand over their thread
//! information tables, where they say themselves which threads are critical, or are
//! known by [`Rules`]. One that has a table and has not registered mediates itself and
//! is left alone.
//!
//! On the rung `realtime` only critical threads are moved, and those of programs in
//! the group `background`; on the others all threads of all programs, but those that
//! are excluded, that run in real time by themselves, and the kernel's.
//!
//! What a program changes of a thread that is elsewhere is its wish: it is found at
//! the next look and had on return. Threads that are begun by lazy ones inherit that,
//! and return to what those had.

mod groups;
pub mod journal;
mod rules;
pub mod server;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::Path;

use milieu_threads::attributes::{Attributes, Role};
use milieu_threads::kernel::{self, Errno};
use milieu_threads::mediator::{Action, Kind, Machine, Node, Placement, Settings};
use milieu_threads::rung::{self, Return, Rung, scheduling};
use milieu_threads::table::{Entry, Region, Scheduling, Slot, View};

use crate::proc::{self, Reader};
use groups::LazyGroup;
use journal::{Journal, Record, Restored, is_as_given};
pub use rules::{Group, Name, RuleError, Rules};

/// Threads that a mediator of the device looks after at most; more are left alone.
pub const THREADS_MAX: usize = 1 << 15;

/// How long after the fast region became empty threads are looked for that lazy ones
/// have begun in the last moment.
const AFTERMATH_NS: u64 = 1_000_000_000;

/// In how many looks a program's table is looked for, and then in every such look.
const SOON: u32 = 4;
const SELDOM: u32 = 32;

/// The kernel's words for a thread that has ended.
const GONE: Errno = Errno(3);

/// Why a device cannot be mediated.
#[derive(Debug)]
pub enum StartError {
    /// No rung works on which threads return; each with why.
    NoRung(Vec<(Rung, String)>),
    /// The journal cannot be written, or another mediator has it.
    Journal(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NoRung(reasons) => {
                f.write_str("threads of other programs cannot be moved and brought back here")?;
                reasons
                    .iter()
                    .try_for_each(|(rung, why)| write!(f, "\n  {rung}: {why}"))
            }
            StartError::Journal(error) if error.kind() == io::ErrorKind::WouldBlock => {
                f.write_str("another mediator runs; there is one for a device")
            }
            StartError::Journal(error) => write!(f, "the journal cannot be written: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Something that people want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A program is served from now on.
    Serves {
        /// Its number.
        process: u32,
        /// Its name.
        program: String,
        /// Its group.
        group: Group,
    },
    /// A critical thread has kept a processor for too long and is critical no more.
    Demoted {
        /// Its number.
        thread: u32,
        /// What it is for.
        role: Role,
        /// The name of its program.
        program: String,
    },
    /// The kernel has refused to move a thread, which stays where it is; told once
    /// for each program.
    Refused {
        /// Its number.
        thread: u32,
        /// The name of its program.
        program: String,
        /// Why.
        error: Errno,
    },
    /// There are more threads than can be looked after.
    TooMany,
    /// The journal cannot be written, so nothing is moved.
    NoJournal(String),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::Serves {
                process,
                program,
                group,
            } => write!(f, "{program} ({process}) is served, group {}", group.name()),
            News::Demoted {
                thread,
                role,
                program,
            } => write!(
                f,
                "thread {thread}{} of {program} has kept a processor without ever waiting and is \
                 critical no more, until its attributes are set again",
                in_quotes(role.as_str()),
            ),
            News::Refused {
                thread,
                program,
                error,
            } => write!(
                f,
                "thread {thread} of {program} stays where it is: {error}; is it in a control \
                 group without a real-time budget (cpu.rt_runtime_us)?"
            ),
            News::TooMany => write!(
                f,
                "there are more than {THREADS_MAX} threads; the rest is left alone"
            ),
            News::NoJournal(error) => {
                write!(
                    f,
                    "the journal cannot be written, nothing is moved: {error}"
                )
            }
        }
    }
}

fn in_quotes(role: &str) -> String {
    if role.is_empty() {
        String::new()
    } else {
        format!(" `{role}`")
    }
}

/// What a mediator knows of a thread.
#[derive(Debug, Clone)]
struct Known {
    process: u32,
    thread: u32,
    start: u64,
    attributes: Attributes,
    kind: Kind,
    region: Region,
    /// What it returns to, while it is elsewhere.
    own: Scheduling,
    given: Scheduling,
    home: Option<String>,
    is_demoted: bool,
}

impl Known {
    /// Of what a thread has, which is elsewhere, only what differs from what it was
    /// given was the program's doing.
    fn take_wish(&mut self, here: &Scheduling) {
        if is_as_given(here, &self.given) || scheduling::is_realtime(here.policy) {
            return;
        }
        if here.policy != self.given.policy {
            self.own.policy = here.policy;
        }
        if here.nice != self.given.nice {
            self.own.nice = here.nice;
        }
    }
}

/// What a mediator knows of a program.
struct Program {
    name: Name,
    group: Group,
    is_left_alone: bool,
    is_kernel: bool,
    /// Whether it may have critical threads.
    is_trusted: bool,
    has_rules: bool,
    view: Option<View>,
    was_refused: bool,
    looks: u32,
    threads: HashSet<u32>,
}

impl Program {
    /// Whether its threads count also while nobody is in the fast region.
    fn is_interesting(&self) -> bool {
        self.view.is_some() || self.has_rules || self.group == Group::Background
    }
}

/// What is told of a thread that is looked after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// The name of its program.
    pub program: String,
    /// The group of that.
    pub group: Group,
    /// What it is for.
    pub attributes: Attributes,
    /// Where it is.
    pub region: Region,
    /// Whether it has run away.
    pub is_demoted: bool,
    /// What it returns to, if it is elsewhere.
    pub own: Option<Scheduling>,
}

/// How a device is mediated.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// By which means; the best by default.
    pub rung: Option<Rung>,
    /// How.
    pub settings: Settings,
    /// Who is who.
    pub rules: Rules,
    /// Processes that are never looked at.
    pub left_alone: Vec<u32>,
}

/// All threads of a device, and where they are.
pub struct Device<'n> {
    machine: Machine<'n>,
    rung: Rung,
    group: Option<LazyGroup>,
    journal: Option<Journal>,
    plan: Plan,
    reader: Reader,
    /// By the machine's slots.
    known: Vec<Option<Known>>,
    free: Vec<u32>,
    by_thread: HashMap<u32, u32>,
    programs: HashMap<u32, Program>,
    /// Since when somebody is in the fast region, and when it became empty.
    busy_since_ns: Option<u64>,
    idle_since_ns: Option<u64>,
    has_too_many: bool,
    is_journal_lost: bool,
    user: u32,
    news: Vec<News>,
}

impl<'n> Device<'n> {
    /// Gets ready to mediate, over [`THREADS_MAX`] nodes or fewer. What a mediator left
    /// behind that was killed is undone first.
    ///
    /// # Errors
    /// If no rung works on which threads return, or the journal cannot be written.
    pub fn start(
        nodes: &'n mut [Node],
        journal: &Path,
        plan: Plan,
    ) -> Result<(Device<'n>, Restored), StartError> {
        let (journal, restored) = Journal::open(journal).map_err(StartError::Journal)?;
        let (rung, group) = rung(plan.rung)?;
        let free = (0..nodes.len() as u32).rev().collect();
        let known = vec![None; nodes.len()];
        let settings = Settings {
            is_reversible: true,
            ..plan.settings
        };
        let device = Device {
            machine: Machine::new(nodes, settings),
            rung,
            group,
            journal: Some(journal),
            plan,
            reader: Reader::default(),
            known,
            free,
            by_thread: HashMap::new(),
            programs: HashMap::new(),
            busy_since_ns: None,
            idle_since_ns: None,
            has_too_many: false,
            is_journal_lost: false,
            user: rustix::process::geteuid().as_raw(),
            news: Vec::new(),
        };
        Ok((device, restored))
    }

    /// By which means threads are moved.
    #[must_use]
    pub fn rung(&self) -> Rung {
        self.rung
    }

    /// How it works.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.machine.settings()
    }

    /// How many threads are in the fast region.
    #[must_use]
    pub fn fast_count(&self) -> u32 {
        self.machine.fast_count()
    }

    /// What happened since it was asked last.
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// All threads that it looks after, in the order of their numbers.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        let status = |it: &Known| {
            let program = self.programs.get(&it.process)?;
            Some(Status {
                process: it.process,
                thread: it.thread,
                program: program.name.name.clone(),
                group: program.group,
                attributes: it.attributes,
                region: it.region,
                is_demoted: it.is_demoted,
                own: (it.region != Region::Own).then_some(it.own),
            })
        };
        let mut all: Vec<Status> = self.known.iter().flatten().filter_map(status).collect();
        all.sort_by_key(|it| (it.process, it.thread));
        all
    }

    /// A program says that it is there, and has handed over its table.
    ///
    /// # Errors
    /// Why it is not served, for the program to read.
    pub fn register(&mut self, process: u32, user: u32, view: View) -> Result<(), String> {
        if view.process() != process {
            return Err("the table is that of another process".to_owned());
        }
        if !self.is_trusted(user) {
            return Err(format!(
                "programs of user {user} may not have critical threads; add `user {user}` to the \
                 mediator's rules"
            ));
        }
        // One that has called `exec` is another, with another name.
        self.drop_program(process);
        self.admit(process)
            .ok_or_else(|| "there is no such process".to_owned())?;
        let program = self.programs.get_mut(&process);
        let program = program.filter(|it| !it.is_left_alone);
        let program = program.ok_or("the mediator's rules exclude it")?;
        program.view = Some(view);
        self.news.push(News::Serves {
            process,
            program: program.name.name.clone(),
            group: program.group,
        });
        self.look_at(process);
        Ok(())
    }

    /// A program has gone, or has changed what its table says.
    pub fn look_at(&mut self, process: u32) {
        let listed = proc::threads(process);
        if listed.is_empty() {
            self.drop_program(process);
        } else {
            self.threads_of(process, &listed);
        }
    }

    /// A program mediates itself from now on: its threads return, and only its rules
    /// and its table count.
    pub fn unregister(&mut self, process: u32) {
        self.drop_program(process);
    }

    /// Looks at everything, and does what time has brought. Returns when to come
    /// again, at the latest.
    pub fn look(&mut self, now_ns: u64) -> u64 {
        let is_busy = self.machine.fast_count() > 0;
        if is_busy {
            self.busy_since_ns.get_or_insert(now_ns);
            self.idle_since_ns = None;
        } else if self.busy_since_ns.is_some() {
            let since = *self.idle_since_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(since) > AFTERMATH_NS {
                (self.busy_since_ns, self.idle_since_ns) = (None, None);
            }
        }
        self.processes();
        self.observe();
        self.take_wishes();
        let mut actions = Vec::new();
        let next = self.machine.tick(now_ns, &mut |it| actions.push(it));
        self.perform(actions);
        let is_busy = self.machine.fast_count() > 0 || self.busy_since_ns.is_some();
        let pause = if is_busy { 200_000_000 } else { 1_000_000_000 };
        let latest = now_ns.saturating_add(pause);
        next.map_or(latest, |it| it.min(latest))
    }

    /// Lets every thread return, and gives up.
    pub fn stop(mut self) -> Restored {
        let mut actions = Vec::new();
        self.machine.set_open(false, &mut |it| actions.push(it));
        let before = self.journal.as_ref().map_or(0, |it| it.moved().len());
        self.perform(actions);
        // Whoever was begun by a lazy one in the last moment.
        self.busy_since_ns.get_or_insert(0);
        self.processes();
        let left = self.journal.take().map(Journal::close);
        let left = left.unwrap_or_default();
        Restored {
            restored: (before as u32).saturating_sub(left.refused + left.gone),
            ..left
        }
    }

    /// Whether all programs' threads are moved, and not only critical ones.
    fn moves_others(&self) -> bool {
        self.rung != Rung::Realtime
    }

    fn is_trusted(&self, user: u32) -> bool {
        user == 0 || user == self.user || self.plan.rules.users().contains(&user)
    }

    fn processes(&mut self) {
        let listed = proc::processes();
        let there: HashSet<u32> = listed.iter().copied().collect();
        let ended: Vec<u32> = self
            .programs
            .keys()
            .copied()
            .filter(|it| !there.contains(it))
            .collect();
        // Those that are new may have been begun by those that have ended.
        for process in &listed {
            self.notice_exec(*process);
            if !self.programs.contains_key(process) {
                self.admit(*process);
            }
            self.look_for_table(*process);
            let is_all = self.moves_others() && self.busy_since_ns.is_some();
            let program = self.programs.get(process);
            let counts = |it: &Program| !it.is_left_alone && (is_all || it.is_interesting());
            if program.is_some_and(counts) {
                let threads = proc::threads(*process);
                self.threads_of(*process, &threads);
            }
        }
        ended.into_iter().for_each(|it| self.drop_program(it));
    }

    /// Whoever begins a program is, for a moment, what begins it; and a shell can
    /// become any other. One that has registered has told that it is there.
    fn notice_exec(&mut self, process: u32) {
        let Some(program) = self.programs.get(&process) else {
            return;
        };
        if program.view.is_some() || program.is_kernel {
            return;
        }
        let stat = self.reader.stat(process, process);
        if stat.is_none_or(|it| it.name != program.name.name) {
            self.drop_program(process);
        }
    }

    /// Gets to know a program.
    fn admit(&mut self, process: u32) -> Option<()> {
        let stat = self.reader.stat(process, process)?;
        let user = proc::user(process)?;
        let path = std::fs::read_link(format!("/proc/{process}/exe"));
        let name = Name {
            name: stat.name,
            path: path.map_or(String::new(), |it| it.to_string_lossy().into_owned()),
        };
        let rules = &self.plan.rules;
        // Who starts all others waits for nobody, and is moved by nobody.
        let is_left_alone = stat.is_kernel
            || process == 1
            || process == std::process::id()
            || self.plan.left_alone.contains(&process)
            || !rules.is_meant(&name);
        let is_trusted = self.is_trusted(user);
        self.programs.insert(
            process,
            Program {
                group: rules.group(&name),
                is_left_alone,
                is_kernel: stat.is_kernel,
                is_trusted,
                has_rules: is_trusted && rules.has_critical(&name),
                name,
                view: None,
                was_refused: false,
                looks: 0,
                threads: HashSet::new(),
            },
        );
        Some(())
    }

    /// A program that has a table and has not registered mediates itself: two that
    /// move the same threads would each take the other's doing for the program's.
    fn look_for_table(&mut self, process: u32) {
        let Some(program) = self.programs.get_mut(&process) else {
            return;
        };
        program.looks = program.looks.wrapping_add(1);
        let is_due = program.looks <= SOON || program.looks % SELDOM == 0;
        let is_wanted = program.view.is_none() && !program.is_left_alone;
        if is_due && is_wanted && View::of_process(process).is_ok() {
            program.is_left_alone = true;
            let threads = std::mem::take(&mut program.threads);
            threads.into_iter().for_each(|it| self.drop_thread(it));
        }
    }

    fn drop_program(&mut self, process: u32) {
        let Some(program) = self.programs.remove(&process) else {
            return;
        };
        for thread in program.threads {
            self.drop_thread(thread);
        }
    }

    /// Takes in which threads a program has, and what they are for.
    fn threads_of(&mut self, process: u32, listed: &[u32]) {
        let Some(program) = self.programs.get_mut(&process) else {
            return;
        };
        if program.is_left_alone {
            return;
        }
        let there: HashSet<u32> = listed.iter().copied().collect();
        let ended: Vec<u32> = program.threads.difference(&there).copied().collect();
        program.threads.retain(|it| there.contains(it));
        ended.into_iter().for_each(|it| self.drop_thread(it));
        let program = &self.programs[&process];
        let entries: HashMap<u32, Entry> = match &program.view {
            Some(view) => view.iter().map(|(_, it)| (it.tid, it)).collect(),
            None => HashMap::new(),
        };
        for thread in listed {
            let entry = entries.get(thread);
            match self.by_thread.get(thread).copied() {
                Some(slot) => self.update_thread(slot, entry),
                None => self.admit_thread(process, *thread, entry),
            }
        }
    }

    /// What becomes of a thread, by what it is for and by the rules.
    fn kind_of(&self, process: u32, name: &str, entry: Option<&Entry>) -> (Attributes, Kind) {
        let program = &self.programs[&process];
        let mut attributes = entry.map(|it| it.attributes).unwrap_or_default();
        let by_rules = self.plan.rules.critical(&program.name, name);
        if let Some(priority) = by_rules.filter(|_| !attributes.is_time_critical()) {
            attributes = attributes.time_critical(priority);
        }
        let kind = match program.group.kind(&attributes) {
            _ if entry.is_some_and(|it| it.is_excluded) => Kind::Excluded,
            Kind::Critical(_) if !program.is_trusted => Kind::Ordinary,
            kind => kind,
        };
        (attributes, kind)
    }

    fn admit_thread(&mut self, process: u32, thread: u32, entry: Option<&Entry>) {
        let Some(stat) = self.reader.stat(process, thread) else {
            return;
        };
        let (attributes, kind) = self.kind_of(process, &stat.name, entry);
        let is_moved = self.moved_kind(kind) != Kind::Excluded;
        let Ok(here) = scheduling::of(thread) else {
            return;
        };
        let inherited = self.inherited(process, thread, stat.parent, stat.start, &here);
        // Threads that are not to be moved are noted as well, to be seen and to be
        // looked at again when they are named or set.
        if (!is_moved && inherited.is_none() && entry.is_none())
            && !self.programs[&process].has_rules
        {
            return;
        }
        let kind = if scheduling::is_realtime(here.policy) {
            Kind::Excluded
        } else {
            kind
        };
        let Some(slot) = self.free.pop() else {
            if !std::mem::replace(&mut self.has_too_many, true) {
                self.news.push(News::TooMany);
            }
            return;
        };
        let from = match &inherited {
            Some(_) => Region::Lazy,
            None => Region::Own,
        };
        let (own, home) = inherited.unwrap_or((here, None));
        let known = Known {
            process,
            thread,
            start: stat.start,
            attributes,
            kind,
            region: from,
            own,
            given: here,
            home,
            is_demoted: false,
        };
        if from == Region::Lazy {
            // It is as if it had been moved.
            let record = record(&known);
            if !self.note(vec![record]) {
                self.free.push(slot);
                return;
            }
        }
        self.known[slot as usize] = Some(known);
        self.by_thread.insert(thread, slot);
        if let Some(program) = self.programs.get_mut(&process) {
            program.threads.insert(thread);
        }
        let mut actions = Vec::new();
        let (at, kind) = (Slot(slot), self.moved_kind(kind));
        self.machine
            .add_from(at, thread, kind, from, &mut |it| actions.push(it));
        self.perform(actions);
    }

    /// What the machine is told of a thread: who is not to be moved is left alone.
    fn moved_kind(&self, kind: Kind) -> Kind {
        if kind == Kind::Ordinary && !self.moves_others() {
            Kind::Excluded
        } else {
            kind
        }
    }

    /// What a thread returns to that was begun by a lazy one: what that had.
    fn inherited(
        &self,
        process: u32,
        thread: u32,
        parent: u32,
        start: u64,
        here: &Scheduling,
    ) -> Option<(Scheduling, Option<String>)> {
        let since = self.busy_since_ns;
        let program = self.programs.get(&process)?;
        let lazy = |of: u32| {
            let slot = self.by_thread.get(&of)?;
            let known = self.known[*slot as usize].as_ref()?;
            (known.region == Region::Lazy).then_some(known)
        };
        // Its process's threads, or that of the process that began this one.
        let siblings = program.threads.iter().find_map(|it| lazy(*it));
        let parents = self.programs.get(&parent).and_then(|it| {
            let threads = it.threads.iter();
            threads.copied().find_map(lazy)
        });
        let creator = siblings.or(parents);
        // Or it began while others were lazy, and who began it has ended.
        let is_young = since.is_some_and(|since| {
            start.saturating_mul(crate::monitor::tick_ns()) >= since.saturating_sub(1_000_000_000)
        });
        if creator.is_none() && !(is_young && self.moves_others()) {
            return None;
        }
        if self.group.is_some() {
            // If it is in our group, its home is that of its creator, or the root.
            if !groups::is_lazy(process, thread) {
                return None;
            }
            let home = creator.and_then(|it| it.home.clone());
            return Some((*here, Some(home.unwrap_or_else(|| "/".to_owned()))));
        }
        let default = Scheduling {
            is_reset_on_fork: here.is_reset_on_fork,
            ..Scheduling::default()
        };
        let own = creator.map_or(default, |it| it.own);
        let placement = if self.moves_others() {
            Placement::Lazy
        } else {
            Placement::Bound
        };
        let lazy = rung::wanted(self.rung, Return::Always, placement, &own);
        let is_it = is_as_given(here, &lazy) && !is_as_given(here, &own);
        is_it.then_some((own, None))
    }

    fn update_thread(&mut self, slot: u32, entry: Option<&Entry>) {
        let Some(known) = &self.known[slot as usize] else {
            return;
        };
        let (process, thread) = (known.process, known.thread);
        let needs_name = self.programs[&process].has_rules;
        if entry.is_none() && !needs_name {
            return;
        }
        let name = if needs_name {
            // Threads are named after they have begun.
            let stat = self.reader.stat(process, thread);
            stat.map_or(String::new(), |it| it.name)
        } else {
            String::new()
        };
        let (attributes, kind) = self.kind_of(process, &name, entry);
        let Some(known) = &mut self.known[slot as usize] else {
            return;
        };
        if known.attributes == attributes && known.kind == kind {
            return;
        }
        known.attributes = attributes;
        known.is_demoted = false;
        known.kind = kind;
        let kind = self.moved_kind(kind);
        let mut actions = Vec::new();
        self.machine
            .set_kind(Slot(slot), kind, &mut |it| actions.push(it));
        self.perform(actions);
    }

    fn drop_thread(&mut self, thread: u32) {
        let Some(slot) = self.by_thread.remove(&thread) else {
            return;
        };
        let mut actions = Vec::new();
        // It may be there, only not looked after any more: it returns first.
        self.machine
            .set_kind(Slot(slot), Kind::Excluded, &mut |it| actions.push(it));
        self.perform(std::mem::take(&mut actions));
        self.machine.remove(Slot(slot), &mut |it| actions.push(it));
        if let Some(known) = self.known[slot as usize].take() {
            if let Some(program) = self.programs.get_mut(&known.process) {
                program.threads.remove(&thread);
            }
        }
        self.free.push(slot);
        self.perform(actions);
        self.forget(&[thread]);
    }

    /// Demotes critical threads that have run away.
    fn observe(&mut self) {
        let fast: Vec<(Slot, u32)> = self.machine.fast_threads().collect();
        for (slot, thread) in fast {
            let Some(known) = &self.known[slot.0 as usize] else {
                continue;
            };
            let process = known.process;
            let times = self.reader.times(process, thread);
            let switches = self.reader.switches(process, thread);
            let (Some(times), Some(switches)) = (times, switches) else {
                continue;
            };
            let mut actions = Vec::new();
            let (run, blockings) = (times.run_ns, switches.voluntary);
            let is_demoted = self
                .machine
                .observe(slot, run, blockings, &mut |it| actions.push(it));
            if is_demoted {
                if let Some(known) = &mut self.known[slot.0 as usize] {
                    known.is_demoted = true;
                    let program = self.programs.get(&process);
                    self.news.push(News::Demoted {
                        thread,
                        role: known.attributes.role(),
                        program: program.map_or(String::new(), |it| it.name.name.clone()),
                    });
                }
            }
            if self.machine.settings().leaves_while_blocked {
                let stat = self.reader.stat(process, thread);
                let is_blocked = stat.is_some_and(|it| it.state != 'R');
                self.machine
                    .set_blocked(slot, is_blocked, &mut |it| actions.push(it));
            }
            self.perform(actions);
        }
    }

    /// What a program has changed of a thread that is elsewhere is what it returns to.
    fn take_wishes(&mut self) {
        let moved: Vec<u32> = match &self.journal {
            Some(journal) => journal.moved().keys().copied().collect(),
            None => return,
        };
        for thread in moved {
            let Some(slot) = self.by_thread.get(&thread).copied() else {
                continue;
            };
            let Some(known) = &mut self.known[slot as usize] else {
                continue;
            };
            let Ok(here) = scheduling::of(thread) else {
                continue;
            };
            if is_as_given(&here, &known.given) {
                continue;
            }
            if scheduling::is_realtime(here.policy) {
                // It runs in real time from now on, and is left alone.
                known.region = Region::Own;
                known.kind = Kind::Excluded;
                let mut actions = Vec::new();
                self.machine
                    .set_kind(Slot(slot), Kind::Excluded, &mut |it| actions.push(it));
                self.forget(&[thread]);
                continue;
            }
            known.take_wish(&here);
            let placement = self.machine.placement(Slot(slot));
            let Some(placement) = placement else { continue };
            known.given = rung::wanted(self.rung, Return::Always, placement, &known.own);
            let (given, record) = (known.given, record(known));
            if self.note(vec![record]) {
                let _ = scheduling::set(thread, &given);
            }
        }
    }

    /// Does what the machine says, once it is written down.
    fn perform(&mut self, actions: Vec<Action>) {
        let mut todo = Vec::new();
        let mut records = Vec::new();
        for action in actions {
            let slot = action.slot.0 as usize;
            let Some(known) = self.known.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            if known.thread != action.tid {
                continue;
            }
            // Its number may be that of another by now.
            let stat = self.reader.stat(known.process, known.thread);
            if stat.is_none_or(|it| it.start != known.start) {
                continue;
            }
            let Ok(own) = scheduling::of(known.thread) else {
                continue;
            };
            if known.region != Region::Own {
                known.take_wish(&own);
            }
            if action.placement == Placement::Own {
                if known.region != Region::Own {
                    todo.push(action);
                }
                continue;
            }
            if known.region == Region::Own {
                // By ways that nobody has told of: it is the program's.
                if scheduling::is_realtime(own.policy) {
                    continue;
                }
                known.own = own;
                known.home = match &self.group {
                    Some(_) => groups::home_of(known.process, known.thread),
                    None => None,
                };
            }
            known.given = rung::wanted(self.rung, Return::Always, action.placement, &known.own);
            records.push(record(known));
            todo.push(action);
        }
        if !self.note(records) {
            todo.retain(|it| it.placement == Placement::Own);
        }
        let mut back = Vec::new();
        for action in todo {
            let slot = action.slot.0 as usize;
            let Some(known) = self.known[slot].as_mut() else {
                continue;
            };
            match put(known, self.group.as_ref(), action.placement) {
                Ok(()) => known.region = action.placement.region(),
                Err(error) if error == GONE => {}
                Err(error) => {
                    let (process, thread) = (known.process, known.thread);
                    if let Some(program) = self.programs.get_mut(&process) {
                        if !std::mem::replace(&mut program.was_refused, true) {
                            self.news.push(News::Refused {
                                thread,
                                program: program.name.name.clone(),
                                error,
                            });
                        }
                    }
                }
            }
            let is_back = self.known[slot].as_ref();
            if is_back.is_some_and(|it| it.region == Region::Own) {
                back.push(action.tid);
            }
        }
        self.forget(&back);
    }

    /// Whether it is written down, and so may be done.
    fn note(&mut self, records: Vec<Record>) -> bool {
        let Some(journal) = &mut self.journal else {
            return false;
        };
        match journal.note(records) {
            Ok(()) => true,
            Err(error) => {
                if !std::mem::replace(&mut self.is_journal_lost, true) {
                    self.news.push(News::NoJournal(error.to_string()));
                }
                false
            }
        }
    }

    fn forget(&mut self, threads: &[u32]) {
        if let Some(journal) = &mut self.journal {
            // What is not forgotten is undone once more, which does no harm.
            let _ = journal.forget(threads);
        }
    }

    /// Whether somebody is in the fast region since the last look, so that others are
    /// to be looked for now.
    #[must_use]
    pub fn is_to_look(&self) -> bool {
        self.machine.fast_count() > 0 && self.busy_since_ns.is_none()
    }

    /// How many programs have registered.
    #[must_use]
    pub fn registered(&self) -> usize {
        self.programs
            .values()
            .filter(|it| it.view.is_some())
            .count()
    }
}

fn record(known: &Known) -> Record {
    Record {
        process: known.process,
        thread: known.thread,
        start: known.start,
        own: known.own,
        given: known.given,
        home: known.home.clone(),
    }
}

/// Puts a thread where it belongs.
fn put(known: &Known, group: Option<&LazyGroup>, to: Placement) -> Result<(), Errno> {
    let is_lazy = to.region() == Region::Lazy;
    if let (Some(group), Some(home)) = (group, &known.home) {
        if is_lazy {
            group.take(known.thread)?;
        } else {
            groups::bring_home(known.thread, home)?;
        }
    }
    let wanted = if to == Placement::Own {
        known.own
    } else {
        known.given
    };
    scheduling::set(known.thread, &wanted)
}

/// The rung that is asked for, or the best on which threads return.
fn rung(wanted: Option<Rung>) -> Result<(Rung, Option<LazyGroup>), StartError> {
    let mut reasons = Vec::new();
    let reports = rung::probe();
    for rung in Rung::ALL {
        if wanted.is_some_and(|it| it != rung) {
            continue;
        }
        if rung == Rung::Cgroup {
            match LazyGroup::new() {
                Ok(group) => return Ok((rung, Some(group))),
                Err(why) => reasons.push((rung, why)),
            }
            continue;
        }
        let report = reports.iter().find(|it| it.rung == rung);
        match report.map(|it| it.verdict) {
            Some(Ok(Return::Always)) => return Ok((rung, None)),
            Some(Ok(Return::Never)) => reasons.push((
                rung,
                "threads that have become lazy cannot return; grant CAP_SYS_NICE, or start the \
                 mediator as root"
                    .to_owned(),
            )),
            Some(Err(obstacle)) => reasons.push((rung, obstacle.to_string())),
            None => {}
        }
    }
    Err(StartError::NoRung(reasons))
}

/// Nanoseconds since the machine started, by which a device is told of time.
#[must_use]
pub fn now_ns() -> u64 {
    kernel::boot_time_ns()
}
