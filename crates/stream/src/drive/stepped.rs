//! Sources in virtual time.

use std::collections::BTreeMap;

use milieu_transfer::{Event, Span, Stream, Time};

use super::driver::SourceId;
use super::polled::Polled;
use crate::source::{Source, Status, Wait};

/// Polls sources at the times that they ask for, in a time that passes only
/// when it is told to: for tests, and for recordings that are run through at
/// once.
///
/// ```
/// # use milieu_stream::{Feed, Source, Wait, drive::Stepped};
/// # use milieu_transfer::{Origin, Span, Stream, Time};
/// struct Minutes;
///
/// impl Source for Minutes {
///     fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
///         let now = feed.now();
///         feed.publish(now, now.nanoseconds() / 60_000_000_000);
///         Wait::Until(now + Span::from_seconds(60))
///     }
/// }
///
/// let mut sources = Stepped::new(Time::from_seconds(0));
/// # let stream = Stream {
/// #     name: "/minutes".parse().unwrap(),
/// #     origin: Origin("here".into()),
/// #     incarnation: 1,
/// # };
/// sources.add(stream, Minutes);
/// let mut seen = Vec::new();
/// sources.run(Time::from_seconds(150), |_, events, _| {
///     seen.extend(events.iter().filter_map(|event| event.get::<i64>().copied()));
/// });
/// assert_eq!(seen, [0, 1, 2]);
/// ```
///
/// Descriptors are not looked at: a source that waits for one is polled by
/// [`poll`](Stepped::poll), after [`wake`](Stepped::wake), and at its times.
pub struct Stepped {
    now: Time,
    next: u64,
    sources: BTreeMap<SourceId, Polled>,
}

impl Stepped {
    /// No sources, at this time.
    #[must_use]
    pub fn new(now: Time) -> Stepped {
        Stepped {
            now,
            next: 1,
            sources: BTreeMap::new(),
        }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Adds a source, which is polled when time next passes.
    pub fn add(&mut self, stream: Stream, source: impl Source + 'static) -> SourceId {
        let id = SourceId(self.next);
        self.next += 1;
        let source = Polled::new(stream, Box::new(source));
        self.sources.insert(id, source);
        id
    }

    /// Takes a source out. False: there is none.
    pub fn remove(&mut self, id: SourceId) -> bool {
        self.sources.remove(&id).is_some()
    }

    /// How a source is; nothing if there is none.
    #[must_use]
    pub fn status(&self, id: SourceId) -> Option<&Status> {
        self.sources.get(&id).map(Polled::status)
    }

    /// When the next source wants to be polled; nothing if none does.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        let due = |source: &Polled| match source.wait {
            None if *source.status() == Status::Starting => Some(self.now),
            _ => source.due(),
        };
        self.sources.values().filter_map(due).min()
    }

    /// Polls a source now, whatever it waits for.
    pub fn poll(&mut self, id: SourceId) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(source) = self.sources.get_mut(&id) {
            source.poll(self.now, &mut events);
        }
        events
    }

    /// Lets a source be polled when time next passes, whatever it waits for: one
    /// that was told something, which its descriptor would say where time is real.
    /// False: there is none, or it has not been polled yet or has ended.
    pub fn wake(&mut self, id: SourceId) -> bool {
        let wait = self.sources.get_mut(&id).and_then(|it| it.wait.as_mut());
        let is_there = wait.is_some();
        if let Some(wait) = wait {
            *wait = Wait::Until(self.now);
        }
        is_there
    }

    /// Lets so much time pass, or go back, without polling: a machine that
    /// sleeps, a clock that is set.
    pub fn leap(&mut self, span: Span) {
        self.now = self.now + span;
    }

    /// Lets time pass until then, that moment included, and tells what sources
    /// publish on the way and which of them have another status.
    ///
    /// At each moment sources are polled in the order in which they were added,
    /// and again for as long as they ask for it.
    pub fn run(&mut self, until: Time, mut told: impl FnMut(SourceId, Vec<Event>, Option<Status>)) {
        while let Some(due) = self.due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            for (id, source) in &mut self.sources {
                let is_new = source.wait.is_none();
                if !is_new && source.due().is_none_or(|due| due > self.now) {
                    continue;
                }
                let mut events = Vec::new();
                source.poll(self.now, &mut events);
                let status = source.news();
                if !events.is_empty() || status.is_some() {
                    told(*id, events, status);
                }
            }
        }
        self.now = self.now.max(until);
    }
}
