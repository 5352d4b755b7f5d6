//! What a text says, before the catalogue tells what it means: the shape that
//! all languages are read into.

use milieu_diagnostics::Span;

use crate::catalogue::Declared;

/// A file of subscriptions.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Flows with a name, in order.
    pub flows: Vec<(Text, Pipeline)>,
    /// What is done with flows, in order.
    pub uses: Vec<Use>,
}

/// Something that is done with a flow.
#[derive(Debug)]
pub(super) struct Use {
    /// What: `subscribe`, `publish`, …, with its arguments.
    pub sink: Step,
    pub pipeline: Pipeline,
}

/// Flows, and the operators that they run through one after the other.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub inputs: Vec<Input>,
    pub steps: Vec<Step>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum Input {
    /// The events of a name.
    Stream(Text),
    /// A flow that has a name in this file.
    Use(Text),
    /// What another pipeline makes.
    Pipeline(Pipeline),
}

/// An operator and what it is told.
#[derive(Debug)]
pub(super) struct Step {
    pub operator: Text,
    pub arguments: Vec<Argument>,
}

impl Step {
    /// What is done with a flow where nothing else is said.
    pub fn subscribe(span: Span) -> Step {
        let text = "subscribe".to_owned();
        let operator = Text {
            text,
            span,
            start: None,
        };
        Step {
            operator,
            arguments: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Argument {
    /// Nothing for one that is known by its place.
    pub name: Option<Text>,
    pub value: Value,
}

/// A value as it is written; its parameter's kind tells how to read it.
#[derive(Debug)]
pub(super) enum Value {
    Text(Text),
    /// The name of a Rust function.
    Function(Text),
    List(Vec<Value>, Span),
    Table(Vec<(Text, Value)>, Span),
}

impl Value {
    pub fn span(&self) -> Span {
        match self {
            Value::Text(text) | Value::Function(text) => text.span,
            Value::List(_, span) | Value::Table(_, span) => *span,
        }
    }
}

/// A text and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// What is meant: without quotes and escapes.
    pub text: String,
    /// Where it is written, with its quotes.
    pub span: Span,
    /// Where its first byte stands, if it is written byte for byte as it is
    /// meant.
    start: Option<usize>,
}

impl Text {
    /// A text that is written as it is meant.
    pub fn plain(text: &str, start: usize) -> Text {
        Text {
            text: text.to_owned(),
            span: Span::new(start, start + text.len()),
            start: Some(start),
        }
    }

    /// A text that stands at `inside` of the source, in quotes or the like at
    /// `span`, and is written there perhaps with escapes.
    pub fn quoted(text: String, span: Span, inside: usize, source: &str) -> Text {
        let is_plain = source[inside..].starts_with(&*text) && inside + text.len() <= span.end;
        Text {
            text,
            span,
            start: is_plain.then_some(inside),
        }
    }

    /// Where these bytes of the text stand; the whole, where that is not known.
    pub fn part(&self, at: usize, end: usize) -> Span {
        match self.start {
            Some(start) => Span::new(start + at, start + end.max(at)),
            None => self.span,
        }
    }

    /// A part of the text as a text of its own.
    pub fn slice(&self, at: usize, end: usize) -> Text {
        Text {
            text: self.text[at..end].to_owned(),
            span: self.part(at, end),
            start: self.start.map(|start| start + at),
        }
    }

    /// Without the blanks around it.
    pub fn trimmed(&self) -> Text {
        let start = self.text.len() - self.text.trim_start().len();
        self.slice(start, start.max(self.text.trim_end().len()))
    }
}

/// The parameter that a value without a name is for, that follows these arguments.
pub(super) fn next_place<'a>(declared: &'a [Declared], given: &[Argument]) -> Option<&'a Declared> {
    let is_named = |known: &Declared| {
        let mut names = given.iter().filter_map(|argument| argument.name.as_ref());
        names.any(|name| name.text == known.name)
    };
    let unnamed = given.iter().filter(|argument| argument.name.is_none());
    let mut places = declared
        .iter()
        .filter(|known| known.positional && !is_named(known));
    places.nth(unnamed.count())
}
