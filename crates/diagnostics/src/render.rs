//! Diagnostics for people.

use crate::visible::{picture, visible};
use crate::{Diagnostic, Severity, Source, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// Renders diagnostics in the given order, separated by blank lines, with the
/// lines of the source that they point at. `colour` adds ANSI escape sequences.
///
/// Control characters of the source are shown as pictures (`␛`); the text ends
/// with a line break unless there is nothing to say.
#[must_use]
pub fn render(source: &Source, diagnostics: &[Diagnostic], colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let lines = line_starts(source);
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        let rendered = one(source, &lines, diagnostic, &renderer);
        for line in rendered.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

fn one(source: &Source, lines: &[usize], diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let message = visible(&diagnostic.message);
    let mut title = level.primary_title(message);
    if let Some(code) = diagnostic.code {
        title = title.id(code);
    }
    let window = Window::new(source, lines, diagnostic);
    let name = visible(&source.name);
    let mut group = Group::with_title(title);
    group = match &window {
        Some(window) => group.element(window.snippet(diagnostic, &name)),
        None => group.element(Origin::path(name)),
    };
    for text in &diagnostic.notes {
        group = group.element(Level::NOTE.message(visible(text)));
    }
    for text in &diagnostic.help {
        group = group.element(Level::HELP.message(visible(text)));
    }
    renderer.render(&[group])
}

/// Where each line starts: counting anew for each diagnostic would take long
/// where there are many.
fn line_starts(source: &Source) -> Vec<usize> {
    let newlines = source.text.match_indices('\n');
    std::iter::once(0)
        .chain(newlines.map(|(at, _)| at + 1))
        .collect()
}

/// The lines that the labels of one diagnostic touch, fit to be shown.
struct Window {
    text: String,
    first_line: usize,
    spans: Vec<Span>,
}

impl Window {
    fn new(source: &Source, lines: &[usize], diagnostic: &Diagnostic) -> Option<Window> {
        let clipped = || {
            diagnostic
                .labels
                .iter()
                .map(|label| source.clip(label.span))
        };
        let start = clipped().map(|span| span.start).min()?;
        let end = clipped().map(|span| span.end).max()?;
        let text = &source.text;
        let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let to = text[end..]
            .find('\n')
            .map_or(text.len(), |newline| end + newline);
        let shown = Shown::new(&text[from..to]);
        let spans = clipped()
            .map(|span| Span {
                start: shown.place(span.start - from),
                end: shown.place(span.end - from),
            })
            .collect();
        Some(Window {
            text: shown.text,
            first_line: lines.partition_point(|&line| line <= from),
            spans,
        })
    }

    fn snippet<'a>(
        &'a self,
        diagnostic: &'a Diagnostic,
        name: &'a str,
    ) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let annotations = self.spans.iter().zip(&diagnostic.labels).enumerate();
        Snippet::source(&self.text)
            .line_start(self.first_line)
            .path(name)
            .annotations(annotations.map(|(at, (span, label))| {
                let kind = match at {
                    0 => AnnotationKind::Primary,
                    _ => AnnotationKind::Context,
                };
                let text = Some(visible(&label.text)).filter(|text| !text.is_empty());
                kind.span(span.start..span.end).label(text)
            }))
    }
}

/// A part of the source in which everything can be seen, and how far that
/// moved the characters.
struct Shown {
    text: String,
    /// Pairs of a place in the original and the same place in `text`, one for
    /// each character that takes more or fewer bytes now.
    moved: Vec<(usize, usize)>,
}

impl Shown {
    fn new(original: &str) -> Shown {
        let mut text = String::with_capacity(original.len());
        let mut moved = Vec::new();
        for (at, c) in original.char_indices() {
            let shown = match c {
                '\t' | '\n' => c,
                // The end of a line on some systems; there is nothing to see.
                '\r' if original[at + 1..].starts_with('\n') || at + 1 == original.len() => {
                    moved.push((at + 1, text.len()));
                    continue;
                }
                c => picture(c),
            };
            text.push(shown);
            if shown.len_utf8() != c.len_utf8() {
                moved.push((at + c.len_utf8(), text.len()));
            }
        }
        Shown { text, moved }
    }

    fn place(&self, original: usize) -> usize {
        let after = self.moved.partition_point(|&(at, _)| at <= original);
        match after.checked_sub(1).map(|last| self.moved[last]) {
            None => original,
            Some((at, here)) => here + (original - at),
        }
    }
}
