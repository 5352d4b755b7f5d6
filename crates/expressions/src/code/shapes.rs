//! Operators on scalars of one kind.

use milieu_diagnostics::Span as Place;
use milieu_transfer::{Span, Time};

use super::{Closure, Frame, Get, Scalar, Source};
use crate::ast::Operator;
use crate::fault::Wrong;

/// Makes a closure for each way in which two operands can come: the calls of
/// those that are fields or constants vanish.
macro_rules! shapes {
    ($left:expr, $right:expr, |$a:ident, $b:ident| $make:expr) => {
        match ($left, $right) {
            (Source::Slot($a), Source::Slot($b)) => $make,
            (Source::Slot($a), Source::Constant($b)) => $make,
            (Source::Slot($a), Source::Code($b)) => $make,
            (Source::Constant($a), Source::Slot($b)) => $make,
            (Source::Constant($a), Source::Constant($b)) => $make,
            (Source::Constant($a), Source::Code($b)) => $make,
            (Source::Code($a), Source::Slot($b)) => $make,
            (Source::Code($a), Source::Constant($b)) => $make,
            (Source::Code($a), Source::Code($b)) => $make,
        }
    };
}

/// A closure that computes both operands, then something of them.
fn both<T: Scalar, R>(
    a: impl Get<T> + 'static,
    b: impl Get<T> + 'static,
    compute: impl Fn(&Frame<'_>, T, T) -> Option<R> + Send + Sync + 'static,
) -> Closure<R> {
    Box::new(move |frame| {
        let a = a.get(frame)?;
        let b = b.get(frame)?;
        compute(frame, a, b)
    })
}

/// A comparison of two scalars of one kind.
pub(super) fn compare<T: Scalar + PartialOrd>(
    operator: Operator,
    left: Source<T>,
    right: Source<T>,
) -> Closure<bool>
where
    super::Field: Get<T>,
{
    macro_rules! by {
        ($sign:tt) => {
            shapes!(left, right, |a, b| both(a, b, |_, a: T, b: T| Some(a $sign b)))
        };
    }
    match operator {
        Operator::Equal => by!(==),
        Operator::Unequal => by!(!=),
        Operator::Less => by!(<),
        Operator::LessEqual => by!(<=),
        Operator::Greater => by!(>),
        _ => by!(>=),
    }
}

/// Arithmetic on doubles; none where there is no such.
pub(super) fn doubles(
    operator: Operator,
    left: Source<f64>,
    right: Source<f64>,
) -> Option<Source<f64>> {
    macro_rules! by {
        ($sign:tt) => {
            shapes!(left, right, |a, b| both(a, b, |_, a: f64, b: f64| Some(a $sign b)))
        };
    }
    Some(Source::Code(match operator {
        Operator::Add => by!(+),
        Operator::Subtract => by!(-),
        Operator::Multiply => by!(*),
        Operator::Divide => by!(/),
        _ => return None,
    }))
}

macro_rules! whole {
    ($name:ident, $type:ty) => {
        /// Arithmetic on whole numbers of 64 bits.
        pub(super) fn $name(
            operator: Operator,
            left: Source<$type>,
            right: Source<$type>,
            place: Place,
        ) -> Option<Source<$type>> {
            macro_rules! by {
                ($method:ident) => {
                    shapes!(left, right, |a, b| both(
                        a,
                        b,
                        move |frame, a: $type, b: $type| match a.$method(b) {
                            Some(result) => Some(result),
                            None => no_result(operator, b == 0, frame, place),
                        }
                    ))
                };
            }
            Some(Source::Code(match operator {
                Operator::Add => by!(checked_add),
                Operator::Subtract => by!(checked_sub),
                Operator::Multiply => by!(checked_mul),
                Operator::Divide => by!(checked_div),
                Operator::Remainder => by!(checked_rem),
                _ => return None,
            }))
        }
    };
}

whole!(ints, i64);
whole!(uints, u64);

#[cold]
fn no_result<T>(operator: Operator, by_zero: bool, frame: &Frame<'_>, place: Place) -> Option<T> {
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    frame.fail(
        if divides && by_zero {
            Wrong::DivisionByZero
        } else {
            Wrong::Overflow
        },
        place,
    )
}

/// What is counted in nanoseconds.
pub(super) trait Nanoseconds: Scalar {
    fn count(self) -> i64;
    fn of_count(count: i64) -> Self;
}

impl Nanoseconds for Time {
    fn count(self) -> i64 {
        self.nanoseconds()
    }

    fn of_count(count: i64) -> Time {
        Time::from_nanoseconds(count)
    }
}

impl Nanoseconds for Span {
    fn count(self) -> i64 {
        self.nanoseconds()
    }

    fn of_count(count: i64) -> Span {
        Span::from_nanoseconds(count)
    }
}

/// A sum or difference of times and durations.
pub(super) fn nanoseconds<A: Nanoseconds, B: Nanoseconds, R: Nanoseconds>(
    operator: Operator,
    left: Source<A>,
    right: Source<B>,
    place: Place,
) -> Source<R> {
    let (left, right) = (left.closure(), right.closure());
    Source::Code(Box::new(move |frame| {
        let (a, b) = (left(frame)?.count(), right(frame)?.count());
        let result = match operator {
            Operator::Add => a.checked_add(b),
            _ => a.checked_sub(b),
        };
        match result {
            Some(result) => Some(R::of_count(result)),
            None => frame.fail(Wrong::Overflow, place),
        }
    }))
}
