//! The corners of CEL's definition, by example.

use crate::support::run;
use milieu_expressions::{Expression, Kind, Wrong};
use milieu_transfer::{Row, Selection, Value};

/// What an expression of literals gives.
fn literal(text: &str) -> Value {
    match run(text, &Value::Null) {
        Ok(value) => value,
        Err(fault) => panic!("{text}: {fault}"),
    }
}

/// Each of these is true.
#[track_caller]
fn holds(texts: &[&str]) {
    for text in texts {
        match run(text, &Value::Null) {
            Ok(value) => assert_eq!(value, Value::Bool(true), "{text}"),
            Err(fault) => panic!("{text}: {fault}"),
        }
    }
}

#[track_caller]
fn fails(text: &str, with: &Wrong) {
    match run(text, &Value::Null) {
        Ok(value) => panic!("{text} is {value:?}"),
        Err(fault) => assert_eq!(fault.what(), with, "{text}"),
    }
}

#[test]
fn literals() {
    for (text, value) in [
        ("0x1F", Value::Int(31)),
        ("-9223372036854775808", Value::Int(i64::MIN)),
        ("18446744073709551615u", Value::Uint(u64::MAX)),
        ("0xffU", Value::Uint(255)),
        (".5", Value::Double(0.5)),
        ("1e3", Value::Double(1000.0)),
        ("-2.5E-1", Value::Double(-0.25)),
        ("'it''s'.size() == 0 ? 1 : 2", Value::Null),
        (
            r#""a\n\t\"\\\x41\u00e4\U0001f600\101""#,
            Value::from("a\n\t\"\\A\u{e4}\u{1f600}A"),
        ),
        (r#"r"a\n""#, Value::from("a\\n")),
        ("'''a\n'b''c'''", Value::from("a\n'b''c")),
        (r#"b"\xff\000a\u""#, Value::Null),
        (r#"b"\xff\000aä""#, Value::from(b"\xff\0a\xc3\xa4".to_vec())),
        (r#"bR'\x'"#, Value::from(b"\\x".to_vec())),
        ("null", Value::Null),
        ("[1, 2,]", Value::from(vec![Value::Int(1), Value::Int(2)])),
        ("true // that is all", Value::Bool(true)),
    ] {
        if value == Value::Null && text != "null" {
            assert!(Expression::parse(text).is_err(), "{text} is an expression");
        } else {
            assert_eq!(literal(text), value, "{text}");
        }
    }
}

#[test]
fn precedence() {
    holds(&[
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "10 - 2 - 3 == 5",
        "2 * 7 / 3 % 3 == 1",
        "-2 + 3 == 1",
        "- (2 + 3) == -5",
        "!false && true || false",
        "true || false && false",
        "!(true && false)",
        "false ? false : true ? true : false",
        "1 < 2 == true",
        "1 in [1] == true",
        "!!true",
        "--2 == 2",
        "true ? 1 == 1 : false",
    ]);
}

#[test]
fn whole_numbers_do_not_wrap() {
    let overflow = Wrong::Overflow;
    for text in [
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "9223372036854775807 * 2",
        "-(-9223372036854775808)",
        "-9223372036854775808 / -1",
        "-9223372036854775808 % -1",
        "18446744073709551615u + 1u",
        "1u - 2u",
        "int(1e19)",
        "int(18446744073709551615u)",
        "uint(-1)",
        "uint(-0.5)",
        "int(0.0 / 0.0)",
        "timestamp(9223372036854775807)",
        "timestamp('2261-01-01T00:00:00Z') + duration('1000000h')",
    ] {
        fails(text, &overflow);
    }
    for text in ["1 / 0", "1 % 0", "1u / 0u", "1u % 0u"] {
        fails(text, &Wrong::DivisionByZero);
    }
    holds(&[
        "-7 / 2 == -3",
        "-7 % 2 == -1",
        "7 % -2 == 1",
        "7u / 2u == 3u",
    ]);
}

#[test]
fn doubles_are_ieee_754() {
    holds(&[
        "1.0 / 0.0 > 1e308",
        "-1.0 / 0.0 < -1e308",
        "0.0 / 0.0 != 0.0 / 0.0",
        "!(0.0 / 0.0 == 0.0 / 0.0)",
        "!(0.0 / 0.0 < 1.0)",
        "!(0.0 / 0.0 >= 1.0)",
        "0.0 == -0.0",
        "0.1 + 0.2 != 0.3",
    ]);
}

#[test]
fn numbers_of_different_kinds_are_compared_but_not_added() {
    holds(&[
        "1 == 1.0",
        "1u == 1",
        "1.5 > 1",
        "2 > 1.5",
        "-1 < 1u",
        "18446744073709551615u > 9223372036854775807",
        "9007199254740993 > 9007199254740992.0",
        "9223372036854775807 < 9223372036854775808.0",
        "[1, 2u, 3.0] == [1.0, 2, 3u]",
        "{1: 'a'}[1u] == 'a'",
        "1.0 in [1]",
        "[7, 8][1.0] == 8",
        "dyn(1) == 1u",
    ]);
    let kinds = vec![Kind::Int, Kind::Double];
    fails("1 + 1.0", &Wrong::NoOverload("+", kinds));
    fails(
        "1u * 1",
        &Wrong::NoOverload("*", vec![Kind::Uint, Kind::Int]),
    );
    fails("5.0 % 2.0", &Wrong::NoOverload("%", vec![Kind::Double; 2]));
}

#[test]
fn values_of_different_kinds_are_never_equal_and_have_no_order() {
    holds(&[
        "dyn(1) != '1'",
        "dyn(null) != 0",
        "[1] != ['1']",
        "!(dyn(true) == 1)",
    ]);
    fails(
        "dyn(1) < '1'",
        &Wrong::NoOverload("<", vec![Kind::Int, Kind::Text]),
    );
    fails("null < null", &Wrong::NoOverload("<", vec![Kind::Null; 2]));
    holds(&[
        "false < true",
        "b'a' < b'b'",
        "'a' < 'ä'",
        "duration('1s') < duration('1m')",
    ]);
}

#[test]
fn an_operand_that_decides_outweighs_faults() {
    holds(&[
        "!(1 / 0 > 0 && false)",
        "!(false && 1 / 0 > 0)",
        "1 / 0 > 0 || true",
        "true || 1 / 0 > 0",
        "true || missing",
        "!(1 + 'a' == 2 && false)",
        "[1, 0].exists(x, 1 / x == 1)",
        "[0, 1].exists(x, 1 / x == 1)",
        "![0, 2].all(x, 1 / x == 1)",
        "true ? true : 1 / 0 > 0",
    ]);
    for text in [
        "1 / 0 > 0 && true",
        "true && 1 / 0 > 0",
        "1 / 0 > 0 || false",
        "[0, 2].exists(x, 1 / x == 1)",
        "[0, 1].all(x, 1 / x == 1)",
        "[0, 1].exists_one(x, 1 / x == 1)",
        "1 / 0 > 0 ? true : true",
        "1 / 0 > 0 && (1 / 0 > 0 || false)",
    ] {
        fails(text, &Wrong::DivisionByZero);
    }
    fails("1 && true", &Wrong::NoOverload("&&", vec![Kind::Int]));
}

#[test]
fn macros() {
    holds(&[
        "[1, 2, 3].all(x, x > 0)",
        "[].all(x, false)",
        "![].exists(x, true)",
        "[1, 2, 2].exists_one(x, x == 1)",
        "![1, 2, 2].exists_one(x, x == 2)",
        "[1, 2, 3].map(x, x * 2) == [2, 4, 6]",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
        "[1, 2, 3].filter(x, x % 2 == 1) == [1, 3]",
        "{'a': 1, 'b': 2}.exists(k, k == 'b')",
        "{'a': 1}.map(k, k) == ['a']",
        "[[1, 2], [3]].all(xs, xs.exists(x, x in [1, 3]))",
        "[1, 2].all(x, [x].all(x, x > 0) && x > 0)",
        "has({'a': null}.a)",
        "!has({'a': 1}.b)",
        "[1, 2].map(x, [x].map(y, x + y)) == [[2], [4]]",
    ]);
}

#[test]
fn lists_and_maps() {
    holds(&[
        "[1, 2][1] == 2",
        "{'a': 1}.a == 1",
        "{'a': {'b': [7]}}.a.b[0] == 7",
        "{true: 1}[true] == 1",
        "[1] + [2] == [1, 2]",
        "{'a': 1, 'b': 2} == {'b': 2.0, 'a': 1u}",
        "'a' in {'a': 1}",
        "!('b' in {'a': 1})",
        "size([1, 2]) == 2 && {'a': 1}.size() == 1",
        "[0.0 / 0.0] != [0.0 / 0.0]",
    ]);
    fails("[1][1]", &Wrong::NoElement(1));
    fails("[1][-1]", &Wrong::NoElement(-1));
    fails("{'a': 1}.b", &Wrong::NoKey("`b`".into()));
    fails("{'a': 1}['b']", &Wrong::NoKey("\"b\"".into()));
    fails("{1: 1, 1u: 2}", &Wrong::DuplicateKey("1u".into()));
    fails("{1.5: 1}", &Wrong::NoOverload("{}", vec![Kind::Double]));
}

#[test]
fn texts() {
    holds(&[
        "'äö'.size() == 2",
        "size(b'ä') == 2",
        "'hello'.contains('ell')",
        "'hello'.startsWith('he') && 'hello'.endsWith('lo')",
        "'hello'.matches('^h.*o$')",
        "matches('hello', 'l+')",
        "!'hello'.matches(r'^\\d')",
        "'a' + 'b' == 'ab'",
        "b'a' + b'b' == b'ab'",
        "'' < 'a'",
    ]);
    assert!(matches!(
        run("'a'.matches('(')", &Value::Null).unwrap_err().what(),
        Wrong::NoPattern(_)
    ));
}

#[test]
fn conversions() {
    holds(&[
        "int(-1.9) == -1",
        "int('-5') == -5",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60",
        "uint(3.9) == 3u",
        "double('1.5') == 1.5",
        "double(3) == 3.0",
        "string(1) + string(1u) + string(1.5) == '111.5'",
        "string(b'a') == 'a'",
        "string(true) == 'true'",
        "bytes('ä') == b'\\xc3\\xa4'",
        "bytes(b'a') == b'a'",
        "bool('true') && !bool('0')",
        "string(timestamp('2026-01-31T12:00:00.5Z')) == '2026-01-31T12:00:00.5Z'",
        "string(duration('90m')) == '5400s'",
        "type(1) == int && type(1.0) == double && type('a') == string",
        "type([]) == list && type({}) == map && type(null) == null_type",
        "type(int) == type && type(type(1)) == type",
        "type(timestamp('2026-01-31T12:00:00Z')) == google.protobuf.Timestamp",
        "type(1) != type(1u)",
        "type(1) in [int, uint]",
    ]);
    fails("int('a')", &Wrong::NoConversion("\"a\"".into(), Kind::Int));
    fails(
        "string(b'\\xff')",
        &Wrong::NoConversion("bytes".into(), Kind::Text),
    );
    assert_eq!(literal("[type(1)]"), Value::from(vec![Value::from("int")]));
}

#[test]
fn times() {
    holds(&[
        "timestamp('2026-01-31T12:00:00Z') + duration('12h') == timestamp('2026-02-01T00:00:00Z')",
        "timestamp('2026-01-31T12:00:00Z') - timestamp('2026-01-31T11:00:00Z') == duration('1h')",
        "duration('1h') - duration('30m') == duration('1800s')",
        "timestamp('2026-01-31T12:34:56.789Z').getFullYear() == 2026",
        "timestamp('2026-01-31T12:34:56.789Z').getMonth() == 0",
        "timestamp('2026-01-31T12:34:56.789Z').getDate() == 31",
        "timestamp('2026-01-31T12:34:56.789Z').getDayOfMonth() == 30",
        "timestamp('2026-01-31T12:34:56.789Z').getDayOfWeek() == 6",
        "timestamp('2026-02-01T12:34:56.789Z').getDayOfYear() == 31",
        "timestamp('2026-01-31T12:34:56.789Z').getHours() == 12",
        "timestamp('2026-01-31T12:34:56.789Z').getHours('+02:00') == 14",
        "timestamp('2026-01-31T12:34:56.789Z').getMinutes('05:30') == 4",
        "timestamp('2026-01-31T12:34:56.789Z').getSeconds() == 56",
        "timestamp('2026-01-31T12:34:56.789Z').getMilliseconds() == 789",
        "duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90",
        "duration('1.5s').getMilliseconds() == 1500",
    ]);
    fails(
        "timestamp('2026-01-31T12:34:56Z').getHours('Europe/Vienna')",
        &Wrong::NoZone("Europe/Vienna".into()),
    );
}

/// Runs one compiled expression on several bodies after each other.
fn each(text: &str, bodies: &[Value]) -> Vec<String> {
    let mut selection = Selection::default();
    let mut compiled = Expression::parse(text).unwrap().compile(&mut selection);
    let mut row = Row::default();
    let mut shown = Vec::new();
    for body in bodies {
        row.read_value(&selection, body);
        shown.push(match compiled.value(&row) {
            Ok(value) => format!("{value:?}"),
            Err(fault) => fault.what().to_string(),
        });
    }
    shown
}

#[test]
fn fields_may_change_their_kinds() {
    let bodies = [
        Value::Int(40),
        Value::Double(32.5),
        Value::Uint(3),
        Value::from("a"),
        Value::Null,
        Value::Int(33),
    ];
    assert_eq!(
        each("value > 32", &bodies),
        [
            "Bool(true)",
            "Bool(true)",
            "Bool(false)",
            "`>` is not defined for string and int",
            "`>` is not defined for null and int",
            "Bool(true)",
        ]
    );
    assert_eq!(
        each("value + value", &bodies),
        [
            "Int(80)",
            "Double(65.0)",
            "Uint(6)",
            "Text(\"aa\")",
            "`+` is not defined for null and null",
            "Int(66)",
        ]
    );
}

#[test]
fn a_field_of_another_kind_behind_a_fault_is_no_fault() {
    // What is missing is a fault with every event; whether what is behind it
    // decides must not depend on what `name` was before.
    let bodies = [literal("{'name': 3}"), literal("{'name': 'aab'}")];
    for (text, decided) in [
        ("missing == 1 && name + 'c' == 'b'", "Bool(false)"),
        ("missing == 1 || name + 'c' == 'aabc'", "Bool(true)"),
        ("missing == 1 && name > 'b' || name == 'b'", "Bool(false)"),
        (
            "[1, 2].all(x, x == 1 ? missing == x : name + 'c' == 'b')",
            "Bool(false)",
        ),
        (
            "[1, 2].exists(x, x == 1 ? missing == x : name + 'c' == 'aabc')",
            "Bool(true)",
        ),
        (
            "[1, 2].all(x, x == 2 ? missing == x : name + 'c' == 'b')",
            "Bool(false)",
        ),
    ] {
        assert_eq!(each(text, &bodies)[1], decided, "{text}");
    }
}

#[test]
fn missing_fields_are_faults_unless_asked_for() {
    let with = literal("{'a': {'b': 1}, 'list': [1]}");
    let empty = literal("{}");
    let bodies = [empty.clone(), with, empty];
    let none = "the event has no field `a.b`";
    assert_eq!(each("a.b + 1", &bodies), [none, "Int(2)", none]);
    assert_eq!(
        each("has(a.b) && a.b == 1", &bodies),
        ["Bool(false)", "Bool(true)", "Bool(false)"]
    );
    assert_eq!(
        each("has(value.a) ? a.b : -1", &bodies),
        ["Int(-1)", "Int(1)", "Int(-1)"]
    );
    assert_eq!(
        each("list[0] == 1 || true", &bodies),
        ["Bool(true)", "Bool(true)", "Bool(true)"]
    );
}

#[test]
fn compiled_expressions_go_to_other_threads() {
    fn goes<T: Send>(_: &T) {}
    let mut selection = Selection::default();
    let mut compiled = Expression::parse("value > 1")
        .unwrap()
        .compile(&mut selection);
    goes(&compiled);
    let mut row = Row::default();
    row.read_value(&selection, &Value::Int(2));
    assert_eq!(compiled.bool(&row), Ok(true));
    let mut another = compiled.clone();
    std::thread::spawn(move || assert_eq!(another.bool(&row), Ok(true)))
        .join()
        .unwrap();
}

#[test]
fn what_is_asked_for_must_be_there() {
    let mut selection = Selection::default();
    let mut compiled = Expression::parse("value").unwrap().compile(&mut selection);
    let mut row = Row::default();
    row.read_value(&selection, &Value::Int(3));
    assert_eq!(compiled.double(&row), Ok(3.0));
    let fault = compiled.bool(&row).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the result is of kind int and not bool (at 0..5)"
    );
    row.read_value(&selection, &Value::Bool(true));
    assert_eq!(compiled.bool(&row), Ok(true));
    assert!(compiled.double(&row).is_err());
}

#[test]
fn expressions_that_would_not_end_are_broken_off() {
    let list = |expression: &str, times: usize| {
        let mut text = expression.to_owned();
        for depth in 0..times {
            text = format!("value.exists(x{depth}, {text})");
        }
        text
    };
    let body = Value::from(vec![Value::Int(1); 100]);
    let fault = run(&list("false", 8), &body).unwrap_err();
    assert_eq!(*fault.what(), Wrong::TooLong);
    // A text that doubles with each macro.
    let mut text = "['aaaaaaaaaaaaaaaa']".to_owned();
    for _ in 0..60 {
        text.push_str(".map(x, x + x)");
    }
    assert_eq!(*run(&text, &body).unwrap_err().what(), Wrong::TooLong);
    let mut selection = Selection::default();
    let compiled = Expression::parse("value.all(x, x > 0)").unwrap();
    let mut compiled = compiled.compile(&mut selection).limit(99);
    let mut row = Row::default();
    row.read_value(&selection, &body);
    assert_eq!(*compiled.bool(&row).unwrap_err().what(), Wrong::TooLong);
    assert_eq!(compiled.limit(100).bool(&row), Ok(true));
}

#[test]
fn deep_nesting_is_refused_and_moderate_nesting_is_not() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Expression::parse(&nested(60)).is_ok());
    let chain = |length: usize| vec!["x"; length].join(" + ");
    assert!(Expression::parse(&chain(200)).is_ok());
    assert!(Expression::parse(&vec!["x > 1"; 5000].join(" || ")).is_ok());
    for text in [
        nested(100_000 / 2 - 1),
        chain(10_000),
        "!".repeat(50_000) + "x",
        "-".repeat(50_000) + "x",
        "[".repeat(50_000),
        "x".to_owned() + &".a".repeat(40_000),
        "x".to_owned() + &"[0]".repeat(30_000),
        "a ? b : ".repeat(10_000) + "c",
        "{1:".repeat(30_000),
        "f(".repeat(40_000),
    ] {
        let wrong = Expression::parse(&text).unwrap_err();
        assert_eq!(wrong[0].code, Some("too-deep"), "{}", &text[..20]);
    }
}

#[test]
fn equal_expressions_have_one_canonical_text() {
    for (texts, canonical) in [
        (
            &["value>32", "( value ) > (30 + 2)", "32 < value"][..],
            "value > 32",
        ),
        (&["a && (b && c)", "c && a && b"], "a && b && c"),
        (&["a || b && c", "c && b || a"], "a || b && c"),
        (&["(a || b) && c"], "(a || b) && c"),
        (&["a == b", "b == a", "!(a != b)"], "a == b"),
        (&["a > b", "b < a"], "b < a"),
        (&["a > b > c"], "b < a > c"),
        (&["!!a", "!(!a)"], "!!a"),
        (&["--a"], "--a"),
        (&["a * 3 * b", "3 * a * b"], "a * 3 * b"),
        (&["a + b"], "a + b"),
        (&["b + a"], "b + a"),
        (&["a - (b - c)"], "a - (b - c)"),
        (&["(a - b) - c"], "a - b - c"),
        (
            &["l.all(x, x > _0)", "l.all(y, _0 < y)"],
            "l.all(__0, _0 < __0)",
        ),
        (
            &["duration('60s') + t", "duration(\"1m\") + t"],
            "duration(\"60s\") + t",
        ),
        (&["a['b'][0]", "a.b[0]"], "a.b[0]"),
        (&["[1, 2].exists(x, x == 2) && a", "a && true"], "a && true"),
        (&["true ? a : b"], "a"),
        (&["- 5 + a", "-5 + a"], "-5 + a"),
        (&["1 / 0 == a", "a == 1 / 0"], "1 / 0 == a"),
        (&["'\\u0007\\\\'"], "\"\\U00000007\\\\\""),
    ] {
        for text in texts {
            let shown = Expression::parse(text).unwrap().canonical();
            assert_eq!(shown, canonical, "{text}");
            let again = Expression::parse(&shown).unwrap().canonical();
            assert_eq!(again, canonical, "{text}, read again");
        }
    }
}

/// Comparisons of one field are one test, which says what they say one by one.
#[test]
fn comparisons_of_one_field_that_must_all_hold() {
    let within = "value > 3 && value <= 9 && 2 < value && value != 7.5";
    let outcome = |value: Value| {
        let expression = Expression::parse(within).unwrap();
        let mut selection = Selection::default();
        let mut compiled = expression.compile(&mut selection);
        let mut row = Row::default();
        row.read_value(&selection, &value);
        let held = compiled.holds(&row);
        let outcome = compiled.bool(&row);
        assert_eq!(held, matches!(outcome, Ok(true)));
        outcome.map_err(|fault| fault.what().to_string())
    };
    for (value, expected) in [
        (Value::Double(3.0), false),
        (Value::Double(3.1), true),
        (Value::Double(9.0), true),
        (Value::Double(9.1), false),
        (Value::Double(7.5), false),
        (Value::Double(f64::NAN), false),
        (Value::Int(3), false),
        (Value::Int(4), true),
        (Value::Int(-1), false),
        (Value::Uint(9), true),
        (Value::Uint(10), false),
    ] {
        assert_eq!(outcome(value.clone()), Ok(expected), "{value:?}");
    }
    // Nothing is less than a text; that it is unequal decides nothing.
    assert!(outcome(Value::from("4")).is_err());
    assert!(outcome(Value::Null).is_err());
    // One comparison that is false outweighs the faults of others.
    let expression = Expression::parse("value > 3 && value == 4").unwrap();
    let mut selection = Selection::default();
    let mut compiled = expression.compile(&mut selection);
    let mut row = Row::default();
    row.read_value(&selection, &Value::from("4"));
    assert_eq!(compiled.bool(&row), Ok(false));
}
