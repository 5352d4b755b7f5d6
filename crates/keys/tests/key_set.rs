//! Key sets against a model, and what is promised about their order.

use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
use std::collections::BTreeMap;
use std::sync::Arc;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn key(namespace: Namespace, text: &str, value: &str) -> Key {
    Key::new(
        namespace,
        &name(text),
        value,
        Origin::new(SourceOf::Program),
    )
}

fn names<'a>(keys: impl Iterator<Item = &'a Key>) -> Vec<&'a str> {
    keys.map(Key::name).collect()
}

fn set(keys: &[&str]) -> KeySet {
    keys.iter()
        .map(|name| key(Namespace::User, name, ""))
        .collect()
}

#[test]
fn what_is_below_a_name_follows_it() {
    let keys = set(&[
        "/a-b", "/a", "/b", "/a/b/c", "/", "/a/b", "/a\\/b", "/a/%/c", "/aa/x",
    ]);
    let all = [
        "/", "/a", "/a/%/c", "/a/b", "/a/b/c", "/a-b", "/a\\/b", "/aa/x", "/b",
    ];
    assert_eq!(names(keys.iter()), all);
    assert_eq!(
        names(keys.iter().rev()),
        all.iter().rev().copied().collect::<Vec<_>>()
    );
    for (below, expected) in [
        ("/", &all[..]),
        ("/a", &all[1..5]),
        ("/a/b", &all[3..5]),
        ("/aa", &all[7..8]),
        ("/aa/x", &all[7..8]),
        ("/a\\/b", &all[6..7]),
        ("/a/%", &all[2..3]),
        ("/c", &[]),
        ("/a/b/c/d", &[]),
        // As `split` gives the parent of `/a`.
        ("", &all[..]),
    ] {
        assert_eq!(names(keys.below(below)), expected, "below {below}");
    }
}

#[test]
fn the_cascade_is_proc_user_system_default() {
    let mut keys = KeySet::new();
    let mut expected = Vec::new();
    for namespace in Namespace::ALL.into_iter().rev() {
        keys.insert(key(namespace, "/a", namespace.as_str()));
        expected.insert(0, namespace);
        assert_eq!(keys.lookup("/a").unwrap().value(), namespace.as_str());
    }
    assert_eq!(
        keys.iter().map(Key::namespace).collect::<Vec<_>>(),
        expected
    );
    keys.insert(key(Namespace::System, "/b", "b"));
    let effective: Vec<&str> = keys.effective().map(Key::value).collect();
    assert_eq!(effective, ["proc", "b"]);
    for namespace in Namespace::ALL {
        assert_eq!(
            keys.get(namespace, "/a").unwrap().value(),
            namespace.as_str()
        );
        assert_eq!(keys.lookup("/a").unwrap().namespace(), namespace);
        assert!(keys.remove(namespace, "/a").is_some());
        assert_eq!(keys.get(namespace, "/a"), None);
    }
    assert_eq!(keys.lookup("/a"), None);
    assert_eq!(Namespace::parse("system"), Some(Namespace::System));
    assert_eq!(Namespace::parse("dir"), None);
}

#[test]
fn inserting_replaces_and_tells() {
    let mut keys = KeySet::new();
    assert_eq!(keys.insert(key(Namespace::User, "/a", "1")), None);
    assert_eq!(keys.insert(key(Namespace::Proc, "/a", "2")), None);
    let old = keys.insert(key(Namespace::User, "/a", "3")).unwrap();
    assert_eq!(old.value(), "1");
    assert_eq!(keys.len(), 2);
    let mut merged = set(&["/a", "/z"]);
    merged.merge(keys.clone());
    assert_eq!(merged.get(Namespace::User, "/a").unwrap().value(), "3");
    assert_eq!(names(merged.iter()), ["/a", "/a", "/z"]);
    merged.retain(|key| key.namespace() != Namespace::Proc);
    assert_eq!(names(merged.iter()), ["/a", "/z"]);
    assert_eq!(
        merged,
        [
            key(Namespace::User, "/z", ""),
            key(Namespace::User, "/a", "3")
        ]
        .into_iter()
        .collect()
    );
    assert_ne!(merged, keys);
    assert!(KeySet::new().is_empty() && KeySet::new() == KeySet::default());
}

#[test]
fn keys_and_origins_show_themselves() {
    let file = Arc::new(SourceOf::File("user.ini".to_owned()));
    let shown = |origin: Origin| origin.to_string();
    assert_eq!(shown(Origin::at(&file, 12)), "user.ini:12");
    assert_eq!(shown(Origin::at(&file, 0)), "user.ini");
    for (source, expected) in [
        (SourceOf::Option("--language".into()), "option --language"),
        (SourceOf::Argument("FILE".into()), "argument FILE"),
        (SourceOf::Variable("LANG".into()), "variable LANG"),
        (
            SourceOf::Specification("pi.ini".into()),
            "default of the specification",
        ),
        (SourceOf::Program, "the program"),
    ] {
        assert_eq!(shown(Origin::new(source)), expected);
    }
    let language = Key::new(
        Namespace::User,
        &name("/sw/language"),
        "d\"e",
        Origin::at(&file, 12),
    );
    assert_eq!(
        language.to_string(),
        "user:/sw/language = \"d\\\"e\" (user.ini:12)"
    );
    let proc = language
        .with_value("", Origin::new(SourceOf::Program))
        .in_namespace(Namespace::Proc);
    assert_eq!(
        format!("{proc:?}"),
        "proc:/sw/language = \"\" (the program)"
    );
    let keys: KeySet = [language, proc].into_iter().collect();
    assert_eq!(
        keys.to_string(),
        "proc:/sw/language = \"\" (the program)\nuser:/sw/language = \"d\\\"e\" (user.ini:12)\n"
    );
}

#[test]
fn sets_can_be_shared_between_threads() {
    let mut keys = set(&["/a", "/c"]);
    keys.insert(key(Namespace::User, "/b", ""));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(names(keys.iter()), ["/a", "/b", "/c"]));
        }
    });
}

/// The levels decide, not the bytes; what `KeySet` sorts by is not used here.
type Model = BTreeMap<(Vec<String>, Namespace), String>;

#[test]
fn a_set_is_what_a_map_would_be() {
    for seed in 1..=20_u64 {
        let mut random = seed;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let mut keys = KeySet::new();
        let mut model = Model::new();
        for step in 0..2_000_u64 {
            const LEVELS: [&str; 6] = ["a", "b", "a-b", "%", "a level of many bytes", "ab"];
            let levels: Vec<String> = (0..next(5))
                .map(|_| LEVELS[next(6) as usize].to_owned())
                .collect();
            let text = format!("/{}", levels.join("/"));
            let namespace = Namespace::ALL[next(4) as usize];
            let entry = (levels.clone(), namespace);
            match next(20) {
                0..11 => {
                    let value = step.to_string();
                    let old = keys.insert(key(namespace, &text, &value));
                    assert_eq!(
                        old.map(|key| key.value().to_owned()),
                        model.insert(entry, value)
                    );
                }
                11..16 => {
                    let removed = keys.remove(namespace, &text);
                    assert_eq!(
                        removed.map(|key| key.value().to_owned()),
                        model.remove(&entry)
                    );
                }
                16 => {
                    let found = keys.lookup(&text).map(Key::value);
                    let of_name = Namespace::ALL.map(|n| model.get(&(levels.clone(), n)));
                    let expected = of_name.into_iter().flatten().next();
                    assert_eq!(found, expected.map(String::as_str));
                }
                17 => {
                    let below = keys.below(&text).map(Key::value);
                    let expected = model
                        .iter()
                        .filter(|((found, _), _)| found.starts_with(&levels));
                    assert!(below.eq(expected.map(|(_, value)| value)), "seed {seed}");
                }
                18 => {
                    let keep = |value: &str| !value.ends_with('7');
                    keys.retain(|key| keep(key.value()));
                    model.retain(|_, value| keep(value));
                }
                _ => {
                    let found = keys.iter().map(Key::value);
                    assert!(found.eq(model.values()), "seed {seed}, step {step}");
                    assert_eq!(keys.iter().len(), keys.len());
                }
            }
            assert_eq!(keys.len(), model.len());
        }
        let copy = keys.clone();
        let taken: Vec<Key> = copy.into_iter().collect();
        assert!(
            taken.iter().map(Key::value).eq(model.values()),
            "seed {seed}"
        );
    }
}
