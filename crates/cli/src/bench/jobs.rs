//! Jobs of a server that coordinates: handed over, watched, fetched.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use milieu_bench::Value;
use milieu_bench::description::Server;
use milieu_bench::server::{Client, Job, State};

use super::run::{Profiles, choose, code, form, profiles, shown, span, text};
use super::serve::KeyFile;
use super::{Applications, Failure, Outcome, describe, print, put};

/// The server that coordinates.
#[derive(Args)]
struct At {
    /// The server that coordinates
    #[arg(
        long = "at",
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:8108"
    )]
    server: String,
    #[command(flatten)]
    key: KeyFile,
}

impl At {
    fn client(&self) -> Outcome<Client> {
        let (host, port) = match self.server.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()),
            None => (&*self.server, Some(Server::PORT)),
        };
        let Some(port) = port else {
            let message = format!("`{}` is no address of a server", self.server);
            return Err(Failure::new(message, "write it as HOST:PORT"));
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Client::connect(host, port, &self.key.key()?).map_err(|error| {
            let message = format!("the server {} cannot be reached: {error}", self.server);
            Failure::new(
                message,
                "does `milieu bench serve` run there, with this key?",
            )
        })
    }

    fn refused(&self, why: String) -> Failure {
        let help = format!(
            "`milieu bench jobs --at {}` says what is there",
            self.server
        );
        Failure::new(why, help)
    }
}

/// Hand a description to a server, which runs it and keeps the result
///
/// The server coordinates: what has a host runs on the test server there, the rest on
/// itself. Whoever handed it over need not stay, and a server that was ended goes on
/// when it is started again. Jobs of a server run one after the other.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu bench submit throughput.toml --at c24:8108
  milieu bench watch 1 --at c24:8108
  milieu bench fetch 1 --at c24:8108 -o results.json")]
pub(crate) struct Submit {
    /// The description, .toml or .xml
    file: PathBuf,
    #[command(flatten)]
    applications: Applications,
    #[command(flatten)]
    at: At,
    /// Run only this test
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    #[command(flatten)]
    profiles: Profiles,
    /// How many seconds to wait for a host that is lost
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    patience: f64,
}

impl Submit {
    pub(super) fn run(&self) -> Outcome {
        let catalogue = self.applications.catalogue()?;
        let mut group = describe(&self.file, &catalogue, false)?;
        choose(&mut group, self.test.as_deref())?;
        let patience = Duration::from_secs_f64(self.patience.clamp(0.0, 1e9));
        let profile = self.profiles.wanted(&group)?;
        let id = self.at.client()?.submit(&group, patience, profile);
        let id = id.map_err(|why| self.at.refused(why))?;
        print(&format!("{id}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// List the jobs of a server, and how far they are
#[derive(Args)]
pub(crate) struct Jobs {
    #[command(flatten)]
    at: At,
    /// Print a line of JSON for each job
    #[arg(long)]
    pub(super) json: bool,
}

impl Jobs {
    pub(super) fn run(&self) -> Outcome {
        let jobs = self.at.client()?.jobs();
        for job in jobs.map_err(|why| self.at.refused(why))? {
            tell(&job, self.json)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Say how far a job is until it has ended
///
/// The exit code says how it ended, as that of `run` does. A server that is lost is
/// looked for again.
#[derive(Args)]
pub(crate) struct Watch {
    /// The job
    id: u64,
    #[command(flatten)]
    at: At,
    /// Print a line of JSON whenever something changes
    #[arg(long)]
    pub(super) json: bool,
}

impl Watch {
    pub(super) fn run(&self) -> Outcome {
        const PAUSE: Duration = Duration::from_millis(500);
        let mut client = self.at.client()?;
        let mut before: Option<Job> = None;
        loop {
            match client.job(self.id) {
                Ok(job) => {
                    if before.as_ref() != Some(&job) {
                        tell(&job, self.json)?;
                    }
                    if job.state.has_ended() {
                        return Ok(ended(&job));
                    }
                    before = Some(job);
                }
                Err(why) if before.is_none() => return Err(self.at.refused(why)),
                // It goes on with the job when it is started again.
                Err(_) => {
                    if let Ok(again) = self.at.client() {
                        client = again;
                    }
                }
            }
            thread::sleep(PAUSE);
        }
    }
}

fn ended(job: &Job) -> ExitCode {
    match (job.state, job.outcome) {
        (State::Done, Some(outcome)) => ExitCode::from(code(outcome)),
        _ => ExitCode::from(5),
    }
}

fn tell(job: &Job, json: bool) -> Outcome<()> {
    if json {
        let line = serde_json::to_string(job).unwrap_or_default();
        return print(&format!("{line}\n"));
    }
    let left = job.left_seconds.map_or(String::new(), |seconds| {
        let left = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        format!(", {} left", span(left))
    });
    let line = format!("{} {}: {}{left}", job.id, job.name, job.shown());
    print(&format!("{}\n", shown(&line)))
}

/// Fetch the result of a job that is done, and its profiles
#[derive(Args)]
pub(crate) struct Fetch {
    /// The job
    id: u64,
    #[command(flatten)]
    at: At,
    /// Where the result goes; its name ends with .json or .xml
    #[arg(short, long, value_name = "FILE", default_value = "results.json")]
    output: PathBuf,
}

impl Fetch {
    pub(super) fn run(&self) -> Outcome {
        let form = form(&self.output)?;
        let mut client = self.at.client()?;
        let refused = |why| self.at.refused(why);
        let results = client.results(self.id).map_err(refused)?;
        let fetched = client.profiles(self.id, &results, &profiles(&self.output));
        fetched.map_err(refused)?;
        put(&text(&results, form), Some(&self.output))?;
        Ok(ExitCode::from(code(results.outcome())))
    }
}

/// End a job of a server; what it has done is kept
#[derive(Args)]
pub(crate) struct Cancel {
    /// The job
    id: u64,
    #[command(flatten)]
    at: At,
}

impl Cancel {
    pub(super) fn run(&self) -> Outcome {
        let cancelled = self.at.client()?.cancel(self.id);
        cancelled.map_err(|why| self.at.refused(why))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Let a job go on that was cancelled, or stopped before its end
#[derive(Args)]
pub(crate) struct Resume {
    /// The job
    id: u64,
    #[command(flatten)]
    at: At,
}

impl Resume {
    pub(super) fn run(&self) -> Outcome {
        let resumed = self.at.client()?.resume(self.id);
        resumed.map_err(|why| self.at.refused(why))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Let a server run a command that its owner has added, and print what it says
///
/// The catalogue of the server has it, with `when = "request"`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu bench ask drop-caches --at c24:8108
  milieu bench ask shape rate=10mbit --at c24:8108")]
pub(crate) struct Ask {
    /// The command
    name: String,
    /// Its parameters, NAME=VALUE
    parameters: Vec<String>,
    #[command(flatten)]
    at: At,
}

impl Ask {
    pub(super) fn run(&self) -> Outcome {
        let mut parameters = BTreeMap::new();
        for parameter in &self.parameters {
            let Some((name, value)) = parameter.split_once('=') else {
                let message = format!("`{parameter}` is no parameter");
                return Err(Failure::new(message, "write it as NAME=VALUE"));
            };
            parameters.insert(name, Value::guess(value));
        }
        let said = self
            .at
            .client()?
            .command(&self.name, serde_json::json!(parameters));
        print(&match said.map_err(|why| self.at.refused(why))? {
            serde_json::Value::String(text) => text,
            said => format!("{said}\n"),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
