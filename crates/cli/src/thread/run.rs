//! `milieu thread run`: starts a program so that its threads are served.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use clap::{Args, ValueEnum};
use milieu_device::launch::{self, Refusal};
use milieu_device::mediator::server;
use milieu_device::profile::{self, Profile};
use milieu_diagnostics::{Diagnostic, Source};
use milieu_threads::run::{Settings, VARIABLE, rules};
use milieu_threads::stack::{Policy, Zones};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::profile::{Rows, default_folder};
use super::{Failure, Outcome};
use crate::arguments::seconds;
use crate::terminal;

/// Start a program so that its threads have roles, processor time and stacks
///
/// The program need not know of Milieu: a small library is loaded into it. Depths of
/// its stacks are learned from run to run; roles come from a file of patterns. What it
/// starts in turn is served as well.
#[derive(Args)]
#[command(after_help = "\
Patterns, a line each, the first that fits counts, `#` begins a remark:
  start GLOB => ROLE [critical[=NICE]] [lazy] [stack=BYTES] [exclude]
  name GLOB => ROLE     by the thread's name instead of its start function's symbol
  number N[-M] => ROLE  by the order of creation; the first thread is 0

Examples:
  milieu thread run -- memcached -t 16
  milieu thread run --roles player.roles -- player film.mkv
  milieu thread run --mode learn --report -- sysbench cpu run
  milieu thread run --mode forced --floor 128K -- ./server")]
pub(super) struct Run {
    /// Which threads have which roles, see below
    #[arg(long, value_name = "FILE")]
    roles: Option<PathBuf>,

    /// What is done with stacks
    #[arg(long, value_enum, default_value_t = Mode::Tuned)]
    mode: Mode,

    /// Where it is kept what was learned [default: PROGRAM.stacks in ~/.local/state/milieu]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,

    /// Keep nothing of what is learned, and use nothing
    #[arg(long, conflicts_with = "profile")]
    no_profile: bool,

    /// Note in the profile where threads are created, for `milieu thread profile --suggest`
    #[arg(long, conflicts_with = "no_profile")]
    sites: bool,

    /// Also make stacks smaller whose size the program has set
    #[arg(long)]
    shrink_set_sizes: bool,

    /// No stack is made smaller than this
    #[arg(long, value_name = "BYTES[K|M]")]
    floor: Option<String>,

    /// What is added to the deepest that was seen
    #[arg(long, value_name = "PERCENT")]
    margin: Option<String>,

    /// In so many runs threads are seen before their stacks are made smaller
    #[arg(long, value_name = "NUMBER")]
    runs: Option<String>,

    /// By which means threads are mediated
    #[arg(long, value_name = "auto|off|realtime|cgroup|idle|nice")]
    rung: Option<String>,

    /// Seconds that a lazy thread may want a processor and have none, or `never` [default: 1]
    #[arg(long, value_name = "SECONDS")]
    wait_max: Option<String>,

    /// How much of the processors critical threads leave then, or as much of the time is turns
    /// [default: 5]
    #[arg(long, value_name = "PERCENT")]
    turn: Option<String>,

    /// How much of the time turns take from critical threads at most, where so many have to wait
    /// [default: 50, and 80 with --wait-max]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=90))]
    turn_max: Option<u8>,

    /// Seconds that a critical thread may keep a processor without ever waiting
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    spin_max: Option<Duration>,

    /// A critical thread does not count while it waits for something
    #[arg(long)]
    leave_while_blocked: bool,

    /// The socket of the mediator of the device [default: the one that runs, if one does]
    #[arg(long, value_name = "FILE")]
    mediator: Option<PathBuf>,

    /// Mediate within the program only
    #[arg(long, conflicts_with = "mediator")]
    no_mediator: bool,

    /// For how many threads the table has room
    #[arg(long, value_name = "NUMBER")]
    capacity: Option<String>,

    /// No remarks of the library on standard error
    #[arg(long)]
    quiet: bool,

    /// Say what was learned when the program has ended
    #[arg(long, conflicts_with = "no_profile")]
    report: bool,

    /// Bounds of the zones of stacks in the report, in percent [default: those of the device, or
    /// 25,75]
    #[arg(long, value_name = "LOW,HIGH", requires = "report", value_parser = super::zones::parse)]
    zones: Option<Zones>,

    /// Errors and the report as lines of JSON
    #[arg(long)]
    pub(super) json: bool,

    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Nothing
    Off,
    /// Depths are measured and kept
    Learn,
    /// And learned sizes are applied where address space is limited and runs short
    Tuned,
    /// And learned sizes are applied everywhere
    Forced,
}

/// What a shell says when a program cannot be started.
const NOT_STARTED: u8 = 125;

impl Run {
    pub(super) fn run(&self) -> Outcome {
        if self.sites && matches!(self.mode, Mode::Off) {
            return Err(Failure::new(
                "nothing is noted with `--mode off`, also not where threads are created",
                "use `--sites` with `--mode learn`",
            ));
        }
        let launch = launch::prepare(&self.command[0], &launch::folders()).map_err(refused)?;
        let profile = self.profile()?;
        let settings = self.settings(profile.as_deref())?;
        let mut command = Command::new(&launch.program);
        command
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env("LD_PRELOAD", &launch.preload)
            .env(VARIABLE.to_string_lossy().as_ref(), &settings);
        if !self.report {
            // It takes this one's place, so that nobody notices.
            let error = command.exec();
            return Err(not_started(&launch.program, &error));
        }
        // What is wrong with the bounds is said before anything is started.
        let zones = super::zones::chosen(self.zones)?;
        let path = profile.unwrap_or_default();
        let before = loaded(&path)?;
        let status = ended(&mut command).map_err(|it| not_started(&launch.program, &it))?;
        let stacks = Settings::parse(&settings, &mut |_| ()).stacks;
        let news = loaded(&path)?;
        self.tell(&before, &news, zones, stacks);
        Ok(code(status))
    }

    /// Where it is kept what was learned; its folder is there.
    fn profile(&self) -> Outcome<Option<PathBuf>> {
        if self.no_profile {
            return Ok(None);
        }
        let path = match &self.profile {
            Some(path) => path.clone(),
            None => {
                let name = Path::new(&self.command[0]).file_name().unwrap_or_default();
                let mut name = name.to_owned();
                name.push(".stacks");
                default_folder().join(name)
            }
        };
        let unusable = |error: io::Error| {
            Failure::new(
                format!("nothing can be kept in {}: {error}", path.display()),
                "name another file with --profile, or keep nothing with --no-profile",
            )
        };
        let path = std::path::absolute(&path).map_err(unusable)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(unusable)?;
        }
        Ok(Some(path))
    }

    /// The variable's value, of which everything is right.
    fn settings(&self, profile: Option<&Path>) -> Outcome<String> {
        let mut settings = Vec::new();
        let mut set = |key: &str, value: Option<String>| {
            settings.extend(value.map(|it| format!("{key}={it}")));
        };
        let mode = match self.mode {
            Mode::Off => "off",
            Mode::Learn => "learn",
            Mode::Tuned => "tune",
            Mode::Forced => "force",
        };
        set("stacks", Some(mode.to_owned()));
        set(
            "set-sizes",
            self.shrink_set_sizes.then(|| "shrink".to_owned()),
        );
        set("floor", self.floor.clone());
        set("margin", self.margin.clone());
        set("runs", self.runs.clone());
        set("rung", self.rung.clone());
        set(
            "wait",
            self.wait_max
                .as_deref()
                .map(milliseconds_or_never)
                .transpose()?,
        );
        set("turn", self.turn.clone());
        set("turn-max", self.turn_max.map(|it| it.to_string()));
        let spin = self.spin_max.map(|it| it.as_millis().max(1).to_string());
        set("spin", spin);
        set(
            "blocked",
            self.leave_while_blocked.then(|| "leave".to_owned()),
        );
        set("capacity", self.capacity.clone());
        set("quiet", self.quiet.then(|| "yes".to_owned()));
        set("sites", self.sites.then(|| "yes".to_owned()));
        set("profile", profile.map(path_value).transpose()?);
        set("roles", self.roles()?);
        set("mediator", self.socket()?);
        let settings = settings.join(";");
        let mut wrong = Vec::new();
        Settings::parse(&settings, &mut |error| {
            let told = error.to_string().replace(" in MILIEU_THREADS", "");
            wrong.push(Diagnostic::error(told));
        });
        if wrong.is_empty() {
            return Ok(settings);
        }
        let place = Source::new("the command line", "");
        Err(Failure::Wrong(place, wrong, terminal::ERROR))
    }

    /// The file of patterns, of which every line is right.
    fn roles(&self) -> Outcome<Option<String>> {
        let Some(path) = &self.roles else {
            return Ok(None);
        };
        let shown = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::new(
                format!("{shown} cannot be read: {error}"),
                "name a file of patterns; `milieu thread run --help` says what is in it",
            )
        })?;
        let wrong = rules(&text).filter_map(Result::err);
        let wrong = wrong.map(|it| Diagnostic::error(format!("{shown}, {it}")));
        let wrong: Vec<Diagnostic> = wrong.collect();
        if !wrong.is_empty() {
            return Err(Failure::Wrong(
                Source::new(shown, ""),
                wrong,
                terminal::ERROR,
            ));
        }
        path_value(path).map(Some)
    }

    fn socket(&self) -> Outcome<Option<String>> {
        if let Some(path) = &self.mediator {
            return path_value(path).map(Some);
        }
        let mut known = server::sockets().into_iter();
        let there = known.find(|it| !self.no_mediator && server::listens(it));
        there.map(|it| path_value(&it)).transpose()
    }

    /// What this run has added, by the policy that it had. The program has standard output,
    /// so it is told where remarks are.
    fn tell(&self, before: &Profile, after: &Profile, zones: Zones, stacks: Policy) {
        let news = after.since(before);
        let rows = Rows::of(&news, after, zones, stacks);
        if self.json {
            eprint!("{}", rows.json(None));
        } else if news.is_empty() {
            eprintln!("milieu: no thread has ended in this run of which anything could be learned");
        } else {
            eprint!("milieu: what was learned in this run\n{}", rows.text());
        }
    }
}

/// A path as settings have it.
fn path_value(path: impl AsRef<Path>) -> Outcome<String> {
    let shown = path.as_ref().display().to_string();
    let path = std::path::absolute(path.as_ref()).ok();
    let path = path.and_then(|it| it.into_os_string().into_string().ok());
    path.filter(|it| !it.contains(';')).ok_or_else(|| {
        Failure::new(
            format!("{shown} has a semicolon or what is no text in its path"),
            "name another file; settings are text, with `;` between them",
        )
    })
}

fn milliseconds_or_never(text: &str) -> Outcome<String> {
    if text == "never" {
        return Ok(text.to_owned());
    }
    match seconds(text) {
        Ok(time) if !time.is_zero() => Ok(time.as_millis().max(1).to_string()),
        _ => Err(Failure::new(
            format!("`{text}` is no time to wait"),
            "give a number of seconds, or `never`",
        )),
    }
}

/// A profile that is not there yet says nothing.
fn loaded(path: &Path) -> Outcome<Profile> {
    profile::settle(path);
    if !path.exists() {
        return Ok(Profile::default());
    }
    profile::load(&[path.to_owned()]).map_err(|error| {
        Failure::new(
            error.to_string(),
            "name another file with --profile, or mend it",
        )
    })
}

fn refused(refusal: Refusal) -> Failure {
    let found = Diagnostic::error(refusal.to_string()).help(refusal.help());
    let place = Source::new("the command line", "");
    Failure::Wrong(place, vec![found], refusal.code())
}

fn not_started(program: &Path, error: &io::Error) -> Failure {
    let text = format!("{} could not be started: {error}", program.display());
    let place = Source::new("the command line", "");
    Failure::Wrong(place, vec![Diagnostic::error(text)], NOT_STARTED)
}

/// Runs a program to its end, and hands on what signals are meant for it.
fn ended(command: &mut Command) -> io::Result<ExitStatus> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2])?;
    let handle = signals.handle();
    let mut child = command.spawn()?;
    let number = rustix::process::Pid::from_child(&child);
    let forwarding = std::thread::spawn(move || {
        for signal in signals.forever() {
            // Whoever presses a key has told both.
            if ![SIGINT, SIGQUIT].contains(&signal) {
                if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
                    let _ = rustix::process::kill_process(number, signal);
                }
            }
        }
    });
    let status = child.wait();
    handle.close();
    let _ = forwarding.join();
    status
}

/// As shells say how a program has ended.
fn code(status: ExitStatus) -> ExitCode {
    let signal = || status.signal().map_or(1, |it| 128 + it);
    let code = status.code().unwrap_or_else(signal);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
