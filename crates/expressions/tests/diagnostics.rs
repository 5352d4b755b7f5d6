//! What is said about wrong expressions, as it is shown.

use milieu_diagnostics::{Source, render};
use milieu_expressions::{Expression, Kind, Types};
use milieu_transfer::{Row, Selection, Value};

fn types() -> Types {
    Types::closed()
        .field("temperature", Kind::Double)
        .field("count", Kind::Int)
        .field("room", Kind::Text)
        .field("position.lat", Kind::Double)
        .field("samples", Kind::List)
}

/// What is wrong with an expression of such events.
#[track_caller]
fn shown(text: &str) -> String {
    let wrong =
        Expression::parse(text).and_then(|expression| expression.check(&types()).map(|_| ()));
    let wrong = wrong.expect_err(text);
    render(&Source::new("expression", text), &wrong, false)
}

#[test]
fn a_name_that_is_nearly_one() {
    assert_eq!(
        shown("temprature > 32"),
        "\
error[unknown-field]: there is no field `temprature`
 --> expression:1:1
  |
1 | temprature > 32
  | ^^^^^^^^^^ not a field of these events
  |
  = help: did you mean `temperature`?
"
    );
    assert_eq!(
        shown("room.startWith('k')"),
        "\
error[call]: there is no function `startWith`
 --> expression:1:6
  |
1 | room.startWith('k')
  |      ^^^^^^^^^ unknown
  |
  = help: did you mean `startsWith`?
"
    );
    assert_eq!(
        shown("event.tim > timestamp('2026-01-31T12:00:00Z')"),
        "\
error[unknown-field]: `event.tim` is no part of an event's header
 --> expression:1:1
  |
1 | event.tim > timestamp('2026-01-31T12:00:00Z')
  | ^^^^^^^^^ no part of a header
  |
  = help: did you mean `event.time`?
  = help: there are `event.name`, `event.time`, `event.sequence`, `event.origin`, `event.age`, `event.accuracy`, `event.failure`
  = help: a field of the body that is named `event` is `value.event`
"
    );
}

#[test]
fn kinds_that_do_not_fit() {
    assert_eq!(
        shown("temperature * 2 > 64.0"),
        "\
error[no-overload]: `*` is not defined for double and int
 --> expression:1:1
  |
1 | temperature * 2 > 64.0
  | ^^^^^^^^^^^   - this is of kind int
  | |
  | this is of kind double
  |
  = help: both must be of one kind: write a literal as `2.0`, or convert with `double(x)`
"
    );
    assert_eq!(
        shown("room + count == 'a'"),
        "\
error[no-overload]: `+` is not defined for string and int
 --> expression:1:1
  |
1 | room + count == 'a'
  | ^^^^   ----- this is of kind int
  | |
  | this is of kind string
  |
  = help: texts are joined with texts: convert with `string(x)`
"
    );
    assert_eq!(
        shown("temperature && room"),
        "\
error[no-overload]: `&&` is not defined for double
 --> expression:1:1
  |
1 | temperature && room
  | ^^^^^^^^^^^ this is of kind double

error[no-overload]: `&&` is not defined for string
 --> expression:1:16
  |
1 | temperature && room
  |                ^^^^ this is of kind string
"
    );
}

#[test]
fn words_of_other_languages() {
    assert_eq!(
        shown("temperature > 32 and count = 3"),
        "\
error: `=` has no meaning here
 --> expression:1:28
  |
1 | temperature > 32 and count = 3
  |                            ^ no word begins so
  |
  = help: equality is written `==`
"
    );
    assert_eq!(
        shown("temperature > 32 and count == 3"),
        "\
error: there is `and` where an operator or the end should be
 --> expression:1:18
  |
1 | temperature > 32 and count == 3
  |                  ^^^ expected an operator or the end
  |
  = help: `and` is written `&&`
"
    );
    assert_eq!(
        shown("temperature > 10s"),
        "\
error: a name begins right behind a number
 --> expression:1:15
  |
1 | temperature > 10s
  |               ^^^ neither of both
  |
  = help: durations are written `duration(\"10s\")`; put an operator or a space between
"
    );
}

#[test]
fn what_does_not_end() {
    assert_eq!(
        shown("(temperature > 32"),
        "\
error: the expression ends where `)` should be
 --> expression:1:18
  |
1 | (temperature > 32
  | - opened here    ^ expected `)`
"
    );
    assert_eq!(
        shown("room == 'kitchen"),
        "\
error: the text does not end
 --> expression:1:9
  |
1 | room == 'kitchen
  |         ^^^^^^^^ begins here
  |
  = help: end it with `'`
"
    );
}

#[test]
fn calls_and_macros() {
    assert_eq!(
        shown("has(temperature)"),
        "\
error: `has` asks for a field of something
 --> expression:1:5
  |
1 | has(temperature)
  |     ^^^^^^^^^^^ of nothing
  |
  = help: write `has(value.temperature)`: `value` is the body of the event
"
    );
    assert_eq!(
        shown("samples.all(x > 3)"),
        "\
error: `all` takes a name and what to do with it
 --> expression:1:9
  |
1 | samples.all(x > 3)
  |         ^^^ called with 1
  |
  = help: write `list.all(x, x > 0)`
"
    );
    assert_eq!(
        shown("room.matches('(')"),
        "\
error[pattern]: the regular expression is wrong: found open group without closing ')'
 --> expression:1:14
  |
1 | room.matches('(')
  |              ^^^ this one
  |
  = help: regular expressions are RE2's, without classes of Unicode; in `r\"…\"` a backslash means itself
"
    );
}

#[test]
fn faults_are_shown_in_the_same_way() {
    let text = "100 / count > 3";
    let mut selection = Selection::default();
    let mut compiled = Expression::parse(text).unwrap().compile(&mut selection);
    let mut row = Row::default();
    row.read_value(
        &selection,
        &Value::from([("count", 0)].into_iter().collect::<milieu_transfer::Map>()),
    );
    let fault = compiled.bool(&row).unwrap_err();
    assert_eq!(
        render(
            &Source::new("expression", text),
            &[fault.diagnostic()],
            false
        ),
        "\
error[fault]: a whole number is divided by zero
 --> expression:1:1
  |
1 | 100 / count > 3
  | ^^^^^^^^^^^ here
  |
  = help: ask `x != 0` first, or divide doubles
"
    );
}

#[test]
fn right_expressions_have_a_kind() {
    for (text, kind) in [
        ("temperature > 32", Kind::Bool),
        ("temperature * 2.0", Kind::Double),
        ("count + 1", Kind::Int),
        ("room + '!'", Kind::Text),
        ("position.lat", Kind::Double),
        ("position", Kind::Map),
        ("samples[0]", Kind::Dyn),
        ("samples.map(x, x * 2)", Kind::List),
        ("value.temperature", Kind::Double),
        ("event.time - duration('1m')", Kind::Time),
        ("event.time - event.time", Kind::Span),
        ("has(position.lat) ? position.lat : 0.0", Kind::Double),
        ("size(room) % 2", Kind::Int),
        ("type(count)", Kind::Type),
    ] {
        let kind_found = Expression::parse(text).unwrap().check(&types());
        assert_eq!(kind_found, Ok(kind), "{text}");
    }
}
