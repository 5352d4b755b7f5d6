//! Streams over HTTP, for subscribers that are no Rust programs: browsers,
//! scripts, programs in other languages.
//!
//! | request | answer |
//! |---|---|
//! | `GET /events?flow=…` | events as they come: server-sent events, or lines of JSON |
//! | `GET /socket?flow=…` | events as they come, by a WebSocket |
//! | `GET /latest?flow=…` | one event: the latest |
//! | `POST /events?name=…` | the bodies that were sent become events of this name |
//! | `POST /events` | the events that were sent, under the names that they say |
//! | `GET /ping` | always 200 |
//! | `GET /ready` | 200 if inputs and outputs are connected, 503 if not |
//! | `GET /metrics` | what was counted, for Prometheus |
//!
//! A flow is text, as in `/weather/temperature | filter value > 32`; `mode=`
//! chooses the transfer mode. `docs/foreign.md` is the guide.
//!
//! Properties kept:
//! - it listens on loopback alone unless told otherwise, and answers nobody
//!   without a token but `/ping`, `/ready` and the pages of the program;
//! - a browser on a page of somebody else cannot use it: not under another name
//!   for its address (the `Host` header), and not across origins (`Origin`);
//! - connections, queues, heads, bodies, names and operators are bounded, and
//!   what is beyond a bound is refused and counted;
//! - a subscriber that is slow loses events of its own, which are counted, and
//!   keeps nobody waiting.
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, section
//! 8 (subscriber choice).

mod access;
mod answer;
mod frames;
mod gate;
mod metrics;
mod pages;
mod presses;
mod push;
mod refused;
mod server;
mod settings;
mod wish;

pub use access::{Access, Token, WeakToken};
pub use pages::Page;
pub use server::{Serving, serve};
pub use settings::{Bounds, Settings};
