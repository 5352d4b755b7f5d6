//! Sessions: events that follow on each other without a long gap.

use std::any::Any;
use std::collections::HashMap;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};

use super::super::key::Key;
use super::super::state::{State, parts, state};
use super::super::timers::Timers;
use super::accumulator::Accumulator;
use super::function::Window;
use super::{Aggregate, Entry, Windows, closed};
use crate::catalogue::Arguments;
use crate::operator::{Fate, Output, Reason};

/// Sessions of each group. One ends when a gap has passed since its last event,
/// by the time handed in.
pub(super) struct Sessions {
    gap: Span,
    lateness: Span,
    ahead: Span,
    most: usize,
    groups: HashMap<Key, Vec<Session>>,
    /// How many there are in all groups.
    count: usize,
    /// When to look after a group: at the end of each of its sessions, or before.
    timers: Timers,
    closed: Time,
}

/// Events no two neighbours of which lie farther apart than the gap.
#[derive(Clone, Debug)]
struct Session {
    first: Time,
    last: Time,
    of: Accumulator,
}

state!(Session { first, last, of });

impl Sessions {
    pub fn new(arguments: &Arguments<'_>, gap: Span, most: usize) -> Result<Sessions, Diagnostic> {
        Ok(Sessions {
            gap,
            lateness: arguments.waiting("lateness")?,
            ahead: arguments.waiting("ahead")?,
            most,
            groups: HashMap::new(),
            count: 0,
            timers: Timers::default(),
            closed: Time::MIN,
        })
    }

    /// When a session is over whose last event happened then.
    fn over(&self, last: Time) -> Time {
        last + self.gap + self.lateness
    }

    fn advance(&mut self, until: Time, aggregate: &Aggregate, out: &mut Output<'_>) {
        let mut over = Vec::new();
        while let Some(key) = self.timers.take(until) {
            let Some(mut sessions) = self.groups.remove(&key) else {
                continue;
            };
            let is_over = |session: &Session| self.over(session.last) <= until;
            over.extend(
                extract(&mut sessions, is_over)
                    .into_iter()
                    .map(|session| (key.clone(), session)),
            );
            for session in &sessions {
                self.timers.set(self.over(session.last), key.clone());
            }
            if !sessions.is_empty() {
                self.groups.insert(key, sessions);
            }
        }
        self.count -= over.len();
        over.sort_by(|(a, one), (b, other)| (one.last, a).cmp(&(other.last, b)));
        for (key, Session { first, last, of }) in over {
            let window = Window::new(first, last + self.gap, &of);
            aggregate.publish(&window, &key, &of, out);
        }
        self.closed = self.closed.max(until);
    }
}

/// Takes out the sessions of which something holds.
fn extract(sessions: &mut Vec<Session>, holds: impl Fn(&Session) -> bool) -> Vec<Session> {
    let (taken, left) = std::mem::take(sessions).into_iter().partition(holds);
    *sessions = left;
    taken
}

impl Windows for Sessions {
    fn event(
        &mut self,
        event: &Event,
        entry: Entry,
        aggregate: &Aggregate,
        out: &mut Output<'_>,
    ) -> Fate {
        let now = out.now();
        self.closed = self.closed.min(now);
        self.advance(now - Span::from_nanoseconds(1), aggregate, out);
        let time = event.time();
        if time > now + self.ahead {
            return Fate::Dropped(Reason::Future);
        }
        let gap = self.gap;
        let touches = |session: &Session| time + gap >= session.first && time <= session.last + gap;
        let over = self.over(time);
        if let Some(sessions) = self.groups.get_mut(&entry.key) {
            if let Some(at) = sessions.iter().position(touches) {
                let mut session = sessions.swap_remove(at);
                session.first = session.first.min(time);
                session.last = session.last.max(time);
                let fate = entry.reading.add_to(&mut session.of, event);
                // It may have closed the gaps to others.
                for mut other in extract(sessions, touches) {
                    if other.first < session.first {
                        std::mem::swap(&mut other, &mut session);
                    }
                    session.last = session.last.max(other.last);
                    session.of.merge(&other.of);
                    self.count -= 1;
                }
                sessions.push(session);
                return fate;
            }
        }
        if over <= self.closed {
            return Fate::Dropped(Reason::Late);
        }
        if self.count >= self.most {
            return Fate::Dropped(Reason::Overflow);
        }
        let mut of = aggregate.accumulator();
        let fate = entry.reading.add_to(&mut of, event);
        let session = Session {
            first: time,
            last: time,
            of,
        };
        self.timers.set(over, entry.key.clone());
        self.groups.entry(entry.key).or_default().push(session);
        self.count += 1;
        fate
    }

    fn wake(&mut self, aggregate: &Aggregate, out: &mut Output<'_>) {
        self.closed = self.closed.min(out.now());
        self.advance(out.now(), aggregate, out);
    }

    fn due(&self) -> Option<Time> {
        self.timers.due()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Windows, now: Time) -> bool {
        let other = other.as_any().downcast_ref();
        other.is_some_and(|other: &Sessions| {
            closed(self.closed, now) == closed(other.closed, now)
                && self.groups.is_same(&other.groups)
                && self.timers.is_same(&other.timers)
        })
    }

    fn save(&self) -> Value {
        vec![self.closed.save(), self.groups.save()].into()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        let parts = parts(state, 2)?;
        let closed = State::load(&parts[0])?;
        let groups: HashMap<Key, Vec<Session>> = State::load(&parts[1])?;
        (self.closed, self.groups) = (closed, groups);
        self.count = self.groups.values().map(Vec::len).sum();
        self.timers.clear();
        for (key, sessions) in &self.groups {
            for session in sessions {
                let over = session.last + self.gap + self.lateness;
                self.timers.set(over, key.clone());
            }
        }
        Ok(())
    }
}
