//! Writers that are killed at random instants.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use milieu_keys::Namespace;
use milieu_store::Strategy;

use super::child::{self, Child};
use super::random::Random;
use super::{folder, names, number_from, open, set};

/// The child: counts a key up, for ever, and says what it begins and what was confirmed.
pub fn child(arguments: &[&str]) {
    let [path, key] = arguments else {
        panic!("{arguments:?}");
    };
    let mut store = open(Path::new(path)).with_patience(Duration::from_secs(600));
    let mut count = counted(Path::new(path), key);
    loop {
        count += 1;
        child::say(&format!("begin {count}"));
        store
            .commit(
                Namespace::User,
                &[set(key, count.to_string())],
                Strategy::Refuse,
            )
            .unwrap();
        child::say(&format!("confirmed {count}"));
    }
}

/// What a key has come to.
fn counted(path: &Path, key: &str) -> u64 {
    let store = open(path);
    let value = store.keys().lookup(key).map(|key| key.value().to_owned());
    value.map_or(0, |value| value.parse().unwrap())
}

/// A key that is counted up, and the process that does so at present.
struct Counter {
    path: PathBuf,
    key: String,
    /// What was confirmed.
    count: u64,
    /// Whether it has begun to write the next number.
    has_begun: bool,
    process: Child,
}

impl Counter {
    fn start(path: PathBuf, key: String) -> Counter {
        let mut counter = Counter {
            count: counted(&path, &key),
            has_begun: false,
            process: Child::start("count", &[path.to_str().unwrap(), &key]),
            path,
            key,
        };
        assert!(counter.listen());
        counter
    }

    /// Takes in the next line.
    fn listen(&mut self) -> bool {
        let Some(line) = self.process.hear() else {
            return false;
        };
        self.has_begun = !self.has_begun;
        if self.has_begun {
            assert_eq!(line, format!("begin {}", self.count + 1));
        } else {
            self.count += 1;
            assert_eq!(line, format!("confirmed {}", self.count));
        }
        true
    }

    /// Kills the process and checks what is there: whether that was within a
    /// commit, and whether what it wrote was in force already.
    fn kill(&mut self, place: &str) -> (bool, bool) {
        self.process.end();
        while self.listen() {}
        let found = counted(&self.path, &self.key);
        let next = u64::from(self.has_begun);
        assert!(
            (self.count..=self.count + next).contains(&found),
            "{place}: {found} was found where {} was confirmed",
            self.count
        );
        (self.has_begun, found > self.count)
    }
}

#[test]
fn at_random_instants_lose_nothing() {
    let kills = number_from("MILIEU_KILLS", 1000);
    let (mut random, seed) = Random::new();
    let folder = folder("kills");
    let start = |index: u64| {
        // Two of them have each file in common.
        let path = folder.join(format!("{}.ini", index / 2));
        Counter::start(path, format!("/counter/{index}"))
    };
    let mut counters: Vec<Counter> = (0..4).map(start).collect();
    // As long as two commits take while the others are busy as well, but not too long.
    let started = Instant::now();
    while counters[0].count < 10 {
        assert!(counters[0].listen());
    }
    let longest_ns = u64::try_from(started.elapsed().as_nanos()).unwrap() / 5;
    let longest_ns = longest_ns.min(20_000_000);
    let (mut within, mut in_force) = (0, 0);
    for kill in 0..kills {
        std::thread::sleep(Duration::from_nanos(random.below(longest_ns)));
        let index = random.below(4);
        let victim = &mut counters[usize::try_from(index).unwrap()];
        let (is_within, is_in_force) = victim.kill(&format!("kill {kill}, MILIEU_SEED={seed}"));
        within += u64::from(is_within);
        in_force += u64::from(is_in_force);
        *victim = start(index);
    }
    println!(
        "MILIEU_SEED={seed}: of {kills} kills, each after up to {longest_ns} ns, {within} were \
         within a commit, {in_force} of them when its change was in force and not yet confirmed"
    );
    assert!(within > kills / 2, "{within} of {kills}");
    for counter in &mut counters {
        counter.kill("the end");
    }
    for counter in &counters {
        let change = [set(&counter.key, "next")];
        open(&counter.path)
            .with_patience(Duration::ZERO)
            .commit(Namespace::User, &change, Strategy::Refuse)
            .unwrap();
    }
    assert_eq!(
        names(&folder),
        [".0.ini.lock", ".1.ini.lock", "0.ini", "1.ini"]
    );
}
