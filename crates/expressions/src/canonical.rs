//! The one way to write an expression.
//!
//! What does not depend on an event is computed, comparisons with literals have
//! these on the right, and operands stand in the order of their texts where it
//! cannot be seen in a result: those of `&&`, `||`, `==`, `!=` and `*`. (Which
//! of several faults is told may differ.) Those of `+` stay, as it joins texts
//! and lists too.

use std::fmt::Write;

use milieu_transfer::{Row, Step, Value};

use crate::ast::{Node, Operator, What};
use crate::calendar::{show_span, show_time};
use crate::code::{Frame, Scratch, build};
use crate::kind::Kind;
use crate::resolve::Variable;

/// How many steps computing beforehand may take.
const STEPS: u64 = 1000;

/// Computes what does not depend on an event.
pub(crate) fn fold(node: Node) -> Node {
    let span = node.span;
    let what = match node.what {
        What::Select(of, name) => What::Select(boxed(*of), name),
        What::Has(of, name) => What::Has(boxed(*of), name),
        What::Index(of, index) => What::Index(boxed(*of), boxed(*index)),
        What::Call(function, nodes) => What::Call(function, all(nodes)),
        What::Not(of) => match fold(*of) {
            // Both are defined for everything.
            Node {
                what: What::Binary(Operator::Equal, a, b),
                ..
            } => What::Binary(Operator::Unequal, a, b),
            Node {
                what: What::Binary(Operator::Unequal, a, b),
                ..
            } => What::Binary(Operator::Equal, a, b),
            of => What::Not(Box::new(of)),
        },
        What::Negate(of) => What::Negate(boxed(*of)),
        What::Binary(operator, left, right) => binary(operator, fold(*left), fold(*right)),
        What::And(nodes) => What::And(flat(nodes, |what| match what {
            What::And(nodes) => Ok(nodes),
            other => Err(other),
        })),
        What::Or(nodes) => What::Or(flat(nodes, |what| match what {
            What::Or(nodes) => Ok(nodes),
            other => Err(other),
        })),
        What::Conditional(nodes) => {
            let [condition, yes, no] = *nodes;
            match (fold(condition), fold(yes), fold(no)) {
                (
                    Node {
                        what: What::Literal(Value::Bool(true)),
                        ..
                    },
                    yes,
                    _,
                ) => return yes,
                (
                    Node {
                        what: What::Literal(Value::Bool(false)),
                        ..
                    },
                    _,
                    no,
                ) => return no,
                (condition, yes, no) => What::Conditional(Box::new([condition, yes, no])),
            }
        }
        What::List(nodes) => What::List(all(nodes)),
        What::Map(entries) => {
            let entries = entries.into_iter();
            What::Map(
                entries
                    .map(|(key, value)| (fold(key), fold(value)))
                    .collect(),
            )
        }
        What::Fold(mut parts) => {
            parts.of = fold(parts.of);
            parts.test = parts.test.map(fold);
            parts.result = parts.result.map(fold);
            What::Fold(parts)
        }
        what => what,
    };
    computed(Node::new(what, span))
}

fn boxed(node: Node) -> Box<Node> {
    Box::new(fold(node))
}

fn all(nodes: Vec<Node>) -> Vec<Node> {
    nodes.into_iter().map(fold).collect()
}

/// Operands, with those of operands that are the same junction.
fn flat(nodes: Vec<Node>, inner: fn(What) -> Result<Vec<Node>, What>) -> Vec<Node> {
    let mut flat = Vec::new();
    for node in all(nodes) {
        let span = node.span;
        match inner(node.what) {
            Ok(nodes) => flat.extend(nodes),
            Err(what) => flat.push(Node::new(what, span)),
        }
    }
    flat
}

fn is_literal(node: &Node) -> bool {
    matches!(node.what, What::Literal(_))
}

/// A comparison has its literal on the right, and says `<` where it has none.
fn binary(operator: Operator, left: Node, right: Node) -> What {
    let is_greater = matches!(operator, Operator::Greater | Operator::GreaterEqual);
    let turns = match (is_literal(&left), is_literal(&right)) {
        (true, false) => operator.is_order(),
        // A chain would get parentheses within parentheses.
        (false, false) => is_greater && level(&left) > COMPARISON,
        _ => false,
    };
    match turns {
        true => What::Binary(operator.mirrored(), Box::new(right), Box::new(left)),
        false => What::Binary(operator, Box::new(left), Box::new(right)),
    }
}

/// The literal that a node is worth, if it depends on nothing and is worth one.
fn computed(node: Node) -> Node {
    let mut is_closed = !matches!(
        node.what,
        What::Literal(_)
            | What::Variable(_)
            | What::HasVariable(_)
            | What::Local(_)
            | What::Name(_)
    );
    match &node.what {
        What::Fold(parts) => {
            is_closed = is_literal(&parts.of) && depends_on_itself(&node, parts.local)
        }
        what => what.children(&mut |child| is_closed &= is_literal(child)),
    }
    if !is_closed {
        return node;
    }
    let scratch = Scratch::default();
    scratch.steps.set(STEPS);
    let row = Row::default();
    let frame = Frame {
        row: &row,
        scratch: &scratch,
    };
    // A variable of a macro has the place that it has in the whole.
    let run = build(&node, &[]).any();
    let value = match &node.what {
        What::Fold(parts) => frame.nested(parts.local, || run(&frame)),
        _ => run(&frame),
    };
    match value.filter(can_be_written) {
        Some(value) => Node::new(What::Literal(value), node.span),
        None => node,
    }
}

/// Whether it reads no field, and no variable of a macro around it.
fn depends_on_itself(node: &Node, first: usize) -> bool {
    match &node.what {
        What::Variable(_) | What::HasVariable(_) | What::Name(_) => false,
        What::Local(number) => *number >= first,
        what => {
            let mut does = true;
            what.children(&mut |child| does = does && depends_on_itself(child, first));
            does
        }
    }
}

/// There is no literal for what is no number, and long ones are not worth it.
fn can_be_written(value: &Value) -> bool {
    length(value).is_some_and(|length| length <= 256)
}

/// About how long the literal of a value is, if there is one.
fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Double(number) => number.is_finite().then_some(8),
        Value::Text(text) => Some(text.len()),
        Value::Bytes(bytes) => Some(bytes.len()),
        Value::List(list) => list.iter().map(|item| Some(2 + length(item)?)).sum(),
        Value::Map(map) => {
            let entries = map.iter();
            entries
                .map(|(key, value)| Some(4 + length(key)? + length(value)?))
                .sum()
        }
        Value::Link(_) => None,
        _ => Some(8),
    }
}

/// The text of a tree.
pub(crate) fn show(node: &Node, variables: &[Variable]) -> String {
    // Variables of macros get numbers behind a sign with which no field begins.
    let mut local = "_".to_owned();
    let is_taken = |local: &str| {
        variables
            .iter()
            .any(|variable| match variable.path.steps() {
                [Step::Field(first), ..] => first.starts_with(local),
                _ => false,
            })
    };
    while is_taken(&local) {
        local.push('_');
    }
    Writer { variables, local }.node(node, 0)
}

struct Writer<'w> {
    variables: &'w [Variable],
    local: String,
}

/// How tightly comparisons bind.
const COMPARISON: u8 = 3;

/// How tightly a node's outermost operator binds.
fn level(node: &Node) -> u8 {
    match &node.what {
        What::Conditional(_) => 0,
        What::Or(_) => 1,
        What::And(_) => 2,
        What::Binary(operator, ..) => match operator {
            Operator::Add | Operator::Subtract => 4,
            Operator::Multiply | Operator::Divide | Operator::Remainder => 5,
            _ => COMPARISON,
        },
        What::Not(_) | What::Negate(_) => 6,
        What::Literal(Value::Int(number)) if *number < 0 => 6,
        What::Literal(Value::Double(number)) if number.is_sign_negative() => 6,
        _ => 7,
    }
}

impl Writer<'_> {
    /// The text, in parentheses if it binds less tightly than needed.
    fn node(&self, node: &Node, least: u8) -> String {
        let text = self.text(node);
        match level(node) < least {
            true => format!("({text})"),
            false => text,
        }
    }

    fn text(&self, node: &Node) -> String {
        match &node.what {
            What::Literal(value) => literal(value),
            What::Name(name) => name.to_string(),
            What::Variable(number) => self.path(self.variables[*number].path.steps()),
            What::HasVariable(number) => self.has(self.variables[*number].path.steps()),
            What::Local(number) => format!("{}{number}", self.local),
            What::Select(of, name) => format!("{}{}", self.node(of, 7), part(name)),
            What::Has(of, name) => format!("has({}.{name})", self.node(of, 7)),
            What::Index(of, index) => format!("{}[{}]", self.node(of, 7), self.node(index, 0)),
            What::Call(function, nodes) => {
                let behind = usize::from(function.is_method());
                let arguments: Vec<String> = nodes
                    .iter()
                    .skip(behind)
                    .map(|node| self.node(node, 0))
                    .collect();
                let call = format!("{}({})", function.name(), arguments.join(", "));
                match nodes.first().filter(|_| behind == 1) {
                    Some(of) => format!("{}.{call}", self.node(of, 7)),
                    None => call,
                }
            }
            What::Not(of) => format!("!{}", self.node(of, 6)),
            What::Negate(of) => format!("-{}", self.node(of, 6)),
            What::Binary(operator, left, right) => {
                let level = level(node);
                let (mut a, mut b) = (self.node(left, level), self.node(right, level + 1));
                let is_symmetric = matches!(
                    operator,
                    Operator::Equal | Operator::Unequal | Operator::Multiply
                );
                if is_symmetric && !is_literal(right) && self::level(left) > level {
                    let turned = (self.node(right, level), self.node(left, level + 1));
                    if is_literal(left) || (&turned.0, &turned.1) < (&a, &b) {
                        (a, b) = turned;
                    }
                }
                format!("{a} {} {b}", operator.sign())
            }
            What::And(nodes) => self.sorted(nodes, " && ", 3),
            What::Or(nodes) => self.sorted(nodes, " || ", 2),
            What::Conditional(nodes) => {
                let [condition, yes, no] = &**nodes;
                let (condition, yes) = (self.node(condition, 1), self.node(yes, 1));
                format!("{condition} ? {yes} : {}", self.node(no, 0))
            }
            What::List(nodes) => format!("[{}]", self.list(nodes)),
            What::Map(entries) => {
                let entry = |(key, value): &(Node, Node)| {
                    format!("{}: {}", self.node(key, 0), self.node(value, 0))
                };
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{{}}}", entries.join(", "))
            }
            What::Fold(fold) => {
                let parts = fold
                    .test
                    .iter()
                    .chain(&fold.result)
                    .map(|node| self.node(node, 0));
                let parts: Vec<String> = parts.collect();
                let variable = format!("{}{}", self.local, fold.local);
                let of = self.node(&fold.of, 7);
                format!("{of}.{}({variable}, {})", fold.how.name(), parts.join(", "))
            }
        }
    }

    fn list(&self, nodes: &[Node]) -> String {
        let texts: Vec<String> = nodes.iter().map(|node| self.node(node, 0)).collect();
        texts.join(", ")
    }

    fn sorted(&self, nodes: &[Node], between: &str, least: u8) -> String {
        let mut texts: Vec<String> = nodes.iter().map(|node| self.node(node, least)).collect();
        texts.sort();
        texts.join(between)
    }

    fn path(&self, steps: &[Step]) -> String {
        let mut text = String::new();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => text.push_str(name),
                Step::Field(name) => text.push_str(&part(name)),
                Step::Index(index) => {
                    let _ = write!(text, "[{index}]");
                }
            }
        }
        text
    }

    fn has(&self, steps: &[Step]) -> String {
        match steps.split_last() {
            Some((Step::Field(name), above)) => format!("has({}.{name})", self.path(above)),
            _ => format!("has({})", self.path(steps)),
        }
    }
}

/// A step to a field: behind a dot if the name can stand there.
fn part(name: &str) -> String {
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = name.starts_with(starts) && name.chars().all(|c| starts(c) || c.is_ascii_digit());
    match is_name && !matches!(name, "true" | "false" | "null") {
        true => format!(".{name}"),
        false => format!("[{}]", literal(&Value::from(name))),
    }
}

/// A value as an expression writes it.
#[must_use]
pub fn literal(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => format!("{number}u"),
        Value::Double(number) => format!("{number:?}"),
        Value::Text(text) => quoted(text),
        Value::Bytes(bytes) => {
            let mut text = "b\"".to_owned();
            for byte in bytes.iter() {
                match byte {
                    b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
                    b' '..=b'~' => text.push(char::from(*byte)),
                    byte => {
                        let _ = write!(text, "\\x{byte:02x}");
                    }
                }
            }
            text.push('"');
            text
        }
        Value::Time(time) => format!("timestamp(\"{}\")", show_time(*time)),
        Value::Span(span) => format!("duration(\"{}\")", show_span(*span)),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entry =
                |(key, value): (&Value, &Value)| format!("{}: {}", literal(key), literal(value));
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Shared(_, inner) if Kind::of(value) == Kind::Type => match &**inner {
            Value::Text(name) => name.to_string(),
            other => literal(other),
        },
        Value::Shared(_, inner) => literal(inner),
        Value::Private(_) | Value::Link(_) => "null".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
