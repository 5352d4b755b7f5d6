//! Windows of so many events: the last ones of each group.

use std::any::Any;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Time, Value};

use super::super::groups::Groups;
use super::super::parameters::{forget, groups};
use super::super::state::{State, are_same, parts};
use super::accumulator::{Accumulator, Reading, count};
use super::function::Window;
use super::quantiles::Quantiles;
use super::{Aggregate, Entry, Read, Windows};
use crate::catalogue::Arguments;
use crate::operator::{Fate, Output, Reason};

/// The last events of each group: a result for each event, once there are so many.
pub(super) struct LastWindows {
    length: usize,
    groups: Groups<Last>,
}

/// The last readings, in two halves that can be summed up without ever taking
/// away from a sum.
#[derive(Debug)]
struct Last {
    /// The older ones, the oldest last, each with what it and all younger ones
    /// in this half sum up to.
    older: Vec<(Reading, Accumulator)>,
    /// The younger ones, the youngest last.
    younger: Vec<Reading>,
    of_younger: Accumulator,
    /// What came of failed sensors since the last result.
    failed: Accumulator,
}

impl Default for Last {
    fn default() -> Last {
        Last {
            older: Vec::new(),
            younger: Vec::new(),
            of_younger: Accumulator::new(false),
            failed: Accumulator::new(false),
        }
    }
}

impl Last {
    fn len(&self) -> usize {
        self.older.len() + self.younger.len()
    }

    fn push(&mut self, reading: Reading) {
        self.of_younger.add(&reading);
        self.younger.push(reading);
    }

    /// Forgets the oldest.
    fn pop(&mut self) {
        if self.older.is_empty() {
            let younger = std::mem::take(&mut self.younger);
            self.of_younger = Accumulator::new(false);
            self.older = summed_up(younger);
        }
        self.older.pop();
    }

    /// What all sum up to.
    fn sum(&self, with_quantiles: bool) -> Accumulator {
        let mut all = Accumulator::new(false);
        if let Some((_, older)) = self.older.last() {
            all.clone_from(older);
        }
        all.merge(&self.of_younger);
        all.merge(&self.failed);
        if with_quantiles {
            let older = self.older.iter().map(|(reading, _)| reading);
            let values = older.chain(&self.younger).map(|reading| reading.value);
            let mut quantiles = Quantiles::default();
            values.for_each(|value| quantiles.add(value));
            all.quantiles = Some(Box::new(quantiles));
        }
        all
    }
}

/// The older half, made of readings the oldest of which is first.
fn summed_up(readings: Vec<Reading>) -> Vec<(Reading, Accumulator)> {
    let mut older: Vec<(Reading, Accumulator)> = Vec::with_capacity(readings.len());
    for reading in readings.into_iter().rev() {
        let mut of = Accumulator::new(false);
        of.add(&reading);
        if let Some((_, younger)) = older.last() {
            of.merge(younger);
        }
        older.push((reading, of));
    }
    older
}

impl State for Last {
    fn save(&self) -> Value {
        let older = self.older.iter().rev();
        let older: Vec<Value> = older.map(|(reading, _)| reading.save()).collect();
        vec![older.into(), self.younger.save(), self.failed.save()].into()
    }

    fn load(value: &Value) -> Result<Self, String> {
        let parts = parts(value, 3)?;
        let younger = Vec::<Reading>::load(&parts[1])?;
        let mut last = Last {
            older: summed_up(State::load(&parts[0])?),
            failed: State::load(&parts[2])?,
            ..Last::default()
        };
        younger.into_iter().for_each(|reading| last.push(reading));
        Ok(last)
    }

    /// Where the halves part is no matter of taste: sums round by their order.
    fn is_same(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.older.iter(), other.older.iter());
        are_same(
            ours.map(|(reading, _)| reading),
            theirs.map(|(reading, _)| reading),
        ) && self.younger.is_same(&other.younger)
            && self.failed.is_same(&other.failed)
    }
}

impl LastWindows {
    pub fn new(arguments: &Arguments<'_>, length: usize) -> Result<LastWindows, Diagnostic> {
        Ok(LastWindows {
            length,
            groups: Groups::new(groups(arguments)?, forget(arguments)?),
        })
    }
}

impl Windows for LastWindows {
    fn event(
        &mut self,
        event: &Event,
        entry: Entry,
        aggregate: &Aggregate,
        out: &mut Output<'_>,
    ) -> Fate {
        let now = out.now();
        let Some(last) = self.groups.get(entry.key.clone(), now) else {
            return Fate::Dropped(Reason::Overflow);
        };
        let reading = match entry.reading {
            Read::Reading(reading) => reading,
            Read::Failed => return entry.reading.add_to(&mut last.failed, event),
        };
        if last.len() == self.length {
            last.pop();
        }
        last.push(reading);
        if last.len() == self.length {
            let of = last.sum(aggregate.report.wants_quantiles());
            last.failed = Accumulator::new(false);
            let start = of.first.map_or(reading.time, |first| first.time);
            let end = of.last.map_or(reading.time, |last| last.time);
            let seconds = (end - start).seconds();
            let rate = (seconds > 0.0).then(|| count(of.count - 1) / seconds);
            let window = Window {
                start,
                end,
                time: reading.time,
                rate,
            };
            aggregate.publish(&window, &entry.key, &of, out);
        }
        Fate::Used
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Windows, now: Time) -> bool {
        let other = other.as_any().downcast_ref();
        other.is_some_and(|other: &LastWindows| self.groups.is_like(&other.groups, now))
    }

    fn save(&self) -> Value {
        self.groups.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.groups.restore(state)
    }
}
