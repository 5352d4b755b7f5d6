//! Secrets, and what a specification would give away of them.

use super::Declaration;
use milieu_diagnostics::{Diagnostic, Span};

/// Checks the declaration of a secret, for which the specification gives these
/// values.
pub(super) fn check(
    declaration: Declaration<'_>,
    values: &[(&str, &str)],
    found: &mut Vec<Diagnostic>,
) {
    for (key, _) in values.iter().filter(|(_, value)| !value.is_empty()) {
        // Pointing at the line would show it.
        found.push(match *key {
            "example" => Diagnostic::warning("nobody will see the `example` of a secret")
                .code("secret")
                .label(declaration.span, "this key is a secret")
                .help("remove it, and say in the `description` what the value looks like"),
            key => Diagnostic::error(format!("the specification gives a secret away as `{key}`"))
                .code("secret")
                .label(declaration.span, "this key is a secret")
                .note("many can read a specification, and its documents quote it")
                .help(format!(
                    "remove `{key}`, and give the value in a file or a variable"
                ))
                .help("or remove `secret`, if everybody may know the value"),
        });
    }
    if let Some((word, span)) = argument(declaration) {
        found.push(
            Diagnostic::warning(format!("`{word}` lets others see the secret"))
                .code("secret")
                .label(span, "whoever lists processes sees their arguments")
                .help("let it be given in a file, or in a variable: `env/#0=NAME`"),
        );
    }
}

/// What lets the value be given on the command line.
fn argument<'a>(declaration: Declaration<'a>) -> Option<(&'a str, Span)> {
    let names = declaration.metadata.iter().map(|(word, _)| word.as_str());
    let at = names.into_iter().position(|word| {
        let sets = ["opt", "opt/long", "args"];
        sets.contains(&word) || word.starts_with("opt/#") || word.starts_with("opt/long/#")
    })?;
    Some((&declaration.metadata[at].0, declaration.word(at)))
}
