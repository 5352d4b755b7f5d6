//! `filter`: events for which a condition holds.

use std::ops::Range;

use milieu_diagnostics::Diagnostic;
use milieu_expressions::Compiled;
use milieu_transfer::Event;

use super::parameters::required;
use super::quality::failure;
use super::terms::{Formula, Terms};
use super::{Example, Page};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &FILTER,
    details: "\
Where the condition holds the event goes on as it is. Where it does not it is dropped as \
`filtered`, and where it cannot be computed, as for a field that is not there, as `fault`.

An event of a failed sensor is dropped as `failed`, whatever it says; a condition that looks at \
`event.failure` gets it all the same.",
    examples: &[Example {
        shows: "the temperatures above 90 °F",
        flow: "/weather/temperature | filter value > 90",
        lines: "\
1 /weather/temperature 88.0
2 /weather/temperature 91.5
@2 91.5
3 /weather/temperature 99.0 ! the sensor is wet",
    }],
};

static FILTER: Definition = Definition {
    name: "filter",
    summary: "Lets those events go on for which a condition holds.",
    inputs: Inputs::One,
    parameters: &[required("condition", Kind::Expression, "What has to hold.")],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let condition = arguments.expression("condition")?;
    let condition = condition.ok_or_else(|| arguments.wrong("condition", "has to be given"))?;
    let condition = Condition(Formula::new(arguments, &condition)?);
    let filters = Filters::new([&condition]);
    Ok(Box::new(Filter { condition, filters }))
}

struct Filter {
    condition: Condition,
    filters: Filters,
}

impl Operator for Filter {
    fn event(&mut self, _: usize, event: &Event, _: &mut Output<'_>) -> Fate {
        self.test(event)
    }

    fn is_filter(&self) -> bool {
        true
    }

    fn condition(&self) -> Option<&Condition> {
        Some(&self.condition)
    }

    fn test(&mut self, event: &Event) -> Fate {
        match self.filters.test(event) {
            Ok(()) => Fate::Passed,
            Err((_, reason)) => Fate::Dropped(reason),
        }
    }

    fn fault(&self) -> Option<&str> {
        self.filters.fault(0)
    }
}

/// What a filter asks of events.
#[derive(Clone)]
pub struct Condition(Formula);

/// Filters that follow on each other and do the same as one. The fields that
/// their conditions name are read once.
///
/// Whoever counts need not count for each filter: one has received what it and
/// those behind it have dropped, and what has passed all.
pub struct Filters {
    /// The condition of each filter, in their order.
    terms: Terms,
    /// Whether all hold, asked at once.
    all: Option<Box<Compiled>>,
    /// Whether the last event was dropped. Then the next will probably be too,
    /// and the first filters that are asked are enough.
    has_dropped: bool,
    /// The first filter that drops events of failed sensors, or how many there are.
    blind: usize,
    faults: Vec<Option<String>>,
}

impl Filters {
    /// These, in their order.
    #[must_use]
    pub fn new<'a>(conditions: impl IntoIterator<Item = &'a Condition>) -> Filters {
        let mut terms = Terms::new();
        let formulas: Vec<&Formula> = conditions
            .into_iter()
            .map(|condition| &condition.0)
            .collect();
        let blind = formulas
            .iter()
            .position(|formula| !formula.looks_at_failure());
        for formula in &formulas {
            terms.add_formula(formula);
        }
        Filters {
            all: terms.conjunction(&formulas).map(Box::new),
            has_dropped: false,
            terms,
            blind: blind.unwrap_or(formulas.len()),
            faults: vec![None; formulas.len()],
        }
    }

    /// Whether an event passes all filters.
    ///
    /// # Errors
    /// Which filter drops it, counted from 0, and why.
    #[inline]
    pub fn test(&mut self, event: &Event) -> Result<(), (usize, Reason)> {
        if failure(event).is_some() {
            return self.test_failed(event);
        }
        self.terms.read(event);
        if let (Some(all), false) = (&mut self.all, self.has_dropped) {
            if self.terms.also(all) {
                return Ok(());
            }
        }
        // Which one it is that drops the event is seen when each is asked.
        self.one_after_the_other(event, 0..self.faults.len())
    }

    /// Events of failed sensors are for filters that ask for them.
    #[cold]
    fn test_failed(&mut self, event: &Event) -> Result<(), (usize, Reason)> {
        self.terms.read(event);
        self.one_after_the_other(event, 0..self.blind)?;
        match self.blind < self.faults.len() {
            true => Err((self.blind, Reason::Failed)),
            false => Ok(()),
        }
    }

    #[inline]
    fn one_after_the_other(
        &mut self,
        event: &Event,
        filters: Range<usize>,
    ) -> Result<(), (usize, Reason)> {
        let tested = self.terms.all(event, filters);
        self.has_dropped = tested.is_err();
        tested.map_err(|(at, reason)| self.note(at, reason))
    }

    #[inline]
    fn note(&mut self, at: usize, reason: Reason) -> (usize, Reason) {
        if reason == Reason::Fault {
            self.faults[at] = self.terms.fault().map(ToOwned::to_owned);
        }
        (at, reason)
    }

    /// What a filter said last of an event that it could not compute with.
    #[must_use]
    pub fn fault(&self, filter: usize) -> Option<&str> {
        self.faults.get(filter)?.as_deref()
    }
}
