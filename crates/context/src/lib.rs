//! Layers, contexts, the coordinator and contextual values.
//!
//! A program's *environment* is a plain struct. A [`Context`] owns one and
//! dereferences to it, so that reading a contextual value is reading a field.
//! Switching a layer borrows the context mutably; the borrow checker therefore
//! carries the rule that nobody holds a reference across a switch.
//!
//! ```text
//!            Coordinator ── generation ── layer slots, key set (one each)
//!             ▲   publish      │ sync
//!             │                ▼
//!   Context = Environment (plain struct) + Core (frames, layers, root)
//! ```
//!
//! Properties that everything here keeps:
//!
//! - A read takes no lock, no atomic and no copy, strings included.
//! - What other threads do appears at `sync`, `activate` and `deactivate`,
//!   and never between (CoElektra, III-D).
//! - Whoever is behind by a switch or two reads one cache line and takes no lock.
//! - Publishing is one short critical section without allocation and without
//!   user code; its cost does not depend on how many contexts exist.
//! - The coordinator knows no list of contexts. A context that never
//!   synchronizes holds back nothing but the snapshot it has.
//! - No user code runs while a lock is held.

mod actions;
mod arena;
mod array;
mod assign;
mod back;
mod batch;
mod cascade;
mod context;
mod coordinator;
mod core;
mod elements;
mod entered;
mod environment;
mod erased;
mod error;
mod evaluate;
mod failure;
mod field;
mod forget;
mod frame;
mod hash;
mod hold;
mod layer;
mod layout;
mod map;
mod news;
mod part;
mod policy;
mod publish;
mod register;
mod replace;
mod resolve;
mod schema;
mod slice;
mod sync;
mod synchronize;
mod tags;
mod text;
mod trie;
mod wait;

// The tests beside the code measure out as those of its users do.
#[cfg(all(test, not(loom)))]
#[path = "../tests/support/size.rs"]
mod size;

pub use actions::{Activation, Registration};
pub use array::Array;
pub use context::{Context, ContextOptions};
pub use coordinator::Coordinator;
pub use entered::{Captured, Entered};
pub use environment::{Assign, Description, Descriptor, Environment, Identity, Value};
pub use erased::{Allowed, Erased};
pub use error::{Invalid, KeyError, OpenError, SwitchError, UnknownLayer};
#[doc(hidden)]
pub use failure::{Failed, NOWHERE, waiting};
#[doc(hidden)]
pub use field::Texts;
pub use field::{Field, Kind};
pub use hold::{Entry, Held};
pub use layer::{
    Each, EachNamed, Fixed, Following, Layer, LayerSet, Named, Scope, Switch, ThreadLayer,
    ValueLayer, Without, each, each_named, value, without,
};
pub use layout::{Layout, LayoutError, LayoutValue};
pub use part::Part;
pub use policy::{NoContext, Policy, ReadOnly, SingleThread, Threads, Writable};
pub use replace::{Content, Difference};
pub use text::Text;
pub use wait::Changed;

#[doc(hidden)]
pub use hash::fix_keys;
