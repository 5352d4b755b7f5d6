//! What has to hold of the results of an experiment, on any machine.

use std::fmt;

use anyhow::Result;
use milieu_bench::description::Test;
use milieu_bench::plan::Plan;
use milieu_bench::result::{Outcome, Point, Results, TestResults};
use milieu_expressions::Expression;

use super::file::{Check, Experiment};

/// Something that has to hold.
#[derive(Debug)]
pub struct Checked {
    pub says: String,
    /// Why it does not.
    pub fails: Option<String>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)?;
        match &self.fails {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

/// Everything that has to hold of the results.
pub fn all(
    experiment: &Experiment,
    results: &Results,
    emulated: bool,
    quick: bool,
) -> Result<Vec<Checked>> {
    let tests = || results.group.tests.iter().zip(&results.tests);
    let mut checked: Vec<Checked> = tests()
        .map(|(test, measured)| Checked {
            says: format!(
                "{}: every point is there, as often as it was to be measured",
                test.name
            ),
            fails: whole(test, measured).err(),
        })
        .collect();
    for check in experiment
        .check
        .iter()
        .filter(|it| (emulated || !it.emulated) && !(quick && it.whole))
    {
        let of = |it: &&TestResults| check.test.as_ref().is_none_or(|name| *name == it.name);
        let chosen: Vec<&TestResults> = results.tests.iter().filter(of).collect();
        if quick && chosen.is_empty() && experiment.may_lack(check.test.as_deref()) {
            continue;
        }
        let fails = match chosen.is_empty() {
            true => Some("there is no such test".to_owned()),
            false => chosen.iter().find_map(|test| one(check, test).err()),
        };
        let says = check.says.clone();
        checked.push(Checked { says, fails });
    }
    if emulated {
        checked.extend(delays(experiment, results)?);
    }
    Ok(checked)
}

/// A step to each point in each round, and a value of each metric from whoever
/// measured it in another; where something failed, what is missing is said.
fn whole(test: &Test, measured: &TestResults) -> Result<(), String> {
    let points = Plan::new(test).points();
    if measured.points.len() as u64 != points {
        return Err(format!("{} points, not {points}", measured.points.len()));
    }
    let rounds = test.schedule.repetitions.get() as usize;
    for point in &measured.points {
        if point.metrics.is_empty() && point.failures.is_empty() {
            return Err(format!("nothing was measured at {}", shown(point)));
        }
        for value in &point.values {
            if !value.value.is_finite() {
                return Err(format!("{} is no number at {}", value.metric, shown(point)));
            }
            let same = point
                .values
                .iter()
                .filter(|it| (&it.metric, &it.application) == (&value.metric, &value.application));
            let count = same.count();
            if count != rounds && point.failures.is_empty() {
                return Err(format!("{count} of {rounds} values at {}", shown(point)));
            }
        }
    }
    Ok(())
}

fn one(check: &Check, test: &TestResults) -> Result<(), String> {
    if let Some(lost) = check.lost {
        let steps = test
            .steps
            .iter()
            .filter(|step| !step.lost.is_empty())
            .count();
        if steps < lost {
            return Err(format!("{}: {steps} steps lost a host", test.name));
        }
    }
    let of_all = [
        Outcome::Failed,
        Outcome::Lost,
        Outcome::Invalid,
        Outcome::Measured,
    ];
    let worst = of_all
        .into_iter()
        .find(|it| test.steps.iter().any(|step| step.outcome == *it));
    let expected = check.outcome.unwrap_or(Outcome::Measured);
    if worst != Some(expected) {
        return Err(format!("{}: {worst:?}, not {expected:?}", test.name));
    }
    let Some(text) = &check.holds else {
        return Ok(());
    };
    let condition = Expression::parse(text).map_err(|found| {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        format!("`{text}`: {}", found.join("; "))
    })?;
    for point in &test.points {
        let holds = point.holds(&condition);
        let holds = holds.map_err(|fault| format!("`{text}` at {}: {fault}", shown(point)))?;
        if !holds {
            let metrics = point.metrics.iter();
            let metrics: Vec<String> = metrics
                .map(|(name, it)| format!("{name} {} ({} to {})", it.mean, it.minimum, it.maximum))
                .collect();
            return Err(format!(
                "not `{text}` at {}: {}",
                shown(point),
                metrics.join(", ")
            ));
        }
    }
    Ok(())
}

fn shown(point: &Point) -> String {
    let variables = point.variables.iter();
    let variables: Vec<String> = variables
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    match variables.is_empty() {
        true => "the only point".into(),
        false => variables.join(", "),
    }
}

/// No host is nearer than its link makes it.
fn delays(experiment: &Experiment, results: &Results) -> Result<Vec<Checked>> {
    let mut checked = Vec::new();
    for host in experiment.emulated()? {
        let Some(measured) = results.hosts.get(&host.name) else {
            continue;
        };
        // Half of the shortest way there and back, that is.
        let away = measured.clock_offset.as_ref().map(|offset| offset.error_ns);
        #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
        let away_ms = away.map_or(0.0, |ns| ns as f64 / 1e6);
        checked.push(Checked {
            says: format!(
                "{} is {} ms away, and not much more",
                host.name, host.delay_ms
            ),
            fails: (!(host.delay_ms..host.delay_ms + 100.0).contains(&away_ms))
                .then(|| format!("it is {away_ms} ms away")),
        });
    }
    Ok(checked)
}
