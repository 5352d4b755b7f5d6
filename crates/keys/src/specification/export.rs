//! From a specification to its text.

use super::Specification;
use super::escape::{encode_name, encode_value};

pub(super) fn to_ini(specification: &Specification) -> String {
    let mut out = String::new();
    for layer in &specification.layers {
        let name = format!("%{}%", layer.name);
        section(&name, &layer.metadata, &mut out);
    }
    for key in &specification.keys {
        section(key.pattern.as_str(), &key.metadata, &mut out);
    }
    out
}

fn section(name: &str, metadata: &[(String, String)], out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push('[');
    encode_name(name, out);
    out.push_str("]\n");
    for (key, value) in metadata {
        out.push_str(key);
        // An empty default is a value; an empty `readonly` is just the word.
        if !value.is_empty() || key == "default" {
            out.push('=');
            encode_value(value, out);
        }
        out.push('\n');
    }
}
