//! Policies: what a context may do, decided when the program is compiled.
//!
//! A policy is a type parameter of [`Context`](crate::Context) and costs
//! nothing at run time (CoElektra, III-G). Own ones are a few lines:
//!
//! ```
//! use milieu_context::Policy;
//! /// Values change, layers don't, and only this thread looks at them.
//! struct Plain;
//! impl Policy for Plain {
//!     const LAYERS: bool = false;
//!     const SHARED: bool = false;
//! }
//! impl milieu_context::Writable for Plain {}
//! ```

use std::marker::PhantomData;

/// What a context does.
pub trait Policy: 'static {
    /// Whether layers can be entered and activated. Without, both do nothing.
    const LAYERS: bool = true;
    /// Whether the context synchronizes with others.
    const SHARED: bool = true;
}

/// A policy whose contexts may assign values.
#[diagnostic::on_unimplemented(
    message = "a context with policy `{Self}` cannot assign values",
    label = "this context's policy is read-only",
    note = "use a context with another policy, such as the default `Threads`"
)]
pub trait Writable: Policy {}

/// The default: layers, and synchronization between threads.
pub enum Threads {}
impl Policy for Threads {}
impl Writable for Threads {}

/// One thread alone: layers, and no synchronization at all (Elektra before CoElektra).
pub enum SingleThread {}
impl Policy for SingleThread {
    const SHARED: bool = false;
}
impl Writable for SingleThread {}

/// No context: values are what they were at the start, switches do nothing.
/// The control in measurements.
pub enum NoContext {}
impl Policy for NoContext {
    const LAYERS: bool = false;
    const SHARED: bool = false;
}
impl Writable for NoContext {}

/// As `P`, but no value can be assigned.
pub struct ReadOnly<P = Threads>(PhantomData<P>);
impl<P: Policy> Policy for ReadOnly<P> {
    const LAYERS: bool = P::LAYERS;
    const SHARED: bool = P::SHARED;
}
