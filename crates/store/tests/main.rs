//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

mod before;
mod check;
mod formats_properties;
mod formats_transfer;
mod history;
mod ini;
mod ini_properties;
mod inspect;
#[cfg(feature = "json")]
mod json;
mod merge_properties;
mod migrate;
mod mounts;
#[cfg(all(feature = "json", feature = "toml"))]
mod moves;
mod schema;
mod secrets;
mod store;
#[cfg(feature = "toml")]
mod toml;
mod watch;
mod watch_random;
