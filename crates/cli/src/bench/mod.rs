//! `milieu bench`: runs performance tests, and shows what they say.

mod check;
mod compare;
mod doctor;
mod helper;
mod jobs;
mod mind;
mod report;
mod run;
mod schema;
mod serve;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use milieu_bench::catalogue::Catalogue;
use milieu_bench::description::{self, Group, Language};
use milieu_bench::result::Results;
use milieu_bench::run::Minder;
use milieu_diagnostics::{Diagnostic, Source};

use crate::{files, terminal};

/// Run performance tests of programs, and report on their results
///
/// A description in TOML, or in Solar's XML, says what runs with which
/// parameters, and which variables are swept. It names kinds of applications; a
/// catalogue says which commands these are on this machine.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Exit codes, of every verb:
  0  done
  1  compare: something changed, beyond noise
  2  wrong usage, or a description or result that is wrong
  3  run, watch, fetch: something was not measured
  4  run, watch, fetch: something was measured and means nothing
  5  run, watch: stopped before its end; --resume, or the verb resume, goes on

Examples:
  milieu bench check throughput.toml --applications applications.toml
  milieu bench run throughput.toml --applications applications.toml -o new.json
  milieu bench report line new.json -o throughput.png
  milieu bench compare old.json new.json"
)]
pub(crate) struct Bench {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Check(check::Check),
    Run(run::Run),
    Report(Box<report::Report>),
    Compare(compare::Compare),
    Serve(serve::Serve),
    Submit(jobs::Submit),
    Jobs(jobs::Jobs),
    Watch(jobs::Watch),
    Fetch(jobs::Fetch),
    Cancel(jobs::Cancel),
    Resume(jobs::Resume),
    Ask(jobs::Ask),
    Doctor(doctor::Doctor),
    Helper(helper::Helper),
    Schema(schema::Schema),
    #[command(hide = true)]
    Mind(mind::Mind),
}

impl Bench {
    pub(crate) fn run(&self) -> ExitCode {
        let (result, json) = match &self.verb {
            Verb::Check(check) => (check.run(), check.json),
            Verb::Run(run) => (run.run(), run.json),
            Verb::Report(report) => (report.run(), report.json),
            Verb::Compare(compare) => (compare.run(), compare.json),
            Verb::Doctor(doctor) => (doctor.run(), false),
            Verb::Helper(helper) => (helper.run(), false),
            Verb::Schema(schema) => (schema.run(), false),
            Verb::Serve(serve) => (serve.run(), false),
            Verb::Submit(submit) => (submit.run(), false),
            Verb::Jobs(jobs) => (jobs.run(), jobs.json),
            Verb::Watch(watch) => (watch.run(), watch.json),
            Verb::Fetch(fetch) => (fetch.run(), false),
            Verb::Cancel(cancel) => (cancel.run(), false),
            Verb::Ask(ask) => (ask.run(), false),
            Verb::Resume(resume) => (resume.run(), false),
            Verb::Mind(mind) => (mind.run(), false),
        };
        match result {
            Ok(code) => code,
            Err(Failure::Output(error)) => terminal::finish(Err(error)),
            Err(Failure::Wrong(source, found)) => {
                terminal::report(&source, &found, json);
                ExitCode::from(terminal::ERROR)
            }
        }
    }
}

/// Why a verb did not do what it was asked for.
enum Failure {
    /// The result could not be written.
    Output(std::io::Error),
    /// Something is wrong.
    Wrong(Source, Vec<Diagnostic>),
}

type Outcome<T = ExitCode> = Result<T, Failure>;

impl Failure {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Failure {
        let found = Diagnostic::error(message).help(help);
        Failure::Wrong(Source::new("the command line", ""), vec![found])
    }
}

/// Writes to standard output.
fn print(text: &str) -> Outcome<()> {
    terminal::print(text).map_err(Failure::Output)
}

/// Writes to a file, or to standard output, which is `-`, too.
fn put(text: &str, path: Option<&PathBuf>) -> Outcome<()> {
    put_bytes(text.as_bytes(), path)
}

/// Writes what need not be text there.
fn put_bytes(content: &[u8], path: Option<&PathBuf>) -> Outcome<()> {
    let Some(path) = path.filter(|path| **path != Path::new("-")) else {
        return terminal::put(content).map_err(Failure::Output);
    };
    files::write_whole(path, content, files::Audience::Usual).map_err(|error| {
        let message = format!("{} cannot be written: {error}", path.display());
        Failure::new(message, "is the folder there, and may you write to it?")
    })
}

fn read(path: &Path, what: &str) -> Outcome<Source> {
    files::read(path, what).map_err(|wrong| {
        let (source, found) = *wrong;
        let help = format!("name a {what} that is there and may be read");
        Failure::Wrong(source, vec![found.help(help)])
    })
}

/// What runs applications and leaves nothing of them: this program.
fn minder() -> Outcome<Minder> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(error.to_string(), "is /proc mounted?"))?;
    Ok(Minder {
        program,
        arguments: vec!["bench".into(), "mind".into()],
    })
}

/// What this machine runs.
#[derive(Args)]
struct Applications {
    /// The catalogue: which commands the kinds of applications are
    #[arg(long, value_name = "FILE")]
    applications: Option<PathBuf>,
}

impl Applications {
    fn catalogue(&self) -> Outcome<Catalogue> {
        let Some(path) = &self.applications else {
            return Ok(Catalogue::default());
        };
        let source = read(path, "catalogue")?;
        Catalogue::parse(&source).map_err(|found| Failure::Wrong(source, found))
    }
}

/// The group that a file describes; warnings are printed.
fn describe(path: &Path, catalogue: &Catalogue, json: bool) -> Outcome<Group> {
    let source = read(path, "description")?;
    let Some(language) = Language::of(path) else {
        let message = format!("{} is in no language that is known", path.display());
        return Err(Failure::new(message, "its name ends with .toml or .xml"));
    };
    match description::parse(language, &source, catalogue) {
        Ok((group, warnings)) => {
            if !warnings.is_empty() {
                terminal::report(&source, &warnings, json);
            }
            Ok(group)
        }
        Err(found) => Err(Failure::Wrong(source, found)),
    }
}

/// The results in a file.
fn results(path: &Path) -> Outcome<Results> {
    let source = read(path, "result")?;
    Results::parse(&source.text).map_err(|why| {
        let found = Diagnostic::error(format!("this is no result: {why}"));
        let found = found.help("name a file that `milieu bench run` has written");
        Failure::Wrong(Source::new(source.name, ""), vec![found])
    })
}
