//! Schemas, for editors and for those who read results.
//!
//! What a schema cannot say, as which parameters an application takes, [`parse`]
//! does.
//!
//! [`parse`]: crate::description::parse

/// An XML Schema of descriptions and results in XML.
pub const XML: &str = include_str!("../schemas/test-group.xsd");

/// A JSON Schema of descriptions in TOML, as editors of TOML take it.
pub const DESCRIPTION: &str = include_str!("../schemas/description.json");

/// A JSON Schema of results in JSON.
pub const RESULT: &str = include_str!("../schemas/result.json");
