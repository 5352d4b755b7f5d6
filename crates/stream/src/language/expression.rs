//! The canonical text of expressions. The languages know nothing else of them.

use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_expressions::Expression;

use super::draft::Text;

/// The text that expressions have in common which differ only in how they are
/// written.
pub(super) fn canonical(text: &Text) -> Result<Arc<str>, Diagnostic> {
    match Expression::parse(&text.text) {
        Ok(expression) => Ok(expression.canonical().into()),
        Err(found) => Err(first(found, text)),
    }
}

/// What is wrong first, at its place in the text: the rest may follow from it.
fn first(found: Vec<Diagnostic>, text: &Text) -> Diagnostic {
    let unreadable = || Diagnostic::error("the expression cannot be read");
    let mut found = found.into_iter().next().unwrap_or_else(unreadable);
    found.code = found.code.or(Some("expression"));
    for label in &mut found.labels {
        label.span = text.part(label.span.start, label.span.end);
    }
    // Where escapes hide the places, all of them are the whole.
    let places: Vec<Span> = found.labels.iter().map(|label| label.span).collect();
    let mut at = 0..;
    found.labels.retain(|label| {
        at.next()
            .is_some_and(|at| !places[..at].contains(&label.span))
    });
    found
}
