//! What the operations of the store cost.
//!
//! `list` prints their names, `count OPERATION N` executes one of them `N`
//! times, `time [OPERATION…]` prints a line of JSON for each with its `name`
//! and the nanoseconds of its fastest execution as `value`. An operation that
//! is compared with another is timed in turns with it, and has the median of
//! their quotients as `ratio`: what waits for a disk differs from moment to
//! moment, and a pair of neighbours does less so.
//!
//! Loading includes reading the file, which is in the page cache.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use milieu_keys::{Name, Namespace};
use milieu_store::ini::Document;
use milieu_store::{Author, Change, Kind, Place, Store, Strategy, format};

/// How many keys the files have.
const KEYS: usize = 10_000;
/// How often an operation is timed.
const ROUNDS: usize = 100;

/// What executes an operation once on the file that it was made for.
type Execute = Box<dyn FnMut()>;
type Make = fn(&Path, &str) -> Execute;

/// An operation.
struct Operation {
    name: &'static str,
    /// The text of the file.
    text: fn() -> String,
    make: Make,
    /// What it is compared with.
    peer: Option<Make>,
}

const fn alone(name: &'static str, text: fn() -> String, make: Make) -> Operation {
    Operation {
        name,
        text,
        make,
        peer: None,
    }
}

const OPERATIONS: [Operation; 10] = [
    alone("load-10000", sections, load),
    alone("load-10000-full-names", full_names, load),
    alone("load-10000-shuffled", shuffled, load),
    Operation {
        name: "load-10000-toml",
        text: toml_tables,
        make: load,
        peer: Some(toml_values),
    },
    Operation {
        name: "load-10000-json",
        text: json_objects,
        make: load,
        peer: Some(json_values),
    },
    alone("edit-10000", sections, edit),
    alone("edit-10000-toml", toml_tables, edit_any),
    alone("edit-10000-json", json_objects, edit_any),
    Operation {
        name: "commit-10000",
        text: sections,
        make: commit,
        peer: Some(replace),
    },
    Operation {
        name: "commit-signed-10000",
        text: sections,
        make: commit_signed,
        peer: Some(replace),
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| *word != "--bench")
        .collect();
    match words.as_slice() {
        ["list"] => OPERATIONS.iter().for_each(|o| println!("{}", o.name)),
        ["count", name, times] => {
            let operation = OPERATIONS.iter().find(|operation| operation.name == *name);
            let (Some(operation), Ok(times)) = (operation, times.parse()) else {
                return usage();
            };
            with_file(operation.name, operation.text, operation.make, |execute| {
                (0..times).for_each(|_: usize| execute());
            });
        }
        ["time", names @ ..] => {
            let all = names.is_empty();
            let wanted = |operation: &&Operation| all || names.contains(&operation.name);
            for operation in OPERATIONS.iter().filter(wanted) {
                println!("{{\"name\":\"{}\",{}}}", operation.name, timed(operation));
            }
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: list | count OPERATION N | time [OPERATION…]");
    ExitCode::from(2)
}

/// Hands out the execution of an operation, with its file in place meanwhile.
fn with_file<T>(
    name: &str,
    text: fn() -> String,
    make: Make,
    run: impl FnOnce(&mut dyn FnMut()) -> T,
) -> T {
    let folder = std::env::temp_dir().join(format!("milieu-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    let mut endings = ["toml", "json"].into_iter();
    let ending = endings.find(|ending| name.ends_with(ending));
    let path: PathBuf = folder.join("bench").with_extension(ending.unwrap_or("ini"));
    let text = text();
    std::fs::write(&path, &text).expect("the folder was just made");
    let result = run(&mut make(&path, &text));
    std::fs::remove_dir_all(&folder).expect("the folder was just there");
    result
}

/// The measured values as members of an object.
fn timed(operation: &Operation) -> String {
    let Operation {
        name, text, make, ..
    } = *operation;
    let Some(peer) = operation.peer else {
        let times = with_file(name, text, make, |execute| {
            (0..ROUNDS).map(|_| time(execute)).min()
        });
        return format!("\"value\":{}", times.expect("there are rounds").as_nanos());
    };
    let rounds: Vec<(Duration, Duration)> = with_file(name, text, make, |execute| {
        with_file(&format!("peer-{name}"), text, peer, |peer| {
            (0..ROUNDS).map(|_| (time(execute), time(peer))).collect()
        })
    });
    let quotients = rounds
        .iter()
        .map(|(own, peer)| own.as_secs_f64() / peer.as_secs_f64());
    let mut quotients: Vec<f64> = quotients.collect();
    quotients.sort_by(f64::total_cmp);
    let least = rounds.iter().map(|(own, _)| own.as_nanos()).min();
    let (least, ratio) = (least.expect("there are rounds"), quotients[ROUNDS / 2]);
    format!("\"value\":{least},\"ratio\":{ratio:.3}")
}

fn time(execute: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    execute();
    start.elapsed()
}

/// Reads a file into a key set, as a program does when it starts.
fn load(path: &Path, _: &str) -> Execute {
    let path = path.to_owned();
    Box::new(move || {
        let place = Place::new(Namespace::User, path.clone());
        let store = Store::read(vec![place]).expect("the file is right");
        assert_eq!(black_box(&store).keys().len(), KEYS);
        // Giving the memory back is no part of starting.
        std::mem::forget(store);
    })
}

const CHANGED: &str = "/sw/pi/session00500/setting_5";

/// Reads a document, gives one key a value and writes the text.
fn edit(_: &Path, text: &str) -> Execute {
    let (text, name) = (text.to_owned(), Name::parse(CHANGED).expect("a name"));
    Box::new(move || {
        let (mut document, _) = Document::parse(&text);
        assert!(document.set(&name, "changed").is_some());
        black_box(document.to_string());
    })
}

/// The same with a document of the format that the ending speaks for.
fn edit_any(path: &Path, text: &str) -> Execute {
    let (text, name) = (text.to_owned(), Name::parse(CHANGED).expect("a name"));
    let format = format::of_path(path).expect("an ending that is known");
    Box::new(move || {
        let (mut document, _) = format.parse(&text);
        let replaced = document.set(&name, "changed", Kind::Unknown);
        assert!(replaced.is_ok_and(|replaced| replaced.is_some()));
        black_box(document.text());
    })
}

/// Reads a file into the values of its format, as a program without keys does.
fn toml_values(path: &Path, _: &str) -> Execute {
    let path = path.to_owned();
    Box::new(move || {
        let text = std::fs::read_to_string(&path).expect("the file is there");
        let table: toml::Table = text.parse().expect("the file is right");
        std::mem::forget(black_box(table));
    })
}

/// The same for JSON.
fn json_values(path: &Path, _: &str) -> Execute {
    let path = path.to_owned();
    Box::new(move || {
        let text = std::fs::read_to_string(&path).expect("the file is there");
        let value: serde_json::Value = serde_json::from_str(&text).expect("the file is right");
        std::mem::forget(black_box(value));
    })
}

/// Commits a new value of one key.
fn commit(path: &Path, _: &str) -> Execute {
    let place = Place::new(Namespace::User, path);
    committing(Store::read(vec![place]).expect("the file is right"))
}

/// The same with a record in the history.
fn commit_signed(path: &Path, _: &str) -> Execute {
    let place = Place::new(Namespace::User, path);
    let store = Store::read(vec![place]).expect("the file is right");
    committing(store.signed(Author::of_this_process(), SystemTime::now))
}

fn committing(mut store: Store) -> Execute {
    let name = Name::parse(CHANGED).expect("a name");
    let mut round = 0;
    Box::new(move || {
        round += 1;
        let change = Change::set(name.clone(), format!("value {round}"));
        let committed = store.commit(Namespace::User, &[change], Strategy::Refuse);
        assert_eq!(committed.expect("nobody else writes").unlogged, None);
    })
}

/// What no commit can do without: the bytes, the disk, the name.
fn replace(path: &Path, text: &str) -> Execute {
    let (path, text) = (path.to_owned(), text.to_owned());
    let new = path.with_extension("new");
    Box::new(move || {
        let mut file = std::fs::File::create(&new).expect("the folder can be written");
        file.write_all(text.as_bytes()).expect("there is room");
        file.sync_all().expect("the disk works");
        std::fs::rename(&new, &path).expect("the folder can be written");
    })
}

/// What a station with sessions keeps: ten keys for each of them.
fn sections() -> String {
    let mut text = String::new();
    for key in 0..KEYS {
        if key % 10 == 0 {
            writeln!(text, "\n[/sw/pi/session{:05}]", key / 10).expect("memory");
        }
        writeln!(text, "setting_{} = value {key}", key % 10).expect("memory");
    }
    text
}

/// The same keys in tables of TOML.
fn toml_tables() -> String {
    let mut text = String::new();
    for key in 0..KEYS {
        if key % 10 == 0 {
            writeln!(text, "\n[sw.pi.session{:05}]", key / 10).expect("memory");
        }
        writeln!(text, "setting_{} = \"value {key}\"", key % 10).expect("memory");
    }
    text
}

/// The same keys in objects of JSON.
fn json_objects() -> String {
    let session = |session: usize| {
        let setting = |number: usize| {
            let value = session * 10 + number;
            format!("        \"setting_{number}\": \"value {value}\"")
        };
        let settings: Vec<String> = (0..10).map(setting).collect();
        format!(
            "      \"session{session:05}\": {{\n{}\n      }}",
            settings.join(",\n")
        )
    };
    let sessions: Vec<String> = (0..KEYS / 10).map(session).collect();
    format!(
        "{{\n  \"sw\": {{\n    \"pi\": {{\n{}\n    }}\n  }}\n}}\n",
        sessions.join(",\n")
    )
}

/// The same keys in the shape of CoElektra's configuration file (section IV-A).
fn full_names() -> String {
    let line = |key| {
        format!(
            "/sw/pi/session{:05}/setting_{} = value {key}\n",
            key / 10,
            key % 10
        )
    };
    (0..KEYS).map(line).collect()
}

/// The same keys in no order, as a file that grew by appending has them.
fn shuffled() -> String {
    let mut lines: Vec<String> = full_names()
        .lines()
        .map(|line| format!("{line}\n"))
        .collect();
    let mut state = 1_u64;
    for last in (1..lines.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        lines.swap(last, (state >> 33) as usize % (last + 1));
    }
    lines.concat()
}
