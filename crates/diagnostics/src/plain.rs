//! Diagnostics for people, without the lines of the source.

use crate::visible::visible;
use crate::{Diagnostic, Source};

/// Renders diagnostics in the given order, separated by blank lines, with the
/// places that they point at. Lines of the source come with the feature
/// `snippets`, and colours with them.
///
/// Control characters are shown as pictures (`␛`); the text ends with a line
/// break unless there is nothing to say.
#[must_use]
pub fn render(source: &Source, diagnostics: &[Diagnostic], _colour: bool) -> String {
    let mut out = String::new();
    let mut line = |parts: &[&str]| {
        parts.iter().for_each(|part| out.push_str(&visible(part)));
        out.push('\n');
    };
    for (number, diagnostic) in diagnostics.iter().enumerate() {
        if number > 0 {
            line(&[]);
        }
        line(&[diagnostic.severity.as_str(), ": ", &diagnostic.message]);
        if diagnostic.labels.is_empty() {
            line(&[" --> ", &source.name]);
        }
        for label in &diagnostic.labels {
            let (row, column) = source.line_column(label.span.start);
            let place = format!("{}:{row}:{column}", source.name);
            match &*label.text {
                "" => line(&[" --> ", &place]),
                text => line(&[" --> ", &place, ": ", text]),
            }
        }
        for text in &diagnostic.notes {
            line(&["  = note: ", text]);
        }
        for text in &diagnostic.help {
            line(&["  = help: ", text]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn places_are_said_and_terminals_are_not_steered() {
        let source = Source::new("station.ini", "[/sw/port]\ntype=lnog\n");
        let found = Diagnostic::error("`lnog\u{1b}` is no type")
            .label(Span::new(16, 20), "there is no such type")
            .help("did you mean `long`?");
        let other = Diagnostic::warning("odd");
        assert_eq!(
            render(&source, &[found, other], true),
            "error: `lnog␛` is no type\n \
             --> station.ini:2:6: there is no such type\n  \
             = help: did you mean `long`?\n\
             \n\
             warning: odd\n \
             --> station.ini\n"
        );
    }
}
