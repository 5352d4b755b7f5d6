//! Neutral identifiers as Rust's.

use std::collections::HashSet;

use milieu_keys::Type;

use crate::{identifiers::camel_case, ir::Environment};

/// All keywords of all editions, reserved ones too.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Keywords that Rust does not accept as raw identifiers either.
const NEVER_RAW: &[&str] = &["_", "Self", "crate", "self", "super"];

/// The identifier as Rust writes it: keywords become raw identifiers.
pub(super) fn identifier(neutral: &str) -> String {
    if NEVER_RAW.contains(&neutral) {
        format!("{neutral}_")
    } else if KEYWORDS.contains(&neutral) {
        format!("r#{neutral}")
    } else {
        neutral.to_owned()
    }
}

/// The type called after a value, a branch, a layer or a variant.
pub(super) fn type_name(neutral: &str) -> String {
    identifier(&camel_case(neutral).unwrap_or_else(|| neutral.to_owned()))
}

/// The module that holds the types below a branch at the root. Its name must
/// not be that of a module which is always there.
pub(super) fn top_module(neutral: &str) -> String {
    match neutral {
        "at" | "layer" => format!("{neutral}_"),
        other => identifier(other),
    }
}

/// The type of a branch at the root.
pub(super) fn top_type(neutral: &str) -> String {
    let name = type_name(neutral);
    if name == "Environment" {
        "Environment_".to_owned()
    } else {
        name
    }
}

/// Built-in types, written such that no module of the specification hides them.
pub(super) struct Primitives(HashSet<String>);

impl Primitives {
    pub(super) fn of(environment: &Environment) -> Self {
        Primitives(
            environment
                .values
                .iter()
                .flat_map(|value| value.identifiers.iter().cloned())
                .collect(),
        )
    }

    /// `bool`, or `::core::primitive::bool` where something else has that name.
    pub(super) fn name(&self, primitive: &str) -> String {
        if self.0.contains(primitive) {
            format!("::core::primitive::{primitive}")
        } else {
            primitive.to_owned()
        }
    }
}

/// The built-in type and the kind for a type of the specification; nothing for
/// strings and enumerations.
pub(super) fn number(type_: Type) -> Option<(&'static str, &'static str)> {
    Some(match type_ {
        Type::Boolean => ("bool", "Bool"),
        Type::Short => ("i16", "I16"),
        Type::UnsignedShort => ("u16", "U16"),
        Type::Long => ("i32", "I32"),
        Type::UnsignedLong => ("u32", "U32"),
        Type::LongLong => ("i64", "I64"),
        Type::UnsignedLongLong => ("u64", "U64"),
        Type::Float => ("f32", "F32"),
        Type::Double => ("f64", "F64"),
        Type::String | Type::Enum => return None,
    })
}

/// A text as a string literal.
pub(super) fn string(text: &str) -> String {
    format!("{text:?}")
}
