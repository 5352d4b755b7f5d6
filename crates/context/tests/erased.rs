//! Environments that are described while the program runs.

use milieu_context::{
    Allowed, ContextOptions, Coordinator, Erased, Fixed, Kind, LayerSet, Layout, LayoutValue,
    Named, Switch, Text, each_named,
};

/// What generated code of another language would declare.
#[repr(C)]
struct Station {
    enable: bool,
    interval: i64,
    language: Text,
}

const ENABLE: usize = 0;
const INTERVAL: usize = 1;
const LANGUAGE: usize = 2;

fn values() -> Vec<LayoutValue<'static>> {
    vec![
        LayoutValue {
            pattern: "/watchdog/%security%/enable",
            offset: std::mem::offset_of!(Station, enable),
            kind: Kind::Bool,
            metadata: vec![("type", "boolean")],
        },
        LayoutValue {
            pattern: "/station/%language%/interval",
            offset: std::mem::offset_of!(Station, interval),
            kind: Kind::I64,
            metadata: vec![("type", "long_long"), ("default", "60"), ("readonly", "")],
        },
        LayoutValue {
            pattern: "/station/%session%/language",
            offset: std::mem::offset_of!(Station, language),
            kind: Kind::Text,
            metadata: vec![("default", "en")],
        },
    ]
}

fn layout() -> &'static Layout {
    Layout::of(&values(), size_of::<Station>(), align_of::<Station>()).unwrap()
}

fn open(coordinator: &Coordinator) -> Erased {
    coordinator
        .erased(layout(), ContextOptions::new(), Allowed::default())
        .unwrap()
}

fn read(cx: &Erased) -> &Station {
    // SAFETY: the layout is that of the struct, and the borrow ends before the
    // next switch.
    unsafe { &*cx.environment().cast() }
}

#[test]
fn fields_are_those_of_the_struct() {
    let coordinator = Coordinator::new();
    coordinator
        .assign("/watchdog/A/enable", "true", None)
        .unwrap();
    let mut cx = open(&coordinator);
    let place = cx.environment();
    assert_eq!((read(&cx).enable, read(&cx).interval), (false, 60));
    assert_eq!(read(&cx).language, "en");

    let depth = cx.enter(Named("security", "A"));
    assert!(read(&cx).enable);
    assert_eq!(cx.name(ENABLE), "/watchdog/A/enable");
    assert!(cx.leave(depth) && !cx.leave(depth) && !cx.leave(0));
    assert!(!read(&cx).enable);

    cx.set(LANGUAGE, "de").unwrap();
    assert_eq!(read(&cx).language, "de");
    assert!(cx.set(ENABLE, "perhaps").is_err());
    assert!(cx.is_read_only(INTERVAL) && !cx.is_read_only(ENABLE));
    assert!(cx.is_default(INTERVAL) && !cx.is_default(LANGUAGE));
    cx.unset(LANGUAGE);
    assert_eq!(read(&cx).language, "en");
    assert_eq!(cx.environment(), place, "it stays where it is");
}

#[test]
fn contexts_of_a_struct_and_of_a_layout_share_keys_and_layers() {
    let coordinator = Coordinator::new();
    let (mut here, mut there) = (open(&coordinator), open(&coordinator));
    let anna = Fixed {
        id: "session",
        value: "anna",
        inherited: true,
    };
    let depth = here.enter(&[&anna as &dyn Switch, &Named("security", "A")][..]);
    here.set(LANGUAGE, "fr").unwrap();
    here.set(ENABLE, "true").unwrap();
    let fork = here.fork(Some("/pool/1"));
    assert_eq!(fork.role(), "/pool/1");
    assert_eq!(read(&fork).language, "fr");
    assert!(!read(&fork).enable, "only what is inherited stays");
    assert!(here.leave(depth));

    assert!(there.has_news());
    there.sync();
    let captured = {
        let depth = there.enter(anna);
        assert_eq!(read(&there).language, "fr");
        let captured = there.capture();
        there.leave(depth);
        captured
    };
    let second = {
        let depth = there.enter((Named("session", "ben"), Named("security", "B")));
        let captured = there.capture();
        there.leave(depth);
        captured
    };
    let depth = here.enter(&[&second as &dyn LayerSet, &Named("security", "A"), &captured][..]);
    assert_eq!(here.layer("session"), Some("anna"));
    assert_eq!(here.layer("security"), Some("A"));
    here.leave(depth);
    here.enter(&captured);
    assert_eq!(here.layer("session"), Some("anna"));

    here.activate(&here.following(LANGUAGE)).unwrap();
    assert_eq!(here.name(INTERVAL), "/station/fr/interval");
    there.sync();
    assert_eq!(there.name(INTERVAL), "/station/en/interval");
    there.deactivate(&Named("language", "")).unwrap();
    here.sync();
    assert_eq!(here.name(INTERVAL), "/station/%/interval");
    here.forget("session", "anna");
    assert_eq!(read(&here).language, "en");
}

#[test]
fn a_layer_that_each_context_evaluates_may_be_no_type() {
    let coordinator = Coordinator::new();
    let (mut here, mut there) = (open(&coordinator), open(&coordinator));
    let selected = there.identity();
    let only = each_named("security", Vec::new(), move |scope| {
        if scope.identity() == selected {
            "A"
        } else {
            ""
        }
        .to_owned()
    });
    here.activate(&only).unwrap();
    there.sync();
    assert_eq!(
        (here.layer("security"), there.layer("security")),
        (None, Some("A"))
    );

    let on_language = vec!["/station/%session%/language".to_owned()];
    let follows = each_named("security", on_language, |scope| {
        let language = scope.get("/station/%session%/language");
        language.unwrap_or_default().to_uppercase()
    });
    here.activate(&follows).unwrap();
    assert_eq!(here.layer("security"), Some("EN"));
    here.set(LANGUAGE, "de").unwrap();
    assert_eq!(here.layer("security"), Some("DE"));
}

#[test]
fn an_action_activates_values_of_any_environment() {
    let described = |pattern, metadata: &[(&'static str, &'static str)]| {
        let value = LayoutValue {
            pattern,
            offset: 0,
            kind: Kind::Text,
            metadata: metadata.to_vec(),
        };
        Layout::of(&[value], size_of::<Text>(), align_of::<Text>()).unwrap()
    };
    let other = described("/other/%session%/language", &[("default", "de")]);
    let wrong = described("no name", &[]);
    let back = described("/back/%language%", &[("layer/name", "language")]);
    let coordinator = Coordinator::new();
    let (mut here, mut there) = (open(&coordinator), open(&coordinator));
    let registration = coordinator.on_activation_named("alarm", move |it| {
        assert!(it.following(wrong, 0).is_err());
        let closing = it.following(back, 0).unwrap();
        assert!(it.activate(closing).is_err(), "it depends on itself");
        let layout = if it.value() == "other" {
            other
        } else {
            layout()
        };
        let index = if it.value() == "other" { 0 } else { LANGUAGE };
        let following = it.following(layout, index).unwrap();
        it.activate(following).unwrap();
    });
    here.activate(&Named("alarm", "active")).unwrap();
    there.enter(Named("session", "anna"));
    there.sync();
    there.set(LANGUAGE, "fr").unwrap();
    assert_eq!(here.name(INTERVAL), "/station/en/interval");
    assert_eq!(there.name(INTERVAL), "/station/fr/interval");
    here.activate(&Named("alarm", "other")).unwrap();
    assert_eq!(here.name(INTERVAL), "/station/de/interval");
    coordinator
        .assign("/other/anna/language", "it", None)
        .unwrap();
    there.sync();
    assert_eq!(there.name(INTERVAL), "/station/it/interval");
    drop(registration);
}

#[test]
fn what_is_not_allowed_does_nothing() {
    let coordinator = Coordinator::new();
    let allowed = Allowed {
        layers: false,
        shared: false,
    };
    let mut cx = coordinator
        .erased(layout(), ContextOptions::new(), allowed)
        .unwrap();
    let depth = cx.enter(Named("security", "A"));
    cx.activate(&Named("security", "A")).unwrap();
    assert_eq!(cx.name(ENABLE), "/watchdog/%/enable");
    assert!(cx.leave(depth));
    coordinator
        .assign("/watchdog/%/enable", "true", None)
        .unwrap();
    assert!(!cx.has_news() && !cx.wait(None));
    cx.sync();
    assert!(!read(&cx).enable);
}

#[test]
fn a_field_finds_its_mark() {
    let coordinator = Coordinator::new();
    let mut cx = open(&coordinator);
    let word = std::ptr::NonNull::from(&coordinator).cast();
    cx.mark(word);
    // SAFETY: `mark` has written it.
    let marked = unsafe { *cx.environment().cast::<std::ptr::NonNull<()>>().sub(1) };
    assert_eq!(marked, word);
}

#[test]
fn equal_tables_are_one_and_wrong_ones_are_refused() {
    assert!(std::ptr::eq(layout(), layout()));
    let (size, align) = (size_of::<Station>(), align_of::<Station>());
    let refused = |change: &dyn Fn(&mut Vec<LayoutValue<'static>>), size, align| {
        let mut values = values();
        change(&mut values);
        Layout::of(&values, size, align).unwrap_err().to_string()
    };
    let text = refused(&|values| values[INTERVAL].offset = 5, size, align);
    assert!(text.contains("/station/%language%/interval: offset 5 is not aligned"));
    let text = refused(&|values| values[INTERVAL].offset = 16, size, align);
    assert!(text.contains("inside another field"), "{text}");
    let text = refused(&|_| (), size - 1, align);
    assert!(text.contains("ends behind the struct"), "{text}");
    let text = refused(
        &|values| values[LANGUAGE].offset = usize::MAX - 7,
        size,
        align,
    );
    assert!(text.contains("ends behind the struct"), "{text}");
    let text = refused(&|_| (), size, 3);
    assert!(text.contains("alignment of 3"), "{text}");
    assert!(refused(&|_| (), size, 1).contains("not aligned"));

    // The rest is what any environment is refused for.
    let mut values = values();
    values[ENABLE].kind = Kind::Text;
    values[ENABLE].pattern = "/watchdog/#";
    let layout = Layout::of(&values[..1], size, align).unwrap();
    let opened = Coordinator::new().erased(layout, ContextOptions::new(), Allowed::default());
    assert!(opened.is_err_and(|error| error.to_string().contains("/watchdog/#")));
}
