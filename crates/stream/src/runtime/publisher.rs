//! Publishers: where a program's own events come from.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use milieu_keys::Name;
use milieu_transfer::{Body, Header, Kind, Quality, Stream, Time};

use super::{CannotPublish, Streams};
use crate::graph::{Machine, SourceId};
use crate::operator::Now;

/// Publishes events of a type under a name. The name is free again when it is
/// dropped; subscriptions to it wait for the next.
pub struct Publisher<T> {
    streams: Streams,
    stream: Arc<Stream>,
    source: Arc<OnceLock<SourceId>>,
    sequence: AtomicU64,
    body: PhantomData<fn(T)>,
}

/// What has become of an event that was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Published {
    /// It is on its way, as the event of this number.
    Accepted(u64),
    /// A subscriber that must have every event cannot take one now.
    Refused,
}

impl Streams {
    /// A publisher of events of a type: of any that `serde` writes and reads. Of one
    /// that derives `Event`, subscribers to what it [extends] receive the events too.
    /// Late subscribers get nothing of before.
    ///
    /// [extends]: milieu_transfer::Described
    ///
    /// # Errors
    /// If it is no name, or has a publisher.
    pub fn publisher<T: Body>(&self, name: &str) -> Result<Publisher<T>, CannotPublish> {
        self.publisher_that(name, false)
    }

    /// As [`publisher`](Streams::publisher), whose last event late subscribers
    /// get at once: for what is true until it changes.
    ///
    /// # Errors
    /// If it is no name, or has a publisher.
    pub fn retaining_publisher<T: Body>(&self, name: &str) -> Result<Publisher<T>, CannotPublish> {
        self.publisher_that(name, true)
    }

    fn publisher_that<T: Body>(
        &self,
        name: &str,
        retains: bool,
    ) -> Result<Publisher<T>, CannotPublish> {
        let stream = self.stream(self.claim(name)?);
        let source = self.add_source(&stream, retains)?;
        Ok(Publisher {
            streams: self.clone(),
            stream,
            source,
            sequence: AtomicU64::new(0),
            body: PhantomData,
        })
    }

    /// Makes a source. Within a callback it is ordered: whoever uses it comes
    /// after it.
    pub(super) fn add_source(
        &self,
        stream: &Arc<Stream>,
        retains: bool,
    ) -> Result<Arc<OnceLock<SourceId>>, CannotPublish> {
        let (stream, source) = (Arc::clone(stream), Arc::new(OnceLock::new()));
        let (name, made) = (stream.name.clone(), Arc::clone(&source));
        let add = move |machine: &mut Machine, now: &Now<'_>| {
            let source = machine.add_source(now, stream, retains)?;
            let _ = made.set(source);
            Ok(())
        };
        if self.is_inside() {
            self.order(|machine, now| _ = add(machine, now));
            return Ok(source);
        }
        match self.ask(add).unwrap_or(Ok(())) {
            Ok(()) => Ok(source),
            Err(refusal) => {
                self.give_back(&name);
                Err(CannotPublish::Refused(refusal))
            }
        }
    }

    pub(super) fn remove_source(&self, name: &Name, source: Arc<OnceLock<SourceId>>) {
        self.order(move |machine, now| {
            if let Some(source) = source.get() {
                machine.remove_source(now, *source);
            }
        });
        self.give_back(name);
    }
}

impl<T: Body> Publisher<T> {
    /// Publishes what is so now.
    pub fn publish(&self, body: T) -> Published {
        self.publish_at(self.streams.now(), None, body)
    }

    /// Publishes what was so at a point in time, and how well that is known.
    pub fn publish_at(&self, time: Time, quality: Option<Quality>, body: T) -> Published {
        self.publish_kind(Kind::new(), time, quality, body)
    }

    /// As [`publish_at`](Publisher::publish_at), of a type that need not be looked up.
    pub fn publish_kind(
        &self,
        kind: Kind<T>,
        time: Time,
        quality: Option<Quality>,
        body: T,
    ) -> Published {
        if self.is_refused() {
            return Published::Refused;
        }
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let header = Header {
            stream: Arc::clone(&self.stream),
            time,
            sequence,
            quality: quality.map(Box::new),
        };
        let event = kind.event(header, body);
        self.streams.publish_from(&self.source, event);
        Published::Accepted(sequence)
    }
}

impl<T> Publisher<T> {
    /// Whether a subscriber that must have every event cannot take one now. From
    /// within a callback nobody can be asked: its events are accepted.
    fn is_refused(&self) -> bool {
        if self.streams.0.refusing.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let source = Arc::clone(&self.source);
        let refuses = self.streams.ask(move |machine, _| {
            let source = source.get();
            source.is_some_and(|source| machine.refuses(*source))
        });
        refuses.unwrap_or(false)
    }
}

impl<T> Drop for Publisher<T> {
    fn drop(&mut self) {
        let source = Arc::clone(&self.source);
        self.streams.remove_source(&self.stream.name, source);
    }
}
