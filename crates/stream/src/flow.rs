//! Flows: what a subscriber wants, apart from how it is written and run.

use std::sync::Arc;

use milieu_transfer::Span;

/// Events of names, and operators over them.
///
/// Two flows that are equal run as one. What writing may vary is made equal when
/// a flow is built by [`Catalogue::operation`](crate::Catalogue::operation):
/// parameters stand in the order of their declaration with defaults left out,
/// expressions in their canonical text, inputs of a merge in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// The events of a name, of every name that a wildcard covers
    /// (`/labs/*/temperature`), or of a name that follows a layer
    /// (`/labs/%room%/devices`), in its canonical text.
    Stream(Arc<str>),
    /// What an operator makes of flows.
    Operation(Arc<Operation>),
}

/// An operator with its parameters and inputs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// Which operator; the catalogue has its definition.
    pub operator: Arc<str>,
    /// The parameters that are not the default, in the order of declaration.
    pub parameters: Vec<(Arc<str>, Parameter)>,
    /// Where its events come from.
    pub inputs: Vec<Flow>,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number, in its shortest text.
    Number(Arc<str>),
    /// A distance in time: `10m`, `1.5s`, `250ms`, `1h30m`, `2d`.
    Span(Span),
    /// A text, or a word of a choice.
    Text(Arc<str>),
    /// An expression, in its canonical text.
    Expression(Arc<str>),
    /// Fields and the expressions that they become.
    Fields(Vec<(Arc<str>, Arc<str>)>),
    /// A Rust function that has been registered by this name: `$hot`.
    Function(Arc<str>),
    /// Several, such as the functions of an aggregate.
    List(Vec<Parameter>),
    /// A call such as `percentile(95)`.
    Call(Arc<str>, Vec<Parameter>),
}

impl Flow {
    /// The flows that this one consists of, itself last: inputs before those
    /// that use them.
    pub fn visit<'a>(&'a self, visit: &mut impl FnMut(&'a Flow)) {
        if let Flow::Operation(operation) = self {
            for input in &operation.inputs {
                input.visit(visit);
            }
        }
        visit(self);
    }
}
