//! How a figure is computed from what a command measured.
//!
//! `(with-9 - with-0) / 9` has the operators `+ - * /`, parentheses, numbers,
//! and the names of measured values. A name may contain `-`, `_` and `.`, so
//! the minus sign between names stands between blanks.

use std::collections::BTreeMap;

/// Measured values by name.
pub type Values = BTreeMap<String, f64>;

/// The value of the expression.
pub fn evaluate(text: &str, values: &Values) -> Result<f64, String> {
    parse(text, &mut |name| {
        values
            .get(name)
            .copied()
            .ok_or_else(|| format!("`{name}` was not measured"))
    })
}

/// The names an expression uses, or why it is none.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    parse(text, &mut |name| {
        names.push(name.to_owned());
        Ok(1.0)
    })?;
    Ok(names)
}

/// Whether the expression contains a number, as the recorded figure of a peer
/// that is not measured beside ours must.
pub fn has_number(text: &str) -> bool {
    tokens(text).is_ok_and(|tokens| tokens.iter().any(|token| matches!(token, Token::Number(_))))
}

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Number(f64),
    Name(&'a str),
    Sign(char),
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() {
            rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        } else if first.is_ascii_alphabetic() {
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c))
        } else {
            Some(first.len_utf8())
        };
        let (token, after) = rest.split_at(length.unwrap_or(rest.len()));
        tokens.push(match first {
            '0'..='9' => Token::Number(
                token
                    .replace('_', "")
                    .parse()
                    .map_err(|_| format!("`{token}` in `{text}` is no number"))?,
            ),
            '+' | '-' | '*' | '/' | '(' | ')' => Token::Sign(first),
            _ if first.is_ascii_alphabetic() => Token::Name(token),
            _ => {
                return Err(format!(
                    "`{first}` in `{text}` is neither a name, a number, nor one of + - * / ( )"
                ));
            }
        });
        rest = after.trim_start();
    }
    Ok(tokens)
}

type Lookup<'a> = &'a mut dyn FnMut(&str) -> Result<f64, String>;

fn parse(text: &str, lookup: Lookup<'_>) -> Result<f64, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        text,
        tokens: &tokens,
        lookup,
    };
    let value = parser.sum()?;
    match parser.tokens {
        [] => Ok(value),
        _ => Err(parser.complaint()),
    }
}

struct Parser<'a, 't> {
    text: &'a str,
    tokens: &'a [Token<'t>],
    lookup: Lookup<'a>,
}

impl Parser<'_, '_> {
    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.next_sign("+-") {
            let right = self.product()?;
            value = if sign == '+' {
                value + right
            } else {
                value - right
            };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.operand()?;
        while let Some(sign) = self.next_sign("*/") {
            let right = self.operand()?;
            value = if sign == '*' {
                value * right
            } else {
                value / right
            };
        }
        Ok(value)
    }

    fn operand(&mut self) -> Result<f64, String> {
        let Some((first, rest)) = self.tokens.split_first() else {
            return Err(self.complaint());
        };
        self.tokens = rest;
        match first {
            Token::Number(number) => Ok(*number),
            Token::Name(name) => (self.lookup)(name),
            Token::Sign('(') => {
                let value = self.sum()?;
                self.next_sign(")").ok_or_else(|| self.complaint())?;
                Ok(value)
            }
            Token::Sign(_) => Err(self.complaint()),
        }
    }

    fn next_sign(&mut self, signs: &str) -> Option<char> {
        match self.tokens.split_first() {
            Some((Token::Sign(sign), rest)) if signs.contains(*sign) => {
                self.tokens = rest;
                Some(*sign)
            }
            _ => None,
        }
    }

    fn complaint(&self) -> String {
        format!(
            "`{}` is no expression; write one like `(with-9 - with-0) / 9`",
            self.text
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        [("with-0", 90.0), ("with-9", 540.0), ("read.ratio", 1.0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn figures_are_computed_from_measured_values() {
        for (text, value) in [
            ("with-0", 90.0),
            ("(with-9 - with-0) / 9", 50.0),
            ("with-9 - with-0 / 9", 530.0),
            ("with-0 / 1_672 * 2", 90.0 / 1672.0 * 2.0),
            ("read.ratio+0.5", 1.5),
        ] {
            assert_eq!(evaluate(text, &values()), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_was_not_measured_is_named() {
        assert_eq!(
            evaluate("with-1 / with-0", &values()),
            Err("`with-1` was not measured".to_owned())
        );
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "",
            "with-0 /",
            "(with-0",
            "with-0 with-9",
            "with-0 ^ 2",
            ")",
            "1.2.3",
        ] {
            assert!(names(text).is_err(), "{text}");
        }
        assert_eq!(names("a-b - c").unwrap(), ["a-b", "c"]);
    }

    #[test]
    fn a_recorded_figure_is_a_number() {
        assert!(has_number("with-0 / 1672"));
        assert!(!has_number("with-9 / with-0"));
    }
}
