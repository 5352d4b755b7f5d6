//! The file of the goals, and what makes a row complete.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::bound::Bound;
use super::{FILE, expression};
use crate::process;

/// One figure that the project claims or aims for.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Unique: `context/idle-sync-instructions`.
    pub name: String,
    /// The crate's folder: `context`.
    pub part: String,
    /// The shell command that measures it, run in the repository's root.
    pub command: String,
    /// How the figure is computed from what the command prints.
    pub value: String,
    /// What the figure must satisfy.
    pub bound: Bound,
    /// The figure's unit: `ns`, `instructions`, `bytes`, `×`.
    pub unit: String,
    /// What it is compared with: a peer, a limit of the machine, an older self.
    pub peer: String,
    /// The peer's figure was recorded once and is not measured beside ours.
    pub recorded: bool,
    /// The figure repeats on any machine, so that CI can insist on it.
    pub repeatable: bool,
    /// One sentence: why the project wants this.
    pub why: String,
}

impl Goal {
    /// Whether the goal is of this part, or is the one of this name.
    pub fn belongs_to(&self, part: &str) -> bool {
        self.part == part || self.name == part
    }
}

/// A row as written; what is missing is reported together, not one by one.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Row {
    name: String,
    part: String,
    command: String,
    value: String,
    bound: String,
    unit: String,
    peer: String,
    recorded: bool,
    repeatable: Option<bool>,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(default)]
    goal: Vec<Row>,
}

/// The goals of the repository.
pub fn read() -> Result<Vec<Goal>> {
    let path = process::root().join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
    let (goals, complaints) = parse(&text);
    if !complaints.is_empty() {
        bail!("{FILE}:\n  {}", complaints.join("\n  "));
    }
    Ok(goals)
}

/// What is wrong with a file of goals, for `cargo xtask tidy`.
pub fn check(text: &str, parts: &BTreeSet<String>) -> Vec<String> {
    let (goals, mut complaints) = parse(text);
    for goal in &goals {
        if !parts.contains(&goal.part) {
            complaints.push(format!(
                "{}: there is no part `{}`; a part is the folder of a package",
                goal.name, goal.part
            ));
        }
    }
    complaints
}

fn parse(text: &str) -> (Vec<Goal>, Vec<String>) {
    let rows: Rows = match toml::from_str(text) {
        Ok(rows) => rows,
        Err(error) => return (Vec::new(), vec![error.to_string()]),
    };
    let mut goals: Vec<Goal> = Vec::new();
    let mut complaints = Vec::new();
    for (index, row) in rows.goal.into_iter().enumerate() {
        let name = if row.name.is_empty() {
            format!("row {}", index + 1)
        } else {
            row.name.clone()
        };
        if goals.iter().any(|goal| goal.name == name) {
            complaints.push(format!("{name}: two rows have this name"));
        }
        match goal(row) {
            Ok(goal) => goals.push(goal),
            Err(of_row) => {
                complaints.extend(of_row.into_iter().map(|text| format!("{name}: {text}")))
            }
        }
    }
    (goals, complaints)
}

fn goal(row: Row) -> Result<Goal, Vec<String>> {
    let mut complaints: Vec<String> = [
        ("name", &row.name),
        ("part", &row.part),
        ("command", &row.command),
        ("value", &row.value),
        ("bound", &row.bound),
        ("unit", &row.unit),
        ("peer", &row.peer),
        ("why", &row.why),
    ]
    .into_iter()
    .filter(|(_, text)| text.trim().is_empty())
    .map(|(field, _)| format!("`{field}` is missing"))
    .collect();
    if row.repeatable.is_none() {
        complaints.push("`repeatable` is missing".to_owned());
    }
    if !row.value.is_empty() {
        match expression::names(&row.value) {
            Ok(names) if names.is_empty() => {
                complaints.push(format!("`{}` uses nothing that is measured", row.value));
            }
            Ok(_) => {}
            Err(complaint) => complaints.push(complaint),
        }
    }
    if row.recorded && !expression::has_number(&row.value) {
        complaints.push("a recorded peer's figure stands in `value` as a number".to_owned());
    }
    if !row.why.is_empty() && !row.why.trim_end().ends_with('.') {
        complaints.push("`why` is a sentence and ends with a full stop".to_owned());
    }
    let bound = if row.bound.is_empty() {
        None
    } else {
        row.bound
            .parse()
            .map_err(|complaint| complaints.push(complaint))
            .ok()
    };
    match bound {
        Some(bound) if complaints.is_empty() => Ok(Goal {
            name: row.name,
            part: row.part,
            command: row.command,
            value: row.value,
            bound,
            unit: row.unit,
            peer: row.peer,
            recorded: row.recorded,
            repeatable: row.repeatable.unwrap_or(false),
            why: row.why,
        }),
        _ => Err(complaints),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: &str = r#"
[[goal]]
name = "context/read"
part = "context"
command = "cargo xtask instructions -p milieu-context --bench operations read plain"
value = "read / plain"
bound = "<= 1.0"
unit = "×"
peer = "a plain variable"
repeatable = true
why = "Reading a contextual value costs what reading a variable costs."
"#;

    fn parts() -> BTreeSet<String> {
        ["context".to_owned()].into()
    }

    #[test]
    fn a_complete_row_is_a_goal() {
        let (goals, complaints) = parse(COMPLETE);
        assert_eq!(complaints, [] as [&str; 0]);
        assert_eq!(goals[0].bound.to_string(), "<= 1");
        assert!(goals[0].belongs_to("context") && goals[0].belongs_to("context/read"));
        assert_eq!(check(COMPLETE, &parts()), [] as [&str; 0]);
    }

    #[test]
    fn every_missing_field_is_named() {
        for field in [
            "name",
            "part",
            "command",
            "value",
            "bound",
            "unit",
            "peer",
            "repeatable",
            "why",
        ] {
            let without: String = COMPLETE
                .lines()
                .filter(|line| !line.starts_with(&format!("{field} =")))
                .map(|line| format!("{line}\n"))
                .collect();
            let complaints = check(&without, &parts());
            assert_eq!(complaints.len(), 1, "{field}: {complaints:?}");
            assert!(
                complaints[0].contains(&format!("`{field}` is missing")),
                "{complaints:?}"
            );
        }
    }

    #[test]
    fn a_row_that_cannot_be_measured_is_refused() {
        for (good, bad, complaint) in [
            ("<= 1.0", "about 1", "no bound"),
            ("read / plain", "read /", "no expression"),
            ("read / plain", "1.0", "nothing that is measured"),
            ("variable costs.", "variable costs", "is a sentence"),
            ("repeatable", "recorded = true\nrepeatable", "as a number"),
            (
                "part = \"context\"",
                "part = \"contexts\"",
                "no part `contexts`",
            ),
            ("unit =", "units =", "unknown field"),
        ] {
            let complaints = check(&COMPLETE.replace(good, bad), &parts());
            assert!(
                complaints.iter().any(|text| text.contains(complaint)),
                "{bad}: {complaints:?}"
            );
        }
    }

    #[test]
    fn names_are_unique() {
        let complaints = check(&COMPLETE.repeat(2), &parts());
        assert!(complaints[0].contains("two rows"), "{complaints:?}");
    }
}
