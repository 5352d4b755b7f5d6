//! Values written as expressions write them.

use milieu_expressions::{Expression, Fault};
use milieu_transfer::{Row, Selection, Value};

/// What an expression gives for a body.
pub fn run(text: &str, body: &Value) -> Result<Value, Fault> {
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(wrong) => panic!("{text}: {wrong:?}"),
    };
    let mut selection = Selection::default();
    let mut compiled = expression.compile(&mut selection);
    let mut row = Row::default();
    row.read_value(&selection, body);
    let first = compiled.value(&row);
    // The second time the closures are made already.
    // As texts, in which also what is no number equals itself.
    let (again, once) = (format!("{:?}", compiled.value(&row)), format!("{first:?}"));
    assert_eq!(again, once, "{text} again");
    first
}
