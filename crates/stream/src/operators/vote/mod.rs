//! `vote`: one value of redundant sensors.

mod agreement;

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Map, Span, Time, Value};

use self::agreement::{Agreement, Method, Said};
use super::key::Key;
use super::parameters::{AHEAD, BY, GROUPS, OF, defaulting, groups, optional};
use super::quality::{accuracy, quality};
use super::state::{State, state};
use super::terms::{Id, Terms, trusted};
use super::timers::Timers;
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Declared, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &VOTE,
    details: "\
Each sensor has one voice, the last thing that it said, for as long as that is `fresh`. A sensor \
is a stream of its own, or what `sensor` tells apart. A sensor that has failed has no voice until \
it says something again; its event is dropped as `failed`.

- `median`: the number in the middle, so that less than half of the sensors may lie.
- `mean`: the mean of the numbers.
- `majority`: what more than half of the sensors say, where numbers that lie no farther apart \
than `within` are the same, of which the median is published.

Whenever the result is another one, it is published: `value`, `sensors` for how many had a voice, \
and `dissent` for how many of them lie farther than `within` from the value or are not of the \
majority; and `group` where there is `by`. Where there is no majority any more, or fewer than \
`least` sensors are left, one event says so, whose value is null and whose sensor has failed. The \
accuracy follows from that of the readings, if all of them have one.

What is older than `fresh` when it comes is dropped as `late`, what is older than what the sensor \
has said already as `superseded`, and what lies more than `ahead` in the future as `future`.",
    examples: &[Example {
        shows: "three thermometers, one of which is wrong and then fails",
        flow: "/roof/a, /roof/b, /roof/c | merge | vote within=2 least=2",
        lines: "\
1 /roof/a 20.0
2 /roof/b 21.0
@2 {\"value\": 20.5, \"sensors\": 2, \"dissent\": 0}
3 /roof/c 85.0
@3 {\"value\": 21.0, \"sensors\": 3, \"dissent\": 1}
4 /roof/c 85.0 ! broken wire
@4 {\"value\": 20.5, \"sensors\": 2, \"dissent\": 0}
5 /roof/b 21.0 ! no power
@5 {\"value\": null, \"sensors\": 1, \"dissent\": 0} ! 1 of 2 sensors that are needed",
    }],
};

static VOTE: Definition = Definition {
    name: "vote",
    summary: "Publishes what sensors agree on that measure the same.",
    inputs: Inputs::One,
    parameters: &[
        Declared {
            positional: true,
            ..defaulting(
                "method",
                Kind::Choice(&["median", "mean", "majority"]),
                "median",
                "How they agree.",
            )
        },
        OF,
        BY,
        optional(
            "sensor",
            Kind::Expression,
            "What tells sensors apart; without it their streams.",
        ),
        optional(
            "within",
            Kind::Number,
            "How far apart numbers may lie that say the same.",
        ),
        defaulting("least", Kind::Integer, "1", "How many sensors it needs."),
        defaulting(
            "fresh",
            Kind::Span,
            "1m",
            "How long it counts what a sensor said.",
        ),
        AHEAD,
        GROUPS,
    ],
    make,
};

/// So many sensors a group may have.
const MOST_SENSORS: usize = 1_000;

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    let methods = [
        ("median", Method::Median),
        ("mean", Method::Mean),
        ("majority", Method::Majority),
    ];
    Ok(Box::new(Vote {
        of: terms.require(arguments, "of")?,
        by: terms.add(arguments, "by")?,
        sensor: terms.add(arguments, "sensor")?,
        terms,
        method: arguments.choice("method", &methods)?,
        within: arguments.distance("within")?,
        least: arguments.count("least", MOST_SENSORS)?.unwrap_or(1),
        fresh: arguments.waiting("fresh")?,
        ahead: arguments.waiting("ahead")?,
        most: groups(arguments)?,
        panels: HashMap::new(),
        timers: Timers::default(),
    }))
}

struct Vote {
    terms: Terms,
    of: Id,
    by: Option<Id>,
    sensor: Option<Id>,
    method: Method,
    within: Option<f64>,
    least: usize,
    fresh: Span,
    ahead: Span,
    most: usize,
    panels: HashMap<Key, Panel>,
    timers: Timers,
}

/// The sensors of one group.
#[derive(Debug, Default)]
struct Panel {
    said: BTreeMap<Key, Said>,
    published: Option<Outcome>,
}

state!(Panel { said, published });

/// What is published.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    agreement: Agreement,
    failure: Option<Arc<str>>,
}

state!(Outcome { agreement, failure });

impl Vote {
    fn take(&mut self, event: &Event, out: &mut Output<'_>) -> Result<(), Reason> {
        let now = out.now();
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        let sensor = match self.sensor {
            None => Key::of_stream(event),
            Some(sensor) => Key::new(self.terms.value(sensor, event)?),
        };
        let value = match (trusted(event), self.method) {
            (Err(failed), _) => {
                if let Some(panel) = self.panels.get_mut(&group) {
                    if panel.said.remove(&sensor).is_some() {
                        self.decide(group, event.time(), out);
                    }
                }
                return Err(failed);
            }
            (Ok(()), Method::Majority) => self.terms.value(self.of, event)?,
            (Ok(()), _) => self.terms.number(self.of, event)?.into(),
        };
        if event.time() > now + self.ahead {
            return Err(Reason::Future);
        }
        let stale = event.time() + self.fresh;
        if stale <= now {
            return Err(Reason::Late);
        }
        if self.panels.len() >= self.most && !self.panels.contains_key(&group) {
            return Err(Reason::Overflow);
        }
        let panel = self.panels.entry(group.clone()).or_default();
        match panel.said.get(&sensor) {
            Some(said) if said.time > event.time() => return Err(Reason::Superseded),
            None if panel.said.len() >= MOST_SENSORS => return Err(Reason::Overflow),
            _ => {}
        }
        let said = Said {
            time: event.time(),
            value: Key::new(value),
            accuracy: accuracy(event),
        };
        panel.said.insert(sensor, said);
        self.timers.set(stale, group.clone());
        self.decide(group, event.time(), out);
        Ok(())
    }

    /// Publishes what a panel agrees on, if that is something else than before.
    fn decide(&mut self, group: Key, time: Time, out: &mut Output<'_>) {
        let Some(panel) = self.panels.get_mut(&group) else {
            return;
        };
        let said: Vec<&Said> = panel.said.values().collect();
        let (sensors, least) = (said.len(), self.least);
        let agreement = (sensors >= least).then(|| self.method.agree(&said, self.within));
        let failed = |why: String| Outcome {
            agreement: Agreement {
                value: Value::Null,
                accuracy: None,
                sensors: sensors as u64,
                dissent: 0,
            },
            failure: Some(why.into()),
        };
        let outcome = match agreement {
            Some(Some(agreement)) => Outcome {
                agreement,
                failure: None,
            },
            Some(None) => failed(format!("{sensors} sensors do not agree")),
            None => failed(format!("{sensors} of {least} sensors that are needed")),
        };
        let is_news = match &panel.published {
            // At the beginning sensors come one after the other.
            None => sensors >= least,
            Some(before) if outcome.failure.is_some() => before.failure.is_none(),
            Some(before) => *before != outcome,
        };
        if is_news {
            let mut body = Map::default();
            if self.by.is_some() {
                body.set("group".into(), group.value().clone());
            }
            body.set("value".into(), outcome.agreement.value.clone());
            body.set("sensors".into(), outcome.agreement.sensors.into());
            body.set("dissent".into(), outcome.agreement.dissent.into());
            let quality = quality(outcome.agreement.accuracy, outcome.failure.clone());
            out.emit_value(time, quality, Value::from(body));
            panel.published = Some(outcome);
        }
        if panel.said.is_empty() {
            self.panels.remove(&group);
        }
    }

    fn advance(&mut self, until: Time, out: &mut Output<'_>) {
        while let Some(group) = self.timers.take(until) {
            let Some(panel) = self.panels.get_mut(&group) else {
                continue;
            };
            let (before, fresh) = (panel.said.len(), self.fresh);
            panel.said.retain(|_, said| said.time + fresh > until);
            if let Some(next) = panel.said.values().map(|said| said.time + fresh).min() {
                self.timers.set(next, group.clone());
            }
            if panel.said.len() < before {
                self.decide(group, out.now(), out);
            }
        }
    }
}

impl Operator for Vote {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        self.advance(out.now(), out);
        match self.take(event, out) {
            Ok(()) => Fate::Used,
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        self.advance(out.now(), out);
    }

    fn due(&self) -> Option<Time> {
        self.timers.due()
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, _: Time) -> bool {
        // When they are looked at follows from that, or is in vain.
        alike(other, |other: &Vote| self.panels.is_same(&other.panels))
    }

    fn snapshot(&self) -> Value {
        self.panels.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.panels = State::load(state)?;
        self.timers.clear();
        for (key, panel) in &self.panels {
            for said in panel.said.values() {
                self.timers.set(said.time + self.fresh, key.clone());
            }
        }
        Ok(())
    }
}
