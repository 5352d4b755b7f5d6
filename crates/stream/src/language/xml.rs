//! XML, as Solar's applications had it; Solar's own language is not published.
//!
//! ```xml
//! <?xml version="1.0" encoding="UTF-8"?>
//! <subscriptions xmlns="urn:milieu:subscriptions:1">
//!   <let name="hot">
//!     <stream name="/weather/temperature"/>
//!     <stream name="/roof/temperature"/>
//!     <merge/>
//!     <filter condition="value > 32"/>
//!   </let>
//!   <publish name="/weather/heat">
//!     <use flow="hot"/>
//!     <aggregate functions="mean, percentile(95)" window="10m"/>
//!   </publish>
//!   <subscribe delivery="latest" name="heat" mode="json">
//!     <use flow="hot"/>
//!   </subscribe>
//! </subscriptions>
//! ```
//!
//! - `let` gives a flow a name; `subscribe`, `publish`, `activate` and `set` do
//!   something with one, and their parameters are attributes.
//! - A flow is inputs and then operators. An input is a `stream` of the naming
//!   tree, the `use` of a flow above, or a `flow` with inputs and operators of
//!   its own.
//! - Parameters of operators are attributes, written as in the language of one
//!   line but without quotes. Expressions may be elements of their name, where
//!   they can stand in `<![CDATA[…]]>`; fields may be an element of their name
//!   with a `<field name="…">` for each.
//!
//! There are no document types and no entities but the five of XML and numbers
//! of characters. Comments and processing instructions mean nothing. The schema
//! ([`schema()`](super::schema)) is made from the catalogue.

mod parse;
mod schema;
mod tree;
mod write;

pub(super) use parse::parse;
pub(super) use schema::schema;
pub(super) use write::write;

/// The namespace of all elements.
pub(super) const NAMESPACE: &str = "urn:milieu:subscriptions:1";
/// Elements of flows that are no operators.
const INPUTS: [&str; 3] = ["stream", "use", "flow"];
