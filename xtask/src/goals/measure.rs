//! Running the commands of the goals and reading what they print.
//!
//! A command prints one JSON object a line: `{"name": "read", "value": 1.0}`.
//! Every further number of the object is a value of its own, `read.ratio`. A
//! last line that is an object without a name, or a bare number, is `value`.
//! Other lines are passed over. Where a command says `{names}`, the names that
//! its goals use stand there, so that nothing is measured in vain.
//!
//! All of it is a group of tests of `milieu_bench`, with results that its reports
//! and comparisons read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use milieu_bench::Value;
use milieu_bench::description::{Application, Group, Schedule, Server, Test};
use milieu_bench::result::Results;
use milieu_bench::run::protocol::Measured;
use milieu_bench::run::{Executor, Failed, Order, Ordered, Run, Runner, SystemClock};

use super::expression::{self, Values};
use super::file::Goal;
use crate::process;

/// A goal and what was measured for it.
pub struct Result {
    pub goal: Goal,
    /// The figure, or why it cannot be had.
    pub value: std::result::Result<f64, String>,
}

impl Result {
    /// Whether the figure was measured and keeps its bound.
    pub fn holds(&self) -> bool {
        self.value
            .as_ref()
            .is_ok_and(|value| self.goal.bound.holds(*value))
    }
}

/// Measures the goals in the order of the file; each distinct command is a test,
/// and runs once in each round. Figures are made of the means; all values are in
/// the results.
pub fn all(goals: Vec<Goal>, rounds: NonZeroU32) -> (Vec<Result>, Results) {
    let measured = Runner {
        executor: &mut Shell,
        clock: &SystemClock::default(),
        observer: &mut (),
        keeper: &mut (),
    }
    .run(&group(&goals, rounds));
    // Without hosts that could be lost and steps to be kept no run ends early.
    let measured = measured.unwrap_or_default();
    let figures = goals.into_iter().map(|goal| Result {
        value: figure(&goal, &measured),
        goal,
    });
    (figures.collect(), measured)
}

/// What is to be measured: a test for each command, with the names that its goals
/// use.
fn group(goals: &[Goal], rounds: NonZeroU32) -> Group {
    let mut used: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for goal in goals {
        let names = used.entry(&goal.command).or_default();
        for name in expression::names(&goal.value).unwrap_or_default() {
            let operation = name.split('.').next().unwrap_or(&name).to_owned();
            if !names.contains(&operation) {
                names.push(operation);
            }
        }
    }
    let mut group = Group {
        name: "goals".into(),
        ..Group::default()
    };
    for goal in goals {
        let bound = format!("{} {} {}", goal.value, goal.bound, goal.unit);
        group
            .properties
            .insert(goal.name.clone(), Value::Text(bound));
        if let Some(names) = used.remove(&*goal.command) {
            group
                .tests
                .push(test(&goal.command, &names.join(" "), rounds));
        }
    }
    group
}

fn test(command: &str, names: &str, rounds: NonZeroU32) -> Test {
    let filled = Value::Text(command.replace("{names}", names));
    let application = Application {
        name: COMMAND.into(),
        kind: COMMAND.into(),
        parameters: [(COMMAND.to_owned(), filled)].into(),
    };
    Test {
        name: command.into(),
        servers: vec![Server {
            applications: vec![application],
            ..Server::default()
        }],
        schedule: Schedule {
            repetitions: rounds,
            ..Schedule::default()
        },
        ..Test::default()
    }
}

/// The kind of application that all goals have, and its parameter.
const COMMAND: &str = "command";

/// Runs the command of each application in the repository's root, without limits.
struct Shell;

impl Executor for Shell {
    fn step(&mut self, order: &Order, _: Duration) -> std::result::Result<Vec<Run>, Failed> {
        let run = |application: &Ordered| {
            let mut run = Run {
                application: application.name.clone(),
                server: application.server.clone(),
                ..Run::default()
            };
            match self::run(&application.parameters[COMMAND].to_string()) {
                Ok(values) => {
                    let measured = |(name, value)| (name, Measured::Number(value));
                    run.results = values.into_iter().map(measured).collect();
                }
                Err(why) => run.error = Some(why),
            }
            run
        };
        Ok(order.applications.iter().map(run).collect())
    }
}

fn figure(goal: &Goal, measured: &Results) -> std::result::Result<f64, String> {
    let mut tests = measured.group.tests.iter().zip(&measured.tests);
    let of_goal = tests.find(|(test, _)| test.name == goal.command);
    let (test, point) = of_goal
        .and_then(|(test, measured)| Some((test, measured.points.first()?)))
        .ok_or_else(|| format!("`{}` did not run", goal.command))?;
    if let Some(failure) = point.failures.first() {
        return Err(failure.message.clone());
    }
    let metrics = point.metrics.iter();
    let means = metrics.map(|(name, statistics)| (name.clone(), statistics.mean));
    let command = &test.servers[0].applications[0].parameters[COMMAND];
    expression::evaluate(&goal.value, &means.collect())
        .map_err(|why| format!("{why} by `{command}`"))
}

fn run(command: &str) -> std::result::Result<Values, String> {
    eprintln!("measuring: {command}");
    let mut shell = process::command("sh");
    shell.args(["-c", command]);
    match process::output(shell) {
        Ok(text) => Ok(values(&text)),
        Err(_) => Err(format!("`{command}` failed; what it printed stands above")),
    }
}

/// The values that a command's standard output states.
pub fn values(text: &str) -> Values {
    let mut values = Values::new();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(serde_json::Value::Object(object)) => {
                let name = object.get("name").and_then(|name| name.as_str());
                for (field, value) in &object {
                    let Some(value) = value.as_f64() else {
                        continue;
                    };
                    let key = match (name, field.as_str()) {
                        (Some(name), "value") => name.to_owned(),
                        (Some(name), field) => format!("{name}.{field}"),
                        (None, field) => field.to_owned(),
                    };
                    values.insert(key, value);
                }
            }
            Ok(serde_json::Value::Number(number)) => {
                values.extend(number.as_f64().map(|value| ("value".to_owned(), value)));
            }
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(command: &str, value: &str) -> Goal {
        Goal {
            name: "a".into(),
            part: "context".into(),
            command: command.into(),
            value: value.into(),
            bound: "<= 2".parse().unwrap(),
            unit: "ns".into(),
            peer: "a limit".into(),
            recorded: false,
            repeatable: true,
            why: "Because.".into(),
        }
    }

    #[test]
    fn named_lines_bare_numbers_and_further_fields_are_values() {
        let values = values(
            "warming up\n\
             {\"name\": \"read\", \"value\": 0.5, \"ratio\": 1, \"unit\": \"ns\"}\n\
             {\"value\": 7}\n\
             12.5\n",
        );
        let expected = [("read", 0.5), ("read.ratio", 1.0), ("value", 12.5)]
            .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(values, expected.into());
    }

    #[test]
    fn a_figure_holds_or_is_missed() {
        for (print, holds) in [("echo 1.5", true), ("echo 2.5", false)] {
            let (results, _) = all(vec![goal(print, "value")], NonZeroU32::MIN);
            assert_eq!(results[0].holds(), holds, "{print}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_missed_and_says_why() {
        for (command, why) in [
            ("echo 1 && exit 3", "failed"),
            ("echo nothing", "`value` was not measured"),
        ] {
            let (results, _) = all(vec![goal(command, "value")], NonZeroU32::MIN);
            assert!(!results[0].holds());
            let complaint = results[0].value.as_ref().unwrap_err();
            assert!(complaint.contains(why), "{complaint}");
        }
    }

    #[test]
    fn a_command_of_several_goals_runs_once() {
        let log = process::scratch("test").unwrap().join("runs");
        std::fs::write(&log, "").unwrap();
        let command = format!("echo x >> '{}'; echo 1", log.display());
        let goals = vec![goal(&command, "value"), goal(&command, "value / 2")];
        let (results, _) = all(goals, NonZeroU32::MIN);
        assert!(results.iter().all(Result::holds));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\n");
    }

    #[test]
    fn a_command_is_told_which_names_its_goals_use() {
        let command = r#"for name in {names}; do echo "{\"name\":\"$name\",\"value\":1}"; done"#;
        let mut goals = vec![
            goal(command, "read / plain-read"),
            goal(command, "read + sync.ratio"),
        ];
        goals[1].name = "b".into();
        let (results, _) = all(goals, NonZeroU32::MIN);
        assert!(results[0].holds());
        let complaint = results[1].value.as_ref().unwrap_err();
        assert!(
            complaint.contains("in read plain-read sync;"),
            "{complaint}"
        );
    }

    #[test]
    fn every_value_of_every_round_is_in_a_result_that_reports_read() {
        let rounds = process::scratch("test").unwrap().join("rounds");
        let _ = std::fs::remove_file(&rounds);
        let shown = rounds.display();
        let command = format!("echo >> '{shown}'; wc -l < '{shown}'");
        let (results, measured) = all(vec![goal(&command, "value")], NonZeroU32::new(3).unwrap());
        assert_eq!(results[0].value, Ok(2.0));
        let measured = Results::parse(&measured.to_json()).unwrap();
        let values = measured.tests[0].points[0].values.iter();
        assert_eq!(
            values.map(|it| it.value).collect::<Vec<_>>(),
            [1.0, 2.0, 3.0]
        );
        assert_eq!(measured.hosts.len(), 1);
        let options = milieu_bench::report::Options::default();
        let csv = milieu_bench::report::get("csv")
            .unwrap()
            .write(&measured, &options);
        assert_eq!(String::from_utf8(csv.unwrap()).unwrap().lines().count(), 2);
    }
}
