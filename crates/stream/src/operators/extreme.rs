//! `extreme`: new highs and lows.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};

use super::key::Key;
use super::parameters::{AHEAD, BY, GROUPS, LATENESS, OF, OFFSET, defaulting, groups};
use super::state::State;
use super::terms::{Id, Terms, trusted};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Declared, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &EXTREME,
    details: "\
The first event of a window is a new extreme in both directions. Windows are aligned to the \
clock, and `offset` says how far the local clock is ahead of UTC. An event belongs to the window \
that its time lies in: what comes after `lateness` is dropped as `late`, what lies more than \
`ahead` in the future as `future`. What is no new extreme is dropped as `filtered`, and what a \
failed sensor says as `failed`.",
    examples: &[Example {
        shows: "the highs of a day, where the clock is an hour ahead of UTC",
        flow: "/stocks/acme | extreme highest window=1d offset=1h",
        lines: "\
82000 /stocks/acme 12.5
@82000 12.5
82100 /stocks/acme 12.0
82200 /stocks/acme 13.0
@82200 13.0
82800 /stocks/acme 11.0
@82800 11.0",
    }],
};

static EXTREME: Definition = Definition {
    name: "extreme",
    summary: "Lets those events go on that are a new high or low of the day, or of another window.",
    inputs: Inputs::One,
    parameters: &[
        Declared {
            positional: true,
            ..defaulting(
                "direction",
                Kind::Choice(&["both", "highest", "lowest"]),
                "both",
                "Which extremes count.",
            )
        },
        OF,
        BY,
        defaulting(
            "window",
            Kind::Span,
            "1d",
            "Of what length of time it is an extreme.",
        ),
        OFFSET,
        LATENESS,
        AHEAD,
        GROUPS,
    ],
    make,
};

/// So many windows may be open at a time.
const MOST_WINDOWS: usize = 10_000;

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    let directions = [
        ("both", (true, true)),
        ("highest", (true, false)),
        ("lowest", (false, true)),
    ];
    let (highest, lowest) = arguments.choice("direction", &directions)?;
    Ok(Box::new(Extreme {
        of: terms.require(arguments, "of")?,
        by: terms.add(arguments, "by")?,
        terms,
        highest,
        lowest,
        window: arguments.length("window")?.unwrap_or(Span::ZERO),
        offset: arguments.span("offset")?.unwrap_or(Span::ZERO),
        lateness: arguments.waiting("lateness")?,
        ahead: arguments.waiting("ahead")?,
        most: groups(arguments)?,
        known: BTreeMap::new(),
    }))
}

struct Extreme {
    terms: Terms,
    of: Id,
    by: Option<Id>,
    highest: bool,
    lowest: bool,
    window: Span,
    offset: Span,
    lateness: Span,
    ahead: Span,
    most: usize,
    /// Lowest and highest of each group, by the start of the window.
    known: BTreeMap<Time, HashMap<Key, (f64, f64)>>,
}

impl Extreme {
    /// Which windows nothing more can come for, by their starts.
    fn over(&self, now: Time) -> impl Fn(Time) -> bool + use<> {
        let (window, lateness) = (self.window, self.lateness);
        move |start| start + window + lateness < now
    }

    fn decide(&mut self, event: &Event, out: &Output<'_>) -> Result<bool, Reason> {
        trusted(event)?;
        let now = out.now();
        if event.time() > now + self.ahead {
            return Err(Reason::Future);
        }
        let over = self.over(now);
        self.known.retain(|start, _| !over(*start));
        let start = (event.time() + self.offset).aligned(self.window) - self.offset;
        if over(start) {
            return Err(Reason::Late);
        }
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        let value = self.terms.number(self.of, event)?;
        if self.known.len() >= MOST_WINDOWS && !self.known.contains_key(&start) {
            return Err(Reason::Overflow);
        }
        let known = self.known.entry(start).or_default();
        if known.len() >= self.most && !known.contains_key(&group) {
            return Err(Reason::Overflow);
        }
        let nothing = (f64::INFINITY, f64::NEG_INFINITY);
        let (lowest, highest) = known.entry(group).or_insert(nothing);
        let (is_lowest, is_highest) = (value < *lowest, value > *highest);
        *lowest = lowest.min(value);
        *highest = highest.max(value);
        Ok(is_lowest && self.lowest || is_highest && self.highest)
    }
}

impl Operator for Extreme {
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
        let over = self.over(now);
        alike(other, |other: &Extreme| {
            // They are in order, so that what is open still stands at the end.
            let open = |known: &BTreeMap<_, _>| known.keys().filter(|start| !over(**start)).count();
            let pairs = self.known.iter().rev().zip(other.known.iter().rev());
            let mut pairs = pairs.take(open(&self.known));
            open(&self.known) == open(&other.known)
                && pairs.all(|(a, b)| a.0 == b.0 && a.1.is_same(b.1))
        })
    }

    fn snapshot(&self) -> Value {
        self.known.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.known = State::load(state)?;
        Ok(())
    }
}
