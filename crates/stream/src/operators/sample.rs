//! `sample`: the last event of every span.

use std::any::Any;
use std::collections::HashMap;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};

use super::key::Key;
use super::parameters::{BY, GROUPS, groups, required};
use super::state::{State, parts};
use super::terms::{Id, Terms};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &SAMPLE,
    details: "\
Spans are aligned to the clock, and it counts when events come, not when they happened. The \
last event that came in a span goes on at its end; what came before it is dropped as \
`superseded`. Events of failed sensors are like others.",
    examples: &[Example {
        shows: "the last of ten seconds",
        flow: "/weather/temperature | sample 10s",
        lines: "\
3 /weather/temperature 20.0
9 /weather/temperature 21.0
clock 10
@10 21.0
clock 30",
    }],
};

static SAMPLE: Definition = Definition {
    name: "sample",
    summary: "Lets the last event of every span of time go on, at its end.",
    inputs: Inputs::One,
    parameters: &[
        required("every", Kind::Span, "How long a span is."),
        BY,
        GROUPS,
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    Ok(Box::new(Sample {
        by: terms.add(arguments, "by")?,
        terms,
        every: arguments.length("every")?.unwrap_or(Span::ZERO),
        most: groups(arguments)?,
        last: HashMap::new(),
        end: None,
    }))
}

struct Sample {
    terms: Terms,
    by: Option<Id>,
    every: Span,
    most: usize,
    last: HashMap<Key, Event>,
    /// When the span ends in which they came.
    end: Option<Time>,
}

impl Sample {
    fn pass(&mut self, out: &mut Output<'_>) {
        self.end = None;
        let mut last: Vec<_> = self.last.drain().collect();
        last.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (_, event) in last {
            out.pass(event);
        }
    }

    fn keep(&mut self, event: &Event, out: &mut Output<'_>) -> Result<(), Reason> {
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        if self.last.len() >= self.most && !self.last.contains_key(&group) {
            return Err(Reason::Overflow);
        }
        if self.last.insert(group, event.clone()).is_some() {
            out.drop(Reason::Superseded, 1);
        }
        let end = out.now().aligned(self.every) + self.every;
        // A clock that is set back must not make it wait long.
        self.end = Some(self.end.map_or(end, |before| before.min(end)));
        Ok(())
    }
}

impl Operator for Sample {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        if self.end.is_some_and(|end| end <= out.now()) {
            self.pass(out);
        }
        match self.keep(event, out) {
            Ok(()) => Fate::Held,
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        if self.end.is_some_and(|end| end <= out.now()) {
            self.pass(out);
        }
    }

    fn due(&self) -> Option<Time> {
        self.end
    }

    fn held(&self) -> usize {
        self.last.len()
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, _: Time) -> bool {
        alike(other, |other: &Sample| {
            self.end == other.end && self.last.is_same(&other.last)
        })
    }

    fn snapshot(&self) -> Value {
        vec![self.end.save(), self.last.save()].into()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        let parts = parts(state, 2)?;
        (self.end, self.last) = (State::load(&parts[0])?, State::load(&parts[1])?);
        Ok(())
    }
}
