//! What the compiler generates: the environment, its table and its markers.

use std::any::TypeId;

use crate::{Field, Kind};

/// One contextual value of an environment: its name and where its field is.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The name with placeholders: `/sw/pi/%session%/language`.
    pub pattern: &'static str,
    /// Offset of the field from the start of the environment, in bytes.
    pub offset: usize,
    /// The field's representation.
    pub kind: Kind,
    /// The specification's metadata: type, default, checks, description, …
    pub metadata: &'static [(&'static str, &'static str)],
}

/// A plain struct whose fields are contextual values.
///
/// Generated from a specification, or derived on the user's own struct.
///
/// # Safety
///
/// `Self` consists of the fields that `VALUES` describes and of nothing else:
/// each offset and kind is that of one field, no two overlap, and every field
/// is described. For [`Kind::Enum`], and for arrays of that kind, the metadata
/// lists exactly the enum's variants, in the order of their discriminants.
/// Copying the bytes of `Self` is then copying the values, which
/// [`Context::fork`](crate::Context::fork) does.
pub unsafe trait Environment: Sized + Send + Sync + 'static {
    /// All values, in the order of the specification.
    const VALUES: &'static [Descriptor];

    /// An environment that holds every default.
    fn initial() -> Self;

    /// The names of keys that are no more, and why: for those who still have
    /// them in their files.
    #[must_use]
    fn removed() -> Vec<(String, &'static str)> {
        Vec::new()
    }
}

/// What an environment says of itself, without its type.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub(crate) identity: Identity,
    pub(crate) values: &'static [Descriptor],
    pub(crate) removed: fn() -> Vec<(String, &'static str)>,
}

/// What tells one environment from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity(Known);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    Type(TypeId),
    /// Where a [`Layout`](crate::Layout) is; it stays there.
    Layout(usize),
}

impl Description {
    /// That of a type.
    #[must_use]
    pub fn of<E: Environment>() -> Self {
        Description {
            identity: Identity(Known::Type(TypeId::of::<E>())),
            values: E::VALUES,
            removed: E::removed,
        }
    }

    /// That of a layout at this place, which is known by it.
    pub(crate) fn of_layout(place: usize, values: &'static [Descriptor]) -> Self {
        Description {
            identity: Identity(Known::Layout(place)),
            values,
            removed: Vec::new,
        }
    }

    /// What tells it from others.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// All values, in the order of the specification.
    #[must_use]
    pub fn values(&self) -> &'static [Descriptor] {
        self.values
    }

    /// The names of keys that are no more, and why.
    #[must_use]
    pub fn removed(&self) -> Vec<(String, &'static str)> {
        (self.removed)()
    }
}

/// A marker type that names one value of an environment: `at::sw::pi::language`.
///
/// # Safety
///
/// `Environment::VALUES[INDEX]` describes a field of type `Type`.
pub unsafe trait Value: 'static {
    /// The environment the value belongs to.
    type Environment: Environment;
    /// The type of the field.
    type Type: Field;
    /// The position in [`Environment::VALUES`].
    const INDEX: usize;
}

/// A value that the program may assign.
///
/// The compiler does not implement it for values that the specification marks
/// `readonly`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is read-only and cannot be assigned",
    label = "this value is marked `readonly` in its specification",
    note = "remove `readonly` from the specification if the program is meant to change it"
)]
pub trait Assign: Value {}
