//! Parameters of operators and of sources, as texts: what is not refused runs,
//! and is written and read as the same again.
//!
//! The first character says which operator or source; of every further line the
//! first character says which parameter, and the rest is its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_adapters::catalogue;
use milieu_fuzz::subscriptions;
use milieu_stream::language::Language;
use milieu_stream::rehearsal::{Case, rehearse};
use milieu_stream::{Declared, Inputs, operators};

/// Numbers, texts and records, in order and not, and time that passes.
const LINES: &str = "1 /a 1\n1 /b 2.5\n2 /a {\"x\": 1, \"y\": \"text\"}\n2 /b true\n\
                     3 /a -1e308\n3.5 /a 7 ! broken\n100 /a null\n100 /b [1, 2]\nclock 200";

fuzz_target!(|input: &str| {
    let mut lines = input.lines();
    let first = lines.next().and_then(|line| line.bytes().next());
    let Some(first) = first.and_then(|first| first.checked_sub(b'0')) else {
        return;
    };
    let operators = operators::catalogue();
    let known = operators.iter().count();
    let chosen = usize::from(first) % (known + catalogue::all().count());
    if let Some(source) = chosen.checked_sub(known) {
        let source = catalogue::all().nth(source).unwrap();
        let given: Vec<(&str, &str)> = lines
            .filter_map(|line| of(source.parameters, line))
            .collect();
        if let Err(failure) = source.make(&given) {
            let said = failure.to_string();
            assert!(said.contains(source.name) && said.len() < 1000, "{said}");
        }
        return;
    }
    let operator = operators.iter().nth(chosen).unwrap();
    let inputs = match operator.inputs {
        Inputs::One => "/a",
        _ => "/a, /b",
    };
    let mut flow = format!("{inputs} | {}", operator.name);
    for (name, text) in lines.filter_map(|line| of(operator.parameters, line)) {
        flow += &format!(" {name}={text}");
    }
    subscriptions::check(Language::Pipeline, &flow);
    let case = Case {
        title: String::new(),
        flow,
        lines: LINES.to_owned(),
        start: 0,
    };
    drop(rehearse(&case, &operators));
});

fn of<'a>(parameters: &'static [Declared], line: &'a str) -> Option<(&'a str, &'a str)> {
    let which = line.bytes().next()?.checked_sub(b'0')?;
    let parameter = parameters.get(usize::from(which))?;
    Some((parameter.name, &line[1..]))
}
