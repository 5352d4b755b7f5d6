//! Rust functions that take part in flows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use milieu_transfer::{Body, Event, Kind, Rights, Value};

use crate::flow::Parameter;
use crate::operator::{Fate, Output, Reason};
use crate::operators::carried;

/// The Rust functions that flows refer to, by name.
///
/// A flow says `$name` where it could have said an expression. Flows with the
/// same name run as one; functions without a name are shared with nobody.
///
/// ```
/// use milieu_stream::Functions;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Weather {
///     temperature: f64,
/// }
///
/// let mut functions = Functions::default();
/// functions.condition("hot", |weather: &Weather| weather.temperature > 32.0);
/// functions.transform("celsius", |weather: &Weather| Weather {
///     temperature: (weather.temperature - 32.0) / 1.8,
/// });
/// ```
#[derive(Clone, Default)]
pub struct Functions {
    known: BTreeMap<Arc<str>, Registered>,
    unnamed: u64,
}

#[derive(Clone)]
struct Registered {
    function: Function,
    /// Whether it may take long.
    blocks: bool,
}

/// A registered function.
#[derive(Clone)]
pub(crate) enum Function {
    /// Computes a value of an event: a condition, a number, a key.
    Value(ValueFunction),
    /// Says whether something holds for an event.
    Condition(ConditionFunction),
    /// Publishes something else for an event.
    Transform(TransformFunction),
}

pub(crate) type ValueFunction = Arc<dyn Fn(&Event) -> Result<Value, Failed> + Send + Sync>;
pub(crate) type ConditionFunction = Arc<dyn Fn(&Event) -> Result<bool, Reason> + Send + Sync>;
pub(crate) type TransformFunction =
    Arc<dyn Fn(&Event, &mut Output<'_>) -> Result<Fate, Failed> + Send + Sync>;

/// Why a function makes nothing of an event: a [`Reason`], or a text that says what
/// has failed, by which the event is dropped as [`Reason::Fault`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub(crate) reason: Reason,
    pub(crate) why: Option<Box<str>>,
}

impl Failed {
    /// That it has failed, and why: pictures of the graph show it with the operator
    /// that has asked the function.
    #[must_use]
    pub fn new(why: impl Into<Box<str>>) -> Failed {
        Failed {
            reason: Reason::Fault,
            why: Some(why.into()),
        }
    }
}

impl From<Reason> for Failed {
    fn from(reason: Reason) -> Failed {
        Failed { reason, why: None }
    }
}

impl Functions {
    /// Registers what computes a condition, a number or a key of bodies of a
    /// type. A body that came without a type, from another host for instance,
    /// becomes one of this type if it can; all others are dropped by
    /// [`Reason::Type`]. Another function of that name is replaced.
    pub fn value<T: Body, V: Into<Value>>(
        &mut self,
        name: &str,
        compute: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Parameter {
        self.add(name, Function::Value(typed(compute)))
    }

    /// As [`value`](Functions::value), for what may take long: each operator that
    /// is told to compute by it runs where it holds up nothing else.
    pub fn value_blocking<T: Body, V: Into<Value>>(
        &mut self,
        name: &str,
        compute: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Parameter {
        self.add_blocking(name, Function::Value(typed(compute)))
    }

    /// As [`value`](Functions::value) for what is true or false, which is then
    /// asked a little faster.
    pub fn condition<T: Body>(
        &mut self,
        name: &str,
        holds: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Parameter {
        self.add(name, Function::Condition(asking(holds)))
    }

    /// As [`condition`](Functions::condition), for what may take long: each operator
    /// that is told to ask it runs where it holds up nothing else.
    pub fn condition_blocking<T: Body>(
        &mut self,
        name: &str,
        holds: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Parameter {
        self.add_blocking(name, Function::Condition(asking(holds)))
    }

    /// Registers what computes a condition, a number or a key of whole events,
    /// or says why it cannot: by a [`Reason`], or by a text ([`Failed::new`]).
    pub fn value_of_event<V: Into<Value>, E: Into<Failed>>(
        &mut self,
        name: &str,
        compute: impl Fn(&Event) -> Result<V, E> + Send + Sync + 'static,
    ) -> Parameter {
        let compute = move |event: &Event| compute(event).map(Into::into).map_err(Into::into);
        self.add(name, Function::Value(Arc::new(compute)))
    }

    /// As [`value_of_event`](Functions::value_of_event), for what may take long.
    pub fn value_of_event_blocking<V: Into<Value>, E: Into<Failed>>(
        &mut self,
        name: &str,
        compute: impl Fn(&Event) -> Result<V, E> + Send + Sync + 'static,
    ) -> Parameter {
        let compute = move |event: &Event| compute(event).map(Into::into).map_err(Into::into);
        self.add_blocking(name, Function::Value(Arc::new(compute)))
    }

    /// Registers what makes bodies of another type. Time and failure stay;
    /// accuracy is forgotten, as the function may change the unit. Events of
    /// another type are dropped by [`Reason::Type`].
    pub fn transform<T: Body, U: Body>(
        &mut self,
        name: &str,
        compute: impl Fn(&T) -> U + Send + Sync + 'static,
    ) -> Parameter {
        self.add(name, Function::Transform(transforming(compute)))
    }

    /// As [`transform`](Functions::transform), for what may take long: it runs
    /// where it holds up nothing else.
    pub fn transform_blocking<T: Body, U: Body>(
        &mut self,
        name: &str,
        compute: impl Fn(&T) -> U + Send + Sync + 'static,
    ) -> Parameter {
        self.add_blocking(name, Function::Transform(transforming(compute)))
    }

    /// Registers what publishes any number of events for one.
    pub fn transform_event(
        &mut self,
        name: &str,
        run: impl Fn(&Event, &mut Output<'_>) -> Fate + Send + Sync + 'static,
    ) -> Parameter {
        self.tries_to_transform_event(name, move |event, out| Ok(run(event, out)))
    }

    /// As [`transform_event`](Functions::transform_event), for what may take long.
    pub fn transform_event_blocking(
        &mut self,
        name: &str,
        run: impl Fn(&Event, &mut Output<'_>) -> Fate + Send + Sync + 'static,
    ) -> Parameter {
        self.tries_to_transform_event_blocking(name, move |event, out| Ok(run(event, out)))
    }

    /// As [`transform_event`](Functions::transform_event), for what may fail and say why.
    pub fn tries_to_transform_event(
        &mut self,
        name: &str,
        run: impl Fn(&Event, &mut Output<'_>) -> Result<Fate, Failed> + Send + Sync + 'static,
    ) -> Parameter {
        self.add(name, Function::Transform(Arc::new(run)))
    }

    /// As [`tries_to_transform_event`](Functions::tries_to_transform_event), for what may
    /// take long.
    pub fn tries_to_transform_event_blocking(
        &mut self,
        name: &str,
        run: impl Fn(&Event, &mut Output<'_>) -> Result<Fate, Failed> + Send + Sync + 'static,
    ) -> Parameter {
        self.add_blocking(name, Function::Transform(Arc::new(run)))
    }

    /// A name for a function that has none: no text can say it, and no other
    /// function gets it.
    pub fn unnamed(&mut self) -> String {
        self.unnamed += 1;
        format!("#{}", self.unnamed)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.known.get(name).map(|known| &known.function)
    }

    /// Whether a parameter names a function that may take long.
    pub(crate) fn block(&self, parameter: &Parameter) -> bool {
        match parameter {
            Parameter::Function(name) => self.known.get(name).is_some_and(|known| known.blocks),
            Parameter::List(parts) | Parameter::Call(_, parts) => {
                parts.iter().any(|part| self.block(part))
            }
            _ => false,
        }
    }

    /// The names that texts may say.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.known.keys().map(|name| &**name);
        names.filter(|name| !name.starts_with('#'))
    }

    fn add(&mut self, name: &str, function: Function) -> Parameter {
        self.register(name, function, false)
    }

    fn add_blocking(&mut self, name: &str, function: Function) -> Parameter {
        self.register(name, function, true)
    }

    fn register(&mut self, name: &str, function: Function, blocks: bool) -> Parameter {
        let name: Arc<str> = name.into();
        let registered = Registered { function, blocks };
        self.known.insert(Arc::clone(&name), registered);
        Parameter::Function(name)
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

fn typed<T: Body, V: Into<Value>>(
    compute: impl Fn(&T) -> V + Send + Sync + 'static,
) -> ValueFunction {
    let kind = Kind::<T>::new();
    Arc::new(move |event| Ok(with_body(kind, event, &compute)?.into()))
}

fn asking<T: Body>(holds: impl Fn(&T) -> bool + Send + Sync + 'static) -> ConditionFunction {
    let kind = Kind::<T>::new();
    Arc::new(move |event| with_body(kind, event, &holds))
}

fn transforming<T: Body, U: Body>(
    compute: impl Fn(&T) -> U + Send + Sync + 'static,
) -> TransformFunction {
    let (from, to) = (Kind::<T>::new(), Kind::<U>::new());
    Arc::new(move |event, out| {
        let body = with_body(from, event, &compute)?;
        out.emit_kind(to, event.time(), carried(event, false), body);
        Ok(Fate::Used)
    })
}

/// Calls a function with the body of its type, or of one that extends it. A body
/// without a type, as it came from another host or a snapshot, becomes one of that
/// type if it can.
#[inline]
fn with_body<T: Body, R>(
    kind: Kind<T>,
    event: &Event,
    call: impl Fn(&T) -> R,
) -> Result<R, Reason> {
    if let Some(body) = event.get::<T>() {
        return Ok(call(body));
    }
    event.get::<Value>().ok_or(Reason::Type)?;
    // What it may say was seen to when it came.
    let adopted = kind.adopt(event, Rights::ALL).map_err(|_| Reason::Type)?;
    adopted.get::<T>().map(call).ok_or(Reason::Type)
}
