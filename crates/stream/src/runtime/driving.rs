//! Sources in the background: one thread for all of them, and for operators that
//! do something when time passes; and threads for operators that take long.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use milieu_keys::Name;
use milieu_transfer::Stream;

use super::alarm::{Alarm, Waking};
use super::crew::{Blocking, Crew};
use super::{CannotPublish, Streams};
use crate::drive::{self, Driver};
use crate::graph;
use crate::graph::apart::Hands;
use crate::source::{Source, Status};

/// The thread that polls sources and wakes operators. It ends when this and all
/// that came of it are dropped.
#[derive(Clone)]
pub struct Driving(Arc<Shared>);

struct Shared {
    streams: Streams,
    driver: Driver,
    sources: Arc<Sources>,
    /// Works with operators that may take long.
    crew: Arc<Crew>,
}

/// Where the events of each source go.
type Sources = Mutex<HashMap<drive::SourceId, Arc<OnceLock<graph::SourceId>>>>;

/// A source that is being polled. It is dropped with this, and its name is free
/// again.
#[must_use = "the source is dropped with this"]
pub struct Sourcing {
    driving: Driving,
    name: Name,
    polled: drive::SourceId,
    source: Arc<OnceLock<graph::SourceId>>,
}

impl Streams {
    /// Starts the thread that polls sources and wakes operators in real time.
    /// Operators that [block](crate::Operator::blocks) get other threads, a few
    /// for all of them, when they first need one.
    ///
    /// # Errors
    /// If the system has no descriptors or no thread left.
    pub fn drive(&self) -> io::Result<Driving> {
        self.drive_with(Blocking::default())
    }

    /// As [`drive`](Streams::drive), with these terms for operators that block.
    ///
    /// # Errors
    /// As there.
    pub fn drive_with(&self, blocking: Blocking) -> io::Result<Driving> {
        let sources = Arc::new(Sources::default());
        let (streams, known) = (self.clone(), Arc::clone(&sources));
        let clock = Arc::clone(&self.0.clock);
        let driver = Driver::start_by(clock, move |id, events, _| {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(source) = known.get(&id).cloned() else {
                return;
            };
            drop(known);
            for event in events {
                streams.publish_from(&source, event);
            }
        })?;
        let alarm = Arc::new(Alarm::new()?);
        let alarm = Arc::clone(self.0.alarm.get_or_init(|| alarm));
        let streams = self.clone();
        driver.add(self.unnamed(), Waking { streams, alarm });
        let crew = Crew::new(self, blocking);
        let hands: Arc<dyn Hands> = Arc::clone(&crew) as _;
        self.order(move |machine, now| machine.lend(now, hands));
        Ok(Driving(Arc::new(Shared {
            streams: self.clone(),
            driver,
            sources,
            crew,
        })))
    }

    /// A stream that nobody can subscribe to.
    fn unnamed(&self) -> Stream {
        Stream::clone(&self.stream(Name::root()))
    }
}

impl Drop for Shared {
    /// A callback that drops the last of it is not waited for by the thread,
    /// which may be waiting for the machine.
    fn drop(&mut self) {
        if self.streams.0.machine.is_at_work_here() {
            self.driver.leave();
        }
        self.crew.end();
        let hands: Arc<dyn Hands> = Arc::clone(&self.crew) as _;
        self.streams
            .order(move |machine, now| machine.take_back(now, &hands));
    }
}

impl Driving {
    /// Whose sources these are.
    pub(crate) fn streams(&self) -> &Streams {
        &self.0.streams
    }

    /// Polls what publishes nothing.
    pub(crate) fn pump(&self, source: impl Source + 'static) -> drive::SourceId {
        self.0.driver.add(self.0.streams.unnamed(), source)
    }

    /// Polls it no more.
    pub(crate) fn stop(&self, pumped: drive::SourceId) {
        self.0.driver.remove(pumped);
    }

    /// Polls a source and publishes under this name what it sees. Late
    /// subscribers get its last event at once.
    ///
    /// # Errors
    /// If it is no name, or has a publisher.
    pub fn source(
        &self,
        name: &str,
        source: impl Source + 'static,
    ) -> Result<Sourcing, CannotPublish> {
        let Shared {
            streams,
            driver,
            sources,
            ..
        } = &*self.0;
        let stream = streams.stream(streams.claim(name)?);
        let id = streams.add_source(&stream, true)?;
        // What it says at once waits until it is known where that goes.
        let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
        let polled = driver.add(Stream::clone(&stream), source);
        sources.insert(polled, Arc::clone(&id));
        drop(sources);
        Ok(Sourcing {
            driving: self.clone(),
            name: stream.name.clone(),
            polled,
            source: id,
        })
    }

    /// Waits until every source has been looked at once and its events have
    /// been published, but no longer than this: for whoever shows values at
    /// once. Whether that is so.
    #[must_use]
    pub fn has_looked(&self, limit: Duration) -> bool {
        self.0.driver.has_looked(limit)
    }
}

impl Sourcing {
    /// How the source is.
    #[must_use]
    pub fn status(&self) -> Status {
        self.driving
            .0
            .driver
            .status(self.polled)
            .unwrap_or(Status::Ended)
    }

    /// The name that its events have.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl Drop for Sourcing {
    fn drop(&mut self) {
        let Shared {
            streams,
            driver,
            sources,
            ..
        } = &*self.driving.0;
        driver.remove(self.polled);
        let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.remove(&self.polled);
        drop(sources);
        streams.remove_source(&self.name, Arc::clone(&self.source));
    }
}
