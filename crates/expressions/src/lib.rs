//! Expressions with CEL's syntax and meaning, typed and compiled to closures over slots.
//!
//! An [`Expression`] is read once, checked against what is known of events, and
//! compiled; a [`Compiled`] one runs on the [`Row`](milieu_transfer::Row) of each
//! event.
//!
//! ```
//! use milieu_expressions::Expression;
//! use milieu_transfer::{Row, Selection, Value};
//!
//! let heat = Expression::parse("value > 32").unwrap();
//! let mut selection = Selection::default();
//! let mut heat = heat.compile(&mut selection);
//!
//! let mut row = Row::default();
//! row.read_value(&selection, &Value::Double(33.5));
//! assert_eq!(heat.bool(&row), Ok(true));
//! ```
//!
//! Properties kept:
//! - nothing here reads a clock or anything else of its surroundings: the same
//!   event gives the same result;
//! - every run ends, after a number of steps that can be limited, and no text
//!   makes reading or running recurse deeper than a fixed bound;
//! - a fault is CEL's error: it names the place and the way out.
//!
//! Source: the Common Expression Language's definition,
//! <https://github.com/google/cel-spec>. Where this differs, docs/expressions.md
//! says so.

mod ast;
mod calendar;
mod call;
mod canonical;
mod check;
mod code;
mod dynamic;
mod expression;
mod fault;
mod function;
mod kind;
mod lexer;
mod parser;
mod resolve;
mod suggest;

pub use canonical::literal;
pub use expression::{Compiled, Expression};
pub use fault::{Fault, Wrong};
pub use kind::{Kind, Types};
pub use resolve::Variable;

/// The guide, whose samples are run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/expressions.md")]
struct Guide;
