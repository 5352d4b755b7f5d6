//! `change`: what is another value than before.

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Time, Value};
use std::any::Any;

use super::groups::Groups;
use super::key::Key;
use super::parameters::{BY, FORGET, GROUPS, OF, forget, groups, optional};
use super::terms::{Id, Terms, number, trusted};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &CHANGE,
    details: "\
An event goes on if its value differs from that of the event that went on last; the first one \
goes on. With `least` numbers differ if they lie so far apart, so a slow drift is seen too. The \
rest is dropped as `filtered`, and events of failed sensors as `failed`. The order in which \
events come counts, and not their times.",
    examples: &[Example {
        shows: "a person who moves, however often the tracker says where",
        flow: "/people/position | change of=room by=person",
        lines: "\
1 /people/position {\"person\": \"anna\", \"room\": \"005\"}
@1 {\"person\": \"anna\", \"room\": \"005\"}
2 /people/position {\"person\": \"anna\", \"room\": \"005\"}
3 /people/position {\"person\": \"ben\", \"room\": \"005\"}
@3 {\"person\": \"ben\", \"room\": \"005\"}
4 /people/position {\"person\": \"anna\", \"room\": \"007\"}
@4 {\"person\": \"anna\", \"room\": \"007\"}",
    }],
};

static CHANGE: Definition = Definition {
    name: "change",
    summary: "Lets those events go on that say something else than the last one did.",
    inputs: Inputs::One,
    parameters: &[
        OF,
        optional("least", Kind::Number, "How far numbers have to lie apart."),
        BY,
        GROUPS,
        FORGET,
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    Ok(Box::new(Change {
        of: terms.require(arguments, "of")?,
        by: terms.add(arguments, "by")?,
        terms,
        least: arguments.distance("least")?,
        last: Groups::new(groups(arguments)?, forget(arguments)?),
    }))
}

struct Change {
    terms: Terms,
    of: Id,
    by: Option<Id>,
    least: Option<f64>,
    last: Groups<Option<Key>>,
}

impl Change {
    fn decide(&mut self, event: &Event, out: &Output<'_>) -> Result<bool, Reason> {
        trusted(event)?;
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        let value = match self.least {
            None => self.terms.value(self.of, event)?,
            Some(_) => self.terms.number(self.of, event)?.into(),
        };
        let last = self.last.get(group, out.now()).ok_or(Reason::Overflow)?;
        let value = Key::new(value);
        let differs = match (&*last, self.least) {
            (None, _) => true,
            (Some(last), None) => *last != value,
            (Some(last), Some(least)) => match (number(last.value()), number(value.value())) {
                (Some(last), Some(value)) => (last - value).abs() >= least && last != value,
                _ => true,
            },
        };
        if differs {
            *last = Some(value);
        }
        Ok(differs)
    }
}

impl Operator for Change {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.decide(event, out) {
            Ok(true) => Fate::Passed,
            Ok(false) => Fate::Dropped(Reason::Filtered),
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
        alike(other, |other: &Change| self.last.is_like(&other.last, now))
    }

    fn snapshot(&self) -> Value {
        self.last.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.last.restore(state)
    }
}
