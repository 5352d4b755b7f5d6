//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

#[cfg(all(feature = "json", feature = "messagepack", feature = "xml"))]
mod goldens;
#[cfg(feature = "json")]
mod json;
#[cfg(all(feature = "json", feature = "messagepack", feature = "xml"))]
mod notations;
mod outlet;
mod press;
mod reading;
mod sample;
mod stream;
