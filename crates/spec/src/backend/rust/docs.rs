//! Doc comments: everything the specification says about an item.

use super::Emitter;
use crate::{
    facts,
    ir::{Layer, Value},
    prose::{code, markdown},
};

impl Emitter<'_> {
    /// A doc comment from lines of Markdown.
    pub(super) fn doc(&mut self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.out.line(format!("/// {line}").trim_end());
        }
    }

    /// The doc comment of a field.
    pub(super) fn value_doc(&mut self, index: usize) {
        let value = self.value(index);
        let mut lines = summary(value);
        lines.push(String::new());
        lines.extend(facts(value));
        self.doc(lines);
    }

    /// The doc comment of a layer.
    pub(super) fn layer_doc(&mut self, layer: &Layer) {
        let mut lines = match layer.metadata("description") {
            Some(description) => markdown(description),
            None => vec![format!("The layer {}.", code(&layer.name))],
        };
        if layer.metadata("description").is_some() {
            lines.push(String::new());
            lines.push(format!("The layer {}.", code(&layer.name)));
        }
        if let Some(rationale) = layer.metadata("rationale") {
            lines.push(String::new());
            lines.extend(markdown(rationale));
        }
        self.doc(lines);
    }
}

/// What the value is, in the specification's words if it has any.
fn summary(value: &Value) -> Vec<String> {
    match value.metadata("description") {
        Some(description) => markdown(description),
        None => vec![format!("{}.", code(&value.pattern))],
    }
}

fn facts(value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if value.metadata("description").is_some() {
        lines.push(format!("- Key: {}", code(&value.pattern)));
    }
    for (label, phrase) in facts::lines(value) {
        // The field's type and the placeholders in the key say these.
        if matches!(label, "Type" | "Layers") || (label == "Default" && value.is_array) {
            continue;
        }
        lines.push(if phrase.0.is_empty() {
            format!("- {label}")
        } else {
            format!("- {label}: {}", phrase.markdown())
        });
    }
    lines
}
