//! Fields compared with numbers: a range for each kind that the field may have.

use milieu_diagnostics::Span as Place;
use milieu_transfer::Value;

use super::{Field, Frame};
use crate::ast::Operator;
use crate::dynamic::operate;

/// Whether a field lies in a range, which depends on its kind: whatever number
/// it is, comparing costs two comparisons and no conversion.
pub(crate) struct Test {
    field: Field,
    /// Whether it must lie outside.
    outside: bool,
    doubles: (f64, f64),
    ints: (i64, i64),
    uints: (u64, u64),
    /// For fields that hold no number: the comparisons, all of which must hold.
    rare: Vec<Comparison>,
}

struct Comparison {
    operator: Operator,
    number: Value,
    place: Place,
}

impl Test {
    /// The test that a comparison with a number is.
    pub(super) fn new(field: Field, operator: Operator, number: Value, place: Place) -> Test {
        let (inside, outside) = match operator {
            Operator::Unequal => (Operator::Equal, true),
            operator => (operator, false),
        };
        let (doubles, (least, most)) = match number {
            Value::Double(number) => (doubles(inside, number), wholes_of_double(inside, number)),
            Value::Int(number) => of_whole(inside, i128::from(number)),
            Value::Uint(number) => of_whole(inside, i128::from(number)),
            _ => ((1.0, 0.0), (1, 0)),
        };
        let ints = (
            i64::try_from(least.max(i64::MIN.into())),
            i64::try_from(most.min(i64::MAX.into())),
        );
        let uints = (
            u64::try_from(least.max(0)),
            u64::try_from(most.min(u64::MAX.into())),
        );
        Test {
            field,
            outside,
            doubles,
            // A bound beyond all numbers of the kind leaves none of them.
            ints: if let (Ok(least), Ok(most)) = ints {
                (least, most)
            } else {
                (1, 0)
            },
            uints: if let (Ok(least), Ok(most)) = uints {
                (least, most)
            } else {
                (1, 0)
            },
            rare: vec![Comparison {
                operator,
                number,
                place,
            }],
        }
    }

    /// Makes one test of two which must both hold, if it can be one: then the
    /// other is of no use any more.
    pub(super) fn join(&mut self, other: &mut Test) -> bool {
        if self.field.slot != other.field.slot || self.outside || other.outside {
            return false;
        }
        self.doubles = both(self.doubles, other.doubles);
        self.ints = both(self.ints, other.ints);
        self.uints = both(self.uints, other.uints);
        self.rare.append(&mut other.rare);
        true
    }

    #[inline]
    pub(crate) fn get(&self, frame: &Frame<'_>) -> Option<bool> {
        let (row, slot) = (frame.row, self.field.slot);
        let inside = if let Some(number) = row.double(slot) {
            self.doubles.0 <= number && number <= self.doubles.1
        } else if let Some(number) = row.int(slot) {
            self.ints.0 <= number && number <= self.ints.1
        } else if let Some(number) = row.uint(slot) {
            self.uints.0 <= number && number <= self.uints.1
        } else {
            return self.no_number(frame);
        };
        Some(inside != self.outside)
    }

    #[cold]
    fn no_number(&self, frame: &Frame<'_>) -> Option<bool> {
        let value = self.field.value(frame)?;
        let mut fault = None;
        for Comparison {
            operator,
            number,
            place,
        } in &self.rare
        {
            match operate(*operator, &value, number) {
                Ok(Value::Bool(true)) => {}
                // It outweighs faults of others.
                Ok(_) => return Some(false),
                Err(wrong) => fault = fault.or(Some((wrong, *place))),
            }
        }
        match fault {
            Some((wrong, place)) => frame.fail(wrong, place),
            None => Some(true),
        }
    }
}

/// What lies in both ranges.
fn both<T: PartialOrd>(one: (T, T), other: (T, T)) -> (T, T) {
    let least = if one.0 < other.0 { other.0 } else { one.0 };
    let most = if one.1 < other.1 { one.1 } else { other.1 };
    (least, most)
}

const NONE: (f64, f64) = (1.0, 0.0);

/// The doubles that compare so with a double.
fn doubles(operator: Operator, number: f64) -> (f64, f64) {
    match operator {
        _ if number.is_nan() => NONE,
        Operator::Equal => (number, number),
        Operator::Less if number == f64::NEG_INFINITY => NONE,
        Operator::Less => (f64::NEG_INFINITY, before(number)),
        Operator::LessEqual => (f64::NEG_INFINITY, number),
        Operator::Greater if number == f64::INFINITY => NONE,
        Operator::Greater => (-before(-number), f64::INFINITY),
        _ => (number, f64::INFINITY),
    }
}

/// The next smaller double.
fn before(number: f64) -> f64 {
    let bits = number.to_bits();
    if number == 0.0 {
        return -f64::from_bits(1);
    }
    f64::from_bits(if number > 0.0 { bits - 1 } else { bits + 1 })
}

const FAR: i128 = 1 << 100;

/// The whole numbers that compare so with a whole number.
fn wholes(operator: Operator, number: i128) -> (i128, i128) {
    match operator {
        Operator::Equal => (number, number),
        Operator::Less => (-FAR, number - 1),
        Operator::LessEqual => (-FAR, number),
        Operator::Greater => (number + 1, FAR),
        _ => (number, FAR),
    }
}

/// The whole numbers that compare so with a double.
#[allow(
    clippy::cast_possible_truncation,
    reason = "it was cut to a range that holds it"
)]
fn wholes_of_double(operator: Operator, number: f64) -> (i128, i128) {
    if number.is_nan() {
        return (1, 0);
    }
    let cut = |number: f64| (number.clamp(-1e30, 1e30)) as i128;
    let (below, above) = (cut(number.floor()), cut(number.ceil()));
    match operator {
        Operator::Equal if number.fract() != 0.0 => (1, 0),
        Operator::Less | Operator::GreaterEqual => wholes(operator, above),
        _ => wholes(operator, below),
    }
}

/// The doubles and the whole numbers that compare so with a whole number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "what is lost is looked at"
)]
fn of_whole(operator: Operator, number: i128) -> ((f64, f64), (i128, i128)) {
    let nearest = number as f64;
    let exact = nearest as i128;
    let doubles = match operator {
        _ if exact == number => doubles(operator, nearest),
        Operator::Equal => NONE,
        // No double lies between the number and the nearest one.
        Operator::Less | Operator::LessEqual if exact < number => {
            doubles(Operator::LessEqual, nearest)
        }
        Operator::Less | Operator::LessEqual => doubles(Operator::Less, nearest),
        _ if exact < number => doubles(Operator::Greater, nearest),
        _ => doubles(Operator::GreaterEqual, nearest),
    };
    (doubles, wholes(operator, number))
}
