//! Types that a program defines while it runs, as one in C does: many types whose
//! bodies are of one Rust type.

use std::any::TypeId;
use std::sync::Arc;

use crate::error::Error;
use crate::event::{Event, Header};
use crate::kind::{Body, Kind, Type};
use crate::schema::{Field, Shape};
use crate::value::Value;

/// What a body or a part of one looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// True or false.
    Bool,
    /// Whole numbers of so many bits.
    I8,
    /// See [`I8`](Part::I8).
    I16,
    /// See [`I8`](Part::I8).
    I32,
    /// See [`I8`](Part::I8).
    I64,
    /// Whole numbers of so many bits that are not negative.
    U8,
    /// See [`U8`](Part::U8).
    U16,
    /// See [`U8`](Part::U8).
    U32,
    /// See [`U8`](Part::U8).
    U64,
    /// Numbers of single precision.
    F32,
    /// Numbers of double precision.
    F64,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// A point in time.
    Time,
    /// A distance in time.
    Span,
    /// One of these words.
    Choice(Vec<Arc<str>>),
    /// Several of one kind.
    List(Box<Part>),
    /// What may be missing.
    Optional(Box<Part>),
    /// What only those receive who have the right to, and may be missing for others.
    Private(Box<Part>),
    /// Parts with names.
    Fields(Vec<Named>),
}

/// A part with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What it is called.
    pub name: Arc<str>,
    /// A number that stays the same whatever it is called.
    pub id: Option<u32>,
    /// Whether it holds what the whole extends, so that events of the whole are
    /// also events of the type of this part.
    pub extends: bool,
    /// What it is.
    pub part: Part,
}

/// What a program says of a type.
pub(crate) struct Definition {
    pub shape: Shape,
    make: Box<Make>,
}

type Make = dyn Fn(&'static Type, Header, &Value) -> Result<Event, Error> + Send + Sync;

impl Definition {
    pub fn make(&self, of: &'static Type, header: Header, value: &Value) -> Result<Event, Error> {
        (self.make)(of, header, value)
    }
}

impl<T: Body> Kind<T> {
    /// A type that is defined now, of which there may be many with bodies of one
    /// Rust type: each body knows of which it is. The Rust type serializes as
    /// `part` says, and `make` makes a body of a value that does. What makes one is
    /// kept for the rest of the program.
    #[must_use]
    pub fn defined(
        name: &'static str,
        part: &Part,
        make: impl Fn(&Value) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Kind<T> {
        let definition = Definition {
            shape: part.shape(),
            make: Box::new(move |of, header, value| Ok(Event::with_type(header, of, make(value)?))),
        };
        let id = TypeId::of::<T>();
        Kind::of_type(Box::leak(Box::new(Type::defined::<T>(
            name, id, definition,
        ))))
    }
}

impl Part {
    fn shape(&self) -> Shape {
        match self {
            Part::Bool => Shape::Bool,
            Part::I8 => Shape::I8,
            Part::I16 => Shape::I16,
            Part::I32 => Shape::I32,
            Part::I64 => Shape::I64,
            Part::U8 => Shape::U8,
            Part::U16 => Shape::U16,
            Part::U32 => Shape::U32,
            Part::U64 => Shape::U64,
            Part::F32 => Shape::F32,
            Part::F64 => Shape::F64,
            Part::Text => Shape::Text,
            Part::Bytes => Shape::Bytes,
            Part::Time => Shape::Time,
            Part::Span => Shape::Span,
            Part::Choice(words) => Shape::Enum(words.iter().map(variant).collect()),
            Part::List(item) => Shape::List(Box::new(item.shape())),
            Part::Optional(part) => Shape::Option(Box::new(part.shape())),
            Part::Private(part) => Shape::Private(Box::new(part.shape())),
            Part::Fields(fields) => Shape::Struct(fields.iter().map(Named::field).collect()),
        }
    }
}

fn variant(word: &Arc<str>) -> crate::schema::Variant {
    crate::schema::Variant {
        name: Arc::clone(word),
        content: None,
    }
}

impl Named {
    fn field(&self) -> Field {
        Field {
            name: Arc::clone(&self.name),
            id: self.id,
            extends: self.extends,
            shape: self.part.shape(),
        }
    }
}
