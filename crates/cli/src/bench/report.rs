//! Results, shown.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use clap::builder::PossibleValuesParser;
use milieu_bench::report::{ALL, Column, Options, Statistic, get};

use super::{Failure, Outcome, put, results};

/// Show results as a table, chart or page
#[derive(Args)]
#[command(after_help = "\
Forms:
  markdown  a table in Markdown, with hosts and what failed
  csv       comma-separated values: a row for each point and metric
  ratios    a table in Markdown: how many times the value of --baseline
  line      a line chart in SVG, with intervals of confidence
  bar       a bar chart in SVG, with intervals of confidence
  box       a box plot in SVG: quartiles, and values far from them
  html      one page with a chart, all numbers, the hosts and the description
  json      the whole result
  xml       configuration and numbers, as Solar's test client wrote them

Any program that reads the result in JSON is a form, too:
  milieu bench report --with ./summary.py results.json")]
pub(crate) struct Report {
    /// The form; or the result, where --with names a program
    #[arg(value_name = "FORM")]
    form: String,
    /// The result, .json or .xml
    #[arg(value_name = "RESULT", required_unless_present = "with")]
    result: Option<PathBuf>,
    /// A program that reads the result in JSON and writes the report
    #[arg(long, value_name = "PROGRAM", conflicts_with = "result")]
    with: Option<PathBuf>,
    /// Where the report goes; standard output otherwise
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The variable at the horizontal axis
    #[arg(long, value_name = "VARIABLE")]
    x: Option<String>,
    /// The variable that has a panel for each of its values
    #[arg(long, value_name = "VARIABLE")]
    panels: Option<String>,
    /// What was measured
    #[arg(long)]
    metric: Option<String>,
    /// What is shown of it
    #[arg(long, default_value = "mean", value_parser = PossibleValuesParser::new(
        ["mean", "min", "max", "p50", "p75", "p95", "p99", "p99.9", "p99.99"]))]
    statistic: String,
    /// The variable and its value that ratios are to
    #[arg(long, value_name = "VARIABLE=VALUE", value_parser = baseline)]
    baseline: Option<(String, String)>,
    /// A further column of tables, computed of what was measured and varied
    #[arg(long = "column", value_name = "NAME=EXPRESSION", value_parser = column)]
    columns: Vec<Column>,
    /// Only this test
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
}

fn baseline(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write it as VARIABLE=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn column(text: &str) -> Result<Column, String> {
    let (name, expression) = text.split_once('=').ok_or("write it as NAME=EXPRESSION")?;
    Column::new(name.trim(), expression).map_err(|found| {
        let first = found.first().map(ToString::to_string);
        first.unwrap_or_default()
    })
}

impl Report {
    pub(super) fn run(&self) -> Outcome {
        if let Some(program) = &self.with {
            return self.by(program);
        }
        let Some(form) = get(&self.form) else {
            let forms: Vec<&str> = ALL.iter().map(|form| form.name()).collect();
            let message = format!("there is no form `{}`", self.form);
            return Err(Failure::new(
                message,
                format!("there are {}", forms.join(", ")),
            ));
        };
        let results = results(self.result.as_deref().unwrap_or("".as_ref()))?;
        let options = Options {
            x: self.x.clone(),
            metric: self.metric.clone(),
            statistic: Statistic::parse(&self.statistic).unwrap_or_default(),
            panels: self.panels.clone(),
            baseline: self.baseline.clone(),
            test: self.test.clone(),
            columns: self.columns.clone(),
        };
        let report = form.write(&results, &options);
        let report = report.map_err(|why| Failure::new(why, "`milieu bench report --help`"))?;
        put(&String::from_utf8_lossy(&report), self.output.as_ref())?;
        Ok(ExitCode::SUCCESS)
    }

    /// The report that a program makes.
    fn by(&self, program: &PathBuf) -> Outcome {
        let shown = program.display();
        let failed = |what: &str| {
            let help = "it gets the result in JSON on its standard input";
            Failure::new(format!("{shown} {what}"), help)
        };
        let results = results(self.form.as_ref())?;
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&format!("cannot be run: {error}")))?;
        let input = child.stdin.take();
        let text = results.to_json();
        // It may write while it reads, and need not read all.
        let writer = std::thread::spawn(move || {
            let _ = input.map(|mut input| input.write_all(text.as_bytes()));
        });
        let output = child.wait_with_output();
        let output = output.map_err(|error| failed(&format!("is lost: {error}")))?;
        let _ = writer.join();
        if !output.status.success() {
            return Err(failed(&format!("has failed: {}", output.status)));
        }
        put(
            &String::from_utf8_lossy(&output.stdout),
            self.output.as_ref(),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
