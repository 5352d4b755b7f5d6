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
//! the group `background`, and others are watched, who may have to wait for them; on
//! the others all threads of all programs are moved, but those that are excluded, that
//! run in real time by themselves, and the kernel's.
//!
//! What a program changes of a thread that is elsewhere is its wish: it is found at
//! the next look and had on return. Programs that have registered ask first, and have
//! their threads return for as long as they ask the kernel for something, or begin others
//! ([`Device::home`]). Threads that are begun by others inherit where those are, and
//! return to what those had.

mod groups;
pub mod journal;
mod moving;
mod programs;
mod rules;
pub mod server;
mod telling;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::Path;

use milieu_threads::attributes::{Attributes, Role};
use milieu_threads::kernel::{self, Errno};
use milieu_threads::mediator::{self, Kind, Machine, Node, Settings};
use milieu_threads::rung::{self, Return, Rung};
use milieu_threads::table::{Region, Scheduling, View};

use crate::proc::{self, Files, Reader};
use groups::LazyGroup;
use journal::{Journal, Restored};
use moving::OfTheDevice;
pub use rules::{Group, Name, RuleError, Rules};
pub use telling::{NotItsOwn, Visit};

/// Threads that a mediator of the device looks after at most; more are left alone.
pub const THREADS_MAX: usize = 1 << 15;

/// How long after the fast region became empty threads are looked for that lazy ones
/// have begun in the last moment.
const AFTERMATH_NS: u64 = 1_000_000_000;

/// How often everything is looked at while somebody is in the fast region, at most.
const LOOK_NS: u64 = 150_000_000;

/// How long nobody is looked at, at most: while somebody is in the fast region or blocked,
/// and else.
const BUSY_NS: u64 = 200_000_000;
const IDLE_NS: u64 = 1_000_000_000;

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
    /// So many threads have to wait that a turn, as long as it may be, was too short for
    /// all of them; told once.
    TooShort,
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
            News::TooShort => f.write_str(mediator::TOO_SHORT),
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
#[derive(Debug)]
struct Known {
    process: u32,
    thread: u32,
    /// Open from when it is first asked how much it has run, where so many may be.
    files: OnceCell<Option<Files>>,
    start: u64,
    attributes: Attributes,
    kind: Kind,
    region: Region,
    /// What it returns to, while it is elsewhere.
    own: Scheduling,
    given: Scheduling,
    home: Option<String>,
    is_demoted: bool,
    /// Nobody has said yet what it returns to: it has what it began with, or what others
    /// have who may have begun it.
    is_new: bool,
    /// The program itself runs it in real time, and it is left alone.
    is_realtime: bool,
    /// How often it was asked to be where the program wants it, and is still.
    visits: u32,
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
    /// Of how many threads files may be open.
    room: usize,
    /// By the machine's slots.
    known: Vec<Option<Known>>,
    free: Vec<u32>,
    by_thread: HashMap<u32, u32>,
    programs: HashMap<u32, Program>,
    /// Since when somebody is in the fast region, and when it became empty.
    busy_since_ns: Option<u64>,
    idle_since_ns: Option<u64>,
    /// When everything is to be looked at again.
    all_due_ns: u64,
    has_too_many: bool,
    is_journal_lost: bool,
    user: u32,
    news: Vec<News>,
}

impl<'n> Device<'n> {
    /// The most of the time that turns take, in percent, where a wait is asked for: more than
    /// [within a program](Settings::TURN_PERCENT_KEEPING), as a turn that is over, and who
    /// has had none, is seen later.
    pub const TURN_PERCENT_KEEPING: u8 = 90;

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
        let known = (0..nodes.len()).map(|_| None).collect();
        let settings = Settings {
            is_reversible: true,
            ..plan.settings
        };
        let mut device = Device {
            machine: Machine::new(nodes, settings),
            rung,
            group,
            journal: Some(journal),
            plan,
            reader: Reader::default(),
            room: Files::room(),
            known,
            free,
            by_thread: HashMap::new(),
            programs: HashMap::new(),
            busy_since_ns: None,
            idle_since_ns: None,
            all_due_ns: 0,
            has_too_many: false,
            is_journal_lost: false,
            user: rustix::process::geteuid().as_raw(),
            news: Vec::new(),
        };
        let makes_way = device.moves_others() && rung::makes_way(rung);
        device.machine.set_makes_way(makes_way);
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
        self.observe_blocked();
        let is_busy = self.machine.fast_count() > 0;
        // Between two looks at everything, which takes longer, lazy threads are looked at,
        // and blocked ones.
        let is_quiet = !is_busy && !self.has_blocked();
        let is_first = is_busy && self.busy_since_ns.is_none();
        let is_all = is_quiet || is_first || now_ns >= self.all_due_ns;
        if is_busy {
            self.busy_since_ns.get_or_insert(now_ns);
            self.idle_since_ns = None;
        } else if self.busy_since_ns.is_some() {
            let since = *self.idle_since_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(since) > AFTERMATH_NS {
                (self.busy_since_ns, self.idle_since_ns) = (None, None);
            }
        }
        if is_all {
            self.processes();
            self.observe();
            self.take_wishes();
            let pause = if self.busy_since_ns.is_some() {
                LOOK_NS
            } else {
                IDLE_NS
            };
            self.all_due_ns = now_ns.saturating_add(pause);
        }
        let mut actions = Vec::new();
        let mut watch = OfTheDevice {
            known: &self.known,
            reader: &mut self.reader,
            room: self.room,
        };
        let was_too_short = self.machine.was_too_short();
        let next = self
            .machine
            .tick(now_ns, &mut watch, &mut |it| actions.push(it));
        if self.machine.was_too_short() && !was_too_short {
            self.news.push(News::TooShort);
        }
        self.perform(actions);
        let is_busy = self.machine.fast_count() > 0 || self.busy_since_ns.is_some();
        let pause = if is_busy || self.has_blocked() {
            BUSY_NS
        } else {
            IDLE_NS
        };
        let latest = now_ns.saturating_add(pause);
        next.map_or(latest, |it| it.min(latest))
    }

    /// Whether a critical thread may go on at any time that does not count now.
    fn has_blocked(&self) -> bool {
        self.machine.blocked_threads().next().is_some()
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
