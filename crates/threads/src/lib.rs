//! The right core time and the right stack for every thread, on unmodified systems.
//!
//! Thread Evolution Kit: attributes say what a thread is for; the CPU mediator
//! moves threads between the fast and the lazy region; the stack tuner learns how
//! much stack each needs; the thread information table tells all of it, also to
//! other processes.
#![no_std]
// Under the model checker only what threads share is looked at.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(any(test, loom))]
extern crate std;

mod action;
pub mod attributes;
#[cfg(not(loom))]
pub mod device;
#[cfg(not(loom))]
pub mod host;
pub mod kernel;
pub mod loader;
#[cfg(not(loom))]
pub mod lock;
pub mod mediator;
pub mod packet;
#[cfg(not(loom))]
pub mod program;
pub mod promise;
#[cfg(not(loom))]
pub mod run;
#[cfg(not(loom))]
pub mod rung;
pub mod stack;
mod sync;
pub mod table;
mod visit;
