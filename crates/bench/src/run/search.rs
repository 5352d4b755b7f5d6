//! Searches: the last value of a variable for which a condition on what is measured holds.
//!
//! The condition is taken to hold up to some value and to fail behind it. The
//! first and the last value are measured, then the middle of what is open. What
//! holds by chance would lead far astray, so the value that is found and the next
//! one are measured once more; if they say something else now, the result is not
//! sure.

use std::collections::BTreeMap;

use milieu_expressions::Expression;

use super::OfTest;
use crate::plan::Step;
use crate::result::{Found, Point};

/// Searches for each combination of the other variables.
pub(super) fn search(test: &mut OfTest) -> Result<Vec<Found>, String> {
    let plan = test.plan;
    let Some(place) = plan.searched() else {
        return Ok(Vec::new());
    };
    let variable = &test.test.variables[place];
    let condition = variable.condition.as_deref().unwrap_or("true");
    let condition = Expression::parse(condition).map_err(|_| "the condition was not checked")?;
    let mut all = Vec::new();
    for points in plan.searches() {
        let mut others = plan.values(points[0]);
        others.remove(&variable.name);
        let mut search = Search {
            test,
            condition: &condition,
            rounds: BTreeMap::new(),
            undecided: Vec::new(),
        };
        let (found, is_sure) = search.last(&points)?;
        let undecided = search.undecided;
        let value = |point| plan.values(point).remove(&variable.name);
        all.push(Found {
            variable: variable.name.clone(),
            others,
            value: found.and_then(|index| value(points[index])),
            is_bounded: found.is_none_or(|index| index + 1 < points.len()),
            is_sure,
            undecided,
        });
    }
    Ok(all)
}

struct Search<'s, 'a, 'r> {
    test: &'s mut OfTest<'a, 'r>,
    condition: &'s Expression,
    /// How many rounds of each point have run.
    rounds: BTreeMap<u64, u32>,
    undecided: Vec<String>,
}

impl Search<'_, '_, '_> {
    /// The last place for which the condition holds, and whether that is sure.
    fn last(&mut self, points: &[u64]) -> Result<(Option<usize>, bool), String> {
        let end = points.len() - 1;
        // It holds below `low`, and does not from `high` on.
        let (mut low, mut high) = (0, points.len());
        let mut next = 0;
        while low < high {
            match self.holds(points[next])? {
                true => low = next + 1,
                false => high = next,
            }
            next = match (low, high) {
                // The first value holds: the last one may, too.
                (1, high) if high > end => end,
                (low, high) => low + (high - low) / 2,
            };
            next = next.min(end);
        }
        let mut is_sure = true;
        if let Some(index) = low.checked_sub(1) {
            is_sure &= self.holds(points[index])?;
        }
        if let Some(point) = points.get(low) {
            is_sure &= !self.holds(*point)?;
        }
        Ok((low.checked_sub(1), is_sure))
    }

    /// Measures a point and decides.
    fn holds(&mut self, point: u64) -> Result<bool, String> {
        let schedule = &self.test.test.schedule;
        let warm_up = schedule.warm_up;
        let before = self.rounds.get(&point).copied().unwrap_or(0);
        let after = before + self.test.plan.rounds();
        self.rounds.insert(point, after);
        let from = self.test.ended.len();
        for round in before..after {
            let step = Step {
                index: self.test.ended.len() as u64,
                point,
                round,
                is_warm_up: round - before < warm_up,
            };
            self.test.perform(step)?;
        }
        let steps = self.test.ended[from..]
            .iter()
            .filter(|step| !step.step.is_warm_up);
        let measured = Point::new(&steps.collect::<Vec<_>>());
        measured.holds(self.condition).or_else(|fault| {
            let why = fault.to_string();
            if !self.undecided.contains(&why) {
                self.undecided.push(why);
            }
            Ok(false)
        })
    }
}
