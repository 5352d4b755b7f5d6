//! The machine: sharing, order, panics, books.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use milieu_keys::Name;
use milieu_stream::names::{Binding, LayerValues, Query, Rights, Scope, Service, Why};
use milieu_stream::{
    Arguments, Catalogue, Declared, Definition, Fate, Flow, Inputs, Kind, Machine, Now, Operator,
    Output, Parameter, Planned, ReaderId, Reason, SourceId, SubscriptionId,
};
use milieu_transfer::{Event, Header, Origin, Span, Stream, Time};

/// Passes numbers above a bound; panics at 666.
struct Above(i64);

impl Operator for Above {
    fn event(&mut self, _: usize, event: &Event, _: &mut Output<'_>) -> Fate {
        let value = *event.get::<i64>().expect("a number");
        assert!(value != 666, "the beast");
        match value > self.0 {
            true => Fate::Passed,
            false => Fate::Dropped(Reason::Filtered),
        }
    }
}

/// Publishes each number twice, the second time negated.
struct Twice;

impl Operator for Twice {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        let value = *event.get::<i64>().expect("a number");
        out.emit(event.time(), None, value);
        out.emit(event.time(), None, -value);
        Fate::Used
    }
}

/// Holds events for ten seconds.
struct Delay(Vec<(Time, Event)>);

impl Operator for Delay {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        self.0
            .push((out.now() + Span::from_seconds(10), event.clone()));
        Fate::Held
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        let ripe = self.0.partition_point(|(time, _)| *time <= out.now());
        for (_, event) in self.0.drain(..ripe) {
            out.pass(event);
        }
    }

    fn due(&self) -> Option<Time> {
        self.0.first().map(|(time, _)| *time)
    }

    fn held(&self) -> usize {
        self.0.len()
    }
}

/// Passes the events of all its inputs.
struct Merge;

impl Operator for Merge {
    fn event(&mut self, _: usize, _: &Event, _: &mut Output<'_>) -> Fate {
        Fate::Passed
    }
}

const BOUND: Declared = Declared {
    name: "bound",
    kind: Kind::Integer,
    positional: true,
    default: None,
    summary: "",
};

fn above(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, milieu_diagnostics::Diagnostic> {
    match arguments.given("bound") {
        Some(Parameter::Integer(bound)) => Ok(Box::new(Above(*bound))),
        _ => Err(milieu_diagnostics::Diagnostic::error(
            "`above` needs a bound",
        )),
    }
}

static DEFINITIONS: [Definition; 4] = [
    Definition {
        name: "above",
        summary: "",
        inputs: Inputs::One,
        parameters: &[BOUND],
        make: above,
    },
    Definition {
        name: "twice",
        summary: "",
        inputs: Inputs::One,
        parameters: &[],
        make: |_| Ok(Box::new(Twice)),
    },
    Definition {
        name: "delay",
        summary: "",
        inputs: Inputs::One,
        parameters: &[],
        make: |_| Ok(Box::new(Delay(Vec::new()))),
    },
    Definition {
        name: "merge",
        summary: "",
        inputs: Inputs::Unordered,
        parameters: &[],
        make: |_| Ok(Box::new(Merge)),
    },
];

fn stream(name: &str) -> Flow {
    Flow::Stream(name.into())
}

fn operation(operator: &str, inputs: Vec<Flow>) -> Flow {
    let catalogue = Catalogue::new(&DEFINITIONS);
    catalogue.operation(catalogue.get(operator).expect("known"), Vec::new(), inputs)
}

fn above_flow(bound: i64, input: Flow) -> Flow {
    let catalogue = Catalogue::new(&DEFINITIONS);
    let parameters = vec![("bound".into(), Parameter::Integer(bound))];
    catalogue.operation(
        catalogue.get("above").expect("known"),
        parameters,
        vec![input],
    )
}

type Heard = Arc<Mutex<Vec<i64>>>;

/// A machine, its clock, and what its subscribers have heard.
struct World {
    machine: Machine,
    seconds: RefCell<i64>,
    sequence: u64,
    /// Who subscribes.
    reader: ReaderId,
}

impl World {
    fn new() -> World {
        World {
            machine: Machine::new(Origin("here".into()), 1),
            seconds: RefCell::new(0),
            sequence: 0,
            reader: ReaderId::GLOBAL,
        }
    }

    fn stream(name: &str) -> Arc<Stream> {
        Arc::new(Stream {
            name: Name::parse(name).expect("a name"),
            origin: Origin("here".into()),
            incarnation: 1,
        })
    }

    fn source(&mut self, name: &str) -> SourceId {
        self.source_that(name, false)
    }

    fn source_that(&mut self, name: &str, retains: bool) -> SourceId {
        let clock = || Time::from_seconds(0);
        let source = self
            .machine
            .add_source(&Now::new(&clock), Self::stream(name), retains);
        source.expect("the name is free")
    }

    fn at<R>(&mut self, act: impl FnOnce(&mut Machine, &Now<'_>) -> R) -> R {
        let clock = || Time::from_seconds(*self.seconds.borrow());
        let done = act(&mut self.machine, &Now::new(&clock));
        self.machine.view().audit().expect("the books balance");
        done
    }

    fn publish(&mut self, source: SourceId, value: i64) {
        self.sequence += 1;
        let header = Header {
            stream: Self::stream("/any"),
            time: Time::from_seconds(*self.seconds.borrow()),
            sequence: self.sequence,
            quality: None,
        };
        let clock = || Time::from_seconds(*self.seconds.borrow());
        let event = Event::new(header, value);
        self.machine.publish(&Now::new(&clock), source, &event);
        self.machine.view().audit().expect("the books balance");
    }

    fn wake_at(&mut self, seconds: i64) {
        *self.seconds.borrow_mut() = seconds;
        let clock = || Time::from_seconds(*self.seconds.borrow());
        self.machine.wake(&Now::new(&clock));
        self.machine.view().audit().expect("the books balance");
    }

    fn subscribe(&mut self, flow: &Flow) -> (SubscriptionId, Heard) {
        let heard = Heard::default();
        let into = Arc::clone(&heard);
        let id = self.subscribe_with(flow, move |event: &Event| {
            let value = *event.get::<i64>().expect("a number");
            assert!(value != 777, "a bad callback");
            into.lock().expect("nobody panics here").push(value);
        });
        (id, heard)
    }

    fn subscribe_with(
        &mut self,
        flow: &Flow,
        receiver: impl FnMut(&Event) + Send + 'static,
    ) -> SubscriptionId {
        let planned = Planned::new(flow, &Catalogue::new(&DEFINITIONS)).expect("a good flow");
        let clock = || Time::from_seconds(0);
        let now = Now::new(&clock);
        self.machine.subscribe(
            &now,
            planned,
            self.reader,
            "test".into(),
            Box::new(receiver),
        )
    }

    fn kinds(&self) -> Vec<String> {
        let nodes = self.machine.view().nodes;
        nodes.iter().map(|node| node.kind.to_string()).collect()
    }
}

fn heard(heard: &Heard) -> Vec<i64> {
    heard.lock().expect("nobody panics here").clone()
}

#[test]
fn equal_flows_are_one_node_and_go_with_the_last_subscriber() {
    let mut world = World::new();
    let source = world.source("/t");
    let flow = above_flow(3, above_flow(1, stream("/t")));
    let (first, one) = world.subscribe(&flow);
    let (second, two) = world.subscribe(&above_flow(3, above_flow(1, stream("/t"))));
    let (prefix, three) = world.subscribe(&above_flow(1, stream("/t")));
    assert_eq!(world.kinds(), ["source", "names", "above", "above"]);
    for value in 0..6 {
        world.publish(source, value);
    }
    assert_eq!((heard(&one), heard(&two)), (vec![4, 5], vec![4, 5]));
    assert_eq!(heard(&three), [2, 3, 4, 5]);
    world.machine.unsubscribe(first);
    assert_eq!(world.kinds(), ["source", "names", "above", "above"]);
    world.machine.unsubscribe(second);
    assert_eq!(world.kinds(), ["source", "names", "above"]);
    world.machine.unsubscribe(prefix);
    assert_eq!(world.kinds(), ["source"]);
    world.publish(source, 9);
    assert_eq!(heard(&one), [4, 5]);
}

#[test]
fn a_source_may_come_later_go_and_come_again() {
    let mut world = World::new();
    let (_, all) = world.subscribe(&stream("/t"));
    let source = world.source("/t");
    world.publish(source, 1);
    world.at(|machine, now| machine.remove_source(now, source));
    let again = world.source("/t");
    world.publish(again, 2);
    assert_eq!(heard(&all), [1, 2]);
}

#[test]
fn late_subscribers_get_what_is_retained() {
    let mut world = World::new();
    let source = world.source_that("/t", true);
    world.publish(source, 5);
    let (_, direct) = world.subscribe(&stream("/t"));
    let (_, filtered) = world.subscribe(&above_flow(3, stream("/t")));
    let (_, filtered_again) = world.subscribe(&above_flow(3, stream("/t")));
    let (_, nothing) = world.subscribe(&above_flow(9, stream("/t")));
    assert_eq!((heard(&direct), heard(&filtered)), (vec![5], vec![5]));
    assert_eq!(heard(&filtered_again), [5], "sharing cannot be observed");
    assert_eq!(heard(&nothing), [0; 0]);
    world.publish(source, 6);
    assert_eq!(
        (heard(&direct), heard(&filtered_again)),
        (vec![5, 6], vec![5, 6])
    );
}

#[test]
fn events_keep_their_order_on_every_edge() {
    let mut world = World::new();
    let source = world.source("/t");
    let twice = operation("twice", vec![stream("/t")]);
    let (_, chained) = world.subscribe(&operation("twice", vec![twice.clone()]));
    let both = operation("merge", vec![twice, stream("/t")]);
    let (_, merged) = world.subscribe(&both);
    world.publish(source, 1);
    world.publish(source, 2);
    assert_eq!(heard(&chained), [1, -1, -1, 1, 2, -2, -2, 2]);
    let mut merged = heard(&merged);
    let negative = merged.iter().position(|value| *value == -1);
    assert!(negative > merged.iter().position(|value| *value == 1));
    merged.sort_unstable();
    assert_eq!(merged, [-2, -1, 1, 1, 2, 2]);
}

#[test]
fn what_is_held_is_counted_and_comes_out_in_time() {
    let mut world = World::new();
    let source = world.source("/t");
    let (_, late) = world.subscribe(&operation("delay", vec![stream("/t")]));
    world.publish(source, 1);
    world.wake_at(4);
    world.publish(source, 2);
    let held = |world: &World| {
        world
            .machine
            .view()
            .nodes
            .iter()
            .map(|node| node.held)
            .sum::<u64>()
    };
    assert_eq!(
        (held(&world), world.machine.due()),
        (2, Some(Time::from_seconds(10)))
    );
    world.wake_at(10);
    assert_eq!((heard(&late), held(&world)), (vec![1], 1));
    assert_eq!(world.machine.due(), Some(Time::from_seconds(14)));
    world.wake_at(20);
    assert_eq!(
        (heard(&late), held(&world), world.machine.due()),
        (vec![1, 2], 0, None)
    );
}

#[test]
fn who_panics_is_taken_out_and_the_others_have_everything() {
    let mut world = World::new();
    let source = world.source("/t");
    let (_, before) = world.subscribe(&stream("/t"));
    let (_, broken) = world.subscribe(&above_flow(0, stream("/t")));
    let (_, after) = world.subscribe(&operation("twice", vec![stream("/t")]));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for value in [1, 666, 777, 3] {
        world.publish(source, value);
    }
    std::panic::set_hook(hook);
    // The first callback panics at 777, the operator at 666.
    assert_eq!(heard(&before), [1, 666]);
    assert_eq!(heard(&broken), [1]);
    assert_eq!(
        heard(&after)[..4],
        [1, -1, 666, -666],
        "the third panics at 777 too"
    );
    let view = world.machine.view();
    let of_operator = view
        .nodes
        .iter()
        .find(|node| &*node.kind == "above")
        .expect("it stays");
    assert_eq!(of_operator.broken.as_deref(), Some("the beast"));
    assert_eq!(of_operator.books.dropped.of(Reason::Broken), 3);
    assert_eq!(view.subscribers.len(), 1);
}

#[test]
fn an_application_that_goes_takes_its_subscriptions_along() {
    let mut world = World::new();
    world.source("/t");
    world.subscribe(&above_flow(1, stream("/t")));
    world.subscribe(&stream("/t"));
    world.machine.remove_application("test");
    assert_eq!(world.kinds(), ["source"]);
}

fn query(text: &str) -> Query {
    Query::parse(text).expect("a query")
}

fn layers(values: &[(&str, &str)]) -> LayerValues {
    values.iter().copied().collect()
}

#[test]
fn a_wildcard_follows_who_comes_and_goes() {
    let mut world = World::new();
    let first = world.source("/labs/1/t");
    let (_, all) = world.subscribe(&stream("/labs/*/t"));
    let second = world.source("/labs/2/t");
    let other = world.source("/labs/2/u");
    for (source, value) in [(first, 1), (second, 2), (other, 3)] {
        world.publish(source, value);
    }
    world.at(|machine, now| machine.remove_source(now, first));
    world.publish(second, 4);
    assert_eq!(heard(&all), [1, 2, 4]);
}

#[test]
fn a_name_follows_a_layer_and_who_stays_loses_and_doubles_nothing() {
    let mut world = World::new();
    let [one, two, both] = ["/labs/1/a", "/labs/2/a", "/shared"].map(|name| world.source(name));
    for room in ["1", "2"] {
        let targets = [query(&format!("/labs/{room}/a")), query("/shared")];
        let set = Binding::new(targets).expect("a good binding");
        let name = format!("/labs/{room}/devices");
        world
            .at(|machine, now| machine.put(now, &name, set))
            .expect("a good entry");
    }
    let (_, here) = world.subscribe(&stream("/labs/%room%/devices"));
    let publish_all = |world: &mut World, value: i64| {
        for (source, times) in [(one, 1), (two, 10), (both, 100)] {
            world.publish(source, value * times);
        }
    };
    publish_all(&mut world, 1);
    assert_eq!(heard(&here), [0; 0], "nobody is in a room");
    for (room, value) in [("1", 2), ("2", 3)] {
        let values = layers(&[("room", room)]);
        world.at(|machine, now| machine.set_layers(now, ReaderId::GLOBAL, values));
        publish_all(&mut world, value);
    }
    assert_eq!(heard(&here), [2, 200, 30, 300]);
    let edges = world.machine.view().edges;
    let stayed = edges
        .iter()
        .find(|edge| edge.events == 2)
        .expect("`/shared` was never left");
    assert_eq!(stayed.input, 0);
}

#[test]
fn readers_have_layers_of_their_own_and_share_what_does_not_depend_on_them() {
    let mut world = World::new();
    let [one, two] = ["/labs/1/t", "/labs/2/t"].map(|name| world.source(name));
    let anna = world
        .machine
        .add_reader(layers(&[("room", "1")]), Rights::all());
    let bob = world
        .machine
        .add_reader(layers(&[("room", "2")]), Rights::all());
    let flow = above_flow(0, stream("/labs/%room%/t"));
    let mut subscribe_as = |reader, flow: &Flow| {
        world.reader = reader;
        world.subscribe(flow).1
    };
    let of_anna = subscribe_as(anna, &flow);
    let of_bob = subscribe_as(bob, &flow);
    let shared = above_flow(0, stream("/labs/1/t"));
    let (_first, _second) = (subscribe_as(anna, &shared), subscribe_as(bob, &shared));
    world.publish(one, 1);
    world.publish(two, 2);
    assert_eq!((heard(&of_anna), heard(&of_bob)), (vec![1], vec![2]));
    let kinds = world.kinds();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "above").count(),
        3,
        "{kinds:?}"
    );
}

#[test]
fn what_a_flow_makes_has_a_name_and_no_flow_reads_itself() {
    let mut world = World::new();
    let source = world.source("/t");
    let plan = |flow: &Flow| Planned::new(flow, &Catalogue::new(&DEFINITIONS)).expect("good");
    let (_, early) = world.subscribe(&stream("/hot"));
    let hot = plan(&above_flow(30, stream("/t")));
    let hot = world
        .at(|machine, now| machine.publish_flow(now, "/hot", hot))
        .expect("published");
    for value in [20, 31, 40] {
        world.publish(source, value);
    }
    assert_eq!(heard(&early), [31, 40]);
    for circular in ["/circular", "/*", "/**"] {
        let flow = plan(&above_flow(1, stream(circular)));
        let refused = world.at(|machine, now| machine.publish_flow(now, "/circular", flow));
        assert_eq!(refused.expect_err("a cycle").why, Why::Cycle, "{circular}");
    }
    let taken = world.at(|machine, now| machine.publish_flow(now, "/t", plan(&stream("/u"))));
    assert!(taken.expect_err("taken").message.contains("/t"));
    world.at(|machine, now| machine.unpublish(now, hot));
    world.publish(source, 50);
    assert_eq!(heard(&early), [31, 40]);
    assert_eq!(world.kinds(), ["source", "names"]);
}

#[test]
fn rights_narrow_what_a_wildcard_means() {
    let mut world = World::new();
    let [open, secret] = ["/open/t", "/secret/t"].map(|name| world.source(name));
    let rights = Rights {
        read: Scope::parse(["/open/**"]).expect("a scope"),
        ..Rights::default()
    };
    world.reader = world.machine.add_reader(LayerValues::new(), rights);
    let (_, some) = world.subscribe(&stream("/**"));
    world.publish(open, 1);
    world.publish(secret, 2);
    assert_eq!(heard(&some), [1]);
}

#[test]
fn services_are_watched_and_end_with_their_lease() {
    let mut world = World::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let watched = world.at(|machine, now| {
        machine.watch(now, query("/devices/**"), Rights::all(), move |changes| {
            let names = changes.iter().map(|change| change.name().to_string());
            tell.lock().expect("unharmed").extend(names);
        })
    });
    watched.expect("a good watch");
    let printer = Service::new("ipp://23", [("color", "yes")], Time::from_seconds(60));
    let printer = printer.expect("a good service");
    world
        .at(|machine, now| machine.put(now, "/devices/printers/23", printer))
        .expect("put");
    assert_eq!(world.machine.due(), Some(Time::from_seconds(60)));
    world.wake_at(60);
    assert_eq!(*told.lock().expect("unharmed"), ["/devices/printers/23"; 2]);
    assert!(
        world
            .machine
            .list(&query("/devices/**"), &Rights::all())
            .is_empty()
    );
}

#[test]
fn the_number_of_a_subscriber_that_is_gone_is_nobody_elses() {
    let mut world = World::new();
    let source = world.source("/t");
    let (gone, _) = world.subscribe(&stream("/t"));
    world.machine.unsubscribe(gone);
    let (_, stays) = world.subscribe(&stream("/t"));
    assert!(world.machine.unsubscribe(gone).is_none());
    world.publish(source, 1);
    assert_eq!(heard(&stays), [1]);
}

#[test]
fn rights_of_a_reader_that_is_gone_serve_nobody_else() {
    let mut world = World::new();
    let secret = world.source("/secret/t");
    let reader_of = |world: &mut World, scope: &str| {
        let rights = Rights {
            read: Scope::parse([scope]).expect("a scope"),
            ..Rights::default()
        };
        world.machine.add_reader(LayerValues::new(), rights)
    };
    world.reader = reader_of(&mut world, "/secret/**");
    let (_, allowed) = world.subscribe(&stream("/**"));
    let gone = world.reader;
    world.machine.remove_reader(gone);
    world.reader = reader_of(&mut world, "/open/**");
    let (_, denied) = world.subscribe(&stream("/**"));
    world.publish(secret, 1);
    assert_eq!((heard(&allowed), heard(&denied)), (vec![1], vec![]));
}
