//! Files of subscriptions: what they publish, and how they act on the context.

use milieu_diagnostics::{Diagnostic, Source};
use milieu_expressions::{Compiled, Expression};
use milieu_stream::language::Language;
use milieu_stream::{Binding, Bound, Named, Parameter, Subscription, Target};
use milieu_transfer::{Event, Row, Selection, Span, Value};

use super::act::{Acting, Lasting, Switch};
use super::{Stream, shown};
use crate::{Error, Milieu};

/// What a file of subscriptions has brought about, until this is dropped.
#[must_use = "what the file says no longer holds when this is dropped"]
pub struct Applied {
    /// Flows under names.
    pub published: Vec<Named>,
    /// Names that stand for what flows say.
    pub bound: Vec<Bound>,
    /// Flows that act on the context.
    pub acting: Vec<Acting>,
    /// Who wants events, for the program to do with what it likes.
    pub subscriptions: Vec<Subscription>,
}

impl Milieu {
    /// Brings about what a file of subscriptions says, in any of the languages:
    /// flows are published under names, switch layers and assign contextual
    /// values.
    ///
    /// # Errors
    /// If something in it is wrong; nothing of it then holds.
    pub fn apply(&self, source: &Source, language: Language) -> Result<Applied, Error> {
        let document = language.parse(source, self.streams().catalogue());
        let document = document.map_err(|wrong| shown(source, &wrong))?;
        let published = document
            .publications
            .into_iter()
            .map(|publication| self.stream_of(publication.flow)?.publish(&publication.name));
        let published = published.collect::<Result<Vec<_>, Error>>()?;
        let (mut bound, mut acting) = (Vec::new(), Vec::new());
        for Binding { flow, target } in document.bindings {
            let stream = self.stream_of(flow)?;
            match target {
                Target::Name { name } => bound.push(stream.bind(&name)?),
                Target::Layer {
                    layer,
                    value,
                    condition,
                    duration,
                } => {
                    let switch = Switch::new(self.coordinator(), &layer)?;
                    let is_blind = condition.as_ref().is_some_and(|it| !looks_at_failure(it));
                    let (has_condition, has_value) = (condition.is_some(), value.is_some());
                    let asked = condition.into_iter().chain(value);
                    let (stream, asked) = stream.answering(asked.collect())?;
                    let mut asked = asked.into_iter();
                    let switching = Switching {
                        is_blind,
                        condition: has_condition.then(|| asked.next()).flatten(),
                        value: has_value.then(|| asked.next()).flatten(),
                        duration,
                    };
                    acting.push(stream.switches_by(switch, switching, source)?);
                }
                Target::Value { name, value } => {
                    let (stream, value) = stream.answering(vec![value])?;
                    let mut asked = Asked::new(source, &value)?;
                    let answer = move |event: &Event| Ok(asked.of(event)?.first().map(text));
                    acting.push(stream.tries_to_assign(&name, answer)?);
                }
            }
        }
        Ok(Applied {
            published,
            bound,
            acting,
            subscriptions: document.subscriptions,
        })
    }
}

/// When and how a layer is switched.
struct Switching {
    /// Events of failed sensors switch nothing.
    is_blind: bool,
    /// Nothing: every event activates the layer.
    condition: Option<Parameter>,
    value: Option<Parameter>,
    /// How long it stays active.
    duration: Option<Span>,
}

impl<'m> Stream<'m> {
    /// A flow of the answers to some questions, and the expressions that read them.
    ///
    /// Functions are asked within the flow, so that those that take long are in
    /// another thread. Where all are expressions there is nothing to do.
    fn answering(self, asked: Vec<Parameter>) -> Result<(Stream<'m>, Vec<Parameter>), Error> {
        let is_function = |asked: &Parameter| matches!(asked, Parameter::Function(_));
        if !asked.iter().any(is_function) {
            return Ok((self, asked));
        }
        let answer = |at| Parameter::Expression(format!("value[{at}]").into());
        let answers = (0..asked.len()).map(answer).collect();
        let into = ("into".into(), Parameter::List(asked));
        let catalogue = self.milieu.streams().catalogue();
        let transform = catalogue.get("transform").expect("it is one of Milieu's");
        let flow = catalogue.operation(transform, vec![into], vec![self.flow]);
        Ok((self.milieu.stream_of(flow)?, answers))
    }
}

impl Stream<'_> {
    fn switches_by(
        &self,
        switch: Switch,
        switching: Switching,
        source: &Source,
    ) -> Result<Acting, Error> {
        let Switching {
            is_blind,
            condition,
            value,
            duration,
        } = switching;
        let mut asked = Asked::new(source, condition.as_ref().into_iter().chain(&value))?;
        let (has_condition, has_value) = (condition.is_some(), value.is_some());
        let lasting = duration.map(|span| Lasting { span, condition });
        self.switches(switch, lasting.as_ref(), move |event| {
            let quality = event.header().quality.as_ref();
            let failure = quality.and_then(|quality| quality.failure.as_ref());
            if let Some(why) = failure.filter(|_| is_blind) {
                return Err(Error::Flow(format!("the sensor has failed: {why}")));
            }
            let mut answers = asked.of(event)?.into_iter();
            let holds = !has_condition || answers.next() == Some(Value::Bool(true));
            let value = has_value.then(|| answers.next()).flatten();
            let value = value.map_or_else(|| "active".to_owned(), |value| text(&value));
            Ok(holds.then_some(value))
        })
    }
}

/// Whether a condition asks what is wrong with the sensor.
fn looks_at_failure(condition: &Parameter) -> bool {
    let Parameter::Expression(text) = condition else {
        return false;
    };
    Expression::parse(text).is_ok_and(|expression| expression.reads("event.failure"))
}

/// Expressions that are asked of each event.
struct Asked {
    selection: Selection,
    row: Row,
    compiled: Vec<Compiled>,
}

impl Asked {
    fn new<'p>(
        source: &Source,
        parameters: impl IntoIterator<Item = &'p Parameter>,
    ) -> Result<Asked, Error> {
        let mut asked = Asked {
            selection: Selection::default(),
            row: Row::default(),
            compiled: Vec::new(),
        };
        for parameter in parameters {
            let Parameter::Expression(text) = parameter else {
                let found = Diagnostic::error("this is neither expression nor function");
                return Err(shown(source, &[found]));
            };
            let expression = Expression::parse(text);
            let expression =
                expression.map_err(|wrong| shown(&Source::new("flow", &**text), &wrong));
            asked
                .compiled
                .push(expression?.compile(&mut asked.selection));
        }
        Ok(asked)
    }

    fn of(&mut self, event: &Event) -> Result<Vec<Value>, Error> {
        event.read(&self.selection, &mut self.row);
        let row = &self.row;
        let answers = self.compiled.iter_mut().map(|compiled| compiled.value(row));
        let answers: Result<Vec<Value>, _> = answers.collect();
        answers.map_err(|fault| Error::Flow(fault.to_string()))
    }
}

/// A value as a key has it.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => i32::from(*value).to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Text(text) => text.to_string(),
        other => format!("{other:?}"),
    }
}
