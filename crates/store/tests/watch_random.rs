//! Random changes of a tree with links: in the end a watch knows what is there.
//!
//! `SEED=… cargo test -p milieu-store --test integration watch_random` repeats a run, as far
//! as the scheduling of two threads can be repeated.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use milieu_keys::{Key, Namespace};
use milieu_store::watch::{Files, Filter, Pace, Watch};
use milieu_store::{Place, Store};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// How long it may take until a watch knows what is there.
const PATIENCE: Duration = Duration::from_secs(20);
const ROUNDS: usize = 60;
/// Between two moments in which nothing happens.
const OPERATIONS: u64 = 40;

/// What reading a file gives.
type Found = Result<String, ErrorKind>;

fn read(path: &Path) -> Found {
    fs::read_to_string(path).map_err(|error| error.kind())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    /// From the environment or the clock, and said, so that a run can be repeated.
    fn new() -> Random {
        let given = std::env::var("SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let seed = given.unwrap_or(now);
        println!("SEED={seed}");
        Random(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A folder in which things happen at random.
struct Tree {
    root: PathBuf,
    random: Random,
    count: u64,
    /// What was done since it was quiet, for whoever has to understand a failure.
    log: Vec<String>,
}

impl Tree {
    fn new(test: &str) -> Tree {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("watch-random")
            .join(test);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Tree {
            root,
            random: Random::new(),
            count: 0,
            log: Vec::new(),
        }
    }

    /// One to three levels below the root.
    fn path(&mut self) -> PathBuf {
        let mut path = self.root.clone();
        for _ in 0..=self.random.below(3) {
            path.push(self.random.of(&["a", "b", "c"]));
        }
        path
    }

    /// What a link may lead to.
    fn target(&mut self) -> PathBuf {
        let path = self.path();
        let inside = path.strip_prefix(&self.root).unwrap();
        match self.random.below(4) {
            0 => path,
            1 => Path::new("..").join(inside),
            2 => Path::new(".").join(inside),
            _ => inside.to_owned(),
        }
    }

    fn content(&mut self) -> String {
        self.count += 1;
        let more = self.random.below(3);
        let other: String = (0..more)
            .map(|at| format!("other/{at} = {}\n", self.count))
            .collect();
        format!("count = {}\n{other}", self.count)
    }

    /// Does something, which need not be possible.
    fn change(&mut self) {
        let (path, other) = (self.path(), self.path());
        let content = self.content();
        let what = self.random.below(15);
        let done = match what {
            0..=2 => fs::write(&path, content),
            3 | 4 => {
                let new = self.root.join("new");
                fs::write(&new, content).and_then(|()| fs::rename(new, &path))
            }
            5 => fs::remove_file(&path),
            6 => {
                let _ = fs::remove_file(&path);
                fs::write(&path, content)
            }
            7 | 8 => {
                let folder = path.parent().unwrap();
                fs::create_dir_all(folder).and_then(|()| fs::write(&path, content))
            }
            9 => fs::remove_dir_all(&path),
            10 => fs::rename(&path, &other),
            11 => {
                let flags = RenameFlags::EXCHANGE;
                renameat_with(CWD, &path, CWD, &other, flags).map_err(Into::into)
            }
            12 => symlink(self.target(), &path),
            13 => {
                let new = self.root.join("new");
                let target = self.target();
                let _ = fs::remove_file(&new);
                symlink(target, &new).and_then(|()| fs::rename(new, &path))
            }
            _ => fs::hard_link(&path, &other),
        };
        if done.is_ok() {
            self.log
                .push(format!("{what} {} {}", path.display(), other.display()));
        }
    }

    /// Some changes, fast or with pauses.
    fn changes(&mut self) {
        self.log.clear();
        let pause = self.random.of(&[0, 0, 300, 3000]);
        for _ in 0..self.random.below(OPERATIONS) {
            self.change();
            if pause > 0 {
                std::thread::sleep(Duration::from_micros(self.random.below(pause)));
            }
        }
    }
}

/// Waits until both are the same.
fn agree<T: PartialEq + std::fmt::Debug>(
    known: impl Fn() -> T,
    found: impl Fn() -> T,
    log: &[String],
) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (known, found) = (known(), found());
        if known == found {
            return;
        }
        let log = log.join("\n");
        assert!(
            Instant::now() < deadline,
            "known {known:?}, found {found:?}, after\n{log}"
        );
        std::thread::sleep(Duration::from_micros(100));
    }
}

type Known = Arc<Mutex<BTreeMap<PathBuf, Found>>>;

/// Watches with as much haste as possible, and keeps what it reads.
fn hasty() -> (Files, Known) {
    let pace = Pace {
        quiet: Duration::from_micros(100),
        unfinished: Duration::from_millis(1),
        at_most: Duration::from_millis(5),
        look: None,
    };
    let known = Known::default();
    let seen = Arc::clone(&known);
    let files = Files::start(pace, move |turn| {
        for path in turn.paths() {
            let found = read(path);
            if let Some(known) = seen.lock().unwrap().get_mut(path) {
                *known = found;
            }
        }
    });
    (files.unwrap(), known)
}

#[test]
fn a_file_that_is_made_while_its_way_is_walked() {
    let mut tree = Tree::new("race");
    let (folder, path) = (tree.root.join("a/b"), tree.root.join("a/b/f"));
    let (files, known) = hasty();
    files.add(&path).unwrap();
    known.lock().unwrap().insert(path.clone(), read(&path));
    let spin = |micros| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(micros) {}
    };
    for count in 0..500 {
        let _ = fs::remove_dir_all(tree.root.join(tree.random.of(&["a", "a/b", "a/b/f"])));
        spin(tree.random.below(200));
        fs::create_dir_all(&folder).unwrap();
        spin(tree.random.below(200));
        fs::write(&path, count.to_string()).unwrap();
        let all = || known.lock().unwrap().get(&path).cloned();
        agree(all, || Some(read(&path)), &[]);
    }
}

#[test]
fn every_path_is_known_as_it_is_once_nothing_happens() {
    let mut tree = Tree::new("paths");
    let (files, known) = hasty();
    for round in 0..ROUNDS {
        tree.changes();
        // The set of paths changes as well.
        let path = tree.path();
        if round % 3 == 2 {
            files.remove(&path);
            known.lock().unwrap().remove(&path);
        } else {
            files.add(&path).unwrap();
            // Under the lock, so that nothing older replaces it.
            let mut known = known.lock().unwrap();
            let found = read(&path);
            known.insert(path, found);
        }
        let all = || known.lock().unwrap().clone();
        let found = || {
            all()
                .into_keys()
                .map(|path| (path.clone(), read(&path)))
                .collect()
        };
        agree(all, found, &tree.log);
    }
}

#[test]
fn every_key_is_known_as_it_is_once_nothing_happens() {
    let mut tree = Tree::new("keys");
    let places: Vec<Place> = ["a/b/c", "b", "c/a", "a/a/a", "c/c"]
        .iter()
        .zip([Namespace::User, Namespace::System].iter().cycle())
        .map(|(path, namespace)| Place::new(*namespace, tree.root.join(path)))
        .collect();
    let store = Store::read(places.clone()).unwrap();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let changes = watch.changes(store.keys(), Filter::all());
    // What a reader makes of the changes.
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    for _ in 0..ROUNDS / 2 {
        tree.changes();
        // A path that cannot be read keeps its keys, of which a fresh look knows nothing.
        for place in &places {
            while Store::read(vec![place.clone()]).is_err() {
                let path = tree.path();
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        let fresh = || Store::read(places.clone()).unwrap().into_keys();
        agree(|| watch.keys(), fresh, &tree.log);
        for change in std::iter::from_fn(|| changes.try_recv().ok()).flat_map(|news| news.changes) {
            let name = change.name.as_str().to_owned();
            let old = change.old.map(|key| key.value().to_owned());
            let before = match change.new {
                Some(key) => told.insert(name, key.value().to_owned()),
                None => told.remove(&name),
            };
            assert_eq!(before, old, "{:?}", tree.log);
        }
        let effective = fresh();
        let effective = effective.effective();
        let value = |key: &Key| (key.name().to_owned(), key.value().to_owned());
        assert_eq!(told, effective.map(value).collect(), "{:?}", tree.log);
    }
}
