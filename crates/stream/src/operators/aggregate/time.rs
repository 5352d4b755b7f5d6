//! Windows of time, aligned to the clock.

use std::any::Any;
use std::collections::BTreeMap;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};

use super::super::key::Key;
use super::super::keyed::Keyed;
use super::super::state::{State, parts};
use super::accumulator::Accumulator;
use super::function::Window;
use super::{Aggregate, Entry, MOST_OPEN, MOST_PANES, Windows, closed};
use crate::catalogue::Arguments;
use crate::operator::{Fate, Output, Reason};

/// Windows of one length, one of which ends at every multiple of a span.
///
/// Readings are summed up in panes, the longest spans that all windows consist
/// of; a window is the merger of its panes. What a window waits for is its end
/// and the time handed in, never an event.
pub(super) struct TimeWindows {
    length: Span,
    every: Span,
    pane: Span,
    offset: Span,
    lateness: Span,
    ahead: Span,
    most: usize,
    panes: BTreeMap<Time, Keyed<Accumulator>>,
    /// What was to be closed by then has been closed.
    closed: Time,
    /// When something is to be closed next, as that follows from the above.
    due: Option<Time>,
    /// Where the last event was, which the next one mostly is too.
    place: Place,
}

/// Where events are whose time lies in one pane.
#[derive(Clone, Copy)]
struct Place {
    start: Time,
    end: Time,
    /// When the last window is closed that the pane belongs to.
    closed: Time,
}

impl TimeWindows {
    pub fn new(
        arguments: &Arguments<'_>,
        length: Span,
        most: usize,
    ) -> Result<TimeWindows, Diagnostic> {
        let every = arguments.length("every")?.unwrap_or(length);
        if every > length {
            return Err(arguments.wrong("every", "must not be longer than the window"));
        }
        let pane = greatest_common(length.nanoseconds(), every.nanoseconds());
        if length.nanoseconds() / pane > MOST_PANES {
            let why = format!("would cut the window into more than {MOST_PANES} parts");
            let help = "let the length of the window be a multiple of it";
            return Err(arguments.wrong("every", &why).help(help));
        }
        Ok(TimeWindows {
            length,
            every,
            pane: Span::from_nanoseconds(pane),
            offset: arguments.span("offset")?.unwrap_or(Span::ZERO),
            lateness: arguments.waiting("lateness")?,
            ahead: arguments.waiting("ahead")?,
            most,
            panes: BTreeMap::new(),
            closed: Time::MIN,
            due: None,
            place: Place {
                start: Time::MIN,
                end: Time::MIN,
                closed: Time::MIN,
            },
        })
    }

    /// The last multiple of a span that is not after a time, by the local clock.
    fn aligned(&self, time: Time, span: Span) -> Time {
        (time + self.offset).aligned(span) - self.offset
    }

    /// The end of the window that is to be closed next.
    fn next_end(&self) -> Option<Time> {
        let (first, _) = self.panes.first_key_value()?;
        let after = |time: Time| self.aligned(time, self.every) + self.every;
        Some(after(*first).max(after(self.closed - self.lateness)))
    }

    fn next_due(&self) -> Option<Time> {
        self.next_end().map(|end| end + self.lateness)
    }

    /// A clock that is set back must not make everything late.
    fn set_back(&mut self, now: Time) {
        if now < self.closed {
            self.closed = now;
            self.due = self.next_due();
        }
    }

    /// Where a time lies.
    #[inline]
    fn place(&mut self, time: Time) -> Place {
        if time < self.place.start || time >= self.place.end {
            let start = self.aligned(time, self.pane);
            let last_end = self.aligned(time + self.length, self.every);
            self.place = Place {
                start,
                end: start + self.pane,
                closed: last_end + self.lateness,
            };
        }
        self.place
    }

    /// Closes what is to be closed until then.
    #[inline]
    fn advance(&mut self, until: Time, aggregate: &Aggregate, out: &mut Output<'_>) {
        if self.due.is_some_and(|due| due <= until) {
            self.close(until, aggregate, out);
        }
        self.closed = self.closed.max(until);
    }

    fn close(&mut self, until: Time, aggregate: &Aggregate, out: &mut Output<'_>) {
        while let Some(end) = self.next_end().filter(|end| *end + self.lateness <= until) {
            self.publish(end, aggregate, out);
            self.closed = end + self.lateness;
            let (length, every) = (self.length, self.every);
            self.panes.retain(|start, _| *start + length >= end + every);
        }
        self.due = self.next_due();
    }

    fn publish(&self, end: Time, aggregate: &Aggregate, out: &mut Output<'_>) {
        let start = end - self.length;
        let mut groups: BTreeMap<&Key, Accumulator> = BTreeMap::new();
        for pane in self.panes.range(start..end).map(|(_, pane)| pane) {
            for (key, of) in pane.iter() {
                match groups.get_mut(key) {
                    Some(known) => known.merge(of),
                    None => {
                        groups.insert(key, of.clone());
                    }
                }
            }
        }
        for (key, of) in groups {
            aggregate.publish(&Window::new(start, end, &of), key, &of, out);
        }
    }
}

impl Windows for TimeWindows {
    fn event(
        &mut self,
        event: &Event,
        entry: Entry,
        aggregate: &Aggregate,
        out: &mut Output<'_>,
    ) -> Fate {
        let now = out.now();
        self.set_back(now);
        self.advance(now - Span::from_nanoseconds(1), aggregate, out);
        let time = event.time();
        if time > now + self.ahead {
            return Fate::Dropped(Reason::Future);
        }
        let place = self.place(time);
        if place.closed <= self.closed {
            return Fate::Dropped(Reason::Late);
        }
        let known = self.panes.get_mut(&place.start);
        if let Some(of) = known.and_then(|pane| pane.get_mut(&entry.key)) {
            return entry.reading.add_to(of, event);
        }
        if self.panes.len() >= MOST_OPEN && !self.panes.contains_key(&place.start) {
            return Fate::Dropped(Reason::Overflow);
        }
        let pane = self.panes.entry(place.start).or_default();
        if pane.len() >= self.most {
            return Fate::Dropped(Reason::Overflow);
        }
        let of = pane.get_or_insert(entry.key, || aggregate.accumulator());
        let fate = entry.reading.add_to(of, event);
        self.due = self.next_due();
        fate
    }

    fn wake(&mut self, aggregate: &Aggregate, out: &mut Output<'_>) {
        self.set_back(out.now());
        self.advance(out.now(), aggregate, out);
    }

    fn due(&self) -> Option<Time> {
        self.due
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Windows, now: Time) -> bool {
        let other = other.as_any().downcast_ref();
        other.is_some_and(|other: &TimeWindows| {
            closed(self.closed, now) == closed(other.closed, now)
                && self.due == other.due
                && self.panes.is_same(&other.panes)
        })
    }

    fn save(&self) -> Value {
        vec![self.closed.save(), self.panes.save()].into()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        let parts = parts(state, 2)?;
        let (closed, panes) = (State::load(&parts[0])?, State::load(&parts[1])?);
        (self.closed, self.panes) = (closed, panes);
        self.due = self.next_due();
        Ok(())
    }
}

fn greatest_common(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}
