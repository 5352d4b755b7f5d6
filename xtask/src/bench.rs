//! `cargo xtask bench`: the micro-benchmarks, timed.
//!
//! Every `[[bench]]` of the workspace answers the requests that
//! [`crate::instructions`] states; here each is asked to `time` its operations.
//! Times are those of a busy machine: compare ratios, not numbers.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::metadata::Metadata;
use crate::table::{self, Align};
use crate::{instructions, process};

/// Run the micro-benchmarks and print what an operation costs.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the benchmarks of these parts (`context`, `keys`).
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// Only these operations.
    #[arg(short, long, value_name = "OPERATION", num_args = 1..)]
    operations: Vec<String>,
    /// Ask for something else that benchmarks of these parts answer (`sizes`).
    #[arg(
        long,
        default_value = "time",
        requires = "parts",
        conflicts_with = "operations"
    )]
    request: String,
    /// Print the benchmarks' JSON lines, with the part added to each.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmarks of the chosen parts.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let metadata = Metadata::read()?;
    let benches: Vec<(&str, &str, &str)> = metadata
        .packages
        .iter()
        .flat_map(|package| {
            package
                .targets_of("bench")
                .map(|target| (package.part(), package.name.as_str(), target.name.as_str()))
        })
        .collect();
    if let Some(part) = arguments
        .parts
        .iter()
        .find(|part| !benches.iter().any(|(other, _, _)| other == part))
    {
        let mut parts: Vec<&str> = benches.iter().map(|(part, _, _)| *part).collect();
        parts.dedup();
        bail!(
            "no part `{part}` has benchmarks; these have: {}",
            parts.join(", ")
        );
    }
    let mut found = false;
    for (part, package, bench) in benches {
        if !arguments.parts.is_empty() && !arguments.parts.iter().any(|other| other == part) {
            continue;
        }
        let program = instructions::build(package, bench)?;
        let known = instructions::operations(&program)?;
        let operations: Vec<&String> = arguments
            .operations
            .iter()
            .filter(|operation| known.contains(operation))
            .collect();
        if operations.is_empty() && !arguments.operations.is_empty() {
            continue;
        }
        found = true;
        eprintln!("measuring: {part}, {bench}");
        let mut benchmark = process::command(&program.to_string_lossy());
        benchmark.arg(&arguments.request).args(operations);
        let measured = measured(&process::output(benchmark)?);
        if arguments.json {
            for mut object in measured {
                object["part"] = part.into();
                process::print(&format!("{object}\n"))?;
            }
        } else {
            process::print(&render(part, &measured))?;
        }
    }
    if !found {
        bail!(
            "no benchmark has an operation {}",
            arguments.operations.join(", ")
        );
    }
    Ok(true)
}

/// The JSON objects among the lines that a benchmark printed.
fn measured(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|value: &Value| value["name"].is_string())
        .collect()
}

fn render(part: &str, measured: &[Value]) -> String {
    let show = |value: &Value| value.as_f64().map_or_else(String::new, table::number);
    let rows: Vec<Vec<String>> = measured
        .iter()
        .map(|object| {
            vec![
                object["name"].as_str().unwrap_or_default().to_owned(),
                show(&object["value"]),
                object["unit"].as_str().unwrap_or("ns").to_owned(),
                show(&object["ratio"]),
                object["peer"].as_str().unwrap_or_default().to_owned(),
            ]
        })
        .collect();
    table::render(
        &[
            (part, Align::Left),
            ("measured", Align::Right),
            ("", Align::Left),
            ("ratio", Align::Right),
            ("to", Align::Left),
        ],
        &rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmarks_lines_become_a_table() {
        let objects = measured(
            "noise\n\
             {\"name\": \"plain\", \"value\": 0.19}\n\
             {\"name\": \"read\", \"value\": 0.2, \"ratio\": 1.05, \"peer\": \"plain\"}\n",
        );
        assert_eq!(
            render("context", &objects),
            "context  measured      ratio  to\n\
             plain       0.190  ns\n\
             read        0.200  ns  1.050  plain\n"
        );
    }
}
