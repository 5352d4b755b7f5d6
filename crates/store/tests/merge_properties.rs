//! The merge of three by key with real files, for changes that nobody thought
//! of, against a model of maps.
//!
//! Base is what both writers have read, theirs what one has committed since,
//! ours what the other commits then. What belongs to a key beside its value,
//! its comment and that it is secret, goes with it and is never in conflict.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use milieu_keys::{KeySet, Migration, Name, Namespace, Secrets};
use milieu_store::{
    Author, Change, Commit, Conflict, Place, Resolution, Resolve, Store, StoreError,
    Strategy as Merge,
};
use proptest::prelude::*;

/// Two levels, so that formats that nest have tables to make and to empty; the
/// names of the second half are secrets.
const NAMES: [&str; 6] = ["/a", "/s/b", "/s/c", "/t/d", "/t/u/e", "/s/f"];
const VALUES: [&str; 4] = ["", "x", "y z", "1"];
/// What a file that has a comment for each key says in it.
const BY_HAND: [&str; 2] = ["# about ", "# they say about "];

type Values = BTreeMap<&'static str, &'static str>;
/// What a writer wants, in the order of its changes: the last of a key counts.
type Wishes = Vec<(&'static str, Option<&'static str>)>;
/// Base, ours and theirs of a key.
type Three = [Option<&'static str>; 3];

/// What a function makes of a conflict.
#[derive(Debug, Clone, Copy)]
enum Decision {
    Refuse,
    Ours,
    Theirs,
    Other(Option<&'static str>),
}

fn name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&NAMES[..])
}

fn value() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&VALUES[..])
}

fn values() -> impl Strategy<Value = Values> {
    proptest::collection::btree_map(name(), value(), 0..NAMES.len())
}

fn wishes(least: usize) -> impl Strategy<Value = Wishes> {
    proptest::collection::vec((name(), proptest::option::of(value())), least..6)
}

fn decisions() -> impl Strategy<Value = BTreeMap<&'static str, Decision>> {
    let decision = prop_oneof![
        1 => Just(Decision::Refuse),
        4 => Just(Decision::Ours),
        4 => Just(Decision::Theirs),
        6 => proptest::option::of(value()).prop_map(Decision::Other),
    ];
    let all = proptest::collection::vec(decision, NAMES.len());
    all.prop_map(|all| NAMES.into_iter().zip(all).collect())
}

fn secret(name: &str) -> bool {
    NAMES[NAMES.len() / 2..].contains(&name)
}

fn put(values: &mut Values, name: &'static str, value: Option<&'static str>) {
    match value {
        Some(value) => drop(values.insert(name, value)),
        None => drop(values.remove(name)),
    }
}

/// The model: both add what they want to the base. Where they want different
/// things of one key, somebody decides.
fn model(
    base: &Values,
    theirs: &Values,
    ours: &Wishes,
    decide: impl Fn(&str) -> Decision,
) -> (BTreeMap<&'static str, Three>, Option<Values>) {
    let of = |values: &Values, name: &str| values.get(name).copied();
    let touched: BTreeSet<&str> = NAMES
        .into_iter()
        .filter(|name| of(base, name) != of(theirs, name))
        .collect();
    let wanted: BTreeMap<&'static str, _> = ours.iter().copied().collect();
    let (mut conflicts, mut refused) = (BTreeMap::new(), BTreeMap::new());
    let mut merged = theirs.clone();
    for (name, value) in wanted {
        let three = [of(base, name), value, of(theirs, name)];
        if !touched.contains(name) {
            put(&mut merged, name, value);
        } else if value != of(theirs, name) {
            conflicts.insert(name, three);
            match decide(name) {
                Decision::Refuse => drop(refused.insert(name, three)),
                Decision::Ours => put(&mut merged, name, value),
                Decision::Theirs => {}
                Decision::Other(other) => put(&mut merged, name, other),
            }
        }
    }
    match refused.is_empty() {
        true => (conflicts, Some(merged)),
        false => (refused, None),
    }
}

fn file(test: &str, ending: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("merge_properties");
    fs::create_dir_all(&folder).unwrap();
    let _ = fs::remove_file(folder.join(format!(".{test}.{ending}.history")));
    folder.join(format!("{test}.{ending}"))
}

fn open(path: &Path) -> Store {
    let of = |name: &&'static str| (*name, &[("secret", "")][..]);
    let secrets = Secrets::new(NAMES.iter().filter(|name| secret(name)).map(of));
    Store::read(vec![Place::new(Namespace::User, path.to_owned())])
        .unwrap()
        .signed(Author::of_this_process(), SystemTime::now)
        .knowing(Migration::default(), secrets)
}

fn changes(wishes: &Wishes) -> Vec<Change> {
    let change = |(name, value): &(&str, Option<&str>)| Change {
        name: Name::parse(name).unwrap(),
        value: value.map(str::to_owned),
    };
    wishes.iter().map(change).collect()
}

fn held(keys: &KeySet) -> BTreeMap<&str, &str> {
    keys.iter().map(|key| (key.name(), key.value())).collect()
}

/// Gives each key a comment right above its line.
fn commented(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if let Some((last, _)) = line.split_once(" =") {
            out += &format!("{}{last}\n", BY_HAND[0]);
        }
        out += line;
        out += "\n";
    }
    out
}

/// What stands above the line of each key.
fn comments(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().zip(text.lines().skip(1));
    lines
        .filter_map(|(above, line)| Some((line.split_once(" =")?.0, above)))
        .filter(|(_, above)| above.starts_with('#'))
        .collect()
}

fn last_level(name: &str) -> &str {
    name.rsplit('/').next().unwrap()
}

fn sorted(conflicts: &[Conflict]) -> BTreeMap<&str, [Option<&str>; 3]> {
    let three = |c: &Conflict| [&c.base, &c.ours, &c.theirs].map(|v| v.clone());
    let mut sorted = BTreeMap::new();
    for conflict in conflicts {
        let three = three(conflict)
            .map(|value| value.map(|value| *VALUES.iter().find(|known| **known == value).unwrap()));
        let name = NAMES
            .into_iter()
            .find(|name| *name == conflict.name.as_str());
        assert!(sorted.insert(name.unwrap(), three).is_none(), "told once");
        assert_eq!(conflict.secret, secret(conflict.name.as_str()));
    }
    sorted
}

/// Two writers of one file.
struct Case {
    path: PathBuf,
    base: Values,
    theirs: Values,
    ours: Wishes,
    /// Whether ours has the keys of the base and opens the file later, instead
    /// of having opened it before theirs was written.
    since: bool,
    /// The file before theirs, and what theirs made of it.
    texts: [String; 2],
}

impl Case {
    fn new(
        test: &str,
        ending: &str,
        base: Values,
        theirs: &Wishes,
        ours: Wishes,
        since: bool,
    ) -> Case {
        let path = file(test, ending);
        let empty = if ending == "json" { "{}\n" } else { "" };
        fs::write(&path, empty).unwrap();
        let all: Wishes = base
            .iter()
            .map(|(name, value)| (*name, Some(*value)))
            .collect();
        let commit = open(&path).commit(Namespace::User, &changes(&all), Merge::Refuse);
        commit.expect("nobody else writes");
        let mut before = fs::read_to_string(&path).unwrap();
        if ending != "json" {
            before = commented(&before);
        }
        fs::write(&path, &before).unwrap();
        let commit = open(&path).commit(Namespace::User, &changes(theirs), Merge::Refuse);
        commit.expect("nobody has written since");
        let after = fs::read_to_string(&path).unwrap();
        // Comments are theirs to change as well.
        let after = after.replace(BY_HAND[0], BY_HAND[1]);
        let mut held = base.clone();
        for (name, value) in theirs {
            put(&mut held, name, *value);
        }
        Case {
            path,
            base,
            theirs: held,
            ours,
            since,
            texts: [before, after],
        }
    }

    /// Commits ours after theirs.
    fn commit(&self, resolve: impl Resolve) -> (Store, Result<Commit, StoreError>) {
        fs::write(&self.path, &self.texts[0]).unwrap();
        let early = open(&self.path);
        fs::write(&self.path, &self.texts[1]).unwrap();
        let changes = changes(&self.ours);
        if !self.since {
            let mut late = early;
            let result = late.commit(Namespace::User, &changes, resolve);
            return (late, result);
        }
        let mut late = open(&self.path);
        let result = late.commit_since(early.keys(), Namespace::User, &changes, resolve);
        (late, result)
    }

    /// What is committed, refused and read back is what the model says.
    fn check(&self, resolve: impl Resolve, decide: impl Fn(&str) -> Decision) {
        let (conflicts, merged) = model(&self.base, &self.theirs, &self.ours, decide);
        let (store, result) = self.commit(resolve);
        let text = fs::read_to_string(&self.path).unwrap();
        let Some(merged) = merged else {
            let Err(StoreError::Conflict {
                conflicts: found, ..
            }) = result
            else {
                panic!("{result:?} where {conflicts:?} are in conflict");
            };
            assert_eq!(sorted(&found), conflicts);
            assert_eq!(text, self.texts[1], "nothing is written");
            return;
        };
        let commit = result.expect("all conflicts are decided");
        assert_eq!(sorted(&commit.conflicts), conflicts);
        assert_eq!(held(store.keys()), merged);
        assert_eq!(held(open(&self.path).keys()), merged, "{text}");
        let replaced: BTreeMap<&str, Option<&str>> = commit
            .replaced
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        let differs = |name: &&str| self.theirs.get(name) != merged.get(name);
        let of_theirs = |name| (name, self.theirs.get(name).copied());
        let expected = NAMES.into_iter().filter(differs).map(of_theirs);
        assert_eq!(replaced, expected.collect());
        self.check_comments(&text, &merged);
    }

    /// Every key that was there and still is has the comment that theirs wrote.
    fn check_comments(&self, text: &str, merged: &Values) {
        let now = comments(text);
        for (level, comment) in comments(&self.texts[1]) {
            let kept = |name: &&&str| last_level(name) == level && self.base.contains_key(**name);
            if comment.ends_with(level) && merged.keys().any(|name| kept(&name)) {
                assert_eq!(now.get(level), Some(&comment), "{text}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_strategy_merges_as_the_model_does(
        ending in proptest::sample::select(&["ini", "toml", "json"][..]),
        base in values(),
        theirs in wishes(0),
        // Who wants nothing does not read the file again.
        ours in wishes(1),
        decisions in decisions(),
        since in any::<bool>(),
    ) {
        let case = Case::new("strategies", ending, base, &theirs, ours, since);
        case.check(Merge::Refuse, |_| Decision::Refuse);
        case.check(Merge::Ours, |_| Decision::Ours);
        case.check(Merge::Theirs, |_| Decision::Theirs);
        let mut asked = Vec::new();
        let function = |conflict: &Conflict| {
            asked.push(conflict.clone());
            match decisions[conflict.name.as_str()] {
                Decision::Refuse => Resolution::Refuse,
                Decision::Ours => Resolution::Ours,
                Decision::Theirs => Resolution::Theirs,
                Decision::Other(other) => Resolution::Value(other.map(str::to_owned)),
            }
        };
        case.check(function, |name| decisions[name]);
        let (conflicts, _) = model(&case.base, &case.theirs, &case.ours, |_| Decision::Ours);
        prop_assert_eq!(sorted(&asked), conflicts, "a function sees both values of each");
    }

    #[test]
    fn changes_of_different_keys_and_equal_changes_are_in_no_conflict(
        base in values(),
        theirs in wishes(0),
        ours in wishes(1),
        since in any::<bool>(),
    ) {
        // What theirs changes as well, ours changes in the same way.
        let theirs_of: BTreeMap<_, _> = theirs.iter().copied().collect();
        let agreed = |(name, value): (_, _)| (name, theirs_of.get(name).copied().unwrap_or(value));
        let ours: Wishes = ours.into_iter().map(agreed).collect();
        let case = Case::new("apart", "ini", base, &theirs, ours, since);
        let (store, result) = case.commit(Merge::Refuse);
        prop_assert_eq!(result.expect("there is none").conflicts, []);
        let mut both = case.base;
        for (name, value) in theirs.into_iter().chain(case.ours) {
            put(&mut both, name, value);
        }
        prop_assert_eq!(held(store.keys()), both);
    }
}
