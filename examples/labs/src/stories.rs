//! The stories. Each returns what its subscribers heard.

use milieu::stream::names::{Entry, Query, Rights, Service};
use milieu::transfer::{Map, Time, Value};
use milieu_adapters::catalogue;

use crate::Failure;
use crate::stage::Stage;

type Story = fn() -> Result<Vec<String>, Failure>;

/// All stories, in the order in which the paper tells them.
pub const ALL: [(&str, Story); 6] = [
    ("heat", heat),
    ("extremes", extremes),
    ("rooms", rooms),
    ("devices", devices),
    ("moving", moving),
    ("failing", failing),
];

/// A year at three airports; rows are as the weather services give them.
fn weather(stage: &Stage, from: &str, until: &str) -> Result<(), Failure> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../weather-station/data/weather-2013.csv"
    );
    let parameters = [
        ("path", path),
        ("pace", "immediate"),
        ("from", from),
        ("until", until),
        ("texts", "station"),
    ];
    let recording = catalogue::make("replay.csv", &parameters)?;
    let publisher = stage.publisher("/weather/observations")?;
    stage.play(recording, &publisher);
    Ok(())
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().collect::<Map>().into()
}

/// "A sensor might publish the current temperature every 10 seconds, but the
/// application might only want to receive readings that exceed 90 degrees."
fn heat() -> Result<Vec<String>, Failure> {
    let mut stage = Stage::new();
    stage.listen(
        "above 90 °F",
        "/weather/observations | filter station == 'JFK' && temperature_celsius * 1.8 + 32.0 > 90.0 \
         | transform {time: event.time, fahrenheit: temperature_celsius * 1.8 + 32.0}",
    )?;
    weather(&stage, "2013-07-17T00:00:00Z", "2013-07-19T00:00:00Z")?;
    stage.end()
}

/// "An aggregator might publish an event only when the stock reaches a new high
/// or low for the day."
fn extremes() -> Result<Vec<String>, Failure> {
    let mut stage = Stage::new();
    stage.listen(
        "new high",
        "/weather/observations | filter station == 'EWR' | transform temperature_celsius \
         | extreme highest window=1d offset=-5h",
    )?;
    stage.listen(
        "new low",
        "/weather/observations | filter station == 'EWR' | transform temperature_celsius \
         | extreme lowest window=1d offset=-5h",
    )?;
    weather(&stage, "2013-07-18T04:00:00Z", "2013-07-19T04:00:00Z")?;
    stage.end()
}

/// "A location transformer might convert map coordinates to rooms within a
/// building."
fn rooms() -> Result<Vec<String>, Failure> {
    let mut stage = Stage::new();
    stage.listen(
        "anna is in",
        "/people/anna/position | transform x < 10.0 ? '005' : (y < 5.0 ? '006' : 'the hall') | change",
    )?;
    let anna = stage.publisher("/people/anna/position")?;
    for (second, x, y) in [(1, 3.0, 2.0), (2, 4.5, 2.0), (3, 11.0, 2.5), (4, 11.0, 8.0)] {
        stage.say(second, &anna, fields([("x", x.into()), ("y", y.into())]));
    }
    stage.end()
}

/// "The context-sensitive name `/labs/005/devices` refers to a dynamic list of
/// devices, possibly including printer 23." What is in the lab says so every now
/// and then; what is carried away, or says nothing, is no longer there.
fn devices() -> Result<Vec<String>, Failure> {
    let mut stage = Stage::new();
    let here = "/presence | members '/' + what while=room == '005' within=1m";
    stage.listen(
        "in the lab",
        &format!("{here} | transform {{joined: joined, left: left}}"),
    )?;
    stage.listen("the lab says", "/labs/005/devices")?;
    let streams = stage.streams.clone();
    let lab = streams.bind_flow("/labs/005/devices", &stage.flow(here)?)?;
    let attributes = [("kind", "printer"), ("colour", "yes")];
    let printer = Service::new("ipp://printer-23/", attributes, Time::MAX);
    let printer = printer.map_err(|it| it.to_string())?;
    let _printer = streams.serve("/devices/printers/23", printer)?;
    let presence = stage.publisher("/presence")?;
    let [seventh, eighth, anna] = [
        "/devices/thermometers/7",
        "/devices/thermometers/8",
        "/people/anna",
    ]
    .map(|name| stage.publisher(name));
    let (seventh, eighth, anna) = (seventh?, eighth?, anna?);
    let is_in = |second, what: &str, room: &str| {
        let body = fields([("what", what.into()), ("room", room.into())]);
        stage.say(second, &presence, body);
    };
    is_in(1, "devices/printers/23", "005");
    is_in(2, "devices/thermometers/7", "005");
    stage.say(3, &seventh, 21.5);
    // Anna comes in and brings another thermometer.
    is_in(4, "people/anna", "005");
    is_in(5, "devices/thermometers/8", "005");
    stage.say(6, &anna, "good morning");
    // She takes the old one with her, next door.
    is_in(7, "people/anna", "006");
    is_in(7, "devices/thermometers/7", "006");
    stage.say(8, &anna, "is nobody here?");
    stage.say(9, &seventh, 99.0);
    stage.say(10, &eighth, 22.5);
    let printers = Query::parse("/labs/005/devices").map_err(|it| it.to_string())?;
    let bound = streams
        .list(printers, Rights::all())
        .ok_or("the graph runs")?;
    let targets = bound.iter().filter_map(|member| match &member.entry {
        Entry::Binding(binding) => Some(binding.targets()),
        _ => None,
    });
    let bound: Vec<String> = targets
        .flatten()
        .map(|name| name.as_str().to_owned())
        .collect();
    // The printer is silent for too long.
    is_in(50, "devices/thermometers/8", "005");
    stage.pass(Time::from_seconds(70));
    if let Some(fault) = lab.fault() {
        return Err(fault.to_string().into());
    }
    let mut heard = stage.end()?;
    heard.push(format!(
        "after ten seconds the name stood for {}",
        bound.join(", ")
    ));
    Ok(heard)
}

/// A person moves, and what is near is another thing: the subscription stays.
fn moving() -> Result<Vec<String>, Failure> {
    let mut stage = Stage::new();
    stage.listen("where anna is", "/labs/%room%/temperature")?;
    let streams = stage.streams.clone();
    let located = stage.flow("/people/anna/room")?;
    let _driving = streams.drives("room", &located)?;
    let following = streams.clone();
    let _following = streams.listen(&located, move |event| {
        if let Some(Value::Text(room)) = event.get::<Value>() {
            following.set_layer("room", room);
        }
    })?;
    let [cold, warm] = ["/labs/005/temperature", "/labs/006/temperature"];
    let (cold, warm) = (stage.publisher(cold)?, stage.publisher(warm)?);
    let anna = stage.publisher("/people/anna/room")?;
    for (second, room) in [(1, "005"), (11, "006"), (21, "")] {
        stage.say(second, &anna, room);
        stage.say(second + 1, &cold, 17.0);
        stage.say(second + 2, &warm, 23.0);
    }
    stage.end()
}

/// Redundant sensors, of which one lies and then fails.
fn failing() -> Result<Vec<String>, Failure> {
    let mut stage = Stage::new();
    stage.listen(
        "the roof",
        "/roof/a, /roof/b, /roof/c | merge | vote within=2 least=2",
    )?;
    let [a, b, c] = ["/roof/a", "/roof/b", "/roof/c"].map(|name| stage.publisher(name));
    let (a, b, c) = (a?, b?, c?);
    stage.say(1, &a, 20.0);
    stage.say(2, &b, 21.0);
    stage.say(3, &c, 85.0);
    stage.fail(4, &c, "broken wire");
    stage.fail(5, &b, "no power");
    stage.say(6, &c, 20.5);
    stage.end()
}
