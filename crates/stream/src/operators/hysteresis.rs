//! `hysteresis`: a switch that does not flutter.

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Map, Time, Value};
use std::any::Any;

use super::groups::Groups;
use super::parameters::{BY, FORGET, GROUPS, forget, groups, required};
use super::terms::{Id, Terms, trusted};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Declared, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &HYSTERESIS,
    details: "\
It publishes `{value: true}` when it is switched on and `{value: false}` when it is switched off, \
with the time of the event that did it, and `group` where there is `by`. Between the two \
conditions, and where both hold, it stays as it is; at the beginning it is neither. Events of \
failed sensors switch nothing and are dropped as `failed`.",
    examples: &[Example {
        shows: "heat that begins above 32 degrees and ends below 30",
        flow: "/weather/temperature | hysteresis value > 32 off=value < 30",
        lines: "\
1 /weather/temperature 31.0
2 /weather/temperature 32.5
@2 {\"value\": true}
3 /weather/temperature 31.5
4 /weather/temperature 32.5
5 /weather/temperature 29.0
@5 {\"value\": false}",
    }],
};

static HYSTERESIS: Definition = Definition {
    name: "hysteresis",
    summary: "Publishes true when one condition begins to hold and false when another one does.",
    inputs: Inputs::One,
    parameters: &[
        required("on", Kind::Expression, "What switches it on."),
        Declared {
            positional: false,
            ..required("off", Kind::Expression, "What switches it off.")
        },
        BY,
        GROUPS,
        FORGET,
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    Ok(Box::new(Hysteresis {
        on: terms.require(arguments, "on")?,
        off: terms.require(arguments, "off")?,
        by: terms.add(arguments, "by")?,
        terms,
        is_on: Groups::new(groups(arguments)?, forget(arguments)?),
    }))
}

struct Hysteresis {
    terms: Terms,
    on: Id,
    off: Id,
    by: Option<Id>,
    is_on: Groups<Option<bool>>,
}

impl Hysteresis {
    fn switch(&mut self, event: &Event, out: &mut Output<'_>) -> Result<(), Reason> {
        trusted(event)?;
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        let on = self.terms.bool(self.on, event)?;
        let off = self.terms.bool(self.off, event)?;
        let is_on = self
            .is_on
            .get(group.clone(), out.now())
            .ok_or(Reason::Overflow)?;
        if on == off || *is_on == Some(on) {
            return Ok(());
        }
        *is_on = Some(on);
        let mut body = Map::default();
        if self.by.is_some() {
            body.set("group".into(), group.value().clone());
        }
        body.set("value".into(), on.into());
        out.emit_value(event.time(), None, Value::from(body));
        Ok(())
    }
}

impl Operator for Hysteresis {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.switch(event, out) {
            Ok(()) => Fate::Used,
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
        alike(other, |other: &Hysteresis| {
            self.is_on.is_like(&other.is_on, now)
        })
    }

    fn snapshot(&self) -> Value {
        self.is_on.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.is_on.restore(state)
    }
}
