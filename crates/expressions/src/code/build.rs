//! From a tree and the kinds of its fields to closures.

use std::sync::Arc;

use milieu_diagnostics::Span as Place;
use milieu_transfer::{Slot, Value};

use super::fold::{Parts, fold};
use super::junction::junction;
use super::range::Test;
use super::shapes;
use super::text::{self, Text};
use super::{Closure, Code, Constant, Field, Frame, Source};
use crate::ast::{Node, Operator, What};
use crate::call::call;
use crate::dynamic;
use crate::fault::Wrong;
use crate::function::Function;
use crate::kind::{Kind, unshared};

/// What is known of a field when closures are made.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub slot: usize,
    pub path: Arc<str>,
    /// The kind that it had in all events so far, dynamic if it had several,
    /// none if there was no event that had it.
    pub kind: Option<Kind>,
}

/// Makes the closures of a tree.
pub(crate) fn build(node: &Node, fields: &[Known]) -> Code {
    Builder { fields }.code(node)
}

struct Builder<'k> {
    fields: &'k [Known],
}

impl Builder<'_> {
    fn any(&self, node: &Node) -> Closure<Value> {
        self.code(node).any()
    }

    fn code(&self, node: &Node) -> Code {
        let place = node.span;
        match &node.what {
            What::Literal(value) => Code::literal(value),
            // Names were found to be fields, variables or types before.
            What::Name(name) => never(Wrong::NoField(name.to_string()), place),
            What::Variable(number) => self.variable(*number, place),
            What::HasVariable(number) => {
                let slot = self.fields[*number].slot;
                Code::Bool(Box::new(move |frame| {
                    Some(frame.row.slot(slot) != Slot::Missing)
                }))
            }
            What::Local(number) => {
                let number = *number;
                Code::Any(Box::new(move |frame| Some(frame.local(number))))
            }
            What::Select(of, name) => {
                let (of, name) = (self.any(of), name.clone());
                Code::Any(Box::new(move |frame| {
                    let of = of(frame)?;
                    frame.check(dynamic::select(&of, &name), place)
                }))
            }
            What::Has(of, name) => {
                let (of, name) = (self.any(of), name.clone());
                Code::Bool(Box::new(move |frame| match unshared(&of(frame)?) {
                    Value::Map(map) => Some(map.field(&name).is_some()),
                    other => frame.fail(Wrong::NoOverload("has", vec![Kind::of(other)]), place),
                }))
            }
            What::Index(of, index) => {
                let (of, index) = (self.any(of), self.any(index));
                Code::Any(Box::new(move |frame| {
                    let (of, index) = (of(frame)?, index(frame)?);
                    frame.check(dynamic::index(&of, &index), place)
                }))
            }
            What::Call(function, arguments) => self.call(*function, arguments, place),
            What::Not(of) => self.not(of),
            What::Negate(of) => self.negate(of, place),
            What::Binary(operator, left, right) => self.binary(*operator, left, right, place),
            What::And(nodes) => {
                junction::<false>(self.codes(nodes), |code| truth("&&", code, place))
            }
            What::Or(nodes) => junction::<true>(self.codes(nodes), |code| truth("||", code, place)),
            What::Conditional(nodes) => self.conditional(nodes),
            What::List(nodes) => {
                let nodes: Vec<_> = nodes.iter().map(|node| self.any(node)).collect();
                Code::Any(Box::new(move |frame| {
                    let list: Option<Vec<Value>> = nodes.iter().map(|node| node(frame)).collect();
                    list.map(Value::from)
                }))
            }
            What::Map(entries) => self.map(entries, place),
            What::Fold(parts) => {
                let name = parts.how.name();
                fold(Parts {
                    how: parts.how,
                    of: self.any(&parts.of),
                    test: parts
                        .test
                        .as_ref()
                        .map(|test| truth(name, self.code(test), test.span)),
                    result: parts.result.as_ref().map(|result| self.any(result)),
                    place,
                })
            }
        }
    }

    fn codes(&self, nodes: &[Node]) -> Vec<Code> {
        nodes.iter().map(|node| self.code(node)).collect()
    }

    fn variable(&self, number: usize, place: Place) -> Code {
        let known = &self.fields[number];
        let field = self.field(number, place);
        match known.kind {
            Some(Kind::Bool) => Code::boolean(Source::Slot(field)),
            Some(Kind::Int) => Code::Int(Source::Slot(field)),
            Some(Kind::Uint) => Code::Uint(Source::Slot(field)),
            Some(Kind::Double) => Code::Double(Source::Slot(field)),
            Some(Kind::Time) => Code::Time(Source::Slot(field)),
            Some(Kind::Span) => Code::Span(Source::Slot(field)),
            Some(Kind::Text) => Code::Text(Text::Slot(field)),
            Some(_) => Code::Any(Box::new(move |frame| field.value(frame))),
            // Whatever comes there, the closures are made anew for its kind.
            None => Code::Any(Box::new(move |frame| field.unexpected(frame))),
        }
    }

    fn field(&self, number: usize, place: Place) -> Field {
        let known = &self.fields[number];
        let about = Arc::new((known.path.clone(), place));
        let slot = known.slot;
        Field { slot, about }
    }

    fn not(&self, of: &Node) -> Code {
        let of = truth("!", self.code(of), of.span);
        Code::Bool(Box::new(move |frame| of(frame).map(|value| !value)))
    }

    fn negate(&self, of: &Node, place: Place) -> Code {
        match self.code(of) {
            Code::Double(source) => {
                let of = source.closure();
                Code::Double(Source::Code(Box::new(move |frame| {
                    of(frame).map(|value| -value)
                })))
            }
            Code::Int(source) => {
                let of = source.closure();
                Code::Int(Source::Code(Box::new(move |frame| {
                    match of(frame)?.checked_neg() {
                        Some(value) => Some(value),
                        None => frame.fail(Wrong::Overflow, place),
                    }
                })))
            }
            other => {
                let of = other.any();
                Code::Any(Box::new(move |frame| {
                    let of = of(frame)?;
                    frame.check(dynamic::negate(&of), place)
                }))
            }
        }
    }

    fn conditional(&self, nodes: &[Node; 3]) -> Code {
        let [condition, yes, no] = nodes;
        let condition = truth("?:", self.code(condition), condition.span);
        macro_rules! choose {
            ($yes:expr, $no:expr) => {{
                let (yes, no) = ($yes, $no);
                Box::new(move |frame: &Frame<'_>| match condition(frame)? {
                    true => yes(frame),
                    false => no(frame),
                })
            }};
        }
        match (self.code(yes), self.code(no)) {
            (Code::Double(a), Code::Double(b)) => {
                Code::Double(Source::Code(choose!(a.closure(), b.closure())))
            }
            (Code::Int(a), Code::Int(b)) => {
                Code::Int(Source::Code(choose!(a.closure(), b.closure())))
            }
            (Code::Text(a), Code::Text(b)) => Code::Text(Text::Code(choose!(a.any(), b.any()))),
            (Code::Bool(a), Code::Bool(b)) => Code::Bool(choose!(a, b)),
            (a, b) => Code::Any(choose!(a.any(), b.any())),
        }
    }

    fn map(&self, entries: &[(Node, Node)], place: Place) -> Code {
        let entries: Vec<_> = entries
            .iter()
            .map(|(key, value)| (self.any(key), self.any(value)))
            .collect();
        Code::Any(Box::new(move |frame| {
            let made = |(key, value): &(Closure<Value>, Closure<Value>)| {
                Some((key(frame)?, value(frame)?))
            };
            let made: Option<Vec<_>> = entries.iter().map(made).collect();
            frame.check(dynamic::map(made?), place)
        }))
    }

    fn binary(&self, operator: Operator, left: &Node, right: &Node, place: Place) -> Code {
        if let Some(test) = self.test(operator, left, right, place) {
            return Code::Test(test);
        }
        let codes = (self.code(left), self.code(right));
        if operator == Operator::In {
            return is_in(codes.0, codes.1, place);
        }
        if operator.is_order() || matches!(operator, Operator::Equal | Operator::Unequal) {
            return compare(operator, codes, place);
        }
        arithmetic(operator, codes, place)
    }

    /// A field compared with a number, on either side.
    fn test(&self, operator: Operator, left: &Node, right: &Node, place: Place) -> Option<Test> {
        let is_comparison =
            operator.is_order() || matches!(operator, Operator::Equal | Operator::Unequal);
        let (variable, number, operator) = match (&left.what, &right.what) {
            (What::Variable(_), What::Literal(number)) => (left, number, operator),
            (What::Literal(number), What::Variable(_)) => (right, number, operator.mirrored()),
            _ => return None,
        };
        let What::Variable(which) = variable.what else {
            return None;
        };
        let is_number = is_comparison && Kind::of(number).is_number();
        is_number.then(|| {
            let field = self.field(which, variable.span);
            Test::new(field, operator, number.clone(), place)
        })
    }

    fn call(&self, function: Function, arguments: &[Node], place: Place) -> Code {
        let mut codes = self.codes(arguments);
        if let [Code::Text(_), Code::Text(_)] = &codes[..] {
            if let (Some(Code::Text(what)), Some(Code::Text(text))) = (codes.pop(), codes.pop()) {
                return match text::search(function, text, what, place) {
                    Some(code) => code,
                    None => self.call_any(function, arguments, place),
                };
            }
        }
        match (function, codes.pop(), codes.is_empty()) {
            (Function::Size, Some(Code::Text(text)), true) => {
                Code::Int(Source::Code(text::size(text, place)))
            }
            #[allow(
                clippy::cast_precision_loss,
                reason = "the nearest double is asked for"
            )]
            (Function::Double, Some(Code::Int(source)), true) => {
                let of = source.closure();
                Code::Double(Source::Code(Box::new(move |frame| {
                    of(frame).map(|value| value as f64)
                })))
            }
            (Function::Double, Some(code @ Code::Double(_)), true)
            | (Function::Int, Some(code @ Code::Int(_)), true) => code,
            _ => self.call_any(function, arguments, place),
        }
    }

    /// A call whose arguments may be anything, of whose result the kind is known.
    fn call_any(&self, function: Function, arguments: &[Node], place: Place) -> Code {
        let arguments: Vec<_> = arguments.iter().map(|node| self.any(node)).collect();
        let run = move |frame: &Frame<'_>| {
            let values: Option<Vec<Value>> = arguments.iter().map(|run| run(frame)).collect();
            let values = values?;
            frame.spend(values.iter().map(weight).sum(), place)?;
            frame.check(call(function, &values), place)
        };
        macro_rules! of_kind {
            ($code:ident, $value:ident) => {
                Code::$code(Source::Code(Box::new(move |frame| match run(frame)? {
                    Value::$value(value) => Some(value),
                    _ => None,
                })))
            };
        }
        match function {
            Function::Int
            | Function::Size
            | Function::FullYear
            | Function::Month
            | Function::Date
            | Function::DayOfMonth
            | Function::DayOfWeek
            | Function::DayOfYear
            | Function::Hours
            | Function::Minutes
            | Function::Seconds
            | Function::Milliseconds => of_kind!(Int, Int),
            Function::Uint => of_kind!(Uint, Uint),
            Function::Double => of_kind!(Double, Double),
            Function::Span => of_kind!(Span, Span),
            Function::Time => of_kind!(Time, Time),
            Function::Text => Code::Text(Text::Code(Box::new(run))),
            _ => Code::Any(Box::new(run)),
        }
    }
}

/// How many steps a value costs an operator that looks at all of it.
fn weight(value: &Value) -> usize {
    match unshared(value) {
        Value::Text(text) => text.len() / 64,
        Value::Bytes(bytes) => bytes.len() / 64,
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => 0,
    }
}

/// What always fails in the same way.
fn never(wrong: Wrong, place: Place) -> Code {
    Code::Any(Box::new(move |frame| frame.fail(wrong.clone(), place)))
}

/// What is asked for its truth.
pub(crate) enum Truth {
    Test(Test),
    Code(Closure<bool>),
}

impl Truth {
    pub(crate) fn new(code: Code, place: Place) -> Truth {
        let asked = Kind::Bool;
        match code {
            Code::Test(test) => Truth::Test(test),
            Code::Bool(code) => Truth::Code(code),
            other => {
                let code = other.any();
                Truth::Code(Box::new(move |frame| match unshared(&code(frame)?) {
                    Value::Bool(value) => Some(*value),
                    other => {
                        let found = Kind::of(other);
                        frame.fail(Wrong::NotAsked { asked, found }, place)
                    }
                }))
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, frame: &Frame<'_>) -> Option<bool> {
        match self {
            Truth::Test(test) => test.get(frame),
            Truth::Code(code) => code(frame),
        }
    }
}

/// What is asked for a number, of whichever kind it is.
#[allow(
    clippy::cast_precision_loss,
    reason = "the nearest double is asked for"
)]
pub(crate) fn number(code: Code, place: Place) -> Closure<f64> {
    let asked = Kind::Double;
    match code {
        Code::Double(source) => source.closure(),
        other => {
            let code = other.any();
            Box::new(move |frame| match unshared(&code(frame)?) {
                Value::Double(value) => Some(*value),
                Value::Int(value) => Some(*value as f64),
                Value::Uint(value) => Some(*value as f64),
                other => {
                    let found = Kind::of(other);
                    frame.fail(Wrong::NotAsked { asked, found }, place)
                }
            })
        }
    }
}

/// As a truth value, which every other kind is not.
pub(crate) fn truth(operator: &'static str, code: Code, place: Place) -> Closure<bool> {
    match code {
        Code::Bool(code) => code,
        Code::Test(test) => Box::new(move |frame| test.get(frame)),
        other => {
            let code = other.any();
            Box::new(move |frame| match unshared(&code(frame)?) {
                Value::Bool(value) => Some(*value),
                other => frame.fail(Wrong::NoOverload(operator, vec![Kind::of(other)]), place),
            })
        }
    }
}

/// Any operator on values of any kind.
fn operate(operator: Operator, (left, right): (Code, Code), place: Place) -> Closure<Value> {
    let (left, right) = (left.any(), right.any());
    Box::new(move |frame| {
        let left = left(frame)?;
        let right = right(frame)?;
        frame.spend(weight(&left).saturating_add(weight(&right)), place)?;
        frame.check(dynamic::operate(operator, &left, &right), place)
    })
}

fn operate_bool(operator: Operator, codes: (Code, Code), place: Place) -> Code {
    let run = operate(operator, codes, place);
    Code::Bool(Box::new(move |frame| {
        run(frame).map(|value| value == Value::Bool(true))
    }))
}

fn is_in(element: Code, list: Code, place: Place) -> Code {
    let (text, constant) = match (element, list) {
        (Code::Text(text), Code::Constant(Value::List(list))) => (text, list),
        codes => return operate_bool(Operator::In, (codes.0, codes.1), place),
    };
    // An element that is no text is never equal to one.
    let texts = constant.iter().filter_map(|element| match element {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    text::is_in(text, texts.collect())
}

/// A constant whole number as the double of the same worth.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "what is lost is looked at"
)]
fn exact(source: Source<i64>) -> Result<Source<f64>, Source<i64>> {
    match source {
        Source::Constant(Constant(number)) if (number as f64) as i128 == i128::from(number) => {
            Ok(Source::constant(number as f64))
        }
        other => Err(other),
    }
}

fn compare(operator: Operator, codes: (Code, Code), place: Place) -> Code {
    Code::Bool(match codes {
        (Code::Double(a), Code::Double(b)) => shapes::compare(operator, a, b),
        (Code::Int(a), Code::Int(b)) => shapes::compare(operator, a, b),
        (Code::Uint(a), Code::Uint(b)) => shapes::compare(operator, a, b),
        (Code::Time(a), Code::Time(b)) => shapes::compare(operator, a, b),
        (Code::Span(a), Code::Span(b)) => shapes::compare(operator, a, b),
        (Code::Text(a), Code::Text(b)) => return text::compare(operator, a, b),
        // `a + b > 32` with doubles.
        (Code::Double(a), Code::Int(b)) => match exact(b) {
            Ok(b) => shapes::compare(operator, a, b),
            Err(b) => return operate_bool(operator, (Code::Double(a), Code::Int(b)), place),
        },
        (Code::Int(a), Code::Double(b)) => match exact(a) {
            Ok(a) => shapes::compare(operator, a, b),
            Err(a) => return operate_bool(operator, (Code::Int(a), Code::Double(b)), place),
        },
        codes => return operate_bool(operator, codes, place),
    })
}

fn arithmetic(operator: Operator, codes: (Code, Code), place: Place) -> Code {
    use Operator::{Add, Subtract};
    let is_sum = matches!(operator, Add | Subtract);
    match codes {
        (Code::Double(a), Code::Double(b)) if operator != Operator::Remainder => {
            shapes::doubles(operator, a, b)
                .map_or_else(|| never(Wrong::Overflow, place), Code::Double)
        }
        (Code::Int(a), Code::Int(b)) => shapes::ints(operator, a, b, place)
            .map_or_else(|| never(Wrong::Overflow, place), Code::Int),
        (Code::Uint(a), Code::Uint(b)) => shapes::uints(operator, a, b, place)
            .map_or_else(|| never(Wrong::Overflow, place), Code::Uint),
        (Code::Span(a), Code::Span(b)) if is_sum => {
            Code::Span(shapes::nanoseconds(operator, a, b, place))
        }
        (Code::Time(a), Code::Span(b)) if is_sum => {
            Code::Time(shapes::nanoseconds(operator, a, b, place))
        }
        (Code::Span(a), Code::Time(b)) if operator == Add => {
            Code::Time(shapes::nanoseconds(operator, a, b, place))
        }
        (Code::Time(a), Code::Time(b)) if operator == Subtract => {
            Code::Span(shapes::nanoseconds(operator, a, b, place))
        }
        (Code::Text(a), Code::Text(b)) if operator == Add => Code::Text(Text::Code(operate(
            operator,
            (Code::Text(a), Code::Text(b)),
            place,
        ))),
        codes => Code::Any(operate(operator, codes, place)),
    }
}
