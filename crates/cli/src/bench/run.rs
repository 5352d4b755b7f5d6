//! Tests, run.

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use milieu_bench::description::Group;
use milieu_bench::result::{Outcome as Ended, Results, StepResult};
use milieu_bench::run::journal::Journal;
use milieu_bench::run::{
    Executor, Local, Observer, Profiler, Profiling, Progress, Runner, SystemClock, Wanted,
};
use milieu_bench::server::Cluster;

use super::serve::KeyFile;
use super::{Applications, Failure, Outcome, describe, minder, put};

/// Run the tests of a description
///
/// Steps are kept as they come, in a file beside the result; a run that was
/// interrupted goes on with --resume. What has a host runs on the test server
/// there (`milieu bench serve`), the rest here. Each application is a process of its own,
/// and nothing that it has started is left running.
#[derive(Args)]
pub(crate) struct Run {
    /// The description, .toml or .xml
    file: PathBuf,
    #[command(flatten)]
    applications: Applications,
    /// Where the result goes; its name ends with .json or .xml
    #[arg(short, long, value_name = "FILE", default_value = "results.json")]
    output: PathBuf,
    /// Run only this test
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    /// Go on with a run that was interrupted
    #[arg(long)]
    resume: bool,
    /// Begin anew although a run was interrupted
    #[arg(long, conflicts_with = "resume")]
    restart: bool,
    #[command(flatten)]
    key: KeyFile,
    /// How many seconds to wait for a host that is lost
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    patience: f64,
    #[command(flatten)]
    profiles: Profiles,
    /// Go on without this terminal; what it says goes to a file beside the result, .log
    #[arg(long)]
    detach: bool,
    /// Say nothing while it runs
    #[arg(short, long)]
    quiet: bool,
    /// Print a line of JSON for each step
    #[arg(long)]
    pub(super) json: bool,
}

impl Run {
    pub(super) fn run(&self) -> Outcome {
        let catalogue = self.applications.catalogue()?;
        let mut group = describe(&self.file, &catalogue, self.json)?;
        choose(&mut group, self.test.as_deref())?;
        let form = form(&self.output)?;
        let kept = self.output.with_extension("steps");
        if kept.exists() && !self.resume && !self.restart {
            let message = format!("{} has steps of a run that was interrupted", kept.display());
            let help = "give --resume to go on, or --restart to begin anew";
            return Err(Failure::new(message, help));
        }
        if self.detach {
            return self.detached();
        }
        if self.restart {
            // Opening it says what is wrong.
            let _ = fs::remove_file(&kept);
        }
        let mut journal = Journal::open(&kept, &group).map_err(|error| {
            let message = format!("steps cannot be kept: {error}");
            Failure::new(message, "is the folder there, and may you write to it?")
        })?;
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without it the run ends at once, and can be resumed all the same.
            let _ = signal_hook::flag::register(signal, Arc::clone(&stopped));
        }
        let mut teller = Teller {
            quiet: self.quiet,
            json: self.json,
            stopped,
        };
        let profiling = self.profiles.wanted(&group)?.map(|wanted| Profiling {
            wanted,
            folder: profiles(&self.output),
        });
        let mut executor = self.executor(&group, Local::new(catalogue, minder()?), profiling)?;
        let run = Runner {
            executor: &mut *executor,
            clock: &SystemClock::default(),
            observer: &mut teller,
            keeper: &mut journal,
        }
        .run(&group);
        let results = match run {
            Ok(results) => results,
            Err(why) => {
                eprintln!("{why}; the steps are kept, and --resume goes on");
                return Ok(ExitCode::from(5));
            }
        };
        put(&text(&results, form), Some(&self.output))?;
        // The result has them all.
        let _ = fs::remove_file(&kept);
        Ok(self.end(&results))
    }

    /// Runs the same again, in the background.
    fn detached(&self) -> Outcome {
        let log = self.output.with_extension("log");
        let wrong = |error: std::io::Error| {
            let message = format!("it cannot go on alone: {error}");
            Failure::new(message, "is the folder there, and may you write to it?")
        };
        let file = fs::File::create(&log).map_err(wrong)?;
        let words = std::env::args_os()
            .skip(1)
            .filter(|word| word != "--detach");
        let mut command = Command::new(std::env::current_exe().map_err(wrong)?);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(wrong)?)
            .stderr(file)
            // What a terminal sends goes to the group that it runs.
            .process_group(0);
        let pid = command.spawn().map_err(wrong)?.id();
        if !self.quiet {
            let log = log.display();
            eprintln!("process {pid} runs it, and says in {log} how far it is; SIGTERM stops it");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Hosts of others need a key, which a test on this machine has no use for.
    fn executor(
        &self,
        group: &Group,
        local: Local,
        profiling: Option<Profiling>,
    ) -> Outcome<Box<dyn Executor>> {
        let mut servers = group.tests.iter().flat_map(|test| &test.servers);
        if servers.all(|server| server.host.is_none()) {
            return Ok(Box::new(local.profile(profiling)));
        }
        let patience = Duration::from_secs_f64(self.patience.clamp(0.0, 1e9));
        let cluster = Cluster::new(local, self.key.key()?);
        Ok(Box::new(cluster.patience(patience).profile(profiling)))
    }

    fn end(&self, results: &Results) -> ExitCode {
        let found = results.tests.iter().flat_map(|test| &test.found);
        for found in found.filter(|_| !self.quiet) {
            eprintln!("found: {}", shown(&found.to_string()));
        }
        let code = code(results.outcome());
        if !self.quiet {
            let said = match code {
                0 => "all measured",
                3 => "something was not measured; the report says what",
                _ => "something was measured and means nothing; the report says what",
            };
            eprintln!("{said}: {}", self.output.display());
        }
        ExitCode::from(code)
    }
}

/// Which applications are profiled.
#[derive(Args)]
pub(super) struct Profiles {
    /// Profile applications by perf or callgrind; files go to a folder beside the
    /// result, .profiles
    #[arg(long, value_name = "PROFILER")]
    profile: Option<Profiler>,
    /// Profile only this application
    #[arg(long, value_name = "NAME", requires = "profile")]
    profile_application: Option<String>,
}

impl Profiles {
    pub(super) fn wanted(&self, group: &Group) -> Outcome<Option<Wanted>> {
        let servers = group.tests.iter().flat_map(|test| &test.servers);
        let mut names = servers.flat_map(|server| &server.applications);
        match &self.profile_application {
            Some(name) if !names.any(|it| it.name == *name) => {
                let message = format!("there is no application `{name}` to profile");
                Err(Failure::new(message, "name one of the description"))
            }
            name => Ok(self.profile.map(|profiler| Wanted {
                profiler,
                application: name.clone(),
            })),
        }
    }
}

/// The folder of the profiles of a result.
pub(super) fn profiles(output: &Path) -> PathBuf {
    output.with_extension("profiles")
}

/// Leaves only the test of this name, if one is chosen.
pub(super) fn choose(group: &mut Group, test: Option<&str>) -> Outcome<()> {
    let Some(name) = test else {
        return Ok(());
    };
    let names: Vec<String> = group.tests.iter().map(|test| test.name.clone()).collect();
    group.tests.retain(|test| test.name == *name);
    match group.tests.is_empty() {
        false => Ok(()),
        true => Err(Failure::new(
            format!("there is no test `{name}`"),
            format!("there are {}", names.join(", ")),
        )),
    }
}

/// How a result is written.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Json,
    Xml,
}

/// How the result of this name is written.
pub(super) fn form(output: &Path) -> Outcome<Form> {
    match output.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Ok(Form::Json),
        Some("xml") => Ok(Form::Xml),
        _ => {
            let message = format!("{} is no name of a result", output.display());
            Err(Failure::new(message, "let it end with .json or .xml"))
        }
    }
}

pub(super) fn text(results: &Results, form: Form) -> String {
    match form {
        Form::Json => results.to_json(),
        Form::Xml => results.to_xml(),
    }
}

/// The exit code of a run that has ended so.
pub(super) fn code(outcome: Ended) -> u8 {
    match outcome {
        Ended::Measured => 0,
        Ended::Failed | Ended::Lost => 3,
        Ended::Invalid => 4,
    }
}

/// Tells how far it is.
struct Teller {
    quiet: bool,
    json: bool,
    stopped: Arc<AtomicBool>,
}

impl Observer for Teller {
    fn begins(&mut self, progress: &Progress<'_>) {
        if self.quiet || self.json {
            return;
        }
        let left = progress
            .left
            .map_or(String::new(), |left| format!(", {} left", span(left)));
        let line = format!(
            "step {} of {}{left}: {}",
            progress.done + 1,
            progress.steps,
            progress.shown()
        );
        let mut err = std::io::stderr().lock();
        // One line on a terminal, which is written anew; nobody is left to be told
        // that it failed.
        let _ = match err.is_terminal() {
            true => write!(err, "\r\x1b[K{}", shown(&line)).and_then(|()| err.flush()),
            false => writeln!(err, "{}", shown(&line)),
        };
    }

    fn ended(&mut self, progress: &Progress<'_>, result: &StepResult) {
        if self.json {
            let line = serde_json::json!({
                "test": progress.test.name,
                "done": progress.done,
                "steps": progress.steps,
                "left-seconds": progress.left.map(|left| left.as_secs_f64()),
                "result": result,
            });
            let _ = super::print(&format!("{line}\n"));
            return;
        }
        let is_last = progress.done == progress.steps;
        let is_terminal = std::io::stderr().is_terminal();
        if !self.quiet && is_last && is_terminal {
            eprintln!();
        }
        for run in result.runs.iter().filter(|_| !self.quiet) {
            let why = run.error.as_ref().or(run.invalid.as_ref());
            if let Some(why) = why {
                let line = if is_terminal { "\r\x1b[K" } else { "" };
                eprintln!("{line}{}: {}", shown(&run.application), shown(why));
                let last = run.output.lines().rev().take(5).collect::<Vec<_>>();
                last.iter()
                    .rev()
                    .for_each(|text| eprintln!("  | {}", shown(text)));
            }
        }
    }

    fn stops(&mut self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// A text without what steers terminals.
pub(super) fn shown(text: &str) -> String {
    let replaced = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(replaced).collect()
}

pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", time.as_secs_f64() / 3600.0),
    }
}
