//! `milieu thread top`: what all threads do.

mod keys;
pub(super) mod order;
mod screen;
mod table;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::Args;
use milieu_device::mediator::server;
use milieu_device::monitor::{Monitor, Process, Sample, Scope, policy_name};
use milieu_threads::stack::Zones;
use milieu_threads::table::Region;
use serde_json::{Value, json};

use super::{Failure, Outcome, print};
use crate::arguments::seconds;
use order::{Filter, Order, Sort};

/// Show what all threads do: roles, regions, processors, waits, switches, stacks
///
/// Programs that Milieu serves have roles and regions; threads of all others are
/// shown with what the kernel knows of them. Without a terminal it prints once.
#[derive(Args)]
#[command(after_help = "\
Columns:
  REGION  fast, lazy, or own: where the mediator has put the thread
  SCHED   the kernel's policy with the nice value or real-time priority; `!5` and the
          like is the priority among critical threads, `!-` one that has run away
  CPU%    of one processor;  WAIT%  of the time, wanting a processor without one
  VOL/s   switches because it had to wait for something;  INV/s  because others ran
  STACK   the most of it that was ever used, its size, and the zone: L low (wastes),
          N normal, H high (near overflow); of a process, in the tree: its virtual
          memory, how much of that is resident, and the words that started it

A filter is words that all have to fit: text that is in a name or role; or FIELD=TEXT,
FIELD==TEXT for all of it, FIELD>NUMBER, FIELD<NUMBER with process, name, role, region,
policy, zone, state, pid, tid, cpu, wait, voluntary, involuntary, stack, peak, and virtual
and resident, which are the process's. `!` before a word means the opposite.

Examples:
  milieu thread top
  milieu thread top --tree --filter 'region=fast'
  milieu thread top --once --sort wait --filter 'cpu>1 !role=logger'
  milieu thread top --once --tree --sort virtual --filter 'virtual>1G'
  milieu thread top --once --json --interval 0 --filter 'role==gas-detection'
  milieu thread top --json --interval 10 > threads.jsonl")]
pub(super) struct Top {
    /// Print once and end
    #[arg(long)]
    once: bool,

    /// Print a line of JSON for each refresh
    #[arg(long)]
    pub(super) json: bool,

    /// Seconds from one refresh to the next; 0 with --once: what there is, without rates
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    interval: Duration,

    /// The order of threads
    #[arg(long, value_enum, default_value_t = Sort::Cpu)]
    sort: Sort,

    /// The other way round
    #[arg(long)]
    reverse: bool,

    /// Only threads that fit, see below
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true
    )]
    filter: Filter,

    /// Threads below their processes, and processes below those that started them
    #[arg(long)]
    tree: bool,

    /// Only this process; may be given several times
    #[arg(long, value_name = "NUMBER")]
    pid: Vec<u32>,

    /// Programs of all users, and not only one's own; root has all anyhow
    #[arg(long)]
    all: bool,

    /// The kernel's own threads, too
    #[arg(long)]
    kernel: bool,

    /// Without stacks
    #[arg(long)]
    no_stacks: bool,

    /// Bounds of the zones of stacks, in percent [default: those of the device, or 25,75]
    #[arg(long, value_name = "LOW,HIGH", value_parser = super::zones::parse)]
    zones: Option<Zones>,
}

impl Top {
    pub(super) fn run(&self) -> Outcome {
        let mut monitor = Monitor::new(self.scope());
        let order = self.order(super::zones::chosen(self.zones)?);
        if self.json && !self.once {
            return self.stream(&mut monitor, &order);
        }
        let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if !self.once && is_terminal {
            return screen::show(&mut monitor, order, self.interval);
        }
        let mut sample = monitor.sample(Instant::now());
        if !self.interval.is_zero() {
            std::thread::sleep(self.interval);
            sample = monitor.sample(Instant::now());
        }
        self.found(&sample)?;
        if self.json {
            return print(&format!("{}\n", document(&sample, &order)));
        }
        let mut text = String::new();
        for line in table::lines(&sample, &order, None) {
            text += &line.plain();
            text.push('\n');
        }
        print(&text)
    }

    fn scope(&self) -> Scope {
        let user = rustix::process::geteuid();
        Scope {
            user: (!self.all && !user.is_root() && self.pid.is_empty()).then(|| user.as_raw()),
            processes: (!self.pid.is_empty()).then(|| self.pid.clone()),
            has_kernel: self.kernel,
            has_no_stacks: self.no_stacks,
            mediators: server::sockets(),
        }
    }

    fn order(&self, zones: Zones) -> Order {
        Order {
            sort: self.sort,
            is_reversed: self.reverse,
            filter: self.filter.clone(),
            is_tree: self.tree,
            zones,
        }
    }

    /// Lines until the reader leaves, or the processes that are meant have ended.
    fn stream(&self, monitor: &mut Monitor, order: &Order) -> Outcome {
        let interval = self.interval.max(Duration::from_millis(10));
        self.found(&monitor.sample(Instant::now()))?;
        loop {
            std::thread::sleep(interval);
            let sample = monitor.sample(Instant::now());
            if !self.pid.is_empty() && sample.processes.is_empty() {
                return Ok(std::process::ExitCode::SUCCESS);
            }
            print(&format!("{}\n", document(&sample, order)))?;
        }
    }

    /// Whoever asks for a process wants to know that it is not there.
    fn found(&self, sample: &Sample) -> Outcome<()> {
        let is_missing = |it: &&u32| sample.processes.iter().all(|found| found.number != **it);
        match self.pid.iter().find(is_missing) {
            None => Ok(()),
            Some(pid) => Err(Failure::new(
                format!("there is no process {pid}"),
                "`milieu thread top --once` lists those that there are",
            )),
        }
    }
}

fn document(sample: &Sample, order: &Order) -> Value {
    let time = jiff::Timestamp::now();
    let process = |it: &Process| {
        let threads: Vec<Value> = order
            .of_process(it)
            .into_iter()
            .map(|thread| thread_document(thread, order.zones))
            .collect();
        json!({
            "process": it.number,
            "parent": it.parent,
            "name": it.name,
            "words": it.words,
            "user": it.user,
            "virtual_bytes": it.virtual_bytes,
            "resident_bytes": it.resident_bytes,
            "is_served": it.is_served,
            "threads": threads,
        })
    };
    let all = sample.processes.iter().map(process);
    let some = all.filter(|it| it["threads"] != json!([]));
    json!({
        "time": time.to_string(),
        "seconds": sample.seconds,
        "processes": some.collect::<Vec<_>>(),
    })
}

fn thread_document(thread: &milieu_device::monitor::Thread, zones: Zones) -> Value {
    json!({
        "thread": thread.number,
        "name": thread.name,
        "role": (!thread.role.is_none()).then(|| thread.role.as_str()),
        "region": thread.region.map(region_name),
        "priority": thread.critical.map(|it| it.nice()),
        "is_time_critical": thread.critical.is_some(),
        "is_demoted": thread.is_demoted,
        "is_excluded": thread.is_excluded,
        "policy": policy_name(thread.policy),
        "nice": thread.nice,
        "realtime_priority": thread.realtime_priority,
        "state": thread.state.to_string(),
        "processor": thread.processor,
        "created_ns": created_ns(thread),
        "run_ns": thread.times.run_ns,
        "wait_ns": thread.times.wait_ns,
        "switches_voluntary": thread.switches.voluntary,
        "switches_involuntary": thread.switches.involuntary,
        "per_second": thread.since.map(|it| json!({
            "run": it.run,
            "wait": it.wait,
            "switches_voluntary": it.voluntary,
            "switches_involuntary": it.involuntary,
        })),
        "stack_bytes": thread.stack.map(|it| it.bytes),
        "stack_bytes_peak": thread.stack.map(|it| it.peak_bytes),
        "stack_zone": thread.stack.map(|it| it.zone(zones).to_string()),
    })
}

/// When it began, since the machine did, as far as the kernel tells.
fn created_ns(thread: &milieu_device::monitor::Thread) -> u64 {
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    thread.start.saturating_mul(tick_ns)
}

/// What a region is called.
fn region_name(region: Region) -> &'static str {
    match region {
        Region::Own => "own",
        Region::Fast => "fast",
        Region::Lazy => "lazy",
    }
}
