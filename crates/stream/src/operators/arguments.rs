//! Reading what operators are made with.

use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::Span;

use crate::catalogue::{Arguments, Declared, Kind};
use crate::flow::Parameter;

impl Arguments<'_> {
    /// A parameter as it was given, or its default; nothing if there is none.
    fn get(&self, name: &str) -> Result<Option<Parameter>, Diagnostic> {
        if let Some(given) = self.given(name) {
            return Ok(Some(given.clone()));
        }
        let mut declared = self.definition.parameters.iter();
        let declared = declared.find(|declared| declared.name == name);
        let declared = declared.expect("operators ask for what they have declared");
        match declared.default {
            None => Err(self.wrong(name, "has to be given")),
            Some("") => Ok(None),
            Some(default) => Ok(Some(self.default(declared, default))),
        }
    }

    fn default(&self, declared: &Declared, text: &'static str) -> Parameter {
        let said = match declared.kind {
            Kind::Flag => text.parse().ok().map(Parameter::Flag),
            Kind::Integer => text.parse().ok().map(Parameter::Integer),
            Kind::Number => Some(Parameter::Number(text.into())),
            Kind::Span => Span::from_units(text).map(Parameter::Span),
            Kind::Text | Kind::Choice(_) => Some(Parameter::Text(text.into())),
            Kind::Expression => Some(Parameter::Expression(text.into())),
            Kind::Fields | Kind::Functions(_) => None,
        };
        let name = declared.name;
        said.unwrap_or_else(|| panic!("the default `{text}` of `{name}` is not of its kind"))
    }

    /// What is wrong with a parameter.
    pub(crate) fn wrong(&self, name: &str, why: &str) -> Diagnostic {
        let operator = self.definition.name;
        Diagnostic::error(format!("`{name}` of `{operator}` {why}"))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Diagnostic> {
        match self.get(name)? {
            None => Ok(false),
            Some(Parameter::Flag(flag)) => Ok(flag),
            Some(_) => Err(self.wrong(name, "is to be yes or no")),
        }
    }

    /// A count of at least one and at most so many.
    pub(crate) fn count(&self, name: &str, most: usize) -> Result<Option<usize>, Diagnostic> {
        let wrong = || self.wrong(name, &format!("is to be a whole number from 1 to {most}"));
        match self.get(name)? {
            None => Ok(None),
            Some(Parameter::Integer(number)) => match usize::try_from(number) {
                Ok(count) if (1..=most).contains(&count) => Ok(Some(count)),
                _ => Err(wrong()),
            },
            Some(_) => Err(wrong()),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, Diagnostic> {
        let wrong = || self.wrong(name, "is to be a number");
        match self.get(name)? {
            None => Ok(None),
            Some(Parameter::Number(text)) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => Err(wrong()),
            },
            #[allow(clippy::cast_precision_loss, reason = "it was meant as a number")]
            Some(Parameter::Integer(number)) => Ok(Some(number as f64)),
            Some(_) => Err(wrong()),
        }
    }

    /// A number that is not negative.
    pub(crate) fn distance(&self, name: &str) -> Result<Option<f64>, Diagnostic> {
        match self.number(name)? {
            Some(number) if number < 0.0 => Err(self.wrong(name, "must not be negative")),
            number => Ok(number),
        }
    }

    pub(crate) fn span(&self, name: &str) -> Result<Option<Span>, Diagnostic> {
        match self.get(name)? {
            None => Ok(None),
            Some(Parameter::Span(span)) => Ok(Some(span)),
            Some(_) => Err(self.wrong(name, "is to be a span of time, as `10m`")),
        }
    }

    /// A span that is not negative.
    pub(crate) fn waiting(&self, name: &str) -> Result<Span, Diagnostic> {
        match self.span(name)? {
            Some(span) if span < Span::ZERO => Err(self.wrong(name, "must not be negative")),
            span => Ok(span.unwrap_or(Span::ZERO)),
        }
    }

    /// A span that is longer than nothing.
    pub(crate) fn length(&self, name: &str) -> Result<Option<Span>, Diagnostic> {
        match self.span(name)? {
            Some(span) if span <= Span::ZERO => {
                Err(self.wrong(name, "is to be longer than nothing"))
            }
            span => Ok(span),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<Arc<str>>, Diagnostic> {
        match self.get(name)? {
            None => Ok(None),
            Some(Parameter::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "is to be a text")),
        }
    }

    /// One of the words of a choice, by its position.
    pub(crate) fn choice<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<T, Diagnostic> {
        let word = self.text(name)?.unwrap_or_default();
        match of.iter().find(|(known, _)| *known == &*word) {
            Some((_, choice)) => Ok(*choice),
            None => {
                let words: Vec<_> = of.iter().map(|(word, _)| format!("`{word}`")).collect();
                let words = words.join(", ");
                Err(self
                    .wrong(name, &format!("cannot be `{word}`"))
                    .help(format!("it is one of {words}")))
            }
        }
    }

    /// An expression or a function.
    pub(crate) fn expression(&self, name: &str) -> Result<Option<Parameter>, Diagnostic> {
        match self.get(name)? {
            None => Ok(None),
            Some(parameter @ (Parameter::Expression(_) | Parameter::Function(_))) => {
                Ok(Some(parameter))
            }
            Some(_) => Err(self.wrong(name, "is to be an expression, or `$name` of a function")),
        }
    }
}
