//! Flows that grow while the program runs.

use milieu_diagnostics::Source;

use super::super::draft::Text;
use super::super::lower::{Lowering, Measured};
use super::{Arguments, Mistakes, arguments, called};
use crate::catalogue::Catalogue;
use crate::flow::Flow;

/// A flow to which operators are added one by one, for programs that learn only
/// while they run what it is to be. Each mistake is told at once, with the call that
/// made it.
///
/// ```
/// use milieu_stream::language::build::{Grown, given, minutes};
/// use milieu_stream::operators;
///
/// let catalogue = operators::catalogue();
/// let weather = Grown::stream("/weather/temperature", &catalogue)?;
/// let means = weather.then("aggregate", ("mean", given("window", minutes(10))), &catalogue)?;
/// assert!(means.then("filter", "value >", &catalogue).is_err());
/// # Ok::<(), milieu_stream::language::build::Mistakes>(())
/// ```
#[derive(Clone, Debug)]
pub struct Grown {
    /// What the next operator reads.
    flows: Vec<Measured>,
}

impl Grown {
    /// The events of a name, of names with wildcards, or of one that follows a layer.
    ///
    /// # Errors
    /// If it is no name.
    pub fn stream(name: &str, catalogue: &Catalogue) -> Result<Grown, Mistakes> {
        let mut calls = String::new();
        let text: Text = arguments::quote(name, &mut calls);
        grown(calls, catalogue, |lowering| lowering.stream(&text))
    }

    /// Several flows for the next operator.
    #[must_use]
    pub fn and(&self, other: &Grown) -> Grown {
        Grown {
            flows: [&*self.flows, &*other.flows].concat(),
        }
    }

    /// What the operator of this name makes of it.
    ///
    /// # Errors
    /// If there is none such, or it refuses what it is told.
    pub fn then(
        &self,
        operator: &str,
        told: impl Arguments,
        catalogue: &Catalogue,
    ) -> Result<Grown, Mistakes> {
        let mut calls = String::new();
        let step = called(operator, told, &mut calls);
        calls.push_str(")\n");
        let inputs = self.flows.iter().cloned().map(Some).collect();
        grown(calls, catalogue, |lowering| lowering.step(&step, inputs))
    }

    /// The flow; nothing where several wait for an operator that reads them.
    #[must_use]
    pub fn flow(&self) -> Option<&Flow> {
        match &*self.flows {
            [flow] => Some(&flow.flow),
            _ => None,
        }
    }

    /// How many flows the next operator reads.
    #[must_use]
    pub fn count(&self) -> usize {
        self.flows.len()
    }
}

fn grown(
    calls: String,
    catalogue: &Catalogue,
    make: impl FnOnce(&mut Lowering<'_>) -> Option<Measured>,
) -> Result<Grown, Mistakes> {
    let mut lowering = Lowering::new(catalogue);
    match make(&mut lowering) {
        Some(flow) if lowering.diagnostics.is_empty() => Ok(Grown { flows: vec![flow] }),
        _ => Err(Mistakes {
            source: Source::new("flow", calls),
            diagnostics: lowering.diagnostics,
        }),
    }
}
