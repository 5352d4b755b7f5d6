//! Old files with a new specification: what is read, what is written, and that
//! a migrated file says the same as the old one did.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use milieu_diagnostics::Source;
use milieu_keys::migration::Notice;
use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
use milieu_store::migrate::{changes, completed};
use milieu_store::{Change, Entry, Place, Schema, Store, Strategy, ini};

const SPECIFICATION: &str = "\
[/sw/pi/%session%/language]
type=enum
check/enum=en, de, fr
was/#0=/pi/lang/%session%
was/#0/convert=english -> en, german -> de
was/#1=/lang/%session%

[/sw/pi/timeout]
type=double
check/unit=time
was/#0=/pi/timeout
was/#0/unit=ms

[/sw/pi/read]
type=short
was/#0=/pi/wait

[/sw/pi/write]
type=short
was/#0=/pi/wait
was/#0/convert=* 2

[/sw/pi/hosts/#]
was/#0=/pi/host/#

[/sw/pi/hours]
removed=since 2.0 the clock decides

[/sw/pi/motto]
deprecated=since 2.1, nobody reads it
";

fn schema(text: &str) -> Schema {
    Schema::parse(Source::new("pi.spec.ini", text)).unwrap()
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// The keys of a text, as those of a file of the user.
fn keys(document: &ini::Document) -> KeySet {
    let source = Arc::new(SourceOf::File("pi.ini".to_owned()));
    let key = |entry: Entry<'_>| {
        let origin = Origin::at(&source, entry.line);
        Key::new(Namespace::User, &entry.name, &entry.value, origin)
    };
    document.keys().map(key).collect()
}

fn document(text: &str) -> ini::Document {
    let (document, found) = ini::Document::parse(text);
    assert!(found.is_empty(), "{text}");
    document
}

fn apply(document: &mut ini::Document, changes: &[Change]) {
    for change in changes {
        match &change.value {
            Some(value) => drop(document.set(&change.name, value)),
            None => drop(document.remove(change.name.as_str())),
        }
    }
}

/// What a text says today: values by name, without keys that nothing reads.
fn view(schema: &Schema, document: &ini::Document) -> (BTreeMap<String, String>, Vec<Notice>) {
    let (keys, notices) = schema.migrate(keys(document));
    let read = keys.iter().filter(|key| schema.find(key.name()).is_some());
    let pair = |key: &Key| (key.name().to_owned(), key.value().to_owned());
    (read.map(pair).collect(), notices)
}

fn file(test: &str, text: &str) -> (PathBuf, Store) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("migrate");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{test}.ini"));
    fs::write(&path, text).unwrap();
    let place = Place::new(Namespace::User, path.clone());
    (
        path,
        Store::read(vec![place])
            .unwrap()
            .with_schema(schema(SPECIFICATION)),
    )
}

#[test]
fn a_file_is_migrated_by_one_commit() {
    let (path, mut store) = file(
        "commit",
        "# mine
[/pi/lang]
# Who reads German.
anna = german
ben = fr
[/pi]
timeout = 1500
wait = 10
[/sw/pi]
hours = 8
motto = stays
",
    );
    let changes = store.migration(Namespace::User);
    store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        "[/sw/pi]
motto = stays
timeout = 1500 ms
read = 10
write = 20

# mine
[/sw/pi/anna]
# Who reads German.
language = de

[/sw/pi/ben]
language = fr
"
    );
    assert_eq!(store.migration(Namespace::User), []);
    assert_eq!(store.migration(Namespace::System), []);
}

#[test]
fn what_is_said_about_a_key_goes_with_it_and_all_else_stays() {
    for (test, before, after) in [
        (
            "renamed",
            "; The settings of Anna.\n\n# network\n[/pi]\n  # not too long\n  # (ms)\n\
             timeout = 1500\n\n# sounds\n[/other]\n# kept\nx = 1\n",
            "; The settings of Anna.\n\n# sounds\n[/other]\n# kept\nx = 1\n\n# network\n\
             [/sw/pi]\n  # not too long\n  # (ms)\ntimeout = 1500 ms\n",
        ),
        (
            "rest",
            "# network\n[/pi]\n# long\ntimeout = 1500\n# short\nother = 2\n",
            "# network\n[/pi]\n# short\nother = 2\n\n[/sw/pi]\n# long\ntimeout = 1500 ms\n",
        ),
        (
            "there",
            "# new\n[/sw/pi]\n# motto\nmotto = x\n\n# old\n[/pi]\n# long\ntimeout = 1500\n",
            "# new\n[/sw/pi]\n# motto\nmotto = x\n# old\n# long\ntimeout = 1500 ms\n",
        ),
        (
            "full",
            "# one\n/pi/timeout = 1500\n# two\n/x = 1\n",
            "# two\n/x = 1\n# one\n/sw/pi/timeout = 1500 ms\n",
        ),
        (
            "several",
            "[/pi]\n# both\nwait = 10\n\n# apart\n\n[/x]\ny = 1\n",
            "[/pi]\n\n# apart\n\n[/x]\ny = 1\n\n[/sw/pi]\n# both\nread = 10\nwrite = 20\n",
        ),
    ] {
        let (path, mut store) = file(&format!("goes-{test}"), before);
        let changes = store.migration(Namespace::User);
        store
            .commit(Namespace::User, &changes, Strategy::Refuse)
            .unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), after, "{test}");
    }
    // Also where a key is only assigned.
    let (path, mut store) = file("goes-set", "[/pi]\n# long\ntimeout = 1500\n");
    let change = [milieu_store::Change::set(name("/sw/pi/timeout"), "7 s")];
    store
        .commit(Namespace::User, &change, Strategy::Refuse)
        .unwrap();
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text, "[/sw/pi]\n# long\ntimeout = 7 s\n");
}

#[test]
fn assigning_the_new_name_removes_the_old_one() {
    let schema = schema(SPECIFICATION);
    for (text, change, expected) in [
        (
            "/pi/lang/a = german",
            Change::set(name("/sw/pi/a/language"), "fr"),
            "/sw/pi/a/language = fr",
        ),
        (
            "/pi/lang/a = x",
            Change::set(name("/sw/pi/a/language"), "fr"),
            "/sw/pi/a/language = fr",
        ),
        (
            "/pi/lang/a = german",
            Change::remove(name("/sw/pi/a/language")),
            "",
        ),
        (
            "/lang/a = de\n/pi/lang/a = en",
            Change::remove(name("/sw/pi/a/language")),
            "",
        ),
        (
            "/lang/a = de\n/pi/lang/a = x",
            Change::remove(name("/sw/pi/a/language")),
            "",
        ),
        (
            "/pi/lang/a = german",
            Change::set(name("/sw/pi/b/language"), "fr"),
            "/pi/lang/a = german /sw/pi/b/language = fr",
        ),
        // The other key that it stands for keeps its value.
        (
            "/pi/wait = 10",
            Change::set(name("/sw/pi/read"), "1"),
            "/sw/pi/read = 1 /sw/pi/write = 20",
        ),
        (
            "/pi/wait = 10\n/sw/pi/write = 3",
            Change::set(name("/sw/pi/read"), "1"),
            "/sw/pi/write = 3 /sw/pi/read = 1",
        ),
        (
            "/pi/wait = 20000",
            Change::set(name("/sw/pi/read"), "1"),
            "/pi/wait = 20000 /sw/pi/read = 1",
        ),
        (
            "/pi/wait = 20000",
            Change::set(name("/sw/pi/write"), "1"),
            "/sw/pi/write = 1 /sw/pi/read = 20000",
        ),
        // What is changed anyway is not changed twice.
        ("/pi/wait = 10", Change::remove(name("/pi/wait")), ""),
    ] {
        let mut document = document(text);
        let (_, notices) = schema.migrate(keys(&document));
        let mut all = vec![change.clone()];
        all.extend(completed(&all, &notices, Namespace::User));
        apply(&mut document, &all);
        let lines: Vec<String> = document.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines.join(" "), expected, "{text}: {change:?}");
        assert_eq!(completed(&[change], &notices, Namespace::System), []);
    }
}

#[test]
fn old_names_are_not_written() {
    let (path, mut store) = file("refused", "");
    let changes = [
        Change::set(name("/pi/lang/anna"), "de"),
        Change::set(name("/pi/wait"), "1"),
        Change::set(name("/sw/pi/hours"), "1"),
        Change::set(name("/sw/pi/anna/langauge"), "1"),
    ];
    let error = store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "\
error[renamed]: `/pi/lang/anna` is called `/sw/pi/anna/language` today
 --> pi.spec.ini
  = help: write `/sw/pi/anna/language` instead

error[renamed]: `/pi/wait` is called `/sw/pi/read` and `/sw/pi/write` today
 --> pi.spec.ini
  = help: write `/sw/pi/read` and `/sw/pi/write` instead

error[removed]: there is no key `/sw/pi/hours` any more: since 2.0 the clock decides
 --> pi.spec.ini

error: the specification has no key `/sw/pi/anna/langauge`
 --> pi.spec.ini
  = help: did you mean `/sw/pi/anna/language`?"
    );
    assert_eq!(fs::read_to_string(path).unwrap(), "");
}

#[test]
fn a_refused_value_is_shown_where_the_old_name_is() {
    let (_, store) = file("refusal", "[/pi/lang]\nanna = dutch\n");
    let (keys, notices) = store.schema().unwrap().migrate(store.keys().clone());
    assert!(notices[0].is_error() && keys.lookup("/sw/pi/anna/language").is_none());
    // One that only the files of the machine refuse keeps the place of the old one.
    let specification = "[/dir]\ncheck/path=directory\nwas/#0=/folder\n";
    let schema = schema(specification).with_files(milieu_store::HostFiles { home: None });
    let (path, store) = file("directory", "# a file\nfolder = /dev/null\n");
    let (keys, notices) = schema.migrate(store.keys().clone());
    assert!(!notices[0].is_error());
    let error = schema.check(keys.lookup("/dir").unwrap()).unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.contains(&format!("{}:2:10", path.display())),
        "{shown}"
    );
    assert!(shown.contains("folder = /dev/null"), "{shown}");
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

const NAMES: [&str; 18] = [
    "/pi/lang/anna",
    "/pi/lang/%",
    "/lang/anna",
    "/lang/a\\/b",
    "/sw/pi/anna/language",
    "/sw/pi/%/language",
    "/pi/timeout",
    "/sw/pi/timeout",
    "/pi/wait",
    "/sw/pi/read",
    "/sw/pi/write",
    "/pi/host/#0",
    "/pi/host/#1",
    "/sw/pi/hosts/#0",
    "/sw/pi/hours",
    "/sw/pi/motto",
    "/pi/other",
    "/other",
];
const VALUES: [&str; 8] = ["de", "german", "5", "1500", "20000", "2 s", "x", ""];

/// A file with some of the names, in any order.
fn any_file(random: &mut Random) -> ini::Document {
    let mut document = ini::Document::new();
    for _ in 0..random.below(10) {
        let value = random.of(&VALUES);
        document.set(&name(random.of(&NAMES)), value);
    }
    document
}

#[test]
fn a_migrated_file_says_the_same_and_needs_no_migration() {
    let schema = schema(SPECIFICATION);
    for seed in 1..3000 {
        let mut random = Random(seed);
        let old = any_file(&mut random);
        let (before, notices) = view(&schema, &old);
        let mut new = old.clone();
        apply(&mut new, &changes(&notices, Namespace::User));
        let new = document(&new.to_string());
        let (after, notices) = view(&schema, &new);
        assert_eq!(after, before, "seed {seed}:\n{old}\n{new}");
        let more = changes(&notices, Namespace::User);
        assert!(more.is_empty(), "seed {seed}: {more:?}\n{old}\n{new}");
    }
}

#[test]
fn a_commit_changes_what_it_says_and_nothing_else() {
    let schema = schema(SPECIFICATION);
    let today: Vec<&str> = NAMES
        .into_iter()
        .filter(|name| schema.find(name).is_some())
        .collect();
    for seed in 1..3000 {
        let mut random = Random(seed);
        let old = any_file(&mut random);
        let (mut expected, notices) = view(&schema, &old);
        let mut all = Vec::new();
        for _ in 0..=random.below(2) {
            let name_of = random.of(&today);
            if all
                .iter()
                .any(|change: &Change| change.name.as_str() == name_of)
            {
                continue;
            }
            if random.below(3) == 0 {
                expected.remove(name_of);
                all.push(Change::remove(name(name_of)));
            } else {
                let value = random.of(&VALUES);
                expected.insert(name_of.to_owned(), value.to_owned());
                all.push(Change::set(name(name_of), value));
            }
        }
        all.extend(completed(&all, &notices, Namespace::User));
        let mut new = old.clone();
        apply(&mut new, &all);
        let (after, _) = view(&schema, &new);
        assert_eq!(after, expected, "seed {seed}: {all:?}\n{old}\n{new}");
    }
}
