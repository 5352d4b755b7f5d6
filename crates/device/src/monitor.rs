//! What all threads do: the paper's Thread Monitor (section IV-C).
//!
//! A [`Monitor`] looks once in a while and remembers what it saw, so that a sample
//! tells what happened since the last one. Programs that Milieu serves are looked up
//! in their thread information tables; of all others, and of what no table has,
//! the kernel tells.
//!
//! Looking costs little, so that it does not change what it looks at: files stay open
//! while there is room for them, how often threads switch is not read of those that did
//! not run since, and stacks are found once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use milieu_threads::attributes::{Priority, Role};
use milieu_threads::rung::scheduling;
use milieu_threads::stack::{self, Stack, Zone, Zones};
use milieu_threads::table::{Entry, Region, View};

use crate::mediator::server::{self, Placed};
use crate::proc::{self, Files, Reader, Stat, Switches, Times};

/// Whose threads are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only programs of this user.
    pub user: Option<u32>,
    /// Only these processes.
    pub processes: Option<Vec<u32>>,
    /// Also the kernel's own.
    pub has_kernel: bool,
    /// Without stacks, which cost most of all.
    pub has_no_stacks: bool,
    /// Mediators of the device that tell which threads they have put where.
    pub mediators: Vec<PathBuf>,
}

/// A process and what its threads do.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// The kernel's number.
    pub number: u32,
    /// The one that has started it.
    pub parent: u32,
    /// What it is called: the name of its first thread.
    pub name: String,
    /// The words that started it.
    pub words: Vec<String>,
    /// Whose it is.
    pub user: u32,
    /// Its address space, in which all of its stacks are.
    pub virtual_bytes: u64,
    /// How much of that is in memory, as the kernel counts it by and by.
    pub resident_bytes: u64,
    /// Whether it has a thread information table.
    pub is_served: bool,
    /// In the order of their numbers, the first one first.
    pub threads: Vec<Thread>,
}

/// A thread and what it did since the last sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// The kernel's number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// What it is for, if anybody said so.
    pub role: Role,
    /// Where the mediator has put it; none without one.
    pub region: Option<Region>,
    /// Its priority, if it is time-critical.
    pub critical: Option<Priority>,
    /// Whether it was critical and kept a processor for too long.
    pub is_demoted: bool,
    /// Whether mediators leave it alone.
    pub is_excluded: bool,
    /// As the kernel numbers them.
    pub policy: u8,
    /// The nice value.
    pub nice: i8,
    /// Among real-time threads.
    pub realtime_priority: u8,
    /// As [`Stat::state`](proc::Stat::state).
    pub state: char,
    /// Which processor it had last.
    pub processor: u32,
    /// In ticks since the machine began.
    pub start: u64,
    /// All that it has had of the processors.
    pub times: Times,
    /// All of its switches.
    pub switches: Switches,
    /// What changed since the last sample; none in the first that has it.
    pub since: Option<Since>,
    /// Its stack, where that can be told.
    pub stack: Option<StackUse>,
}

impl Thread {
    fn place(&mut self, placed: Option<&Placed>) {
        if let Some(placed) = placed {
            self.region = Some(placed.region);
            self.critical = self.critical.or(placed.critical);
            self.is_demoted |= placed.is_demoted;
        }
    }
}

/// What a thread did between two samples, for each second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Since {
    /// Seconds on a processor: 1 is all of one.
    pub run: f64,
    /// Seconds in which it wanted a processor and had none.
    pub wait: f64,
    /// Switches because it had to wait for something.
    pub voluntary: f64,
    /// Switches because another was to run.
    pub involuntary: f64,
}

/// How much of a stack was ever used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackUse {
    /// How large it is.
    pub bytes: u64,
    /// How deep it was.
    pub peak_bytes: u64,
}

impl StackUse {
    /// In which zone that is.
    pub fn zone(&self, zones: Zones) -> Zone {
        zones.zone(self.peak_bytes, self.bytes)
    }
}

/// Everything at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// In the order of their numbers.
    pub processes: Vec<Process>,
    /// Seconds since the sample before; none for the first.
    pub seconds: Option<f64>,
}

impl Sample {
    /// All threads.
    pub fn threads(&self) -> impl Iterator<Item = (&Process, &Thread)> {
        let with = |process| move |thread| (process, thread);
        let all = self.processes.iter();
        all.flat_map(move |it| it.threads.iter().map(with(it)))
    }
}

/// What is remembered of a thread.
struct Known {
    start: u64,
    /// None: there is no room for more.
    files: Option<Files>,
    times: Times,
    switches: Switches,
    /// None: not looked for yet, or it cannot be found.
    stack: Option<Stack>,
    stack_use: Option<StackUse>,
    /// In how many samples the stack was looked for in vain.
    misses: u8,
    /// Whether it was there in the sample before.
    is_fresh: bool,
}

/// What is remembered of a process.
struct KnownProcess {
    start: u64,
    words: Vec<String>,
    user: u32,
    stacks: Option<stack::Process>,
    /// What the first thread may have.
    stack_limit: Option<u64>,
    table: Option<View>,
    /// In how many samples there was no table: they come soon or never.
    misses: u8,
    threads: HashMap<u32, Known>,
    is_fresh: bool,
}

/// After so many samples without a table, or a stack, it is looked for seldom.
const MISSES: u8 = 4;
/// And then in every such sample.
const SELDOM: u8 = 16;

/// Looks at all threads once in a while.
pub struct Monitor {
    scope: Scope,
    reader: Reader,
    room: Room,
    known: HashMap<u32, KnownProcess>,
    last: Option<Instant>,
}

/// Of how many more threads files may stay open.
struct Room(usize);

impl Room {
    /// Where so many threads have theirs open.
    fn beside(threads: usize) -> Room {
        Room(Files::room().saturating_sub(threads))
    }

    fn open(&mut self, process: u32, thread: u32) -> Option<Files> {
        self.0 = self.0.checked_sub(1)?;
        Files::of(process, thread)
    }
}

impl Monitor {
    /// One that has not looked yet.
    pub fn new(scope: Scope) -> Monitor {
        Monitor {
            scope,
            reader: Reader::default(),
            room: Room(0),
            known: HashMap::new(),
            last: None,
        }
    }

    /// Looks, at the moment that is handed in.
    pub fn sample(&mut self, now: Instant) -> Sample {
        let seconds = self
            .last
            .replace(now)
            .map(|it| now.duration_since(it).as_secs_f64());
        let known = self.known.values().flat_map(|it| it.threads.values());
        self.room = Room::beside(known.filter(|it| it.files.is_some()).count());
        let numbers = match &self.scope.processes {
            Some(numbers) => numbers.clone(),
            None => proc::processes(),
        };
        let looked = numbers.into_iter();
        let mut processes: Vec<Process> =
            looked.filter_map(|it| self.process(it, seconds)).collect();
        for mediator in &self.scope.mediators {
            // One that is not there, or not ours to ask, says nothing.
            if let Ok(placed) = server::regions(mediator) {
                let threads = processes.iter_mut().flat_map(|it| &mut it.threads);
                threads.for_each(|it| it.place(placed.get(&it.number)));
            }
        }
        self.known.retain(|_, it| std::mem::take(&mut it.is_fresh));
        Sample { processes, seconds }
    }

    fn process(&mut self, number: u32, seconds: Option<f64>) -> Option<Process> {
        let known = self.known.get(&number);
        let known = known.and_then(|it| it.stat(&mut self.reader, number));
        let first = known.or_else(|| self.reader.stat(number, number))?;
        if first.is_kernel && !self.scope.has_kernel {
            return None;
        }
        let is_known = |it: &KnownProcess| it.start == first.start;
        let known = match self.known.remove(&number).filter(is_known) {
            Some(known) => known,
            None => {
                let user = proc::user(number)?;
                if self.scope.user.is_some_and(|it| it != user) {
                    return None;
                }
                KnownProcess {
                    start: first.start,
                    words: self.reader.words(number),
                    user,
                    stacks: None,
                    stack_limit: None,
                    table: None,
                    misses: 0,
                    threads: HashMap::new(),
                    is_fresh: true,
                }
            }
        };
        let known = self.known.entry(number).or_insert(known);
        known.is_fresh = true;
        known.look_for_table(number);
        if known.stacks.is_none() && !self.scope.has_no_stacks {
            known.stacks = stack::Process::other(number as i32).ok();
            known.stack_limit = self.reader.stack_limit(number);
        }
        let entries: HashMap<u32, Entry> = match &known.table {
            Some(table) => table.iter().map(|(_, it)| (it.tid, it)).collect(),
            None => HashMap::new(),
        };
        let mut threads = Vec::new();
        for tid in proc::threads(number) {
            let stat = if tid == number {
                Some(first.clone())
            } else {
                let known = known.stat(&mut self.reader, tid);
                known.or_else(|| self.reader.stat(number, tid))
            };
            let Some(stat) = stat else { continue };
            let (reader, room) = (&mut self.reader, &mut self.room);
            let entry = entries.get(&tid);
            threads.push(known.thread(reader, room, (number, tid), stat, entry, seconds));
        }
        known
            .threads
            .retain(|_, it| std::mem::take(&mut it.is_fresh));
        Some(Process {
            number,
            parent: first.parent,
            name: first.name,
            words: known.words.clone(),
            user: known.user,
            virtual_bytes: first.virtual_bytes,
            resident_bytes: first.resident_bytes,
            is_served: known.table.is_some(),
            threads,
        })
    }
}

impl KnownProcess {
    /// Programs make their table when they begin, and anew after `exec`.
    fn look_for_table(&mut self, number: u32) {
        self.misses = self.misses.wrapping_add(1);
        let is_due = self.misses <= MISSES || self.misses % SELDOM == 0;
        if self.table.is_none() && is_due {
            self.table = View::of_process(number).ok();
        }
    }

    /// What a thread does whose files are open.
    fn stat(&self, reader: &mut Reader, tid: u32) -> Option<Stat> {
        let known = self.threads.get(&tid)?;
        reader.stat_of(known.files.as_ref()?)
    }

    fn thread(
        &mut self,
        reader: &mut Reader,
        room: &mut Room,
        (process, tid): (u32, u32),
        stat: Stat,
        entry: Option<&Entry>,
        seconds: Option<f64>,
    ) -> Thread {
        let before = self.threads.remove(&tid);
        let mut before = before.filter(|it| it.start == stat.start);
        // Of those that have been there for a while.
        if let Some(known) = before.as_mut().filter(|it| it.files.is_none()) {
            known.files = room.open(process, tid);
        }
        let times = match before.as_ref().and_then(|it| it.files.as_ref()) {
            Some(files) => reader.times_of(files),
            None => reader.times(process, tid),
        };
        // Kernels that count nothing more exact count ticks.
        let times = times.unwrap_or(Times {
            run_ns: stat.ticks.saturating_mul(tick_ns()),
            ..Times::default()
        });
        // Who did not get a processor did not give one away.
        let has_run = before.as_ref().is_none_or(|it| it.times != times);
        let switches = match &before {
            Some(known) if !has_run => known.switches,
            _ => reader.switches(process, tid).unwrap_or_default(),
        };
        let since = before.as_ref().zip(seconds);
        let since = since.map(|(it, seconds)| since_then(it, times, switches, seconds));
        let mut known = before.unwrap_or(Known {
            start: stat.start,
            files: None,
            times,
            switches,
            stack: None,
            stack_use: None,
            misses: 0,
            is_fresh: true,
        });
        known.is_fresh = true;
        known.times = times;
        known.switches = switches;
        if has_run || known.stack.is_none() {
            known.measure(self.stacks.as_ref(), tid, self.first_limit(process, tid));
        }
        let of_table = entry.filter(|it| it.stack_kib > 0).map(|it| StackUse {
            bytes: u64::from(it.stack_kib) * 1024,
            peak_bytes: u64::from(it.stack_kib_peak) * 1024,
        });
        let stack = match (of_table, known.stack_use) {
            // The process knows the size, which the kernel can only guess; the peak
            // is the deeper one.
            (Some(table), Some(seen)) => Some(StackUse {
                peak_bytes: table.peak_bytes.max(seen.peak_bytes.min(table.bytes)),
                ..table
            }),
            (table, seen) => table.or(seen),
        };
        self.threads.insert(tid, known);
        let scheduled = scheduling::of(tid).ok();
        Thread {
            number: tid,
            role: entry.map_or(Role::NONE, |it| it.attributes.role()),
            region: entry.map(|it| it.region),
            critical: entry
                .filter(|it| it.attributes.is_time_critical())
                .map(|it| it.attributes.priority()),
            is_demoted: entry.is_some_and(|it| it.is_demoted),
            is_excluded: entry.is_some_and(|it| it.is_excluded),
            policy: scheduled.map_or(stat.policy, |it| it.policy),
            nice: stat.nice,
            realtime_priority: stat.realtime_priority,
            name: stat.name,
            state: stat.state,
            processor: stat.processor,
            start: stat.start,
            times,
            switches,
            since,
            stack,
        }
    }

    /// The first thread's stack grows until there.
    fn first_limit(&self, process: u32, tid: u32) -> Option<u64> {
        self.stack_limit.filter(|_| process == tid)
    }
}

impl Known {
    fn measure(&mut self, stacks: Option<&stack::Process>, tid: u32, limit: Option<u64>) {
        let Some(stacks) = stacks else { return };
        // One that grows has other bounds each time.
        if self.stack.is_none() || limit.is_some() {
            self.misses = self.misses.wrapping_add(1);
            if self.misses > MISSES && self.misses % SELDOM != 0 {
                return;
            }
            // Only of one that waits; another time perhaps.
            if let Ok(stack) = stacks.stack_of(tid as i32) {
                self.misses = 0;
                self.stack = Some(stack);
            }
        }
        let Some(stack) = &self.stack else { return };
        if let Ok(depth) = stacks.depth(stack) {
            let bytes = limit.map_or(stack.bytes(), |it| it.max(stack.bytes()));
            let before = self.stack_use.map_or(0, |it| it.peak_bytes);
            self.stack_use = Some(StackUse {
                bytes,
                peak_bytes: depth.max(before),
            });
        }
    }
}

fn since_then(before: &Known, times: Times, switches: Switches, seconds: f64) -> Since {
    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds.max(1e-9);
    Since {
        run: rate(times.run_ns, before.times.run_ns) / 1e9,
        wait: rate(times.wait_ns, before.times.wait_ns) / 1e9,
        voluntary: rate(switches.voluntary, before.switches.voluntary),
        involuntary: rate(switches.involuntary, before.switches.involuntary),
    }
}

/// How long a tick is.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// The name of a policy, as `chrt` and others write it.
pub fn policy_name(policy: u8) -> &'static str {
    match policy {
        0 => "OTHER",
        1 => "FIFO",
        2 => "RR",
        3 => "BATCH",
        5 => "IDLE",
        6 => "DEADLINE",
        7 => "EXT",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use milieu_threads::attributes::Attributes;
    use milieu_threads::kernel;
    use milieu_threads::table::Table;

    use super::*;

    fn of_this_process() -> Monitor {
        Monitor::new(Scope {
            processes: Some(vec![std::process::id()]),
            ..Scope::default()
        })
    }

    #[test]
    fn a_thread_is_seen_with_its_role_and_what_it_did() {
        let (tell, told) = mpsc::channel();
        let (work, to_do) = mpsc::channel::<()>();
        let (end, ended) = mpsc::channel::<()>();
        let table = Table::new(64).expect("there is memory");
        let thread = std::thread::Builder::new()
            .name("probe-1".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || {
                tell.send(kernel::thread_id()).expect("somebody listens");
                to_do.recv().expect("somebody asks");
                let start = kernel::thread_cpu_ns(kernel::thread_id());
                let used =
                    || kernel::thread_cpu_ns(kernel::thread_id()) > start.map(|it| it + 20_000_000);
                while !used() {
                    std::hint::spin_loop();
                }
                tell.send(0).expect("somebody listens");
                let _ = ended.recv();
            })
            .expect("a thread");
        let tid = told.recv().expect("its number");
        let critical = Attributes::of(Role::new("gas-detection").expect("a role"))
            .time_critical(Priority::new(-5).expect("a nice value"));
        let lines = table.lines();
        lines
            .insert(Entry::of(0x7000, tid, critical))
            .expect("a line");
        let mut monitor = of_this_process();
        let first = monitor.sample(Instant::now());
        let found = |sample: &Sample| {
            let threads = sample.processes[0].threads.clone();
            let mut own = threads.into_iter().filter(|it| it.number == tid);
            own.next().expect("it is there")
        };
        let before = found(&first);
        assert_eq!((first.seconds, before.since), (None, None));
        assert_eq!(before.name, "probe-1");
        assert_eq!(before.role.as_str(), "gas-detection");
        assert_eq!(before.critical, Priority::new(-5).ok());
        let process = &first.processes[0];
        assert!(process.is_served && process.resident_bytes > 0);
        assert!(process.virtual_bytes >= process.resident_bytes);

        work.send(()).expect("it waits");
        told.recv().expect("it has worked");
        let then = Instant::now() + Duration::from_secs(1);
        // It waits for the end before it is looked at, or soon.
        let after = loop {
            let after = found(&monitor.sample(then));
            if after.stack.is_some() || after.state == 'S' {
                break after;
            }
            std::thread::yield_now();
        };
        let total = after.times.run_ns - before.times.run_ns;
        assert!(total >= 20_000_000, "{after:?}");
        assert!(after.since.is_some());
        assert!(after.switches.voluntary >= before.switches.voluntary);
        drop(end);
        thread.join().expect("it has ended");
        let last = monitor.sample(then + Duration::from_secs(1));
        assert!(last.threads().all(|(_, it)| it.number != tid));
    }

    #[test]
    fn what_did_not_happen_is_no_rate() {
        let known = Known {
            start: 1,
            files: None,
            times: Times {
                run_ns: 1_000,
                wait_ns: 500,
                slices: 3,
            },
            switches: Switches::default(),
            stack: None,
            stack_use: None,
            misses: 0,
            is_fresh: true,
        };
        let since = since_then(&known, known.times, known.switches, 2.0);
        assert_eq!((since.run, since.wait, since.voluntary), (0.0, 0.0, 0.0));
        let times = Times {
            run_ns: 1_000 + 1_000_000_000,
            ..known.times
        };
        let since = since_then(&known, times, known.switches, 2.0);
        assert!((since.run - 0.5).abs() < 1e-9, "{since:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_not_listed() {
        let mut monitor = Monitor::new(Scope {
            processes: Some(vec![u32::MAX - 1]),
            ..Scope::default()
        });
        assert_eq!(monitor.sample(Instant::now()).processes, []);
    }
}
