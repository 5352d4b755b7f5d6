//! Where this crate takes its concurrency primitives from, so that a model
//! checker can take their place.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicIsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicIsize, Ordering},
};
