//! The goals as a table for people and as JSON lines for programs.

use serde_json::json;

use super::file::Goal;
use super::measure::Result;
use crate::table::{self, Align};

/// Goal, bound, measured, held or missed; what could not be measured below.
pub fn table(results: &[Result]) -> String {
    let rows: Vec<Vec<String>> = results
        .iter()
        .map(|result| {
            let goal = &result.goal;
            vec![
                goal.name.clone(),
                format!("{} {}", goal.bound, goal.unit),
                result
                    .value
                    .as_ref()
                    .map_or_else(|_| "-".to_owned(), |value| table::number(*value)),
                if result.holds() { "held" } else { "missed" }.to_owned(),
                peer(goal),
            ]
        })
        .collect();
    let mut text = table::render(
        &[
            ("goal", Align::Left),
            ("bound", Align::Left),
            ("measured", Align::Right),
            ("", Align::Left),
            ("compared with", Align::Left),
        ],
        &rows,
    );
    for result in results {
        if let Err(why) = &result.value {
            text.push_str(&format!("{}: {why}\n", result.goal.name));
        }
    }
    let held = results.iter().filter(|result| result.holds()).count();
    text.push_str(&format!("{held} held, {} missed\n", results.len() - held));
    text
}

/// One JSON object a line.
pub fn json(results: &[Result]) -> String {
    lines(results.iter().map(|result| {
        let mut object = describe(&result.goal);
        object["value"] = json!(result.value.as_ref().ok());
        object["holds"] = json!(result.holds());
        if let Err(why) = &result.value {
            object["error"] = json!(why);
        }
        object
    }))
}

/// Every goal with its reason and its command.
pub fn list(goals: &[Goal]) -> String {
    goals
        .iter()
        .map(|goal| {
            format!(
                "{}  {} {}{}\n    {}\n    compared with: {}\n    {} of: {}\n",
                goal.name,
                goal.bound,
                goal.unit,
                if goal.repeatable {
                    "  (repeatable)"
                } else {
                    ""
                },
                goal.why,
                peer(goal),
                goal.value,
                goal.command,
            )
        })
        .collect()
}

/// The goals without measurements, one JSON object a line.
pub fn list_json(goals: &[Goal]) -> String {
    lines(goals.iter().map(|goal| {
        let mut object = describe(goal);
        object["why"] = json!(goal.why);
        object["command"] = json!(goal.command);
        object
    }))
}

fn describe(goal: &Goal) -> serde_json::Value {
    json!({
        "name": goal.name,
        "part": goal.part,
        "bound": goal.bound.to_string(),
        "unit": goal.unit,
        "peer": goal.peer,
        "recorded": goal.recorded,
        "repeatable": goal.repeatable,
    })
}

fn peer(goal: &Goal) -> String {
    if goal.recorded {
        format!("{} (recorded)", goal.peer)
    } else {
        goal.peer.clone()
    }
}

fn lines(objects: impl Iterator<Item = serde_json::Value>) -> String {
    objects.map(|object| format!("{object}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, recorded: bool, value: std::result::Result<f64, String>) -> Result {
        Result {
            goal: Goal {
                name: name.into(),
                part: "context".into(),
                command: "echo".into(),
                value: "value / 100".into(),
                bound: "<= 2".parse().unwrap(),
                unit: "ns".into(),
                peer: "an atomic load".into(),
                recorded,
                repeatable: false,
                why: "Because.".into(),
            },
            value,
        }
    }

    #[test]
    fn the_table_says_what_held_what_is_missed_and_what_cannot_be_measured() {
        let results = [
            result("read", false, Ok(1.25)),
            result("write", true, Ok(2.5)),
            result("sync", false, Err("`value` was not measured".into())),
        ];
        assert_eq!(
            table(&results),
            "goal   bound    measured          compared with\n\
             read   <= 2 ns     1.250  held    an atomic load\n\
             write  <= 2 ns     2.500  missed  an atomic load (recorded)\n\
             sync   <= 2 ns         -  missed  an atomic load\n\
             sync: `value` was not measured\n\
             1 held, 2 missed\n"
        );
    }

    #[test]
    fn json_lines_have_name_value_bound_and_holds() {
        let text = json(&[
            result("read", false, Ok(1.25)),
            result("sync", false, Err("gone".into())),
        ]);
        let objects: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(objects[0]["name"], "read");
        assert_eq!(objects[0]["value"], 1.25);
        assert_eq!(objects[0]["bound"], "<= 2");
        assert_eq!(objects[0]["holds"], true);
        assert!(objects[1]["value"].is_null());
        assert_eq!(objects[1]["holds"], false);
    }
}
