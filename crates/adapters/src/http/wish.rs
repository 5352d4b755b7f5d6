//! What a subscriber asks for: which events, how delivered, in which mode.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::http::StatusCode;
use milieu_diagnostics::Source;
use milieu_stream::language::Language;
use milieu_stream::names::{self, Query, Scope};
use milieu_stream::{Delivery, Flow, Subscriber};
use milieu_transfer::{Mode, Rights};

use super::access::Access;
use super::refused::Refused;
use super::server::Server;

/// What the address of a request says.
#[derive(serde::Deserialize)]
pub(super) struct Asked {
    /// A pipeline, perhaps with `| subscribe …` at its end.
    flow: String,
    /// The name of a transfer mode.
    mode: Option<String>,
    /// For [`latest`](super::answer::latest): how many seconds to wait for one.
    pub wait: Option<f64>,
}

/// What a subscriber gets.
pub(super) struct Wish {
    pub flow: Flow,
    delivery: Delivery,
    pub mode: Arc<dyn Mode>,
    /// Whether private fields are among what is sent.
    pub rights: Rights,
    /// With what rights names are read.
    pub reads: names::Rights,
}

impl Wish {
    pub fn read(server: &Server, access: &Access, asked: &Asked) -> Result<Wish, Refused> {
        let source = Source::new("flow", asked.flow.as_str());
        let subscription = Language::Pipeline.subscription(&source, server.streams.catalogue());
        let subscription = subscription.map_err(|found| {
            let messages = found.iter().map(|one| one.message.as_str());
            Refused::bad("flow", messages.collect::<Vec<_>>().join("; "))
        })?;
        let mode = asked.mode.as_deref().or(subscription.mode.as_deref());
        let (rights, reads) = check(server, access, &subscription.flow)?;
        Ok(Wish {
            rights,
            reads,
            flow: subscription.flow,
            delivery: bounded(subscription.delivery, server.settings.bounds.queue_events),
            mode: server.mode(mode)?,
        })
    }

    /// Subscribes, with the rights of whoever asks.
    pub fn subscribe(&self, server: &Server) -> Result<Subscriber, Refused> {
        self.subscribe_by(server, self.delivery)
    }

    /// Subscribes to the latest event alone.
    pub fn subscribe_to_latest(&self, server: &Server) -> Result<Subscriber, Refused> {
        self.subscribe_by(server, Delivery::Latest)
    }

    fn subscribe_by(&self, server: &Server, delivery: Delivery) -> Result<Subscriber, Refused> {
        let (_, reader) = server.presses.reader(&server.streams, &self.reads);
        let subscriber = reader.subscribe(&self.flow, delivery);
        subscriber.map_err(|error| Refused::bad("flow", error.message))
    }
}

/// Looks at every name of a flow. The answer is what the subscriber may read of
/// private fields, all or nothing, and the names that it reads with that.
fn check(
    server: &Server,
    access: &Access,
    flow: &Flow,
) -> Result<(Rights, names::Rights), Refused> {
    let mut operators = 0;
    flow.visit(&mut |_| operators += 1);
    let most = server.settings.bounds.operators;
    if operators > most {
        let message = format!("the flow has {operators} names and operators; {most} are allowed");
        return Err(Refused::bad("flow", message));
    }
    let private = read_privately(&access.rights);
    let mut may_read_private = true;
    for name in names_of(flow) {
        let query = Query::parse(&name)?;
        access.rights.read.check(&query)?;
        may_read_private &= private.read.covers(&query);
    }
    Ok(match may_read_private {
        true => (Rights::READ, private),
        false => (Rights::NONE, access.rights.clone()),
    })
}

/// The rights of whoever is shown private fields. A name may be bound to others,
/// now or later, and of these too it reads only those whose private fields it may
/// see.
fn read_privately(rights: &names::Rights) -> names::Rights {
    let both = |these: &Scope, those: &Scope| -> Vec<Query> {
        let these = these.queries().iter();
        these.filter(|query| those.covers(query)).cloned().collect()
    };
    let mut queries = both(&rights.read, &rights.private);
    queries.extend(both(&rights.private, &rights.read));
    names::Rights {
        read: Scope::new(queries).unwrap_or_else(|_| Scope::none()),
        ..rights.clone()
    }
}

/// The names that a flow reads, and queries for names.
fn names_of(flow: &Flow) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    flow.visit(&mut |flow| {
        if let Flow::Stream(name) = flow {
            names.push(Arc::clone(name));
        }
    });
    names
}

/// A queue as it was asked for, but no longer than this. What would hold up
/// publishers drops instead: a foreign subscriber never slows others.
fn bounded(delivery: Delivery, most: u32) -> Delivery {
    use milieu_stream::Overflow;
    match delivery {
        Delivery::Latest => Delivery::Latest,
        Delivery::Every { capacity, overflow } => Delivery::Every {
            capacity: capacity.min(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN)),
            overflow: match overflow {
                Overflow::Refuse => Overflow::DropOldest,
                other => other,
            },
        },
    }
}

impl Server {
    /// The mode of this name, or the first.
    pub fn mode(&self, name: Option<&str>) -> Result<Arc<dyn Mode>, Refused> {
        let modes = &self.settings.modes;
        let mut fitting = modes
            .iter()
            .filter(|mode| name.is_none_or(|name| mode.name() == name));
        fitting.next().cloned().ok_or_else(|| {
            let known: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
            let message = format!("there is no such mode; there is {}", known.join(", "));
            Refused::new(StatusCode::NOT_ACCEPTABLE, "mode", message)
        })
    }
}
