//! What operators mean: on values of any kind, by CEL's definition.
//!
//! The closures for known kinds do the same faster; tests hold them to this.

use std::cmp::Ordering;
use std::sync::Arc;

use milieu_transfer::{Map, Span, Time, Value};

use crate::ast::Operator;
use crate::fault::Wrong;
use crate::kind::{Kind, unshared};

type Result<T> = std::result::Result<T, Wrong>;

/// Applies an operator.
pub(crate) fn operate(operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    use Operator::{
        Add, Divide, Equal, Greater, GreaterEqual, In, Less, LessEqual, Multiply, Remainder,
        Subtract, Unequal,
    };
    let (left, right) = (unshared(left), unshared(right));
    match operator {
        Equal => Ok(Value::Bool(equal(left, right))),
        Unequal => Ok(Value::Bool(!equal(left, right))),
        Less | LessEqual | Greater | GreaterEqual => {
            let order = compare(left, right).ok_or_else(|| mismatch(operator, left, right))?;
            Ok(Value::Bool(holds(operator, order)))
        }
        In => contains(left, right).map(Value::Bool),
        Add | Subtract | Multiply | Divide | Remainder => arithmetic(operator, left, right),
    }
}

/// Whether an order is the one that an operator asks for; numbers of which one
/// is none have no order.
pub(crate) fn holds(operator: Operator, order: Option<Ordering>) -> bool {
    let Some(order) = order else { return false };
    match operator {
        Operator::Less => order.is_lt(),
        Operator::LessEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterEqual => order.is_ge(),
        _ => false,
    }
}

pub(crate) fn mismatch(operator: Operator, left: &Value, right: &Value) -> Wrong {
    Wrong::NoOverload(operator.sign(), vec![Kind::of(left), Kind::of(right)])
}

fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    use Operator::{Add, Subtract};
    Ok(match (left, right) {
        (Value::Int(a), Value::Int(b)) => Value::Int(int(operator, *a, *b)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(uint(operator, *a, *b)?),
        (Value::Double(a), Value::Double(b)) if operator != Operator::Remainder => {
            Value::Double(double(operator, *a, *b))
        }
        (Value::Text(a), Value::Text(b)) if operator == Add => Value::from([&**a, &**b].concat()),
        (Value::Bytes(a), Value::Bytes(b)) if operator == Add => Value::from([&**a, &**b].concat()),
        (Value::List(a), Value::List(b)) if operator == Add => {
            Value::List([&**a, &**b].concat().into())
        }
        (Value::Time(a), Value::Span(b)) if matches!(operator, Add | Subtract) => Value::Time(
            Time::from_nanoseconds(int(operator, a.nanoseconds(), b.nanoseconds())?),
        ),
        (Value::Span(a), Value::Time(b)) if operator == Add => Value::Time(Time::from_nanoseconds(
            int(Add, a.nanoseconds(), b.nanoseconds())?,
        )),
        (Value::Time(a), Value::Time(b)) if operator == Subtract => Value::Span(
            Span::from_nanoseconds(int(operator, a.nanoseconds(), b.nanoseconds())?),
        ),
        (Value::Span(a), Value::Span(b)) if matches!(operator, Add | Subtract) => Value::Span(
            Span::from_nanoseconds(int(operator, a.nanoseconds(), b.nanoseconds())?),
        ),
        _ => return Err(mismatch(operator, left, right)),
    })
}

fn int(operator: Operator, a: i64, b: i64) -> Result<i64> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        _ if b == 0 => return Err(Wrong::DivisionByZero),
        Operator::Divide => a.checked_div(b),
        _ => a.checked_rem(b),
    };
    result.ok_or(Wrong::Overflow)
}

fn uint(operator: Operator, a: u64, b: u64) -> Result<u64> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        _ if b == 0 => return Err(Wrong::DivisionByZero),
        Operator::Divide => a.checked_div(b),
        _ => a.checked_rem(b),
    };
    result.ok_or(Wrong::Overflow)
}

fn double(operator: Operator, a: f64, b: f64) -> f64 {
    match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        _ => a / b,
    }
}

/// The negative of a number.
pub(crate) fn negate(value: &Value) -> Result<Value> {
    match unshared(value) {
        Value::Int(number) => number.checked_neg().map(Value::Int).ok_or(Wrong::Overflow),
        Value::Double(number) => Ok(Value::Double(-number)),
        other => Err(Wrong::NoOverload("-", vec![Kind::of(other)])),
    }
}

/// Whether two values are equal: numbers by what they are worth, whatever their
/// kinds; values of different kinds never.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (unshared(left), unshared(right)) {
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        (Value::Map(a), Value::Map(b)) => {
            let has = |(key, value): (&Value, &Value)| {
                entry(b, key).is_some_and(|other| equal(value, other))
            };
            a.len() == b.len() && a.iter().all(has)
        }
        (a, b) if Kind::of(a).is_number() && Kind::of(b).is_number() => {
            compare_numbers(a, b) == Some(Ordering::Equal)
        }
        (a, b) => a == b,
    }
}

/// The order of two values of a kind that has one; within, none where a number
/// is none.
fn compare(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    Some(Some(match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Span(a), Value::Span(b)) => a.cmp(b),
        (a, b) if Kind::of(a).is_number() && Kind::of(b).is_number() => {
            return Some(compare_numbers(a, b));
        }
        _ => return None,
    }))
}

fn compare_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => compare_double(*a, whole(b)?),
        (a, Value::Double(b)) => compare_double(*b, whole(a)?).map(Ordering::reverse),
        (a, b) => Some(whole(a)?.cmp(&whole(b)?)),
    }
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    }
}

/// Exactly, as rounding would make unequal numbers equal.
#[allow(
    clippy::cast_possible_truncation,
    reason = "beyond the range of whole numbers the nearest has the same order"
)]
pub(crate) fn compare_double(a: f64, b: i128) -> Option<Ordering> {
    if a.is_nan() {
        return None;
    }
    let below = a.floor();
    let order = (below as i128).cmp(&b);
    Some(order.then(if a > below {
        Ordering::Greater
    } else {
        Ordering::Equal
    }))
}

/// The value of a key.
pub(crate) fn entry<'m>(map: &'m Map, key: &Value) -> Option<&'m Value> {
    match key {
        Value::Text(name) => map.field(name),
        key => {
            let mut entries = map.iter();
            entries
                .find(|(known, _)| equal(known, key))
                .map(|(_, value)| value)
        }
    }
}

/// Whether a list has the element or a map the key.
pub(crate) fn contains(element: &Value, whole: &Value) -> Result<bool> {
    match whole {
        Value::List(list) => Ok(list.iter().any(|other| equal(element, other))),
        Value::Map(map) => Ok(entry(map, unshared(element)).is_some()),
        other => Err(mismatch(Operator::In, element, other)),
    }
}

/// `of.name`
pub(crate) fn select(of: &Value, name: &Arc<str>) -> Result<Value> {
    match unshared(of) {
        Value::Map(map) => {
            let found = map.field(name).cloned();
            found.ok_or_else(|| Wrong::NoKey(format!("`{name}`")))
        }
        other => Err(Wrong::NoOverload(".", vec![Kind::of(other)])),
    }
}

/// `of[index]`
pub(crate) fn index(of: &Value, index: &Value) -> Result<Value> {
    match (unshared(of), unshared(index)) {
        (Value::List(list), number) if Kind::of(number).is_number() => {
            let at = position(number)
                .ok_or_else(|| Wrong::NoOverload("[]", vec![Kind::List, Kind::of(number)]))?;
            let found = usize::try_from(at).ok().and_then(|at| list.get(at));
            found.cloned().ok_or(Wrong::NoElement(at))
        }
        (Value::Map(map), key) => {
            let found = entry(map, key).cloned();
            found.ok_or_else(|| Wrong::NoKey(show(key)))
        }
        (of, index) => Err(Wrong::NoOverload("[]", vec![Kind::of(of), Kind::of(index)])),
    }
}

/// The whole number that a number is worth.
fn position(number: &Value) -> Option<i64> {
    match number {
        Value::Int(number) => Some(*number),
        Value::Uint(number) => Some(i64::try_from(*number).unwrap_or(i64::MAX)),
        #[allow(clippy::cast_possible_truncation, reason = "it was seen to be whole")]
        Value::Double(number) if number.fract() == 0.0 => Some(*number as i64),
        _ => None,
    }
}

/// A map of entries, of which no key may come twice.
pub(crate) fn map(entries: Vec<(Value, Value)>) -> Result<Value> {
    let mut map = Map::default();
    for (key, value) in entries {
        if !matches!(
            key,
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Text(_)
        ) {
            return Err(Wrong::NoOverload("{}", vec![Kind::of(&key)]));
        }
        if entry(&map, &key).is_some() {
            return Err(Wrong::DuplicateKey(show(&key)));
        }
        map.set(key, value);
    }
    Ok(Value::from(map))
}

/// A value as a message shows it, shortened.
pub(crate) fn show(value: &Value) -> String {
    let mut shown = match value {
        Value::Text(text) => format!("{:?}", &**text),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => format!("{number}u"),
        Value::Double(number) => format!("{number:?}"),
        Value::Bool(value) => value.to_string(),
        other => Kind::of(other).to_string(),
    };
    if let Some((end, _)) = shown.char_indices().nth(60) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}
