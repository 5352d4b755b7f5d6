//! The steps of a test: which values its variables have, and in which order.
//!
//! A *point* is one combination of values; the variables are loops within each
//! other, the first one outermost (Solar paper, section 4.1.1). A *step* is one
//! run of a point. A *round* is what is compared with each other: in each round
//! every point runs once, whatever the order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Value;
use crate::description::{Order, Schedule, Test, Variable};

/// The steps of a test.
#[derive(Clone, Debug)]
pub struct Plan {
    variables: Vec<Variable>,
    schedule: Schedule,
    points: u64,
}

/// One run of one combination of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// Its place in the order of the test, from 0.
    pub index: u64,
    /// The combination of values, counted from 0 as the loops go.
    pub point: u64,
    /// The round: warm-ups first.
    pub round: u32,
    /// Whether its values are kept out of the statistics.
    pub is_warm_up: bool,
}

impl Plan {
    /// The plan of a test, whose description has been checked.
    #[must_use]
    pub fn new(test: &Test) -> Plan {
        let counts = test
            .variables
            .iter()
            .map(|variable| variable.values.count());
        Plan {
            points: counts.fold(1, u64::saturating_mul),
            variables: test.variables.clone(),
            schedule: test.schedule.clone(),
        }
    }

    /// How many combinations of values there are.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.points
    }

    /// How many steps run: all of them, or of a search as many as it takes at most.
    #[must_use]
    pub fn steps_max(&self) -> u64 {
        let searches = self.searches();
        let Some(first) = searches.first() else {
            return self.len();
        };
        // The ends, the middles, and two that are measured again.
        let measured = 4 + u64::from(first.len().next_power_of_two().ilog2());
        searches.len() as u64 * measured * u64::from(self.rounds())
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.points * u64::from(self.rounds())
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often each point runs, warm-ups included.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        let schedule = &self.schedule;
        schedule.warm_up.saturating_add(schedule.repetitions.get())
    }

    /// The variable that is searched, as its place among the variables.
    #[must_use]
    pub fn searched(&self) -> Option<usize> {
        self.variables
            .iter()
            .position(|variable| variable.condition.is_some())
    }

    /// The points that differ in the searched variable alone, in the order of its
    /// values; one list for each combination of the others.
    #[must_use]
    pub fn searches(&self) -> Vec<Vec<u64>> {
        let Some(place) = self.searched() else {
            return Vec::new();
        };
        // How far apart in the loops two values of the searched one are.
        let inner = self.variables[place + 1..]
            .iter()
            .map(|it| it.values.count());
        let apart: u64 = inner.product();
        let count = self.variables[place].values.count();
        let firsts = (0..self.points).filter(|point| point / apart % count == 0);
        let points = |first: u64| (0..count).map(|index| first + index * apart).collect();
        firsts.map(points).collect()
    }

    /// What the variables are at a point.
    #[must_use]
    pub fn values(&self, point: u64) -> BTreeMap<String, Value> {
        let mut rest = point;
        let mut values = BTreeMap::new();
        // The innermost loop is the last variable.
        for variable in self.variables.iter().rev() {
            let count = variable.values.count().max(1);
            values.insert(variable.name.clone(), variable.values.at(rest % count));
            rest /= count;
        }
        values
    }

    /// The steps, in their order.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let rounds = self.rounds();
        let mut order: Vec<u64> = Vec::new();
        (0..self.len()).map(move |index| {
            let (point, round) = match self.schedule.order {
                Order::Sequential => {
                    let round = index % u64::from(rounds);
                    (index / u64::from(rounds), round)
                }
                Order::Interleaved => (index % self.points, index / self.points),
                Order::Random => {
                    let round = index / self.points;
                    if index % self.points == 0 {
                        order = (0..self.points).collect();
                        let seed = self.schedule.seed.wrapping_add(round);
                        fastrand::Rng::with_seed(seed).shuffle(&mut order);
                    }
                    let at = usize::try_from(index % self.points).expect("there are so many");
                    (order[at], round)
                }
            };
            let round = u32::try_from(round).expect("rounds are counted in 32 bits");
            Step {
                index,
                point,
                round,
                is_warm_up: round < self.schedule.warm_up,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::description::Values;

    fn plan(order: Order, warm_up: u32) -> Plan {
        let values = |values: &[i64]| Values::Enumeration {
            values: values.iter().map(|value| Value::Integer(*value)).collect(),
        };
        let variable = |name: &str, of: &[i64]| Variable {
            name: name.into(),
            values: values(of),
            condition: None,
        };
        Plan::new(&Test {
            variables: vec![variable("outer", &[1, 2]), variable("inner", &[7, 8, 9])],
            schedule: Schedule {
                order,
                warm_up,
                repetitions: NonZeroU32::new(2).unwrap(),
                ..Schedule::default()
            },
            ..Test::default()
        })
    }

    #[test]
    fn variables_are_loops_within_each_other() {
        let plan = plan(Order::Interleaved, 0);
        let all: Vec<String> = (0..plan.points())
            .map(|point| {
                let values = plan.values(point);
                format!("{}{}", values["outer"], values["inner"])
            })
            .collect();
        assert_eq!(all, ["17", "18", "19", "27", "28", "29"]);
    }

    #[test]
    fn every_round_has_every_point_once_in_every_order() {
        for order in [Order::Sequential, Order::Interleaved, Order::Random] {
            let plan = plan(order, 1);
            let steps: Vec<Step> = plan.steps().collect();
            assert_eq!(steps.len() as u64, plan.len());
            let mut met: Vec<(u32, u64)> = steps.iter().map(|it| (it.round, it.point)).collect();
            met.sort_unstable();
            let all = (0..3).flat_map(|round| (0..6).map(move |point| (round, point)));
            assert_eq!(met, all.collect::<Vec<_>>(), "{order:?}");
            assert!(steps.iter().all(|it| it.is_warm_up == (it.round == 0)));
            assert!(
                steps
                    .iter()
                    .zip(0..)
                    .all(|(step, index)| step.index == index)
            );
        }
    }

    #[test]
    fn a_search_has_the_points_that_differ_in_its_variable_alone() {
        let mut plan = plan(Order::Interleaved, 0);
        assert_eq!(plan.searches(), Vec::<Vec<u64>>::new());
        plan.variables[1].condition = Some("true".into());
        assert_eq!(plan.searches(), [[0, 1, 2], [3, 4, 5]]);
        plan.variables[1].condition = None;
        plan.variables[0].condition = Some("true".into());
        assert_eq!(plan.searches(), [[0, 3], [1, 4], [2, 5]]);
    }

    #[test]
    fn orders_are_what_their_names_say() {
        let points = |order| -> Vec<u64> { plan(order, 0).steps().map(|it| it.point).collect() };
        assert_eq!(
            points(Order::Sequential),
            [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
        );
        assert_eq!(
            points(Order::Interleaved),
            [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]
        );
        let random = points(Order::Random);
        assert_eq!(random, points(Order::Random));
        assert_ne!(random, points(Order::Interleaved));
        assert_ne!(random[..6], random[6..]);
    }

    #[test]
    fn ranges_end_where_they_say() {
        let range = |start: f64, end: f64, step: f64| {
            let values = Values::Range {
                start: Value::Number(start),
                end: Value::Number(end),
                step: Value::Number(step),
            };
            let (name, condition) = (String::new(), None);
            Variable {
                name,
                values,
                condition,
            }
            .all()
        };
        let numbers = |numbers: &[f64]| -> Vec<Value> {
            numbers
                .iter()
                .map(|number| Value::Number(*number))
                .collect()
        };
        assert_eq!(range(0.0, 0.3, 0.1), numbers(&[0.0, 0.1, 0.2, 0.3]));
        assert_eq!(range(1.0, 0.0, -0.5), numbers(&[1.0, 0.5, 0.0]));
        assert_eq!(range(0.0, 1.0, 0.4), numbers(&[0.0, 0.4, 0.8]));
        assert_eq!(range(0.0, 1.0, -0.4), []);
        assert_eq!(range(0.0, 1.0, 0.0), []);
    }
}
