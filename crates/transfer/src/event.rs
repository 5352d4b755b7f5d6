//! Events: what happened, when, where, and how well it is known.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, LazyLock};

use milieu_keys::Name;

use crate::emit::Emit;
use crate::error::Error;
use crate::kind::{Body, Type};
use crate::positional::Writer;
use crate::private::Rights;
use crate::read::Stored;
use crate::schema::Schema;
use crate::time::{Span, Time};
use crate::value::{Builder, Value};

/// Something that happened. Cloning it counts a reference; it never changes.
#[derive(Clone)]
pub struct Event(Arc<Shared<dyn Stored>>);

struct Shared<B: ?Sized> {
    header: Header,
    of: &'static Type,
    /// The schema by which a value came.
    schema: Option<Arc<Schema>>,
    /// What a value extends, where that is of a type that is known here.
    parent: Option<Box<Event>>,
    body: B,
}

/// What every event has, whatever its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The stream that it belongs to.
    pub stream: Arc<Stream>,
    /// When it happened, by the clock of its origin.
    pub time: Time,
    /// Its number in the stream, counted from 1 in each incarnation.
    pub sequence: u64,
    /// How well it is known. Nothing: as well as can be.
    pub quality: Option<Box<Quality>>,
}

impl Header {
    /// How old at this time what the event says is: what has passed since the
    /// event, and its [age](Quality::age) then. With clocks that differ it may be
    /// negative.
    #[must_use]
    pub fn age(&self, now: Time) -> Span {
        let before = self.quality.as_ref().and_then(|quality| quality.age);
        (now + before.unwrap_or(Span::ZERO)) - self.time
    }
}

/// A stream of events: what they are called and who says so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The name, as subscribers know it.
    pub name: Name,
    /// Who publishes.
    pub origin: Origin,
    /// Which life of the publisher this is: a later one has a greater number,
    /// and counts its events from 1 again.
    pub incarnation: u64,
}

/// Who publishes: a host, a program, a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(pub Arc<str>);

/// How well it is known what an event says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// How old what it says was already at the time of the event, a value from
    /// a cache for instance. See [`Header::age`].
    pub age: Option<Span>,
    /// The truth lies at most this far from each measured number, in its unit.
    pub accuracy: Option<f64>,
    /// What is wrong with the sensor; what it measured is then not to be trusted.
    pub failure: Option<Arc<str>>,
}

impl Event {
    /// An event with a body of a Rust type.
    ///
    /// The type is looked up; a [`Kind`](crate::Kind) does so once for many events.
    #[must_use]
    pub fn new<T: Body>(header: Header, body: T) -> Event {
        Event::with_type(header, Type::of::<T>(), body)
    }

    /// An event whose body has no type of its own.
    #[must_use]
    pub fn of_value(header: Header, body: Value) -> Event {
        Event::with_type(header, dynamic(), body)
    }

    pub(crate) fn with_type<T: Body>(header: Header, of: &'static Type, body: T) -> Event {
        Event::make(header, of, None, None, body)
    }

    /// The one place where events are made: a body and its type belong together.
    fn make<T: Body>(
        header: Header,
        of: &'static Type,
        schema: Option<Arc<Schema>>,
        parent: Option<Box<Event>>,
        body: T,
    ) -> Event {
        assert!(of.has_id(TypeId::of::<T>()), "a body is of its type");
        Event(Arc::new(Shared {
            header,
            of,
            schema,
            parent,
            body,
        }))
    }

    /// An event whose body has a type that is not known here, but its schema is.
    pub(crate) fn of_schema(header: Header, schema: Arc<Schema>, body: Value) -> Event {
        Event::make(header, dynamic(), Some(schema), None, body)
    }

    /// An event of a value, of which it is also known what it extends.
    pub(crate) fn extending(&self, parent: Event) -> Event {
        let body = self.get::<Value>().cloned().unwrap_or_default();
        let (header, schema) = (self.header().clone(), self.0.schema.clone());
        Event::make(header, dynamic(), schema, Some(Box::new(parent)), body)
    }

    /// What is known of the type of its body.
    pub(crate) fn schema(&self) -> Option<&Arc<Schema>> {
        self.0.schema.as_ref().or_else(|| self.0.of.schema())
    }

    pub(crate) fn emit(&self, emit: Emit<'_>) -> Result<bool, Error> {
        (self.0.of.emit)(self.body(), emit)
    }

    /// The schema that the body serializes by, if it has one. Values say
    /// themselves what they are.
    pub(crate) fn layout(&self) -> Option<&'static Arc<Schema>> {
        if self.0.of.has_id(TypeId::of::<Value>()) {
            return None;
        }
        self.0.of.layout(self.body())
    }

    /// The body by its schema.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        (self.0.of.write)(self.body(), writer)
    }

    /// The body as a value. What is private is left out unless the rights open
    /// it; then it stays marked.
    ///
    /// # Errors
    /// As [`Value::of`].
    pub fn value(&self, rights: Rights) -> Result<Value, Error> {
        if let Some(value) = self.get::<Value>() {
            return Ok(value.readable(rights));
        }
        let mut builder = Builder::default();
        self.emit(Emit::new(&mut builder, rights))?;
        Ok(builder.take())
    }

    /// Name, time, origin, sequence and quality.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.0.header
    }

    /// When it happened, by the clock of its origin.
    #[must_use]
    pub fn time(&self) -> Time {
        self.0.header.time
    }

    /// The type of its body.
    #[must_use]
    pub fn of(&self) -> &'static Type {
        self.0.of
    }

    /// The body, if it is of this type, or what it [extends](crate::Described),
    /// if that is.
    #[inline]
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        if self.0.of.has_id(TypeId::of::<T>()) {
            let body = std::ptr::from_ref(&self.0.body).cast::<T>();
            // SAFETY: the body is of this type: `make` has seen it, and no other
            // makes events or changes them.
            return Some(unsafe { &*body });
        }
        self.parent()
    }

    /// What the body extends, if that is of this type.
    fn parent<T: 'static>(&self) -> Option<&T> {
        match &self.0.parent {
            Some(parent) => parent.get(),
            None => {
                let parent = self.0.of.find(self.body(), TypeId::of::<T>())?;
                parent.downcast_ref()
            }
        }
    }

    /// The body, whatever its type.
    #[inline]
    #[must_use]
    pub fn body(&self) -> &(dyn Any + Send + Sync) {
        self.0.body.any()
    }

    pub(crate) fn stored(&self) -> &dyn Stored {
        &self.0.body
    }

    /// Whether both are one event, and not only equal.
    #[must_use]
    pub fn is(&self, other: &Event) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The type of values.
fn dynamic() -> &'static Type {
    static DYNAMIC: LazyLock<&Type> = LazyLock::new(Type::of::<Value>);
    &DYNAMIC
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut event = f.debug_struct("Event");
        event.field("header", &self.0.header);
        event.field("of", &self.0.of.name());
        event.finish_non_exhaustive()
    }
}
