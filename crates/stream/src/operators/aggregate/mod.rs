//! `aggregate`: one event for many.

mod accumulator;
mod function;
mod last;
mod quantiles;
mod session;
mod time;

use std::any::Any;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};

use self::accumulator::{Accumulator, Reading};
use self::function::{Function, NAMES, Report, Window};
use super::key::Key;
use super::parameters::{AHEAD, BY, FORGET, GROUPS, LATENESS, OF, OFFSET, groups, optional};
use super::terms::{Id, Terms, trusted};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Declared, Definition, Inputs, Kind};
use crate::flow::Parameter;
use crate::operator::{Fate, Operator, Output, Reason};

/// So many panes a window may have.
const MOST_PANES: i64 = 1_000;

/// So many panes may be open: those that events may be late for or ahead in too.
const MOST_OPEN: usize = 10_000;

/// So many events a window by count may have.
const MOST_EVENTS: usize = 100_000;

pub(super) static PAGE: Page = Page {
    definition: &AGGREGATE,
    details: "\
Exactly one of `window`, `count` and `session` says what is put together:

- `window=10m`: what happened in spans of this length. They begin at the same points of the \
clock for everybody: windows of an hour at full hours, those of a day at midnight UTC, or \
where `offset` puts it. `every` lets windows overlap: `window=1h every=10m` publishes every \
ten minutes what happened in the hour before.
- `count=20`: the last twenty events, with each event that comes, once there are as many.
- `session=30s`: events that follow on each other without a gap longer than this.

The time of an event decides on its window, and the time at which the operator runs closes it: \
`lateness` after the end of the window, or after the gap. So no event, whatever its time, \
closes a window or holds it open for others. What comes later is dropped as `late`, and what \
lies more than `ahead` in the future as `future`. Windows in which nothing happened are not \
published.

| Function | Result |
|---|---|
| `count` | how many events there were |
| `sum`, `minimum`, `maximum`, `mean` | of the numbers |
| `deviation` | the root of the mean square of their distances from the mean |
| `rate` | events in a second of the window; by count: between the first event and the last |
| `median`, `percentile(95)` | the number below which half, or this part, of them lie, in proportion between two of them; exact up to 1024 numbers, and within 1 % beyond |
| `first`, `last` | the number of the earliest and of the latest time |
| `change`, `slope` | from the first number to the last, and that in a second |

The result has a field of that name for each (`percentile_95`), and `start`, `end`, `count`, \
`failed`, and `group` where there is `by`. Its time is the last instant of the window.

Events of failed sensors are dropped as `failed`, and counted in the result; where there were \
no others the result is of a failed sensor too. The accuracy of the result follows from that of \
the readings, if all of them have one: for a mean it is their mean, for a minimum the worst. \
State is bounded: windows that follow on each other hold at most `groups` groups each, and those \
that overlap so many in each part that they have in common; there are at most 10,000 such parts, \
at most `groups` sessions, and as many groups by count. What does not fit is dropped as \
`overflow`.",
    examples: &[
        Example {
            shows: "the mean of ten seconds, published one second after their end",
            flow: "/weather/temperature | aggregate mean 10s",
            lines: "\
1 /weather/temperature 20.0
9 /weather/temperature 21.0
10.5 /weather/temperature 30.0
clock 11
@11 {\"mean\": 20.5, \"count\": 2, \"failed\": 0, \"start\": 0, \"end\": 10}",
        },
        Example {
            shows: "the last three readings of each room",
            flow: "/rooms/temperature | aggregate maximum, mean count=3 of=celsius by=room",
            lines: "\
1 /rooms/temperature {\"room\": \"005\", \"celsius\": 20}
2 /rooms/temperature {\"room\": \"005\", \"celsius\": 21}
3 /rooms/temperature {\"room\": \"007\", \"celsius\": 35}
4 /rooms/temperature {\"room\": \"005\", \"celsius\": 25}
@4 {\"group\": \"005\", \"maximum\": 25.0, \"mean\": 22.0, \"count\": 3, \"failed\": 0, \"start\": 1, \"end\": 4}",
        },
        Example {
            shows: "how long a visit lasted, and how many steps were counted",
            flow: "/entrance/steps | aggregate sum session=30s",
            lines: "\
0 /entrance/steps 12
20 /entrance/steps 8
clock 51
@51 {\"sum\": 20.0, \"count\": 2, \"failed\": 0, \"start\": 0, \"end\": 50}",
        },
    ],
};

static AGGREGATE: Definition = Definition {
    name: "aggregate",
    summary: "Publishes what readings of a window of time, of a number of events, or of a session come to.",
    inputs: Inputs::One,
    parameters: &[
        Declared {
            name: "functions",
            kind: Kind::Functions(NAMES),
            positional: true,
            default: None,
            summary: "What to compute.",
        },
        Declared {
            positional: true,
            ..optional("window", Kind::Span, "How long windows are.")
        },
        optional("count", Kind::Integer, "How many events make a window."),
        optional("session", Kind::Span, "How long a gap ends a session."),
        optional(
            "every",
            Kind::Span,
            "How often windows end; without it one after the other.",
        ),
        OF,
        BY,
        LATENESS,
        AHEAD,
        OFFSET,
        GROUPS,
        FORGET,
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let functions = functions(arguments)?;
    let mut terms = Terms::new();
    let by = terms.add(arguments, "by")?;
    let report = Report::new(&functions, by.is_some());
    let of = match report.wants_numbers() {
        true => Some(terms.require(arguments, "of")?),
        false => None,
    };
    Ok(Box::new(Aggregation {
        terms,
        of,
        by,
        aggregate: Aggregate { report },
        windows: windows(arguments)?,
    }))
}

fn functions(arguments: &Arguments<'_>) -> Result<Vec<Function>, Diagnostic> {
    match arguments.given("functions") {
        None => Err(arguments.wrong("functions", "have to be given")),
        Some(Parameter::List(functions)) if functions.is_empty() => {
            Err(arguments.wrong("functions", "are to be at least one"))
        }
        Some(Parameter::List(functions)) => functions.iter().map(Function::parse).collect(),
        Some(function) => Function::parse(function).map(|function| vec![function]),
    }
}

fn windows(arguments: &Arguments<'_>) -> Result<Box<dyn Windows>, Diagnostic> {
    let window = arguments.length("window")?;
    let count = arguments.count("count", MOST_EVENTS)?;
    let session = arguments.length("session")?;
    let most = groups(arguments)?;
    if window.is_none() && arguments.length("every")?.is_some() {
        return Err(arguments.wrong("every", "goes together with `window` only"));
    }
    match (window, count, session) {
        (Some(window), None, None) => {
            Ok(Box::new(time::TimeWindows::new(arguments, window, most)?))
        }
        (None, Some(count), None) => Ok(Box::new(last::LastWindows::new(arguments, count)?)),
        (None, None, Some(gap)) => Ok(Box::new(session::Sessions::new(arguments, gap, most)?)),
        _ => Err(Diagnostic::error(
            "`aggregate` needs one of `window`, `count` and `session`, and no other of them",
        )
        .help("for example `aggregate mean window=10m`")
        .help("or `aggregate mean count=20`")
        .help("or `aggregate count session=30s`")),
    }
}

/// Which events belong together, and when their time has come.
trait Windows: Send {
    fn event(
        &mut self,
        event: &Event,
        entry: Entry,
        aggregate: &Aggregate,
        out: &mut Output<'_>,
    ) -> Fate;

    fn wake(&mut self, aggregate: &Aggregate, out: &mut Output<'_>) {
        let _ = (aggregate, out);
    }

    fn due(&self) -> Option<Time> {
        None
    }

    fn as_any(&self) -> &dyn Any;

    /// Whether nothing that comes from now on can tell them apart.
    fn is_like(&self, other: &dyn Windows, now: Time) -> bool;

    fn save(&self) -> Value;

    fn restore(&mut self, state: &Value) -> Result<(), String>;
}

/// What was read of an event.
struct Entry {
    key: Key,
    reading: Read,
}

#[derive(Clone, Copy)]
enum Read {
    Reading(Reading),
    Failed,
}

impl Read {
    fn add_to(self, of: &mut Accumulator, event: &Event) -> Fate {
        match self {
            Read::Reading(reading) => {
                of.add(&reading);
                Fate::Used
            }
            Read::Failed => {
                of.fail(event);
                Fate::Dropped(Reason::Failed)
            }
        }
    }
}

/// Until when windows have been closed, as far as that can be told from now on:
/// whatever comes closes those that were to be closed before.
fn closed(until: Time, now: Time) -> Time {
    until.max(now - Span::from_nanoseconds(1))
}

/// How results are made.
struct Aggregate {
    report: Report,
}

impl Aggregate {
    fn accumulator(&self) -> Accumulator {
        Accumulator::new(self.report.wants_quantiles())
    }

    fn publish(&self, window: &Window, group: &Key, of: &Accumulator, out: &mut Output<'_>) {
        let body = self.report.body(window, group, of);
        out.emit_value(window.time, self.report.quality(of), body);
    }
}

struct Aggregation {
    terms: Terms,
    of: Option<Id>,
    by: Option<Id>,
    aggregate: Aggregate,
    windows: Box<dyn Windows>,
}

impl Aggregation {
    fn read(&mut self, event: &Event) -> Result<Entry, Reason> {
        self.terms.read(event);
        let key = self.terms.key(self.by, event)?;
        let reading = match (trusted(event), self.of) {
            (Err(_), _) => Read::Failed,
            (Ok(()), None) => Read::Reading(Reading::new(event, 0.0)),
            (Ok(()), Some(of)) => Read::Reading(Reading::new(event, self.terms.number(of, event)?)),
        };
        Ok(Entry { key, reading })
    }
}

impl Operator for Aggregation {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.read(event) {
            Ok(entry) => self.windows.event(event, entry, &self.aggregate, out),
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        self.windows.wake(&self.aggregate, out);
    }

    fn due(&self) -> Option<Time> {
        self.windows.due()
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, now: Time) -> bool {
        alike(other, |other: &Aggregation| {
            self.windows.is_like(&*other.windows, now)
        })
    }

    fn snapshot(&self) -> Value {
        self.windows.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.windows.restore(state)
    }
}
