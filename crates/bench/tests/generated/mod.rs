//! Groups and results of any kind, as far as they can be described.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use hdrhistogram::Histogram;
use milieu_bench::Value;
use milieu_bench::description::{
    Application, Group, LostHost, Order, Schedule, Server, Test, Values, Variable,
};
use milieu_bench::plan::{Plan, Step};
use milieu_bench::result::{Found, Host, Offset, Outcome, Results, StepResult, TestResults};
use milieu_bench::run::Run;
use milieu_bench::run::protocol::{Distribution, Measured};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// Texts with everything that could be taken for markup, formulas or numbers. XML
/// cannot have what steers terminals.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9_.-]{1,8}",
        "[ -~äöü€\u{1F600}\t\n]{0,12}",
        prop_oneof![
            Just("</script><script>alert(1)</script>".to_owned()),
            Just("]]>".to_owned()),
            Just("\" onload=\"alert(1)".to_owned()),
            Just("=1+1".to_owned()),
            Just("1,000".to_owned()),
            Just("007".to_owned()),
            Just("true".to_owned()),
            Just("1e3".to_owned()),
            Just("{x} $(y) `z` | w".to_owned()),
        ],
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        -1e6..1e6,
        any::<f64>().prop_filter("finite", |number| number.is_finite()),
    ]
}

fn single() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        number().prop_map(Value::Number),
        text().prop_map(Value::Text),
    ]
}

fn parameters() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let value = prop_oneof![3 => single(), 1 => vec(single(), 1..4).prop_map(Value::List)];
    btree_map(text(), value, 0..4)
}

fn values() -> impl Strategy<Value = Values> {
    let range = (-1000_i64..1000, 1_i64..10, 1_i64..4, any::<bool>());
    let range = range.prop_map(|(start, step, count, is_down)| {
        let step = if is_down { -step } else { step };
        Values::Range {
            start: Value::Integer(start),
            end: Value::Integer(start + step * count),
            step: Value::Integer(step),
        }
    });
    let fractions = (0_i32..100, 1_i32..4).prop_map(|(start, count)| {
        let number = |number: i32| Value::Number(f64::from(number) + 0.25);
        Values::Range {
            start: number(start),
            end: number(start + count),
            step: Value::Number(0.5),
        }
    });
    prop_oneof![
        vec(single(), 1..5).prop_map(|all| {
            let mut values = Vec::new();
            for value in all {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            Values::Enumeration { values }
        }),
        range,
        fractions,
    ]
}

fn variables() -> impl Strategy<Value = Vec<Variable>> {
    let name = text().prop_filter("a name", |name| !name.is_empty());
    let all = btree_map(name, values(), 0..3);
    (all, any::<bool>()).prop_map(|(all, is_searched)| {
        let variables = all.into_iter().enumerate();
        let variables = variables.map(|(index, (name, values))| Variable {
            name,
            values,
            condition: (is_searched && index == 0).then(|| "a.p99 < 0.5 && b != \"<\"".to_owned()),
        });
        variables.collect()
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let orders = [Order::Sequential, Order::Interleaved, Order::Random];
    let lost = [LostHost::Retry, LostHost::Skip, LostHost::Fail];
    (
        1_u32..4,
        0_u32..3,
        prop::sample::select(orders.to_vec()),
        0..i64::MAX.unsigned_abs(),
        0.1..1e9,
        prop::sample::select(lost.to_vec()),
    )
        .prop_map(
            |(repetitions, warm_up, order, seed, timeout_seconds, lost_host)| Schedule {
                repetitions: NonZeroU32::new(repetitions).unwrap(),
                warm_up,
                order,
                seed,
                timeout_seconds,
                lost_host,
            },
        )
}

fn test() -> impl Strategy<Value = Test> {
    let kind = prop_oneof![
        Just("star".to_owned()),
        Just("planet".to_owned()),
        "[a-z.]{1,9}"
    ];
    let host = option::of("[a-z0-9.:]{1,9}");
    let server = (
        host,
        option::of(1..u16::MAX),
        parameters(),
        vec((kind, parameters()), 1..3),
    );
    (vec(server, 1..3), variables(), parameters(), schedule()).prop_map(
        |(servers, variables, parameters, schedule)| {
            let mut names = 0..;
            let servers = servers
                .into_iter()
                .map(|(host, port, parameters, applications)| {
                    let mut named = |kind: &str| match names.next() {
                        Some(0) => kind.to_owned(),
                        number => format!("a ({}) #{}", kind, number.unwrap_or(0)),
                    };
                    let applications = applications.into_iter();
                    Server {
                        host,
                        port,
                        applications: applications
                            .map(|(kind, parameters)| Application {
                                name: named(&kind),
                                kind,
                                parameters,
                            })
                            .collect(),
                        parameters,
                    }
                });
            Test {
                name: String::new(),
                servers: servers.collect(),
                variables,
                parameters,
                schedule,
            }
        },
    )
}

/// A group that can be described.
pub fn group() -> impl Strategy<Value = Group> {
    let tests = btree_map(text(), test(), 1..3);
    (text(), tests, parameters()).prop_map(|(name, tests, properties)| Group {
        name,
        tests: tests
            .into_iter()
            .map(|(name, test)| Test { name, ..test })
            .collect(),
        properties,
    })
}

/// What an application measured, or why not.
fn outcome() -> impl Strategy<Value = (BTreeMap<String, Measured>, Option<String>)> {
    let distribution = (
        vec(1_u64..1_000_000, 1..20),
        prop::sample::select(vec![1.0, 1e-9]),
    );
    let distribution = distribution.prop_map(|(values, scale)| {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        values
            .iter()
            .for_each(|value| histogram.record(*value).unwrap());
        Measured::Distribution(Distribution::new(&histogram, scale).unwrap())
    });
    let measured = prop_oneof![4 => number().prop_map(Measured::Number), 1 => distribution];
    let metric = prop_oneof![Just("value".to_owned()), Just("rate".to_owned()), text()];
    let error = option::weighted(0.2, text());
    (btree_map(metric, measured, 0..4), error)
}

fn offset() -> impl Strategy<Value = Option<Offset>> {
    let numbers = (any::<i64>(), any::<i64>(), any::<i64>());
    option::of(
        numbers.prop_map(|(monotonic_ns, real_ns, error_ns)| Offset {
            monotonic_ns,
            real_ns,
            error_ns,
        }),
    )
}

fn host() -> impl Strategy<Value = Host> {
    let texts = (text(), text(), text(), text(), text(), option::of(text()));
    let named = || btree_map(text(), text(), 0..2);
    let parts = (named(), named(), named());
    (texts, parts, any::<u64>(), offset(), offset()).prop_map(
        |(texts, (properties, counts, lacks), cores, clock_offset, clock_offset_ended)| {
            let (name, system, kernel, processor, milieu, governor) = texts;
            Host {
                name,
                system,
                kernel,
                processor,
                milieu,
                governor,
                cores,
                memory_bytes: cores / 3,
                properties,
                counts,
                lacks,
                clock_offset,
                clock_offset_ended,
            }
        },
    )
}

fn found() -> impl Strategy<Value = Found> {
    let others = btree_map(text(), single(), 0..3);
    (
        text(),
        others,
        option::of(single()),
        any::<(bool, bool)>(),
        vec(text(), 0..2),
    )
        .prop_map(
            |(variable, others, value, (is_bounded, is_sure), undecided)| Found {
                variable,
                others,
                value,
                is_bounded,
                is_sure,
                undecided,
            },
        )
}

/// A result that a run of a group could have given.
pub fn results() -> impl Strategy<Value = Results> {
    let outcomes = vec(outcome(), 1..30);
    let hosts = btree_map(text(), host(), 0..3);
    (group(), outcomes, hosts, vec(found(), 0..2)).prop_map(|(group, outcomes, hosts, found)| {
        let mut outcomes = outcomes.iter().cycle();
        let tests = group.tests.iter().map(|test| {
            let plan = Plan::new(test);
            let steps = plan.steps().take(20);
            let steps = steps.map(|step| taken(test, &plan, step, || outcomes.next().unwrap()));
            TestResults {
                found: found.clone(),
                ..TestResults::new(test, steps.collect())
            }
        });
        let tests = tests.collect();
        Results {
            started: "2026-01-02T03:04:05Z".into(),
            ended: "2026-01-02T03:05:05Z".into(),
            hosts,
            tests,
            ..Results::new(group)
        }
    })
}

fn taken<'o>(
    test: &Test,
    plan: &Plan,
    step: Step,
    mut next: impl FnMut() -> &'o (BTreeMap<String, Measured>, Option<String>),
) -> StepResult {
    let runs: Vec<Run> = test
        .servers
        .iter()
        .flat_map(|server| server.applications.iter().map(move |it| (server, it)))
        .map(|(server, application)| {
            let (results, error) = next();
            Run {
                application: application.name.clone(),
                server: server.name(),
                results: results.clone(),
                error: error.clone(),
                ..Run::default()
            }
        })
        .collect();
    StepResult {
        variables: plan.values(step.point),
        step,
        started: "2026-01-02T03:04:05Z".into(),
        took_seconds: 0.5,
        outcome: Outcome::of(&runs),
        lost: Vec::new(),
        runs,
    }
}
