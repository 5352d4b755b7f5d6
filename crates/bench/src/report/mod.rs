//! Reports: results as people want to see them.
//!
//! The paper calls these graph modes (Solar, section 4.1.2). Each is a
//! [`Report`]; others are added by implementing the trait, or as commands that
//! read results in JSON.

mod chart;
mod html;
mod ratios;
mod scale;
mod series;
mod table;

use milieu_diagnostics::Diagnostic;
use milieu_expressions::Expression;

use crate::result::Results;

pub use series::{Chosen, Line, Panel, Sample};

/// What is shown, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The variable of the horizontal axis; none is the one with the most values.
    pub x: Option<String>,
    /// The metric; none is all of them.
    pub metric: Option<String>,
    /// The statistic that lines and bars show.
    pub statistic: Statistic,
    /// The variable that gets a panel of its own for each value.
    pub panels: Option<String>,
    /// The variable and its value that ratios are to.
    pub baseline: Option<(String, String)>,
    /// Only this test.
    pub test: Option<String>,
    /// Further columns of tables.
    pub columns: Vec<Column>,
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
