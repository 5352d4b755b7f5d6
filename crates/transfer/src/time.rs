//! Points in time and distances between them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// A point in time: nanoseconds since 1970-01-01 00:00:00 UTC without leap
/// seconds, from the year 1677 to 2262.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// Before every other point in time.
    pub const MIN: Time = Time(i64::MIN);
    /// After every other point in time.
    pub const MAX: Time = Time(i64::MAX);

    /// From nanoseconds since 1970.
    #[must_use]
    pub const fn from_nanoseconds(nanoseconds: i64) -> Time {
        Time(nanoseconds)
    }

    /// From seconds since 1970; what lies outside becomes the nearest that can
    /// be said.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Time {
        Time(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since 1970.
    #[must_use]
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// The start of the span of this length, counted from 1970, that the time
    /// lies in: windows that are aligned to the clock begin there. A length of
    /// zero or less leaves the time as it is.
    #[must_use]
    pub const fn aligned(self, length: Span) -> Time {
        if length.0 <= 0 {
            return self;
        }
        Time(self.0.saturating_sub(self.0.rem_euclid(length.0)))
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Time {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Time(Span::from(since).0),
            Err(before) => Time(Span::from(before.duration()).0.saturating_neg()),
        }
    }
}

impl Add<Span> for Time {
    type Output = Time;

    /// Stays at the ends of what can be said.
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;

    /// Stays at the ends of what can be said.
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Sub for Time {
    type Output = Span;

    /// Stays at the ends of what can be said.
    fn sub(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

/// The names under which our serializers recognize them.
pub(crate) const TIME: &str = "milieu::Time";
pub(crate) const SPAN: &str = "milieu::Span";

macro_rules! serde_as {
    ($type:ident, $name:expr) => {
        /// The text for formats that people read, nanoseconds for others. Our own
        /// transfer modes have a form for it each.
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_newtype_struct($name, &Plain(*self))
            }
        }

        impl Serialize for Plain<$type> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(&self.0)
                } else {
                    serializer.serialize_i64(self.0.nanoseconds())
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_newtype_struct($name, Plain(PhantomData::<$type>))
            }
        }

        impl<'de> Visitor<'de> for Plain<PhantomData<$type>> {
            type Value = $type;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<$type, D::Error> {
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(self)
                } else {
                    deserializer.deserialize_i64(self)
                }
            }

            fn visit_i64<E: Error>(self, nanoseconds: i64) -> Result<$type, E> {
                Ok($type::from_nanoseconds(nanoseconds))
            }

            fn visit_u64<E: Error>(self, nanoseconds: u64) -> Result<$type, E> {
                i64::try_from(nanoseconds)
                    .map($type::from_nanoseconds)
                    .map_err(E::custom)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                text.parse().map_err(E::custom)
            }
        }
    };
}

/// What stands inside the name.
struct Plain<T>(T);

serde_as!(Time, TIME);
serde_as!(Span, SPAN);

/// A distance in time, in nanoseconds; it may be negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No distance.
    pub const ZERO: Span = Span(0);

    /// From nanoseconds.
    #[must_use]
    pub const fn from_nanoseconds(nanoseconds: i64) -> Span {
        Span(nanoseconds)
    }

    /// From seconds; what lies outside becomes the nearest that can be said.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Span {
        Span(seconds.saturating_mul(1_000_000_000))
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// In seconds.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "53 bits of it are what is asked for"
    )]
    pub const fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Span {
        Span(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}
