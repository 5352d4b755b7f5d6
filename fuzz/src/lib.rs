//! What several fuzz targets check in the same way.
//!
//! Inputs are plain text, so that seeds can be read and written by hand. Where
//! a target needs several texts, a line of two dashes separates them.

pub mod formats;
pub mod subscriptions;
pub mod transfer;

use milieu_diagnostics::{Diagnostic, Source, render, to_json};

/// Every label lies in the text, and every diagnostic can be shown.
///
/// # Panics
/// If that is not so.
pub fn can_be_shown(text: &str, diagnostics: &[Diagnostic]) {
    let source = Source {
        name: "fuzz.ini".to_owned(),
        text: text.to_owned(),
    };
    for diagnostic in diagnostics {
        assert!(!diagnostic.message.is_empty());
        for label in &diagnostic.labels {
            let span = label.span.start..label.span.end;
            assert!(text.get(span).is_some(), "{label:?} is not in the text");
        }
    }
    // Showing is slow beside finding; a few of them show as many shapes.
    let diagnostics = &diagnostics[..diagnostics.len().min(8)];
    for diagnostic in diagnostics {
        let line = to_json(&source, diagnostic);
        assert_eq!(
            line.trim_end().lines().count(),
            1,
            "{line:?} is not one line"
        );
    }
    for colour in [false, true] {
        let shown = render(&source, diagnostics, colour);
        assert_eq!(shown.is_empty(), diagnostics.is_empty());
        // A hostile file must not steer the terminal of whoever checks it.
        let steers = |c: char| c.is_control() && c != '\n' && !(colour && c == '\u{1b}');
        assert!(!shown.contains(steers), "{shown:?}");
    }
}

/// The texts between the lines of two dashes; the last one goes to the end.
pub fn texts<const N: usize>(input: &str) -> [&str; N] {
    let mut rest = Some(input);
    std::array::from_fn(|index| {
        let text = rest.unwrap_or("");
        let divided = if index + 1 < N {
            text.split_once("\n--\n")
        } else {
            None
        };
        rest = divided.map(|(_, after)| after);
        divided.map_or(text, |(before, _)| before)
    })
}
