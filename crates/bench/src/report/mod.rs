//! Reports: results as people want to see them.
//!
//! The paper calls these graph modes (Solar, section 4.1.2). Each is a
//! [`Report`]; others are added by implementing the trait, or as commands that
//! read results in JSON.
//!
//! A report of one's own is given what charts are drawn of by [`choose`]:
//!
//! ```
//! use milieu_bench::report::{Options, Report, choose};
//! use milieu_bench::result::Results;
//!
//! /// The largest value of each line.
//! struct Peaks;
//!
//! impl Report for Peaks {
//!     fn name(&self) -> &'static str {
//!         "peaks"
//!     }
//!
//!     fn summary(&self) -> &'static str {
//!         "the largest value of each line"
//!     }
//!
//!     fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
//!         let mut out = String::new();
//!         for panel in choose(results, options)?.panels {
//!             for line in panel.lines {
//!                 let values = line.samples.iter().map(|sample| sample.y);
//!                 let peak = values.fold(f64::NEG_INFINITY, f64::max);
//!                 out += &format!("{} {}: {peak}\n", panel.metric, line.name);
//!             }
//!         }
//!         Ok(out.into_bytes())
//!     }
//! }
//!
//! // Figure 4 of the paper, in short.
//! let results = Results::parse(
//!     "<test-group name='Throughput'><test name='Solar'>\
//!        <server host='c22'><app name='t' class='SolarThroughput'/></server>\
//!        <var name='length' start='0' end='100' step='100'/>\
//!        <result><var name='length' value='0.0'/>\
//!          <value app-name='t' error='false' value='290.697'/></result>\
//!        <result><var name='length' value='100.0'/>\
//!          <value app-name='t' error='false' value='291.460'/></result>\
//!      </test></test-group>",
//! )?;
//! let report = Peaks.write(&results, &Options::default())?;
//! assert_eq!(report, b"value : 291.46\n");
//! # Ok::<(), String>(())
//! ```

mod chart;
mod html;
mod ratios;
mod scale;
mod series;
mod table;

use milieu_diagnostics::Diagnostic;
use milieu_expressions::Expression;
use milieu_keys::rules::nearest;

use crate::result::Results;

pub use scale::Scale;
pub use series::{Chosen, Line, Panel, Sample, choose};

/// What is shown, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The variable of the horizontal axis; none is the one with the most values.
    pub x: Option<String>,
    /// The metric, or one of the columns; none is all metrics.
    pub metric: Option<String>,
    /// The statistic that lines and bars show.
    pub statistic: Statistic,
    /// The variable that gets a panel of its own for each value.
    pub panels: Option<String>,
    /// The variable and its value that ratios are to.
    pub baseline: Option<(String, String)>,
    /// Only this test.
    pub test: Option<String>,
    /// Further columns of tables, and metrics of charts.
    pub columns: Vec<Column>,
    /// How charts look.
    pub picture: Picture,
}

/// How charts look.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What they are written as.
    pub format: Format,
    /// How many dots a PNG has in an inch.
    pub dots_per_inch: f64,
    /// How wide a chart is, in millimetres; none is 120, or 170 with several panels.
    pub width_mm: Option<f64>,
    /// How high all of its panels are, in millimetres.
    pub height_mm: Option<f64>,
    /// How the numbers of the horizontal axis lie.
    pub x_scale: Scale,
    /// How the numbers of the vertical axes lie.
    pub y_scale: Scale,
    /// What stands above; none is the name of the group.
    pub title: Option<String>,
    /// What stands at the horizontal axis; none is what the group's properties say, or
    /// the variable.
    pub x_label: Option<String>,
    /// What stands at the vertical axes; none is what the group's properties say,
    /// or the metric.
    pub y_label: Option<String>,
}

impl Default for Picture {
    fn default() -> Picture {
        Picture {
            format: Format::Svg,
            dots_per_inch: 300.0,
            width_mm: None,
            height_mm: None,
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            title: None,
            x_label: None,
            y_label: None,
        }
    }
}

/// What charts are written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Scalable vector graphics.
    #[default]
    Svg,
    /// Portable network graphics, with the feature `png`.
    Png,
}

/// A column of tables that is computed of each point.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    expression: Expression,
}

impl Column {
    /// A column of this name. The expression reads each metric (`latency.p99`,
    /// `rate.mean`), each variable whose name is an identifier, and `failed`.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn new(name: &str, expression: &str) -> Result<Column, Vec<Diagnostic>> {
        Ok(Column {
            name: name.to_owned(),
            expression: Expression::parse(expression)?,
        })
    }
}

/// A statistic of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Statistic {
    /// The mean, with its interval of confidence.
    #[default]
    Mean,
    /// The smallest value.
    Minimum,
    /// The largest value.
    Maximum,
    /// A percentile.
    Percentile(f64),
}

impl Statistic {
    /// The statistic of this name: `mean`, `min`, `max`, or `p99` and the like.
    #[must_use]
    pub fn parse(text: &str) -> Option<Statistic> {
        Some(match text {
            "mean" => Statistic::Mean,
            "min" => Statistic::Minimum,
            "max" => Statistic::Maximum,
            _ => {
                let percent: f64 = text.strip_prefix('p')?.parse().ok()?;
                let known = crate::statistics::PERCENTILES;
                Statistic::Percentile(
                    known
                        .into_iter()
                        .find(|it| it.to_bits() == percent.to_bits())?,
                )
            }
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Statistic::Mean => "mean".into(),
            Statistic::Minimum => "min".into(),
            Statistic::Maximum => "max".into(),
            Statistic::Percentile(percent) => format!("p{percent}"),
        }
    }
}

/// A way to show results.
pub trait Report: Sync {
    /// What it is asked for by.
    fn name(&self) -> &'static str;

    /// What it shows, in a line.
    fn summary(&self) -> &'static str;

    /// The report.
    ///
    /// # Errors
    /// There is nothing that it could show, with the way out.
    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String>;
}

/// All reports that are built in.
pub static ALL: &[&dyn Report] = &[
    &table::Markdown,
    &table::Csv,
    &ratios::Ratios,
    &chart::Lines,
    &chart::Bars,
    &chart::Boxes,
    &html::Page,
    &Json,
    &Xml,
];

/// What is said of a name that nothing has.
fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.collect();
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("there is no {what} `{name}`; did you mean `{meant}`?"),
        None if known.is_empty() => format!("there is no {what} `{name}`, nor any other"),
        None => format!(
            "there is no {what} `{name}`; there are {}",
            known.join(", ")
        ),
    }
}

/// The report of this name.
#[must_use]
pub fn get(name: &str) -> Option<&'static dyn Report> {
    ALL.iter().find(|report| report.name() == name).copied()
}

/// The results themselves.
struct Json;

impl Report for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn summary(&self) -> &'static str {
        "the whole result"
    }

    fn write(&self, results: &Results, _: &Options) -> Result<Vec<u8>, String> {
        Ok(results.to_json().into_bytes())
    }
}

/// The paper's form of results.
struct Xml;

impl Report for Xml {
    fn name(&self) -> &'static str {
        "xml"
    }

    fn summary(&self) -> &'static str {
        "configuration and numbers, as Solar's test client wrote them"
    }

    fn write(&self, results: &Results, _: &Options) -> Result<Vec<u8>, String> {
        Ok(results.to_xml().into_bytes())
    }
}
