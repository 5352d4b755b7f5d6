//! What an operator computes of an event: expressions and Rust functions.

use std::ops::Range;
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_expressions::{Compiled, Expression, Fault};
use milieu_transfer::{Event, Row, Selection, Value};

use super::key::Key;
use super::quality::failure;
use crate::catalogue::Arguments;
use crate::flow::Parameter;
use crate::functions::{ConditionFunction, Failed, Function, ValueFunction};
use crate::operator::Reason;

/// The terms of one operator. They share one reading of an event.
pub(crate) struct Terms {
    terms: Vec<Term>,
    selection: Selection,
    row: Row,
    fault: Option<String>,
}

/// Which of the terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Id(usize);

enum Term {
    Expression(Box<Compiled>),
    Function(ValueFunction, Arc<str>),
    Condition(ConditionFunction, Arc<str>),
}

/// What a term is made of, apart from what it is computed with.
#[derive(Clone)]
pub(crate) enum Formula {
    Expression(Expression),
    Function(ValueFunction, Arc<str>),
    Condition(ConditionFunction, Arc<str>),
}

impl Formula {
    pub fn new(arguments: &Arguments<'_>, parameter: &Parameter) -> Result<Formula, Diagnostic> {
        match parameter {
            Parameter::Function(name) => match arguments.functions.get(name) {
                Some(Function::Value(function)) => {
                    Ok(Formula::Function(Arc::clone(function), Arc::clone(name)))
                }
                Some(Function::Condition(holds)) => {
                    Ok(Formula::Condition(Arc::clone(holds), Arc::clone(name)))
                }
                Some(Function::Transform(_)) => Err(Diagnostic::error(format!(
                    "`${name}` makes events and computes no value"
                ))
                .help("register it by `Functions::value`")),
                None => Err(unknown(arguments, name)),
            },
            Parameter::Expression(text) => match Expression::parse(text) {
                Ok(expression) => Ok(Formula::Expression(expression)),
                Err(wrong) => Err(in_text(text, wrong)),
            },
            _ => Err(Diagnostic::error("this is neither expression nor function")),
        }
    }

    /// Whether it asks what is wrong with the sensor, so that it is to see
    /// events of failed ones.
    pub fn looks_at_failure(&self) -> bool {
        match self {
            Formula::Expression(expression) => expression.reads("event.failure"),
            Formula::Function(..) | Formula::Condition(..) => false,
        }
    }
}

impl Terms {
    pub fn new() -> Terms {
        Terms {
            terms: Vec::new(),
            selection: Selection::default(),
            row: Row::default(),
            fault: None,
        }
    }

    /// Adds a parameter, if it is given.
    pub fn add(&mut self, arguments: &Arguments<'_>, name: &str) -> Result<Option<Id>, Diagnostic> {
        match arguments.expression(name)? {
            None => Ok(None),
            Some(parameter) => self.add_parameter(arguments, &parameter).map(Some),
        }
    }

    /// Adds a parameter that has a default or must be given.
    pub fn require(&mut self, arguments: &Arguments<'_>, name: &str) -> Result<Id, Diagnostic> {
        let id = self.add(arguments, name)?;
        id.ok_or_else(|| arguments.wrong(name, "has to be given"))
    }

    pub fn add_parameter(
        &mut self,
        arguments: &Arguments<'_>,
        parameter: &Parameter,
    ) -> Result<Id, Diagnostic> {
        Formula::new(arguments, parameter).map(|formula| self.add_formula(&formula))
    }

    pub fn add_formula(&mut self, formula: &Formula) -> Id {
        self.terms.push(match formula {
            Formula::Expression(expression) => {
                Term::Expression(Box::new(expression.compile(&mut self.selection)))
            }
            Formula::Function(function, name) => {
                Term::Function(Arc::clone(function), Arc::clone(name))
            }
            Formula::Condition(holds, name) => Term::Condition(Arc::clone(holds), Arc::clone(name)),
        });
        Id(self.terms.len() - 1)
    }

    /// Reads what the terms need of an event, before they are computed.
    #[inline]
    pub fn read(&mut self, event: &Event) {
        if !self.selection.is_empty() {
            event.read(&self.selection, &mut self.row);
        }
    }

    pub fn value(&mut self, id: Id, event: &Event) -> Result<Value, Reason> {
        match &mut self.terms[id.0] {
            Term::Function(function, _) => {
                let value = function(event);
                value.map_err(|failed| self.failed(id, failed))
            }
            Term::Condition(holds, _) => holds(event).map(Value::Bool),
            Term::Expression(compiled) => {
                let value = compiled.value(&self.row);
                value.map_err(|fault| self.faulty(id, &fault))
            }
        }
    }

    /// A number that can be computed with: infinity and what is no number are not.
    pub fn number(&mut self, id: Id, event: &Event) -> Result<f64, Reason> {
        let computed = match &mut self.terms[id.0] {
            Term::Condition(..) => return Err(self.wrong(id, "is no number")),
            Term::Function(function, _) => {
                let value = function(event);
                let value = value.map_err(|failed| self.failed(id, failed))?;
                number(&value).ok_or_else(|| self.wrong(id, &format!("is no number: {value:?}")))?
            }
            Term::Expression(compiled) => match compiled.double(&self.row) {
                Ok(number) => number,
                Err(fault) => return Err(self.faulty(id, &fault)),
            },
        };
        if computed.is_finite() {
            return Ok(computed);
        }
        Err(self.wrong(id, &format!("is {computed}, which nothing can be made of")))
    }

    #[inline]
    pub fn bool(&mut self, id: Id, event: &Event) -> Result<bool, Reason> {
        match &mut self.terms[id.0] {
            Term::Condition(holds, _) => holds(event),
            Term::Function(function, _) => match function(event) {
                Ok(Value::Bool(value)) => Ok(value),
                Ok(value) => Err(self.untrue(id, &value)),
                Err(failed) => Err(self.failed(id, failed)),
            },
            Term::Expression(compiled) => {
                let value = compiled.bool(&self.row);
                value.map_err(|fault| self.faulty(id, &fault))
            }
        }
    }

    /// Whether these terms are true; if not, the first of them that is not, and why.
    #[inline]
    pub fn all(&mut self, event: &Event, terms: Range<usize>) -> Result<(), (usize, Reason)> {
        let first = terms.start;
        for (place, term) in self.terms[terms].iter_mut().enumerate() {
            let at = first + place;
            let fault = match term {
                Term::Expression(compiled) => match compiled.bool(&self.row) {
                    Ok(true) => continue,
                    Ok(false) => return Err((at, Reason::Filtered)),
                    Err(fault) => fault,
                },
                Term::Condition(holds, _) => match holds(event) {
                    Ok(true) => continue,
                    Ok(false) => return Err((at, Reason::Filtered)),
                    Err(reason) => return Err((at, reason)),
                },
                Term::Function(function, _) => match function(event) {
                    Ok(Value::Bool(true)) => continue,
                    Ok(Value::Bool(false)) => return Err((at, Reason::Filtered)),
                    Ok(value) => return Err((at, self.untrue(Id(at), &value))),
                    Err(failed) => return Err((at, self.failed(Id(at), failed))),
                },
            };
            return Err((at, self.faulty(Id(at), &fault)));
        }
        Ok(())
    }

    /// What is true where all of these are, if they are expressions and several.
    pub fn conjunction(&mut self, formulas: &[&Formula]) -> Option<Compiled> {
        let [_, _, ..] = formulas else { return None };
        let texts = formulas.iter().map(|formula| match formula {
            Formula::Expression(expression) => Some(format!("({expression})")),
            Formula::Function(..) | Formula::Condition(..) => None,
        });
        let texts: Vec<String> = texts.collect::<Option<_>>()?;
        let conjunction = Expression::parse(&texts.join(" && ")).ok()?;
        Some(conjunction.compile(&mut self.selection))
    }

    /// Whether an expression of this selection is true.
    #[inline]
    pub fn also(&self, expression: &mut Compiled) -> bool {
        expression.holds(&self.row)
    }

    /// The key of a term, or the one of all events.
    pub fn key(&mut self, id: Option<Id>, event: &Event) -> Result<Key, Reason> {
        match id {
            None => Ok(Key::NONE),
            Some(id) => self.value(id, event).map(Key::new),
        }
    }

    /// Whether a term is a field of the body as it is.
    pub fn is_path(&self, id: Id) -> bool {
        match &self.terms[id.0] {
            Term::Function(..) | Term::Condition(..) => false,
            Term::Expression(compiled) => {
                let expression = compiled.expression();
                let [variable] = expression.variables() else {
                    return false;
                };
                let path = variable.path.to_string();
                expression.canonical() == path && !path.starts_with("event.")
            }
        }
    }

    /// The last fault.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    #[cold]
    fn faulty(&mut self, id: Id, fault: &Fault) -> Reason {
        self.wrong(id, &format!("cannot be computed: {}", fault.what()))
    }

    /// Why a function makes nothing of an event.
    #[cold]
    fn failed(&mut self, id: Id, failed: Failed) -> Reason {
        match failed.why {
            Some(why) => self.wrong(id, &format!("has failed: {why}")),
            None => failed.reason,
        }
    }

    #[cold]
    fn untrue(&mut self, id: Id, value: &Value) -> Reason {
        self.wrong(id, &format!("is neither true nor false: {value:?}"))
    }

    #[cold]
    fn wrong(&mut self, id: Id, why: &str) -> Reason {
        let what = match &self.terms[id.0] {
            Term::Function(_, name) | Term::Condition(_, name) => format!("${name}"),
            Term::Expression(compiled) => compiled.expression().text().to_owned(),
        };
        self.fault = Some(format!("`{what}` {why}"));
        Reason::Fault
    }
}

/// What an operator is told to compute of events: an expression, or `$name` of a
/// function. Operators of programs have it by [`Arguments::computation`].
pub struct Computation {
    terms: Terms,
    id: Id,
}

impl Arguments<'_> {
    /// What is to be computed by a parameter of the kind
    /// [`Expression`](crate::Kind::Expression); nothing if it is not given and has no
    /// default.
    ///
    /// # Errors
    /// If it is no expression, or no function has that name.
    pub fn computation(&self, name: &str) -> Result<Option<Computation>, Diagnostic> {
        let mut terms = Terms::new();
        let id = terms.add(self, name)?;
        Ok(id.map(|id| Computation { terms, id }))
    }

    /// What is to be computed by an expression or a function, such as one of several
    /// [`Fields`](Parameter::Fields).
    ///
    /// # Errors
    /// If it is no expression, or no function has that name.
    pub fn computation_of(&self, parameter: &Parameter) -> Result<Computation, Diagnostic> {
        let mut terms = Terms::new();
        let id = terms.add_parameter(self, parameter)?;
        Ok(Computation { terms, id })
    }
}

impl Computation {
    /// What it makes of an event.
    ///
    /// # Errors
    /// Why the operator had better drop the event; [`fault`](Computation::fault) says
    /// more.
    pub fn value(&mut self, event: &Event) -> Result<Value, Reason> {
        self.terms.read(event);
        self.terms.value(self.id, event)
    }

    /// What could not be computed last, and why.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }
}

/// What is wrong with an expression: places in it are of no use where it is not
/// the whole text, so they are put into words.
fn in_text(text: &str, wrong: Vec<Diagnostic>) -> Diagnostic {
    let mut wrong = wrong.into_iter();
    let first = wrong
        .next()
        .unwrap_or_else(|| Diagnostic::error("it cannot be read"));
    let mut diagnostic = Diagnostic::error(format!("`{text}`: {}", first.message));
    let place = first.labels.first();
    if let Some(part) = place.and_then(|label| text.get(label.span.start..label.span.end)) {
        diagnostic = diagnostic.note(format!("at `{part}`"));
    }
    first.help.into_iter().fold(diagnostic, Diagnostic::help)
}

/// A value as a number.
#[allow(clippy::cast_precision_loss, reason = "53 bits of a count are enough")]
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        Value::Double(value) => Some(*value),
        Value::Span(value) => Some(value.seconds()),
        _ => None,
    }
}

/// What an operator says of a function that is not there.
pub(crate) fn unknown(arguments: &Arguments<'_>, name: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("there is no function `${name}`"));
    let names: Vec<_> = arguments
        .functions
        .names()
        .map(|name| format!("`${name}`"))
        .collect();
    diagnostic.help(if names.is_empty() {
        "no functions are registered here: a text can only use expressions".to_owned()
    } else {
        format!("these are registered: {}", names.join(", "))
    })
}

/// Events whose sensor has failed are refused: what they say means nothing.
#[inline]
pub(crate) fn trusted(event: &Event) -> Result<(), Reason> {
    match failure(event) {
        None => Ok(()),
        Some(_) => Err(Reason::Failed),
    }
}
