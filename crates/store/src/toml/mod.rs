//! TOML: the format of settings that have structure.
//!
//! ```toml
//! # All ways to say the same are read and edited as they are.
//! [sw.pi.anna]
//! language = "de"
//! display.volume = 11
//! motto = """
//! two
//! lines"""
//!
//! [sw.pi."%"]
//! language = "en"
//!
//! [[sw.hosts]]
//! name = "a"
//! ports = [80, 443]
//! limits = { files = 1_024, "" = "many" }
//! ```
//!
//! Here `/sw/pi/anna/display/volume` is `11`, `/sw/pi/%/language` is `en`,
//! `/sw/hosts/#0/ports/#1` is `443`, `/sw/hosts/#0/limits` is `many`.
//! [`format`](crate::format) says what tables and arrays are as keys, and how
//! they are edited.
//!
//! - TOML 1.1 is read; what is written is TOML 1.0 as well.
//! - A string is the text it stands for. A number is its canonical text, so that
//!   the types of specifications take it: `1_000` and `+1000` are `1000`, and
//!   `0xff` is `255`. `inf`, `nan`, booleans and dates are as they are written.
//! - A value is written as it was before: a string in the same quotes, a date as
//!   a date. Whole numbers that do not fit into 64 bits with a sign are strings.
//! - A new key goes behind its siblings. Without siblings it goes behind the
//!   header of its table, and gets a header if there is none: in front of the
//!   tables below, behind the tables beside, or at the end. Within an inline
//!   table it is inline, beside dotted keys it is dotted.
//! - Tables are defined once, as TOML has it; nothing nests deeper than 128 levels.

mod mistakes;
mod place;
mod read;
mod scalar;

use std::borrow::Cow;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;

use crate::format::{Document, Format, Kind, Unwritable};
use crate::nested::quote::quoted;
use crate::nested::{self, Nested, New, Syntax};

/// The format of `.toml` files. See the [module](self).
#[derive(Debug, Clone, Copy, Default)]
pub struct Toml;

impl Format for Toml {
    fn name(&self) -> &'static str {
        "toml"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["toml"]
    }

    fn keys_max(&self, text: &str) -> usize {
        let counts = |&byte: &u8| matches!(byte, b'=' | b',');
        text.as_bytes().iter().filter(|byte| counts(byte)).count()
    }

    fn load(&self, text: &str, each: &mut dyn FnMut(&Name, &str, u32) -> bool) -> bool {
        read::load(text, each)
    }

    fn replace(
        &self,
        text: &str,
        line: u32,
        name: &Name,
        value: &str,
        kind: Kind,
    ) -> Option<String> {
        let place = read::place(text, line, name)?;
        nested::replaced::<Writing>(text, place, value, kind)
    }

    fn parse(&self, text: &str) -> (Box<dyn Document>, Vec<Diagnostic>) {
        let (document, diagnostics) = read::parse(text);
        (Box::new(document), diagnostics)
    }
}

/// How TOML is written.
#[derive(Debug, Clone)]
pub(crate) struct Writing;

impl Syntax for Writing {
    const SEPARATOR: &'static str = "=";
    const SPACED: &'static str = " = ";
    const PADDING: &'static str = " ";
    const INDENTATION: &'static str = "    ";
    const LINES: bool = false;

    fn decode(written: &str) -> Cow<'_, str> {
        scalar::decode(written)
    }

    fn encode(value: &str, kind: Kind, replaced: Option<&str>) -> String {
        scalar::encode(value, kind, replaced)
    }

    fn key(member: &str) -> String {
        let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !member.is_empty() && member.bytes().all(bare) {
            return member.to_owned();
        }
        quoted(member)
    }

    fn insert(document: &mut Nested<Self>, table: u32, new: &New<'_>) -> Result<(), Unwritable> {
        document.insert_key(table, new);
        Ok(())
    }

    fn cut(document: &mut Nested<Self>, node: u32) {
        let (first, last) = (document.node(node).first, document.node(node).last);
        document.cut_lines(first, last);
    }

    fn stays(document: &Nested<Self>, table: u32) -> bool {
        document.is_described(table)
    }
}
