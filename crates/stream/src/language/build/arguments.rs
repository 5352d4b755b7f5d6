//! What operators are told in Rust.

use milieu_diagnostics::Span as Place;
use milieu_transfer::Span;

use super::super::draft::{Argument, Text, Value};
use crate::flow::Parameter;

/// Something that an operator is told, by its place or by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    name: Option<String>,
    value: Literal,
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    /// What Rust writes in quotes.
    Text(String),
    /// What it writes without them.
    Plain(String),
    Function(String),
    List(Vec<String>),
    Fields(Vec<(String, String)>),
}

/// By its place.
impl From<Literal> for Told {
    fn from(value: Literal) -> Told {
        Told { name: None, value }
    }
}

/// What an operator is told: nothing, a value, or several of them in a tuple.
pub trait Arguments {
    /// One after the other.
    fn tell(self, told: &mut Vec<Told>);
}

impl Arguments for Told {
    fn tell(self, told: &mut Vec<Told>) {
        told.push(self);
    }
}

/// As many as there are.
impl Arguments for Vec<Told> {
    fn tell(self, told: &mut Vec<Told>) {
        told.extend(self);
    }
}

macro_rules! values {
    ($($type:ty: $value:ident => $literal:expr;)*) => {$(
        impl From<$type> for Told {
            fn from($value: $type) -> Told {
                Told::from($literal)
            }
        }

        impl Arguments for $type {
            fn tell(self, told: &mut Vec<Told>) {
                told.push(self.into());
            }
        }
    )*};
}

values! {
    &str: text => Literal::Text(text.to_owned());
    String: text => Literal::Text(text);
    bool: flag => Literal::Plain(flag.to_string());
    i32: number => Literal::Plain(number.to_string());
    i64: number => Literal::Plain(number.to_string());
    u32: number => Literal::Plain(number.to_string());
    f64: number => Literal::Plain(format!("{number:?}"));
    Span: span => Literal::Plain(span.in_units().to_string());
}

/// Several functions: `["mean", "percentile(95)"]`.
impl<const N: usize> From<[&str; N]> for Told {
    fn from(texts: [&str; N]) -> Told {
        Told::from(Literal::List(texts.map(str::to_owned).to_vec()))
    }
}

impl<const N: usize> Arguments for [&str; N] {
    fn tell(self, told: &mut Vec<Told>) {
        told.push(self.into());
    }
}

/// A function that has been registered, as its registration gives it; other
/// parameters by their text.
impl From<Parameter> for Told {
    fn from(parameter: Parameter) -> Told {
        Told::from(match parameter {
            Parameter::Function(name) => Literal::Function(name.to_string()),
            Parameter::Fields(fields) => {
                let pairs = fields.iter();
                let owned = pairs.map(|(name, text)| (name.to_string(), text.to_string()));
                Literal::Fields(owned.collect())
            }
            other => Literal::Text(super::super::parameter::write(&other)),
        })
    }
}

impl Arguments for Parameter {
    fn tell(self, told: &mut Vec<Told>) {
        told.push(self.into());
    }
}

macro_rules! tuples {
    ($($($element:ident)*;)*) => {$(
        impl<$($element: Arguments),*> Arguments for ($($element,)*) {
            fn tell(self, told: &mut Vec<Told>) {
                #[allow(non_snake_case, reason = "a variable for each type")]
                let ($($element,)*) = self;
                $($element.tell(told);)*
                let _ = told;
            }
        }
    )*};
}

tuples! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

/// A parameter by its name: `given("window", minutes(10))`.
pub fn given(name: &str, value: impl Into<Told>) -> Told {
    Told {
        name: Some(name.to_owned()),
        ..value.into()
    }
}

/// A Rust function that has been registered by this name, in place of an
/// expression.
#[must_use]
pub fn function(name: &str) -> Told {
    Told::from(Literal::Function(name.to_owned()))
}

/// Fields and the expressions that they become.
pub fn fields<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Told {
    let owned = |(name, expression): (&str, &str)| (name.to_owned(), expression.to_owned());
    Told::from(Literal::Fields(fields.into_iter().map(owned).collect()))
}

macro_rules! durations {
    ($($name:ident $length:expr;)*) => {$(
        #[doc = concat!("So many ", stringify!($name), "; what lies outside becomes the nearest that can be said.")]
        #[must_use]
        pub const fn $name(count: i64) -> Span {
            Span::from_nanoseconds(count.saturating_mul($length))
        }
    )*};
}

durations! {
    days 86_400_000_000_000;
    hours 3_600_000_000_000;
    minutes 60_000_000_000;
    seconds 1_000_000_000;
    milliseconds 1_000_000;
    microseconds 1_000;
    nanoseconds 1;
}

/// Writes arguments as a call has them, and gives them with their places.
pub(super) fn write(arguments: impl Arguments, calls: &mut String) -> Vec<Argument> {
    let mut told = Vec::new();
    arguments.tell(&mut told);
    let mut written = Vec::new();
    for (at, told) in told.into_iter().enumerate() {
        if at > 0 {
            calls.push_str(", ");
        }
        let name = told.name.map(|name| {
            calls.push_str("given(");
            let name = quote(&name, calls);
            calls.push_str(", ");
            name
        });
        let value = value(told.value, calls);
        if name.is_some() {
            calls.push(')');
        }
        written.push(Argument { name, value });
    }
    written
}

fn value(literal: Literal, calls: &mut String) -> Value {
    let start = calls.len();
    match literal {
        Literal::Text(text) => Value::Text(quote(&text, calls)),
        Literal::Plain(text) => {
            calls.push_str(&text);
            Value::Text(Text::plain(&text, start))
        }
        Literal::Function(name) => {
            calls.push_str("function(");
            let name = quote(&name, calls);
            calls.push(')');
            Value::Function(name)
        }
        Literal::List(texts) => {
            calls.push('[');
            let texts: Vec<Value> = texts
                .into_iter()
                .enumerate()
                .map(|(at, text)| {
                    calls.push_str(if at > 0 { ", " } else { "" });
                    Value::Text(quote(&text, calls))
                })
                .collect();
            calls.push(']');
            Value::List(texts, Place::new(start, calls.len()))
        }
        Literal::Fields(fields) => {
            calls.push_str("fields([");
            let fields: Vec<(Text, Value)> = fields
                .into_iter()
                .enumerate()
                .map(|(at, (name, expression))| {
                    calls.push_str(if at > 0 { ", (" } else { "(" });
                    let name = quote(&name, calls);
                    calls.push_str(", ");
                    let expression = quote(&expression, calls);
                    calls.push(')');
                    (name, Value::Text(expression))
                })
                .collect();
            calls.push_str("])");
            Value::Table(fields, Place::new(start, calls.len()))
        }
    }
}

/// Writes a text as Rust does, and gives it with its place.
pub(super) fn quote(text: &str, calls: &mut String) -> Text {
    let start = calls.len();
    calls.push_str(&format!("{text:?}"));
    let span = Place::new(start, calls.len());
    Text::quoted(text.to_owned(), span, start + 1, calls)
}
