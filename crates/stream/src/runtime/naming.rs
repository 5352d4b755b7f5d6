//! The naming tree of a process: publications, services, bindings, watches, and
//! readers with layers of their own.

use std::fmt;
use std::sync::{Arc, OnceLock};

use milieu_diagnostics::Diagnostic;
use milieu_transfer::Time;

use super::Streams;
use super::subscriber::{Listening, Subscriber};
use crate::flow::Flow;
use crate::graph::{Machine, Planned, PublicationId, ReaderId};
use crate::names::{
    Binding, Change, DriveId, Entry, LayerValues, Member, Query, Refusal, Rights, Service, WatchId,
};
use crate::operator::Now;
use crate::subscription::Delivery;

/// Why the naming tree was not changed.
#[derive(Debug)]
pub enum CannotName {
    /// The tree refuses it.
    Refused(Refusal),
    /// The flow cannot be run.
    Flow(Diagnostic),
    /// It was asked from within a callback or an operator, where nobody can wait
    /// for an answer.
    Inside,
}

impl fmt::Display for CannotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotName::Refused(refusal) => refusal.fmt(f),
            CannotName::Flow(diagnostic) => f.write_str(&diagnostic.message),
            CannotName::Inside => f.write_str(
                "the naming tree was to be changed from within a callback; \
                 do it in the thread that takes events from a queue",
            ),
        }
    }
}

impl std::error::Error for CannotName {}

/// What a program has put at a name: a flow, a service, a binding. It goes when
/// this is dropped.
#[must_use = "what was put at the name goes when this is dropped"]
pub struct Named {
    streams: Streams,
    name: Arc<str>,
    publication: Option<PublicationId>,
}

/// Keeps names watched; the watch ends when this is dropped.
#[must_use = "the watch ends when this is dropped"]
pub struct Watching {
    streams: Streams,
    id: WatchId,
}

/// That a flow drives a layer, until this is dropped.
#[must_use = "the flow no longer drives the layer when this is dropped"]
pub struct Drives {
    streams: Streams,
    ids: Vec<DriveId>,
}

impl Drop for Drives {
    fn drop(&mut self) {
        let ids = std::mem::take(&mut self.ids);
        self.streams
            .order(move |machine, _| ids.into_iter().for_each(|id| machine.undrive(id)));
    }
}

/// Subscribes under layers and with rights of its own.
///
/// Its subscriptions keep what they have when this is dropped, and follow its
/// layers no longer.
pub struct Reader {
    pub(super) streams: Streams,
    pub(super) id: Arc<OnceLock<ReaderId>>,
}

impl Streams {
    /// Publishes what a flow makes under a name.
    ///
    /// # Errors
    /// If the flow cannot be run or reads the name itself, or something stands
    /// at the name.
    pub fn publish(&self, name: &str, flow: &Flow) -> Result<Named, CannotName> {
        let planned = Planned::new(flow, self.catalogue()).map_err(CannotName::Flow)?;
        let at: Arc<str> = name.into();
        let publication = self.change({
            let name = Arc::clone(&at);
            move |machine, now| machine.publish_flow(now, &name, planned)
        })?;
        Ok(self.named(at, Some(publication)))
    }

    /// Binds a name to others: to one, to a set, or to what follows a layer.
    /// Binding it again changes the set in one step: subscriptions lose and
    /// double no event of those that stay.
    ///
    /// # Errors
    /// If the name would stand for itself, or a publisher has it.
    pub fn bind(&self, name: &str, binding: Binding) -> Result<Named, CannotName> {
        self.put(name, Entry::from(binding))
    }

    /// Puts a service at a name until its lease ends; putting it again renews
    /// the lease.
    ///
    /// # Errors
    /// If it is no name, or a publisher has it.
    pub fn serve(&self, name: &str, service: Service) -> Result<Named, CannotName> {
        self.put(name, Entry::from(service))
    }

    fn put(&self, name: &str, entry: Entry) -> Result<Named, CannotName> {
        let at: Arc<str> = name.into();
        let name = Arc::clone(&at);
        self.change(move |machine, now| machine.put(now, &name, entry))?;
        Ok(self.named(at, None))
    }

    fn named(&self, name: Arc<str>, publication: Option<PublicationId>) -> Named {
        Named {
            streams: self.clone(),
            name,
            publication,
        }
    }

    /// What stands at the names of a query. Nothing where it is asked from
    /// within a callback.
    #[must_use]
    pub fn list(&self, query: Query, rights: Rights) -> Option<Vec<Member>> {
        self.ask(move |machine, _| machine.list(&query, &rights))
    }

    /// Watches names: the callback is told what is there, and then what changes.
    /// It runs as callbacks of [`listen`](Streams::listen) do.
    ///
    /// # Errors
    /// If nothing that the query means may be read.
    pub fn watch(
        &self,
        query: Query,
        rights: Rights,
        callback: impl FnMut(&[Change]) + Send + 'static,
    ) -> Result<Watching, CannotName> {
        let id = self.change(move |machine, now| machine.watch(now, query, rights, callback))?;
        Ok(Watching {
            streams: self.clone(),
            id,
        })
    }

    /// The layers that are active globally have these values now. Subscriptions
    /// to names that depend on them get their inputs changed in one step.
    pub fn set_layers(&self, layers: LayerValues) {
        self.order(move |machine, now| machine.set_layers(now, ReaderId::GLOBAL, layers));
    }

    /// Activates one layer globally, or deactivates it with an empty value.
    pub fn set_layer(&self, layer: &str, value: &str) {
        let (layer, value): (Box<str>, Box<str>) = (layer.into(), value.into());
        self.order(move |machine, now| {
            let mut layers = machine
                .layers(ReaderId::GLOBAL)
                .cloned()
                .unwrap_or_default();
            layers.set(&layer, &value);
            machine.set_layers(now, ReaderId::GLOBAL, layers);
        });
    }

    /// A reader with layers and rights of its own.
    #[must_use]
    pub fn reader(&self, layers: LayerValues, rights: Rights) -> Reader {
        let id = Arc::new(OnceLock::new());
        let made = Arc::clone(&id);
        self.order(move |machine, _| _ = made.set(machine.add_reader(layers, rights)));
        Reader {
            streams: self.clone(),
            id,
        }
    }

    /// Takes note that a flow drives a layer.
    ///
    /// # Errors
    /// If a name that the flow reads depends on the layer, directly or through
    /// bindings; a binding that would make it so later is refused.
    pub fn drives(&self, layer: &str, flow: &Flow) -> Result<Drives, CannotName> {
        let mut queries = Vec::new();
        let mut wrong = None;
        flow.visit(&mut |flow| {
            if let Flow::Stream(name) = flow {
                match Query::parse(name) {
                    Ok(query) => queries.push(query),
                    Err(refusal) => wrong = Some(refusal),
                }
            }
        });
        if let Some(refusal) = wrong {
            return Err(CannotName::Refused(refusal));
        }
        let layer: Box<str> = layer.into();
        let ids = self.change(move |machine, _| {
            let mut ids = Vec::new();
            for query in queries {
                match machine.drive(&layer, query) {
                    Ok(id) => ids.push(id),
                    Err(refusal) => {
                        ids.into_iter().for_each(|id| machine.undrive(id));
                        return Err(refusal);
                    }
                }
            }
            Ok(ids)
        })?;
        Ok(Drives {
            streams: self.clone(),
            ids,
        })
    }

    pub(super) fn change<R: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Machine, &Now<'_>) -> Result<R, Refusal> + Send + 'static,
    ) -> Result<R, CannotName> {
        let changed = self.ask(change).ok_or(CannotName::Inside)?;
        changed.map_err(CannotName::Refused)
    }
}

impl Named {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Renews the lease of a service.
    ///
    /// # Errors
    /// If the lease has ended, or it is no service.
    pub fn renew(&self, until: Time) -> Result<(), CannotName> {
        let name = Arc::clone(&self.name);
        self.streams
            .change(move |machine, now| machine.renew(now, &name, until))
    }

    /// Binds the name to others, in the place of those that it stood for.
    ///
    /// # Errors
    /// As [`bind`](Streams::bind).
    pub fn rebind(&self, binding: Binding) -> Result<(), CannotName> {
        let name = Arc::clone(&self.name);
        self.streams
            .change(move |machine, now| machine.put(now, &name, binding))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let (name, publication) = (Arc::clone(&self.name), self.publication);
        self.streams.order(move |machine, now| match publication {
            Some(publication) => machine.unpublish(now, publication),
            None => drop(machine.remove(now, &name)),
        });
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let id = self.id;
        self.streams.order(move |machine, _| machine.unwatch(id));
    }
}

impl Reader {
    /// As [`Streams::subscribe`], under the layers and with the rights of this
    /// reader.
    ///
    /// # Errors
    /// As there.
    pub fn subscribe(&self, flow: &Flow, delivery: Delivery) -> Result<Subscriber, Diagnostic> {
        self.streams.subscribe_as(&self.id, flow, delivery)
    }

    /// As [`Streams::listen`], under the layers and with the rights of this
    /// reader.
    ///
    /// # Errors
    /// As there.
    pub fn listen(
        &self,
        flow: &Flow,
        callback: impl FnMut(&milieu_transfer::Event) + Send + 'static,
    ) -> Result<Listening, Diagnostic> {
        self.streams.attach(&self.id, flow, Box::new(callback))
    }

    /// The layers have these values now. Its subscriptions to names that depend
    /// on them get their inputs changed in one step.
    pub fn set_layers(&self, layers: LayerValues) {
        let id = Arc::clone(&self.id);
        self.streams.order(move |machine, now| {
            if let Some(id) = id.get() {
                machine.set_layers(now, *id, layers);
            }
        });
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let id = Arc::clone(&self.id);
        self.streams.order(move |machine, _| {
            if let Some(id) = id.get() {
                machine.remove_reader(*id);
            }
        });
    }
}
