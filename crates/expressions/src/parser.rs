//! From words to a tree.
//!
//! Properties kept: whatever the text, no deeper recursion than
//! [`NESTING_MAX`], no deeper tree than [`DEPTH_MAX`], and time proportional to
//! the text.

use milieu_diagnostics::{Diagnostic, Span};
use milieu_transfer::Value;

use crate::ast::{Fold, How, Node, Operator, What};
use crate::function::{Form, Function, Refusal};
use crate::lexer::{Token, Word, words};
use crate::suggest::nearest;

/// How deep parentheses, lists, calls and signs may be nested.
pub(crate) const NESTING_MAX: u32 = 64;
/// How deep a tree may be, also where a chain of operators makes it deep.
pub(crate) const DEPTH_MAX: u32 = 250;
/// How long an expression may be, in bytes.
pub(crate) const LENGTH_MAX: usize = 100_000;

/// Words that CEL keeps for languages around it.
const RESERVED: [&str; 16] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
];

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Reads a whole text as one expression.
pub(crate) fn parse(text: &str) -> Result<Node> {
    if text.len() > LENGTH_MAX {
        let wrong = Diagnostic::error(format!(
            "an expression has at most {LENGTH_MAX} bytes, this one has {}",
            text.len()
        ));
        let wrong = wrong.code("too-long");
        return Err(Box::new(
            wrong.help("compare with a list that is a field of the event instead"),
        ));
    }
    let mut parser = Parser {
        words: words(text)?,
        at: 0,
        nesting: 0,
    };
    let node = parser.expression()?;
    match parser.next().word {
        Word::End => Ok(node),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser {
    words: Vec<Token>,
    at: usize,
    nesting: u32,
}

fn error(message: impl Into<String>, span: Span, label: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(message).label(span, label))
}

fn too_deep(span: Span) -> Box<Diagnostic> {
    let wrong = error(
        "the expression is nested too deeply",
        span,
        "here it is too much",
    );
    Box::new(
        wrong
            .code("too-deep")
            .help(format!(
                "at most {NESTING_MAX} parentheses, lists or signs in one another, and chains of at most about \
                 {DEPTH_MAX} operators; divide the expression among several operators"
            )),
    )
}

/// A tree that is not deeper than the passes over it can go.
fn node(what: What, span: Span) -> Result<Node> {
    let node = Node::new(what, span);
    if node.depth > DEPTH_MAX {
        return Err(too_deep(span));
    }
    Ok(node)
}

impl Parser {
    fn next(&self) -> &Token {
        &self.words[self.at.min(self.words.len() - 1)]
    }

    fn take(&mut self) -> Token {
        let token = self.next().clone();
        self.at += 1;
        token
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.next().word, Word::Sign(found) if found == sign)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_it = self.is(sign);
        self.at += usize::from(is_it);
        is_it
    }

    /// The place of the word taken last.
    fn last(&self) -> Span {
        self.words[self.at.saturating_sub(1)].span
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let token = self.next();
        let found = match &token.word {
            Word::End => "the expression ends".to_owned(),
            Word::Name(name) => format!("there is `{name}`"),
            Word::Sign(sign) => format!("there is `{sign}`"),
            Word::Int(number) => format!("there is `{number}`"),
            Word::Literal(_) => "there is a literal".to_owned(),
        };
        let wrong = error(
            format!("{found} where {expected} should be"),
            token.span,
            format!("expected {expected}"),
        );
        Box::new(match &token.word {
            Word::Name(name) if &**name == "and" => wrong.help("`and` is written `&&`"),
            Word::Name(name) if &**name == "or" => wrong.help("`or` is written `||`"),
            Word::Name(name) if &**name == "not" => wrong.help("`not` is written `!`"),
            _ => *wrong,
        })
    }

    fn expect(&mut self, sign: &str, opened: Span) -> Result<Span> {
        if self.takes(sign) {
            return Ok(self.last());
        }
        let wrong = self.unexpected(&format!("`{sign}`"));
        Err(Box::new(wrong.label(opened, "opened here")))
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Parser) -> Result<T>) -> Result<T> {
        if self.nesting == NESTING_MAX {
            return Err(too_deep(self.next().span));
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    fn expression(&mut self) -> Result<Node> {
        self.deeper(Parser::conditional)
    }

    fn conditional(&mut self) -> Result<Node> {
        let condition = self.either()?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let question = self.last();
        let yes = self.either()?;
        self.expect(":", question)?;
        let no = self.expression()?;
        let span = condition.span.to(no.span);
        node(What::Conditional(Box::new([condition, yes, no])), span)
    }

    fn either(&mut self) -> Result<Node> {
        self.chain("||", Parser::both, What::Or)
    }

    fn both(&mut self) -> Result<Node> {
        self.chain("&&", |parser| parser.binary(0), What::And)
    }

    fn chain(
        &mut self,
        sign: &str,
        mut operand: impl FnMut(&mut Parser) -> Result<Node>,
        make: fn(Vec<Node>) -> What,
    ) -> Result<Node> {
        let first = operand(self)?;
        if !self.is(sign) {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.takes(sign) {
            nodes.push(operand(self)?);
        }
        let span = nodes[0].span.to(nodes[nodes.len() - 1].span);
        node(make(nodes), span)
    }

    /// The operator that comes next, and how tightly it binds.
    fn operator(&self) -> Option<(Operator, u8)> {
        match &self.next().word {
            Word::Name(name) if &**name == "in" => Some((Operator::In, 0)),
            Word::Sign(sign) => Some(match *sign {
                "==" => (Operator::Equal, 0),
                "!=" => (Operator::Unequal, 0),
                "<" => (Operator::Less, 0),
                "<=" => (Operator::LessEqual, 0),
                ">" => (Operator::Greater, 0),
                ">=" => (Operator::GreaterEqual, 0),
                "+" => (Operator::Add, 1),
                "-" => (Operator::Subtract, 1),
                "*" => (Operator::Multiply, 2),
                "/" => (Operator::Divide, 2),
                "%" => (Operator::Remainder, 2),
                _ => return None,
            }),
            _ => None,
        }
    }

    /// Operators that bind at least as tightly, from the left.
    fn binary(&mut self, least: u8) -> Result<Node> {
        let mut left = self.unary()?;
        while let Some((operator, level)) = self.operator().filter(|(_, level)| *level >= least) {
            self.take();
            let right = if level == 2 {
                self.unary()?
            } else {
                self.binary(level + 1)?
            };
            let span = left.span.to(right.span);
            left = node(
                What::Binary(operator, Box::new(left), Box::new(right)),
                span,
            )?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node> {
        let start = self.next().span;
        if self.takes("!") {
            let of = self.deeper(Parser::unary)?;
            let span = start.to(of.span);
            return node(What::Not(Box::new(of)), span);
        }
        if !self.takes("-") {
            return self.member();
        }
        // The least number has no positive counterpart: the sign is a part of it.
        if let (Word::Int(number), span) = (&self.next().word, self.next().span) {
            if span.start == start.end {
                let number = 0_i64.checked_sub_unsigned(*number);
                let number = number.ok_or_else(|| too_large(start.to(span)))?;
                self.at += 1;
                let literal = node(What::Literal(Value::Int(number)), start.to(span))?;
                return self.members(literal);
            }
        }
        let of = self.deeper(Parser::unary)?;
        let span = start.to(of.span);
        node(What::Negate(Box::new(of)), span)
    }

    fn member(&mut self) -> Result<Node> {
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, mut of: Node) -> Result<Node> {
        loop {
            if self.takes(".") {
                let Word::Name(name) = self.next().word.clone() else {
                    return Err(self.unexpected("the name of a field or a function"));
                };
                let place = self.take().span;
                of = if self.is("(") {
                    self.method(of, &name, place)?
                } else {
                    let span = of.span.to(place);
                    node(What::Select(Box::new(of), name), span)?
                };
            } else if self.takes("[") {
                let opened = self.last();
                let index = self.expression()?;
                let span = of.span.to(self.expect("]", opened)?);
                of = node(What::Index(Box::new(of), Box::new(index)), span)?;
            } else if self.is("{") && matches!(of.what, What::Name(_) | What::Select(..)) {
                let span = of.span.to(self.next().span);
                let wrong = error("messages cannot be made here", span, "would be a message");
                return Err(Box::new(wrong.help("make a map, `{\"name\": value}`")));
            } else {
                return Ok(of);
            }
        }
    }

    fn primary(&mut self) -> Result<Node> {
        let start = self.next().span;
        if self.takes("(") {
            let inner = self.expression()?;
            let span = start.to(self.expect(")", start)?);
            return Ok(Node { span, ..inner });
        }
        if self.takes("[") {
            let items = self.list("]", start)?;
            return node(What::List(items), start.to(self.last()));
        }
        if self.takes("{") {
            return self.map(start);
        }
        // A dot before a name says that it is no variable of a macro in CEL's
        // containers; here there is one container.
        let dotted = self.is(".") && matches!(self.words[self.at + 1].word, Word::Name(_));
        self.at += usize::from(dotted);
        match self.next().word.clone() {
            Word::Literal(value) => {
                self.take();
                node(What::Literal(value), start)
            }
            Word::Int(number) => {
                let number = i64::try_from(number).map_err(|_| too_large(start))?;
                self.take();
                node(What::Literal(Value::Int(number)), start)
            }
            Word::Name(name) if &*name != "in" => {
                let place = self.take().span;
                if RESERVED.contains(&&*name) {
                    let wrong = error(format!("`{name}` is a reserved word"), place, "no name");
                    let way = format!("a field of this name is `value.{name}`");
                    return Err(Box::new(wrong.help(way)));
                }
                if self.is("(") {
                    return self.call(&name, place);
                }
                node(What::Name(name), start.to(place))
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Expressions between commas up to the sign, which is taken.
    fn list(&mut self, end: &str, opened: Span) -> Result<Vec<Node>> {
        let mut items = Vec::new();
        while !self.takes(end) {
            items.push(self.expression()?);
            if !self.takes(",") {
                self.expect(end, opened)?;
                break;
            }
            if end == ")" && self.is(end) {
                return Err(self.unexpected("an argument"));
            }
        }
        Ok(items)
    }

    fn map(&mut self, opened: Span) -> Result<Node> {
        let mut entries = Vec::new();
        while !self.takes("}") {
            let key = self.expression()?;
            self.expect(":", key.span)?;
            entries.push((key, self.expression()?));
            if !self.takes(",") {
                self.expect("}", opened)?;
                break;
            }
        }
        node(What::Map(entries), opened.to(self.last()))
    }

    fn arguments(&mut self) -> Result<Vec<Node>> {
        let opened = self.take().span;
        self.list(")", opened)
    }

    /// `name(…)`
    fn call(&mut self, name: &str, place: Span) -> Result<Node> {
        let arguments = self.arguments()?;
        let span = place.to(self.last());
        if name == "has" {
            return has(arguments, span);
        }
        match Function::called(name, false, arguments.len()) {
            Ok(function) => node(What::Call(function, arguments), span),
            Err(refusal) => Err(refused(name, false, &refusal, place)),
        }
    }

    /// `of.name(…)`
    fn method(&mut self, of: Node, name: &str, place: Span) -> Result<Node> {
        let mut arguments = self.arguments()?;
        let span = of.span.to(self.last());
        if let Some(how) = How::named(name) {
            return fold(how, of, arguments, place, span);
        }
        arguments.insert(0, of);
        match Function::called(name, true, arguments.len()) {
            Ok(function) => node(What::Call(function, arguments), span),
            Err(refusal) => Err(refused(name, true, &refusal, place)),
        }
    }
}

fn too_large(span: Span) -> Box<Diagnostic> {
    let wrong = error(
        "the whole number is not one of 64 bits",
        span,
        "this number",
    );
    Box::new(wrong.help("write it with `u` behind it if it is unsigned, or as a double, with `.0`"))
}

fn has(mut arguments: Vec<Node>, span: Span) -> Result<Node> {
    let argument = arguments.pop().filter(|_| arguments.is_empty());
    let wrong = match argument {
        Some(Node {
            what: What::Select(of, field),
            ..
        }) => return node(What::Has(of, field), span),
        Some(Node {
            what: What::Name(name),
            span,
            ..
        }) => error("`has` asks for a field of something", span, "of nothing")
            .help(format!("write `has(value.{name})`: `value` is the body of the event")),
        Some(other) => error("`has` asks for a field", other.span, "no field")
            .help("write `has(position.lat)`; whether a list has an element says `size`, and `key in map` works for every key"),
        None => error("`has` takes one argument", span, "here")
            .help("write `has(position.lat)`"),
    };
    Err(Box::new(wrong))
}

fn fold(how: How, of: Node, arguments: Vec<Node>, place: Span, span: Span) -> Result<Node> {
    let name = how.name();
    let count = arguments.len();
    let takes_three = how == How::Map && count == 3;
    if count != 2 && !takes_three {
        let wrong = error(
            format!("`{name}` takes a name and what to do with it"),
            place,
            format!("called with {count}"),
        );
        return Err(Box::new(
            wrong.help(match how {
                How::Map => {
                    "write `list.map(x, x * 2)`, or `list.map(x, x > 0, x * 2)` to take only some"
                        .to_owned()
                }
                _ => format!("write `list.{name}(x, x > 0)`"),
            }),
        ));
    }
    let mut arguments = arguments.into_iter();
    let variable = arguments.next();
    let Some(Node {
        what: What::Name(variable),
        ..
    }) = variable
    else {
        let place = variable.map_or(place, |node| node.span);
        let wrong = error(
            format!("`{name}` takes the name of its variable first"),
            place,
            "no name",
        );
        return Err(Box::new(wrong.help(format!("write `list.{name}(x, …)`"))));
    };
    let last = arguments.next_back();
    let (test, result) = match how {
        How::Map => (arguments.next(), last),
        _ => (last, None),
    };
    let local = 0;
    node(
        What::Fold(Box::new(Fold {
            how,
            of,
            variable,
            local,
            test,
            result,
        })),
        span,
    )
}

fn refused(name: &str, is_method: bool, refusal: &Refusal, place: Span) -> Box<Diagnostic> {
    let shown = |count: &usize| match count {
        0 => "no argument".to_owned(),
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let (message, label, help) = match refusal {
        Refusal::Unknown => {
            let macros = How::NAMES.iter().map(|(name, _)| *name).chain(["has"]);
            let near = nearest(name, Function::names().chain(macros));
            let help = near.map_or_else(
                || "docs/expressions.md lists the functions".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            (
                format!("there is no function `{name}`"),
                "unknown".to_owned(),
                help,
            )
        }
        Refusal::Form(Form::Method) => (
            format!("`{name}` is called behind a dot"),
            "called without one".to_owned(),
            format!("write `x.{name}(…)`"),
        ),
        Refusal::Form(_) => (
            format!("`{name}` is not called behind a dot"),
            "behind a dot".to_owned(),
            format!("write `{name}(x)`"),
        ),
        Refusal::Arguments(least, most) => {
            let count = if least == most {
                shown(most)
            } else {
                format!("{} or {}", shown(least), shown(most))
            };
            let call = if is_method {
                format!("x.{name}")
            } else {
                name.to_owned()
            };
            let places = ["", "…", "…, …"].get(*least).copied().unwrap_or("…");
            (
                format!("`{name}` takes {count}"),
                "called with another number of them".to_owned(),
                format!("write `{call}({places})`"),
            )
        }
    };
    Box::new(error(message, place, label).code("call").help(help))
}
