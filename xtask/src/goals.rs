//! `cargo xtask goals`: every figure that the project claims or aims for.
//!
//! The figures are data in `goals.toml`. A row names the command that measures
//! it; each distinct command runs once and prints JSON lines with `name` and
//! `value`, from which each row computes its figure:
//!
//! ```text
//! goals.toml ─▶ file ─▶ commands ─▶ measured values ─▶ expression ─▶ bound ─▶ held or missed
//!                                        └─▶ a result of `milieu bench`
//! ```
//!
//! A row whose figure cannot be had is missed, never left out.

mod bound;
mod expression;
mod file;
mod measure;
mod report;

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use milieu_bench::Value;

use crate::process;
use file::Goal;

pub use file::check;

/// The file of the goals, in the repository's root.
pub const FILE: &str = "goals.toml";

/// Measure the project's figures and compare them with their bounds.
///
/// Prints a table of goal, bound, measured, and held or missed; the exit code
/// is 1 if any goal is missed.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the goals of these parts (`context`, `keys`) or of these names.
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// Print JSON lines with `name`, `value`, `bound`, `holds`.
    #[arg(long)]
    json: bool,
    /// Only the goals that repeat on any machine: instruction counts and sizes.
    #[arg(long)]
    repeatable: bool,
    /// Print the goals and why they are there, and measure nothing.
    #[arg(long)]
    list: bool,
    /// Keep every value here, with hosts and versions, as a result of `milieu bench`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure so often; figures are of the means.
    #[arg(long, default_value = "1", value_name = "COUNT")]
    rounds: NonZeroU32,
}

/// Measures and prints; `false` if any goal is missed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let goals = chosen(arguments)?;
    if arguments.list {
        let list = if arguments.json {
            report::list_json(&goals)
        } else {
            report::list(&goals)
        };
        process::print(&list)?;
        return Ok(true);
    }
    let (results, mut measured) = measure::all(goals, arguments.rounds);
    if let Some(path) = &arguments.output {
        measured.group.properties.extend(versions());
        std::fs::write(path, measured.to_json())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let missed = results.iter().filter(|result| !result.holds()).count();
    let text = if arguments.json {
        report::json(&results)
    } else {
        report::table(&results)
    };
    process::print(&text)?;
    Ok(missed == 0)
}

/// Measures the repeatable goals for `cargo xtask ci`: how many held, how many are missed.
pub fn repeatable() -> Result<(u64, u64)> {
    let arguments = Arguments {
        parts: Vec::new(),
        json: false,
        repeatable: true,
        list: false,
        output: None,
        rounds: NonZeroU32::MIN,
    };
    let commands = by_command(chosen(&arguments)?);
    let Some((first, others)) = commands.split_first() else {
        return Ok((0, 0));
    };
    // The first one builds for all. What repeats does not depend on what runs beside it.
    let measure = |goals: &Vec<Goal>| measure::all(goals.clone(), arguments.rounds).0;
    let mut results = measure(first);
    results.extend(process::side_by_side(others, measure).into_iter().flatten());
    process::print(&report::table(&results))?;
    let missed = results.iter().filter(|result| !result.holds()).count() as u64;
    Ok((results.len() as u64 - missed, missed))
}

/// The goals of each command, in the order of the file.
fn by_command(goals: Vec<Goal>) -> Vec<Vec<Goal>> {
    let mut commands: Vec<Vec<Goal>> = Vec::new();
    for goal in goals {
        match commands.iter_mut().find(|it| it[0].command == goal.command) {
            Some(known) => known.push(goal),
            None => commands.push(vec![goal]),
        }
    }
    commands
}

/// What was measured, and what built it.
fn versions() -> impl Iterator<Item = (String, Value)> {
    let of = |name: &str, program: &str, arguments: &[&str]| {
        let mut command = process::command(program);
        command.args(arguments);
        let said = process::output(command).unwrap_or_else(|_| "not known".into());
        (name.to_owned(), Value::Text(said.trim().to_owned()))
    };
    [
        of("revision", "git", &["describe", "--always", "--dirty"]),
        of("rustc", "rustc", &["--version"]),
    ]
    .into_iter()
}

fn chosen(arguments: &Arguments) -> Result<Vec<Goal>> {
    let mut goals = file::read()?;
    for part in &arguments.parts {
        if !goals.iter().any(|goal| goal.belongs_to(part)) {
            let mut known: Vec<&str> = goals.iter().map(|goal| goal.part.as_str()).collect();
            known.dedup();
            bail!(
                "{FILE} has no part and no goal named `{part}`; its parts are {}",
                known.join(", ")
            );
        }
    }
    if !arguments.parts.is_empty() {
        goals.retain(|goal| arguments.parts.iter().any(|part| goal.belongs_to(part)));
    }
    if arguments.repeatable {
        goals.retain(|goal| goal.repeatable);
    }
    Ok(goals)
}
