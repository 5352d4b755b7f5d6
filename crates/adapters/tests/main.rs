//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

mod broker;
mod catalogue;
mod client;
mod command;
mod files;
#[cfg(feature = "gpio")]
mod gpio;
mod guide;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_own;
#[cfg(feature = "http")]
mod http_rights;
#[cfg(feature = "http")]
mod http_shared;
mod machine;
#[cfg(feature = "mqtt")]
mod mqtt;
mod nmea;
mod replay;
mod serial;
mod support;
mod timer;
