//! When a recorded time comes, and which one it is now.

use milieu_transfer::{Span, Time};

use super::control::Pace;

/// When a recorded time comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// A point in time, and the recorded one that it stands for.
    pub(super) anchor: Option<(Time, Time)>,
    pub(super) now: Time,
    pub(super) pace: Pace,
    is_paused: bool,
}

impl Clock {
    /// Takes note of the time. A clock that was set back takes the recording
    /// along.
    pub(super) fn tick(&mut self, now: Time) {
        if let Some((anchor, _)) = self.anchor.as_mut().filter(|_| now < self.now) {
            *anchor = *anchor - (self.now - now);
        }
        self.now = now;
    }

    /// When a recorded time comes; nothing while it stands before that. The
    /// first one that is asked for comes now.
    pub(super) fn due(&mut self, recorded: Time) -> Option<Time> {
        if self.is_paused {
            let is_past = self.anchor.is_some_and(|(_, start)| recorded <= start);
            return is_past.then_some(self.now);
        }
        let Some(factor) = self.pace.factor() else {
            return Some(self.now);
        };
        let (anchor, start) = *self.anchor.get_or_insert((self.now, recorded));
        let distance = (recorded - start).nanoseconds() as f64 / factor;
        Some(anchor + Span::from_nanoseconds(distance as i64))
    }

    pub(super) fn pause(&mut self) {
        self.turn();
        self.is_paused = true;
    }

    /// Goes on from now where it has stopped.
    pub(super) fn resume(&mut self) {
        if let Some((anchor, _)) = self.anchor.as_mut().filter(|_| self.is_paused) {
            *anchor = self.now;
        }
        self.is_paused = false;
    }

    pub(super) fn pace(&mut self, pace: Pace) {
        self.turn();
        self.pace = pace;
    }

    /// Begins anew from here.
    fn turn(&mut self) {
        let recorded = self.recorded(self.now);
        self.anchor = recorded.map(|recorded| (self.now, recorded));
    }

    /// Which recorded time it is; nothing before the first and where it has no
    /// speed.
    pub(super) fn recorded(&self, now: Time) -> Option<Time> {
        let (anchor, start) = self.anchor?;
        if self.is_paused {
            return Some(start);
        }
        let passed = (now - anchor).nanoseconds() as f64 * self.pace.factor()?;
        Some(start + Span::from_nanoseconds(passed as i64))
    }
}

/// What was seen of the recording since its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    pub(super) first: Option<Time>,
    last: Time,
    /// The last distance between two rows of different times.
    apart: Span,
    /// What all passes before have lasted together.
    pub(super) before: Span,
    /// What the one before this has lasted.
    length: Span,
}

impl Pass {
    pub(super) fn see(&mut self, time: Time) {
        if self.first.is_none() {
            self.first = Some(time);
            self.last = time;
        }
        if time > self.last {
            self.apart = time - self.last;
            self.last = time;
        }
    }

    /// The next pass begins after the last row by as much as that came after
    /// the one before.
    pub(super) fn end(&mut self) {
        let lasted = self.first.map_or(Span::ZERO, |first| self.last - first);
        let apart = self.apart.max(Span::from_nanoseconds(1));
        let sum = |one: Span, other: Span| {
            let sum = one.nanoseconds().saturating_add(other.nanoseconds());
            Span::from_nanoseconds(sum)
        };
        let length = sum(lasted, apart);
        *self = Pass {
            before: sum(self.before, length),
            length,
            ..Pass::default()
        };
    }

    /// The time in the recording that a time of this pass stands for. Before its
    /// first row the pass before has not quite ended.
    pub(super) fn within(&self, time: Time) -> Time {
        let time = time - self.before;
        match self.first {
            Some(first) if time < first => time + self.length,
            _ => time,
        }
    }
}
