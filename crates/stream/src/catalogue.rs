//! The operators that flows may name, described for all languages at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;

use crate::flow::{Flow, Operation, Parameter};
use crate::functions::Functions;
use crate::operator::Operator;

/// An operator: what it is called, what it takes, and how one is made.
#[derive(Debug)]
pub struct Definition {
    /// Its name: `filter`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// How many flows it reads.
    pub inputs: Inputs,
    /// What it is told. Positional ones come first.
    pub parameters: &'static [Declared],
    /// Makes one. The arguments are complete and of the declared kinds.
    pub make: fn(&Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic>,
}

/// How many flows an operator reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// One.
    One,
    /// One or more, whose order does not matter.
    Unordered,
    /// So many at least, whose order matters.
    Ordered(usize),
}

/// A parameter of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Whether its name may be left out, in the order of declaration.
    pub positional: bool,
    /// What holds where it is not given, as text: an empty one says that then
    /// there is none. Nothing: it must be given.
    pub default: Option<&'static str>,
    /// What it means, in one sentence.
    pub summary: &'static str,
}

impl Declared {
    /// What holds where it is not given, if there is something and it is of the kind.
    #[must_use]
    pub fn default_value(&self) -> Option<Parameter> {
        self.default.filter(|text| !text.is_empty())?;
        crate::language::default(self)
    }
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Flag,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A distance in time.
    Span,
    /// A text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An expression, or `$name` of a registered function.
    Expression,
    /// Fields that become expressions, one expression that becomes the whole, or
    /// `$name` of a registered function.
    Fields,
    /// One or more of these functions, perhaps with arguments: `percentile(95)`.
    Functions(&'static [&'static str]),
}

/// What an operator is made with.
pub struct Arguments<'a> {
    /// Which operator.
    pub definition: &'a Definition,
    /// Its parameters; defaults are not among them.
    pub parameters: &'a [(Arc<str>, Parameter)],
    /// How many flows it reads here.
    pub inputs: usize,
    /// The Rust functions that `$name` may mean.
    pub functions: &'a Functions,
}

impl Arguments<'_> {
    /// A parameter that was given.
    #[must_use]
    pub fn given(&self, name: &str) -> Option<&Parameter> {
        let mut parameters = self.parameters.iter();
        parameters
            .find(|(known, _)| **known == *name)
            .map(|(_, parameter)| parameter)
    }
}

/// The operators that are known, by name, and the Rust functions that flows may use.
#[derive(Clone, Default)]
pub struct Catalogue {
    definitions: BTreeMap<&'static str, &'static Definition>,
    functions: Functions,
}

impl Catalogue {
    /// A catalogue of these.
    #[must_use]
    pub fn new(definitions: impl IntoIterator<Item = &'static Definition>) -> Catalogue {
        let named = definitions
            .into_iter()
            .map(|definition| (definition.name, definition));
        Catalogue {
            definitions: named.collect(),
            functions: Functions::default(),
        }
    }

    /// The Rust functions that flows may name by `$name`.
    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Where to register Rust functions.
    pub fn functions_mut(&mut self) -> &mut Functions {
        &mut self.functions
    }

    /// The operator of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static Definition> {
        self.definitions.get(name).copied()
    }

    /// All operators, by name.
    pub fn iter(&self) -> impl Iterator<Item = &'static Definition> {
        self.definitions.values().copied()
    }

    /// Makes the operator of a flow.
    ///
    /// # Errors
    /// If the operator is unknown or refuses its parameters.
    pub fn make(&self, operation: &Operation) -> Result<Box<dyn Operator>, Diagnostic> {
        let name = &operation.operator;
        let Some(definition) = self.get(name) else {
            return Err(Diagnostic::error(format!("there is no operator `{name}`")));
        };
        let arguments = Arguments {
            definition,
            parameters: &operation.parameters,
            inputs: operation.inputs.len(),
            functions: &self.functions,
        };
        (definition.make)(&arguments)
    }

    /// Whether the operator of a flow, which was made so, may take long: by itself,
    /// or because it is told to compute by a function that may.
    pub(crate) fn blocks(&self, operation: &Operation, made: &dyn Operator) -> bool {
        let mut parameters = operation.parameters.iter();
        made.blocks() || parameters.any(|(_, parameter)| self.functions.block(parameter))
    }

    /// A flow of this operator: parameters brought into the order of their
    /// declaration, defaults left out, inputs ordered where their order does
    /// not matter.
    #[must_use]
    pub fn operation(
        &self,
        definition: &'static Definition,
        mut parameters: Vec<(Arc<str>, Parameter)>,
        mut inputs: Vec<Flow>,
    ) -> Flow {
        let place = |name: &str| definition.parameters.iter().position(|p| p.name == name);
        parameters.sort_by_key(|(name, _)| place(name));
        if definition.inputs == Inputs::Unordered {
            inputs.sort();
        }
        Flow::Operation(Arc::new(Operation {
            operator: definition.name.into(),
            parameters,
            inputs,
        }))
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.definitions.keys()).finish()
    }
}
