//! Streams in virtual time: sources are polled and operators woken as time is told
//! to pass.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use milieu_keys::Name;
use milieu_transfer::{Stream, Time};

use super::{CannotPublish, Clock as _, Streams, VirtualClock};
use crate::drive::{self, Stepped};
use crate::graph;
use crate::source::{Source, Status};

/// Lets time pass for streams whose clock is a [`VirtualClock`]: for tests, and for
/// recordings that are run through at once. Clones are one.
#[derive(Clone)]
pub struct Stepping(Arc<Shared>);

struct Shared {
    streams: Streams,
    clock: VirtualClock,
    /// Locked while sources are polled.
    stepped: Mutex<Stepped>,
    sources: Mutex<HashMap<drive::SourceId, Known>>,
    /// Sources that have been dropped while others were polled.
    gone: Mutex<Vec<drive::SourceId>>,
    /// Sources that are to be polled, whatever they wait for.
    woken: Mutex<Vec<drive::SourceId>>,
}

struct Known {
    source: Arc<OnceLock<graph::SourceId>>,
    status: Status,
}

/// A source that is polled in virtual time. It is dropped with this, and its name
/// is free again.
#[must_use = "the source is dropped with this"]
pub struct SteppedSource {
    stepping: Stepping,
    name: Name,
    polled: drive::SourceId,
    source: Arc<OnceLock<graph::SourceId>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streams {
    /// Lets time pass by this clock, which has to be that of the streams.
    #[must_use]
    pub fn stepping(&self, clock: VirtualClock) -> Stepping {
        let stepped = Mutex::new(Stepped::new(clock.now()));
        Stepping(Arc::new(Shared {
            streams: self.clone(),
            clock,
            stepped,
            sources: Mutex::default(),
            gone: Mutex::default(),
            woken: Mutex::default(),
        }))
    }
}

impl Stepping {
    /// Polls a source and publishes under this name what it sees, as
    /// [`Driving::source`](super::Driving::source) does in real time. It is not
    /// called from where sources are polled.
    ///
    /// # Errors
    /// If it is no name, or has a publisher.
    pub fn source(
        &self,
        name: &str,
        source: impl Source + 'static,
    ) -> Result<SteppedSource, CannotPublish> {
        let streams = &self.0.streams;
        let stream = streams.stream(streams.claim(name)?);
        let id = streams.add_source(&stream, true)?;
        let polled = locked(&self.0.stepped).add(Stream::clone(&stream), source);
        let known = Known {
            source: Arc::clone(&id),
            status: Status::Starting,
        };
        locked(&self.0.sources).insert(polled, known);
        Ok(SteppedSource {
            stepping: self.clone(),
            name: stream.name.clone(),
            polled,
            source: id,
        })
    }

    /// Lets time pass until then, that moment included: at each moment sources are
    /// polled, and then operators do what they wanted to do. Time does not go back.
    pub fn run(&self, until: Time) {
        let Shared { streams, clock, .. } = &*self.0;
        while let Some(due) = self.due().filter(|due| *due <= until) {
            clock.set(clock.now().max(due));
            self.poll();
            streams.wake();
        }
        clock.set(clock.now().max(until));
        self.poll();
        streams.wake();
    }

    /// When something wants to be done next.
    fn due(&self) -> Option<Time> {
        let sources = locked(&self.0.stepped).due();
        let is_woken = !locked(&self.0.woken).is_empty();
        let now = is_woken.then(|| self.0.clock.now());
        let all = sources.into_iter().chain(self.0.streams.due());
        all.chain(now).min()
    }

    /// Polls what is due. What was seen is published when nothing is locked.
    fn poll(&self) {
        let mut seen = Vec::new();
        let mut stepped = locked(&self.0.stepped);
        for gone in std::mem::take(&mut *locked(&self.0.gone)) {
            stepped.remove(gone);
        }
        for woken in std::mem::take(&mut *locked(&self.0.woken)) {
            stepped.wake(woken);
        }
        stepped.run(self.0.clock.now(), |id, events, status| {
            let mut sources = locked(&self.0.sources);
            if let Some(known) = sources.get_mut(&id) {
                known.status = status.unwrap_or_else(|| known.status.clone());
                seen.extend(events.into_iter().map(|it| (Arc::clone(&known.source), it)));
            }
        });
        drop(stepped);
        for (source, event) in seen {
            self.0.streams.publish_from(&source, event);
        }
    }
}

impl SteppedSource {
    /// How the source is.
    #[must_use]
    pub fn status(&self) -> Status {
        let sources = locked(&self.stepping.0.sources);
        let known = sources.get(&self.polled);
        known.map_or(Status::Ended, |known| known.status.clone())
    }

    /// Lets the source be polled when time next passes, whatever it waits for: one
    /// that was told something, as a recording is that shall stop. Any callback may
    /// call it.
    pub fn wake(&self) {
        locked(&self.stepping.0.woken).push(self.polled);
    }

    /// The name that its events have.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl Drop for SteppedSource {
    fn drop(&mut self) {
        let Shared {
            streams,
            stepped,
            sources,
            gone,
            ..
        } = &*self.stepping.0;
        locked(sources).remove(&self.polled);
        // It may be polled further up in this thread.
        match stepped.try_lock() {
            Ok(mut stepped) => _ = stepped.remove(self.polled),
            Err(_) => locked(gone).push(self.polled),
        }
        streams.remove_source(&self.name, Arc::clone(&self.source));
    }
}
