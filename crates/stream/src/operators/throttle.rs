//! `throttle`: the first event of every span.

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};
use std::any::Any;

use super::groups::Groups;
use super::parameters::{BY, FORGET, GROUPS, forget, groups, required};
use super::terms::{Id, Terms};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &THROTTLE,
    details: "\
Spans are aligned to the clock, and it counts when events come, not when they happened. The \
first one goes on at once, the others are dropped as `filtered`. Events of failed sensors are \
like others.",
    examples: &[Example {
        shows: "one event in ten seconds",
        flow: "/doors/front | throttle 10s",
        lines: "\
3 /doors/front 1
@3 1
9 /doors/front 2
11 /doors/front 3
@11 3",
    }],
};

static THROTTLE: Definition = Definition {
    name: "throttle",
    summary: "Lets the first event of every span of time go on.",
    inputs: Inputs::One,
    parameters: &[
        required("every", Kind::Span, "How long a span is."),
        BY,
        GROUPS,
        FORGET,
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    Ok(Box::new(Throttle {
        by: terms.add(arguments, "by")?,
        terms,
        every: arguments.length("every")?.unwrap_or(Span::ZERO),
        passed: Groups::new(groups(arguments)?, forget(arguments)?),
    }))
}

struct Throttle {
    terms: Terms,
    by: Option<Id>,
    every: Span,
    /// The start of the span in which an event went on last.
    passed: Groups<Option<Time>>,
}

impl Throttle {
    fn decide(&mut self, event: &Event, out: &Output<'_>) -> Result<(), Reason> {
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        let passed = self.passed.get(group, out.now()).ok_or(Reason::Overflow)?;
        let span = Some(out.now().aligned(self.every));
        if std::mem::replace(passed, span) == span {
            return Err(Reason::Filtered);
        }
        Ok(())
    }
}

impl Operator for Throttle {
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
        alike(other, |other: &Throttle| {
            self.passed.is_like(&other.passed, now)
        })
    }

    fn snapshot(&self) -> Value {
        self.passed.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.passed.restore(state)
    }
}
