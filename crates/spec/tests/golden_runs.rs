//! The golden Rust is compiled here, as the code of a program, and run.

// The goldens name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_context::{Coordinator, Environment as _, Kind, Value};
use milieu_keys::{Options, Parsed};

macro_rules! goldens {
    ($($name:ident)*) => {$(
        #[deny(warnings, missing_docs, clippy::all)]
        mod $name {
            include!(concat!("golden/", stringify!($name), ".rs"));
        }
    )*};
}
goldens! { array documentation enumeration hostile keywords layers migration nested options paper readonly root secrets types }

#[test]
fn defaults_are_the_initial_values() {
    let types = types::Environment::default();
    assert!(types.boolean.yes && !types.boolean.zero);
    assert_eq!((types.short, types.unsigned_short), (i16::MIN, u16::MAX));
    assert_eq!((types.long, types.unsigned_long), (-1, u32::MAX));
    assert_eq!(types.long_long, i64::MIN);
    assert_eq!(types.unsigned_long_long, u64::MAX);
    assert_eq!(types.float.to_bits(), 0.1_f32.to_bits());
    assert_eq!(types.double.to_string(), "3.14");
    assert_eq!(types.unbounded.to_string(), "inf");
    assert_eq!(types.string, "a \"quoted\" text");
    assert_eq!(types.untyped, "");

    let level = enumeration::Environment::default().log.level;
    assert_eq!(level, enumeration::log::Level::Warning);
}

/// What a context reads by way of the table is what the struct says.
#[test]
fn the_table_describes_the_fields() {
    let coordinator = Coordinator::new();
    let types = coordinator.context::<types::Environment>().unwrap();
    assert_eq!(
        format!("{:?}", *types),
        format!("{:?}", types::Environment::initial())
    );
    let enumeration = coordinator.context::<enumeration::Environment>().unwrap();
    assert_eq!(enumeration.log.level, enumeration::log::Level::Warning);
    let hostile = coordinator.context::<hostile::Environment>().unwrap();
    assert_eq!(hostile.markup.rust, "back\\slash and \"quote\"");
    assert_eq!(hostile.markup.umlaut_größe, 0);
    let keywords = coordinator.context::<keywords::Environment>().unwrap();
    assert!(!keywords.r#type.r#match && !keywords.at.layer);
    assert_eq!((keywords.str.u32, keywords.r#type.own), (0, 0));
    let documented = coordinator.context::<documentation::Environment>().unwrap();
    assert_eq!(documented.weather.interval, 60);
}

#[test]
fn arrays_are_fields() {
    use array::{at, layer::Room, log::Severities};

    let coordinator = Coordinator::new();
    let mut cx = coordinator.context::<array::Environment>().unwrap();
    assert_eq!(cx.hosts_timeout, 5);
    assert!(cx.hosts.is_empty() && cx.rooms.ports.is_empty());
    coordinator.assign("/ports/#0", "80", None).unwrap();
    cx.sync();
    assert_eq!((&cx.ports[..], &cx.rooms.ports[..]), (&[80][..], &[80][..]));
    cx.set::<at::hosts>(&["alpha", "beta"]).unwrap();
    assert_eq!(cx.hosts, ["alpha", "beta"]);
    assert!(cx.set::<at::hosts>(&[]).is_err(), "one at least");
    cx.set::<at::log::severities>(&[Severities::Error]).unwrap();
    assert_eq!(cx.log.severities, [Severities::Error]);
    cx.with(Room("hall"), |cx| {
        cx.set::<at::rooms::ports>(&[1, 2, 3]).unwrap();
        assert!(cx.set::<at::rooms::ports>(&[0]).is_err());
        assert_eq!(cx.rooms.ports, [1, 2, 3]);
    });
    assert_eq!(cx.rooms.ports, [80]);

    let arguments = ["--port=1", "--port=2"].map(Into::into);
    let Parsed::Keys(keys) = array::options("array").parse(arguments, |_| None).unwrap() else {
        panic!("nobody asked for help")
    };
    let cx = Coordinator::with_keys(&keys).context::<array::Environment>();
    assert_eq!(cx.unwrap().rooms.ports, [1, 2]);
}

#[test]
fn printing_an_environment_shows_no_secret() {
    let coordinator = Coordinator::new();
    for (name, value) in [
        ("/sw/mail/%/password", "hunter2"),
        ("/sw/mail/pin", "1234"),
        ("/sw/mail/user", "ben"),
    ] {
        coordinator.assign(name, value, None).unwrap();
    }
    let cx = coordinator.context::<secrets::Environment>().unwrap();
    assert_eq!(
        (cx.sw.mail.password.as_str(), cx.sw.mail.pin),
        ("hunter2", 1234)
    );
    assert_eq!(
        format!("{:?}", *cx),
        "Environment { sw: Sw { mail: Mail { user: \"ben\", password: (secret), retries: 3, \
         pin: (secret) } } }"
    );
}

#[test]
fn markers_assign_and_layers_switch() {
    use nested::{Environment, at, layer::Session};

    let coordinator = Coordinator::new();
    let mut cx = coordinator.context::<Environment>().unwrap();
    assert_eq!(cx.sw.pi.language, "en");
    {
        let mut cx = cx.enter(Session("anna"));
        cx.set::<at::sw::pi::language>("de").unwrap();
        assert_eq!(cx.sw.pi.language, "de");
        assert_eq!(cx.name::<at::sw::pi::language>(), "/sw/pi/anna/language");
    }
    assert_eq!(cx.sw.pi.language, "en");
    cx.with(Session(String::from("anna")), |cx| {
        assert_eq!(cx.sw.pi.language, "de")
    });
    let german = cx.with(Session("anna"), |cx| {
        cx.without::<Session, _>(|cx| cx.sw.pi.language == "de")
    });
    assert!(!german);
}

#[test]
fn every_kind_of_value_is_assigned() {
    use types::at;

    let coordinator = Coordinator::new();
    let mut cx = coordinator.context::<types::Environment>().unwrap();
    cx.set::<at::boolean::zero>(true).unwrap();
    cx.set::<at::short>(-2).unwrap();
    cx.set::<at::unsigned_long_long>(7).unwrap();
    cx.set::<at::float>(1.5).unwrap();
    cx.set::<at::double>(f64::MIN_POSITIVE).unwrap();
    cx.set::<at::untyped>("text").unwrap();
    assert!(cx.boolean.zero);
    assert_eq!((cx.short, cx.unsigned_long_long), (-2, 7));
    assert_eq!((cx.float, cx.double), (1.5, f64::MIN_POSITIVE));
    assert_eq!(cx.untyped, "text");

    use enumeration::{at as of, log::Language};
    let mut cx = coordinator.context::<enumeration::Environment>().unwrap();
    cx.set::<of::log::language>(Language::CPlusPlus).unwrap();
    assert_eq!(cx.log.language, Language::CPlusPlus);
    coordinator.assign("/log/%/language", "Self", None).unwrap();
    cx.sync();
    assert_eq!(cx.log.language, Language::Self_);
    let refused = coordinator.assign("/log/%/language", "rust", None);
    assert!(refused.is_err(), "rust is not one of the variants");
}

#[test]
fn enums_are_read_and_written_as_text() {
    use enumeration::log::Level;

    assert_eq!("very verbose".parse(), Ok(Level::VeryVerbose));
    assert_eq!(format!("{:>14}", Level::VeryVerbose), "  very verbose");
    let error = "loud".parse::<Level>().unwrap_err().to_string();
    assert!(error.contains("error, warning, very verbose"), "{error}");
}

#[test]
fn layers_have_the_shape_of_their_type() {
    use layers::layer::{BatteryLow, Place, Profile, Session, Shutdown, Tenant};
    use milieu_context::Layer;

    fn id<L: Layer>(_: &L) -> &'static str {
        L::ID
    }
    assert_eq!(Shutdown.value(), "active");
    assert_eq!(
        (id(&BatteryLow), BatteryLow.value()),
        ("battery_low", "active".into())
    );
    assert_eq!((id(&Tenant(7)), Tenant(7).value()), ("tenant", "7".into()));
    assert_eq!(
        (id(&Place("lab")), Place("lab").value()),
        ("room", "lab".into())
    );
    assert_eq!(Session(String::from("anna")).value(), "anna");
    assert_eq!(Profile::Elitebook.value(), "elitebook");
    const { assert!(Tenant::INHERITED && !BatteryLow::INHERITED) }
}

#[test]
fn a_branch_is_an_environment_of_its_own() {
    let patterns: Vec<_> = root::Environment::VALUES
        .iter()
        .map(|value| value.pattern)
        .collect();
    assert_eq!(patterns, ["/sw/pi/%session%/language", "/sw/pi/page/rows"]);
    assert_eq!(root::Environment::default().page.rows, 20);
    assert_eq!(root::at::page::rows::INDEX, 1);
}

#[test]
fn the_command_line_is_that_of_the_specification() {
    let options: Options = options::options("station");
    let parse = |arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
        options.parse(arguments, |name| (name == "LANG").then(|| "fr".into()))
    };
    let Parsed::Keys(keys) = parse(&["-v", "show", "wind", "a", "b"]).unwrap() else {
        panic!("nobody asked for help")
    };
    let value = |name: &str| {
        let name = keys::Name::parse(name).unwrap();
        keys.lookup(name.as_str()).map(|key| key.value().to_owned())
    };
    assert_eq!(value("/verbose").as_deref(), Some("true"));
    assert_eq!(value("/language").as_deref(), Some("fr"));
    assert_eq!(value("/").as_deref(), Some("show"));
    assert_eq!(value("/show/sensor").as_deref(), Some("wind"));
    assert_eq!(value("/show/files/#1").as_deref(), Some("b"));

    let Parsed::Help(help) = parse(&["--help"]).unwrap() else {
        panic!("help was asked for")
    };
    assert!(help.contains("--language=LANGUAGE"), "{help}");

    let coordinator = Coordinator::with_keys(&keys);
    let cx = coordinator.context::<options::Environment>().unwrap();
    assert_eq!((&*cx.command, &*cx.show.sensor), ("show", "wind"));
    assert_eq!(cx.show.files, ["a", "b"]);
}

#[test]
fn the_text_is_kept_as_written() {
    let file = include_str!("golden/hostile.ini");
    assert_eq!(hostile::SPECIFICATION, file);
}

#[test]
fn kinds_are_those_of_the_fields() {
    fn kind<V: Value>() -> Kind {
        <V::Environment as context::Environment>::VALUES[V::INDEX].kind
    }
    assert_eq!(kind::<readonly::at::version>(), Kind::Bool);
    assert_eq!(kind::<paper::at::algorithm::accuracy>(), Kind::I32);
    assert_eq!(kind::<enumeration::at::log::level>(), Kind::Enum);
    assert_eq!(kind::<types::at::unsigned_short>(), Kind::U16);
}
