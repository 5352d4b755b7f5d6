//! Machines that a hub joins, in one thread and a time that stands until it is
//! let pass.
#![allow(dead_code, reason = "each test uses some of it")]

use milieu_diagnostics::Source;
use milieu_stream::engine::{Hub, PeerId};
use milieu_stream::language::Language;
use milieu_stream::link::{Link, Terms};
use milieu_stream::names::{Entry, Query, Rights};
use milieu_stream::{Catalogue, Delivery, End, Flow, Streams, Subscriber, VirtualClock, operators};
use milieu_transfer::{Origin, Time};

pub struct Network {
    pub hub: Hub,
    clock: VirtualClock,
    machines: Vec<Machine>,
}

struct Machine {
    streams: Streams,
    link: Option<Link>,
    port: PeerId,
}

/// Which machine of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which(usize);

pub fn catalogue() -> Catalogue {
    operators::catalogue()
}

pub fn flow(text: &str) -> Flow {
    flow_of(text, &catalogue())
}

pub fn flow_of(text: &str, catalogue: &Catalogue) -> Flow {
    let source = Source {
        name: "flow".into(),
        text: text.into(),
    };
    let parsed = Language::Pipeline.parse(&source, catalogue);
    let document = parsed.unwrap_or_else(|wrong| panic!("{wrong:?}"));
    document.subscriptions[0].flow.clone()
}

impl Network {
    pub fn new(hub: Hub) -> Network {
        hub.advance(Time::from_seconds(0));
        Network {
            hub,
            clock: VirtualClock::new(Time::from_seconds(0)),
            machines: Vec::new(),
        }
    }

    pub fn machine(&mut self, name: &str) -> Which {
        self.machine_of(name, 1, Terms::open().typed::<i64>())
    }

    pub fn machine_of(&mut self, name: &str, incarnation: u64, terms: Terms) -> Which {
        let origin = Origin(name.into());
        let streams = Streams::new(catalogue(), self.clock.clone(), origin, incarnation);
        let port = self.hub.join(name);
        let id = port.id();
        let link = streams.join(port, terms);
        self.machines.push(Machine {
            streams,
            link: Some(link),
            port: id,
        });
        Which(self.machines.len() - 1)
    }

    pub fn streams(&self, which: Which) -> &Streams {
        &self.machines[which.0].streams
    }

    pub fn link(&self, which: Which) -> &Link {
        self.machines[which.0].link.as_ref().expect("it is joined")
    }

    pub fn port(&self, which: Which) -> PeerId {
        self.machines[which.0].port
    }

    /// As if its process had died.
    pub fn kill(&mut self, which: Which) {
        self.hub.kill(self.port(which));
        self.machines[which.0].link = None;
    }

    pub fn leave(&mut self, which: Which) {
        self.machines[which.0].link = None;
    }

    pub fn subscribe(&self, which: Which, name: &str) -> Subscriber {
        self.subscribe_to(which, &Flow::Stream(name.into()))
    }

    pub fn subscribe_to(&self, which: Which, flow: &Flow) -> Subscriber {
        let subscribed = self.streams(which).subscribe(flow, Delivery::default());
        subscribed.expect("a flow")
    }

    /// Polls all until nobody has anything to do at this time.
    pub fn settle(&self) {
        self.poll(&|_| true);
    }

    /// Polls all but one.
    pub fn settle_but(&self, slow: Which) {
        self.poll(&|which| which != slow);
    }

    fn poll(&self, may: &dyn Fn(Which) -> bool) {
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            for (index, machine) in self.machines.iter().enumerate() {
                if let Some(link) = machine.link.as_ref().filter(|_| may(Which(index))) {
                    is_busy |= link.poll();
                }
            }
        }
    }

    /// Lets time pass until then.
    pub fn pass(&self, until: Time) {
        self.settle();
        while let Some(due) = self.hub.due().filter(|due| *due <= until) {
            self.clock.set(due);
            self.hub.advance(due);
            self.settle();
        }
        self.clock.set(until);
        self.hub.advance(until);
    }

    /// The names that others have and a machine knows of, and its own.
    pub fn names(&self, which: Which) -> Vec<String> {
        let all = Query::parse("/**").expect("a query");
        let members = self.streams(which).list(all, Rights::all());
        let streams = members.expect("nothing runs").into_iter();
        streams
            .filter(|member| matches!(member.entry, Entry::Stream(_)))
            .map(|member| member.name.as_str().to_owned())
            .collect()
    }

    /// The sending ends of a name.
    pub fn out(&self, which: Which, name: &str) -> Vec<End> {
        let view = self.streams(which).view().expect("nothing runs");
        let links = view.ends.into_iter().filter(|link| &*link.name == name);
        let ends = links.map(|link| link.end);
        ends.filter(|end| matches!(end, End::Out { .. })).collect()
    }

    /// All books balance, on every machine.
    pub fn audit(&self) {
        for machine in &self.machines {
            let view = machine.streams.view().expect("nothing runs");
            if let Err(wrong) = view.audit() {
                panic!("{wrong}");
            }
            if let Some(ended) = machine.link.as_ref().and_then(Link::ended) {
                for end in ended {
                    assert_eq!(end.balance(), Ok(()), "{end:?}");
                }
            }
        }
    }
}
