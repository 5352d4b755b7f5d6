//! Results, shown.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use milieu_bench::report::{ALL, Column, Format, Options, Picture, Scale, Statistic, get};
use milieu_keys::rules::nearest;

use super::{Failure, Outcome, put_bytes, results};

/// Show results as a table, chart or page
#[derive(Args)]
#[command(after_help = "\
Forms:
  markdown  a table in Markdown, with hosts and what failed
  csv       comma-separated values: a row for each point and metric
  ratios    a table in Markdown: how many times the value of --baseline
  line      a line chart in SVG or PNG, with intervals of confidence
  bar       a bar chart in SVG or PNG, with intervals of confidence
  box       a box plot in SVG or PNG: quartiles, means, and values far from them
  html      one page with charts, all numbers, the hosts and the description
  json      the whole result
  xml       configuration and numbers, as Solar's test client wrote them

Any program that reads the result in JSON is a form, too; what stands behind --
is for it:
  milieu bench report --with ./summary.py results.json -- --short
  milieu bench helper pgfplots   prints one that makes figures for LaTeX

Examples:
  milieu bench report line results.json -o figure.png --width 84
  milieu bench report line results.json --metric latency --statistic p99 --y-scale log
  milieu bench report csv results.json --column 'per_core=rate.mean / double(cores)'")]
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
    /// What the program is told
    #[arg(last = true, value_name = "ARGUMENT", requires = "with")]
    arguments: Vec<String>,
    /// Where the report goes; standard output otherwise, and for `-`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The variable at the horizontal axis
    #[arg(long, value_name = "VARIABLE")]
    x: Option<String>,
    /// The variable that has a panel for each of its values
    #[arg(long, value_name = "VARIABLE")]
    panels: Option<String>,
    /// What was measured; in charts a column, too
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
    /// Print what is wrong as lines of JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    looks: Looks,
}

/// How charts look.
#[derive(Args)]
#[command(next_help_heading = "Charts")]
struct Looks {
    /// What charts are written as; otherwise what the name of the file says, or SVG
    #[arg(long, value_name = "FORMAT")]
    format: Option<Written>,
    /// How many dots a PNG has in an inch
    #[arg(long, value_name = "DOTS", default_value_t = 300.0, value_parser = above_zero)]
    dpi: f64,
    /// How wide a chart is, in millimetres [default: 120, or 170 with several panels]
    #[arg(long, value_name = "MM", value_parser = above_zero)]
    width: Option<f64>,
    /// How high its panels are together, in millimetres
    #[arg(long, value_name = "MM", value_parser = above_zero)]
    height: Option<f64>,
    /// How the numbers of the horizontal axis lie
    #[arg(long, value_name = "SCALE", default_value = "linear")]
    x_scale: Lies,
    /// How the numbers of the vertical axis lie
    #[arg(long, value_name = "SCALE", default_value = "linear")]
    y_scale: Lies,
    /// What stands above a chart; nothing if it is empty [default: the name of the group]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// What stands at the horizontal axis
    #[arg(long, value_name = "TEXT")]
    x_label: Option<String>,
    /// What stands at the vertical axis
    #[arg(long, value_name = "TEXT")]
    y_label: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Written(Format);

impl ValueEnum for Written {
    fn value_variants<'a>() -> &'a [Written] {
        &[Written(Format::Svg), Written(Format::Png)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self.0 {
            Format::Svg => "svg",
            Format::Png => "png",
        }))
    }
}

#[derive(Clone, Copy)]
struct Lies(Scale);

impl ValueEnum for Lies {
    fn value_variants<'a>() -> &'a [Lies] {
        &[Lies(Scale::Linear), Lies(Scale::Log)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self.0 {
            Scale::Linear => "linear",
            Scale::Log => "log",
        }))
    }
}

fn above_zero(text: &str) -> Result<f64, &'static str> {
    let number = text.parse::<f64>().ok();
    let fitting = number.filter(|number| number.is_finite() && *number > 0.0);
    fitting.ok_or("write a number above 0")
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
            let meant = nearest(&self.form, forms.iter().copied());
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            let message = format!("there is no form `{}`{meant}", self.form);
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
            picture: self.picture()?,
        };
        let report = form.write(&results, &options);
        let report = report.map_err(|why| Failure::new(why, "see `milieu bench report --help`"))?;
        put_bytes(&report, self.output.as_ref())?;
        Ok(ExitCode::SUCCESS)
    }

    fn picture(&self) -> Outcome<Picture> {
        let looks = &self.looks;
        let ending = self.output.as_ref().and_then(|path| path.extension());
        let named = ending.is_some_and(|ending| ending.eq_ignore_ascii_case("png"));
        let usual = if named { Format::Png } else { Format::Svg };
        let format = looks.format.map_or(usual, |written| written.0);
        let is_chart = matches!(&*self.form, "line" | "bar" | "box");
        if !is_chart && (named || looks.format.is_some()) {
            let message = format!("`{}` is no picture", self.form);
            let help = "ask for line, bar or box, or leave out --format and .png";
            return Err(Failure::new(message, help));
        }
        let is_shown = self.output.is_none() && std::io::stdout().is_terminal();
        if format == Format::Png && is_shown {
            let message = "a PNG is nothing for a terminal";
            return Err(Failure::new(message, "name a file with -o chart.png"));
        }
        Ok(Picture {
            format,
            dots_per_inch: looks.dpi,
            width_mm: looks.width,
            height_mm: looks.height,
            x_scale: looks.x_scale.0,
            y_scale: looks.y_scale.0,
            title: looks.title.clone(),
            x_label: looks.x_label.clone(),
            y_label: looks.y_label.clone(),
        })
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
            .args(&self.arguments)
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
        put_bytes(&output.stdout, self.output.as_ref())?;
        Ok(ExitCode::SUCCESS)
    }
}
