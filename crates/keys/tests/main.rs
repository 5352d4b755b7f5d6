//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

mod key_set;
mod migration;
mod options;
mod rules;
mod specification;
