//! Sources: where events come from.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use milieu_transfer::{Body, Event, Header, Kind, Quality, Stream, Time};

/// What looks at a part of the world and says what happens there.
///
/// A source never blocks and has no thread of its own: it is polled when what it
/// waits for has come, so that ten thousand sources need one thread, and a test
/// decides what time it is. What can only be read by blocking runs in a thread
/// of the adapter's own and hands in events by a publisher.
pub trait Source: Send {
    /// Publishes what there is by now, and says what to wait for.
    ///
    /// A peer that is down is no error: the source says so by
    /// [`Feed::status`] and asks to be polled again later.
    ///
    /// It may be polled earlier than it asked for, such as after the clock was
    /// set; it then publishes nothing new and says again what it waits for.
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait;

    /// A descriptor that becomes readable when there is something to poll for.
    ///
    /// It is asked for after each poll, so that a source may reconnect. Whoever
    /// waits for several makes one of them by an epoll descriptor of its own.
    /// No two sources have the same one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        (**self).poll(feed)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }
}

/// What a source waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A point in time, or its descriptor if that comes first.
    Until(Time),
    /// Its descriptor.
    Readable,
    /// Nothing more will come.
    Ended,
}

/// How a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not yet connected to what it looks at.
    Starting,
    /// It sees what it looks at.
    Working,
    /// It sees nothing, or not all that it should, for this reason, and keeps
    /// trying.
    Failing(Arc<str>),
    /// It has said all that it had to say.
    Ended,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Starting => f.write_str("starting"),
            Status::Working => f.write_str("working"),
            Status::Failing(why) => write!(f, "failing: {why}"),
            Status::Ended => f.write_str("ended"),
        }
    }
}

/// Where a source puts what it has seen.
#[derive(Debug)]
pub struct Feed<'a> {
    now: Time,
    stream: &'a Arc<Stream>,
    sequence: &'a mut u64,
    status: &'a mut Status,
    events: &'a mut Vec<Event>,
}

impl<'a> Feed<'a> {
    /// A feed that collects into these.
    pub fn new(
        now: Time,
        stream: &'a Arc<Stream>,
        sequence: &'a mut u64,
        status: &'a mut Status,
        events: &'a mut Vec<Event>,
    ) -> Feed<'a> {
        Feed {
            now,
            stream,
            sequence,
            status,
            events,
        }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Publishes what was seen, at a point in time.
    pub fn publish<T: Body>(&mut self, time: Time, body: T) {
        self.publish_with(time, None, body);
    }

    /// Publishes what was seen, and how well.
    pub fn publish_with<T: Body>(&mut self, time: Time, quality: Option<Quality>, body: T) {
        self.publish_kind(Kind::new(), time, quality, body);
    }

    /// As [`publish_with`](Feed::publish_with), of a type that need not be looked up.
    pub fn publish_kind<T: Body>(
        &mut self,
        kind: Kind<T>,
        time: Time,
        quality: Option<Quality>,
        body: T,
    ) {
        *self.sequence += 1;
        let header = Header {
            stream: Arc::clone(self.stream),
            time,
            sequence: *self.sequence,
            quality: quality.map(Box::new),
        };
        self.events.push(kind.event(header, body));
    }

    /// How many events the source has published in its life.
    #[must_use]
    pub fn published(&self) -> u64 {
        *self.sequence
    }

    /// Says how the source is.
    pub fn status(&mut self, status: Status) {
        *self.status = status;
    }

    /// Says that the source sees what it looks at.
    pub fn working(&mut self) {
        self.status(Status::Working);
    }

    /// Says why the source sees nothing, or not all that it should: what is
    /// wrong, where, and how it is mended.
    pub fn failing(&mut self, reason: impl fmt::Display) {
        self.status(Status::Failing(reason.to_string().into()));
    }
}
