//! `milieu thread mediate`: one mediator for all programs of the device.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use milieu_device::mediator::journal::{self, Restored};
use milieu_device::mediator::server::{self, Listener};
use milieu_device::mediator::{Device, News, Plan, Rules, THREADS_MAX};
use milieu_diagnostics::{Diagnostic, Source};
use milieu_threads::mediator::{Node, Settings};
use milieu_threads::rung;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{Failure, Outcome, notify, print};
use crate::arguments::seconds;
use crate::terminal;

/// Mediate between the threads of all programs: the time-critical come first
///
/// Programs that `milieu thread run` starts, or that are linked with its preload,
/// register by themselves; rules name critical threads of others. While one of them is there,
/// all other threads wait, but for those that are excluded. When it ends, however
/// it ends, every thread has what it had: a guard sees to it if it is killed.
#[derive(Args)]
#[command(after_help = "\
Rules, a line each, `#` begins a remark; PROGRAM is a name, or a path if it has a `/`;
patterns have `*` and `?`:
  only PROGRAM                     mediate these and nobody else
  exclude PROGRAM                  leave it alone
  urgent|normal|service PROGRAM    whose critical threads come first, second, third
  background PROGRAM               no critical threads; lazy all of the time
  critical PROGRAM THREAD [NICE]   threads that are critical, by name
  user NAME                        programs of this user may have critical threads, too

Examples:
  milieu thread mediate
  milieu thread mediate --rules /etc/milieu/mediator.rules --wait-max 0.5 --turn 10
  milieu thread mediate --status
  milieu thread mediate --restore")]
pub(super) struct Mediate {
    /// Who is who, see below [default: /etc/milieu/mediator.rules, if it is there]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// By which means [default: the best that works]
    #[arg(long, value_enum)]
    rung: Option<Rung>,

    /// Seconds that a lazy thread may want a processor and have none, or `never` [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = wait)]
    wait_max: Option<Wait>,

    /// How much of the processors critical threads leave then, or as much of the time is turns
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=50))]
    turn: u8,

    /// How much of the time turns take from critical threads at most, where so many have to wait
    /// [default: 50, and 90 with --wait-max]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=90))]
    turn_max: Option<u8>,

    /// Seconds that a critical thread may keep a processor without ever waiting
    #[arg(long, value_name = "SECONDS", default_value = "0.3", value_parser = seconds)]
    spin_max: Duration,

    /// A critical thread does not count while it waits for something
    #[arg(long)]
    leave_while_blocked: bool,

    /// The folder of socket and journal [default: /run/milieu, $XDG_RUNTIME_DIR/milieu]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Say what the mediator that runs does, and end
    #[arg(long, conflicts_with_all = ["restore", "check"])]
    status: bool,

    /// Undo what a mediator left behind that was killed, and end
    #[arg(long, conflicts_with = "check")]
    restore: bool,

    /// Check the rules and the means, and end
    #[arg(long)]
    check: bool,

    /// Wait until the standard input ends before --restore: what a guard does
    #[arg(long, requires = "restore", hide = true)]
    guard: bool,

    /// Tell what happens as lines of JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Rung {
    /// Critical threads in real time, round robin
    Realtime,
    /// The others in an idle control group, of version 1
    Cgroup,
    /// The others as SCHED_IDLE
    Idle,
    /// The others with nice value 19
    Nice,
}

impl From<Rung> for rung::Rung {
    fn from(rung: Rung) -> rung::Rung {
        match rung {
            Rung::Realtime => rung::Rung::Realtime,
            Rung::Cgroup => rung::Rung::Cgroup,
            Rung::Idle => rung::Rung::Idle,
            Rung::Nice => rung::Rung::Nice,
        }
    }
}

/// How long lazy threads wait; for ever without.
#[derive(Clone, Copy)]
struct Wait(Option<Duration>);

fn wait(text: &str) -> Result<Wait, String> {
    if text == "never" {
        return Ok(Wait(None));
    }
    let time = seconds(text).map_err(|error| format!("{error}, or `never`"))?;
    if time < Duration::from_millis(10) {
        return Err("less than 0.01 s is no wait".to_owned());
    }
    Ok(Wait(Some(time)))
}

/// The journal's name in its folder.
const JOURNAL: &str = "mediator.journal";
const SOCKET: &str = "mediator";
const RULES: &str = "/etc/milieu/mediator.rules";

impl Mediate {
    pub(super) fn run(&self) -> Outcome {
        let folder = self.folder.clone().unwrap_or_else(server::folder);
        if self.status {
            return self.tell_status(&folder.join(SOCKET));
        }
        if self.restore {
            return self.undo(&folder.join(JOURNAL));
        }
        let rules = self.rules()?;
        if self.check {
            return print(match self.json {
                true => "{\"rules\":\"right\"}\n",
                false => "the rules are right\n",
            });
        }
        self.serve(&folder, rules)
    }

    fn rules(&self) -> Outcome<Rules> {
        let path = match &self.rules {
            Some(path) => path,
            None if Path::new(RULES).exists() => Path::new(RULES),
            None => return Ok(Rules::default()),
        };
        let shown = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::new(
                format!("{shown} cannot be read: {error}"),
                "name another file with --rules",
            )
        })?;
        Rules::parse(&text).map_err(|errors| {
            let found = errors
                .iter()
                .map(|error| Diagnostic::error(format!("{shown}, {error}")));
            let found = found.collect();
            Failure::Wrong(Source::new(shown.clone(), ""), found, terminal::ERROR)
        })
    }

    fn settings(&self) -> Settings {
        let asked = match self.wait_max {
            Some(Wait(Some(wait))) => Settings {
                turn_percent_max: Device::TURN_PERCENT_KEEPING,
                ..Settings::keeping(nanoseconds(wait))
            },
            Some(Wait(None)) => Settings {
                lazy_wait_ns_max: None,
                ..Settings::default()
            },
            None => Settings::default(),
        };
        Settings {
            leaves_while_blocked: self.leave_while_blocked,
            turn_percent: self.turn,
            turn_percent_max: self.turn_max.unwrap_or(asked.turn_percent_max),
            spin_ns_max: nanoseconds(self.spin_max),
            ..asked
        }
    }

    fn serve(&self, folder: &Path, rules: Rules) -> Outcome {
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            Failure::new(
                format!("{what} in {}: {error}", folder.display()),
                "name a folder of yours with --folder, or end what is there",
            )
        };
        server::make_folder(folder).map_err(|it| cannot("the folder cannot be used", &it))?;
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, is_over.clone()).map_err(Failure::Output)?;
        }
        let journal = folder.join(JOURNAL);
        let listener = Listener::open(&folder.join(SOCKET))
            .map_err(|it| cannot("there can be no socket", &it))?;
        let mut guard = Guard::start(folder).map_err(|it| cannot("there can be no guard", &it))?;
        open_many_files();
        let plan = Plan {
            rung: self.rung.map(Into::into),
            settings: self.settings(),
            rules,
            left_alone: vec![guard.0.id()],
        };
        let mut nodes = vec![Node::default(); THREADS_MAX];
        let started = Device::start(&mut nodes, &journal, plan);
        let (mut device, restored) = started.map_err(|error| {
            Failure::new(
                error.to_string(),
                "`milieu thread probe` says what would make each of the means work; within one \
                 program `milieu thread run` mediates without privilege",
            )
        })?;
        let rung = device.rung();
        rung::come_first(rung);
        self.say(
            &json!({"is": "ready", "rung": rung.name(), "restored": restored.restored}),
            &format!("mediating by {rung}{}", left_behind(restored)),
        )?;
        notify::ready();
        let mut failed = Ok(());
        let served = server::serve(&mut device, &listener, &is_over, &mut |news| {
            let said = self.say(&document(&news), &news.to_string());
            if failed.is_ok() {
                failed = said;
            }
        });
        notify::stopping();
        let restored = device.stop();
        guard.dismiss();
        served.map_err(Failure::Output)?;
        // Nobody who reads what happens is no reason to end what others rely on.
        if !matches!(&failed, Err(Failure::Output(error)) if error.kind() != io::ErrorKind::BrokenPipe)
        {
            failed = Ok(());
        }
        failed?;
        self.say(
            &json!({"is": "over", "restored": restored.restored, "refused": restored.refused}),
            &format!("every thread has what it had{}", refusals(restored)),
        )?;
        Ok(ExitCode::SUCCESS)
    }

    /// Lines of JSON are results; everything else is for who watches.
    fn say(&self, document: &Value, text: &str) -> Outcome<()> {
        if self.json {
            return print(&format!("{document}\n")).map(|_| ());
        }
        eprintln!("milieu: {text}");
        Ok(())
    }

    fn tell_status(&self, socket: &Path) -> Outcome {
        let lines = server::status(socket).map_err(|error| {
            Failure::new(
                format!("no mediator answers at {}: {error}", socket.display()),
                "start one with `milieu thread mediate`, or name its folder with --folder",
            )
        })?;
        if self.json {
            return print(&(lines.join("\n") + "\n"));
        }
        let lines = lines.iter().map(|it| serde_json::from_str(it));
        let lines: Result<Vec<Value>, _> = lines.collect();
        let lines = lines.map_err(|error| {
            Failure::new(
                format!("its answer is not understood: {error}"),
                "use the version of Milieu that it has",
            )
        })?;
        print(&shown(&lines))
    }

    fn undo(&self, journal: &Path) -> Outcome {
        if self.guard {
            // Whoever started this keeps the other end until it ends.
            let _ = io::stdin().read_to_end(&mut Vec::new());
        }
        match self.restored(journal) {
            Ok(restored) => {
                let text = format!(
                    "{} threads have what they had, {} had ended or have something else by now{}",
                    restored.restored,
                    restored.gone,
                    refusals(restored)
                );
                let Restored {
                    restored,
                    gone,
                    refused,
                } = restored;
                if !self.guard {
                    print(&match self.json {
                        true => format!(
                            "{}\n",
                            json!({"restored": restored, "gone": gone, "refused": refused})
                        ),
                        false => format!("{text}\n"),
                    })?;
                }
                if refused > 0 {
                    return Ok(ExitCode::from(terminal::ERROR));
                }
                Ok(ExitCode::SUCCESS)
            }
            // It has been started anew, and has undone it.
            Err(error) if self.guard && error.kind() == io::ErrorKind::WouldBlock => {
                Ok(ExitCode::SUCCESS)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Failure::new(
                "a mediator runs, which undoes what it has done when it ends",
                "end it with `kill`, or `systemctl stop milieu-mediator`",
            )),
            Err(error) => Err(Failure::new(
                format!("{} cannot be read: {error}", journal.display()),
                "do it as the user whose mediator it was",
            )),
        }
    }
}

impl Mediate {
    /// Whoever was killed may have its lock a moment longer than its pipe.
    fn restored(&self, journal: &Path) -> io::Result<Restored> {
        const TRIES: u32 = 100;
        let mut tries = 0;
        loop {
            match journal::restore(journal) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < TRIES => {
                    tries += if self.guard { 1 } else { TRIES };
                    std::thread::sleep(Duration::from_millis(50));
                }
                result => return result,
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn left_behind(restored: Restored) -> String {
    match restored.restored {
        0 => String::new(),
        number => format!("; {number} threads got back what one that was killed had taken"),
    }
}

fn refusals(restored: Restored) -> String {
    match restored.refused {
        0 => String::new(),
        number => format!(", but {number}, for which the kernel refused it"),
    }
}

fn document(news: &News) -> Value {
    match news {
        News::Serves {
            process,
            program,
            group,
        } => json!({"is": "serves", "process": process, "program": program, "group": group.name()}),
        News::Demoted {
            thread,
            role,
            program,
        } => json!({"is": "demoted", "thread": thread, "role": role.as_str(), "program": program}),
        News::Refused {
            thread,
            program,
            error,
        } => {
            json!({"is": "refused", "thread": thread, "program": program, "why": error.to_string()})
        }
        News::TooMany => json!({"is": "too-many", "threads_max": THREADS_MAX}),
        News::TooShort => json!({"is": "turn-too-short"}),
        News::NoJournal(error) => json!({"is": "no-journal", "why": error}),
    }
}

/// What a mediator does, for people.
fn shown(lines: &[Value]) -> String {
    let Some((head, threads)) = lines.split_first() else {
        return String::new();
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let mut shown = format!(
        "by {}: {} programs registered, {} threads, {} in the fast region\n",
        text(&head["rung"]),
        head["programs"],
        head["threads"],
        head["fast"],
    );
    if !threads.is_empty() {
        shown += &format!(
            "{:>7} {:>7} {:<16} {:<10} {:<24} {:<6} PRIORITY\n",
            "PID", "TID", "PROGRAM", "GROUP", "ROLE", "REGION"
        );
    }
    for it in threads {
        let priority = match (&it["is_time_critical"], &it["is_demoted"]) {
            (_, Value::Bool(true)) => "run away".to_owned(),
            (Value::Bool(true), _) => it["priority"].to_string(),
            _ => String::new(),
        };
        let line = format!(
            "{:>7} {:>7} {:<16} {:<10} {:<24} {:<6} {priority}",
            it["process"],
            it["thread"],
            text(&it["program"]),
            text(&it["group"]),
            text(&it["role"]),
            text(&it["region"]),
        );
        shown += line.trim_end();
        shown.push('\n');
    }
    shown
}

/// Another process that undoes what this one did if it is killed.
struct Guard(Child);

impl Guard {
    fn start(folder: &Path) -> io::Result<Guard> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["thread", "mediate", "--restore", "--guard", "--folder"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // What ends this one by the keyboard leaves it to do its work.
            .process_group(0);
        command.spawn().map(Guard)
    }

    /// There is nothing left to undo.
    fn dismiss(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// Files of threads stay open, as many as this process may open at all.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    // With fewer it asks more slowly.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
}
