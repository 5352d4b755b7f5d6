//! Old names: what they are today, which of several counts, what is said.

use milieu_diagnostics::render;
use milieu_keys::migration::Notice;
use milieu_keys::{Key, KeySet, Migration, Name, Namespace, Origin, Pattern, SourceOf};
use std::sync::Arc;

/// Metadata with the name of its key: `/x | was/#0=/y | type=short`.
fn try_migration(text: &str) -> Result<Migration, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys: Vec<(&str, Vec<(&str, &str)>)> = lines
        .map(|line| {
            let mut parts = line.split('|').map(str::trim);
            let name = parts.next().expect("a name");
            let metadata = parts.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            (name, metadata.collect())
        })
        .collect();
    let keys = keys.iter().map(|(name, metadata)| (*name, &metadata[..]));
    Migration::new(keys).map_err(|error| error.to_string())
}

fn migration(text: &str) -> Migration {
    try_migration(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The keys of a file, `/a = 1` in each line.
fn file(namespace: Namespace, path: &str, text: &str) -> KeySet {
    let source = Arc::new(SourceOf::File(path.to_owned()));
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(at, line)| {
            let (name, value) = line.split_once('=')?;
            let origin = Origin::at(&source, u32::try_from(at).unwrap() + 1);
            let name = Name::parse(name.trim()).unwrap();
            Some(Key::new(namespace, &name, value.trim(), origin))
        })
        .collect()
}

fn shown(keys: &KeySet) -> Vec<String> {
    let show = |key: &Key| format!("{}={}:{}", key.name(), key.value(), key.origin().line);
    keys.iter().map(show).collect()
}

fn messages(notices: &[Notice]) -> String {
    let render = |notice: &Notice| render(&notice.source(), &notice.diagnostics(), false);
    notices.iter().map(render).collect::<Vec<_>>().join("\n")
}

/// A specification, a file, and what the file says today, each with its line.
const FILES: &[(&str, &str, &[&str])] = &[
    // Renamed, moved, with and without a placeholder.
    ("/b | was/#0=/a", "/a=1\n/c=2", &["/b=1:1", "/c=2:2"]),
    (
        "/b/%x%/c | was/#0=/a/%x%",
        "/a/u\\/v=1",
        &["/b/u\\/v/c=1:1"],
    ),
    (
        "/b/%x%/c | was/#0=/a/%x%",
        "/a/%=1\n/a=2",
        &["/a=2:2", "/b/%/c=1:1"],
    ),
    ("/b/%x%%y% | was/#0=/%y%/a/%x%", "/1/a/2=3", &["/b/21=3:1"]),
    (
        "/b/%x% | was/#0=/a-%x%.c",
        "/a-\\..c=3\n/a-.c=4\n/a-%.c=5",
        &["/a-.c=4:2", "/b/%=5:3", "/b/\\.=3:1"],
    ),
    ("/b/%x% | was/#0=/.%x%", "/\\..=3", &["/b/\\.=3:1"]),
    (
        "/b/%x% | was/#0=/%x%/%x%",
        "/1/1=3\n/1/2=4",
        &["/1/2=4:2", "/b/1=3:1"],
    ),
    ("/b/%x%/c | was/#0=/a", "/a=1", &["/b/%/c=1:1"]),
    (
        "/b/x/c | was/#0=/a/%",
        "/a/%=1\n/a/x=2",
        &["/a/x=2:2", "/b/x/c=1:1"],
    ),
    // Arrays, in the last level and in others.
    (
        "/b/# | was/#0=/a/#",
        "/a/#0=1\n/a/#_10=2\n/a/x=3",
        &["/a/x=3:3", "/b/#0=1:1", "/b/#_10=2:2"],
    ),
    (
        "/b/%x%/#/c/# | was/#0=/a/#/%x%/#",
        "/a/#1/y/#2=3",
        &["/b/y/#1/c/#2=3:1"],
    ),
    // The name of today counts, then the old ones in their order.
    (
        "/c | was/#0=/b | was/#1=/a",
        "/a=1\n/b=2\n/c=3",
        &["/c=3:3"],
    ),
    ("/c | was/#0=/b | was/#1=/a", "/a=1\n/b=2", &["/c=2:2"]),
    ("/c | was/#0=/b | was/#1=/a", "/a=1", &["/c=1:1"]),
    // One that was two, and two that were one.
    (
        "/b | was/#0=/a\n/c | was/#0=/a | was/#0/convert=1 -> 2",
        "/a=1",
        &["/b=1:1", "/c=2:1"],
    ),
    (
        "/b | was/#0=/a\n/c | was/#0=/a",
        "/a=1\n/c=2",
        &["/b=1:1", "/c=2:2"],
    ),
    // What a key is called today is no old name.
    (
        "/b/%x% | was/#0=/a/%x%\n/a/y",
        "/a/y=1\n/a/z=2",
        &["/a/y=1:1", "/b/z=2:2"],
    ),
    // Converted, or left alone.
    (
        "/b | was/#0=/a | was/#0/convert=no -> off",
        "/a=no",
        &["/b=off:1"],
    ),
    (
        "/b | was/#0=/a | was/#0/convert=no -> off",
        "/b=no",
        &["/b=no:1"],
    ),
    ("/b | was/#0=/a | type=short", "/a=x", &["/a=x:1"]),
    ("/b | was/#0=/a | type=short", "/a=x\n/b=1", &["/b=1:2"]),
    (
        "/c | was/#0=/b | was/#1=/a | type=short",
        "/a=1\n/b=x",
        &["/a=1:1", "/b=x:2"],
    ),
    (
        "/b | was/#0=/a | type=short\n/c | was/#0=/a",
        "/a=x",
        &["/a=x:1", "/c=x:1"],
    ),
    // What is no more or should not be stays where it is.
    (
        "/a | removed=gone | was/#0=/b\n/c | deprecated=use /d",
        "/a=1\n/b=2\n/c=3",
        &["/a=1:1", "/b=2:2", "/c=3:3"],
    ),
];

#[test]
fn files_of_before_are_read_as_today() {
    for &(specification, text, expected) in FILES {
        let migration = migration(specification);
        let (keys, notices) = migration.apply(file(Namespace::User, "a.ini", text));
        assert_eq!(shown(&keys), expected, "{specification}\n{text}");
        let (again, more) = migration.apply(keys.clone());
        assert_eq!(again, keys, "{specification}\n{text}");
        assert!(more.len() <= notices.len());
    }
}

#[test]
fn what_became_of_each_key_is_said() {
    let migration = migration(
        "/sw/pi/%session%/language | was/#0=/pi/lang/%session% | was/#1=/pi/%session%/lang
         /sw/pi/timeout | was/#0=/pi/timeout | was/#0/unit=ms | type=long | check/unit=time
         /sw/pi/read | was/#0=/pi/wait
         /sw/pi/write | was/#0=/pi/wait | was/#0/convert=1 -> 2
         /sw/pi/pin | was/#0=/pi/pin | was/#0/convert=* 2 | type=short | secret
         /sw/pi/token | was/#0=/pi/token | was/#0/convert=hunter2 -> hunter3 | secret
         /sw/pi/motto | deprecated=since 2.1, use /sw/pi/%session%/language
         /sw/pi/hours | removed=the clock decides",
    );
    let text = "/pi/lang/anna=de
/pi/anna/lang=en
/pi/timeout=5000
/pi/wait=1
/pi/pin=47110
/pi/token=hunter2
/sw/pi/motto=x
/sw/pi/hours=3
/pi/lang/ben=de
/sw/pi/ben/language=fr";
    let (_, notices) = migration.apply(file(Namespace::User, "pi.ini", text));
    assert_eq!(
        messages(&notices),
        "\
warning[renamed]: `/pi/lang/anna` is now `/sw/pi/anna/language`
 --> pi.ini:1
  = help: rename it, or run `milieu key migrate`

warning[renamed]: `/pi/anna/lang` does nothing beside `/sw/pi/anna/language`, as it is called now
 --> pi.ini:2
  = note: pi.ini:1 counts
  = help: remove it, or run `milieu key migrate`

warning[renamed]: `/pi/timeout` is now `/sw/pi/timeout`
 --> pi.ini:3
  = note: `/sw/pi/timeout` gets the value `5000 ms`
  = help: rename it, or run `milieu key migrate`

warning[renamed]: `/pi/wait` is now `/sw/pi/read` and `/sw/pi/write`
 --> pi.ini:4
  = note: `/sw/pi/write` gets the value `2`
  = help: rename it, or run `milieu key migrate`

error[renamed]: `/pi/pin` cannot be taken as `/sw/pi/pin`: `(secret)` breaks this rule; give one that keeps it (rule type=short)
 --> pi.ini:5
  = help: remove it, and give `/sw/pi/pin` a value that is allowed

warning[renamed]: `/pi/token` is now `/sw/pi/token`
 --> pi.ini:6
  = note: `/sw/pi/token` gets the value in another form
  = help: rename it, or run `milieu key migrate`

warning[deprecated]: `/sw/pi/motto` is deprecated: since 2.1, use /sw/pi/%session%/language
 --> pi.ini:7

warning[removed]: `/sw/pi/hours` does nothing any more: the clock decides
 --> pi.ini:8
  = help: remove it, or run `milieu key migrate`

warning[renamed]: `/pi/lang/ben` does nothing beside `/sw/pi/ben/language`, as it is called now
 --> pi.ini:9
  = note: pi.ini:10 counts
  = help: remove it, or run `milieu key migrate`
"
    );
    let errors: Vec<bool> = notices.iter().map(Notice::is_error).collect();
    assert_eq!(errors.iter().filter(|error| **error).count(), 1);
}

#[test]
fn an_old_name_of_the_user_beats_a_new_one_of_the_system() {
    let migration = migration("/b | was/#0=/a");
    let user = migration.apply(file(Namespace::User, "user.ini", "/a=1")).0;
    let mut keys = migration
        .apply(file(Namespace::System, "system.ini", "/b=2"))
        .0;
    keys.merge(user.clone());
    assert_eq!(
        keys.lookup("/b").unwrap().to_string(),
        "user:/b = \"1\" (user.ini:1)"
    );
    // And so it is if the files became one key set first.
    let mut keys = file(Namespace::System, "system.ini", "/b=2");
    keys.merge(file(Namespace::User, "user.ini", "/a=1"));
    assert_eq!(migration.apply(keys).0.lookup("/b"), user.lookup("/b"));
}

#[test]
fn only_files_have_names_of_before() {
    let migration = migration("/b | was/#0=/a\n/c | removed=gone");
    for namespace in [Namespace::Proc, Namespace::Default] {
        let keys = file(namespace, "a.ini", "/a=1\n/c=2");
        let (same, notices) = migration.apply(keys.clone());
        assert_eq!((same, notices.len()), (keys, 0));
    }
}

#[test]
fn names_are_told_apart() {
    let migration = migration(
        "/b/%x% | was/#0=/a/%x%\n/a/y\n/c/%x% | was/#0=/a/%x%\n/d | removed=r | was/#0=/e/#",
    );
    let names = |name| {
        migration
            .names(name)
            .iter()
            .map(|name| name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("/a/z"), ["/b/z", "/c/z"]);
    assert!(names("/a/y").is_empty() && names("/b/z").is_empty() && names("/e/#1").is_empty());
    assert_eq!(migration.removed("/d"), Some("r"));
    assert_eq!(migration.removed("/e/#_12"), Some("r"));
    assert_eq!(migration.removed("/e/x"), None);
    assert!(!migration.is_empty() && Migration::default().is_empty());
}

#[test]
fn old_names_from_which_todays_cannot_be_made_are_refused() {
    for (specification, part) in [
        ("/b | was/#0=/a/%x%", "`/b` has no `%x%`"),
        ("/b/%x% | was/#0=/a/%x y%", "several placeholders"),
        ("/b/# | was/#0=/a", "an array"),
        ("/b | was/#0=a", "begins with `/`"),
        ("/b | was/#0=/a | was/#0/convert=* 2", "only numbers"),
    ] {
        let error = try_migration(specification).unwrap_err();
        assert!(
            error.starts_with("key /b") && error.contains(part),
            "{error}"
        );
    }
}

/// A small generator (xorshift64*), so that a failure repeats from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        usize::try_from((mixed >> 33) % bound as u64).expect("below a usize")
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// Whatever the layers are, the old name becomes the one of today under them.
#[test]
fn layers_keep_their_values() {
    let values = [
        "", "a", "%", "/", "\\", ".", "..", "a.b", "%a", "x/..", "#1", " ", "ä",
    ];
    let around = ["", "a", ".", "\\%", "\\/", "-", "..", "%"];
    for seed in 1..5000 {
        let mut random = Random(seed);
        let affix = |random: &mut Random| {
            let text = random.of(&around);
            if text == "%" { "" } else { text }
        };
        let mut old = String::new();
        for layer in ["x", "y"] {
            let (before, behind) = (affix(&mut random), affix(&mut random));
            old.push_str(&format!("/{before}%{layer}%{behind}"));
        }
        let today = random
            .of(&["/t/%x%/%y%", "/%y%-%x%", "/t/%x y%/#"])
            .replace("/#", "");
        let specification = format!("{today} | was/#0={old}");
        let migration = migration(&specification);
        let (x, y) = (random.of(&values), random.of(&values));
        let value_of = |layer: &str| Some(if layer == "x" { x } else { y });
        let name = Pattern::parse(&old).unwrap().resolve(value_of);
        let expected = Pattern::parse(&today).unwrap().resolve(value_of);
        assert_eq!(
            migration.names(name.as_str()),
            [expected],
            "seed {seed}: {specification}, {name}"
        );
    }
}

/// No file makes trouble, and what was migrated stays.
#[test]
fn migrating_again_changes_nothing() {
    let specification = migration(
        "/n/%x% | was/#0=/a/%x% | was/#1=/b/%x% | type=short | was/#1/convert=* 2
         /n/#    | was/#0=/c/# | allow/overlap
         /m      | was/#0=/a/1 | was/#1=/c/#0 | was/#2=/d
         /b/2    | type=short
         /k      | deprecated=do not
         /l/%x%  | removed=gone | was/#0=/o/%x%",
    )
    .clone();
    let levels = ["a", "b", "c", "d", "n", "m", "k", "l", "o"];
    let below = ["", "/1", "/2", "/%", "/#0", "/#1", "/x"];
    for seed in 1..4000 {
        let mut random = Random(seed);
        let mut text = String::new();
        for _ in 0..random.below(12) {
            let (level, below) = (random.of(&levels), random.of(&below));
            text.push_str(&format!(
                "/{level}{below}={}\n",
                random.of(&["1", "2", "x", "20000"])
            ));
        }
        let keys = file(Namespace::User, "a.ini", &text);
        let (once, notices) = specification.apply(keys.clone());
        let (twice, _) = specification.apply(once.clone());
        assert_eq!(twice, once, "seed {seed}: {text}");
        // Each key of before is still there, or has been spoken of.
        for key in &keys {
            let kept = once.get(Namespace::User, key.name()) == Some(key);
            let told = notices.iter().any(|notice| notice.key == *key);
            assert!(kept || told, "seed {seed}: {key}");
        }
        // Nothing is made up: every value has the origin of a line.
        for key in &once {
            let line = key.origin().line;
            assert!(
                keys.iter().any(|old| old.origin().line == line),
                "seed {seed}: {key}"
            );
        }
    }
}
