//! Private fields: what only those with the right to read it receive, and only
//! those with the right to set it can send.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};

/// What a receiver may read or a sender may set beyond what is public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rights {
    read: bool,
    set: bool,
}

impl Rights {
    /// Only what is public.
    pub const NONE: Rights = Rights {
        read: false,
        set: false,
    };
    /// Private fields may be read.
    pub const READ: Rights = Rights {
        read: true,
        set: false,
    };
    /// Private fields may be set from outside.
    pub const SET: Rights = Rights {
        read: false,
        set: true,
    };
    /// Private fields may be read and set from outside.
    pub const ALL: Rights = Rights {
        read: true,
        set: true,
    };

    /// The right to read private fields, if it is among these.
    #[must_use]
    pub fn may_read(self) -> Option<MayRead> {
        self.read.then_some(MayRead(()))
    }

    /// The right to set private fields, if it is among these.
    #[must_use]
    pub fn may_set(self) -> Option<MaySet> {
        self.set.then_some(MaySet(()))
    }
}

/// The right to read private fields; [`Rights::may_read`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct MayRead(());

/// The right to set private fields; [`Rights::may_set`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct MaySet(());

/// A private field of an event.
///
/// It can be read only with a right. Transfer modes give it to receivers who
/// have that right; serializers that know nothing of rights write it as
/// nothing, and deserializers that know nothing of them read only nothing.
///
/// ```
/// # use milieu_transfer::{Private, Rights};
/// let pulse = Private::new(71);
/// let right = Rights::READ.may_read().expect("it is in these rights");
/// assert_eq!(pulse.open(right), Some(&71));
/// assert_eq!(format!("{pulse:?}"), "Private(..)");
/// ```
#[derive(Clone, PartialEq)]
pub struct Private<T>(Option<T>);

impl<T> Private<T> {
    /// A private field with this content.
    pub const fn new(content: T) -> Private<T> {
        Private(Some(content))
    }

    /// A private field whose content has not come, as receivers without the
    /// right have it.
    #[must_use]
    pub const fn absent() -> Private<T> {
        Private(None)
    }

    /// The content; nothing where it has not come.
    #[must_use]
    pub fn open(&self, _right: MayRead) -> Option<&T> {
        self.0.as_ref()
    }

    /// Sets the content.
    pub fn set(&mut self, content: T, _right: MaySet) {
        self.0 = Some(content);
    }

    /// Whether the content has come.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.is_some()
    }
}

impl<T> fmt::Debug for Private<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Private(..)")
    }
}

/// What deserializers are told when they may not set a private field.
pub(crate) const DENIED: &str = "a private field cannot be set without the right to";

/// The name under which our serializers recognize a private field.
pub(crate) const PRIVATE: &str = "milieu::Private";

thread_local! {
    /// Set by our serializers and deserializers at the moment in which they
    /// call for the content, and taken at once: whoever calls for it otherwise
    /// finds it unset.
    static OPENED: Cell<bool> = const { Cell::new(false) };
}

/// The next private content that is called for in this thread is given.
pub(crate) fn open_next() {
    OPENED.set(true);
}

/// Nothing that was opened stays so.
pub(crate) fn close() {
    OPENED.set(false);
}

/// Content that is written only to whoever opened it.
pub(crate) struct Sealed<T>(pub(crate) T);

impl<T: Serialize> Serialize for Sealed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if OPENED.take() {
            self.0.serialize(serializer)
        } else {
            serializer.serialize_none()
        }
    }
}

impl<T: Serialize> Serialize for Private<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(content) => serializer.serialize_newtype_struct(PRIVATE, &Sealed(content)),
            None => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Private<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An option, so that a field that was left out is absent and no error.
        deserializer.deserialize_option(Opened(PhantomData))
    }
}

struct Opened<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Opened<T> {
    type Value = Private<T>;

    // The tracer of schemas knows private fields by this text.
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PRIVATE)
    }

    fn visit_unit<E>(self) -> Result<Private<T>, E> {
        Ok(Private(None))
    }

    fn visit_none<E>(self) -> Result<Private<T>, E> {
        Ok(Private(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Private<T>, D::Error> {
        if !OPENED.take() {
            return Err(D::Error::custom(DENIED));
        }
        T::deserialize(deserializer).map(|content| Private(Some(content)))
    }
}
