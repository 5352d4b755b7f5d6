//! From streams to contexts: events switch layers and assign contextual values.
//!
//! An action, a thread-based layer or a function of the program that fails ends
//! no flow: the event is counted as one that could not act, and the next one acts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use milieu_context::{Context, Coordinator, Environment as _, Layer, Named, Value, waiting};
use milieu_keys::{Pattern, SourceOf};
use milieu_macros::Environment;
use milieu_stream::{Drives, Flow, Listening, Parameter};
use milieu_transfer::{Event, Span};

use super::{Stream, of_naming};
use crate::Error;

/// No values: a context that only switches layers.
#[derive(Debug, Environment)]
#[environment(crate = crate)]
pub(super) struct Nothing {}

/// A flow that acts on the context, until this is dropped.
#[must_use = "the flow no longer acts when this is dropped"]
pub struct Acting {
    _listening: Listening,
    ending: Option<Listening>,
    _drives: Option<Drives>,
    troubles: Arc<Troubles>,
}

/// Events that could not act, as actions of the program fail or refuse a cycle,
/// or a value breaks the rules of its key.
#[derive(Default)]
struct Troubles {
    count: AtomicU64,
    last: Mutex<Option<String>>,
}

impl Acting {
    /// How many events could not act, and why the last of them could not. An
    /// event counts as well whose switch stands, but ran something that failed.
    #[must_use]
    pub fn troubles(&self) -> (u64, Option<String>) {
        let last = locked(&self.troubles.last).clone();
        (self.troubles.count.load(Ordering::Relaxed), last)
    }
}

impl Troubles {
    fn note<T>(&self, result: Result<T, impl std::fmt::Display>) {
        if let Err(error) = result {
            self.count.fetch_add(1, Ordering::Relaxed);
            *locked(&self.last) = Some(error.to_string());
        }
    }
}

/// Switches a layer as events say.
pub(super) struct Switch {
    cx: Context<Nothing>,
    id: Box<str>,
    /// Whether the last event activated it.
    is_on: bool,
}

impl Switch {
    pub fn new(coordinator: &Coordinator, id: &str) -> Result<Switch, Error> {
        Ok(Switch {
            cx: coordinator.context()?,
            id: id.into(),
            is_on: false,
        })
    }

    /// Activates the layer with this value, or deactivates it. If an action
    /// fails, the switch stands.
    pub fn to(&mut self, value: Option<&str>) -> Result<(), Error> {
        // A layer that fails in what others have done keeps nobody from switching.
        let synchronized = caught(|| self.cx.sync());
        let switched = caught(|| match value {
            Some(value) => self.cx.activate(Named(&self.id, value)),
            None => self.cx.deactivate_named(&self.id),
        });
        match switched {
            Ok(switched) => {
                switched?;
                self.is_on = value.is_some();
                synchronized
            }
            Err(failed) => {
                self.is_on = self.cx.layer_named(&self.id).is_some();
                Err(failed)
            }
        }
    }

    /// Deactivates what an event has activated; what has ended since, somebody
    /// else may have activated.
    fn end(&mut self) -> Result<(), Error> {
        match self.is_on {
            true => self.to(None),
            false => Ok(()),
        }
    }
}

/// Does what runs code of the program: actions, thread-based layers, functions.
/// That one of them has failed is an error, by which nothing unwinds.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    // What waits already is of another call.
    let outer = waiting(None);
    let done = catch_unwind(AssertUnwindSafe(work));
    match (done, waiting(outer)) {
        (Ok(done), None) => Ok(done),
        (Err(failed), _) | (_, Some(failed)) => Err(Error::Flow(why(&*failed))),
    }
}

/// What is said of a failure: an error speaks for itself, and anything else is a panic.
#[cold]
fn why(failed: &(dyn Any + Send)) -> String {
    type Told = Box<dyn std::error::Error + Send + Sync>;
    if let Some(error) = failed.downcast_ref::<Told>() {
        return error.to_string();
    }
    let text = failed.downcast_ref::<&str>().copied();
    match text.or_else(|| failed.downcast_ref::<String>().map(String::as_str)) {
        Some(text) => format!("it panicked: {text}"),
        None => "it panicked without a text".to_owned(),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of a layer.
fn text<L: Layer>(layer: L) -> String {
    layer.value().into_owned()
}

/// How long a layer stays active after the last event that activated it, and
/// which events do.
pub(super) struct Lasting {
    pub span: Span,
    /// Where nothing is said every event activates the layer or deactivates it.
    pub condition: Option<Parameter>,
}

impl Lasting {
    /// What publishes the last event that activated when it is so long ago.
    fn ends(&self, stream: &Stream<'_>) -> Flow {
        let catalogue = stream.milieu.streams().catalogue();
        let then = |flow: Flow, operator: &str, name: &str, value: Parameter| {
            let operator = catalogue.get(operator).expect("it is one of Milieu's");
            catalogue.operation(operator, vec![(name.into(), value)], vec![flow])
        };
        let flow = stream.flow.clone();
        let flow = match &self.condition {
            Some(condition) => then(flow, "filter", "condition", condition.clone()),
            None => flow,
        };
        then(flow, "debounce", "span", Parameter::Span(self.span))
    }
}

impl Stream<'_> {
    /// Each event activates a layer for every thread, with the value that it is
    /// given, or deactivates it where the function gives nothing. Contexts see
    /// it at their next synchronization; actions of the layer run in the thread
    /// that published the event.
    ///
    /// # Errors
    /// If a name that the flow reads depends on the layer: what it drives would
    /// drive it.
    pub fn activates<L: Layer>(
        &self,
        mut layer: impl FnMut(&Event) -> Option<L> + Send + 'static,
    ) -> Result<Acting, Error> {
        let switch = Switch::new(self.milieu.coordinator(), L::ID)?;
        self.switches(switch, None, move |event| Ok(layer(event).map(text)))
    }

    /// As [`activates`](Stream::activates), and the layer ends by itself so long
    /// after the last event, if that activated it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use milieu::{Milieu, layer};
    /// # layer! { /// Somebody is here.
    /// # pub struct Present = "present"; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let milieu = Milieu::open("hello-motion")?;
    /// let motion = milieu.flow("/hall/motion")?;
    /// let _acting = motion.activates_for(Duration::from_secs(300), |_| Some(Present))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is the clock of the streams that counts. In real time
    /// [`Milieu::driving`](crate::Milieu::driving) has to run for it.
    ///
    /// # Errors
    /// As there.
    pub fn activates_for<L: Layer>(
        &self,
        span: Duration,
        mut layer: impl FnMut(&Event) -> Option<L> + Send + 'static,
    ) -> Result<Acting, Error> {
        let switch = Switch::new(self.milieu.coordinator(), L::ID)?;
        let lasting = Lasting {
            span: span.into(),
            condition: None,
        };
        self.switches(switch, Some(&lasting), move |event| {
            Ok(layer(event).map(text))
        })
    }

    /// As [`activates`](Stream::activates) and, with a span, as
    /// [`activates_for`](Stream::activates_for), of a layer by its identifier. An event
    /// with which the function fails changes nothing, and is a [trouble](Acting::troubles).
    ///
    /// # Errors
    /// As there.
    pub fn activates_named(
        &self,
        id: &str,
        span: Option<Duration>,
        value: impl FnMut(&Event) -> Result<Option<String>, Error> + Send + 'static,
    ) -> Result<Acting, Error> {
        let switch = Switch::new(self.milieu.coordinator(), id)?;
        let lasting = span.map(|span| Lasting {
            span: span.into(),
            condition: None,
        });
        self.switches(switch, lasting.as_ref(), value)
    }

    /// Switches a layer to what a function makes of each event.
    pub(super) fn switches(
        &self,
        switch: Switch,
        lasting: Option<&Lasting>,
        mut value: impl FnMut(&Event) -> Result<Option<String>, Error> + Send + 'static,
    ) -> Result<Acting, Error> {
        let id = switch.id.clone();
        // Callbacks run one at a time, so that neither waits for the other.
        let switch = Arc::new(Mutex::new(switch));
        let ending = Arc::clone(&switch);
        let mut acting = self.acts(Some(&id), move |event| {
            let value = value(event)?;
            locked(&switch).to(value.as_deref())
        })?;
        if let Some(lasting) = lasting {
            let troubles = Arc::clone(&acting.troubles);
            let ends = self.milieu.stream_of(lasting.ends(self))?;
            acting.ending = Some(ends.listen(move |_| troubles.note(locked(&ending).end()))?);
        }
        Ok(acting)
    }

    /// Each event assigns a contextual value by its marker: `at::sw::pi::level`.
    /// What the function gives nothing for leaves it as it is. It is not
    /// persisted: what a sensor says is no setting.
    ///
    /// # Errors
    /// If the name of the value is not one.
    pub fn assigns<V: Value>(
        &self,
        text: impl FnMut(&Event) -> Option<String> + Send + 'static,
    ) -> Result<Acting, Error> {
        self.assigns_to(V::Environment::VALUES[V::INDEX].pattern, text)
    }

    /// As [`assigns`](Stream::assigns), of a name. Its placeholders become the
    /// layers that are active globally at the time of the event.
    ///
    /// # Errors
    /// If it is no name.
    pub fn assigns_to(
        &self,
        name: &str,
        mut text: impl FnMut(&Event) -> Option<String> + Send + 'static,
    ) -> Result<Acting, Error> {
        self.tries_to_assign(name, move |event| Ok(text(event)))
    }

    /// As [`assigns_to`](Stream::assigns_to), with a function that may fail: that is a
    /// [trouble](Acting::troubles), and changes nothing.
    ///
    /// # Errors
    /// As there.
    pub fn tries_to_assign(
        &self,
        name: &str,
        mut text: impl FnMut(&Event) -> Result<Option<String>, Error> + Send + 'static,
    ) -> Result<Acting, Error> {
        let pattern = Pattern::parse(name)?;
        let coordinator = self.milieu.coordinator().clone();
        let mut cx: Context<Nothing> = coordinator.context()?;
        let source = SourceOf::Stream(self.label());
        let origin = milieu_keys::Origin::new(source);
        self.acts(None, move |event| {
            let Some(text) = text(event)? else {
                return Ok(());
            };
            // A thread-based layer that fails is inactive here, and the value is assigned.
            let synchronized = caught(|| cx.sync());
            let layers = cx.layers();
            let name = pattern.resolve(|id| {
                let mut layers = layers.iter();
                let layer = layers.find(|(layer, _)| **layer == *id);
                layer.map(|(_, value)| value.as_str())
            });
            coordinator.assign(name.as_str(), &text, Some(origin.clone()))?;
            synchronized
        })
    }

    /// What the flow is called where it is the origin of a value.
    fn label(&self) -> String {
        let names = super::queries(&self.flow);
        let names: Vec<&str> = names.iter().map(|query| query.as_str()).collect();
        names.join(", ")
    }

    pub(super) fn acts(
        &self,
        layer: Option<&str>,
        mut act: impl FnMut(&Event) -> Result<(), Error> + Send + 'static,
    ) -> Result<Acting, Error> {
        let streams = self.milieu.streams();
        let drives = layer
            .map(|layer| streams.drives(layer, &self.flow))
            .transpose();
        let drives = drives.map_err(of_naming)?;
        let troubles = Arc::new(Troubles::default());
        let noted = Arc::clone(&troubles);
        let listening =
            self.listen(move |event| noted.note(caught(|| act(event)).and_then(|done| done)))?;
        Ok(Acting {
            _listening: listening,
            ending: None,
            _drives: drives,
            troubles,
        })
    }
}

#[cfg(test)]
mod tests;
