//! `outliers`: numbers that lie far from the others.

use std::any::Any;
use std::collections::VecDeque;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Time, Value};

use super::groups::Groups;
use super::parameters::{BY, FORGET, GROUPS, OF, defaulting, forget, groups};
use super::terms::{Id, Terms, trusted};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &OUTLIERS,
    details: "\
A number is compared with the `count` numbers before it, outliers among them: it is an outlier if \
it lies farther from their median than `deviations` times 1.4826 times the median distance from \
it (which for normally distributed numbers is their standard deviation), and farther than \
`least`. So one wild reading changes nothing, and a step to a new level is believed when half of \
the numbers are there. The first three numbers of a group go on. Where readings are often exactly \
the same, `least` says what noise is to be allowed.

Outliers are dropped as `outlier`, events of failed sensors as `failed`; these are not remembered.",
    examples: &[Example {
        shows: "a sensor that spikes",
        flow: "/weather/temperature | outliers least=1",
        lines: "\
1 /weather/temperature 20.0
@1 20.0
2 /weather/temperature 20.1
@2 20.1
3 /weather/temperature 20.0
@3 20.0
4 /weather/temperature 85.0
5 /weather/temperature 20.2
@5 20.2",
    }],
};

static OUTLIERS: Definition = Definition {
    name: "outliers",
    summary: "Drops numbers that lie far from those before them.",
    inputs: Inputs::One,
    parameters: &[
        OF,
        BY,
        defaulting(
            "count",
            Kind::Integer,
            "11",
            "With how many numbers one is compared.",
        ),
        defaulting(
            "deviations",
            Kind::Number,
            "3",
            "From how many deviations on it is an outlier.",
        ),
        defaulting(
            "least",
            Kind::Number,
            "0",
            "How far it has to lie from their median at least.",
        ),
        GROUPS,
        FORGET,
    ],
    make,
};

/// From so many numbers on there is something to compare with.
const ENOUGH: usize = 3;

/// The standard deviation of a normal distribution, of which half lies within
/// one from its mean.
const NORMAL: f64 = 1.4826;

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    let count = arguments.count("count", 1_000)?.unwrap_or(0);
    if count < ENOUGH {
        return Err(arguments.wrong("count", &format!("is to be {ENOUGH} or more")));
    }
    Ok(Box::new(Outliers {
        of: terms.require(arguments, "of")?,
        by: terms.add(arguments, "by")?,
        terms,
        count,
        deviations: arguments.distance("deviations")?.unwrap_or(0.0),
        least: arguments.distance("least")?.unwrap_or(0.0),
        last: Groups::new(groups(arguments)?, forget(arguments)?),
        sorted: Vec::new(),
    }))
}

struct Outliers {
    terms: Terms,
    of: Id,
    by: Option<Id>,
    count: usize,
    deviations: f64,
    least: f64,
    last: Groups<VecDeque<f64>>,
    /// Where numbers are sorted.
    sorted: Vec<f64>,
}

impl Outliers {
    fn decide(&mut self, event: &Event, out: &Output<'_>) -> Result<(), Reason> {
        trusted(event)?;
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        let value = self.terms.number(self.of, event)?;
        let last = self.last.get(group, out.now()).ok_or(Reason::Overflow)?;
        let mut is_outlier = false;
        if last.len() >= ENOUGH {
            let sorted = &mut self.sorted;
            sorted.clear();
            sorted.extend(last.iter());
            let middle = median(sorted);
            sorted
                .iter_mut()
                .for_each(|number| *number = (*number - middle).abs());
            let deviation = NORMAL * median(sorted);
            is_outlier = (value - middle).abs() > self.least.max(self.deviations * deviation);
        }
        if last.len() == self.count {
            last.pop_front();
        }
        last.push_back(value);
        if is_outlier {
            Err(Reason::Outlier)
        } else {
            Ok(())
        }
    }
}

/// The middle of numbers, of which there is one at least; it sorts them.
pub(super) fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 {
        numbers[middle]
    } else {
        f64::midpoint(numbers[middle - 1], numbers[middle])
    }
}

impl Operator for Outliers {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.decide(event, out) {
            Ok(()) => Fate::Passed,
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, now: Time) -> bool {
        alike(other, |other: &Outliers| {
            self.last.is_like(&other.last, now)
        })
    }

    fn snapshot(&self) -> Value {
        self.last.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.last.restore(state)
    }
}
