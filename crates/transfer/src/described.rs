//! Types that say more of themselves than `serde` knows: ids that stay the same,
//! and what they extend.

use std::any::{Any, TypeId};

use crate::kind::{AnyBody, Body, of_type};
use crate::schema::{Field, Shape};
use crate::value::{Map, Value};

/// A type that `#[derive(Event)]` describes.
///
/// ```
/// # use milieu_macros::Event;
/// # use milieu_transfer::{Event, Header, Kind, Name, Origin, Stream, Time};
/// # use serde::{Deserialize, Serialize};
/// # use std::sync::Arc;
/// #[derive(Serialize, Deserialize, Event)]
/// # #[event(crate = milieu_transfer)]
/// struct Temperature {
///     #[event(id = 1)]
///     degrees: f64,
/// }
///
/// #[derive(Serialize, Deserialize, Event)]
/// # #[event(crate = milieu_transfer)]
/// struct UnitTemperature {
///     #[event(extends)]
///     temperature: Temperature,
///     #[event(id = 1)]
///     unit: String,
/// }
///
/// # let stream = Arc::new(Stream { name: Name::root(), origin: Origin("o".into()), incarnation: 1 });
/// # let header = Header { stream, time: Time::from_seconds(0), sequence: 1, quality: None };
/// let readings = Kind::<UnitTemperature>::new();
/// let temperature = Temperature { degrees: 21.5 };
/// let event = readings.event(header, UnitTemperature { temperature, unit: "°C".into() });
/// // A subscriber to temperatures receives it too.
/// assert_eq!(event.get::<Temperature>().map(|it| it.degrees), Some(21.5));
/// ```
///
/// A field with an `id` may be renamed: receivers with another version of the
/// type find it by its id. Of two versions only one may have a field that the
/// other lacks, where `serde` has a default for it. What a type extends it holds
/// in a field; so the parent may grow, and its ids never meet those of the child.
///
/// Nobody has to say that a type derives it: whatever makes or reads events of the
/// type finds out. Only a type with parameters has to be made known, by
/// [`Kind::described`](crate::Kind::described).
pub trait Described: Body {
    /// What the derive knows of the fields that `serde` reads, in their order.
    #[doc(hidden)]
    fn facts() -> Vec<Fact>;

    /// This or what it extends, if it is of that type.
    #[doc(hidden)]
    fn find(&self, of: TypeId) -> Option<&dyn Any>;

    /// This type and those that it extends.
    #[doc(hidden)]
    fn lineage(types: &mut Vec<TypeId>);
}

/// What the derive knows of a field.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Fact {
    /// A number that stays the same whatever the field is called.
    pub id: Option<u32>,
    /// The facts of what the struct extends, if this field holds it.
    pub extends: Option<Vec<Fact>>,
}

/// All that the derive knows of a type.
pub(crate) struct Description {
    pub facts: Vec<Fact>,
    pub find: fn(&AnyBody, TypeId) -> Option<&dyn Any>,
    pub lineage: Vec<TypeId>,
}

impl Description {
    pub fn of<T: Described>() -> Description {
        let mut lineage = Vec::new();
        T::lineage(&mut lineage);
        Description {
            facts: T::facts(),
            find: |body, of| of_type::<T>(body).find(of),
            lineage,
        }
    }
}

/// A type that derives `Event`, as the program knows it from its beginning. A type
/// with parameters is many, none of which the derive can name.
#[doc(hidden)]
pub struct Derived {
    id: fn() -> TypeId,
    describe: fn() -> Description,
}

inventory::collect!(Derived);

impl Derived {
    /// That type.
    #[must_use]
    pub const fn new<T: Described>() -> Derived {
        Derived {
            id: TypeId::of::<T>,
            describe: Description::of::<T>,
        }
    }
}

/// What the derive knows of a type, if it has said so.
pub(crate) fn derived(id: TypeId) -> Option<Description> {
    let mut all = inventory::iter::<Derived>.into_iter();
    all.find(|derived| (derived.id)() == id)
        .map(|derived| (derived.describe)())
}

/// Puts what the derive knows into what was traced. Where they do not fit each
/// other, because `serde` was told to read other fields, that is left as it is.
pub(crate) fn annotate(shape: &mut Shape, facts: &[Fact]) {
    let Shape::Struct(fields) = shape else {
        return;
    };
    if fields.len() != facts.len() {
        return;
    }
    for (field, fact) in fields.iter_mut().zip(facts) {
        field.id = fact.id;
        if let Some(facts) = &fact.extends {
            field.extends = true;
            annotate(&mut field.shape, facts);
        }
    }
}

/// The field that holds what a struct extends.
pub(crate) fn parent(shape: &Shape) -> Option<&Field> {
    match shape {
        Shape::Struct(fields) => fields.iter().find(|field| field.extends),
        _ => None,
    }
}

/// The fields that lead from a type to what it extends, the parent's first.
pub(crate) fn parents(shape: &Shape) -> impl Iterator<Item = &Field> {
    std::iter::successors(parent(shape), |field| parent(&field.shape))
}

/// The names of these.
pub(crate) fn steps(shape: &Shape) -> Vec<&str> {
    parents(shape).map(|field| &*field.name).collect()
}

/// A body and what it extends, the outermost first, as far as the value goes.
pub(crate) fn levels<'a>(shape: &'a Shape, value: &'a Value) -> Vec<(&'a Shape, &'a Value)> {
    let mut levels = vec![(shape, value)];
    while let Some((shape, value)) = levels.last().and_then(|(shape, value)| {
        let field = parent(shape)?;
        Some((&field.shape, value.field(&field.name)?))
    }) {
        levels.push((shape, value));
    }
    levels
}

/// A shape of which nothing is known but the steps to what it extends.
pub(crate) fn of_steps(steps: &[Value]) -> Shape {
    steps.iter().rev().fold(Shape::Any, |shape, step| {
        let Value::Text(name) = step else {
            return shape;
        };
        Shape::Struct(vec![Field {
            name: name.clone(),
            id: None,
            extends: true,
            shape,
        }])
    })
}

/// The value with the names that its fields have here, where the ids say that
/// they were called otherwise there.
pub(crate) fn renamed(value: &Value, there: &Shape, here: &Shape) -> Value {
    let (Value::Map(map), Shape::Struct(there), Shape::Struct(here)) = (value, there, here) else {
        return value.clone();
    };
    let entries = map.iter().map(|(key, value)| {
        let field = there
            .iter()
            .find(|field| *key == Value::Text(field.name.clone()));
        let known = field.and_then(|field| {
            let same_id = |other: &&Field| field.id.is_some() && other.id == field.id;
            let same_name = |other: &&Field| {
                other.name == field.name && (other.id.is_none() || field.id.is_none())
            };
            let known = here.iter().find(same_id);
            Some((field, known.or_else(|| here.iter().find(same_name))?))
        });
        match known {
            Some((field, known)) => (
                Value::Text(known.name.clone()),
                renamed(value, &field.shape, &known.shape),
            ),
            None => (key.clone(), value.clone()),
        }
    });
    // A field that is unknown here may have the name that another one has now.
    let mut renamed = Map::default();
    for (key, value) in entries {
        if renamed.get(&key).is_none() {
            renamed.set(key, value);
        }
    }
    renamed.into()
}

/// Whether a value of that shape could be meant for this one: they share a field.
pub(crate) fn is_related(there: &Shape, here: &Shape) -> bool {
    match (there, here) {
        (Shape::Struct(there), Shape::Struct(here)) => {
            let is_same = |a: &Field, b: &Field| a.name == b.name || a.id.is_some() && a.id == b.id;
            here.is_empty() || there.iter().any(|a| here.iter().any(|b| is_same(a, b)))
        }
        _ => true,
    }
}
