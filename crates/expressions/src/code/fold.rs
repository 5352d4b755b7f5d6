//! Macros that go through a list, or through the keys of a map.
//!
//! Each element costs a step, so that macros within macros end.

use milieu_diagnostics::Span as Place;
use milieu_transfer::Value;

use super::{Closure, Code, Frame};
use crate::ast::How;
use crate::fault::Wrong;
use crate::kind::{Kind, unshared};

/// The parts of a macro.
pub(super) struct Parts {
    pub how: How,
    pub of: Closure<Value>,
    pub test: Option<Closure<bool>>,
    pub result: Option<Closure<Value>>,
    pub place: Place,
}

impl Frame<'_> {
    /// The value of a macro's variable.
    pub(super) fn local(&self, number: usize) -> Value {
        let locals = self.scratch.locals.borrow();
        locals.get(number).cloned().unwrap_or(Value::Null)
    }

    /// Runs something as if in so many macros.
    pub(crate) fn nested<T>(&self, macros: usize, run: impl FnOnce() -> T) -> T {
        let locals = vec![Value::Null; macros];
        let before = self.scratch.locals.replace(locals);
        let result = run();
        self.scratch.locals.replace(before);
        result
    }

    /// Runs something with the variable of one more macro.
    fn bound<T>(&self, value: &Value, run: impl FnOnce() -> T) -> T {
        self.scratch.locals.borrow_mut().push(value.clone());
        let result = run();
        self.scratch.locals.borrow_mut().pop();
        result
    }
}

pub(super) fn fold(parts: Parts) -> Code {
    match (parts.how, parts.test) {
        (How::All, Some(test)) => quantified::<false>(parts.of, test, parts.place),
        (How::Exists, Some(test)) => quantified::<true>(parts.of, test, parts.place),
        (How::ExistsOne, Some(test)) => exists_one(parts.of, test, parts.place),
        (_, test) => collected(parts.of, test, parts.result, parts.place),
    }
}

/// Goes through the elements until the step says that it is enough.
fn each(
    of: &Closure<Value>,
    frame: &Frame<'_>,
    (how, place): (How, Place),
    mut step: impl FnMut(&Value) -> Option<bool>,
) -> Option<()> {
    let whole = of(frame)?;
    let mut visit = |element: &Value| {
        frame.spend(1, place)?;
        frame.bound(element, || step(element))
    };
    match unshared(&whole) {
        Value::List(list) => {
            for element in list.iter() {
                if visit(element)? {
                    break;
                }
            }
        }
        Value::Map(map) => {
            for (key, _) in map.iter() {
                if visit(key)? {
                    break;
                }
            }
        }
        other => return frame.fail(Wrong::NoOverload(how.name(), vec![Kind::of(other)]), place),
    }
    Some(())
}

/// `all`, where `false` decides, and `exists`, where `true` does, in spite of
/// faults with other elements.
fn quantified<const DECIDES: bool>(of: Closure<Value>, test: Closure<bool>, place: Place) -> Code {
    let how = if DECIDES { How::Exists } else { How::All };
    Code::Bool(Box::new(move |frame| {
        let mut decided = false;
        let mut fault = None;
        each(&of, frame, (how, place), |_| {
            match test(frame) {
                Some(result) => decided = result == DECIDES,
                None => fault = frame.scratch.outweigh(fault.take()),
            }
            Some(decided)
        })?;
        if decided {
            return Some(DECIDES);
        }
        if fault.is_some() {
            frame.scratch.fault.set(fault);
            return None;
        }
        Some(!DECIDES)
    }))
}

fn exists_one(of: Closure<Value>, test: Closure<bool>, place: Place) -> Code {
    Code::Bool(Box::new(move |frame| {
        let mut count = 0_u64;
        each(&of, frame, (How::ExistsOne, place), |_| {
            count += u64::from(test(frame)?);
            Some(false)
        })?;
        Some(count == 1)
    }))
}

/// `filter` and `map`.
fn collected(
    of: Closure<Value>,
    test: Option<Closure<bool>>,
    result: Option<Closure<Value>>,
    place: Place,
) -> Code {
    let how = if result.is_some() {
        How::Map
    } else {
        How::Filter
    };
    Code::Any(Box::new(move |frame| {
        let mut list = Vec::new();
        each(&of, frame, (how, place), |element| {
            let takes = match &test {
                Some(test) => test(frame)?,
                None => true,
            };
            if takes {
                list.push(match &result {
                    Some(result) => result(frame)?,
                    None => element.clone(),
                });
            }
            Some(false)
        })?;
        Some(Value::from(list))
    }))
}
