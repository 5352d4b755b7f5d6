//! Expressions, whatever their text, on whatever events.
//!
//! The first text is an expression; the second is the body of an event, written
//! as an expression that reads nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_expressions::{Compiled, Expression, Kind, Types};
use milieu_fuzz::{can_be_shown, texts};
use milieu_transfer::{Row, Selection, Value};

const STEPS: u64 = 2000;

fuzz_target!(|input: &str| {
    let [text, body] = texts(input);
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(wrong) => return can_be_shown(text, &wrong),
    };
    checked(&expression);
    let mut bodies = vec![
        Value::Null,
        Value::Int(3),
        Value::Double(1.5),
        Value::from("a"),
    ];
    bodies.extend(value(body));
    same_results(&expression, &bodies);
});

fn value(text: &str) -> Option<Value> {
    let mut selection = Selection::default();
    let mut compiled = Expression::parse(text)
        .ok()?
        .compile(&mut selection)
        .limit(STEPS);
    compiled.value(&Row::default()).ok()
}

/// Whatever the fields are said to be, what is wrong can be shown.
fn checked(expression: &Expression) {
    let kinds = [
        Kind::Int,
        Kind::Double,
        Kind::Text,
        Kind::List,
        Kind::Map,
        Kind::Time,
    ];
    let said = expression.variables().iter().zip(kinds.iter().cycle());
    let types = said.fold(Types::closed(), |types, (variable, kind)| {
        types.field(variable.path.to_string(), *kind)
    });
    for types in [Types::open(), Types::closed(), types] {
        if let Err(wrong) = expression.check(&types) {
            can_be_shown(expression.text(), &wrong);
        }
    }
}

/// A result does not depend on which events came before, nor on how the
/// expression is written.
fn same_results(expression: &Expression, bodies: &[Value]) {
    let canonical = expression.canonical();
    let again = match Expression::parse(&canonical) {
        Ok(again) => again,
        // What was computed may be written longer than it was read.
        Err(wrong) => {
            let code = wrong[0].code;
            assert!(
                matches!(code, Some("too-long" | "too-deep")),
                "{canonical:?}: {wrong:?}"
            );
            return;
        }
    };
    assert_eq!(again.canonical(), canonical);
    let mut selection = Selection::default();
    let mut used = expression.compile(&mut selection).limit(STEPS);
    let mut row = Row::default();
    for body in bodies {
        row.read_value(&selection, body);
        let result = shown(&mut used, &row);
        let mut fresh = expression.compile(&mut selection).limit(STEPS);
        row.read_value(&selection, body);
        assert_eq!(
            shown(&mut fresh, &row),
            result,
            "{} on {body:?}",
            expression.text()
        );
        let mut rewritten = again.compile(&mut selection).limit(STEPS);
        row.read_value(&selection, body);
        assert_eq!(
            shown(&mut rewritten, &row),
            result,
            "{canonical} on {body:?}"
        );
        let _ = (fresh.bool(&row), fresh.double(&row));
    }
}

/// A result as a text, in which what is no number equals itself; which of
/// several faults is told is open.
fn shown(compiled: &mut Compiled, row: &Row) -> Result<String, ()> {
    match compiled.value(row) {
        Ok(value) => Ok(format!("{value:?}")),
        Err(fault) => {
            assert!(!fault.to_string().is_empty());
            can_be_shown(compiled.expression().text(), &[fault.diagnostic()]);
            Err(())
        }
    }
}
