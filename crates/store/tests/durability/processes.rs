//! Many processes that write the same file at once.
//!
//! Each tells what was confirmed to it: when the commit began and ended, what it
//! wrote, and what it replaced. What they tell has to fit together: of each key
//! the values replaced one another in one chain, from what was there at first to
//! what is there in the end, and nobody's commit comes before one that had ended
//! when it began.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use milieu_keys::{Key, Namespace};
use milieu_store::{Store, StoreError, Strategy};
use nix::time::{ClockId, clock_gettime};

use super::child::{self, Child};
use super::{folder, names, number_from, open, set};

/// The key that all write.
const SHARED: &str = "/shared/last";

/// The key that all count up.
const COUNTER: &str = "/shared/counter";

/// What a process was told of one key: `replaced` and `value` are nothing where there was none.
#[derive(Debug, Clone)]
struct Told {
    process: usize,
    began_ns: u64,
    ended_ns: u64,
    key: String,
    replaced: Option<String>,
    value: String,
}

/// The child: writes for so many seconds, a key of its own, one that all write, and a counter.
/// Where disks or processors are slow it goes on until it has replaced a value of both that
/// are shared: others may have won each time, or have counted to the same number.
pub fn child(arguments: &[&str]) {
    let [path, process, strategy, seconds] = arguments else {
        panic!("{arguments:?}");
    };
    let strategy = match *strategy {
        "ours" => Strategy::Ours,
        "theirs" => Strategy::Theirs,
        _ => Strategy::Refuse,
    };
    let own = format!("/own/{process}");
    let mut writer = Writer {
        path: Path::new(path),
        store: open(Path::new(path)),
        replaced: BTreeSet::new(),
    };
    child::say("ready");
    child::wait();
    let end = Instant::now() + Duration::from_secs(seconds.parse().unwrap());
    let mut number = 0;
    while Instant::now() < end || !writer.has_replaced([SHARED, COUNTER]) {
        number += 1;
        let value = format!("{process}-{number}");
        writer.commit(&[(&own, &value)], Strategy::Refuse);
        writer.commit(&[(SHARED, &value), (&own, &format!("{value}b"))], strategy);
        writer.count();
    }
    child::say("done");
}

struct Writer<'a> {
    path: &'a Path,
    store: Store,
    /// The keys of which it has replaced a value.
    replaced: BTreeSet<String>,
}

impl Writer<'_> {
    fn has_replaced(&self, keys: [&str; 2]) -> bool {
        keys.iter().all(|&key| self.replaced.contains(key))
    }

    fn value(&self, key: &str) -> Option<String> {
        self.store
            .keys()
            .lookup(key)
            .map(|key| key.value().to_owned())
    }

    /// Commits, if need be again and again, and says what was confirmed.
    fn commit(&mut self, values: &[(&str, &str)], strategy: Strategy) {
        while !self.attempt(values, strategy) {}
    }

    /// Adds one, to what is there when it is written.
    fn count(&mut self) {
        loop {
            let count = self
                .value(COUNTER)
                .map_or(0, |count| count.parse::<u64>().unwrap());
            if self.attempt(&[(COUNTER, &(count + 1).to_string())], Strategy::Refuse) {
                return;
            }
        }
    }

    /// Commits, or reads what others wrote.
    fn attempt(&mut self, values: &[(&str, &str)], strategy: Strategy) -> bool {
        let changes: Vec<_> = values
            .iter()
            .map(|&(name, value)| set(name, value))
            .collect();
        let began = now_ns();
        let result = self.store.commit(Namespace::User, &changes, strategy);
        let ended = now_ns();
        match result {
            Ok(commit) => {
                for (name, replaced) in commit.replaced {
                    let value = values
                        .iter()
                        .find(|(key, _)| *key == name.as_str())
                        .unwrap()
                        .1;
                    let replaced = replaced.unwrap_or_default();
                    child::say(&format!("{began} {ended} {name} {value} {replaced}"));
                    self.replaced.insert(name.as_str().to_owned());
                }
                true
            }
            Err(StoreError::Conflict { .. }) => {
                self.store = open(self.path);
                false
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// On the clock that all processes share and nobody sets.
fn now_ns() -> u64 {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap());
    u64::try_from(now.as_nanos()).unwrap()
}

fn told(process: usize, line: &str) -> Told {
    let words: Vec<&str> = line.split(' ').collect();
    let [began, ended, key, value, replaced] = words[..] else {
        panic!("process {process} says: {line}");
    };
    Told {
        process,
        began_ns: began.parse().unwrap(),
        ended_ns: ended.parse().unwrap(),
        key: key.to_owned(),
        replaced: (!replaced.is_empty()).then(|| replaced.to_owned()),
        value: value.to_owned(),
    }
}

/// The values of one key in the order in which they replaced one another.
///
/// # Errors
/// The first thing that does not fit together.
fn chain(told: &[Told], end: Option<&str>) -> Result<Vec<Told>, String> {
    let mut after = BTreeMap::new();
    for it in told {
        if let Some(other) = after.insert(it.replaced.as_deref(), it) {
            return Err(format!("both replaced the same: {other:?} and {it:?}"));
        }
    }
    let mut chain = Vec::new();
    let mut value = None;
    let mut began_last_ns = 0;
    while let Some(next) = after.remove(&value) {
        if next.ended_ns < began_last_ns {
            return Err(format!("{next:?} replaced what was not yet begun"));
        }
        began_last_ns = began_last_ns.max(next.began_ns);
        value = Some(&next.value);
        chain.push(next.clone());
    }
    match after.into_values().next() {
        Some(lost) => Err(format!("what it replaced nobody wrote: {lost:?}")),
        None if value != end => Err(format!(
            "{value:?} was confirmed last, and there is {end:?}"
        )),
        None => Ok(chain),
    }
}

fn run(processes: usize, strategy: &str) {
    let folder = folder(&format!("processes-{processes}-{strategy}"));
    let path = folder.join("a.ini");
    let seconds = number_from("MILIEU_SECONDS", 2).to_string();
    let start = |process: usize| {
        let process = process.to_string();
        Child::start(
            "write",
            &[path.to_str().unwrap(), &process, strategy, &seconds],
        )
    };
    let mut children: Vec<Child> = (0..processes).map(start).collect();
    for child in &mut children {
        assert_eq!(child.hear().as_deref(), Some("ready"));
    }
    children.iter_mut().for_each(Child::tell);
    let listen = |(process, mut child): (usize, Child)| {
        std::thread::spawn(move || {
            let mut said = child.rest();
            assert_eq!(said.pop().as_deref(), Some("done"), "{said:?}");
            let told = said.iter().map(|line| told(process, line));
            told.collect::<Vec<Told>>()
        })
    };
    let listening: Vec<_> = children.into_iter().enumerate().map(listen).collect();
    let mut of_key: BTreeMap<String, Vec<Told>> = BTreeMap::new();
    for told in listening.into_iter().flat_map(|it| it.join().unwrap()) {
        of_key.entry(told.key.clone()).or_default().push(told);
    }

    let store = open(&path);
    assert_eq!(store.keys().len(), of_key.len());
    for (key, told) in &of_key {
        let end = store.keys().lookup(key.as_str()).map(Key::value);
        let chain = chain(told, end).unwrap_or_else(|wrong| panic!("{key}: {wrong}"));
        assert!(chain.len() > 1, "{key}: {chain:?}");
        if key == COUNTER {
            assert_eq!(
                end,
                Some(chain.len().to_string().as_str()),
                "no step is lost"
            );
        }
    }
    let writers = |key: &str| {
        let mut writers: Vec<usize> = of_key[key].iter().map(|told| told.process).collect();
        writers.sort_unstable();
        writers.dedup();
        writers.len()
    };
    assert_eq!((writers(SHARED), writers(COUNTER)), (processes, processes));
    assert_eq!(names(&folder), [".a.ini.lock", "a.ini"]);
    let commits: usize = of_key.values().map(Vec::len).sum();
    println!("{processes} processes, {strategy}: {commits} values in {seconds} s");
}

#[test]
fn two_that_are_right_each() {
    run(2, "ours");
}

#[test]
fn two_that_give_way() {
    run(2, "theirs");
}

#[test]
fn two_that_read_again() {
    run(2, "refuse");
}

#[test]
fn eight_that_are_right_each() {
    run(8, "ours");
}

#[test]
fn eight_that_give_way() {
    run(8, "theirs");
}

#[test]
fn eight_that_read_again() {
    run(8, "refuse");
}

#[test]
fn what_does_not_fit_together_is_found() {
    let it = |began_ns, ended_ns, replaced: &str, value: &str| {
        told(0, &format!("{began_ns} {ended_ns} /a {value} {replaced}"))
    };
    let (a, b) = (it(1, 2, "", "a"), it(2, 4, "a", "b"));
    let values = |chain: Vec<Told>| chain.into_iter().map(|told| told.value).collect::<String>();
    assert_eq!(
        chain(&[b.clone(), a.clone()], Some("b")).map(values),
        Ok("ab".to_owned())
    );
    let wrong = |told: &[Told], end: &str| chain(told, Some(end)).unwrap_err();
    assert!(wrong(&[a.clone(), b.clone()], "a").contains("was confirmed last"));
    assert!(wrong(&[a.clone(), it(2, 4, "", "b")], "b").contains("both replaced the same"));
    assert!(wrong(&[a.clone(), it(2, 4, "c", "b")], "b").contains("nobody wrote"));
    assert!(wrong(&[it(5, 6, "", "a"), b], "b").contains("not yet begun"));
}
