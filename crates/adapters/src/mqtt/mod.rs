//! Streams from an MQTT broker and to it, with Home Assistant's discovery.
//!
//! ```text
//!  topics that filters cover ──▶ events of names, one for each topic
//!  events of flows ──────────▶ topics, in a transfer mode, retained or not
//!  devices ──────────────────▶ <prefix>/device/<object id>/config, retained
//!  online, offline ──────────▶ the availability topic; `offline` is the last will
//! ```
//!
//! `docs/foreign.md` is the guide.
//!
//! Properties kept:
//! - a broker that is down keeps nothing from starting: the status says so, and
//!   the connection is tried again until it holds;
//! - while it is down, events for it wait in a queue with a bound, whose losses
//!   are counted, and keep nobody waiting;
//! - what a broker sends is looked at as if it were an enemy's: topics that no
//!   filter covers, topics that are no names, more names than agreed, payloads
//!   that are too large or too deep are discarded and counted;
//! - `#` and `+` cover no topic that begins with `$`;
//! - devices and entities that a program no longer has are taken back when it
//!   starts again.
//!
//! It speaks MQTT 3.1.1. Connections are not encrypted: put a broker or a tunnel
//! with TLS on this host where the network is not trusted.

mod client;
mod discovery;
mod inbox;
mod outbox;
mod settings;
mod topic;

pub use client::{Connection, connect};
pub use discovery::{Device, Entity};
pub use rumqttc::QoS;
pub use settings::{Bounds, CannotConnect, Input, Output, Payload, Settings};
pub use topic::covers;
