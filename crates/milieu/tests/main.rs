//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

#[path = "../../context/tests/cases/broken.rs"]
mod broken;
mod cases;
#[cfg(feature = "stream")]
mod control;
mod export;
#[cfg(feature = "history")]
mod history;
#[cfg(feature = "stream")]
mod keep;
mod layers;
mod open;
mod persist;
mod removed;
mod secrets;
#[cfg(feature = "stream")]
mod streams;
mod support;
mod watch;
