//! What lowering has to say, and the ways out.

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::{KeySpec, RuleError};

use crate::ir::{Layer, Value};

pub(super) fn inside_array(key: &KeySpec) -> Diagnostic {
    let pattern = key.pattern.as_str();
    let (above, below) = pattern.split_once("/#/").unwrap_or((pattern, "name"));
    let last = above.rsplit('/').next().unwrap_or(above);
    let one = last.strip_suffix('s').unwrap_or("element");
    let error = Diagnostic::error(format!(
        "`{pattern}` is one of several values of each element, and a struct has no field for that"
    ))
    .code("array")
    .label(key.span, "only the last level can be `#`")
    .help(format!(
        "let a layer tell the elements apart: `[{above}/%{one}%/{below}]`"
    ));
    if key.is_array() {
        return error;
    }
    error.help(format!(
        "or make several arrays, of which the elements with one number belong together: \
         `[{above}/{below}/#]`"
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
    .help(format!("declare `[%{name}%]` and say `layer/name=`"))
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
        "give one of them another name: `layer/name=` in `[%{}%]`",
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
