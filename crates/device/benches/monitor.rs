//! What it costs to look at 300 threads, as `milieu thread top` does at each refresh.
//!
//! It answers as `xtask/measure` says.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use measure::{Loop, Operation, alone, answer};
use milieu_device::monitor::{Monitor, Scope};

/// As many as the paper's devices run, this one and one in ten that works included.
const THREADS: usize = 300;
const WORKING: usize = 30;

static NEVER: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

fn wait_for_ever() {
    let (lock, condition) = &NEVER;
    let mut held = lock.lock();
    while let Ok(locked) = held {
        held = condition.wait(locked);
    }
}

/// Threads that wait, and some that wake all the time, so that there is news of them.
fn begin() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for number in 1..THREADS {
            std::thread::spawn(move || {
                if number > WORKING {
                    wait_for_ever();
                }
                loop {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
}

fn refresh(has_no_stacks: bool) -> Loop {
    begin();
    let mut monitor = Monitor::new(Scope {
        processes: Some(vec![std::process::id()]),
        has_no_stacks,
        ..Scope::default()
    });
    monitor.sample(Instant::now());
    let monitor = std::cell::RefCell::new(monitor);
    Box::new(move |times| {
        for _ in 0..times {
            black_box(monitor.borrow_mut().sample(Instant::now()));
        }
    })
}

fn whole() -> Loop {
    refresh(false)
}

fn without_stacks() -> Loop {
    refresh(true)
}

const OPERATIONS: &[Operation] = &[
    alone("refresh-300", whole),
    alone("refresh-300-without-stacks", without_stacks),
];

fn main() -> ExitCode {
    answer(OPERATIONS)
}
