//! What parameters and variables hold.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value of a parameter or of a variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number; finite.
    Number(f64),
    /// A text.
    Text(String),
    /// Several values: the paper's `host,port`.
    List(Vec<Value>),
}

/// What an application expects of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A finite number.
    Number,
    /// A text.
    Text,
    /// Several values, each of its kind.
    #[serde(untagged)]
    List(Vec<Kind>),
}

impl Value {
    /// The value as a number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "axes and statistics are doubles"
            )]
            Value::Integer(value) => Some(*value as f64),
            Value::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as this kind of parameter takes it: texts are read, whole
    /// numbers are numbers too, and a text with commas is a list where one is
    /// expected. `None`: it cannot be converted without loss.
    #[must_use]
    pub fn convert(&self, kind: &Kind) -> Option<Value> {
        match (kind, self) {
            (Kind::Boolean, Value::Bool(_))
            | (Kind::Integer, Value::Integer(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::Text, Value::Text(_)) => Some(self.clone()),
            (Kind::Integer, Value::Number(value)) => whole(*value).map(Value::Integer),
            (Kind::Number, Value::Integer(_)) => self.number().map(Value::Number),
            (Kind::Text, Value::Bool(_) | Value::Integer(_) | Value::Number(_)) => {
                Some(Value::Text(self.to_string()))
            }
            (Kind::Boolean, Value::Text(text)) => text.trim().parse().ok().map(Value::Bool),
            (Kind::Integer, Value::Text(text)) => match text.trim().parse() {
                Ok(value) => Some(Value::Integer(value)),
                Err(_) => whole(finite(text)?).map(Value::Integer),
            },
            (Kind::Number, Value::Text(text)) => finite(text).map(Value::Number),
            (Kind::List(kinds), Value::List(values)) if kinds.len() == values.len() => {
                let pairs = values.iter().zip(kinds);
                let values = pairs.map(|(value, kind)| value.convert(kind));
                values.collect::<Option<_>>().map(Value::List)
            }
            (Kind::List(kinds), Value::Text(text)) => {
                let parts: Vec<&str> = text.split(',').collect();
                if parts.len() != kinds.len() {
                    return None;
                }
                let parts = parts.iter().map(|part| Value::Text(part.trim().into()));
                Value::List(parts.collect()).convert(kind)
            }
            _ => None,
        }
    }

    /// What a text most probably means: a number or a truth value where it reads
    /// as one.
    #[must_use]
    pub fn guess(text: &str) -> Value {
        let kinds = [Kind::Boolean, Kind::Integer, Kind::Number];
        let is_written_so = |value: &Value| value.to_string() == text;
        let text_value = Value::Text(text.into());
        let mut guesses = kinds.iter().filter_map(|kind| text_value.convert(kind));
        guesses.find(is_written_so).unwrap_or(text_value)
    }
}

/// The whole number that this is.
fn whole(value: f64) -> Option<i64> {
    // Larger ones are no longer exact.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
    (value.fract() == 0.0 && value.abs() <= EXACT_MAX).then_some(value as i64)
}

fn finite(text: &str) -> Option<f64> {
    let value: f64 = text.trim().parse().ok()?;
    value.is_finite().then_some(value)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => value.fmt(f),
            Value::Integer(value) => value.fmt(f),
            // A number reads back as one.
            Value::Number(value) => write!(f, "{value:?}"),
            Value::Text(value) => value.fmt(f),
            Value::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{value}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Boolean => f.write_str("true or false"),
            Kind::Integer => f.write_str("a whole number"),
            Kind::Number => f.write_str("a number"),
            Kind::Text => f.write_str("a text"),
            Kind::List(kinds) => {
                write!(f, "{} values (", kinds.len())?;
                for (index, kind) in kinds.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{kind}")?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_what_is_expected() {
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(text("12").convert(&Kind::Integer), Some(Value::Integer(12)));
        assert_eq!(
            text("12.0").convert(&Kind::Integer),
            Some(Value::Integer(12))
        );
        assert_eq!(text("12.5").convert(&Kind::Integer), None);
        assert_eq!(
            text("1e3").convert(&Kind::Number),
            Some(Value::Number(1000.0))
        );
        assert_eq!(text("inf").convert(&Kind::Number), None);
        assert_eq!(text("yes").convert(&Kind::Boolean), None);
        let address = Kind::List(vec![Kind::Text, Kind::Integer]);
        let both = Value::List(vec![text("c21"), Value::Integer(8080)]);
        assert_eq!(text("c21,8080").convert(&address), Some(both.clone()));
        assert_eq!(both.to_string(), "c21,8080");
        assert_eq!(text("c21").convert(&address), None);
        assert_eq!(text("c21,x").convert(&address), None);
    }

    #[test]
    fn a_guess_does_not_change_what_is_written() {
        for (text, value) in [
            ("7", Value::Integer(7)),
            ("7.5", Value::Number(7.5)),
            ("true", Value::Bool(true)),
            ("007", Value::Text("007".into())),
            ("1.50", Value::Text("1.50".into())),
            ("2002/2/25", Value::Text("2002/2/25".into())),
        ] {
            assert_eq!(Value::guess(text), value, "{text}");
            assert_eq!(value.to_string(), text);
        }
    }
}
