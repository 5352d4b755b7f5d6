//! Names that follow a flow: the program's part, which reads names out of events and
//! ends it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use milieu_transfer::{Event, Rights, Value};

use super::naming::CannotName;
use super::subscriber::global;
use super::{Reader, Streams};
use crate::flow::Flow;
use crate::graph::{Following, Planned, ReaderId};

/// A name that stands for the names that the last event of a flow says. It goes
/// when this is dropped.
#[must_use = "the name stands for nothing when this is dropped"]
pub struct Bound {
    streams: Streams,
    name: Arc<str>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    following: OnceLock<Following>,
    fault: Mutex<Option<Arc<str>>>,
}

impl Streams {
    /// Lets a name stand for the names that each event of a flow says, until the
    /// next one: its body is a name, a list of them, or has the field `members`,
    /// as events of the operator `members` have. Who stays among them loses and
    /// doubles no event.
    ///
    /// # Errors
    /// If the flow cannot be run or reads the name itself, or something stands
    /// at the name.
    pub fn bind_flow(&self, name: &str, flow: &Flow) -> Result<Bound, CannotName> {
        self.bind_flow_as(&global(), name, flow)
    }

    fn bind_flow_as(
        &self,
        reader: &Arc<OnceLock<ReaderId>>,
        name: &str,
        flow: &Flow,
    ) -> Result<Bound, CannotName> {
        let planned = Planned::new(flow, self.catalogue()).map_err(CannotName::Flow)?;
        let name: Arc<str> = name.into();
        let state = Arc::<State>::default();
        let receiver = {
            let (streams, state) = (Arc::downgrade(&self.0), Arc::clone(&state));
            move |event: &Event| {
                let names = names(&event.value(Rights::ALL).unwrap_or_default());
                let state = Arc::clone(&state);
                // The tree changes when nothing runs through the graph.
                if let Some(streams) = streams.upgrade() {
                    Streams(streams).order(move |machine, now| {
                        let Some(following) = state.following.get() else {
                            return;
                        };
                        let bound = machine.rebind(now, following, &names);
                        let fault = bound.err().map(|refusal| refusal.to_string().into());
                        *state.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
                    });
                }
            }
        };
        let application = Arc::clone(&self.0.origin.0);
        self.change({
            let (reader, at, state) = (Arc::clone(reader), Arc::clone(&name), Arc::clone(&state));
            move |machine, now| {
                let reader = reader.get().copied().unwrap_or(ReaderId::GLOBAL);
                let following = machine.bind_flow(
                    now,
                    &at,
                    planned,
                    reader,
                    application,
                    Box::new(receiver),
                )?;
                let _ = state.following.set(following);
                Ok(())
            }
        })?;
        Ok(Bound {
            streams: self.clone(),
            name,
            state,
        })
    }
}

impl Reader {
    /// As [`Streams::bind_flow`], under the layers and with the rights of this
    /// reader: the name never stands for what it may not read itself.
    ///
    /// # Errors
    /// As there, and if it may not publish under the name.
    pub fn bind_flow(&self, name: &str, flow: &Flow) -> Result<Bound, CannotName> {
        self.streams.bind_flow_as(&self.id, name, flow)
    }
}

/// The names that a body says.
fn names(body: &Value) -> Vec<Arc<str>> {
    match body {
        Value::Text(name) => vec![Arc::clone(name)],
        Value::List(items) => items.iter().flat_map(names).collect(),
        Value::Map(_) => body.field("members").map(names).unwrap_or_default(),
        _ => Vec::new(),
    }
}

impl Bound {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong with the names that were said last, if anything is. Those
    /// that nothing is wrong with hold all the same.
    #[must_use]
    pub fn fault(&self) -> Option<Arc<str>> {
        let fault = self.state.fault.lock();
        fault.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let state = Arc::clone(&self.state);
        self.streams.order(move |machine, now| {
            if let Some(following) = state.following.get() {
                machine.unbind(now, following);
            }
        });
    }
}
