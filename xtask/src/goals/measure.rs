//! Running the commands of the goals and reading what they print.
//!
//! A command prints one JSON object a line: `{"name": "read", "value": 1.0}`.
//! Every further number of the object is a value of its own, `read.ratio`. A
//! last line that is an object without a name, or a bare number, is `value`.
//! Other lines are passed over. Where a command says `{names}`, the names that
//! its goals use stand there, so that nothing is measured in vain.

use std::collections::BTreeMap;

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

/// Measures the goals in the order of the file; each distinct command runs once.
pub fn all(goals: Vec<Goal>) -> Vec<Result> {
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for goal in &goals {
        let names = used.entry(goal.command.clone()).or_default();
        for name in expression::names(&goal.value).unwrap_or_default() {
            let operation = name.split('.').next().unwrap_or(&name).to_owned();
            if !names.contains(&operation) {
                names.push(operation);
            }
        }
    }
    let mut measured: BTreeMap<String, std::result::Result<Values, String>> = BTreeMap::new();
    goals
        .into_iter()
        .map(|goal| {
            let command = goal
                .command
                .replace("{names}", &used[&goal.command].join(" "));
            let values = measured
                .entry(goal.command.clone())
                .or_insert_with(|| run(&command));
            let value = match values {
                Ok(values) => expression::evaluate(&goal.value, values)
                    .map_err(|why| format!("{why} by `{command}`")),
                Err(why) => Err(why.clone()),
            };
            Result { goal, value }
        })
        .collect()
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
            let results = all(vec![goal(print, "value")]);
            assert_eq!(results[0].holds(), holds, "{print}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_missed_and_says_why() {
        for (command, why) in [
            ("echo 1 && exit 3", "failed"),
            ("echo nothing", "`value` was not measured"),
        ] {
            let results = all(vec![goal(command, "value")]);
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
        let results = all(vec![goal(&command, "value"), goal(&command, "value / 2")]);
        assert!(results.iter().all(Result::holds));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\n");
    }

    #[test]
    fn a_command_is_told_which_names_its_goals_use() {
        let command = r#"for name in {names}; do echo "{\"name\":\"$name\",\"value\":1}"; done"#;
        let results = all(vec![
            goal(command, "read / plain-read"),
            goal(command, "read + sync.ratio"),
        ]);
        assert!(results[0].holds());
        let complaint = results[1].value.as_ref().unwrap_err();
        assert!(
            complaint.contains("in read plain-read sync;"),
            "{complaint}"
        );
    }
}
