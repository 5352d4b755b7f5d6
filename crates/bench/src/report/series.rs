//! What charts draw: panels of lines of points, chosen from results.

use std::collections::{BTreeMap, BTreeSet};

use super::{Options, Statistic};
use crate::Value;
use crate::result::{Point, Results, TestResults};

/// What is to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// One beside the other.
    pub panels: Vec<Panel>,
    /// What stands at the horizontal axis.
    pub x_label: String,
    /// What stands at the vertical axis.
    pub y_label: String,
    /// Above all.
    pub title: String,
}

/// A chart among others.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// What is the same for all of it.
    pub title: String,
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
    fn of(self, point: &Point, metric: &str) -> Option<f64> {
        let statistics = point.metrics.get(metric)?;
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
    let tests: Vec<&TestResults> = match &options.test {
        None => results.tests.iter().collect(),
        Some(name) => results
            .tests
            .iter()
            .filter(|test| test.name == *name)
            .collect(),
    };
    if tests.is_empty() {
        let names: Vec<&str> = results.tests.iter().map(|test| &*test.name).collect();
        return Err(format!("no such test; there are: {}", names.join(", ")));
    }
    Ok(tests)
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

/// What a chart of these results shows.
pub(super) fn choose(results: &Results, options: &Options) -> Result<Chosen, String> {
    let tests = tests(results, options)?;
    let variables = variables(&tests);
    let known = |name: &Option<String>| match name {
        Some(name) if !variables.contains_key(&**name) => {
            let names: Vec<&str> = variables.keys().copied().collect();
            Err(format!(
                "no variable is `{name}`; there are: {}",
                names.join(", ")
            ))
        }
        _ => Ok(()),
    };
    known(&options.x)?;
    known(&options.panels)?;
    let x = options.x.as_deref().or_else(|| {
        let others = variables
            .iter()
            .filter(|(name, _)| options.panels.as_deref() != Some(**name));
        // Of several, the one whose curve has the most points.
        let longest = others.max_by_key(|(_, values)| values.len())?;
        Some(*longest.0)
    });
    let metrics: BTreeSet<&str> = tests.iter().flat_map(|test| test.metrics()).collect();
    let metrics: Vec<&str> = match &options.metric {
        None => metrics.into_iter().collect(),
        Some(metric) if metrics.contains(&**metric) => vec![metric],
        Some(metric) => {
            let names: Vec<&str> = metrics.into_iter().collect();
            return Err(format!(
                "nothing measured is `{metric}`; there are: {}",
                names.join(", ")
            ));
        }
    };
    if metrics.is_empty() {
        return Err("nothing was measured; `milieu bench report markdown` says why".into());
    }
    let mut panels: Vec<Panel> = Vec::new();
    for metric in &metrics {
        for test in &tests {
            for point in &test.points {
                let Some(y) = options.statistic.of(point, metric) else {
                    continue;
                };
                let mut of_panel = Vec::new();
                let mut of_line = Vec::new();
                // What all have in common need not be said.
                if metrics.len() > 1 {
                    of_panel.push((*metric).to_owned());
                }
                if tests.len() > 1 {
                    of_line.push(test.name.clone());
                }
                for (name, value) in &point.variables {
                    if options.panels.as_ref() == Some(name) {
                        of_panel.push(format!("{name} = {value}"));
                    } else if x != Some(name)
                        && variables.get(&**name).is_some_and(|it| it.len() > 1)
                    {
                        of_line.push(format!("{name} = {value}"));
                    }
                }
                let x = x.and_then(|x| point.variables.get(x)).cloned();
                let interval = point.metrics.get(*metric).and_then(|it| it.confidence);
                let sample = Sample {
                    x: x.unwrap_or(Value::Text(String::new())),
                    y,
                    interval: interval.filter(|_| options.statistic == Statistic::Mean),
                    values: point.numbers(metric),
                };
                let panel = entry(
                    &mut panels,
                    of_panel.join(", "),
                    |it| &it.title,
                    |title| Panel {
                        title,
                        lines: Vec::new(),
                    },
                );
                let line = entry(
                    &mut panel.lines,
                    of_line.join(", "),
                    |it| &it.name,
                    |name| Line {
                        name,
                        samples: Vec::new(),
                    },
                );
                line.samples.push(sample);
            }
        }
    }
    for line in panels.iter_mut().flat_map(|panel| &mut panel.lines) {
        // Numbers are in their order on an axis; words as they were given.
        line.samples
            .sort_by(|a, b| match (a.x.number(), b.x.number()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => std::cmp::Ordering::Equal,
            });
    }
    let property = |names: [&str; 2]| {
        let found = names
            .iter()
            .find_map(|name| results.group.properties.get(*name));
        found.map(ToString::to_string)
    };
    // The paper's names for these (Figure 3), and ours.
    let x_label = property(["categoryAxisLabel", "category-axis"]);
    let y_label = property(["valueAxisLabel", "value-axis"]);
    Ok(Chosen {
        panels,
        x_label: x_label.or_else(|| x.map(str::to_owned)).unwrap_or_default(),
        y_label: y_label.unwrap_or_else(|| match (&metrics[..], options.statistic) {
            ([metric], Statistic::Mean) => (*metric).to_owned(),
            ([metric], statistic) => format!("{metric} ({})", statistic.name()),
            (_, statistic) => statistic.name(),
        }),
        title: results.group.name.clone(),
    })
}

/// The element of a name, which is made if it is not there.
fn entry<T>(
    all: &mut Vec<T>,
    name: String,
    of: impl Fn(&T) -> &String,
    make: impl FnOnce(String) -> T,
) -> &mut T {
    let at = all
        .iter()
        .position(|it| *of(it) == name)
        .unwrap_or_else(|| {
            all.push(make(name));
            all.len() - 1
        });
    &mut all[at]
}
