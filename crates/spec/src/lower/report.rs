//! What lowering has to say, and the ways out.

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::{KeySpec, RuleError};

use crate::ir::{Layer, Value};

pub(super) fn array_has_no_field(value: &Value) -> Diagnostic {
    let parent = value.pattern.split("/#").next().unwrap_or_default();
    Diagnostic::warning(format!(
        "`{}` stands for any number of keys, and a struct has no field for that",
        value.pattern
    ))
    .code("array")
    .label(value.span, "this key is left out of the environment")
    .help(format!(
        "read its elements from the key set, below `{parent}`"
    ))
}

pub(super) fn has_no_identifier(value: &Value) -> Diagnostic {
    Diagnostic::error(format!(
        "`{}` leaves nothing that a field could be called",
        value.pattern
    ))
    .code("identifier")
    .label(
        value.span,
        "a level has neither letters nor digits outside placeholders",
    )
    .help("rename the level, or, if it is the last one, say `identifier=` and a name")
}

pub(super) fn is_value_and_branch(value: &Value) -> Diagnostic {
    Diagnostic::error(format!(
        "`{}` is a value, and there are keys below it",
        value.pattern
    ))
    .code("identifier")
    .label(value.span, "a field cannot be both a value and a branch")
    .help("give the value another name with `identifier=`")
    .help("leave only `description` here if it was meant to describe the branch")
}

pub(super) fn layer_has_no_identifier(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!(
        "the layer `{name}` leaves nothing that a type could be called"
    ))
    .code("identifier")
    .label(span, "the name has neither letters nor digits")
    .help(format!("declare `[%{name}%]` and say `identifier=`"))
}

pub(super) fn options_contradict(key: Option<&KeySpec>, error: &RuleError) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("`{}`: {}", error.key, error.message))
        .code("options")
        .help(error.help.clone());
    let Some(key) = key else {
        return diagnostic;
    };
    let position = key.metadata.iter().position(|(name, _)| *name == error.key);
    let span = position
        .and_then(|at| key.spans.get(at))
        .map_or(key.span, |spans| {
            if spans.value.is_empty() {
                spans.key
            } else {
                spans.value
            }
        });
    diagnostic.label(span, "here")
}

pub(super) fn same_layer_type(other: &Layer, layer: &Layer) -> Diagnostic {
    Diagnostic::error(format!(
        "the layers `{}` and `{}` would both be called `{}`",
        other.name, layer.name, layer.identifier
    ))
    .code("identifier")
    .label(layer.span, "this one comes second")
    .label(other.span, "this one comes first")
    .help(format!(
        "give one of them another name: `identifier=` in `[%{}%]`",
        layer.name
    ))
}

pub(super) fn same_identifier(
    (other, other_span): (&str, Span),
    (name, span): (&str, Span),
    identifier: &str,
) -> Diagnostic {
    Diagnostic::error(format!(
        "`{other}` and `{name}` would both be called `{identifier}`"
    ))
    .code("identifier")
    .label(span, "this one comes second")
    .label(other_span, "this one comes first")
    .note("identifiers are in snake case, and placeholders do not count")
    .help("rename one of the keys, or give it another name with `identifier=`")
}
