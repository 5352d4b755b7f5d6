//! TOML: tables of what is done with flows.
//!
//! ```toml
//! [[let]]
//! name = "hot"
//! from = ["/weather/temperature", "/roof/temperature"]
//! steps = ["merge", { filter = "value > 32" }]
//!
//! [[publish]]
//! name = "/weather/heat"
//! from = "hot"
//! steps = [{ aggregate = { functions = ["mean", "percentile(95)"], window = "10m" } }]
//!
//! [[subscribe]]
//! delivery = "latest"
//! name = "heat"
//! mode = "json"
//! from = "hot"
//! ```
//!
//! - `[[let]]` gives a flow a name; `[[subscribe]]`, `[[publish]]`,
//!   `[[activate]]` and `[[set]]` do something with one, and their parameters
//!   stand beside `from` and `steps`.
//! - An input in `from` is a text, which is a name of the naming tree if it
//!   starts with `/` and else the name of a flow above; or a table with `from`
//!   and `steps` of its own. Several stand in a list.
//! - A step is the name of an operator, or a table with one key, which is that
//!   name. Its value is a table of parameters, or what the first parameter is
//!   told.
//! - Values are TOML's or texts as in the language of one line; fields are a
//!   table, and functions a list or a text.

mod parse;
mod write;

pub(super) use parse::parse;
pub(super) use write::write;
