//! The naming tree as its users see it.

use std::sync::Arc;

use milieu_stream::names::{
    Binding, Change, Difference, Entry, LayerValues, Limits, Member, Publisher, Query, Refusal,
    ResolutionId, Rights, Scope, Service, Tree, Why, utf8,
};
use milieu_transfer::Time;

fn query(text: &str) -> Query {
    Query::parse(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"))
}

fn binding(targets: &[&str]) -> Binding {
    Binding::new(targets.iter().map(|text| query(text))).expect("a binding")
}

fn layers(values: &[(&str, &str)]) -> Arc<LayerValues> {
    Arc::new(values.iter().copied().collect())
}

fn reader(read: &[&str]) -> Arc<Rights> {
    let read = Scope::parse(read.iter().copied()).expect("a right");
    Arc::new(Rights {
        read,
        ..Rights::default()
    })
}

fn subscribe(tree: &mut Tree, text: &str, values: &[(&str, &str)]) -> ResolutionId {
    let subscribed = tree.subscribe(query(text), layers(values), Arc::new(Rights::all()));
    subscribed.expect("there is room")
}

fn seconds(seconds: i64) -> Time {
    Time::from_seconds(seconds)
}

fn texts(members: &[Member]) -> Vec<&str> {
    members.iter().map(|member| member.name.as_str()).collect()
}

/// What a step tells one subscription.
fn told(tree: &mut Tree, id: ResolutionId) -> Difference {
    let news = tree.step(Time::MIN).resolutions;
    assert!(news.len() <= 1, "{news:?}");
    let (to, difference) = news
        .into_iter()
        .next()
        .unwrap_or((id, Difference::default()));
    assert_eq!(to, id);
    difference
}

fn left_and_joined(difference: &Difference) -> (Vec<&str>, Vec<&str>) {
    (texts(&difference.left), texts(&difference.joined))
}

/// The paper's example: printer 23 and who is in the lab.
#[test]
fn a_set_that_an_operator_keeps_changes_in_one_step() {
    let mut tree = Tree::default();
    for (number, name) in (0..).zip([
        "/devices/printers/23",
        "/devices/lamps/1",
        "/devices/lamps/2",
    ]) {
        tree.put(name, Publisher(number)).expect("a name");
    }
    let devices = "/labs/005/devices";
    tree.put(
        devices,
        binding(&["/devices/printers/23", "/devices/lamps/1"]),
    )
    .expect("no circle");
    let id = subscribe(&mut tree, devices, &[]);
    let first = told(&mut tree, id);
    assert_eq!(
        left_and_joined(&first),
        (vec![], vec!["/devices/lamps/1", "/devices/printers/23"])
    );
    // The lamp goes and another comes; the printer stays, and nothing is said of it.
    tree.put(
        devices,
        binding(&["/devices/printers/23", "/devices/lamps/2"]),
    )
    .expect("no circle");
    let difference = told(&mut tree, id);
    assert_eq!(
        left_and_joined(&difference),
        (vec!["/devices/lamps/1"], vec!["/devices/lamps/2"])
    );
    // A member that is reached by two ways is there once, and stays while one is left.
    tree.put(
        devices,
        binding(&[
            "/devices/lamps/*",
            "/devices/lamps/2",
            "/devices/printers/23",
        ]),
    )
    .expect("no circle");
    assert_eq!(
        left_and_joined(&told(&mut tree, id)),
        (vec![], vec!["/devices/lamps/1"])
    );
    tree.put(
        devices,
        binding(&["/devices/lamps/*", "/devices/printers/23"]),
    )
    .expect("no circle");
    assert!(told(&mut tree, id).is_empty());
    // What the set had before, in several changes between two steps, is not told.
    tree.put(devices, binding(&[])).expect("no circle");
    tree.put(devices, binding(&["/devices/printers/23"]))
        .expect("no circle");
    let lamps = vec!["/devices/lamps/1", "/devices/lamps/2"];
    assert_eq!(left_and_joined(&told(&mut tree, id)), (lamps, vec![]));
}

#[test]
fn a_subscription_outlives_what_its_name_stands_for() {
    let mut tree = Tree::default();
    let id = subscribe(&mut tree, "/weather/temperature", &[]);
    assert!(told(&mut tree, id).is_empty());
    tree.put("/weather/temperature", Publisher(1))
        .expect("a name");
    assert_eq!(
        told(&mut tree, id).joined[0].entry,
        Entry::Stream(Publisher(1))
    );
    // It restarts between two steps: the old one has gone, the new one is there.
    tree.remove("/weather/temperature");
    tree.put("/weather/temperature", Publisher(2))
        .expect("a name");
    let restarted = told(&mut tree, id);
    assert_eq!(restarted.left[0].entry, Entry::Stream(Publisher(1)));
    assert_eq!(restarted.joined[0].entry, Entry::Stream(Publisher(2)));
    // It is away for a while.
    tree.remove("/weather/temperature");
    assert_eq!(told(&mut tree, id).left.len(), 1);
    assert_eq!(tree.members(id), []);
    tree.put("/weather/temperature", Publisher(3))
        .expect("a name");
    assert_eq!(told(&mut tree, id).joined.len(), 1);
    // It moves: the name stands for another one.
    tree.put("/roof/3", Publisher(4)).expect("a name");
    tree.put("/weather/temperature", binding(&["/roof/3"]))
        .expect("no circle");
    let moved = told(&mut tree, id);
    assert_eq!(
        left_and_joined(&moved),
        (vec!["/weather/temperature"], vec!["/roof/3"])
    );
    // Nothing is told of what came and went between two steps.
    tree.put("/weather/rain", Publisher(5)).expect("a name");
    tree.remove("/weather/rain");
    assert!(tree.step(Time::MIN).is_empty());
}

#[test]
fn a_name_follows_the_layers_of_whoever_reads_it() {
    let mut tree = Tree::default();
    for (room, lamp) in [("005", 1), ("005", 2), ("006", 3)] {
        tree.put(&format!("/labs/{room}/lamps/{lamp}"), Publisher(lamp))
            .expect("a name");
    }
    tree.put("/labs/%/lamps/none", Publisher(9))
        .expect("a name");
    tree.put("/here", binding(&["/labs/%room%/lamps/*"]))
        .expect("no circle");
    let anna = subscribe(&mut tree, "/here", &[("room", "005")]);
    let ben = subscribe(&mut tree, "/labs/%room%/lamps/*", &[]);
    let news = tree.step(Time::MIN).resolutions;
    assert_eq!(news.len(), 2);
    assert_eq!(
        texts(&tree.members(anna)),
        ["/labs/005/lamps/1", "/labs/005/lamps/2"]
    );
    assert_eq!(texts(&tree.members(ben)), ["/labs/%/lamps/none"]);
    // Anna goes next door. Ben is not concerned, and a layer that is not asked
    // for concerns nobody.
    tree.set_layers(anna, layers(&[("room", "006"), ("session", "anna")]));
    let moved = told(&mut tree, anna);
    assert_eq!(moved.left.len(), 2);
    assert_eq!(texts(&moved.joined), ["/labs/006/lamps/3"]);
    tree.set_layers(anna, layers(&[("room", "006"), ("session", "ben")]));
    assert!(tree.step(Time::MIN).is_empty());
    // She still follows what happens in the room where she is now.
    tree.put("/labs/006/lamps/4", Publisher(4)).expect("a name");
    tree.remove("/labs/005/lamps/1");
    assert_eq!(
        left_and_joined(&told(&mut tree, anna)),
        (vec![], vec!["/labs/006/lamps/4"])
    );
}

#[test]
fn services_have_attributes_and_live_as_long_as_their_lease() {
    let mut tree = Tree::default();
    let printer = |colour, until| {
        let attributes = [("kind", "printer"), ("colour", colour)];
        Service::new("ipp://printer-23/", attributes, until).expect("a service")
    };
    tree.put("/devices/23", printer("no", seconds(10)))
        .expect("a name");
    tree.put("/devices/24", printer("yes", seconds(20)))
        .expect("a name");
    tree.put("/devices/25", Publisher(25)).expect("a name");
    let watch = tree
        .watch(query("/devices/*?colour=yes"), Arc::new(Rights::all()))
        .expect("room");
    let id = subscribe(&mut tree, "/devices/**?kind=printer", &[]);
    let news = tree.step(seconds(1));
    let [(told, changes)] = &news.watches[..] else {
        panic!("one watch is told: {news:?}");
    };
    assert_eq!(*told, watch);
    assert!(
        matches!(&changes[..], [Change::Joined(member)] if member.name.as_str() == "/devices/24")
    );
    assert_eq!(
        texts(&news.resolutions[0].1.joined),
        ["/devices/23", "/devices/24"]
    );
    // Renewing is told to nobody; other attributes are.
    assert_eq!(tree.due(), Some(seconds(10)));
    tree.renew("/devices/23", seconds(30)).expect("it is there");
    tree.put("/devices/24", printer("yes", seconds(40)))
        .expect("a name");
    assert!(tree.step(seconds(15)).is_empty());
    tree.put("/devices/23", printer("yes", seconds(30)))
        .expect("a name");
    let news = tree.step(seconds(15));
    assert!(matches!(&news.watches[0].1[..], [Change::Joined(_)]));
    let difference = &news.resolutions[0].1;
    assert_eq!(texts(&difference.changed), ["/devices/23"]);
    assert!(difference.left.is_empty() && difference.joined.is_empty());
    // The leases run out.
    assert_eq!(tree.due(), Some(seconds(30)));
    let news = tree.step(seconds(30));
    assert!(
        matches!(&news.watches[0].1[..], [Change::Left(name)] if name.as_str() == "/devices/23")
    );
    assert_eq!(
        tree.renew("/devices/23", seconds(50))
            .expect_err("has ended")
            .why,
        Why::Unknown
    );
    tree.step(seconds(40));
    assert_eq!(
        (tree.members(id), tree.len(), tree.due()),
        (vec![], 1, None)
    );
}

#[test]
fn circles_are_refused_with_their_path() {
    let mut tree = Tree::default();
    tree.put("/a", binding(&["/b"])).expect("no circle");
    tree.put("/b", binding(&["/c/*", "/x"])).expect("no circle");
    let refused = |tree: &mut Tree, name: &str, target: &str| {
        let refusal = tree.put(name, binding(&[target])).expect_err("a circle");
        assert_eq!(refusal.why, Why::Cycle);
        assert_eq!(tree.get(name), None, "nothing has changed");
        refusal.message
    };
    assert_eq!(
        refused(&mut tree, "/c/1", "/a"),
        "the name would lead to itself: `/c/1` → `/a` → `/b` → `/c/*` → `/c/1`"
    );
    assert_eq!(
        refused(&mut tree, "/s", "/s"),
        "the name would lead to itself: `/s` → `/s`"
    );
    assert_eq!(
        refused(&mut tree, "/s", "/**"),
        "the name would lead to itself: `/s` → `/**` → `/s`"
    );
    // Whatever values the layer may have.
    assert_eq!(
        refused(&mut tree, "/r/5/x", "/r/%room%/x"),
        "the name would lead to itself: `/r/5/x` → `/r/%room%/x` → `/r/5/x`"
    );
    assert_eq!(tree.refusals().of(Why::Cycle), 4);
    tree.put("/a", binding(&["/d"])).expect("no circle");
    tree.put("/c/1", binding(&["/a"]))
        .expect("no circle any more");
}

#[test]
fn a_flow_does_not_drive_a_layer_through_a_name_that_depends_on_it() {
    let mut tree = Tree::default();
    let message = |refused: Result<(), Refusal>| {
        let refusal = refused.expect_err("a circle");
        assert_eq!(refusal.why, Why::Cycle);
        refusal.message
    };
    let direct = tree.drive("room", query("/labs/%room%/badges")).map(drop);
    assert_eq!(
        message(direct),
        "the flow would drive the layer `room` through a name that depends on it: `/labs/%room%/badges`"
    );
    tree.put("/here", binding(&["/labs/%room%/badges"]))
        .expect("no circle");
    tree.put("/me", binding(&["/here", "/badge"]))
        .expect("no circle");
    let [dependency] = &tree.layers_of(&query("/me"))[..] else {
        panic!("one layer");
    };
    assert_eq!(&*dependency.layer, "room");
    assert_eq!(dependency.path.join(" "), "/me /here /labs/%room%/badges");
    assert_eq!(
        message(tree.drive("room", query("/me")).map(drop)),
        "the flow would drive the layer `room` through a name that depends on it: `/me` → `/here` → `/labs/%room%/badges`"
    );
    // A binding that would close the circle later is refused as well.
    let drive = tree.drive("room", query("/badge")).expect("no circle");
    assert_eq!(
        message(tree.put("/badge", binding(&["/near/%room%"])).map(drop)),
        "the flow would drive the layer `room` through a name that depends on it: `/badge` → `/near/%room%`"
    );
    assert_eq!(tree.get("/badge"), None);
    // And so is one that goes by way of another layer.
    tree.drive("floor", query("/near/%room%"))
        .expect("no circle");
    assert_eq!(
        message(tree.put("/badge", binding(&["/lift/%floor%"])).map(drop)),
        "the flow would drive the layer `room` through a name that depends on it: `/badge` → `/lift/%floor%` → `%floor%` → `/near/%room%`"
    );
    tree.undrive(drive);
    tree.put("/badge", binding(&["/lift/%floor%"]))
        .expect("no circle any more");
}

#[test]
fn nobody_reads_past_a_right() {
    let mut tree = Tree::default();
    for (number, name) in (0..).zip(["/public/a", "/public/b", "/private/a", "/users/ben/mail"]) {
        tree.put(name, Publisher(number)).expect("a name");
    }
    tree.put(
        "/public/all",
        binding(&["/private/**", "/users/%user%/*", "/public/a"]),
    )
    .expect("no circle");
    let rights = reader(&["/public/**", "/users/anna/**"]);
    let none = layers(&[]);
    // Wider than the right is narrowed, not refused.
    for text in ["/**", "/*/**", "/*/*", "/public/**", "/**/a"] {
        for member in tree.resolve(&query(text), &none, &rights) {
            assert!(
                member.name.as_str().starts_with("/public/"),
                "{text} gave {}",
                member.name
            );
        }
    }
    // A binding leads no further, and neither does the value of a layer.
    for user in ["ben", "*", "**", "anna/../ben", "../users/ben", "\\../ben"] {
        let found = tree.resolve(&query("/public/all"), &layers(&[("user", user)]), &rights);
        assert_eq!(texts(&found), ["/public/a"], "{user}");
        let found = tree.resolve(
            &query("/users/%user%/*"),
            &layers(&[("user", user)]),
            &rights,
        );
        assert_eq!(found, [], "{user}");
    }
    // A binding that may not be read leads nowhere, not even to what may be read.
    tree.put("/private/door", binding(&["/public/b"]))
        .expect("no circle");
    assert_eq!(tree.resolve(&query("/*/door"), &none, &rights), []);
    // Outside of the right as a whole is refused and counted, without telling
    // what there is.
    for text in [
        "/private/a",
        "/private/**",
        "/users/ben/mail",
        "/users/ben/**",
        "/nothing",
    ] {
        let refusal = tree
            .watch(query(text), Arc::clone(&rights))
            .expect_err(text);
        assert_eq!(refusal.why, Why::Right);
        let subscribed = tree.subscribe(query(text), Arc::clone(&none), Arc::clone(&rights));
        assert_eq!(subscribed.expect_err(text).why, Why::Right);
    }
    assert_eq!(tree.refusals().of(Why::Right), 10);
    // Changes are told within the right alone.
    let watch = tree.watch(query("/**"), Arc::clone(&rights)).expect("room");
    let id = tree.subscribe(query("/**"), none, rights).expect("room");
    tree.step(Time::MIN);
    tree.put("/private/b", Publisher(8)).expect("a name");
    tree.remove("/users/ben/mail");
    assert!(tree.step(Time::MIN).is_empty());
    tree.put("/users/anna/mail", Publisher(9)).expect("a name");
    let news = tree.step(Time::MIN);
    assert_eq!((news.watches[0].0, news.watches[0].1.len()), (watch, 1));
    assert_eq!(
        (news.resolutions[0].0, news.resolutions[0].1.joined.len()),
        (id, 1)
    );
    // Nobody says by a layer of his own what he has a right to.
    for text in ["/users/%user%/**", "/public/**?kind"] {
        assert!(Scope::parse([text]).is_err(), "{text}");
    }
    assert!(
        !Rights::default().read.allows("/public/a"),
        "no right is given by default"
    );
}

#[test]
fn what_a_hostile_peer_sends_is_refused_and_counted_and_harms_nobody() {
    let mut tree = Tree::new(Limits {
        entries: 3,
        queries: 2,
    });
    tree.put("/good", Publisher(1)).expect("a name");
    let id = subscribe(&mut tree, "/good", &[]);
    tree.step(Time::MIN);
    let slashes = "/".repeat(65_000);
    let long = format!("/{}", "ä".repeat(600));
    let levels = "/a".repeat(64);
    let sizes = [&*slashes, &long, &levels];
    let hostile = [
        "/../etc/passwd",
        "/a/../../b",
        "..",
        "/a\n/b",
        "/a\r",
        "/\u{0}",
        "/a\u{85}b",
        "/\u{2028}",
        "/a//b",
        "//",
        "/",
        "",
        "/a/",
        "/./a",
        "/#",
        "/a/#",
        "/+/a",
        "/a/*",
        "/**",
        "/a*",
        "/a?b",
        "/%room%",
        "/x-%",
        "/a\\",
        "/\\b",
        "user:/a",
        "a/b",
        "/a/\\./b\\",
    ];
    for text in sizes.into_iter().chain(hostile) {
        let refusal = tree.put(text, Publisher(2)).expect_err(text);
        assert!(
            !refusal.help.is_empty() && refusal.to_string().len() < 2500,
            "{text:?}"
        );
        assert!(!refusal.to_string().contains(char::is_control), "{text:?}");
        assert_eq!(refusal.why == Why::Size, sizes.contains(&text));
    }
    assert_eq!(tree.refusals().of(Why::Text), hostile.len() as u64);
    assert_eq!(tree.refusals().of(Why::Size), 3);
    // What is read outside of the tree is counted too.
    let read = utf8(b"/a/\xff\xfe").and_then(|text| Query::parse(text).map(drop));
    let refusal = tree.counted(read).expect_err("no text");
    assert_eq!(
        (refusal.why, refusal.span.expect("a place").start),
        (Why::Text, 3)
    );
    // Full is full, for names and for queries; what is there can be replaced.
    tree.put("/one", Publisher(2)).expect("a name");
    tree.put("/two", Publisher(3)).expect("a name");
    assert_eq!(
        tree.put("/three", Publisher(4)).expect_err("full").why,
        Why::Full
    );
    tree.put("/two", Publisher(5)).expect("is there already");
    tree.remove("/one");
    tree.put("/three", Publisher(4))
        .expect("there is room again");
    let watch = tree
        .watch(query("/**"), Arc::new(Rights::all()))
        .expect("room");
    let refused = tree.drive("layer", query("/good")).expect_err("full");
    assert_eq!(refused.why, Why::Full);
    tree.unwatch(watch);
    tree.drive("layer", query("/good")).expect("room again");
    // Those who did no harm have noticed nothing.
    tree.put("/good", Publisher(6)).expect("a name");
    let difference = told(&mut tree, id);
    assert_eq!((difference.left.len(), difference.joined.len()), (1, 1));
}

#[test]
fn what_services_say_is_limited() {
    let refused = |endpoint: &str, attributes: &[(&str, &str)]| {
        let service = Service::new(endpoint, attributes.iter().copied(), Time::MAX);
        service.expect_err("refused").why
    };
    assert_eq!(refused("a\nb", &[]), Why::Text);
    assert_eq!(refused(&"x".repeat(1025), &[]), Why::Size);
    assert_eq!(refused("", &[("a", "\u{1b}[31m")]), Why::Text);
    assert_eq!(refused("", &[("", "b")]), Why::Text);
    assert_eq!(refused("", &[("a", "1"), ("a", "2")]), Why::Text);
    let names: Vec<String> = (0..65).map(|i| i.to_string()).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "")).collect();
    assert_eq!(refused("", &many), Why::Size);
    assert!(Binding::new([query("/a?kind")]).is_err());
    let targets = (0..65_537).map(|i| query(&format!("/t/{i}")));
    assert_eq!(Binding::new(targets).expect_err("too many").why, Why::Size);
    let wildcards = |count| (0..count).map(|i| query(&format!("/**/{i}")));
    assert!(Binding::new(wildcards(64)).is_ok());
    assert_eq!(
        Binding::new(wildcards(65)).expect_err("too many").why,
        Why::Size
    );
}

/// Queries of one peer that are as bad as can be cost the others little.
#[test]
fn the_worst_queries_end_soon() {
    let mut tree = Tree::default();
    let rights = Arc::new(Rights::all());
    for number in 0..200 {
        let text = format!("{}/x{number}", "/**/a".repeat(31));
        tree.watch(query(&text), Arc::clone(&rights)).expect("room");
    }
    let deep = "/a".repeat(62);
    for number in 0..200 {
        tree.put(&format!("{deep}/{number}"), Publisher(number))
            .expect("a name");
    }
    tree.step(Time::MIN);
    let worst = query(&format!("{}/7", "/**/a".repeat(31)));
    let found = tree.resolve(&worst, &LayerValues::new(), &rights);
    assert_eq!(texts(&found), [format!("{deep}/7")]);
    // Each name by way of many bindings, a thousand ways in all.
    for level in 0..10 {
        for side in 0..2 {
            let targets = [0, 1].map(|side| query(&format!("/level/{}/{side}", level + 1)));
            tree.put(
                &format!("/level/{level}/{side}"),
                Binding::new(targets).expect("two"),
            )
            .expect("no circle");
        }
    }
    tree.put("/level/10/0", Publisher(1)).expect("a name");
    let found = tree.resolve(&query("/level/0/*"), &LayerValues::new(), &rights);
    assert_eq!(texts(&found), ["/level/10/0"]);
}

#[test]
fn a_list_shows_what_stands_there() {
    let mut tree = Tree::default();
    tree.put("/labs/5/temperature", Publisher(7))
        .expect("a name");
    tree.put(
        "/labs/5/printer",
        Service::new("ipp://p/", [("kind", "printer")], Time::MAX).expect("a service"),
    )
    .expect("a name");
    tree.put("/labs/5", binding(&["/labs/5/*"]))
        .expect("no circle");
    let shown = |text: &str| -> Vec<String> {
        let listed = tree.list(&query(text), &Rights::all());
        listed
            .iter()
            .map(|member| format!("{} {}", member.name, member.entry.kind()))
            .collect()
    };
    let all = [
        "/labs/5 binding",
        "/labs/5/printer service",
        "/labs/5/temperature stream",
    ];
    assert_eq!(shown("/labs/**"), all);
    assert_eq!(shown("/labs/**?kind"), all[1..2]);
    assert_eq!(shown("/labs/%room%"), all[..1]);
    assert_eq!(shown("/offices/**"), [""; 0]);
}

/// The goals of the project: as many names, sources and subscriptions.
#[test]
fn ten_thousand_sources_and_subscriptions() {
    let mut tree = Tree::default();
    let name = |number: u64| format!("/hosts/{}/sensors/{number}", number / 10);
    let mut ids = Vec::new();
    for number in 0..10_000 {
        ids.push(subscribe(&mut tree, &name(number), &[]));
    }
    for number in 0..100_000 {
        tree.put(&name(number), Publisher(number)).expect("a name");
    }
    let news = tree.step(seconds(0));
    assert_eq!(news.resolutions.len(), 10_000);
    assert!(
        news.resolutions
            .iter()
            .all(|(_, difference)| difference.joined.len() == 1)
    );
    for id in ids {
        tree.unsubscribe(id);
    }
    for number in 0..100_000 {
        tree.remove(&name(number)).expect("is there");
    }
    assert!(tree.step(seconds(1)).is_empty() && tree.is_empty());
}
