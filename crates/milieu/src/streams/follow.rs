//! From contexts to streams: names that depend on layers follow them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use milieu_context::{Context, Environment, Policy, Registration};
use milieu_stream::names::{LayerValues, Query, Rights};
use milieu_stream::{Delivery, Flow, Listening, Reader, Subscriber};
use milieu_transfer::Event;

use super::{of_flow, queries};
use crate::{Error, Milieu};

/// The layers that streams follow: each switch of one is passed on.
#[derive(Default)]
pub(crate) struct Followed(Mutex<HashMap<String, [Registration; 2]>>);

impl Followed {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, [Registration; 2]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Milieu {
    /// Lets streams follow a layer: names with its placeholder stand for others
    /// when it is switched globally. Flows say themselves which layers they
    /// depend on; this is for bindings that do.
    ///
    /// # Errors
    /// If the layers of this program are closed to new contexts.
    pub fn follow(&self, layer: &str) -> Result<(), Error> {
        let mut followed = self.kept.followed.lock();
        if followed.contains_key(layer) {
            return Ok(());
        }
        let streams = self.streams().clone();
        // Of two switches at a time the actions may run in any order, so that
        // what counts is what is so, and not what was switched.
        let cx: Context<super::act::Nothing> = self.coordinator().context()?;
        let cx = Mutex::new(cx);
        let id = layer.to_owned();
        let pass_on = move || {
            let mut cx = cx.lock().unwrap_or_else(PoisonError::into_inner);
            // A thread-based layer that fails is inactive here, and the switch is passed on.
            let synchronized = catch_unwind(AssertUnwindSafe(|| cx.sync()));
            let value = cx.layer_named(&id).unwrap_or_default();
            streams.set_layer(&id, &value);
            if let Err(failed) = synchronized {
                resume_unwind(failed);
            }
        };
        pass_on();
        let registrations = self.coordinator().on_switch(layer, move |_| pass_on());
        followed.insert(layer.to_owned(), registrations);
        Ok(())
    }

    pub(super) fn follow_layers_of(&self, flow: &Flow) -> Result<(), Error> {
        for query in queries(flow) {
            for layer in query.layers() {
                self.follow(layer)?;
            }
        }
        Ok(())
    }

    /// Binds a name to others, which may follow layers: `/here` to
    /// `/labs/%room%/devices`.
    ///
    /// # Errors
    /// If a text is no name, or the name would stand for itself.
    pub fn bind<'a>(
        &self,
        name: &str,
        targets: impl IntoIterator<Item = &'a str>,
    ) -> Result<milieu_stream::Named, Error> {
        let targets: Result<Vec<Query>, _> = targets.into_iter().map(Query::parse).collect();
        let targets = targets.map_err(super::of_naming)?;
        for layer in targets.iter().flat_map(Query::layers) {
            self.follow(layer)?;
        }
        let binding = milieu_stream::names::Binding::new(targets).map_err(super::of_naming)?;
        self.streams().bind(name, binding).map_err(super::of_naming)
    }

    /// A reader of streams under the layers of a context, those that only it has
    /// entered included.
    pub fn reader<E: Environment, P: Policy>(&self, cx: &Context<E, P>) -> ContextReader {
        ContextReader(self.streams().reader(layers_of(cx), Rights::all()))
    }
}

fn layers_of<E: Environment, P: Policy>(cx: &Context<E, P>) -> LayerValues {
    cx.layers().into_iter().collect()
}

/// Subscribes under the layers of a context.
pub struct ContextReader(Reader);

impl ContextReader {
    /// The layers of the context have other values now, as it was synchronized,
    /// or entered a layer or left it. Subscriptions to names that depend on them
    /// get their inputs changed in one step: they lose and double no event of
    /// those that stay.
    pub fn follow<E: Environment, P: Policy>(&self, cx: &Context<E, P>) {
        self.0.set_layers(layers_of(cx));
    }

    /// Subscribes by a queue.
    ///
    /// # Errors
    /// If an operator refuses its parameters.
    pub fn subscribe(&self, flow: &Flow, delivery: Delivery) -> Result<Subscriber, Error> {
        self.0
            .subscribe(flow, delivery)
            .map_err(|wrong| of_flow(&wrong))
    }

    /// Subscribes by a callback.
    ///
    /// # Errors
    /// If an operator refuses its parameters.
    pub fn listen(
        &self,
        flow: &Flow,
        callback: impl FnMut(&Event) + Send + 'static,
    ) -> Result<Listening, Error> {
        self.0
            .listen(flow, callback)
            .map_err(|wrong| of_flow(&wrong))
    }
}
