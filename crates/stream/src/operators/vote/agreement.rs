//! What sensors that measure the same agree on.

use milieu_transfer::{Time, Value};

use super::super::key::Key;
use super::super::outliers::median;
use super::super::state::state;
use super::super::terms::number;

/// How a value is agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Median,
    Mean,
    Majority,
}

/// What a sensor has said.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub time: Time,
    pub value: Key,
    pub accuracy: Option<f64>,
}

state!(Said {
    time,
    value,
    accuracy
});

/// What sensors have agreed on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Agreement {
    pub value: Value,
    pub accuracy: Option<f64>,
    /// How many sensors took part.
    pub sensors: u64,
    /// How many of them say something else.
    pub dissent: u64,
}

state!(Agreement {
    value,
    accuracy,
    sensors,
    dissent
});

impl Method {
    /// What these sensors agree on, of which there is one at least; nothing
    /// where no value has a majority.
    pub fn agree(self, said: &[&Said], within: Option<f64>) -> Option<Agreement> {
        match self {
            Method::Majority => majority(said, within.unwrap_or(0.0)),
            Method::Median | Method::Mean => middle(self, said, within),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "there are few sensors")]
fn middle(method: Method, said: &[&Said], within: Option<f64>) -> Option<Agreement> {
    let numbers = said.iter().map(|said| number(said.value.value()));
    let mut numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    let value = match method {
        Method::Mean => numbers
            .iter()
            .map(|number| number / numbers.len() as f64)
            .sum(),
        _ => median(&mut numbers),
    };
    let dissents = |number: &&f64| within.is_some_and(|within| (**number - value).abs() > within);
    let accuracies = said.iter().map(|said| said.accuracy);
    let accuracies: Option<Vec<f64>> = accuracies.collect();
    let accuracy = accuracies.map(|accuracies| match method {
        Method::Mean => accuracies.iter().sum::<f64>() / accuracies.len() as f64,
        _ => accuracies.into_iter().fold(0.0, f64::max),
    });
    Some(Agreement {
        value: value.into(),
        accuracy,
        sensors: said.len() as u64,
        dissent: numbers.iter().filter(dissents).count() as u64,
    })
}

fn majority(said: &[&Said], within: f64) -> Option<Agreement> {
    let mut sorted = said.to_vec();
    // Numbers first: all that are the same are then neighbours.
    let place = |said: &Said| number(said.value.value()).unwrap_or(f64::INFINITY);
    sorted.sort_by(|a, b| {
        place(a)
            .total_cmp(&place(b))
            .then_with(|| a.value.cmp(&b.value))
    });
    let same = |a: &Said, b: &Said| match (number(a.value.value()), number(b.value.value())) {
        (Some(a), Some(b)) => b - a <= within,
        _ => a.value == b.value,
    };
    let camps = (0..sorted.len()).map(|first| {
        let camp = sorted[first..]
            .iter()
            .take_while(|said| same(sorted[first], said));
        &sorted[first..first + camp.count()]
    });
    // Of equal ones the first.
    let camp = camps.reduce(|a, b| if b.len() > a.len() { b } else { a })?;
    if camp.len() * 2 <= said.len() {
        return None;
    }
    let numbers = camp.iter().map(|said| number(said.value.value()));
    let value = match numbers.collect::<Option<Vec<f64>>>() {
        Some(mut numbers) => median(&mut numbers).into(),
        None => camp[0].value.value().clone(),
    };
    let accuracies: Option<Vec<f64>> = camp.iter().map(|said| said.accuracy).collect();
    Some(Agreement {
        value,
        accuracy: accuracies.map(|accuracies| accuracies.into_iter().fold(0.0, f64::max)),
        sensors: said.len() as u64,
        dissent: (said.len() - camp.len()) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::{Agreement, Key, Method, Said};
    use milieu_transfer::{Time, Value};

    fn agree(method: Method, values: &[Value], within: Option<f64>) -> Option<Agreement> {
        let said = values.iter().map(|value| Said {
            time: Time::from_seconds(0),
            value: Key::new(value.clone()),
            accuracy: Some(0.5),
        });
        let said: Vec<_> = said.collect();
        method.agree(&said.iter().collect::<Vec<_>>(), within)
    }

    fn agreed(value: impl Into<Value>, sensors: u64, dissent: u64) -> Option<Agreement> {
        let value = value.into();
        Some(Agreement {
            value,
            accuracy: Some(0.5),
            sensors,
            dissent,
        })
    }

    #[test]
    fn the_median_ignores_a_liar() {
        let values = [20.0, 21.0, 900.0].map(Value::Double);
        assert_eq!(
            agree(Method::Median, &values, Some(2.0)),
            agreed(21.0, 3, 1)
        );
        assert_eq!(agree(Method::Median, &values, None), agreed(21.0, 3, 0));
    }

    #[test]
    fn a_majority_is_more_than_half() {
        let values = ["open", "open", "shut"].map(Value::from);
        assert_eq!(agree(Method::Majority, &values, None), agreed("open", 3, 1));
        assert_eq!(agree(Method::Majority, &values[1..], None), None);
        let numbers = [20.0, 30.0, 20.4, 20.8, 20.9].map(Value::Double);
        assert_eq!(
            agree(Method::Majority, &numbers, Some(0.5)),
            agreed(20.8, 5, 2)
        );
        assert_eq!(agree(Method::Majority, &numbers, None), None);
    }
}
