//! Reads the language of one line.

use milieu_diagnostics::{Diagnostic, Span};

use super::super::draft::{Argument, Draft, Input, Pipeline, Step, Text, Use, Value, next_place};
use super::super::quotes::{self, Broken};
use super::super::{NESTING_MAX, Read, scan, sinks, too_deep};
use crate::catalogue::{Catalogue, Declared, Kind};

/// Reads a text. Where a statement cannot be read, the next one is.
pub(in super::super) fn parse(text: &str, catalogue: &Catalogue) -> (Draft, Vec<Diagnostic>) {
    let (mut draft, mut diagnostics) = (Draft::default(), Vec::new());
    for span in statements(text) {
        let mut parser = Parser {
            text: &text[..span.end],
            at: span.start,
            depth: 0,
            catalogue,
        };
        if let Err(found) = parser.statements(&mut draft) {
            diagnostics.push(found);
        }
    }
    (draft, diagnostics)
}

/// Where the statements stand that begin with a line.
fn statements(text: &str) -> Vec<Span> {
    let mut starts = vec![if text.starts_with('\u{feff}') { 3 } else { 0 }];
    for (newline, _) in text.match_indices('\n') {
        let goes_on = |c: char| c.is_whitespace() || matches!(c, '|' | ')' | '#');
        if !text[newline + 1..].starts_with(goes_on) {
            starts.push(newline + 1);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let spans = starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| Span { start, end });
    spans.collect()
}

struct Parser<'a> {
    /// The text up to the end of the statement.
    text: &'a str,
    at: usize,
    depth: usize,
    catalogue: &'a Catalogue,
}

impl Parser<'_> {
    /// Reads statements with `;` between them.
    fn statements(&mut self, draft: &mut Draft) -> Read<()> {
        loop {
            self.skip();
            if self.is_at_end() {
                return Ok(());
            }
            if !self.take(';') {
                self.statement(draft)?;
                self.skip();
                if !self.is_at_end() && !self.rest().starts_with(';') {
                    return Err(self.unexpected("the statement ends before this"));
                }
            }
        }
    }

    fn statement(&mut self, draft: &mut Draft) -> Read<()> {
        if let Some(name) = self.definition()? {
            let pipeline = self.pipeline()?;
            draft.flows.push((name, pipeline));
            return Ok(());
        }
        let mut pipeline = self.pipeline()?;
        let is_sink = |step: &Step| sinks::get(&step.operator.text).is_some();
        let sink = match pipeline.steps.pop() {
            Some(last) if is_sink(&last) => last,
            last => {
                pipeline.steps.extend(last);
                Step::subscribe(pipeline.span)
            }
        };
        draft.uses.push(Use { sink, pipeline });
        Ok(())
    }

    /// `let name =`, if that stands here; otherwise nothing is read.
    fn definition(&mut self) -> Read<Option<Text>> {
        let start = self.at;
        if self.word().is_none_or(|word| word.text != "let") {
            self.at = start;
            return Ok(None);
        }
        self.skip();
        let Some(name) = self.word() else {
            return Err(self
                .unexpected("expected the name of a flow")
                .help("write `let hot = /weather/temperature | filter value > 32`"));
        };
        self.skip();
        if !self.take('=') {
            return Err(self.unexpected("expected `=`"));
        }
        Ok(Some(name))
    }

    fn pipeline(&mut self) -> Read<Pipeline> {
        self.skip();
        let start = self.at;
        let mut inputs = vec![self.input()?];
        let mut end = self.at;
        self.skip();
        while self.take(',') {
            inputs.push(self.input()?);
            end = self.at;
            self.skip();
        }
        let mut steps = Vec::new();
        while self.take('|') {
            steps.push(self.step()?);
            end = self.text[..self.at].trim_end().len();
            self.skip();
        }
        Ok(Pipeline {
            inputs,
            steps,
            span: Span::new(start, end.max(start)),
        })
    }

    fn input(&mut self) -> Read<Input> {
        self.skip();
        match self.rest().chars().next() {
            Some('/') => {
                let name = self.text_of(scan::plain(self.rest()));
                Ok(Input::Stream(name))
            }
            Some('"') => Ok(Input::Stream(self.quoted()?)),
            Some('(') => self.nested(),
            _ => match self.word() {
                Some(name) if self.rest().starts_with('/') => Err(self.relative(&name)),
                Some(name) => Ok(Input::Use(name)),
                None => Err(self.unexpected("expected a flow").help(
                    "start with a name, as `/weather/temperature`, or with a flow that has a name",
                )),
            },
        }
    }

    fn relative(&self, first: &Text) -> Diagnostic {
        let end = self.at + scan::plain(self.rest());
        let written = &self.text[first.span.start..end];
        Diagnostic::error("a name starts with `/`")
            .code("name")
            .label(Span::new(first.span.start, end), "this does not")
            .help(format!("write `/{written}`"))
    }

    fn nested(&mut self) -> Read<Input> {
        let open = self.at;
        self.at += 1;
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(too_deep(Span::new(open, self.at)));
        }
        let pipeline = self.pipeline()?;
        self.depth -= 1;
        self.skip();
        if self.take(')') {
            return Ok(Input::Pipeline(pipeline));
        }
        Err(self
            .unexpected("expected `)`")
            .label(Span::new(open, open + 1), "what opens here is not closed"))
    }

    fn step(&mut self) -> Read<Step> {
        self.skip();
        let Some(operator) = self.word() else {
            return Err(self
                .unexpected("expected the name of an operator")
                .help("write it as `| filter value > 32`"));
        };
        let definition = self.catalogue.get(&operator.text);
        let declared = match sinks::get(&operator.text) {
            Some(sink) => Some(sink.parameters),
            None => definition.map(|definition| definition.parameters),
        };
        let mut step = Step {
            operator,
            arguments: Vec::new(),
        };
        loop {
            self.skip();
            let ends = |c: char| matches!(c, '|' | ')' | ';');
            if self.is_at_end() || self.rest().starts_with(ends) {
                return Ok(step);
            }
            let argument = self.argument(declared, &step.arguments)?;
            step.arguments.push(argument);
        }
    }

    fn argument(&mut self, declared: Option<&[Declared]>, given: &[Argument]) -> Read<Argument> {
        let name = scan::named(self.rest()).map(|length| {
            let name = self.text_of(length);
            self.at += 1;
            self.skip();
            name
        });
        let kind = declared.and_then(|declared| match &name {
            Some(name) => declared.iter().find(|known| known.name == name.text),
            None => next_place(declared, given),
        });
        let value = match kind.map(|known| known.kind) {
            // Nobody knows what it is: what follows it can be understood still.
            None => self.expression()?,
            Some(Kind::Expression | Kind::Fields) => self.expression()?,
            Some(Kind::Functions(_)) => self.scanned(scan::functions(self.rest()))?,
            Some(_) if self.rest().starts_with('"') => self.quoted()?,
            Some(_) => self.scanned(scan::plain(self.rest()))?,
        };
        let value = Value::Text(value);
        Ok(Argument { name, value })
    }

    fn expression(&mut self) -> Read<Text> {
        let length = scan::expression(self.rest()).map_err(|open| {
            let at = self.at + open.at;
            Diagnostic::error(format!("`{}` is not closed", open.what))
                .code("syntax")
                .label(Span::new(at, at + 1), "it opens here")
                .help("close it within the statement")
        })?;
        let expression = self.scanned(self.rest()[..length].trim_end().len())?;
        Ok(expression)
    }

    fn scanned(&mut self, length: usize) -> Read<Text> {
        if length > 0 {
            return Ok(self.text_of(length));
        }
        let found = self.unexpected("expected a value");
        Err(match self.rest().chars().next() {
            Some(',') => found.help(
                "put each flow that has operators in parentheses: `(/a | filter value > 32), /b | merge`",
            ),
            _ => found,
        })
    }

    fn quoted(&mut self) -> Read<Text> {
        let open = self.at;
        let wrong = |message: &str, at: usize, length: usize, label: &str| {
            Diagnostic::error(message)
                .code("syntax")
                .label(Span::new(open + at, open + at + length), label)
        };
        match quotes::read(self.rest()) {
            Ok((text, length)) => {
                self.at += length;
                let span = Span::new(open, self.at);
                Ok(Text::quoted(text, span, open + 1, self.text))
            }
            Err(Broken::Open) => Err(wrong("the quotes are not closed", 0, 1, "they open here")
                .help("close them by `\"`; a quote within is `\\\"`")),
            Err(Broken::Escape(at, length)) => {
                let label = "in quotes a backslash starts an escape";
                Err(wrong("this is no escape", at, length, label)
                    .help("write `\\\\` for a backslash"))
            }
        }
    }

    /// The next `length` bytes, as a text.
    fn text_of(&mut self, length: usize) -> Text {
        let start = self.at;
        self.at += length;
        Text::plain(&self.text[start..self.at], start)
    }

    fn word(&mut self) -> Option<Text> {
        let length = scan::word(self.rest())?;
        Some(self.text_of(length))
    }

    fn take(&mut self, c: char) -> bool {
        let is_here = self.rest().starts_with(c);
        if is_here {
            self.at += c.len_utf8();
        }
        is_here
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            self.at = self.text.len() - self.rest().trim_start().len();
            let before = self.text[..self.at].chars().next_back();
            if !self.rest().starts_with('#') || before.is_some_and(|c| !c.is_whitespace()) {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn unexpected(&self, label: &str) -> Diagnostic {
        let (message, length) = match self.rest().chars().next() {
            Some(c) => (
                format!("`{}` cannot stand here", c.escape_debug()),
                c.len_utf8(),
            ),
            None => ("the statement is not complete".to_owned(), 0),
        };
        let at = if length > 0 {
            self.at
        } else {
            self.text.trim_end().len()
        };
        Diagnostic::error(message)
            .code("syntax")
            .label(Span::new(at, at + length), label)
    }
}
