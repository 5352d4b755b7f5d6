//! Operators: small programs that read events and publish others.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use milieu_transfer::{Body, Event, Header, Kind, Quality, Stream, Time, Value};

use crate::operators::Condition;
use crate::operators::state::State as _;

/// What reads events of one or more inputs and publishes one stream.
///
/// It has no clock: time is what it is told. An operator that has to do
/// something later says when by [`due`](Operator::due), and is woken then.
pub trait Operator: Send {
    /// An event has come in at an input, counted from 0. What it makes of it at
    /// once goes into `out`; [`Fate`] says what became of the event itself.
    fn event(&mut self, input: usize, event: &Event, out: &mut Output<'_>) -> Fate;

    /// Whether all that it does is to decide, by [`test`](Operator::test), which
    /// events go on as they are, of each by itself: it remembers nothing. Machines
    /// then ask nothing else of it.
    fn is_filter(&self) -> bool {
        false
    }

    /// Decides on an event: [`Fate::Passed`] or [`Fate::Dropped`], where
    /// [`is_filter`](Operator::is_filter) says so.
    fn test(&mut self, event: &Event) -> Fate {
        let _ = event;
        Fate::Passed
    }

    /// The condition of a filter that [`Filters`](crate::operators::Filters) can do together with others:
    /// it passes what [`test`](Operator::test) passes, and drops the rest for
    /// the same reasons.
    fn condition(&self) -> Option<&Condition> {
        None
    }

    /// The time that was asked for has come.
    fn wake(&mut self, out: &mut Output<'_>) {
        let _ = out;
    }

    /// When it wants to be woken next. It is asked after an event that it has
    /// used or held, after it has published something, and after it was woken.
    fn due(&self) -> Option<Time> {
        None
    }

    /// How many events it holds: taken in, and neither used, passed nor dropped.
    fn held(&self) -> usize {
        0
    }

    /// Whether its last event says how things are until the next: whoever comes
    /// late to a name under which it is published is then given it.
    fn retains(&self) -> bool {
        false
    }

    /// What it said last of an event that it could not compute with.
    fn fault(&self) -> Option<&str> {
        None
    }

    /// Whether it may take long over an event, as one does that asks a database.
    /// One that is told to compute by a function that was registered as blocking
    /// does so without saying it. Where the streams are [driven](crate::Streams::drive) it then
    /// runs in another thread, one event after the other, and holds up nothing
    /// else; [`Blocking`](crate::Blocking) says how many threads there are and
    /// how many events may wait for one. Elsewhere it runs in place.
    fn blocks(&self) -> bool {
        false
    }

    /// What it is, for [`is_like`](Operator::is_like) of another one of its type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Whether it makes the same of all that comes from now on as another one,
    /// which was made by an equal flow. Whoever subscribes to a flow that runs
    /// already gets operators of its own where these are not like those that are
    /// there, and shares them as soon as they are.
    ///
    /// Unless it says otherwise a filter is like any other one, and another
    /// operator like those with an equal [`snapshot`](Operator::snapshot), but
    /// like none where that is null: one that remembers nothing has to say so, by
    /// true. It is asked often while such a subscriber is there, and is to be quick.
    fn is_like(&self, other: &dyn Operator, now: Time) -> bool {
        let _ = now;
        if self.is_filter() {
            return true;
        }
        let ours = self.snapshot();
        ours != Value::Null && ours.is_same(&other.snapshot())
    }

    /// What it has to remember across a restart.
    fn snapshot(&self) -> Value {
        Value::Null
    }

    /// Goes on from what [`snapshot`](Operator::snapshot) gave.
    ///
    /// # Errors
    /// If that is nothing that this operator has written; it then is as before.
    fn restore(&mut self, state: &Value) -> Result<(), String> {
        match state {
            Value::Null => Ok(()),
            _ => Err("this operator remembers nothing".to_owned()),
        }
    }
}

/// What has become of an event that an operator was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on as it is.
    Passed,
    /// It went into what the operator has published, or into its state.
    Used,
    /// The operator keeps it, and will settle its fate by
    /// [`Output::pass`], [`Output::used`] or [`Output::drop`].
    Held,
    /// It goes no further.
    Dropped(Reason),
}

/// Why an event goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// It is not what was asked for.
    Filtered,
    /// It came too late for its window.
    Late,
    /// Its time lies in the future.
    Future,
    /// An equal one was there already.
    Duplicate,
    /// It lies too far from the others.
    Outlier,
    /// Its expression could not be computed.
    Fault,
    /// It is of a type that was not expected.
    Type,
    /// Its sensor has failed.
    Failed,
    /// A newer one has taken its place.
    Superseded,
    /// A queue was full.
    Overflow,
    /// Its receiver has gone.
    Gone,
    /// Its receiver has no right to it, or its sender to set its private fields.
    Denied,
    /// The operator has panicked before and does nothing any more.
    Broken,
    /// It cannot be written in its transfer mode, or what came cannot be read.
    Malformed,
    /// It is larger than what carries it allows.
    Size,
    /// What it builds on has been lost on the way.
    Lost,
    /// It is of an earlier life of its publisher.
    Stale,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 17] = [
        Reason::Filtered,
        Reason::Late,
        Reason::Future,
        Reason::Duplicate,
        Reason::Outlier,
        Reason::Fault,
        Reason::Type,
        Reason::Failed,
        Reason::Superseded,
        Reason::Overflow,
        Reason::Gone,
        Reason::Denied,
        Reason::Broken,
        Reason::Malformed,
        Reason::Size,
        Reason::Lost,
        Reason::Stale,
    ];

    /// One word, as books and metrics have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Filtered => "filtered",
            Reason::Late => "late",
            Reason::Future => "future",
            Reason::Duplicate => "duplicate",
            Reason::Outlier => "outlier",
            Reason::Fault => "fault",
            Reason::Type => "type",
            Reason::Failed => "failed",
            Reason::Superseded => "superseded",
            Reason::Overflow => "overflow",
            Reason::Gone => "gone",
            Reason::Denied => "denied",
            Reason::Broken => "broken",
            Reason::Malformed => "malformed",
            Reason::Size => "size",
            Reason::Lost => "lost",
            Reason::Stale => "stale",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What time it is, asked for once at most and only where somebody wants to know.
pub struct Now<'a> {
    clock: &'a dyn Fn() -> Time,
    known: Cell<Option<Time>>,
}

impl<'a> Now<'a> {
    /// What this clock will say when it is first asked.
    #[must_use]
    pub fn new(clock: &'a dyn Fn() -> Time) -> Now<'a> {
        let known = Cell::new(None);
        Now { clock, known }
    }

    /// The time.
    #[must_use]
    pub fn get(&self) -> Time {
        match self.known.get() {
            Some(known) => known,
            None => {
                let now = (self.clock)();
                self.known.set(Some(now));
                now
            }
        }
    }
}

impl Now<'_> {
    /// The time by now: the clock is asked once more.
    pub(crate) fn again(&self) -> Time {
        (self.clock)()
    }
}

impl fmt::Debug for Now<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Now").field(&self.known.get()).finish()
    }
}

/// Where an operator puts what it publishes.
#[derive(Debug)]
pub struct Output<'a> {
    now: &'a Now<'a>,
    stream: &'a Arc<Stream>,
    numbers: Numbers<'a>,
    events: &'a mut Vec<Event>,
    settled: &'a mut Settled,
}

/// How many events a stream has had.
#[derive(Debug)]
enum Numbers<'a> {
    /// Nobody else publishes it.
    Own(&'a mut u64),
    /// Others publish it too: no two events are to have the same number.
    Shared(&'a AtomicU64),
}

/// What became of events that an operator had held.
#[derive(Debug, Default)]
pub struct Settled {
    /// Sent on as they were.
    pub passed: u64,
    /// Gone into what was published.
    pub used: u64,
    /// Dropped, by reason.
    pub dropped: Vec<(Reason, u64)>,
}

impl Settled {
    /// Whether there is nothing to enter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.passed == 0 && self.used == 0 && self.dropped.is_empty()
    }
}

impl<'a> Output<'a> {
    /// An output that collects into these.
    pub fn new(
        now: &'a Now<'a>,
        stream: &'a Arc<Stream>,
        sequence: &'a mut u64,
        events: &'a mut Vec<Event>,
        settled: &'a mut Settled,
    ) -> Output<'a> {
        Output {
            now,
            stream,
            numbers: Numbers::Own(sequence),
            events,
            settled,
        }
    }

    /// As [`new`](Output::new), of a stream that others publish too.
    #[inline]
    pub(crate) fn shared(
        now: &'a Now<'a>,
        stream: &'a Arc<Stream>,
        numbers: &'a AtomicU64,
        events: &'a mut Vec<Event>,
        settled: &'a mut Settled,
    ) -> Output<'a> {
        Output {
            now,
            stream,
            numbers: Numbers::Shared(numbers),
            events,
            settled,
        }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now.get()
    }

    /// What says so.
    pub(crate) fn clock(&self) -> &'a Now<'a> {
        self.now
    }

    /// Publishes what an output of the same stream has collected elsewhere.
    pub(crate) fn adopt(&mut self, mut events: Vec<Event>, settled: Settled) {
        self.events.append(&mut events);
        self.settled.passed += settled.passed;
        self.settled.used += settled.used;
        self.settled.dropped.extend(settled.dropped);
    }

    /// Publishes an event of the operator's own stream.
    pub fn emit<T: Body>(&mut self, time: Time, quality: Option<Box<Quality>>, body: T) {
        let header = self.header(time, quality);
        self.events.push(Event::new(header, body));
    }

    /// Publishes one whose body has no type of its own.
    pub fn emit_value(&mut self, time: Time, quality: Option<Box<Quality>>, body: Value) {
        let header = self.header(time, quality);
        self.events.push(Event::of_value(header, body));
    }

    /// Publishes one of a type that need not be looked up.
    pub fn emit_kind<T: Body>(
        &mut self,
        kind: Kind<T>,
        time: Time,
        quality: Option<Box<Quality>>,
        body: T,
    ) {
        let header = self.header(time, quality);
        self.events.push(kind.event(header, body));
    }

    fn header(&mut self, time: Time, quality: Option<Box<Quality>>) -> Header {
        let sequence = match &mut self.numbers {
            Numbers::Own(last) => {
                **last += 1;
                **last
            }
            Numbers::Shared(last) => last.fetch_add(1, Relaxed) + 1,
        };
        Header {
            stream: Arc::clone(self.stream),
            time,
            sequence,
            quality,
        }
    }

    /// Sends an event on that was held.
    pub fn pass(&mut self, event: Event) {
        self.settled.passed += 1;
        self.events.push(event);
    }

    /// Counts held events that have gone into what was published.
    pub fn used(&mut self, count: u64) {
        self.settled.used += count;
    }

    /// Counts held events that go no further.
    pub fn drop(&mut self, reason: Reason, count: u64) {
        self.settled.dropped.push((reason, count));
    }
}
