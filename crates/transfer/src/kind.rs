//! Types of events' bodies.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, RwLock};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::defined::Definition;
use crate::described::{self, Described, Description};
use crate::emit::{DEPTH, Emit};
use crate::error::Error;
use crate::event::{Event, Header};
use crate::limits::Limits;
use crate::positional;
use crate::private::Rights;
use crate::schema::{Bytes, Schema, Shape, trace};
use crate::value::{Builder, Value};

/// What can be the body of an event: every type that `serde` can write and read.
pub trait Body: Serialize + DeserializeOwned + Any + Send + Sync {}

impl<T: Serialize + DeserializeOwned + Any + Send + Sync> Body for T {}

/// A type of bodies, known once in a process.
pub struct Type {
    name: &'static str,
    id: TypeId,
    pub(crate) emit: fn(&AnyBody, Emit<'_>) -> Result<bool, Error>,
    from_value: fn(&'static Type, Header, &Value, Rights) -> Result<Event, Error>,
    pub(crate) write: fn(&AnyBody, &mut positional::Writer<'_>) -> Result<(), Error>,
    pub(crate) read: fn(&mut positional::Reader<'_>, &'static Type, Header) -> Result<Event, Error>,
    trace: fn() -> Option<Shape>,
    /// What the program says, where it defines the type while it runs.
    definition: Option<Definition>,
    /// What `derive(Event)` knows, if that is known.
    description: Option<Description>,
    schema: OnceLock<Option<Arc<Schema>>>,
    /// Whether what it serializes is what its schema says, as far as is known.
    agreement: AtomicU8,
}

/// The types of this process.
static KNOWN: LazyLock<RwLock<HashMap<TypeId, &'static Type>>> = LazyLock::new(RwLock::default);

const UNHARMED: &str = "a table of types is only added to";

/// No event has been looked at.
const UNKNOWN: u8 = 0;
const AGREES: u8 = 1;
const DISAGREES: u8 = 2;

/// A body, whatever its type.
pub(crate) type AnyBody = dyn Any + Send + Sync;

/// The body as the type that its [`Type`] says it is.
pub(crate) fn of_type<T: Body>(body: &AnyBody) -> &T {
    body.downcast_ref().expect("a body is of its type")
}

impl Type {
    /// The type of these bodies. This looks it up: whoever makes many events of
    /// one type keeps its [`Kind`].
    #[must_use]
    pub fn of<T: Body>() -> &'static Type {
        let id = TypeId::of::<T>();
        if let Some(known) = KNOWN.read().expect(UNHARMED).get(&id) {
            return known;
        }
        let mut known = KNOWN.write().expect(UNHARMED);
        known
            .entry(id)
            .or_insert_with(|| Box::leak(Box::new(Type::new::<T>(id))))
    }

    /// As [`of`](Type::of), and from now on with what `derive(Event)` knows of it,
    /// if it was not known from the beginning.
    fn described<T: Described>() -> &'static Type {
        let known = Type::of::<T>();
        if known.description.is_some() {
            return known;
        }
        let mut of = Type::new::<T>(known.id);
        of.description = Some(Description::of::<T>());
        let mut types = KNOWN.write().expect(UNHARMED);
        let known = types.entry(of.id).or_insert(known);
        // Another thread may have been faster.
        if known.description.is_none() {
            *known = Box::leak(Box::new(of));
        }
        known
    }

    fn new<T: Body>(id: TypeId) -> Type {
        Type {
            name: type_name::<T>(),
            id,
            emit: |body, emit| of_type::<T>(body).serialize(emit),
            from_value: |of, header, value, rights| {
                let body: T = match value.to(rights) {
                    // The type holds a value where others refer to one.
                    Err(Error::Cycle) => value.expanded()?.to(rights)?,
                    result => result?,
                };
                Ok(Event::with_type(header, of, body))
            },
            write: |body, writer| of_type::<T>(body).serialize(writer),
            read: |reader, of, header| {
                let body = T::deserialize(reader)?;
                Ok(Event::with_type(header, of, body))
            },
            trace: trace::<T>,
            definition: None,
            description: described::derived(id),
            schema: OnceLock::new(),
            agreement: AtomicU8::new(UNKNOWN),
        }
    }

    /// A type that the program defines; see [`Kind::defined`].
    pub(crate) fn defined<T: Body>(name: &'static str, id: TypeId, by: Definition) -> Type {
        const HAS: &str = "a type that is defined has its definition";
        Type {
            name,
            from_value: |of, header, value, _| {
                let definition = of.definition.as_ref().expect(HAS);
                definition.make(of, header, value)
            },
            read: |reader, of, header| {
                let definition = of.definition.as_ref().expect(HAS);
                let value = positional::read(&definition.shape, reader)?;
                definition.make(of, header, &value)
            },
            definition: Some(by),
            ..Type::new::<T>(id)
        }
    }

    /// What its events look like without names, if that can be known: not of
    /// untagged enums, flattened structs and types that hold themselves. Their
    /// events travel with names in every mode.
    #[must_use]
    pub fn schema(&'static self) -> Option<&'static Arc<Schema>> {
        let schema = || {
            let mut shape = match &self.definition {
                Some(definition) => definition.shape.clone(),
                None => (self.trace)()?,
            };
            if let Some(description) = &self.description {
                described::annotate(&mut shape, &description.facts);
            }
            let schema = Schema::new(shape);
            schema.is_small().then(|| Arc::new(schema))
        };
        self.schema.get_or_init(schema).as_ref()
    }

    /// The schema, if this body serializes as it says.
    ///
    /// `Serialize` and `Deserialize` may disagree, over fields that are skipped
    /// for instance. The first event tells: read back by the schema it has to
    /// say what it says with names.
    pub(crate) fn layout(&'static self, body: &AnyBody) -> Option<&'static Arc<Schema>> {
        let schema = self.schema()?;
        match self.agreement.load(Ordering::Relaxed) {
            AGREES => Some(schema),
            UNKNOWN => {
                let agrees = self.agrees(schema, body).unwrap_or(false);
                let agreement = if agrees { AGREES } else { DISAGREES };
                self.agreement.store(agreement, Ordering::Relaxed);
                agrees.then_some(schema)
            }
            _ => None,
        }
    }

    /// From now on its events travel with names.
    pub(crate) fn disagree(&self) {
        self.agreement.store(DISAGREES, Ordering::Relaxed);
    }

    fn agrees(&self, schema: &Schema, body: &AnyBody) -> Result<bool, Error> {
        let mut named = Builder::default();
        (self.emit)(body, Emit::new(&mut named, Rights::ALL))?;
        let mut out = Vec::new();
        let mut writer = positional::Writer {
            out: &mut out,
            rights: Rights::ALL,
            identity: true,
            variants: &schema.variants,
        };
        (self.write)(body, &mut writer)?;
        let mut reader = positional::Reader {
            bytes: Bytes::new(&out, "data-stream"),
            limits: Limits {
                bytes: out.len(),
                depth: DEPTH,
            },
            rights: Rights::ALL,
        };
        let read = positional::read(&schema.shape, &mut reader)?;
        reader.bytes.end()?;
        Ok(read.is_same(&named.take()))
    }

    /// Its name in Rust.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether bodies of this type are of the Rust type of this number.
    #[inline]
    pub(crate) fn has_id(&self, id: TypeId) -> bool {
        self.id == id
    }

    /// Whether bodies of this type are of the other too: because it is the same,
    /// or one that this one [extends](Described).
    #[must_use]
    pub fn is(&self, other: &Type) -> bool {
        let description = self.description.as_ref();
        std::ptr::eq(self, other)
            || self.id == other.id && self.definition.is_none()
            || description.is_some_and(|its| its.lineage.contains(&other.id))
    }

    /// What the type of the body extends, if it is of that type.
    pub(crate) fn find<'a>(&self, body: &'a AnyBody, of: TypeId) -> Option<&'a dyn Any> {
        (self.description.as_ref()?.find)(body, of)
    }

    /// The same event with a body of this type. An event that came from outside
    /// without a type gets one so; one that has the type, or one that extends it,
    /// stays as it is.
    ///
    /// Fields are found by their ids where both sides give them some, else by
    /// their names. An event of another type that extends this one is reduced to
    /// what it extends.
    ///
    /// # Errors
    /// [`Error::Body`] if the event does not say what the type needs,
    /// [`Error::Private`] if it sets a private field and the rights of whoever
    /// sent it do not allow that.
    pub fn adopt(&'static self, event: &Event, rights: Rights) -> Result<Event, Error> {
        if event.of().is(self) {
            return Ok(event.clone());
        }
        let value = event.value(Rights::ALL)?;
        let Some(schema) = event.schema() else {
            return (self.from_value)(self, event.header().clone(), &value, rights);
        };
        let here = self.schema().map(|schema| &schema.shape);
        let mut levels = described::levels(&schema.shape, &value);
        // A type extends what it extends: the level that extends as many others is
        // looked at first. The other levels may have fields of the same ids.
        let depth = here.map_or(0, |here| described::steps(here).len());
        let is_as_deep = |(there, _): &(&_, &_)| described::steps(there).len() == depth;
        let like = levels.iter().position(is_as_deep);
        let says_what_it_extends = self.description.is_some() || self.definition.is_some();
        if let Some(at) = like.filter(|_| says_what_it_extends) {
            levels[..=at].rotate_right(1);
        }
        let mut first_error = None;
        for (there, value) in levels {
            let is_related = here.is_none_or(|here| described::is_related(there, here));
            if is_related || described::parent(there).is_none() {
                let named = match here {
                    Some(here) => described::renamed(value, there, here),
                    None => value.clone(),
                };
                match (self.from_value)(self, event.header().clone(), &named, rights) {
                    Ok(event) => return Ok(event),
                    Err(error) => {
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
        Err(first_error.unwrap_or_else(|| Error::Body("it is of no such type".to_owned())))
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({})", self.name)
    }
}

/// Makes events of one type: a [`Type`] that is looked up once.
///
/// ```
/// # use std::sync::Arc;
/// # use milieu_transfer::{Header, Kind, Name, Origin, Stream, Time};
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Temperature { celsius: f64 }
///
/// let readings = Kind::<Temperature>::new();
/// let stream = Arc::new(Stream {
///     name: Name::parse("/weather/temperature")?,
///     origin: Origin("station-1".into()),
///     incarnation: 1,
/// });
/// let header = Header { stream, time: Time::from_seconds(0), sequence: 1, quality: None };
/// let event = readings.event(header, Temperature { celsius: 21.5 });
/// assert_eq!(event.get::<Temperature>().map(|it| it.celsius), Some(21.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Kind<T>(&'static Type, PhantomData<fn(T)>);

impl<T: Body> Kind<T> {
    /// The kind of events with these bodies.
    #[must_use]
    pub fn new() -> Kind<T> {
        Kind(Type::of::<T>(), PhantomData)
    }

    /// As [`new`](Kind::new), for a type with parameters that derives `Event`: ids
    /// of fields, and what it extends, are known from now on. Whoever makes or reads
    /// events of `Reading<f64>` does this before the first one. Of a type without
    /// parameters, `new` knows it too.
    #[must_use]
    pub fn described() -> Kind<T>
    where
        T: Described,
    {
        Kind(Type::described::<T>(), PhantomData)
    }

    pub(crate) fn of_type(of: &'static Type) -> Kind<T> {
        Kind(of, PhantomData)
    }

    /// An event.
    #[must_use]
    pub fn event(self, header: Header, body: T) -> Event {
        Event::with_type(header, self.0, body)
    }

    /// Its type.
    #[must_use]
    pub fn of(self) -> &'static Type {
        self.0
    }

    /// The same event with a body of this type; see [`Type::adopt`].
    ///
    /// # Errors
    /// As [`Type::adopt`].
    pub fn adopt(self, event: &Event, rights: Rights) -> Result<Event, Error> {
        self.0.adopt(event, rights)
    }
}

impl<T: Body> Default for Kind<T> {
    fn default() -> Kind<T> {
        Kind::new()
    }
}

impl<T> Clone for Kind<T> {
    fn clone(&self) -> Kind<T> {
        *self
    }
}

impl<T> Copy for Kind<T> {}

impl<T> fmt::Debug for Kind<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.0.name)
    }
}
