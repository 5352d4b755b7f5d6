//! `environment!` with a file and in place, and `layer!`.

// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_context::{Coordinator, Environment as _, Layer};

mod station {
    milieu_macros::environment!("tests/specifications/station.ini");
}

mod gpio {
    milieu_macros::environment!("tests/specifications/station.ini", root = "/hw/gpio");
}

mod watchdog {
    milieu_macros::environment! { r#"
        [/watchdog/%security%/enable]
        type=boolean
    "#, crate = crate::elsewhere }
}

mod elsewhere {
    pub(crate) use milieu_context as context;
}

#[test]
fn a_file_becomes_an_environment() {
    use station::{at, layer::Session, sw::pi::Language};

    let mut cx = Coordinator::new()
        .context::<station::Environment>()
        .unwrap();
    assert_eq!(cx.sw.pi.language, Language::En);
    assert_eq!(cx.hw.gpio.folder, "/sys/class/gpio");
    let mut cx = cx.enter(Session("anna"));
    cx.set::<at::sw::pi::language>(Language::De).unwrap();
    assert_eq!(cx.sw.pi.language, Language::De);
    let help = station::options("station").help::<&str>(&[]);
    assert!(help.contains("--language"), "{help}");
}

#[test]
fn a_branch_of_a_file_becomes_an_environment() {
    assert_eq!(gpio::Environment::initial().folder, "/sys/class/gpio");
    assert_eq!(gpio::Environment::VALUES.len(), 1);
}

#[test]
fn a_text_becomes_an_environment() {
    use watchdog::{Environment, at, layer::Security};

    let mut cx = Coordinator::new().context::<Environment>().unwrap();
    cx.with(Security("A"), |cx| {
        cx.set::<at::watchdog::enable>(true).unwrap();
        assert!(cx.watchdog.enable);
        assert_eq!(cx.name::<at::watchdog::enable>(), "/watchdog/A/enable");
    });
    assert!(!cx.watchdog.enable);
}

milieu_macros::layer! {
    /// Who is logged in.
    #[derive(Debug)]
    pub struct Session(String) = "session";
    struct Shutdown = "shutdown";
    #[inherited]
    struct Tenant(u32) = "tenant";
    struct Language<'a>(&'a str) = "language";
    struct Shared(std::sync::Arc<str>) = "shared";
    struct Measured<T: std::fmt::Display>(T) = "measured";
}

#[test]
fn layers_have_identifiers_and_values() {
    fn seen<L: Layer>(layer: L) -> (&'static str, String, bool) {
        (L::ID, layer.value().into_owned(), L::INHERITED)
    }
    let session = Session("anna".into());
    assert_eq!(format!("{session:?}"), "Session(\"anna\")");
    assert_eq!(seen(session), ("session", "anna".into(), false));
    assert_eq!(seen(Shutdown), ("shutdown", "active".into(), false));
    assert_eq!(seen(Tenant(7)), ("tenant", "7".into(), true));
    assert_eq!(seen(Language("de")), ("language", "de".into(), false));
    assert_eq!(seen(Shared("x".into())), ("shared", "x".into(), false));
    assert_eq!(seen(Measured(1.5)), ("measured", "1.5".into(), false));
}
