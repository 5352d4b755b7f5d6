//! What is computed of a point: conditions of searches, and columns of tables.
//!
//! Expressions read each metric (`latency.p99`, `rate.mean`), each variable whose
//! name is an identifier, and `failed`, the number of results that are missing.

use milieu_expressions::{Expression, Fault};
use milieu_transfer::{Map, Row, Selection, Value as Body};

use crate::Value;
use crate::result::Point;
use crate::statistics::Statistics;

impl Point {
    /// Whether a condition holds. It reads each metric (`latency.p99`), each
    /// variable whose name is an identifier, and `failed`.
    ///
    /// # Errors
    /// It reads something that is not there, or of another kind.
    pub fn holds(&self, condition: &Expression) -> Result<bool, Fault> {
        let mut selection = Selection::default();
        let mut compiled = condition.compile(&mut selection);
        let mut row = Row::default();
        row.read_value(&selection, &self.body());
        compiled.bool(&row)
    }

    /// A number that is computed.
    pub(crate) fn compute(&self, expression: &Expression) -> Result<f64, Fault> {
        let mut selection = Selection::default();
        let mut compiled = expression.compile(&mut selection);
        let mut row = Row::default();
        row.read_value(&selection, &self.body());
        compiled.double(&row)
    }

    fn body(&self) -> Body {
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| (name.clone(), variable(value)));
        let metrics = self.metrics.iter();
        let metrics = metrics.map(|(name, statistics)| (name.clone(), metric(statistics)));
        let failed = i64::try_from(self.failures.len()).unwrap_or(i64::MAX);
        let failed = ("failed".to_owned(), Body::from(failed));
        // What was measured counts where a variable has the same name.
        Body::from(variables.chain(metrics).chain([failed]).collect::<Map>())
    }
}

fn variable(value: &Value) -> Body {
    match value {
        Value::Bool(value) => Body::from(*value),
        Value::Integer(value) => Body::from(*value),
        Value::Number(value) => Body::from(*value),
        Value::Text(value) => Body::from(value.as_str()),
        Value::List(values) => values.iter().map(variable).collect(),
    }
}

fn metric(statistics: &Statistics) -> Body {
    let plain = [
        ("mean", statistics.mean),
        ("min", statistics.minimum),
        ("max", statistics.maximum),
        ("deviation", statistics.deviation),
    ];
    let plain = plain.map(|(name, value)| (name.to_owned(), Body::from(value)));
    let percentiles = statistics.percentiles.iter().map(|(percent, value)| {
        // A name has no dots.
        (format!("p{percent}").replace('.', "_"), Body::from(*value))
    });
    let count = i64::try_from(statistics.count).unwrap_or(i64::MAX);
    let count = ("count".to_owned(), Body::from(count));
    Body::from(
        plain
            .into_iter()
            .chain(percentiles)
            .chain([count])
            .collect::<Map>(),
    )
}
