//! Kinds of values, which the checker reasons with.

use std::fmt;

use milieu_transfer::{Slot, Value};

/// A kind of values: CEL's types, without what lists and maps hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A whole number of 64 bits.
    Int,
    /// A whole number of 64 bits that is not negative.
    Uint,
    /// A number of double precision.
    Double,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// A point in time.
    Time,
    /// A distance in time.
    Span,
    /// A list.
    List,
    /// A map or a struct.
    Map,
    /// A type, as `type(x)` gives it.
    Type,
    /// Known only when the expression runs.
    Dyn,
}

/// Marks a shared value that stands for a type: the values of expressions have
/// no other place for one, and no event has so many shared values.
const TYPE: u32 = u32::MAX;

impl Kind {
    const NAMED: [(Kind, &'static str); 13] = [
        (Kind::Null, "null_type"),
        (Kind::Bool, "bool"),
        (Kind::Int, "int"),
        (Kind::Uint, "uint"),
        (Kind::Double, "double"),
        (Kind::Text, "string"),
        (Kind::Bytes, "bytes"),
        (Kind::Time, "google.protobuf.Timestamp"),
        (Kind::Span, "google.protobuf.Duration"),
        (Kind::List, "list"),
        (Kind::Map, "map"),
        (Kind::Type, "type"),
        (Kind::Dyn, "dyn"),
    ];

    /// The kind that a type's name in an expression means.
    pub(crate) fn named(name: &str) -> Option<Kind> {
        let mut named = Kind::NAMED.iter().filter(|(kind, _)| *kind != Kind::Dyn);
        named
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| *kind)
    }

    /// The type's name in CEL.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = Kind::NAMED.iter().find(|(kind, _)| *kind == self);
        known.map_or("dyn", |(_, name)| name)
    }

    /// The kind of a value.
    #[must_use]
    pub fn of(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Uint(_) => Kind::Uint,
            Value::Double(_) => Kind::Double,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::Time(_) => Kind::Time,
            Value::Span(_) => Kind::Span,
            Value::List(_) => Kind::List,
            Value::Map(_) => Kind::Map,
            Value::Shared(TYPE, _) => Kind::Type,
            Value::Shared(_, value) => Kind::of(value),
            Value::Private(_) | Value::Link(_) => Kind::Dyn,
        }
    }

    /// The kind of what a slot holds; none where it holds nothing.
    pub(crate) fn of_slot(slot: Slot<'_>) -> Option<Kind> {
        Some(match slot {
            Slot::Missing => return None,
            Slot::Null => Kind::Null,
            Slot::Bool(_) => Kind::Bool,
            Slot::Int(_) => Kind::Int,
            Slot::Uint(_) => Kind::Uint,
            Slot::Double(_) => Kind::Double,
            Slot::Time(_) => Kind::Time,
            Slot::Span(_) => Kind::Span,
            Slot::Text(_) => Kind::Text,
            Slot::Bytes(_) => Kind::Bytes,
            Slot::Value(value) => Kind::of(value),
        })
    }

    /// The value that stands for this type.
    pub(crate) fn value(self) -> Value {
        Value::Shared(TYPE, Value::from(self.name()).into())
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Uint | Kind::Double)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Time => "timestamp",
            Kind::Span => "duration",
            Kind::Null => "null",
            other => other.name(),
        })
    }
}

/// The value itself, if it is one that others refer to.
pub(crate) fn unshared(value: &Value) -> &Value {
    match value {
        Value::Shared(number, inner) if *number != TYPE => unshared(inner),
        value => value,
    }
}

/// What fields of events are: known before the first event comes, or not.
#[derive(Clone, Debug, Default)]
pub struct Types {
    fields: Vec<(String, Kind)>,
    is_closed: bool,
}

/// The parts of the header.
const HEADER: [(&str, Kind); 7] = [
    ("event.name", Kind::Text),
    ("event.time", Kind::Time),
    ("event.sequence", Kind::Int),
    ("event.origin", Kind::Text),
    ("event.age", Kind::Span),
    ("event.accuracy", Kind::Double),
    ("event.failure", Kind::Text),
];

impl Types {
    /// There are fields of which nothing is known.
    #[must_use]
    pub fn open() -> Types {
        Types::default()
    }

    /// There are only the fields that are named.
    #[must_use]
    pub fn closed() -> Types {
        Types {
            is_closed: true,
            ..Types::default()
        }
    }

    /// Adds a field by its path, such as `position.lat`; what stands below a
    /// list, a map or something dynamic need not be named.
    #[must_use]
    pub fn field(mut self, path: impl Into<String>, kind: Kind) -> Types {
        self.fields.push((path.into(), kind));
        self
    }

    fn known(&self) -> impl Iterator<Item = (&str, Kind)> {
        let fields = self.fields.iter().map(|(path, kind)| (&**path, *kind));
        fields.chain(HEADER)
    }

    /// The kind of a field; none if there is no such field.
    pub(crate) fn of(&self, path: &str) -> Option<Kind> {
        if let Some((_, kind)) = self.known().find(|(known, _)| *known == path) {
            return Some(kind);
        }
        if let Some(below) = path.strip_prefix("value.") {
            return self.of(below);
        }
        let is_below = |path: &str, above: &str| {
            let rest = path.strip_prefix(above);
            rest.is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        if self.known().any(|(known, _)| is_below(known, path)) {
            return Some(Kind::Map);
        }
        let holds = |kind| matches!(kind, Kind::List | Kind::Map | Kind::Dyn);
        let is_open = !self.is_closed
            || path == "value"
            || path.starts_with("value[")
            || self
                .known()
                .any(|(known, kind)| holds(kind) && is_below(path, known));
        is_open.then_some(Kind::Dyn)
    }

    /// The paths of all fields.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.known().map(|(path, _)| path)
    }
}
