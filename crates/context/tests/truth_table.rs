//! `docs/layers.md` has the truth table of enter × activate × synchronize on one
//! layer. Its rows are cases of `cases/layers.txt`, which other languages run as
//! well, so that all of them mean the same.

mod support;

use std::sync::{Arc, Mutex};

use milieu_context::{Context, Coordinator};
use support::*;

environment! { mod env; v: i32 = "/v/%a%"; }
use env::Environment;

const CASES: &str = include_str!("cases/layers.txt");

type Ran = Arc<Mutex<Vec<String>>>;

/// The steps of a case, with the numbers of their lines.
type Steps<'c> = std::vec::IntoIter<(usize, &'c str)>;

/// The cases by their names.
fn cases() -> Vec<(&'static str, Steps<'static>)> {
    let mut cases: Vec<(&str, Vec<(usize, &str)>)> = Vec::new();
    for (number, line) in (1..).zip(CASES.lines()) {
        match (line.strip_prefix("case "), cases.last_mut()) {
            _ if line.is_empty() || line.starts_with('#') => {}
            (Some(name), _) => cases.push((name, Vec::new())),
            (None, Some((_, steps))) => steps.push((number, line)),
            (None, None) => panic!("line {number}: a step stands before any case"),
        }
    }
    let cases = cases.into_iter();
    cases
        .map(|(name, steps)| (name, steps.into_iter()))
        .collect()
}

/// Runs steps, those of a block up to its end.
fn run(
    here: &mut Context<Environment>,
    there: &mut Context<Environment>,
    ran: &Ran,
    steps: &mut Steps<'_>,
) {
    while let Some((line, step)) = steps.next() {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        match word {
            "leave" => return,
            "ran" => {
                let actions = std::mem::take(&mut *ran.lock().unwrap());
                assert_eq!(actions.join(" "), rest, "line {line}");
            }
            "everywhere" => {
                here.sync();
                there.sync();
                let read = (here.v.to_string(), there.v.to_string());
                assert_eq!(read, (rest.to_owned(), rest.to_owned()), "line {line}");
            }
            "new" => {
                let new = here.coordinator().context::<Environment>().unwrap();
                assert_eq!(new.v.to_string(), rest, "line {line}");
            }
            "keys" => {
                let held = here.coordinator().require_lock();
                let keys = held.entries();
                let keys = keys.iter().map(|key| format!("{}={}", key.name, key.text));
                assert_eq!(keys.collect::<Vec<_>>().join(" "), rest, "line {line}");
            }
            who => {
                let (verb, argument) = rest.split_once(' ').unwrap_or((rest, ""));
                let value = if argument == "''" { "" } else { argument };
                match (who, verb) {
                    ("here", "enter") => run(&mut here.enter(A(value)), there, ran, steps),
                    ("here", "without") => {
                        here.without::<A, _>(|here| run(here, there, ran, steps));
                    }
                    ("here", _) => act(here, verb, value, line),
                    ("there", _) => act(there, verb, value, line),
                    _ => panic!("line {line}: there is no step `{step}`"),
                }
            }
        }
    }
}

fn act(cx: &mut Context<Environment>, verb: &str, value: &str, line: usize) {
    match verb {
        "activate" => cx.activate(A(value)).unwrap(),
        "deactivate" => cx.deactivate::<A>().unwrap(),
        "sync" => cx.sync(),
        "set" => cx.set::<env::at::v>(value.parse().unwrap()).unwrap(),
        "is" => assert_eq!(cx.v.to_string(), value, "line {line}"),
        "name" => assert_eq!(cx.name::<env::at::v>(), value, "line {line}"),
        _ => panic!("line {line}: there is no verb `{verb}`"),
    }
}

#[test]
fn every_case_is_as_described() {
    let cases = cases();
    assert!(cases.len() > 14, "the rows of the table, and more");
    for (name, mut steps) in cases {
        println!("{name}");
        let coordinator: Coordinator = coordinator(&[("/v/1", "1"), ("/v/2", "2"), ("/v/9", "9")]);
        let ran = Ran::default();
        let (on, off) = (ran.clone(), ran.clone());
        let _registrations = [
            coordinator
                .on_activation::<A>(move |a| on.lock().unwrap().push(format!("+{}", a.value()))),
            coordinator.on_deactivation::<A>(move |_| off.lock().unwrap().push("-".into())),
        ];
        let mut here = coordinator.context().unwrap();
        let mut there = coordinator.context().unwrap();
        run(&mut here, &mut there, &ran, &mut steps);
        assert_eq!(steps.next(), None, "{name}: a `leave` too many");
    }
}
