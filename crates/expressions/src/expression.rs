//! Expressions from text to result.

use std::fmt;
use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_transfer::{Map, Row, Selection, Value};

use crate::ast::Node;
use crate::canonical;
use crate::check;
use crate::code::{Closure, Code, Frame, Known, Scratch, Truth, build, number};
use crate::fault::{Fault, Wrong};
use crate::kind::{Kind, Types};
use crate::parser;
use crate::resolve::{Variable, resolve};

/// An expression: the names in it are known to be fields of events, but not of
/// which kinds these are.
#[derive(Clone)]
pub struct Expression(Arc<Parts>);

struct Parts {
    text: String,
    root: Node,
    /// The tree with everything computed that does not depend on an event.
    folded: Node,
    variables: Vec<Variable>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with the text, and what to do.
    pub fn parse(text: &str) -> Result<Expression, Vec<Diagnostic>> {
        let parsed = parser::parse(text).and_then(resolve);
        let (root, variables) = parsed.map_err(|wrong| vec![*wrong])?;
        let folded = canonical::fold(root.clone());
        let text = text.to_owned();
        Ok(Expression(Arc::new(Parts {
            text,
            root,
            folded,
            variables,
        })))
    }

    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The fields that it reads, in the order in which they are named.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.0.variables
    }

    /// Whether it reads this field, `event.failure` for instance.
    #[must_use]
    pub fn reads(&self, field: &str) -> bool {
        let mut variables = self.0.variables.iter();
        variables.any(|variable| variable.path.to_string() == field)
    }

    /// A text that is the same for expressions that differ only in how they are
    /// written: in spaces, parentheses, what is computed of literals, and the
    /// order of operands where nothing depends on it.
    #[must_use]
    pub fn canonical(&self) -> String {
        canonical::show(&self.0.folded, &self.0.variables)
    }

    /// Says of which kind the result is, if the fields are of these kinds.
    ///
    /// # Errors
    /// Every operator that is not defined for its operands, and every field
    /// that does not exist.
    pub fn check(&self, types: &Types) -> Result<Kind, Vec<Diagnostic>> {
        check::check(&self.0.root, &self.0.variables, types)
    }

    /// Makes it ready to run: asks the selection for the fields that it reads.
    /// Several expressions with one selection read an event once.
    #[must_use]
    pub fn compile(&self, selection: &mut Selection) -> Compiled {
        let fields = self.0.variables.iter().map(|variable| Known {
            // The path was seen to be one that can be asked for.
            slot: selection
                .add_path(variable.path.clone())
                .unwrap_or(usize::MAX),
            path: variable.path.to_string().into(),
            kind: None,
        });
        Compiled {
            expression: self.clone(),
            fields: fields.collect(),
            programs: Programs::default(),
            scratch: Scratch::default(),
            steps: STEPS,
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.0.text).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// How many steps a run may take: an element that a macro goes through is one.
const STEPS: u64 = 1_000_000;

/// An expression that is ready to run.
///
/// It learns of which kinds the fields are from the events themselves: the
/// closures are made for the first event, and anew when a field is of another
/// kind for the first time.
pub struct Compiled {
    expression: Expression,
    fields: Vec<Known>,
    programs: Programs,
    scratch: Scratch,
    steps: u64,
}

/// The closures, by what is asked for.
#[derive(Default)]
struct Programs {
    truth: Option<Truth>,
    number: Option<Closure<f64>>,
    value: Option<Closure<Value>>,
}

impl Compiled {
    /// Lets each run take at most so many steps: an element that a macro goes
    /// through is one, as are 64 bytes of a text that is searched or joined.
    #[must_use]
    pub fn limit(mut self, steps: u64) -> Compiled {
        self.steps = steps;
        self
    }

    /// What it was made of.
    #[must_use]
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// CEL's errors, and if the result is no truth value.
    #[inline]
    pub fn bool(&mut self, row: &Row) -> Result<bool, Fault> {
        if let Some(truth) = &self.programs.truth {
            self.scratch.steps.set(self.steps);
            let scratch = &self.scratch;
            if let Some(result) = truth.get(&Frame { row, scratch }) {
                return Ok(result);
            }
        }
        self.again(row, Compiled::bool, |programs, code, place| {
            programs.truth = Some(Truth::new(code, place));
        })
    }

    /// Whether it is true, where it does not matter why it is not.
    #[inline]
    pub fn holds(&mut self, row: &Row) -> bool {
        if let Some(truth) = &self.programs.truth {
            self.scratch.steps.set(self.steps);
            let scratch = &self.scratch;
            if let Some(result) = truth.get(&Frame { row, scratch }) {
                return result;
            }
        }
        self.holds_after_all(row)
    }

    #[cold]
    fn holds_after_all(&mut self, row: &Row) -> bool {
        matches!(self.bool(row), Ok(true))
    }

    /// The number that it is, of whichever kind.
    ///
    /// # Errors
    /// CEL's errors, and if the result is no number.
    #[inline]
    pub fn double(&mut self, row: &Row) -> Result<f64, Fault> {
        if let Some(number) = &self.programs.number {
            self.scratch.steps.set(self.steps);
            let scratch = &self.scratch;
            if let Some(result) = number(&Frame { row, scratch }) {
                return Ok(result);
            }
        }
        self.again(row, Compiled::double, |programs, code, place| {
            programs.number = Some(number(code, place));
        })
    }

    /// The value that it is. A type is the text of its name.
    ///
    /// # Errors
    /// CEL's errors.
    pub fn value(&mut self, row: &Row) -> Result<Value, Fault> {
        if let Some(value) = &self.programs.value {
            self.scratch.steps.set(self.steps);
            let scratch = &self.scratch;
            if let Some(result) = value(&Frame { row, scratch }) {
                return Ok(named(result));
            }
        }
        self.again(row, Compiled::value, |programs, code, _| {
            programs.value = Some(code.any());
        })
    }

    /// After there was no result: because of a fault, or because closures are
    /// yet to be made for the kinds that the fields have now.
    #[cold]
    fn again<T>(
        &mut self,
        row: &Row,
        run: fn(&mut Compiled, &Row) -> Result<T, Fault>,
        make: fn(&mut Programs, Code, Span),
    ) -> Result<T, Fault> {
        let fault = self.scratch.take_fault();
        if let Some(fault) = fault.filter(|fault| *fault.what() != Wrong::Changed) {
            return Err(fault);
        }
        self.scratch.clear();
        self.programs = Programs::default();
        for field in &mut self.fields {
            field.kind = match (field.kind, Kind::of_slot(row.slot(field.slot))) {
                (known, None) => known,
                (None, found) => found,
                (Some(known), Some(found)) if known == found => Some(known),
                _ => Some(Kind::Dyn),
            };
        }
        let root = &self.expression.0.folded;
        let code = build(root, &self.fields);
        make(&mut self.programs, code, root.span);
        run(self, row)
    }
}

/// A type becomes its name, also in lists and maps.
fn named(value: Value) -> Value {
    match &value {
        Value::Shared(..) if Kind::of(&value) == Kind::Type => match value {
            Value::Shared(_, name) => (*name).clone(),
            other => other,
        },
        Value::List(list) if list.iter().any(holds_type) => {
            Value::List(list.iter().cloned().map(named).collect())
        }
        Value::Map(map) if map.iter().any(|(_, value)| holds_type(value)) => {
            let entries = map
                .iter()
                .map(|(key, value)| (key.clone(), named(value.clone())));
            Value::from(entries.collect::<Map>())
        }
        _ => value,
    }
}

fn holds_type(value: &Value) -> bool {
    match value {
        Value::List(list) => list.iter().any(holds_type),
        Value::Map(map) => map.iter().any(|(_, value)| holds_type(value)),
        value => Kind::of(value) == Kind::Type,
    }
}

impl Clone for Compiled {
    /// Another one for another thread; it makes its closures itself.
    fn clone(&self) -> Compiled {
        Compiled {
            expression: self.expression.clone(),
            fields: self.fields.clone(),
            programs: Programs::default(),
            scratch: Scratch::default(),
            steps: self.steps,
        }
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut compiled = f.debug_struct("Compiled");
        compiled.field("expression", &self.expression);
        compiled.field("fields", &self.fields);
        compiled.finish_non_exhaustive()
    }
}
