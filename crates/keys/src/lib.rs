//! Names, placeholders, key sets, types and checks, and the specification text.
//!
//! Everything here is pure: no file is read, nothing is printed, no clock is
//! asked. Run times and compilers share this vocabulary and nothing else.

pub mod key_set;
pub mod migration;
pub mod name;
pub mod options;
pub mod pattern;
pub mod rules;
mod secrets;
pub mod sort;
pub mod specification;

pub use key_set::{Key, KeySet, Namespace, Origin, SourceOf};
pub use migration::Migration;
pub use name::{Name, NameError, escape_value, split};
pub use options::{OptionError, Options, Parsed};
pub use pattern::{Pattern, Piece};
pub use rules::{Metadata, RuleError, Rules, Scalar, Type, Violation};
pub use secrets::Secrets;
pub use specification::{KeySpec, LayerSpec, Specification};
