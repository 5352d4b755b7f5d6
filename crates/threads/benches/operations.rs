//! The operations of the thread information table among 300 threads, each beside
//! its physical limit: the same words copied to or from a line that nobody shares.
//!
//! It answers as `xtask/measure` says.

use std::cell::Cell;
use std::hint::black_box;
use std::process::ExitCode;

use measure::{Loop, Operation, alone, answer, paired};
use milieu_threads::attributes::{Attributes, Priority, Role};
use milieu_threads::table::{Entry, Table, View};

/// As many as the paper's devices run.
const THREADS: u64 = 300;

/// As `pthread_t` are: addresses in steps of a stack.
fn identity(number: u64) -> u64 {
    0x7f00_0000_0000 + number * 0x80_1000
}

fn attributes(number: u64) -> Attributes {
    let role = Role::new(&format!("pool/worker-{number}")).expect("a role");
    let nice = Priority::new((number % 40) as i32 - 20).expect("a nice value");
    Attributes::of(role).time_critical(nice)
}

fn table() -> Table {
    let table = Table::new(1024).expect("memory");
    for number in 0..THREADS {
        let entry = Entry::of(identity(number), number as u32 + 1, attributes(number));
        table.lines().insert(entry).expect("a line");
    }
    table
}

fn nothing() -> Loop {
    Box::new(|times| {
        for number in 0..times {
            black_box(identity(black_box(number) % THREADS));
        }
    })
}

fn get() -> Loop {
    let table = table();
    Box::new(move |times| {
        let lines = table.lines();
        for number in 0..times {
            // Where it is returned to: another copy of it is not what is measured.
            black_box(&lines.get(identity(black_box(number) % THREADS)));
        }
    })
}

fn set() -> Loop {
    let table = table();
    let values = [attributes(1), attributes(2)];
    Box::new(move |times| {
        let lines = table.lines();
        for number in 0..times {
            // Other values than those that stand there, every time.
            let value = &values[(number / THREADS % 2) as usize];
            let _ = black_box(lines.set(identity(black_box(number) % THREADS), value));
        }
    })
}

type Copies = Vec<Cell<Attributes>>;

fn copies() -> Copies {
    (0..THREADS).map(|it| Cell::new(attributes(it))).collect()
}

fn plain_get() -> Loop {
    let copies = copies();
    Box::new(move |times| {
        for number in 0..times {
            let at = (black_box(number) % THREADS) as usize;
            black_box(&copies[at].get());
        }
    })
}

fn plain_set() -> Loop {
    let copies = copies();
    let values = [attributes(1), attributes(2)];
    Box::new(move |times| {
        for number in 0..times {
            let at = (black_box(number) % THREADS) as usize;
            copies[at].set(values[(number / THREADS % 2) as usize]);
            black_box(&copies[at]);
        }
    })
}

/// What a thread costs that comes and goes.
fn come_and_go() -> Loop {
    let table = table();
    Box::new(move |times| {
        let lines = table.lines();
        let entry = Entry::of(identity(THREADS), 7, attributes(0));
        for _ in 0..times {
            let _ = black_box(lines.insert(entry));
            let _ = black_box(lines.remove(entry.identity));
        }
    })
}

/// All threads, as another process looks at them.
fn look() -> Loop {
    let table = table();
    let path = format!("/proc/self/fd/{}\0", table.descriptor().expect("one"));
    let path = std::ffi::CString::from_vec_with_nul(path.into_bytes()).expect("a path");
    let view = View::open(&path).expect("a table");
    Box::new(move |times| {
        let _keep = &table;
        for _ in 0..times {
            for thread in view.iter() {
                black_box(thread);
            }
        }
    })
}

const OPERATIONS: &[Operation] = &[
    alone("loop", nothing),
    paired("get", get, plain_get),
    paired("set", set, plain_set),
    alone("plain-get", plain_get),
    alone("plain-set", plain_set),
    alone("come-and-go", come_and_go),
    alone("look-300", look),
];

fn main() -> ExitCode {
    answer(OPERATIONS)
}
