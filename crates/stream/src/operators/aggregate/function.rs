//! The functions of aggregates.

use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Map, Quality, Span, Time, Value};

use super::super::key::Key;
use super::super::quality::quality;
use super::accumulator::{Accumulator, count};
use super::quantiles::ERROR;
use crate::flow::Parameter;

/// What is computed of a window's readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    Count,
    Sum,
    Minimum,
    Maximum,
    Mean,
    Deviation,
    Rate,
    Median,
    Percentile(f64),
    First,
    Last,
    Change,
    Slope,
}

/// Their names, as flows write them.
pub(crate) const NAMES: &[&str] = &[
    "count",
    "sum",
    "minimum",
    "maximum",
    "mean",
    "deviation",
    "rate",
    "median",
    "percentile",
    "first",
    "last",
    "change",
    "slope",
];

impl Function {
    /// Reads one as a flow has it.
    pub fn parse(parameter: &Parameter) -> Result<Function, Diagnostic> {
        let (name, arguments): (&str, &[Parameter]) = match parameter {
            Parameter::Text(name) | Parameter::Expression(name) => (name, &[]),
            Parameter::Call(name, arguments) => (name, arguments),
            _ => return Err(Diagnostic::error("this is no function of an aggregate")),
        };
        let function = match (name, arguments) {
            ("percentile", [part]) => return percentile(part).map(Function::Percentile),
            ("percentile", _) => {
                return Err(Diagnostic::error("`percentile` takes one number")
                    .help("for example `percentile(95)`"));
            }
            (_, [_, ..]) => {
                return Err(Diagnostic::error(format!(
                    "`{name}` takes nothing in parentheses"
                )));
            }
            ("count", []) => Function::Count,
            ("sum", []) => Function::Sum,
            ("minimum", []) => Function::Minimum,
            ("maximum", []) => Function::Maximum,
            ("mean", []) => Function::Mean,
            ("deviation", []) => Function::Deviation,
            ("rate", []) => Function::Rate,
            ("median", []) => Function::Median,
            ("first", []) => Function::First,
            ("last", []) => Function::Last,
            ("change", []) => Function::Change,
            ("slope", []) => Function::Slope,
            _ => {
                let names: Vec<_> = NAMES.iter().map(|name| format!("`{name}`")).collect();
                return Err(Diagnostic::error(format!("there is no function `{name}`"))
                    .help(format!("there are {}", names.join(", "))));
            }
        };
        Ok(function)
    }

    /// The field of the result.
    fn field(self) -> String {
        match self {
            Function::Percentile(part) => format!("percentile_{part}").replace('.', "_"),
            named => format!("{named:?}").to_lowercase(),
        }
    }

    /// Whether it is computed of numbers, and not of the events as such.
    pub fn wants_numbers(self) -> bool {
        !matches!(self, Function::Count | Function::Rate)
    }

    pub fn wants_quantiles(self) -> bool {
        matches!(self, Function::Median | Function::Percentile(_))
    }

    fn part(self) -> f64 {
        match self {
            Function::Percentile(part) => part / 100.0,
            _ => 0.5,
        }
    }

    fn compute(self, of: &Accumulator, rate: Option<f64>) -> Option<f64> {
        let ends = || Some((of.first?, of.last?));
        match self {
            Function::Count => Some(count(of.count)),
            Function::Rate => rate,
            Function::Sum => (of.count > 0).then(|| of.sum()),
            Function::Minimum => (of.count > 0).then_some(of.minimum),
            Function::Maximum => (of.count > 0).then_some(of.maximum),
            Function::Mean => of.mean(),
            Function::Deviation => of.deviation(),
            Function::Median | Function::Percentile(_) => of.quantiles.as_ref()?.at(self.part()),
            Function::First => of.first.map(|first| first.value),
            Function::Last => of.last.map(|last| last.value),
            Function::Change => ends().map(|(first, last)| last.value - first.value),
            Function::Slope => {
                let (first, last) = ends()?;
                let seconds = (last.time - first.time).seconds();
                (seconds > 0.0).then(|| (last.value - first.value) / seconds)
            }
        }
    }

    /// How far from the truth the result may lie, given that each reading lies
    /// at most as far from it as it says.
    fn accuracy(self, of: &Accumulator) -> Option<f64> {
        let all = of.inaccuracy()?;
        let most = of.inaccuracy_most;
        let accuracy = match self {
            Function::Count | Function::Rate => 0.0,
            Function::Sum => all,
            Function::Mean => all / count(of.count),
            Function::Minimum | Function::Maximum | Function::Deviation => most,
            Function::First => of.first?.accuracy?,
            Function::Last => of.last?.accuracy?,
            Function::Median | Function::Percentile(_) => {
                let rounded = of
                    .quantiles
                    .as_ref()
                    .is_some_and(|values| values.is_sketch());
                let greatest = of.minimum.abs().max(of.maximum.abs());
                most + if rounded { greatest * ERROR } else { 0.0 }
            }
            Function::Change => of.first?.accuracy? + of.last?.accuracy?,
            Function::Slope => {
                let (first, last) = (of.first?, of.last?);
                let seconds = (last.time - first.time).seconds();
                if seconds > 0.0 {
                    (first.accuracy? + last.accuracy?) / seconds
                } else {
                    0.0
                }
            }
        };
        Some(accuracy)
    }
}

fn percentile(part: &Parameter) -> Result<f64, Diagnostic> {
    let wrong = || Diagnostic::error("a percentile is a number from 0 to 100");
    let part = match part {
        Parameter::Number(text) | Parameter::Expression(text) | Parameter::Text(text) => {
            text.parse::<f64>().map_err(|_| wrong())?
        }
        #[allow(clippy::cast_precision_loss, reason = "what is precise lies below 100")]
        Parameter::Integer(number) => *number as f64,
        _ => return Err(wrong()),
    };
    if (0.0..=100.0).contains(&part) {
        Ok(part)
    } else {
        Err(wrong())
    }
}

/// How results are made of what is known of windows.
pub(crate) struct Report {
    /// The functions and the fields of their results.
    functions: Vec<(Function, Value)>,
    grouped: bool,
    /// The names of the other fields.
    names: [Value; 5],
}

/// What a result is about.
pub(crate) struct Window {
    /// The first instant.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
    /// The time of the result.
    pub time: Time,
    /// How many events came in a second, if that can be said.
    pub rate: Option<f64>,
}

impl Window {
    /// A window whose whole length counts. The time of its result is its last
    /// instant, so that a window of results takes what lies in it, and nothing
    /// of the next.
    pub fn new(start: Time, end: Time, of: &Accumulator) -> Window {
        let seconds = (end - start).seconds();
        let rate = (seconds > 0.0).then(|| count(of.count) / seconds);
        let time = end - Span::from_nanoseconds(1);
        Window {
            start,
            end,
            time,
            rate,
        }
    }
}

impl Report {
    pub fn new(functions: &[Function], grouped: bool) -> Report {
        // The count is always among the fields, and no field is there twice.
        let mut named: Vec<(Function, Value)> = Vec::new();
        for function in functions {
            let is_known = named.iter().any(|(known, _)| known == function);
            if !is_known && *function != Function::Count {
                named.push((*function, function.field().into()));
            }
        }
        Report {
            functions: named,
            grouped,
            names: ["group", "count", "failed", "start", "end"].map(Value::from),
        }
    }

    pub fn wants_quantiles(&self) -> bool {
        self.functions
            .iter()
            .any(|(function, _)| function.wants_quantiles())
    }

    pub fn wants_numbers(&self) -> bool {
        self.functions
            .iter()
            .any(|(function, _)| function.wants_numbers())
    }

    /// The body of a result.
    pub fn body(&self, window: &Window, group: &Key, of: &Accumulator) -> Value {
        let [group_name, count, failed, start, end] = self.names.clone();
        let mut fields = Vec::with_capacity(self.functions.len() + self.names.len());
        if self.grouped {
            fields.push((group_name, group.value().clone()));
        }
        for (function, field) in &self.functions {
            let result = function.compute(of, window.rate);
            fields.push((field.clone(), result.map_or(Value::Null, Value::Double)));
        }
        fields.push((count, of.count.into()));
        fields.push((failed, of.failed.into()));
        fields.push((start, window.start.into()));
        fields.push((end, window.end.into()));
        Map::new(fields).expect("no name is there twice").into()
    }

    /// How well a result is known: where all sensors have failed it is not.
    pub fn quality(&self, of: &Accumulator) -> Option<Box<Quality>> {
        let numbers = self.functions.iter().map(|(function, _)| *function);
        let numbers = numbers.filter(|function| function.wants_numbers());
        let accuracy = numbers
            .filter_map(|function| function.accuracy(of))
            .reduce(f64::max);
        let failure = of.failure.as_ref().filter(|_| of.count == 0);
        quality(accuracy, failure.map(Arc::clone))
    }
}
