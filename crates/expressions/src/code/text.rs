//! Texts, which are compared where they lie.

use std::sync::Arc;

use milieu_diagnostics::Span as Place;
use milieu_transfer::Value;

use super::{Closure, Code, Field, Frame};
use crate::ast::Operator;
use crate::call;
use crate::dynamic;
use crate::fault::Wrong;
use crate::function::Function;
use crate::kind::unshared;

/// Where a text comes from.
pub(crate) enum Text {
    Slot(Field),
    Constant(Arc<str>),
    Code(Closure<Value>),
}

impl Text {
    /// Does something with the text.
    #[inline]
    fn with<R>(&self, frame: &Frame<'_>, use_it: impl FnOnce(&str) -> Option<R>) -> Option<R> {
        match self {
            Text::Slot(field) => match frame.row.text(field.slot) {
                Some(text) => use_it(text),
                None => field.unexpected(frame),
            },
            Text::Constant(text) => use_it(text),
            Text::Code(code) => match unshared(&code(frame)?) {
                Value::Text(text) => use_it(text),
                // It was seen to give texts when it was made.
                _ => None,
            },
        }
    }

    pub(super) fn any(self) -> Closure<Value> {
        match self {
            Text::Slot(field) => Box::new(move |frame| field.value(frame)),
            Text::Constant(text) => Box::new(move |_| Some(Value::Text(text.clone()))),
            Text::Code(code) => code,
        }
    }
}

/// A comparison of two texts.
pub(super) fn compare(operator: Operator, left: Text, right: Text) -> Code {
    macro_rules! with {
        (|$a:ident, $b:ident| $result:expr) => {
            Code::Bool(Box::new(move |frame| {
                left.with(frame, |$a| right.with(frame, |$b| Some($result)))
            }))
        };
    }
    match operator {
        Operator::Equal => with!(|a, b| a == b),
        Operator::Unequal => with!(|a, b| a != b),
        operator => with!(|a, b| dynamic::holds(operator, Some(a.cmp(b)))),
    }
}

/// Whether a list of texts that never changes has a text.
pub(super) fn is_in(text: Text, list: Vec<Arc<str>>) -> Code {
    Code::Bool(Box::new(move |frame| {
        text.with(frame, |text| {
            Some(list.iter().any(|other| **other == *text))
        })
    }))
}

/// A function of two texts.
pub(super) fn search(function: Function, text: Text, what: Text, place: Place) -> Option<Code> {
    macro_rules! with {
        (|$a:ident, $b:ident| $result:expr) => {
            Code::Bool(Box::new(move |frame| {
                text.with(frame, |$a| {
                    frame.spend($a.len() / 64, place)?;
                    what.with(frame, |$b| Some($result))
                })
            }))
        };
    }
    Some(match function {
        Function::Contains => with!(|a, b| a.contains(b)),
        Function::StartsWith => with!(|a, b| a.starts_with(b)),
        Function::EndsWith => with!(|a, b| a.ends_with(b)),
        Function::Matches => return Some(matches(text, what, place)),
        _ => return None,
    })
}

fn matches(text: Text, what: Text, place: Place) -> Code {
    let Text::Constant(constant) = &what else {
        return Code::Bool(Box::new(move |frame| {
            what.with(frame, |what| {
                // Compiling a pattern costs more than using it.
                frame.spend(what.len().saturating_mul(64), place)?;
                let pattern = frame.check(call::pattern(what), place)?;
                text.with(frame, |text| {
                    frame.spend(text.len().saturating_mul(what.len()) / 16, place)?;
                    Some(pattern.is_match(text))
                })
            })
        }));
    };
    let length = constant.len();
    match call::pattern(constant) {
        Ok(pattern) => Code::Bool(Box::new(move |frame| {
            text.with(frame, |text| {
                frame.spend(text.len().saturating_mul(length) / 16, place)?;
                Some(pattern.is_match(text))
            })
        })),
        Err(wrong) => Code::Bool(Box::new(move |frame| frame.fail(wrong.clone(), place))),
    }
}

/// The number of characters.
pub(super) fn size(text: Text, place: Place) -> Closure<i64> {
    Box::new(move |frame| {
        text.with(frame, |text| {
            let count = text.chars().count();
            frame.check(i64::try_from(count).map_err(|_| Wrong::Overflow), place)
        })
    })
}
