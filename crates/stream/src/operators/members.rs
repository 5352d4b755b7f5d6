//! `members`: the set that events join and leave.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Map, Quality, Span, Time, Value};

use super::key::Key;
use super::parameters::{defaulting, optional, required};
use super::state::State;
use super::terms::{Id, Terms, trusted};
use super::timers::Timers;
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &MEMBERS,
    details: "\
What an event speaks of, `of`, is in the set while `while` held for the last event that spoke of \
it. With `within` it also leaves when so much time has passed since the last event for which it \
held. Each change is published once: all `members` in order, and who has `joined` and `left`. \
Events that change nothing publish nothing, but keep their member in the set. Who would be one too \
many for `most` is dropped as `overflow`.

The last event says what the set is now. Who comes late to a name under which it is published \
gets it; who subscribes to the flow itself gets a set that begins then. `bind` makes a name stand \
for the members.",
    examples: &[
        Example {
            shows: "the devices of a room, each of which says every minute or so where it is",
            flow: "/presence | members '/devices/' + device while=room == '005' within=90s",
            lines: "\
1 /presence {\"device\": \"lamp\", \"room\": \"005\"}
@1 {\"members\": [\"/devices/lamp\"], \"joined\": [\"/devices/lamp\"], \"left\": []}
2 /presence {\"device\": \"door\", \"room\": \"006\"}
61 /presence {\"device\": \"lamp\", \"room\": \"005\"}
70 /presence {\"device\": \"door\", \"room\": \"005\"}
@70 {\"members\": [\"/devices/door\",\"/devices/lamp\"], \"joined\": [\"/devices/door\"], \"left\": []}
80 /presence {\"device\": \"door\", \"room\": \"006\"}
@80 {\"members\": [\"/devices/lamp\"], \"joined\": [], \"left\": [\"/devices/door\"]}
clock 200
@151 {\"members\": [], \"joined\": [], \"left\": [\"/devices/lamp\"]}",
        },
    ],
};

static MEMBERS: Definition = Definition {
    name: "members",
    summary: "Keeps a set, and publishes it when someone joins or leaves.",
    inputs: Inputs::One,
    parameters: &[
        required("of", Kind::Expression, "Who joins or leaves."),
        optional(
            "while",
            Kind::Expression,
            "What has to hold for a member; without it every event joins.",
        ),
        optional(
            "within",
            Kind::Span,
            "How long a member stays of which nothing is heard; forever unless given.",
        ),
        defaulting(
            "most",
            Kind::Integer,
            "1000",
            "How many members there may be.",
        ),
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    Ok(Box::new(Members {
        of: terms.require(arguments, "of")?,
        holds: terms.add(arguments, "while")?,
        terms,
        within: arguments.length("within")?,
        most: arguments.count("most", 65_536)?.unwrap_or(1),
        until: BTreeMap::new(),
        timed: BTreeSet::new(),
        timers: Timers::default(),
    }))
}

struct Members {
    terms: Terms,
    of: Id,
    holds: Option<Id>,
    within: Option<Span>,
    most: usize,
    /// Until when each member stays of which nothing is heard.
    until: BTreeMap<Key, Time>,
    /// When to look at them, and at some that have left since: each has one
    /// place, however often it comes and goes.
    timers: Timers,
    timed: BTreeSet<Key>,
}

impl Members {
    fn change(&mut self, event: &Event, out: &mut Output<'_>) -> Result<(), Reason> {
        trusted(event)?;
        self.terms.read(event);
        let key = Key::new(self.terms.value(self.of, event)?);
        let holds = self.holds.map(|holds| self.terms.bool(holds, event));
        if !holds.unwrap_or(Ok(true))? {
            if self.until.remove(&key).is_some() {
                self.publish(event.time(), &[], &[key], out);
            }
            return Ok(());
        }
        let is_new = !self.until.contains_key(&key);
        if is_new && self.until.len() >= self.most {
            return Err(Reason::Overflow);
        }
        let until = self.within.map_or(Time::MAX, |within| out.now() + within);
        self.until.insert(key.clone(), until);
        if is_new {
            self.publish(event.time(), std::slice::from_ref(&key), &[], out);
            if self.within.is_some() && self.timed.insert(key.clone()) {
                self.timers.set(until, key);
            }
        }
        Ok(())
    }

    fn publish(&self, time: Time, joined: &[Key], left: &[Key], out: &mut Output<'_>) {
        let list = |keys: &mut dyn Iterator<Item = &Key>| -> Value {
            keys.map(|key| key.value().clone())
                .collect::<Vec<_>>()
                .into()
        };
        let mut body = Map::default();
        body.set("members".into(), list(&mut self.until.keys()));
        body.set("joined".into(), list(&mut joined.iter()));
        body.set("left".into(), list(&mut left.iter()));
        let quality: Option<Box<Quality>> = None;
        out.emit_value(time, quality, Value::from(body));
    }
}

impl Operator for Members {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.change(event, out) {
            Ok(()) => Fate::Used,
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        let now = out.now();
        let mut left = Vec::new();
        while let Some(key) = self.timers.take(now) {
            match self.until.get(&key) {
                Some(until) if *until <= now => {
                    self.until.remove(&key);
                    self.timed.remove(&key);
                    left.push(key);
                }
                // It was heard of since.
                Some(until) => self.timers.set(*until, key),
                None => _ = self.timed.remove(&key),
            }
        }
        if !left.is_empty() {
            left.sort();
            self.publish(now, &[], &left, out);
        }
    }

    fn due(&self) -> Option<Time> {
        self.timers.due()
    }

    fn retains(&self) -> bool {
        true
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, _: Time) -> bool {
        // When they are looked at follows from that, or is in vain.
        alike(other, |other: &Members| self.until.is_same(&other.until))
    }

    fn snapshot(&self) -> Value {
        self.until.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.until = State::load(state)?;
        self.timers.clear();
        self.timed.clear();
        if self.within.is_some() {
            for (key, until) in &self.until {
                self.timers.set(*until, key.clone());
                self.timed.insert(key.clone());
            }
        }
        Ok(())
    }
}
