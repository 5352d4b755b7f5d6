//! Streams and contexts: each drives the other.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::Machine;
use milieu::diagnostics::Source;
use milieu::stream::language::Language;
use milieu::stream::{Blocking, Delivery, Functions, Published, VirtualClock};
use milieu::transfer::{Event, Quality, Time};
use milieu::{Acting, Environment, Milieu, Scope, Text, ThreadLayer, each, layer};

layer! { /// The battery is low.
struct BatteryLow = "battery_low"; }
layer! { /// Where one is.
struct Room(String) = "room"; }

#[derive(Environment)]
#[environment(root = "/sw/hello")]
struct Settings {
    #[key("%battery_low%/interval", default = 10)]
    interval: i32,
    #[key("%room%/temperature", default = 20.0)]
    temperature: f64,
    #[key("%room%/title", default = "a room")]
    title: Text,
}

fn publish<T: milieu::transfer::Body>(publisher: &milieu::stream::Publisher<T>, body: T) {
    assert!(matches!(publisher.publish(body), Published::Accepted(_)));
}

fn audit(milieu: &Milieu) {
    let view = milieu
        .streams()
        .view()
        .expect("nothing runs in this thread");
    view.audit().expect("the books balance");
}

fn numbers(events: &mut milieu::stream::Subscriber) -> Vec<f64> {
    let events = std::iter::from_fn(|| events.try_next());
    events
        .map(|event: Event| *event.get::<f64>().expect("a number"))
        .collect()
}

#[test]
fn a_stream_switches_a_layer_for_every_thread() {
    let machine = Machine::new().user("/sw/hello/active/interval = 60\n");
    let milieu = machine.open();
    let mut here = milieu.context::<Settings>().unwrap();
    let mut there = milieu.context::<Settings>().unwrap();
    let levels = milieu
        .streams()
        .publisher::<f64>("/power/battery/level")
        .unwrap();
    let flow = milieu
        .flow("/power/battery/level | hysteresis value<15 off=value>20")
        .unwrap();
    let acting = flow.activates(|event| {
        let value = event.value(milieu::transfer::Rights::ALL).ok()?;
        let milieu::transfer::Value::Map(map) = value else {
            return None;
        };
        (map.field("value") == Some(&true.into())).then_some(BatteryLow)
    });
    let acting = acting.unwrap();
    let mut seen = Vec::new();
    for level in [50.0, 14.0, 16.0, 19.0, 21.0, 16.0, 10.0] {
        publish(&levels, level);
        here.sync();
        thread::scope(|scope| {
            scope.spawn(|| there.sync());
        });
        assert_eq!(here.interval, there.interval);
        seen.push(here.interval);
    }
    assert_eq!(seen, [10, 60, 60, 60, 10, 10, 60]);
    assert_eq!(acting.troubles(), (0, None));
    drop(acting);
    publish(&levels, 90.0);
    here.sync();
    assert_eq!(here.interval, 60, "it acts no more");
    audit(&milieu);
}

/// Lets time pass, and operators do what they do meanwhile.
fn pass(milieu: &Milieu, clock: &VirtualClock, until: i64) {
    let until = Time::from_seconds(until);
    while let Some(due) = milieu.streams().due().filter(|due| *due <= until) {
        clock.set(due);
        milieu.streams().wake();
    }
    clock.set(until);
}

#[test]
fn a_layer_ends_by_itself_so_long_after_the_last_event() {
    let machine = Machine::new().user("/sw/hello/active/interval = 60\n");
    let seconds = |milieu: Milieu, acting: &mut dyn FnMut(&Milieu) -> Vec<Acting>| {
        let clock = VirtualClock::new(Time::from_seconds(0));
        milieu.clock(clock.clone()).unwrap();
        let low = |functions: &mut Functions| _ = functions.condition("low", |it: &f64| *it < 15.0);
        milieu.functions(low).unwrap();
        let acting = acting(&milieu);
        let wrong = milieu.clock(clock.clone()).unwrap_err().to_string();
        assert!(wrong.contains("before they are used"), "{wrong}");
        let levels = milieu.streams().publisher::<f64>("/battery").unwrap();
        let mut cx = milieu.context::<Settings>().unwrap();
        let mut seen = Vec::new();
        for second in 1..40 {
            pass(&milieu, &clock, second);
            match second {
                // Two events, the second of which makes it last longer; one
                // that ends it at once; and one that somebody else follows.
                1 | 7 | 20 | 26 => publish(&levels, 10.0),
                22 | 28 => publish(&levels, 50.0),
                30 => cx.activate(BatteryLow).unwrap(),
                _ => {}
            }
            cx.sync();
            if cx.interval == 60 {
                seen.push(second);
            }
        }
        assert!(acting.iter().all(|acting| acting.troubles().0 == 0));
        audit(&milieu);
        seen
    };
    let expected: Vec<i64> = [1..17, 20..22, 26..28, 30..40]
        .into_iter()
        .flatten()
        .collect();
    let in_rust = seconds(machine.open(), &mut |milieu| {
        let flow = milieu.flow("/battery").unwrap();
        let low = |event: &Event| (*event.get::<f64>()? < 15.0).then_some(BatteryLow);
        let ten = std::time::Duration::from_secs(10);
        vec![flow.activates_for(ten, low).unwrap()]
    });
    assert_eq!(in_rust, expected);
    for (language, text) in [
        (
            Language::Pipeline,
            "/battery | activate battery_low while=value<15 for=10s",
        ),
        (
            Language::Pipeline,
            "/battery | activate battery_low while=$low for=10s",
        ),
        (
            Language::Toml,
            "[[activate]]\nlayer = \"battery_low\"\nwhile = \"$low\"\nfor = \"10s\"\nfrom = \"/battery\"\n",
        ),
        (
            Language::Toml,
            "[[activate]]\nlayer = \"battery_low\"\nwhile = \"value < 15\"\nfor = \"10s\"\nfrom = \"/battery\"\n",
        ),
        (
            Language::Xml,
            "<subscriptions xmlns=\"urn:milieu:subscriptions:1\">\
             <activate layer=\"battery_low\" while=\"value &lt; 15\" for=\"10s\">\
             <stream name=\"/battery\"/></activate></subscriptions>",
        ),
    ] {
        let source = Source::new("low", text);
        let seen = seconds(machine.open(), &mut |milieu| {
            milieu.apply(&source, language).unwrap().acting
        });
        assert_eq!(seen, expected, "{text}");
    }
}

#[test]
fn functions_say_what_layers_and_values_become() {
    let machine = Machine::new().user("/sw/hello/active/interval = 60\n");
    let milieu = machine.open();
    milieu
        .functions(|functions| {
            functions.condition("low", |level: &f64| *level < 15.0);
            functions.value("room", |level: &f64| format!("r{level}"));
            functions.value("half", |level: &f64| level / 2.0);
        })
        .unwrap();
    let text = "/battery | activate battery_low while=$low\n\
                /battery | activate room while=value>3 value=$room\n\
                /battery | set /sw/hello/%room%/temperature $half\n";
    let source = Source::new("functions", text);
    let applied = milieu.apply(&source, Language::Pipeline).unwrap();
    let mut cx = milieu.context::<Settings>().unwrap();
    let levels = milieu.streams().publisher::<f64>("/battery").unwrap();
    for (level, room, interval) in [
        (8.0, Some("r8"), 60),
        (2.0, None, 60),
        (40.0, Some("r40"), 10),
    ] {
        publish(&levels, level);
        cx.sync();
        let layers = cx.layers();
        let shown = layers.iter().find(|(id, _)| &**id == "room");
        assert_eq!(shown.map(|(_, value)| value.as_str()), room, "{level}");
        assert_eq!((cx.interval, cx.temperature), (interval, level / 2.0));
    }
    // What a failed sensor says is no reason to do anything.
    let quality = Quality {
        failure: Some("broken wire".into()),
        ..Quality::default()
    };
    let _ = levels.publish_at(milieu.streams().now(), Some(quality), 2.0);
    cx.sync();
    assert_eq!(cx.interval, 10);
    let troubles: Vec<u64> = applied.acting.iter().map(|it| it.troubles().0).collect();
    assert_eq!(troubles, [1, 1, 0]);
    audit(&milieu);
}

#[test]
fn functions_that_take_long_switch_layers_and_hold_up_nobody() {
    let machine = Machine::new().user("/sw/hello/active/interval = 60\n");
    let milieu = machine.open();
    let (go, goes) = std::sync::mpsc::channel();
    let goes = Mutex::new(goes);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    milieu
        .functions(|functions| {
            functions.condition_blocking("low", move |level: &f64| {
                goes.lock().unwrap().recv().unwrap();
                noted.lock().unwrap().push(thread::current().id());
                *level < 15.0
            });
            functions.value_blocking("half", |level: &f64| level / 2.0);
        })
        .unwrap();
    let _driving = milieu.driving().unwrap();
    let text = "/battery | activate battery_low while=$low\n\
                /battery | set /sw/hello/%room%/temperature $half\n";
    let source = Source::new("functions", text);
    let _applied = milieu.apply(&source, Language::Pipeline).unwrap();
    let mut cx = milieu.context::<Settings>().unwrap();
    let levels = milieu.streams().publisher::<f64>("/battery").unwrap();
    // Nobody has answered yet, and publishing goes on.
    publish(&levels, 8.0);
    publish(&levels, 50.0);
    cx.sync();
    assert_eq!(cx.interval, 10);
    let soon = std::time::Instant::now() + std::time::Duration::from_secs(60);
    for interval in [60, 10] {
        go.send(()).unwrap();
        while cx.interval != interval {
            assert!(cx.wait(soon), "nothing came");
            cx.sync();
        }
    }
    while cx.temperature != 25.0 {
        assert!(cx.wait(soon), "nothing came");
        cx.sync();
    }
    let asked = asked.lock().unwrap();
    assert!(asked.iter().all(|id| *id != thread::current().id()));
}

#[test]
fn a_failed_sensor_switches_no_layer_unless_it_is_asked_for() {
    let machine = Machine::new().user("/sw/hello/active/interval = 60\n");
    for (text, interval, troubles) in [
        (
            "/battery | activate battery_low while=value<15 for=10s",
            10,
            1,
        ),
        (
            "/battery | activate battery_low while=event.failure!=null",
            60,
            0,
        ),
    ] {
        let milieu = machine.open();
        let source = Source::new("low", text);
        let applied = milieu.apply(&source, Language::Pipeline).unwrap();
        let levels = milieu.streams().publisher::<f64>("/battery").unwrap();
        let quality = Quality {
            failure: Some("broken wire".into()),
            ..Quality::default()
        };
        let _ = levels.publish_at(milieu.streams().now(), Some(quality), 10.0);
        let cx = milieu.context::<Settings>().unwrap();
        assert_eq!(cx.interval, interval, "{text}");
        let (count, why) = applied.acting[0].troubles();
        assert_eq!(count, troubles, "{text}");
        assert!(why.is_none_or(|why| why.contains("broken wire")));
    }
}

#[test]
fn a_stream_assigns_a_value_that_is_no_setting() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    let readings = milieu
        .streams()
        .publisher::<f64>("/labs/005/temperature")
        .unwrap();
    let flow = milieu.flow("/labs/005/temperature").unwrap();
    let text = |event: &Event| event.get::<f64>().map(f64::to_string);
    let acting = flow.assigns::<at::temperature>(text).unwrap();
    cx.activate(Room("005".into())).unwrap();
    publish(&readings, 21.5);
    cx.sync();
    assert!((cx.temperature - 21.5).abs() < f64::EPSILON);
    let origin = cx.origin::<at::temperature>().unwrap().to_string();
    assert_eq!(origin, "stream /labs/005/temperature");
    assert_eq!(cx.name::<at::temperature>(), "/sw/hello/005/temperature");
    milieu.persist().unwrap();
    assert!(!machine.user_file().exists(), "nothing was set");
    let wrong = milieu.flow("/labs/005/temperature").unwrap();
    let wrong = wrong
        .assigns_to("/sw/hello/%room%/temperature", |_| Some("warm".into()))
        .unwrap();
    publish(&readings, 22.5);
    let (count, why) = wrong.troubles();
    assert_eq!(count, 1);
    assert!(why.unwrap().contains("temperature"));
    assert_eq!(acting.troubles().0, 0);
}

#[test]
fn a_subscription_follows_a_layer_that_code_switches() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    let streams = milieu.streams();
    let [one, two, both] =
        ["/labs/1/t", "/labs/2/t", "/shared"].map(|name| streams.publisher::<f64>(name).unwrap());
    let _first = milieu
        .bind("/labs/1/devices", ["/labs/1/t", "/shared"])
        .unwrap();
    let _second = milieu
        .bind("/labs/2/devices", ["/labs/2/t", "/shared"])
        .unwrap();
    let _here = milieu.bind("/here", ["/labs/%room%/devices"]).unwrap();
    let flows = ["/labs/%room%/devices", "/here"].map(|name| milieu.flow(name).unwrap());
    let mut subscribers = flows.map(|flow| flow.subscribe(Delivery::default()).unwrap());
    let publish_all = |value: f64| {
        publish(&one, value);
        publish(&two, value * 10.0);
        publish(&both, value * 100.0);
    };
    publish_all(1.0);
    cx.activate(Room("1".into())).unwrap();
    publish_all(2.0);
    cx.activate(Room("2".into())).unwrap();
    publish_all(3.0);
    cx.deactivate::<Room>().unwrap();
    publish_all(4.0);
    for subscriber in &mut subscribers {
        assert_eq!(numbers(subscriber), [2.0, 200.0, 30.0, 300.0]);
    }
    audit(&milieu);
}

/// A thread-based layer that fails while it is told to.
#[derive(Clone)]
struct Fickle(Arc<AtomicBool>);
impl ThreadLayer for Fickle {
    const ID: &'static str = "fickle";
    fn value(&self, _: &Scope<'_>) -> Cow<'_, str> {
        assert!(!self.0.load(Ordering::Relaxed), "it fails");
        "".into()
    }
}

#[test]
fn a_switch_is_followed_whatever_else_fails() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    cx.activate(each(Fickle(Arc::clone(&fails)))).unwrap();
    let room = milieu.streams().publisher::<f64>("/labs/1/t").unwrap();
    let flow = milieu.flow("/labs/%room%/t").unwrap();
    let mut subscriber = flow.subscribe(Delivery::default()).unwrap();
    fails.store(true, Ordering::Relaxed);
    let switched = catch_unwind(AssertUnwindSafe(|| cx.activate(Room("1".into()))));
    switched.expect_err("somebody is told that a layer has failed");
    fails.store(false, Ordering::Relaxed);
    publish(&room, 1.0);
    assert_eq!(numbers(&mut subscriber), [1.0]);
    audit(&milieu);
}

#[test]
fn a_context_reads_under_the_layers_that_only_it_has_entered() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    let streams = milieu.streams();
    let [one, two] = ["/labs/1/t", "/labs/2/t"].map(|name| streams.publisher::<f64>(name).unwrap());
    let flow = milieu.flow("/labs/%room%/t | filter value > 0").unwrap();
    let reader = milieu.reader(&cx);
    let mut events = reader
        .subscribe(flow.as_flow(), Delivery::default())
        .unwrap();
    for (room, values) in [("1", vec![1.0]), ("2", vec![20.0])] {
        let cx = cx.enter(Room(room.into()));
        reader.follow(&cx);
        publish(&one, 1.0);
        publish(&two, 20.0);
        assert_eq!(numbers(&mut events), values);
    }
    reader.follow(&cx);
    publish(&one, 1.0);
    assert_eq!(numbers(&mut events), [0.0; 0]);
}

#[test]
fn a_flow_may_not_drive_what_its_names_depend_on() {
    let machine = Machine::new();
    let milieu = machine.open();
    let _here = milieu.bind("/here", ["/labs/%room%/devices"]).unwrap();
    for name in ["/labs/%room%/t", "/here"] {
        let flow = milieu.flow(name).unwrap();
        let refused = flow
            .activates(|_| Some(Room("1".into())))
            .err()
            .expect("it is circular");
        assert!(refused.to_string().contains("room"), "{refused}");
    }
    let flow = milieu.flow("/doors").unwrap();
    let _acting = flow.activates(|_| Some(Room("1".into()))).unwrap();
    let refused = milieu
        .bind("/doors", ["/labs/%room%/door"])
        .err()
        .expect("it is circular");
    assert!(refused.to_string().contains("room"), "{refused}");
}

#[test]
fn a_file_of_subscriptions_is_applied() {
    let machine = Machine::new().user("/sw/hello/active/interval = 60\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    let text = "\
let level = /power/battery/level
level | filter value < 50 | publish /power/low
level | activate battery_low while=value<15
/labs/005/temperature | set /sw/hello/005/temperature value
level | subscribe delivery=latest
/presence | members '/labs/' + value + '/temperature' | bind /labs/in_use
";
    let source = Source::new("station.flow", text);
    let applied = milieu.apply(&source, Language::Pipeline).unwrap();
    assert_eq!((applied.published.len(), applied.acting.len()), (1, 2));
    assert_eq!((applied.subscriptions.len(), applied.bound.len()), (1, 1));
    let levels = milieu
        .streams()
        .publisher::<f64>("/power/battery/level")
        .unwrap();
    let readings = milieu
        .streams()
        .publisher::<f64>("/labs/005/temperature")
        .unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    let _low = milieu.flow("/power/low").unwrap().listen(move |event| {
        hearing.lock().unwrap().push(*event.get::<f64>().unwrap());
    });
    for level in [80.0, 40.0, 14.0] {
        publish(&levels, level);
    }
    let presence = milieu.streams().publisher::<String>("/presence").unwrap();
    let in_use = milieu.flow("/labs/in_use").unwrap();
    let mut in_use = in_use
        .subscribe(milieu::stream::Delivery::default())
        .unwrap();
    publish(&presence, "005".to_owned());
    publish(&readings, 19.5);
    assert_eq!(in_use.try_next().unwrap().get::<f64>(), Some(&19.5));
    cx.activate(Room("005".into())).unwrap();
    assert_eq!(
        (cx.interval, cx.temperature.to_string()),
        (60, "19.5".to_owned())
    );
    assert_eq!(*heard.lock().unwrap(), [40.0, 14.0]);
    for (text, what) in [
        ("/a; /a | publish /b", "leave out `publish`"),
        ("/a; /a | activate heat", "leave out `activate`"),
        ("/a | bind /b", "leave out `bind`"),
        ("/a | subscribe latest", "leave out its `delivery`"),
    ] {
        let shown = milieu.flow(text).err().unwrap().to_string();
        assert!(shown.contains(what) && shown.contains("flow:1:"), "{shown}");
    }
    let wrong = Source::new("station.flow", "/a | fliter value > 1 | publish /b");
    let shown = milieu
        .apply(&wrong, Language::Pipeline)
        .err()
        .unwrap()
        .to_string();
    assert!(
        shown.contains("station.flow:1:6") && shown.contains("`filter`"),
        "{shown}"
    );
}

/// Whoever drives first says on what terms.
#[test]
fn streams_are_driven_on_one_set_of_terms() {
    let terms = Blocking {
        threads: NonZeroUsize::MIN,
        ..Blocking::default()
    };
    let milieu = Milieu::in_memory();
    let _driving = milieu.drive_with(terms).unwrap();
    assert!(milieu.drive_with(terms).is_ok() && milieu.driving().is_ok());
    let refused = milieu.drive_with(Blocking::default());
    let said = refused.err().expect("it is driven").to_string();
    assert!(
        said.contains("1 threads, queues of 1024 and a limit of 30s"),
        "{said}"
    );
}
