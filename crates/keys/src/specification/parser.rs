//! From lines to declarations.

use super::escape::Written;
use super::lexer::{Line, Value, lex};
use super::{EntrySpans, KeySpec, LayerSpec, Specification};
use crate::name::NameError;
use crate::pattern::{Pattern, Piece};
use crate::rules::Shortened;
use milieu_diagnostics::{Diagnostic, Span};

pub(super) fn parse(text: &str) -> (Specification, Vec<Diagnostic>) {
    let (lines, diagnostics) = lex(text);
    let mut parser = Parser {
        specification: Specification::default(),
        current: Current::Nothing,
        diagnostics,
    };
    for line in lines {
        match line {
            Line::Header(name) => parser.header(&name),
            Line::Key(name, value) => parser.key(&name, value),
            Line::Entry(word, span, value) => parser.entry(word, span, value),
        }
    }
    // Lexer and parser each report in order; together they should too.
    parser
        .diagnostics
        .sort_by_key(|diagnostic| diagnostic.span().map(|span| span.start));
    (parser.specification, parser.diagnostics)
}

/// What the next line of metadata belongs to.
enum Current {
    Nothing,
    /// The last key.
    Key,
    /// The last layer.
    Layer,
    /// A declaration that could not be read; what is wrong with it was said.
    Broken,
}

struct Parser {
    specification: Specification,
    current: Current,
    diagnostics: Vec<Diagnostic>,
}

impl Parser {
    fn header(&mut self, name: &Written) {
        if name.text.starts_with('%') && !name.text.contains('/') {
            self.layer(name);
            return;
        }
        if let Some(pattern) = self.pattern(name) {
            self.declare(pattern, name.span);
        }
    }

    fn key(&mut self, name: &Written, value: Option<Value>) {
        let Some(pattern) = self.pattern(name) else {
            return;
        };
        self.declare(pattern, name.span);
        if let Some(value) = value {
            // The line has no word `default` that could be pointed at.
            self.entry("default".to_owned(), name.span, Some(value));
        }
    }

    fn declare(&mut self, pattern: Pattern, span: Span) {
        let mut key = KeySpec::new(pattern, Vec::new());
        key.span = span;
        self.specification.keys.push(key);
        self.current = Current::Key;
    }

    /// The pattern, or what would be one with a slash in front, or nothing.
    fn pattern(&mut self, name: &Written) -> Option<Pattern> {
        let error = match Pattern::parse(&name.text) {
            Ok(pattern) => return Some(pattern),
            Err(error) => error,
        };
        self.current = Current::Broken;
        self.bad_name(name, &error);
        if name.text.is_empty() || name.text.starts_with('/') {
            return None;
        }
        Pattern::parse(&format!("/{}", name.text)).ok()
    }

    fn layer(&mut self, name: &Written) {
        self.current = Current::Broken;
        let pattern = match Pattern::parse(&format!("/{}", name.text)) {
            Ok(pattern) => pattern,
            Err(mut error) => {
                error.at = error.at.saturating_sub(1);
                error.end = error.end.saturating_sub(1);
                self.bad_name(name, &error);
                return;
            }
        };
        match pattern.pieces() {
            [Piece::Literal(slash), Piece::Layer(layer)] if **slash == *"/" => {
                self.specification.layers.push(LayerSpec {
                    name: layer.to_string(),
                    metadata: Vec::new(),
                    span: name.span,
                    spans: Vec::new(),
                });
                self.current = Current::Layer;
            }
            _ => self.not_one_layer(name, &pattern),
        }
    }

    fn not_one_layer(&mut self, name: &Written, pattern: &Pattern) {
        let layers: Vec<String> = pattern
            .layers()
            .map(|layer| format!("`[%{layer}%]`"))
            .collect();
        let mut found = Diagnostic::error("the section declares neither a value nor one layer")
            .code("name")
            .label(name.span, "a layer stands alone between two percent signs")
            .help(format!(
                "for a contextual value, start with a slash: `[{pattern}]`"
            ));
        if !layers.is_empty() {
            found = found.help(format!("for layers, declare each: {}", layers.join(", ")));
        }
        self.diagnostics.push(found);
    }

    fn bad_name(&mut self, name: &Written, error: &NameError) {
        let what = if name.text.is_empty() {
            "the section has no name".to_owned()
        } else {
            format!("`{}` is no name", Shortened(&name.text))
        };
        let mut found = Diagnostic::error(what)
            .code("name")
            .label(name.span_of(error.at, error.end), error.message.clone());
        if name.text.is_empty() {
            found = found.help("write the name of a value, as in `[/sw/app/value]`, or of a layer, as in `[%layer%]`");
        } else if !error.help.is_empty() {
            found = found.help(error.help.clone());
        }
        self.diagnostics.push(found);
    }

    fn entry(&mut self, word: String, span: Span, value: Option<Value>) {
        let end = Span::new(span.end, span.end);
        let value = value.unwrap_or(Value {
            text: String::new(),
            span: end,
        });
        let (metadata, spans) = match self.current {
            Current::Broken => return,
            Current::Nothing => {
                self.belongs_to_nothing(&word, span);
                return;
            }
            Current::Key => match self.specification.keys.last_mut() {
                Some(key) => (&mut key.metadata, &mut key.spans),
                None => return,
            },
            Current::Layer => match self.specification.layers.last_mut() {
                Some(layer) => (&mut layer.metadata, &mut layer.spans),
                None => return,
            },
        };
        metadata.push((word, value.text));
        spans.push(EntrySpans {
            key: span,
            value: value.span,
        });
    }

    fn belongs_to_nothing(&mut self, word: &str, span: Span) {
        // The lines that follow belong to nothing either; once is enough.
        self.current = Current::Broken;
        self.diagnostics.push(
            Diagnostic::error(format!("`{}` belongs to no section", Shortened(word)))
                .code("syntax")
                .label(span, "no section or key stands above this line")
                .help("put the name of a contextual value above it, as in `[/sw/app/value]`")
                .help(format!(
                    "if it is the name of a value itself, start it with a slash: `/{}`",
                    Shortened(word)
                )),
        );
    }
}
