//! The language of one line: flows from left to right.
//!
//! ```text
//! # Warm days, as a report every ten minutes.
//! let temperature = /weather/temperature, /roof/temperature | merge
//! let hot = temperature | filter value > 32 || quality < 0.5
//!
//! hot | aggregate mean, percentile(95) 10m
//!     | publish /weather/heat
//! hot | subscribe latest name=heat mode=json
//! /device/battery | activate battery_low while=value < 15
//! ```
//!
//! The grammar, where `*` is any number, `?` at most one:
//!
//! ```text
//! file       = statement*
//! statement  = "let" WORD "=" flow  |  flow ( "|" sink )?
//! flow       = input ( "," input )* ( "|" operator )*
//! input      = NAME  |  WORD  |  "(" flow ")"
//! operator   = WORD argument*                 ; the catalogue knows which
//! sink       = ( "subscribe" | "publish" | "bind" | "activate" | "set" ) argument*
//! argument   = ( WORD "=" )? value
//! value      = EXPRESSION | fields | functions | PLAIN | QUOTED    ; by its kind
//! fields     = "{" field ( "," field )* "}"
//! field      = ( WORD | QUOTED in backticks ) ":" EXPRESSION
//! functions  = function ( "," function )*
//! function   = WORD ( "(" ANY ")" )?
//!
//! WORD       = ( LETTER | "_" ) ( LETTER | DIGIT | "_" )*
//! NAME       = "/" and what a PLAIN has  |  QUOTED
//! PLAIN      = neither a blank nor one of | , ; ( ) "
//! QUOTED     = '"' ( any but " and \  |  \\ | \" | \` | \n | \r | \t | \u{HEX} )* '"'
//! EXPRESSION = up to a | that is no ||, a comma, ; or closing bracket that is
//!              not the expression's own, "WORD =" that is no ==, or a comment;
//!              or "$" WORD, a function that has been registered
//! ```
//!
//! A statement ends with its line or by `;`. A line that begins with a blank,
//! `|` or `)` goes on with the statement above it. A comment begins with `#` at
//! the start of a line or behind a blank. A flow without a sink is a
//! subscription.

mod parse;
mod write;

pub(super) use parse::parse;
pub(super) use write::write;
