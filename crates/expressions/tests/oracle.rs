//! The same expressions and data given to the `cel` crate: both give equal
//! values, or both give none. Where the two differ, `known_difference` says why.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::run;
use milieu_expressions::{Compiled, Expression};
use milieu_transfer::{Map, Row, Selection, Span, Time, Value};
use proptest::prelude::*;

/// What the fields of the events are, in both worlds.
#[derive(Clone, Debug)]
struct Data {
    i: i64,
    j: i64,
    u: u64,
    d: f64,
    e: f64,
    s: String,
    b: bool,
    l: Vec<i64>,
    m: BTreeMap<String, f64>,
}

impl Data {
    fn body(&self) -> Value {
        let m: Map = self.m.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        let l: Vec<Value> = self.l.iter().copied().map(Value::Int).collect();
        Value::from(Map::from_iter([
            ("i", Value::Int(self.i)),
            ("j", Value::Int(self.j)),
            ("u", Value::Uint(self.u)),
            ("d", Value::Double(self.d)),
            ("e", Value::Double(self.e)),
            ("s", Value::from(self.s.as_str())),
            ("b", Value::Bool(self.b)),
            ("l", Value::from(l)),
            ("m", Value::from(m)),
        ]))
    }

    fn context(&self) -> cel::Context<'static> {
        let mut context = cel::Context::default();
        context.add_variable_from_value("i", self.i);
        context.add_variable_from_value("j", self.j);
        context.add_variable_from_value("u", self.u);
        context.add_variable_from_value("d", self.d);
        context.add_variable_from_value("e", self.e);
        context.add_variable_from_value("s", self.s.clone());
        context.add_variable_from_value("b", self.b);
        context.add_variable_from_value("l", self.l.clone());
        let m: std::collections::HashMap<String, f64> = self.m.clone().into_iter().collect();
        context.add_variable_from_value("m", m);
        context
    }
}

/// What the oracle says; none where it panics.
fn oracle(text: &str, data: &Data) -> Option<Result<Value, String>> {
    let run = || {
        let program = cel::Program::compile(text).map_err(|error| error.to_string())?;
        let value = program.execute(&data.context());
        value
            .map(|value| ours(&value))
            .map_err(|error| error.to_string())
    };
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// A value of the oracle as one of ours.
fn ours(value: &cel::Value) -> Value {
    match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(value) => Value::Bool(*value),
        cel::Value::Int(value) => Value::Int(*value),
        cel::Value::UInt(value) => Value::Uint(*value),
        cel::Value::Float(value) => Value::Double(*value),
        cel::Value::String(value) => Value::from(value.as_str()),
        cel::Value::Bytes(value) => Value::Bytes(value.as_slice().into()),
        cel::Value::Duration(value) => {
            let nanoseconds = value.num_nanoseconds().unwrap_or(i64::MAX);
            Value::Span(Span::from_nanoseconds(nanoseconds))
        }
        cel::Value::Timestamp(value) => {
            let nanoseconds = value.timestamp_nanos_opt().unwrap_or(i64::MAX);
            Value::Time(Time::from_nanoseconds(nanoseconds))
        }
        cel::Value::List(list) => Value::List(list.iter().map(ours).collect()),
        cel::Value::Map(map) => {
            let mut entries: Vec<(Value, Value)> = map
                .map
                .iter()
                .map(|(key, value)| (key_of(key), ours(value)))
                .collect();
            entries.sort_by_key(|(key, _)| format!("{key:?}"));
            Value::from(entries.into_iter().collect::<Map>())
        }
        other => panic!("{other:?} is no value of a standard expression"),
    }
}

fn key_of(key: &cel::objects::Key) -> Value {
    match key {
        cel::objects::Key::Int(key) => Value::Int(*key),
        cel::objects::Key::Uint(key) => Value::Uint(*key),
        cel::objects::Key::Bool(key) => Value::Bool(*key),
        cel::objects::Key::String(key) => Value::from(key.as_str()),
    }
}

/// Equal, where what is no number equals itself and maps have no order.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a == b || (a.is_nan() && b.is_nan()),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (a, b) => a == b,
    }
}

/// Why the oracle says something else about this, where CEL's definition is on
/// our side. Each has a test in tests/meaning.rs.
fn known_difference(
    text: &str,
    ours: &Result<Value, String>,
    theirs: &Result<Value, String>,
) -> Option<&'static str> {
    let refuses = |what: &str| matches!(theirs, Err(why) if why.contains(what));
    let says = |what: &str| matches!(ours, Err(why) if why.contains(what));
    let differences = [
        (
            refuses("can not be compared") && refuses("NaN"),
            "what is no number is neither less nor greater, and no fault",
        ),
        (
            refuses("can not be compared") && refuses("Bytes("),
            "bytes have an order",
        ),
        (
            text.contains("bytes(") && refuses("got 'Bytes("),
            "`bytes` takes bytes",
        ),
        (
            refuses("cannot convert Bool(") || text.contains("string(string("),
            "`string` takes truth values",
        ),
        (
            text.contains("int(") && says("out of range"),
            "what is no number, or infinite, is no whole number",
        ),
        (
            refuses("list index: Float"),
            "a whole number of double precision is the number of an element too",
        ),
        (
            (text.contains(".all(") || text.contains(".exists(")) && refuses("Division by zero"),
            "an element that decides outweighs faults with others",
        ),
        (
            text.contains("string(") && text.contains("timestamp("),
            "UTC is written `Z`",
        ),
        (
            // Within another call it does not say what it refused.
            refuses("cannot convert Timestamp(")
                || (text.contains("int(timestamp(") && refuses("Missing argument or target")),
            "`int` takes points in time, and gives seconds",
        ),
        (
            text.contains("size("),
            "the size of a text is the number of its characters, not of its bytes",
        ),
        (
            text.contains("string(") && text.contains("duration("),
            "durations are written in seconds; the oracle overflows where they are negative",
        ),
        (
            says("`in` is not defined for string and string"),
            "`in` asks lists and maps, not texts",
        ),
    ];
    let mut known = differences.into_iter().filter(|(is_it, _)| *is_it);
    known.next().map(|(_, why)| why)
}

fn agree(text: &str, data: &Data) -> Result<(), String> {
    let Some(theirs) = oracle(text, data) else {
        return Ok(());
    };
    let ours = run(text, &data.body()).map_err(|fault| fault.to_string());
    let agrees = match (&ours, &theirs) {
        (Ok(a), Ok(b)) => same(a, b),
        (Err(_), Err(_)) => true,
        _ => false,
    };
    if agrees || known_difference(text, &ours, &theirs).is_some() {
        return Ok(());
    }
    Err(format!(
        "{text}\n  ours {ours:?}\n  theirs {theirs:?}\n  {data:?}"
    ))
}

/// Truth values that no fault is in. The oracle computes `&&` and `||` from the
/// left, so a fault there is a fault of the whole, and hands the operand on the
/// right through, whatever it is; tests/meaning.rs has CEL's own rules.
fn truths() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "b",
        "true",
        "false",
        "i < j",
        "i == 3",
        "u > 5u",
        "s == 'a'",
        "has(m.a)",
        "'a' in m",
        "i in l",
        "l.exists(x, x > 10)",
        "l.all(x, x != i)",
        "d == e",
        "s.contains('a')",
        "i != u",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 16, 2, |inner| {
            prop_oneof![
                (
                    prop::sample::select(vec!["&&", "||"]),
                    inner.clone(),
                    inner.clone()
                )
                    .prop_map(|(sign, a, b)| format!("{a} {sign} {b}")),
                inner.clone().prop_map(|a| format!("!({a})")),
                (inner.clone(), inner.clone(), inner)
                    .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            ]
        })
}

/// Texts: the oracle looks for elements in lists with `contains` too.
fn texts() -> impl Strategy<Value = String> {
    let texts = [
        "s",
        "'a'",
        "'äb'",
        "''",
        "(s + s)",
        "'1.'",
        "string(i)",
        "('b' + s)",
    ];
    prop::sample::select(texts.to_vec()).prop_map(str::to_owned)
}

/// Texts of expressions, mostly of kinds that fit together.
fn expressions() -> impl Strategy<Value = String> {
    let int_literal = prop_oneof![
        (-3_i64..100).prop_map(|n| n.to_string()),
        Just("9223372036854775807".to_owned()),
        Just("-9223372036854775808".to_owned()),
    ];
    let leaf = prop_oneof![
        4 => int_literal,
        2 => prop::sample::select(vec!["1.5", "-0.25", "2.0", "1e300", "0u", "3u", "18446744073709551615u"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["true", "false", "null", "'a'", "'äb'", "''", "b'a'", "'1'", "'a.*'", "[]", "{}"]).prop_map(str::to_owned),
        6 => prop::sample::select(vec!["i", "j", "u", "d", "e", "s", "b", "l", "m", "l[0]", "m.a", "m['b']", "missing"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["duration('90s')", "timestamp('2026-01-31T12:34:56.789Z')", "duration('-1.5h')"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            4 => (prop::sample::select(vec!["+", "-", "*", "/", "%"]), pair.clone())
                .prop_map(|(sign, (a, b))| format!("({a} {sign} {b})")),
            4 => (prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">=", "in"]), pair.clone())
                .prop_map(|(sign, (a, b))| format!("({a} {sign} {b})")),
            3 => truths().prop_map(|text| format!("({text})")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            1 => inner.clone().prop_map(|a| format!("-({a})")),
            1 => (inner.clone(), pair.clone()).prop_map(|(c, (a, b))| format!("({c} ? {a} : {b})")),
            1 => (prop::sample::select(vec!["size", "int", "uint", "double", "string", "bytes"]), inner.clone())
                .prop_map(|(name, a)| format!("{name}({a})")),
            1 => (prop::sample::select(vec!["contains", "startsWith", "endsWith", "matches"]), texts(), texts())
                .prop_map(|(name, a, b)| format!("{a}.{name}({b})")),
            1 => (prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter"]), pair.clone())
                .prop_map(|(name, (a, b))| format!("[{a}, 2, 3].{name}(x, {b} == x)")),
            1 => (prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter"]), prop::sample::select(vec!["x > 1", "x < i", "6 / x > 2", "x in [i, j]"]))
                .prop_map(|(name, test)| format!("l.{name}(x, {test})")),
            1 => pair.clone().prop_map(|(a, b)| format!("[{a}, {b}]")),
            1 => pair.clone().prop_map(|(a, b)| format!("{{'a': {a}, 'b': {b}}}")),
            1 => pair.clone().prop_map(|(a, b)| format!("[{a}][{b}]")),
            1 => prop::sample::select(vec!["has(m.a)", "has(m.zz)", "'a' in m", "m == {'a': d}", "l == [i, j]", "s + s", "l + [i]"]).prop_map(str::to_owned),
        ]
    })
}

fn data() -> impl Strategy<Value = Data> {
    let double = || {
        prop_oneof![
            4 => -100.0..100.0_f64,
            1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, 1.5, 3.0]),
        ]
    };
    let int = || prop_oneof![4 => -5_i64..100, 1 => any::<i64>()];
    (
        (
            int(),
            int(),
            prop_oneof![0_u64..100, any::<u64>()],
            double(),
            double(),
        ),
        "[aäb1.]{0,4}",
        any::<bool>(),
        prop::collection::vec(int(), 0..4),
        prop::collection::btree_map("[ab]", double(), 0..3),
    )
        .prop_map(|((i, j, u, d, e), s, b, l, m)| Data {
            i,
            j,
            u,
            d,
            e,
            s,
            b,
            l,
            m,
        })
}

/// A result as a text, in which what is no number equals itself; which of
/// several faults is told is open.
fn shown(compiled: &mut Compiled, row: &Row) -> Result<String, ()> {
    compiled
        .value(row)
        .map(|value| format!("{value:?}"))
        .map_err(|_| ())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn closures_for_known_kinds_do_what_those_for_any_kind_do(text in expressions(), data in data()) {
        let expression = Expression::parse(&text).expect(&text);
        let rewritten = Expression::parse(&expression.canonical()).expect(&text);
        let mut selection = Selection::default();
        let mut known = expression.compile(&mut selection);
        let mut any = expression.compile(&mut selection);
        let mut rewritten = rewritten.compile(&mut selection);
        let mut row = Row::default();
        // Whatever was null and a number, is of no known kind.
        let nothing: Map = "ijudesblm".chars().map(|name| (name.to_string(), Value::Null)).collect();
        row.read_value(&selection, &Value::from(nothing));
        let _ = any.value(&row);
        row.read_value(&selection, &data.body());
        let result = shown(&mut known, &row);
        prop_assert_eq!(shown(&mut any, &row), result.clone(), "{} on {:?}", text, data);
        prop_assert_eq!(shown(&mut rewritten, &row), result, "{} on {:?}", rewritten.expression(), data);
    }

    #[test]
    fn the_oracle_agrees(text in expressions(), data in data()) {
        if let Err(difference) = agree(&text, &data) {
            prop_assert!(false, "{difference}");
        }
    }
}
