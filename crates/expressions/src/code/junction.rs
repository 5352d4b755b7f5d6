//! `&&` and `||`: an operand that decides outweighs faults of the others, on
//! whichever side it stands.

use super::range::Test;
use super::{Closure, Code, Frame};

/// `&&`, where the operand that decides is `false`, or `||`, where it is `true`.
pub(super) fn junction<const DECIDES: bool>(
    operands: Vec<Code>,
    fix: impl Fn(Code) -> Closure<bool>,
) -> Code {
    // The order shows only in which of several faults is told, so cheap ones
    // come first.
    let mut tests = Vec::new();
    let mut others = Vec::new();
    for operand in operands {
        match operand {
            Code::Test(mut test) => {
                let joined = !DECIDES && tests.iter_mut().any(|one: &mut Test| one.join(&mut test));
                if !joined {
                    tests.push(test);
                }
            }
            other => others.push(fix(other)),
        }
    }
    if !others.is_empty() {
        let junction = Junction::<DECIDES> {
            tests: tests.into(),
            others: others.into(),
        };
        return Code::Bool(Box::new(move |frame| junction.run(frame)));
    }
    if tests.len() == 1 {
        return Code::Test(tests.remove(0));
    }
    match <[Test; 2]>::try_from(tests) {
        Ok([one, other]) => Code::Bool(Box::new(move |frame| match one.get(frame) {
            Some(result) if result == DECIDES => Some(DECIDES),
            Some(_) => other.get(frame),
            None => of_rest::<DECIDES>(std::iter::once_with(|| other.get(frame)), frame),
        })),
        Err(tests) => Code::Bool(Box::new(move |frame| of_tests::<DECIDES>(&tests, frame))),
    }
}

#[inline]
fn of_tests<const DECIDES: bool>(tests: &[Test], frame: &Frame<'_>) -> Option<bool> {
    for (at, test) in tests.iter().enumerate() {
        match test.get(frame) {
            Some(result) if result == DECIDES => return Some(DECIDES),
            Some(_) => {}
            None => {
                return of_rest::<DECIDES>(
                    tests[at + 1..].iter().map(|test| test.get(frame)),
                    frame,
                );
            }
        }
    }
    Some(!DECIDES)
}

struct Junction<const DECIDES: bool> {
    tests: Box<[Test]>,
    others: Box<[Closure<bool>]>,
}

impl<const DECIDES: bool> Junction<DECIDES> {
    #[inline]
    fn run(&self, frame: &Frame<'_>) -> Option<bool> {
        let mut tests = self.tests.iter().map(|test| test.get(frame));
        for result in tests.by_ref() {
            match result {
                Some(result) if result == DECIDES => return Some(DECIDES),
                Some(_) => {}
                None => {
                    let others = self.others.iter().map(|other| other(frame));
                    return of_rest::<DECIDES>(tests.chain(others), frame);
                }
            }
        }
        let mut others = self.others.iter().map(|other| other(frame));
        while let Some(result) = others.next() {
            match result {
                Some(result) if result == DECIDES => return Some(DECIDES),
                Some(_) => {}
                None => return of_rest::<DECIDES>(others, frame),
            }
        }
        Some(!DECIDES)
    }
}

/// Behind an operand with a fault: one that decides, or that fault.
#[cold]
fn of_rest<const DECIDES: bool>(
    rest: impl Iterator<Item = Option<bool>>,
    frame: &Frame<'_>,
) -> Option<bool> {
    let mut fault = frame.scratch.take_fault();
    for result in rest {
        match result {
            Some(result) if result == DECIDES => return Some(DECIDES),
            Some(_) => {}
            None => fault = frame.scratch.outweigh(fault),
        }
    }
    frame.scratch.fault.set(fault);
    None
}
