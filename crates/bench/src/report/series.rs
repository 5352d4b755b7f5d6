//! What charts draw: panels of lines of points, chosen from results.

use std::collections::{BTreeMap, BTreeSet};

use super::{Column, Options, Statistic, unknown};
use crate::Value;
use crate::result::{Point, Results, TestResults};
use crate::statistics::Statistics;

/// What is to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// One beside the other.
    pub panels: Vec<Panel>,
    /// What stands at the horizontal axis.
    pub x_label: String,
    /// What stands at the vertical axes, where that is the same for all panels.
    pub y_label: String,
    /// Above all.
    pub title: String,
    /// The variable that tells lines apart, where it is one alone and the names of
    /// lines are its values.
    pub legend: String,
}

/// A chart among others.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// What is the same for all of it.
    pub title: String,
    /// What was measured.
    pub metric: String,
    /// What stands at the vertical axis.
    pub y_label: String,
    /// What is compared.
    pub lines: Vec<Line>,
}

/// Points that belong together.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// What distinguishes them from others; may be empty.
    pub name: String,
    /// The points, by `x`.
    pub samples: Vec<Sample>,
}

/// A point.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What the variable of the horizontal axis is.
    pub x: Value,
    /// The statistic.
    pub y: f64,
    /// Where the true mean is, if that is drawn and known.
    pub interval: Option<(f64, f64)>,
    /// All numbers.
    pub values: Vec<f64>,
}

impl Statistic {
    fn of(self, statistics: &Statistics) -> Option<f64> {
        Some(match self {
            Statistic::Mean => statistics.mean,
            Statistic::Minimum => statistics.minimum,
            Statistic::Maximum => statistics.maximum,
            Statistic::Percentile(wanted) => {
                let mut known = statistics.percentiles.iter();
                known
                    .find(|(percent, _)| percent.to_bits() == wanted.to_bits())?
                    .1
            }
        })
    }
}

/// The tests that are asked for.
pub(super) fn tests<'r>(
    results: &'r Results,
    options: &Options,
) -> Result<Vec<&'r TestResults>, String> {
    let Some(name) = &options.test else {
        return Ok(results.tests.iter().collect());
    };
    let tests: Vec<&TestResults> = results
        .tests
        .iter()
        .filter(|test| test.name == *name)
        .collect();
    match tests.is_empty() {
        false => Ok(tests),
        true => Err(unknown(
            "test",
            name,
            results.tests.iter().map(|test| &*test.name),
        )),
    }
}

/// What was measured, as far as it is asked for, which may be a column, too.
pub(super) fn metrics<'r>(
    tests: &[&'r TestResults],
    options: &'r Options,
    columns: &'r [Column],
) -> Result<Vec<&'r str>, String> {
    let metrics: BTreeSet<&str> = tests.iter().flat_map(|test| test.metrics()).collect();
    let Some(wanted) = options.metric.as_deref() else {
        return Ok(metrics.into_iter().collect());
    };
    let columns = columns.iter().map(|column| &*column.name);
    let known: Vec<&str> = metrics.into_iter().chain(columns).collect();
    match known.contains(&wanted) {
        true => Ok(vec![wanted]),
        false => Err(unknown("metric", wanted, known.into_iter())),
    }
}

/// The variables that change, and their values.
fn variables<'r>(tests: &[&'r TestResults]) -> BTreeMap<&'r str, Vec<&'r Value>> {
    let mut variables: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let points = tests.iter().flat_map(|test| &test.points);
    for (name, value) in points.flat_map(|point| &point.variables) {
        let values = variables.entry(name).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    variables
}

/// What a chart of these results shows: a panel for each metric and each value of
/// [`Options::panels`], and in it a line for each combination of all other
/// variables and tests.
///
/// # Errors
/// What is asked for is not there, or nothing is.
pub fn choose(results: &Results, options: &Options) -> Result<Chosen, String> {
    let tests = tests(results, options)?;
    let variables = variables(&tests);
    let known = |name: &Option<String>| match name.as_deref() {
        Some(name) if !variables.contains_key(name) => {
            Err(unknown("variable", name, variables.keys().copied()))
        }
        _ => Ok(()),
    };
    known(&options.x)?;
    known(&options.panels)?;
    let x = options.x.as_deref().or_else(|| {
        let free = variables
            .iter()
            .filter(|(name, _)| options.panels.as_deref() != Some(**name));
        // Numbers make curves, and words tell them apart.
        let are_numbers =
            |values: &[&Value]| values.len() > 1 && values.iter().all(|it| it.number().is_some());
        let longest = free.max_by_key(|(_, values)| (are_numbers(values), values.len()))?;
        Some(*longest.0)
    });
    let metrics = metrics(&tests, options, &options.columns)?;
    if metrics.is_empty() {
        return Err("nothing was measured; `milieu bench report markdown` says why".into());
    }
    let labels = Labels {
        results,
        options,
        metrics: metrics.len(),
    };
    // What all have in common need not be said.
    let distinguishes = |name: &str, values: &[&Value]| {
        x != Some(name) && options.panels.as_deref() != Some(name) && values.len() > 1
    };
    let distinct = variables.iter();
    let distinct: Vec<&str> = distinct
        .filter(|(name, values)| distinguishes(name, values))
        .map(|(name, _)| *name)
        .collect();
    let alone = match distinct[..] {
        [name] if tests.len() == 1 => Some(name),
        _ => None,
    };
    let mut panels: Vec<Panel> = Vec::new();
    for metric in &metrics {
        for test in &tests {
            for point in &test.points {
                let Some(sample) = sample(point, metric, x, options) else {
                    continue;
                };
                let mut of_panel = Vec::new();
                let mut of_line = Vec::new();
                if tests.len() > 1 {
                    of_line.push(test.name.clone());
                }
                for (name, value) in &point.variables {
                    if options.panels.as_ref() == Some(name) {
                        of_panel.push(format!("{name} = {value}"));
                    } else if alone == Some(name) {
                        of_line.push(value.to_string());
                    } else if distinct.contains(&&**name) {
                        of_line.push(format!("{name} = {value}"));
                    }
                }
                let title = of_panel.join(", ");
                let panel = entry(
                    &mut panels,
                    |it| it.title == title && it.metric == *metric,
                    || Panel {
                        title: title.clone(),
                        metric: (*metric).to_owned(),
                        y_label: labels.y(metric),
                        lines: Vec::new(),
                    },
                );
                let name = of_line.join(", ");
                let line = entry(
                    &mut panel.lines,
                    |it| it.name == name,
                    || Line {
                        name: name.clone(),
                        samples: Vec::new(),
                    },
                );
                line.samples.push(sample);
            }
        }
    }
    if panels.is_empty() {
        return Err(format!(
            "there is nothing to draw: no point has a {} of {}",
            options.statistic.name(),
            metrics.join(" or ")
        ));
    }
    for line in panels.iter_mut().flat_map(|panel| &mut panel.lines) {
        // Numbers are in their order on an axis; words as they were given.
        line.samples
            .sort_by(|a, b| match (a.x.number(), b.x.number()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => std::cmp::Ordering::Equal,
            });
    }
    let same = panels
        .windows(2)
        .all(|two| two[0].y_label == two[1].y_label);
    let first = panels.first().filter(|_| same);
    let title = options.picture.title.as_ref();
    Ok(Chosen {
        x_label: labels.x(x),
        y_label: first.map(|panel| panel.y_label.clone()).unwrap_or_default(),
        title: title.unwrap_or(&results.group.name).clone(),
        legend: alone.map(|name| labels.legend(name)).unwrap_or_default(),
        panels,
    })
}

fn sample(point: &Point, metric: &str, x: Option<&str>, options: &Options) -> Option<Sample> {
    let statistics = point.metrics.get(metric);
    let (y, interval) = match statistics {
        Some(statistics) => (options.statistic.of(statistics)?, statistics.confidence),
        None => {
            let mut columns = options.columns.iter();
            let column = columns.find(|column| column.name == metric)?;
            (point.compute(&column.expression).ok()?, None)
        }
    };
    let x = x.and_then(|x| point.variables.get(x)).cloned();
    y.is_finite().then(|| Sample {
        x: x.unwrap_or(Value::Text(String::new())),
        y,
        interval: interval.filter(|_| options.statistic == Statistic::Mean),
        values: point.numbers(metric),
    })
}

/// What stands at axes.
struct Labels<'a> {
    results: &'a Results,
    options: &'a Options,
    metrics: usize,
}

impl Labels<'_> {
    /// The first property there is of these names.
    fn property(&self, names: &[&str]) -> Option<String> {
        let properties = &self.results.group.properties;
        let found = names.iter().find_map(|name| properties.get(*name));
        found.map(ToString::to_string)
    }

    // Both have the paper's names for these, too (Figure 3).
    fn x(&self, x: Option<&str>) -> String {
        let told = self.options.picture.x_label.clone();
        let own = told.or_else(|| self.own(x?));
        own.or_else(|| self.property(&["categoryAxisLabel", "category-axis"]))
            .unwrap_or_else(|| x.unwrap_or_default().to_owned())
    }

    /// What a variable is called.
    fn own(&self, variable: &str) -> Option<String> {
        self.property(&[&format!("category-axis.{variable}")])
    }

    fn legend(&self, variable: &str) -> String {
        self.own(variable).unwrap_or_else(|| variable.to_owned())
    }

    fn y(&self, metric: &str) -> String {
        let own = format!("value-axis.{metric}");
        let property = || match self.metrics {
            1 => self.property(&[&own, "valueAxisLabel", "value-axis"]),
            // One name would not do for several.
            _ => self.property(&[&own]),
        };
        let told = self.options.picture.y_label.clone();
        told.or_else(property)
            .unwrap_or_else(|| match self.options.statistic {
                Statistic::Mean => metric.to_owned(),
                statistic => format!("{metric} ({})", statistic.name()),
            })
    }
}

/// The element that is this, which is made if it is not there.
fn entry<T>(all: &mut Vec<T>, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let at = all.iter().position(is).unwrap_or_else(|| {
        all.push(make());
        all.len() - 1
    });
    &mut all[at]
}
