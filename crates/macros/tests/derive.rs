//! Environments that are the user's own structs.

// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_context::{Array, Assign, Coordinator, Environment as _, Kind, Text, Value};
use milieu_macros::{Choice, Environment, layer};

#[derive(Choice, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Language {
    En,
    #[choice("de-AT")]
    Austrian,
}

/// Limits of anything, used in two places.
#[derive(Environment, Debug)]
#[environment(at = limit)]
struct Limits {
    /// The least value.
    low: f64,
    #[key(default = 100.5)]
    high: f64,
}

#[derive(Environment, Debug)]
#[environment(root = "/sw/pi")]
struct Station {
    /// The language
    /// of the pages.
    #[key("%session%/language", default = "de-AT", env = ["LC_ALL", "LANG"], opt/long = "language")]
    language: Language,
    #[part("/sw/pi/wind")]
    wind: Limits,
    #[key("/sw/pi/%session%/name", default = "anna", check/length = "1-8", meta("x/own" = "mine"))]
    name: Text,
    #[part("/sw/pi/rain")]
    rain: Limits,
    #[key(default = -5, range = "-10-60", readonly)]
    timeout: i16,
    r#type: bool,
}

/// Floats at their limits.
#[derive(Environment)]
#[environment(root = "/floats", at = of_floats)]
struct Floats {
    #[key(default = 0.1)]
    single: f32,
    #[key(default = "-inf", range = "-inf-inf")]
    unbounded: f64,
    #[key(default = -1e-300)]
    small: f64,
}

layer! {
    struct Session(String) = "session";
}

fn patterns<E: context::Environment>() -> Vec<&'static str> {
    E::VALUES.iter().map(|value| value.pattern).collect()
}

fn metadata<V: Value>(name: &str) -> Option<&'static str> {
    let descriptor = &<V::Environment as context::Environment>::VALUES[V::INDEX];
    let found = descriptor.metadata.iter().find(|(key, _)| *key == name);
    found.map(|(_, text)| *text)
}

#[test]
fn patterns_are_joined_with_the_root_and_the_prefixes() {
    assert_eq!(
        patterns::<Station>(),
        [
            "/sw/pi/%session%/language",
            "/sw/pi/wind/low",
            "/sw/pi/wind/high",
            "/sw/pi/%session%/name",
            "/sw/pi/rain/low",
            "/sw/pi/rain/high",
            "/sw/pi/timeout",
            "/sw/pi/type",
        ]
    );
    assert_eq!(patterns::<Limits>(), ["/low", "/high"]);
}

#[test]
fn defaults_are_the_initial_values() {
    let station = Station::initial();
    assert_eq!(station.language, Language::Austrian);
    assert_eq!((station.wind.low, station.rain.high), (0.0, 100.5));
    assert_eq!(
        (&*station.name, station.timeout, station.r#type),
        ("anna", -5, false)
    );
}

#[test]
fn floats_start_as_they_are_written() {
    let floats = Floats::initial();
    assert_eq!(floats.single.to_bits(), 0.1_f32.to_bits());
    assert_eq!(floats.small.to_bits(), (-1e-300_f64).to_bits());
    assert_eq!(floats.unbounded.to_string(), "-inf");
}

#[test]
fn descriptors_say_kind_and_metadata() {
    let kinds: Vec<_> = Station::VALUES.iter().map(|value| value.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::Enum,
            Kind::F64,
            Kind::F64,
            Kind::Text,
            Kind::F64,
            Kind::F64,
            Kind::I16,
            Kind::Bool
        ]
    );
    assert_eq!(metadata::<at::language>("type"), Some("enum"));
    assert_eq!(metadata::<at::language>("check/enum/#1"), Some("de-AT"));
    assert_eq!(metadata::<at::language>("default"), Some("de-AT"));
    assert_eq!(metadata::<at::language>("env/#1"), Some("LANG"));
    assert_eq!(metadata::<at::language>("opt/long"), Some("language"));
    assert_eq!(
        metadata::<at::language>("description"),
        Some("The language\nof the pages.")
    );
    assert_eq!(metadata::<at::name>("x/own"), Some("mine"));
    assert_eq!(metadata::<at::timeout>("default"), Some("-5"));
    assert_eq!(metadata::<at::timeout>("type"), Some("short"));
    assert_eq!(
        metadata::<at::wind<limit::low>>("description"),
        Some("The least value.")
    );
}

/// Markers of parts count what stands before them.
#[test]
fn markers_lead_to_their_values() {
    fn pattern<V: Value<Environment = Station>>() -> &'static str {
        Station::VALUES[V::INDEX].pattern
    }
    assert_eq!(pattern::<at::name>(), "/sw/pi/%session%/name");
    assert_eq!(pattern::<at::wind<limit::high>>(), "/sw/pi/wind/high");
    assert_eq!(pattern::<at::rain<limit::low>>(), "/sw/pi/rain/low");
    assert_eq!(pattern::<at::timeout>(), "/sw/pi/timeout");
    assert_eq!(pattern::<at::r#type>(), "/sw/pi/type");
}

#[test]
fn a_context_reads_and_assigns_every_field() {
    fn assignable<V: Assign>() {}
    assignable::<at::rain<limit::high>>();

    let coordinator = Coordinator::new();
    let mut cx = coordinator.context::<Station>().unwrap();
    assert_eq!(format!("{:?}", *cx), format!("{:?}", Station::initial()));
    cx.set::<at::rain<limit::high>>(7.5).unwrap();
    cx.set::<at::r#type>(true).unwrap();
    assert_eq!((cx.wind.high, cx.rain.high, cx.r#type), (100.5, 7.5, true));
    {
        let mut cx = cx.enter(Session("berta".to_owned()));
        cx.set::<at::language>(Language::En).unwrap();
        cx.set::<at::name>("berta").unwrap();
        assert_eq!((cx.language, &*cx.name), (Language::En, "berta"));
        assert!(cx.set::<at::name>("far too long").is_err());
    }
    assert_eq!((cx.language, &*cx.name), (Language::Austrian, "anna"));
    assert_eq!(cx.part(|station| &station.rain).high, 7.5);
}

#[test]
fn choices_are_read_and_written_as_text() {
    assert_eq!(Language::TEXTS, ["en", "de-AT"]);
    assert_eq!("de-AT".parse(), Ok(Language::Austrian));
    assert_eq!(Language::En.to_string(), "en");
    let error = "fr".parse::<Language>().unwrap_err().to_string();
    assert!(error.contains("en, de-AT"), "{error}");
}

/// The expansion finds a struct that only a function knows.
#[test]
fn a_struct_may_be_local() {
    #[derive(Environment)]
    struct Local {
        #[key("/local/%session%/count", default = 3)]
        count: u64,
    }
    let mut cx = Coordinator::new().context::<Local>().unwrap();
    cx.set::<at::count>(4).unwrap();
    assert_eq!(cx.count, 4);
}

/// Every form of visibility gives markers that are as visible as the struct.
mod visible {
    pub(crate) mod inner {
        use milieu_macros::Environment;

        #[derive(Environment)]
        #[environment(root = "/visible", at = to_crate)]
        pub(crate) struct ToCrate {
            pub(crate) one: bool,
        }

        #[derive(Environment)]
        #[environment(root = "/visible", at = to_parent)]
        pub(super) struct ToParent {
            pub(super) two: bool,
        }

        #[derive(Environment)]
        #[environment(root = "/visible", at = to_path)]
        pub(in crate::visible) struct ToPath {
            pub(in crate::visible) three: bool,
        }

        #[derive(Environment)]
        #[environment(root = "/visible", at = to_all)]
        pub struct ToAll {
            pub four: bool,
        }
    }

    #[test]
    fn markers_are_as_visible_as_the_struct() {
        use inner::{to_all, to_crate, to_parent, to_path};
        use milieu_context::Coordinator;

        let coordinator = Coordinator::new();
        coordinator
            .context::<inner::ToCrate>()
            .unwrap()
            .set::<to_crate::one>(true)
            .unwrap();
        let mut cx = coordinator.context::<inner::ToParent>().unwrap();
        cx.set::<to_parent::two>(true).unwrap();
        assert!(cx.two);
        let mut cx = coordinator.context::<inner::ToPath>().unwrap();
        cx.set::<to_path::three>(true).unwrap();
        assert!(cx.three);
        coordinator
            .context::<inner::ToAll>()
            .unwrap()
            .set::<to_all::four>(true)
            .unwrap();
        assert!(coordinator.context::<inner::ToAll>().unwrap().four);
        assert!(coordinator.context::<inner::ToCrate>().unwrap().one);
    }
}

/// Keys that were called otherwise.
#[derive(Environment)]
#[environment(root = "/sw/pi", at = of_renamed)]
struct Renamed {
    #[key("%session%/language", default = "de-AT", was = ["/pi/lang/%session%"],
        meta("was/#0/convert" = "austrian -> de-AT"))]
    language: Language,
    #[key(secret, was = ["/pi/password"])]
    password: Text,
}

#[test]
fn what_an_environment_says_of_itself_migrates_old_keys() {
    use milieu_keys::{Key, KeySet, Migration, Name, Namespace, Origin, Secrets, SourceOf};

    let values = || {
        Renamed::VALUES
            .iter()
            .map(|value| (value.pattern, value.metadata))
    };
    let origin = Origin::new(SourceOf::File("pi.ini".to_owned()));
    let key = |name: &str, value| {
        Key::new(
            Namespace::User,
            &Name::parse(name).unwrap(),
            value,
            origin.clone(),
        )
    };
    let old = KeySet::from_iter([
        key("/pi/lang/%", "austrian"),
        key("/pi/password", "hunter2"),
    ]);
    let (keys, notices) = Migration::new(values()).unwrap().apply(old);
    let cx = Coordinator::with_keys(&keys).context::<Renamed>().unwrap();
    assert_eq!(
        (cx.language, cx.password.as_str()),
        (Language::Austrian, "hunter2")
    );
    assert_eq!(notices.len(), 2);
    let secrets = Secrets::new(values());
    assert!(secrets.contains("/pi/password") && !secrets.contains("/pi/lang/%"));
}

type Degrees = f64;
type Many = Array<Degrees>;

#[derive(Environment, Debug)]
#[environment(root = "/lists", at = of_lists)]
struct Lists {
    /// Whom to ask.
    #[key("%session%/hosts/#", check/length = "1-9", array/max = 3)]
    hosts: Array<Text>,
    /// Called as itself.
    ports: Array<u16>,
    #[key("languages/#")]
    languages: Array<Language>,
    #[key(type = "double", range = "1-2")]
    degrees: Array<Degrees>,
    #[key("many/#", type = "double", fallback = ["/lists/degrees/#"])]
    many: Many,
    #[part("/more")]
    more: More,
}

#[derive(Environment, Debug)]
#[environment(at = of_more)]
struct More {
    flags: Array<bool>,
}

#[test]
fn arrays_are_fields() {
    assert_eq!(
        patterns::<Lists>(),
        [
            "/lists/%session%/hosts/#",
            "/lists/ports/#",
            "/lists/languages/#",
            "/lists/degrees/#",
            "/lists/many/#",
            "/more/flags/#"
        ]
    );
    assert_eq!(Lists::VALUES[1].kind, Kind::Array(&Kind::U16));
    assert_eq!(Lists::VALUES[4].kind, Kind::Array(&Kind::F64));
    let coordinator = Coordinator::new();
    let mut cx = coordinator.context::<Lists>().unwrap();
    assert!(cx.hosts.is_empty() && cx.languages.is_empty() && cx.more.flags.is_empty());
    cx.set::<of_lists::ports>(&[80, 443]).unwrap();
    cx.set::<of_lists::languages>(&[Language::Austrian, Language::En])
        .unwrap();
    cx.set::<of_lists::degrees>(&[1.5]).unwrap();
    cx.set::<of_lists::more<of_more::flags>>(&[true, false])
        .unwrap();
    assert_eq!(cx.ports, [80, 443]);
    assert_eq!(cx.languages, [Language::Austrian, Language::En]);
    assert_eq!((&cx.degrees[..], &cx.many[..]), (&[1.5][..], &[1.5][..]));
    assert_eq!(cx.more.flags, [true, false]);
    let mut cx = cx.enter(Session("anna".into()));
    cx.set::<of_lists::hosts>(&["a", "b"]).unwrap();
    assert_eq!(cx.hosts, ["a", "b"]);
    assert!(cx.set::<of_lists::hosts>(&["a"; 4]).is_err());
    assert!(cx.set::<of_lists::hosts>(&[""]).is_err());
    coordinator
        .assign("/lists/languages/#1", "de-AT", None)
        .unwrap();
    assert!(
        coordinator
            .assign("/lists/languages/#1", "it", None)
            .is_err()
    );
    cx.sync();
    assert_eq!(cx.languages, [Language::Austrian; 2]);
}
