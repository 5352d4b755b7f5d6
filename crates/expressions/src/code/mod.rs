//! Closures: what a tree becomes to run.
//!
//! A part whose kind is known becomes a closure that gives this kind, and one
//! that reads a slot tests that the slot still holds it. A part whose kind is
//! not known gives any value. Shapes that are common cost one call together: a
//! field compared with a number, several of these joined with `&&`, and
//! arithmetic whose operands are fields or numbers.

mod build;
mod fold;
mod junction;
mod range;
mod shapes;
mod text;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use milieu_diagnostics::Span as Place;
use milieu_transfer::{Row, Slot, Span, Time, Value};

pub(crate) use build::{Known, Truth, build, number};

use crate::fault::{Fault, Wrong};
use range::Test;
use text::Text;

/// A closure that gives a value, or nothing and a fault in the frame.
pub(crate) type Closure<T> = Box<dyn Fn(&Frame<'_>) -> Option<T> + Send + Sync>;

/// What one run of an expression works with.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'r> {
    pub row: &'r Row,
    pub scratch: &'r Scratch,
}

/// What runs of an expression use one after the other.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The variables of macros, the outermost first.
    locals: RefCell<Vec<Value>>,
    fault: Cell<Option<Fault>>,
    /// How many steps are left.
    pub steps: Cell<u64>,
}

impl Scratch {
    /// The fault because of which there was no value.
    pub(crate) fn take_fault(&self) -> Option<Fault> {
        self.fault.take()
    }

    /// Of the fault there is now and one from before, the one to be told: the one
    /// from before, unless this one says that closures are for other kinds. Then
    /// nothing is known yet.
    fn outweigh(&self, before: Option<Fault>) -> Option<Fault> {
        let now = self.take_fault();
        match &now {
            Some(fault) if *fault.what() == Wrong::Changed => now,
            _ => before.or(now),
        }
    }

    /// Makes it fit for another run after one that was broken off by a panic.
    pub(crate) fn clear(&self) {
        self.locals.borrow_mut().clear();
    }
}

impl Frame<'_> {
    #[cold]
    fn fail<T>(&self, what: Wrong, place: Place) -> Option<T> {
        let fault = Fault::new(what, place);
        self.scratch.fault.set(Some(fault));
        None
    }

    fn check<T>(&self, result: Result<T, Wrong>, place: Place) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(what) => self.fail(what, place),
        }
    }

    /// Pays for work whose amount the data decide.
    fn spend(&self, steps: usize, place: Place) -> Option<()> {
        let left = self.scratch.steps.get().checked_sub(steps as u64);
        match left {
            Some(left) => {
                self.scratch.steps.set(left);
                Some(())
            }
            None => {
                self.scratch.steps.set(0);
                self.fail(Wrong::TooLong, place)
            }
        }
    }
}

/// Runnable parts, by the kind that they give.
pub(crate) enum Code {
    Bool(Closure<bool>),
    /// A field compared with a number.
    Test(Test),
    Int(Source<i64>),
    Uint(Source<u64>),
    Double(Source<f64>),
    Time(Source<Time>),
    Span(Source<Span>),
    Text(Text),
    /// Always this one, of another kind than those above.
    Constant(Value),
    Any(Closure<Value>),
}

/// Where a scalar comes from.
pub(crate) enum Source<T> {
    Slot(Field),
    Constant(Constant<T>),
    Code(Closure<T>),
}

/// A slot, and what to say where it is empty.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    slot: usize,
    about: Arc<(Arc<str>, Place)>,
}

/// A value that never changes.
#[derive(Clone, Copy)]
pub(crate) struct Constant<T>(T);

/// What gives a scalar.
trait Get<T>: Send + Sync {
    fn get(&self, frame: &Frame<'_>) -> Option<T>;
}

impl<T: Copy + Send + Sync> Get<T> for Constant<T> {
    #[inline]
    fn get(&self, _: &Frame<'_>) -> Option<T> {
        Some(self.0)
    }
}

impl<T> Get<T> for Closure<T> {
    #[inline]
    fn get(&self, frame: &Frame<'_>) -> Option<T> {
        self(frame)
    }
}

impl Field {
    #[inline]
    fn slot<'r>(&self, frame: &Frame<'r>) -> Slot<'r> {
        frame.row.slot(self.slot)
    }

    /// What the slot holds is not what was expected.
    #[cold]
    fn unexpected<T>(&self, frame: &Frame<'_>) -> Option<T> {
        let (path, place) = &*self.about;
        match self.slot(frame) {
            Slot::Missing => frame.fail(Wrong::NoField(path.to_string()), *place),
            _ => frame.fail(Wrong::Changed, *place),
        }
    }

    fn value(&self, frame: &Frame<'_>) -> Option<Value> {
        Some(match self.slot(frame) {
            Slot::Missing => return self.unexpected(frame),
            Slot::Null => Value::Null,
            Slot::Bool(value) => Value::Bool(value),
            Slot::Int(value) => Value::Int(value),
            Slot::Uint(value) => Value::Uint(value),
            Slot::Double(value) => Value::Double(value),
            Slot::Time(value) => Value::Time(value),
            Slot::Span(value) => Value::Span(value),
            Slot::Text(value) => Value::from(value),
            Slot::Bytes(value) => Value::Bytes(value.into()),
            Slot::Value(value) => value.clone(),
        })
    }
}

/// Kinds whose values a word holds.
pub(crate) trait Scalar: Copy + Send + Sync + 'static {
    /// The value of a field that holds this kind.
    fn of(field: &Field, frame: &Frame<'_>) -> Option<Self>;
    /// As a value of any kind.
    fn value(self) -> Value;
}

macro_rules! scalars {
    ($($variant:ident($type:ty) by $method:ident;)*) => {$(
        impl Scalar for $type {
            #[inline]
            fn of(field: &Field, frame: &Frame<'_>) -> Option<$type> {
                match frame.row.$method(field.slot) {
                    Some(value) => Some(value),
                    None => field.unexpected(frame),
                }
            }

            fn value(self) -> Value {
                Value::$variant(self)
            }
        }

        impl Get<$type> for Field {
            #[inline]
            fn get(&self, frame: &Frame<'_>) -> Option<$type> {
                <$type>::of(self, frame)
            }
        }
    )*};
}

scalars! {
    Bool(bool) by bool;
    Int(i64) by int;
    Uint(u64) by uint;
    Double(f64) by double;
    Time(Time) by time;
    Span(Span) by span;
}

impl<T: Scalar> Source<T> {
    fn constant(value: T) -> Source<T> {
        Source::Constant(Constant(value))
    }

    fn closure(self) -> Closure<T> {
        match self {
            Source::Slot(field) => Box::new(move |frame| T::of(&field, frame)),
            Source::Constant(value) => Box::new(move |_| Some(value.0)),
            Source::Code(code) => code,
        }
    }

    fn any(self) -> Closure<Value> {
        let code = self.closure();
        Box::new(move |frame| code(frame).map(T::value))
    }
}

impl Code {
    /// The literal of a tree.
    fn literal(value: &Value) -> Code {
        match value {
            Value::Bool(value) => Code::boolean(Source::constant(*value)),
            Value::Int(value) => Code::Int(Source::constant(*value)),
            Value::Uint(value) => Code::Uint(Source::constant(*value)),
            Value::Double(value) => Code::Double(Source::constant(*value)),
            Value::Time(value) => Code::Time(Source::constant(*value)),
            Value::Span(value) => Code::Span(Source::constant(*value)),
            Value::Text(text) => Code::Text(Text::Constant(text.clone())),
            other => Code::Constant(other.clone()),
        }
    }

    fn boolean(source: Source<bool>) -> Code {
        Code::Bool(source.closure())
    }

    /// As what gives values of any kind.
    pub(crate) fn any(self) -> Closure<Value> {
        match self {
            Code::Bool(code) => Box::new(move |frame| code(frame).map(Value::Bool)),
            Code::Test(test) => Box::new(move |frame| test.get(frame).map(Value::Bool)),
            Code::Int(source) => source.any(),
            Code::Uint(source) => source.any(),
            Code::Double(source) => source.any(),
            Code::Time(source) => source.any(),
            Code::Span(source) => source.any(),
            Code::Text(text) => text.any(),
            Code::Constant(value) => Box::new(move |_| Some(value.clone())),
            Code::Any(code) => code,
        }
    }
}
