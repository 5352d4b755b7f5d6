//! Events, and how they travel: values, types, and the transfer modes that a
//! subscriber may choose from.
//!
//! An [`Event`] has a name, a time of origin, an origin, a sequence number, a
//! quality, and a body of any type that `serde` knows. Where no Rust type is at
//! hand the body is a [`Value`].
//!
//! Properties kept:
//! - an event never changes; all receivers in a process share one allocation;
//! - nothing here reads a clock, opens a socket or starts a thread;
//! - no input of a decoder panics, allocates more than it has paid for with
//!   bytes, or recurses deeper than it was told.
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, sections
//! 3.1 (events) and 8 (transfer modes).

/// The guide, whose samples are tests.
#[cfg(all(doctest, feature = "json"))]
#[doc = include_str!("../../../docs/transfer.md")]
mod guide {}

mod base64;
mod cbor;
mod defined;
mod delta;
mod described;
mod duration;
mod emit;
mod envelope;
mod error;
mod event;
#[cfg(feature = "json")]
mod json;
mod kind;
mod limits;
#[cfg(feature = "messagepack")]
mod messagepack;
mod mode;
mod modes;
mod outlet;
mod positional;
mod press;
mod private;
mod read;
mod row;
mod schema;
mod select;
mod stream;
mod text;
mod time;
mod to_value;
mod top;
mod value;
#[cfg(feature = "xml")]
mod xml;

pub use cbor::Cbor;
pub use defined::{Named, Part};
pub use described::Described;
#[doc(hidden)]
pub use described::{Derived, Fact};
pub use error::Error;
pub use event::{Event, Header, Origin, Quality, Stream};
// `derive(Event)` says by it which types there are.
#[doc(hidden)]
pub use inventory;
#[cfg(feature = "json")]
pub use json::Json;
pub use kind::{Body, Kind, Type};
pub use limits::Limits;
#[cfg(feature = "messagepack")]
pub use messagepack::MessagePack;
pub use milieu_keys::Name;
pub use mode::{Decode, Encode, Mode};
pub use modes::{Modes, Offer, OfferError, is_media_type};
pub use outlet::{Outlet, ReceiverId};
pub use press::{Place, Press};
pub use private::{MayRead, MaySet, Private, Rights};
pub use row::{Row, Slot};
pub use schema::Schema;
pub use select::{Path, PathError, Selection, Step};
pub use stream::{DataStream, Delta, Receiver, Sender};
pub use text::TimeError;
pub use time::{Span, Time};
pub use value::{Map, Value};
#[cfg(feature = "xml")]
pub use xml::Xml;
