//! Arrays as contextual values.

mod support;

use milieu_context::{
    Array, Context, Coordinator, Descriptor, Environment as _, Field, Kind, Named, OpenError, value,
};
use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf, rules::array_level};
use support::*;

/// As `derive(Choice)` makes it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq)]
enum Colour {
    Red,
    Green,
}

// SAFETY: the enum is `repr(u32)`, has no fields and counts from 0.
unsafe impl Field for Colour {
    const KIND: Kind = Kind::Enum;
    type Input<'a> = Colour;
    fn text<'a>(input: Colour) -> std::borrow::Cow<'a, str> {
        match input {
            Colour::Red => "red",
            Colour::Green => "green",
        }
        .into()
    }
}

#[test]
fn elements_can_be_variants_of_an_enum() {
    #[repr(C)]
    struct Colours {
        all: Array<Colour>,
        one: Colour,
    }
    // SAFETY: offsets and kinds are taken from the fields, and the variants are listed.
    unsafe impl milieu_context::Environment for Colours {
        const VALUES: &'static [Descriptor] = &[
            Descriptor {
                pattern: "/colours/#",
                offset: std::mem::offset_of!(Colours, all),
                kind: <Array<Colour> as Field>::KIND,
                metadata: COLOURS,
            },
            Descriptor {
                pattern: "/colour",
                offset: std::mem::offset_of!(Colours, one),
                kind: Kind::Enum,
                metadata: COLOURS,
            },
        ];
        fn initial() -> Self {
            Colours {
                all: Array::default(),
                one: Colour::Red,
            }
        }
    }
    const COLOURS: &[(&str, &str)] = &[
        ("type", "enum"),
        ("check/enum/#0", "red"),
        ("check/enum/#1", "green"),
    ];
    struct All;
    // SAFETY: the index is that of the field.
    unsafe impl milieu_context::Value for All {
        type Environment = Colours;
        type Type = Array<Colour>;
        const INDEX: usize = 0;
    }
    impl milieu_context::Assign for All {}

    let coordinator = coordinator(&[("/colours/#0", "green")]);
    let mut cx: Context<Colours> = coordinator.context().unwrap();
    assert_eq!((&cx.all[..], cx.one), (&[Colour::Green][..], Colour::Red));
    cx.set::<All>(&[Colour::Red, Colour::Green, Colour::Red])
        .unwrap();
    assert_eq!(cx.all, [Colour::Red, Colour::Green, Colour::Red]);
    let error = coordinator.assign("/colours/#1", "blue", None).unwrap_err();
    assert!(error.to_string().contains("red"), "{error}");
}

environment! { mod env;
    hosts: Array<Text> = "/hosts/#" { "check/length" = "1-20" };
    ports: Array<u16> = "/ports/#" { "check/range" = "1-9000", "array/min" = "2", "array/max" = "12" };
    flags: Array<bool> = "/flags/#";
    ratios: Array<f64> = "/%a%/ratios/#";
    near: Array<Text> = "/rooms/%room%/hosts/#" { "fallback/#0" = "/hosts/#" };
    names: Array<Text> = "/names/#" { "override/#0" = "/given/%a%/names/#" };
    list: Text = "/%hosts%/list" { "default" = "none" };
    first: Text = "/hosts/%b%";
}
use Namespace::{Proc, System, User};
use env::{Environment, at};

type Cx = Context<Environment>;

fn room(name: &str) -> Named<'_> {
    Named("room", name)
}

fn keys(all: &[(Namespace, &str, &str)]) -> KeySet {
    let origin = |namespace: Namespace, line| {
        let source = SourceOf::File(format!("{namespace}.ini"));
        Origin::at(&source.into(), line)
    };
    all.iter()
        .zip(1..)
        .map(|((namespace, name, text), line)| {
            let name = Name::parse(name).unwrap();
            Key::new(*namespace, &name, text, origin(*namespace, line))
        })
        .collect()
}

fn open(all: &[(Namespace, &str, &str)]) -> (Coordinator, Cx, Cx) {
    let coordinator = Coordinator::with_keys(&keys(all));
    let cx = coordinator.context().unwrap();
    let peer = coordinator.context().unwrap();
    (coordinator, cx, peer)
}

/// What opening says about wrong keys.
fn refusal(all: &[(Namespace, &str, &str)]) -> String {
    let coordinator = Coordinator::with_keys(&keys(all));
    let error = coordinator.context::<Environment>().unwrap_err();
    error.to_string()
}

#[test]
fn elements_of_every_type_are_read_in_order() {
    let (_c, cx, _) = open(&[
        (User, "/hosts/#0", "alpha"),
        (User, "/hosts/#1", "beta"),
        (User, "/ports/#0", "80"),
        (User, "/ports/#1", "443"),
        (User, "/flags/#0", "yes"),
        (User, "/flags/#1", "0"),
        (User, "/flags/#2", "1"),
        (User, "/%/ratios/#0", "0.25"),
    ]);
    assert_eq!(cx.hosts, ["alpha", "beta"]);
    assert_eq!(cx.ports, [80, 443]);
    assert_eq!(cx.flags, [true, false, true]);
    assert_eq!(cx.ratios, [0.25]);
    assert_eq!(cx.hosts[1].len(), 4);
    assert_eq!(
        cx.ports.iter().map(|port| u32::from(*port)).sum::<u32>(),
        523
    );
    assert_eq!(cx.name::<at::hosts>(), "/hosts/#");
    let origin = cx.origin::<at::hosts>().unwrap().to_string();
    assert_eq!(origin, "user.ini:1");
    assert!(!cx.is_default::<at::hosts>() && cx.is_default::<at::names>());
    assert!(cx.names.is_empty() && cx.near == ["alpha", "beta"]);
}

#[test]
fn an_assignment_replaces_all_elements_in_one_publication() {
    let (coordinator, mut cx, mut peer) = open(&[]);
    cx.set::<at::hosts>(&["a", "b", "c"]).unwrap();
    assert_eq!(cx.hosts, ["a", "b", "c"]);
    assert!(peer.hosts.is_empty());
    peer.sync();
    assert_eq!(peer.hosts, ["a", "b", "c"]);
    peer.set::<at::hosts>(&["d"]).unwrap();
    peer.set::<at::ports>(&[1, 2]).unwrap();
    assert_eq!(cx.hosts.len(), 3);
    cx.sync();
    assert_eq!((cx.hosts.len(), &*cx.hosts[0]), (1, "d"));
    assert_eq!(cx.ports, [1, 2]);
    let held = coordinator.require_lock();
    let names: Vec<&str> = held.assigned().iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["/hosts/#0", "/ports/#0", "/ports/#1"]);
    drop(held);
    cx.unset::<at::hosts>();
    peer.sync();
    assert!(cx.hosts.is_empty() && peer.hosts.is_empty());
    assert!(cx.is_default::<at::hosts>());
    assert_eq!(coordinator.require_lock().entries().len(), 2);
}

#[test]
fn many_elements_keep_their_order_and_end_at_a_gap() {
    let (coordinator, mut cx, _) = open(&[]);
    let many = size(120, 120, 12);
    let texts: Vec<String> = (0..many).map(|i| format!("host {i}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    cx.set::<at::hosts>(&texts).unwrap();
    assert_eq!(cx.hosts, texts[..]);
    let eleventh = format!("/hosts/{}", array_level(10));
    assert_eq!(eleventh, "/hosts/#_10");
    coordinator.assign(&eleventh, "another", None).unwrap();
    cx.sync();
    assert_eq!((&*cx.hosts[10], cx.hosts.len()), ("another", many));
    coordinator.remove(&eleventh).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, texts[..10]);
    // What is behind the gap is still there, and goes with the next assignment.
    coordinator.assign(&eleventh, "back", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts.len(), many);
    coordinator.remove(&eleventh).unwrap();
    cx.set::<at::hosts>(&texts[..10]).unwrap();
    assert_eq!(cx.hosts, texts[..10]);
    coordinator.assign(&eleventh, "last", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts.len(), 11);
}

#[test]
fn one_element_changes_from_outside() {
    let (coordinator, mut cx, mut peer) = open(&[]);
    cx.set::<at::hosts>(&["a", "b", "c"]).unwrap();
    peer.sync();
    coordinator.assign("/hosts/#1", "B", None).unwrap();
    assert_eq!(peer.hosts, ["a", "b", "c"]);
    peer.sync();
    assert_eq!(peer.hosts, ["a", "B", "c"]);
    coordinator.assign("/hosts/#3", "d", None).unwrap();
    coordinator.assign("/hosts/#5", "f", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["a", "B", "c", "d"]);
    coordinator.assign("/hosts/#4", "e", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["a", "B", "c", "d", "e", "f"]);
    coordinator.remove("/hosts/#0").unwrap();
    cx.sync();
    assert!(cx.hosts.is_empty());
    // A value that a layer makes the name of an element is one.
    let mut inner = cx.enter(B("#0"));
    inner.set::<at::first>("first").unwrap();
    assert_eq!(inner.first, "first");
    assert_eq!(inner.hosts, ["first", "B", "c", "d", "e", "f"]);
    inner.unset::<at::first>();
    assert!(inner.hosts.is_empty());
    drop(inner);
    peer.sync();
    assert!(peer.hosts.is_empty());
    let mut inner = cx.enter(B("#"));
    let error = inner.set::<at::first>("first").unwrap_err().to_string();
    assert!(error.contains("number the elements, `#0`"), "{error}");
    inner.set::<at::first>("").unwrap();
    assert!(inner.hosts.is_empty());
}

#[test]
fn arrays_follow_layers_fallbacks_and_overrides() {
    let (coordinator, mut cx, mut peer) = open(&[
        (User, "/hosts/#0", "everywhere"),
        (User, "/rooms/kitchen/hosts/#0", "oven"),
        (User, "/rooms/kitchen/hosts/#1", "fridge"),
        (User, "/rooms/hall/hosts/#1", "behind a gap"),
        (User, "/given/%/names/#0", "override"),
        (User, "/given/1/names/#0", "one"),
        (User, "/given/1/names/#1", "two"),
    ]);
    assert_eq!(cx.near, ["everywhere"]);
    cx.with(room("kitchen"), |cx| {
        assert_eq!(cx.near, ["oven", "fridge"]);
        assert_eq!(cx.name::<at::near>(), "/rooms/kitchen/hosts/#");
        cx.with(room("hall"), |cx| assert_eq!(cx.near, ["everywhere"]));
        assert_eq!(cx.near, ["oven", "fridge"]);
        cx.set::<at::near>(&["sink"]).unwrap();
        assert_eq!(cx.near, ["sink"]);
    });
    assert_eq!(cx.near, ["everywhere"]);
    assert_eq!(cx.names, ["override"]);
    cx.with(A("1"), |cx| assert_eq!(cx.names, ["one", "two"]));
    peer.activate(room("kitchen")).unwrap();
    assert_eq!(peer.near, ["sink"]);
    cx.sync();
    assert_eq!(cx.near, ["sink"]);
    cx.deactivate_named("room").unwrap();
    cx.forget(room_layer("kitchen"));
    cx.with(room("kitchen"), |cx| assert_eq!(cx.near, ["everywhere"]));
    coordinator.remove("/hosts/#0").unwrap();
    cx.sync();
    assert!(cx.near.is_empty() && cx.hosts.is_empty());
    // What only others lead to need not keep the rules; it counts if it does.
    coordinator.assign("/given/%/names/#0", "", None).unwrap();
    cx.sync();
    assert_eq!(cx.names, [""]);
}

#[derive(Debug)]
struct Room<'a>(&'a str);
impl milieu_context::Layer for Room<'_> {
    const ID: &'static str = "room";
    fn value(&self) -> std::borrow::Cow<'_, str> {
        self.0.into()
    }
}

fn room_layer(name: &str) -> Room<'_> {
    Room(name)
}

#[test]
fn every_wrong_element_is_reported_when_the_environment_opens() {
    let error = refusal(&[
        (User, "/ports/#0", "80"),
        (User, "/ports/#1", "99999"),
        (System, "/ports/#0", "many"),
        (System, "/ports/#1", "9"),
        (User, "/hosts/#0", "fine"),
        (User, "/hosts/#9", ""),
    ]);
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    assert!(lines[0].starts_with("user.ini:6: /hosts/#9: ``"), "{error}");
    assert!(
        lines[1].starts_with("system.ini:3: /ports/#0: `many`"),
        "{error}"
    );
    assert!(
        lines[2].starts_with("user.ini:2: /ports/#1: `99999`"),
        "{error}"
    );
    let misnamed: Vec<(Namespace, String)> = (0..11)
        .map(|index| (User, format!("/hosts/#{index}")))
        .collect();
    let misnamed: Vec<_> = misnamed
        .iter()
        .map(|(n, name)| (*n, name.as_str(), "x"))
        .collect();
    assert_eq!(
        refusal(&misnamed),
        "user.ini:11: /hosts/#10: `#10` is not what this element is called; call it `#_10` \
         (rule array)"
    );
    assert_eq!(
        refusal(&[(User, "/hosts/#", "a, b")]),
        "user.ini:1: /hosts/#: `a, b` stands at the array itself; number the elements, `#0`, \
         `#1`, or leave this empty to say that there are none (rule array)"
    );
}

#[test]
fn the_number_of_elements_is_checked() {
    assert_eq!(
        refusal(&[(User, "/ports/#0", "80"), (System, "/ports/#0", "1")]),
        "user.ini:1: /ports/#: `1` is too small a number of elements; give 2 or more, or remove \
         them all (rule array/min=2)"
    );
    let many: Vec<String> = (0..13)
        .map(|i| format!("/ports/{}", array_level(i)))
        .collect();
    let many: Vec<_> = many
        .iter()
        .map(|name| (System, name.as_str(), "1"))
        .collect();
    let error = refusal(&many);
    assert!(
        error.starts_with("system.ini:1: /ports/#: `13` is too great"),
        "{error}"
    );

    let (coordinator, mut cx, _) = open(&[(User, "/ports/#0", "80"), (User, "/ports/#1", "81")]);
    let error = cx.set::<at::ports>(&[1]).unwrap_err();
    assert_eq!(error.name, "/ports/#");
    assert_eq!(error.violation.rule, "array/min=2");
    assert!(cx.set::<at::ports>(&[]).is_err());
    assert!(cx.set::<at::ports>(&[1; 13]).is_err());
    let error = cx.set::<at::ports>(&[1, 0]).unwrap_err();
    assert_eq!(error.name, "/ports/#1");
    assert!(coordinator.remove("/ports/#1").is_err());
    assert!(coordinator.assign("/ports/#1", "0", None).is_err());
    assert!(coordinator.assign("/ports/#", "", None).is_err());
    assert_eq!(cx.ports, [80, 81]);
    assert!(!cx.has_news());
    cx.set::<at::ports>(&[1; 12]).unwrap();
    assert!(coordinator.assign("/ports/#_12", "5", None).is_err());
    let one = keys(&[(User, "/ports/#0", "5")]);
    cx.unset::<at::ports>();
    let invalid = coordinator.replace(User, &KeySet::new(), &one).unwrap_err();
    assert_eq!((invalid.len(), invalid[0].name.as_str()), (1, "/ports/#"));
    assert!(cx.ports.is_empty());
}

#[test]
fn an_array_comes_from_one_namespace_as_a_whole() {
    let (coordinator, mut cx, mut peer) = open(&[
        (System, "/hosts/#0", "x"),
        (System, "/hosts/#1", "y"),
        (System, "/hosts/#2", "z"),
        (User, "/hosts/#1", "alone"),
    ]);
    assert_eq!(cx.hosts, ["x", "y", "z"]);
    assert_eq!(cx.elements("/hosts/#").unwrap(), ["x", "y", "z"]);
    cx.set::<at::hosts>(&["a"]).unwrap();
    assert_eq!(cx.hosts, ["a"]);
    assert_eq!(cx.elements("/hosts/#").unwrap(), ["a"]);
    peer.sync();
    assert_eq!(peer.hosts, ["a"]);
    cx.set::<at::hosts>(&[]).unwrap();
    peer.sync();
    assert!(cx.hosts.is_empty() && peer.hosts.is_empty());
    assert!(
        !cx.is_default::<at::hosts>(),
        "somebody says that there are none"
    );
    cx.unset::<at::hosts>();
    peer.sync();
    assert_eq!(peer.hosts, ["x", "y", "z"]);
    let origin = peer.origin::<at::hosts>().unwrap().to_string();
    assert_eq!(origin, "system.ini:1");
    assert_eq!(coordinator.require_lock().in_namespace(User).len(), 0);
    // From an option, the whole is the option's.
    let options = keys(&[(Proc, "/hosts/#0", "option")]);
    coordinator.replace(Proc, &KeySet::new(), &options).unwrap();
    peer.sync();
    assert_eq!(peer.hosts, ["option"]);
}

#[test]
fn to_change_one_element_of_somebody_elses_array_is_to_take_it_over() {
    let system = [
        (System, "/hosts/#0", "x"),
        (System, "/hosts/#1", "y"),
        (System, "/hosts/#2", "z"),
        (User, "/hosts/#4", "of no use"),
    ];
    let (coordinator, mut cx, _) = open(&system);
    coordinator.assign("/hosts/#1", "b", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["x", "b", "z"]);
    assert_eq!(coordinator.require_lock().assigned().len(), 3);
    cx.unset::<at::hosts>();
    assert_eq!(cx.hosts, ["x", "y", "z"]);
    coordinator.assign("/hosts/#3", "w", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["x", "y", "z", "w"]);
    cx.unset::<at::hosts>();
    coordinator.assign("/hosts/#7", "too far", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["x", "y", "z"]);
    // The user's file is read as it is.
    let origin = Origin::new(SourceOf::File("user.ini".into()));
    coordinator.assign("/hosts/#1", "b", Some(origin)).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["x", "y", "z"]);
    // Where somebody says that there are none, the first one is the first.
    let (coordinator, mut cx, _) = open(&[(System, "/hosts/#", ""), (User, "/hosts/#0", "u")]);
    assert_eq!(cx.hosts, ["u"]);
    cx.set::<at::hosts>(&[]).unwrap();
    coordinator.assign("/hosts/#0", "first", None).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["first"]);
    coordinator.assign("/hosts/#", "", None).unwrap();
    cx.sync();
    assert!(cx.hosts.is_empty());
}

#[test]
fn a_source_replaces_arrays_as_wholes() {
    let before = keys(&[
        (User, "/hosts/#0", "a"),
        (User, "/hosts/#1", "b"),
        (User, "/names/#0", "n"),
        (User, "/flags/#0", "1"),
        (User, "/flags/#1", "1"),
    ]);
    let coordinator = Coordinator::with_keys(&before);
    let mut cx: Cx = coordinator.context().unwrap();
    cx.set::<at::hosts>(&["mine"]).unwrap();
    cx.unset::<at::names>();
    let after = keys(&[
        (User, "/hosts/#0", "a"),
        (User, "/hosts/#1", "b"),
        (User, "/hosts/#2", "c"),
        (User, "/names/#0", "n"),
        (User, "/flags/#0", "1"),
        (User, "/rooms/hall/hosts/#0", "lamp"),
    ]);
    let changed = coordinator.replace(User, &before, &after).unwrap();
    let changed: Vec<&str> = changed.iter().map(|changed| &*changed.name).collect();
    assert_eq!(changed, ["/flags/#1", "/rooms/hall/hosts/#0"]);
    cx.sync();
    assert_eq!(cx.hosts, ["mine"]);
    assert!(cx.names.is_empty());
    assert_eq!(cx.flags, [true]);
    cx.with(room("hall"), |cx| assert_eq!(cx.near, ["lamp"]));
    // The file says what the program says, and what it had not said before.
    let last = keys(&[
        (User, "/hosts/#0", "mine"),
        (User, "/names/#0", "n"),
        (User, "/names/#1", "m"),
    ]);
    coordinator.replace(User, &after, &last).unwrap();
    cx.sync();
    assert_eq!(cx.names, ["n", "m"]);
    assert!(cx.flags.is_empty());
    let origin = cx.origin::<at::hosts>().unwrap().to_string();
    assert_eq!(origin, "user.ini:1");
    coordinator.replace(User, &last, &before).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["a", "b"]);
    // Removed by the program, it comes back when the file says less of it.
    cx.unset::<at::hosts>();
    coordinator.replace(User, &before, &before).unwrap();
    let less = keys(&[(User, "/hosts/#0", "a")]);
    coordinator.replace(User, &before, &less).unwrap();
    cx.sync();
    assert_eq!(cx.hosts, ["a"]);
}

#[test]
fn held_arrays_stand_still_and_own_ones_do_not() {
    let (coordinator, mut cx, mut peer) = open(&[(User, "/hosts/#0", "a")]);
    let held = coordinator.require_lock();
    cx.set::<at::hosts>(&["b", "c"]).unwrap();
    coordinator.assign("/hosts/#2", "d", None).unwrap();
    for cx in [&mut cx, &mut peer] {
        cx.sync();
    }
    assert_eq!(cx.hosts, ["b", "c"]);
    assert_eq!(peer.hosts, ["a"]);
    for _ in 0..100 {
        cx.set::<at::hosts>(&["b"]).unwrap();
    }
    cx.sync();
    assert_eq!(cx.hosts, ["b"]);
    assert_eq!(held.entries().len(), 1);
    drop(held);
    for cx in [&mut cx, &mut peer] {
        cx.sync();
        assert_eq!(cx.hosts, ["b"]);
    }
}

#[test]
fn an_environment_that_opens_during_a_hold_has_its_arrays() {
    environment! { mod late; numbers: Array<i64> = "/numbers/#"; }
    let (coordinator, mut cx, _) = open(&[]);
    coordinator.assign("/numbers/#0", "7", None).unwrap();
    let held = coordinator.require_lock();
    coordinator.assign("/numbers/#1", "8", None).unwrap();
    let mut late: Context<late::Environment> = coordinator.context().unwrap();
    assert_eq!(late.numbers, [7]);
    drop(held);
    assert_eq!(late.numbers, [7], "before it synchronizes");
    late.sync();
    assert_eq!(late.numbers, [7, 8]);
    cx.sync();
    assert_eq!(cx.elements("/numbers/#").unwrap(), ["7", "8"]);
}

#[test]
fn an_environment_that_comes_later_shares_arrays_and_adds_its_rules() {
    environment! { mod later;
        of: Array<Text> = "/rooms/%b%/hosts/#" { "check/length" = "1-6", "array/max" = "2" };
        soft: Array<i32> = "/numbers/#" { "fallback/#0" = "/given/%a%/names/#" };
    }
    environment! { mod last; given: Array<i32> = "/given/%c%/names/#"; }
    let (coordinator, mut cx, _) = open(&[
        (User, "/rooms/hall/hosts/#0", "lamp"),
        (User, "/given/1/names/#0", "1"),
        (User, "/given/1/names/#1", "2"),
    ]);
    let mut cx = cx.enter((room("hall"), A("1")));
    assert_eq!((&*cx.near[0], &*cx.names[1]), ("lamp", "2"));
    let mut later: Context<later::Environment> = coordinator.context().unwrap();
    let mut later = later.enter((B("hall"), A("1")));
    assert_eq!(later.of, ["lamp"]);
    assert!(later.soft.is_empty(), "it is known as texts");
    assert!(cx.set::<at::near>(&["a", "b", "c"]).is_err());
    assert!(cx.set::<at::near>(&["a long one"]).is_err());
    cx.set::<at::near>(&["a", "b"]).unwrap();
    later.sync();
    assert_eq!(later.of, ["a", "b"]);
    // What was an override as texts is another's array of numbers from now on.
    let last: Context<last::Environment> = coordinator.context().unwrap();
    drop(last);
    cx.sync();
    later.sync();
    assert!(cx.names.is_empty());
    assert_eq!(later.soft, [1, 2]);
    assert!(coordinator.assign("/given/1/names/#0", "x", None).is_err());
}

#[test]
fn an_array_as_a_layer_is_one_line_for_each_element() {
    let (coordinator, mut cx, _) = open(&[]);
    coordinator.assign("/a\nb/list", "both", None).unwrap();
    cx.sync();
    let mut cx = cx.enter(value::<at::hosts>());
    assert_eq!(cx.list, "none");
    assert_eq!(cx.layer_named("hosts"), None);
    cx.set::<at::hosts>(&["a", "b"]).unwrap();
    assert_eq!(cx.layer_named("hosts").as_deref(), Some("a\nb"));
    assert_eq!(cx.list, "both");
    coordinator.remove("/hosts/#1").unwrap();
    cx.sync();
    assert_eq!(cx.list, "none");
}

#[test]
fn forks_parts_and_frames_read_what_is_alive() {
    let (_c, mut cx, mut peer) = open(&[]);
    cx.set::<at::hosts>(&["a", "b"]).unwrap();
    let mut fork = cx.fork();
    {
        let mut inner = cx.enter(room("hall"));
        inner.set::<at::near>(&["lamp", "door"]).unwrap();
        peer.set::<at::hosts>(&["of the peer"]).unwrap();
        inner.sync();
        assert_eq!(inner.near, ["lamp", "door"]);
        assert_eq!(inner.hosts, ["of the peer"]);
        let mut part = inner.part(|e| &e.near);
        part.without::<Room<'_>, _>(|part| assert_eq!(**part, ["of the peer"]));
        assert_eq!(part.len(), 2);
    }
    assert_eq!(cx.near, ["of the peer"]);
    drop((cx, peer));
    assert_eq!((fork.hosts.len(), fork.near.len()), (2, 2));
    fork.sync();
    assert_eq!(fork.hosts, ["of the peer"]);
}

#[test]
fn an_array_is_one_just_where_its_name_says_so() {
    environment! { mod field; hosts: Text = "/hosts/#"; }
    environment! { mod name; hosts: Array<Text> = "/hosts"; }
    environment! { mod nested; hosts: Text = "/hosts/#/name"; }
    environment! { mod default; hosts: Array<i32> = "/hosts/#" { "default" = "5" }; }
    environment! { mod other; hosts: Array<Text> = "/hosts/#" { "fallback/#0" = "/host" }; }
    environment! { mod types; ports: Array<i32> = "/%x%/#"; }
    fn refused<E: milieu_context::Environment>() -> String {
        let coordinator = Coordinator::new();
        coordinator.context::<E>().unwrap_err().to_string()
    }
    let error = refused::<field::Environment>();
    assert_eq!(
        error,
        "/hosts/#: the name is that of an array, so make the field an `Array`"
    );
    assert!(refused::<name::Environment>().contains("let the name end in `/#`"));
    assert!(refused::<nested::Environment>().contains("let a layer tell the elements apart"));
    assert!(refused::<default::Environment>().contains("has no default"));
    assert!(refused::<other::Environment>().contains("let its name end in `/#` as well"));
    let (coordinator, _cx, _) = open(&[]);
    let error = coordinator.context::<types::Environment>().unwrap_err();
    assert!(matches!(error, OpenError::Types { .. }), "{error}");
    assert_eq!(
        Environment::VALUES[0].kind.width(),
        size_of::<Array<bool>>()
    );
}
