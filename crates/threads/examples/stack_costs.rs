//! What it costs to measure a stack, to know a thread, and to decide: all of them
//! beside each other in one run, and beside a system call that does nothing.

use std::ffi::c_void;
use std::hint::black_box;
use std::time::Instant;

use milieu_threads::stack::{
    Asked, Hint, Key, Mode, Name, Peak, Policy, Process, Watch, Way, thread,
};

static WATCH: Watch = Watch::new();

/// The least of several means: what others do on the machine only adds.
fn nanoseconds<T>(mut work: impl FnMut() -> T) -> f64 {
    const ROUNDS: u32 = 200;
    let mean = |_| {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(work());
        }
        start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    };
    (0..15).map(mean).fold(f64::INFINITY, f64::min)
}

extern "C" fn start(argument: *mut c_void) -> *mut c_void {
    argument
}

#[inline(never)]
fn dig(bytes: usize) -> usize {
    let frame = [1_u8; 4096];
    let below = if bytes > 4096 { dig(bytes - 4096) } else { 0 };
    below + usize::from(black_box(&frame)[0])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let process = Process::own()?;
    let worker = std::thread::Builder::new().stack_size(8 << 20);
    let rows = worker.spawn(move || {
        let local = 0_u8;
        let address = (&raw const local) as usize as u64;
        let hint = Hint {
            asked_bytes: Some(8 << 20),
            ..Hint::default()
        };
        let stack = process.stack_around(address, hint)?;
        dig(100 << 10);
        // SAFETY: no memory is involved.
        let nothing = || unsafe { libc::syscall(libc::SYS_getppid) };
        let mut rows = vec![(
            "a system call that does nothing".to_owned(),
            nanoseconds(nothing),
        )];
        for way in Way::ALL {
            let row = match process.depth_by(way, &stack) {
                Ok(depth) => format!("depth by {way:?}: {depth} bytes of 8 MiB"),
                Err(error) => {
                    println!("depth by {way:?}: {error}");
                    continue;
                }
            };
            rows.push((row, nanoseconds(|| process.depth_by(way, &stack))));
        }
        let bounds = || process.stack_around(address, hint);
        rows.push(("bounds of a stack".to_owned(), nanoseconds(bounds)));
        rows.push(("opening the process".to_owned(), nanoseconds(Process::own)));
        let boxed: Box<dyn Fn()> = Box::new(|| ());
        let argument = (&raw const boxed) as usize;
        let key = || Key::of(start as *const () as usize, argument);
        rows.push(("key of a thread".to_owned(), nanoseconds(key)));
        if let Some(known) = key() {
            let seat = || WATCH.live.enter(&known, Name::NONE);
            rows.push(("seat of a key".to_owned(), nanoseconds(seat)));
            let policy = Policy {
                mode: Mode::Force,
                ..Policy::default()
            };
            let decide = || {
                let learned = seat().map(|seat| WATCH.live.learned(seat));
                policy.decide(learned.as_ref(), Asked::Default(8 << 20), 4096, || true)
            };
            rows.push(("deciding its size".to_owned(), nanoseconds(decide)));
            let number = thread();
            let live = || {
                let standing = WATCH.enter(number, 0, &stack, 0, seat());
                if let Some(seat) = seat() {
                    WATCH.live.measures(seat, Peak::Exact(1));
                }
                standing.into_iter().for_each(|it| WATCH.leave(it));
            };
            rows.push((
                "entering and leaving the watch".to_owned(),
                nanoseconds(live),
            ));
        }
        Ok::<_, milieu_threads::stack::Errno>(rows)
    })?;
    for (what, cost) in worker_result(rows)? {
        println!("{cost:>10.0} ns  {what}");
    }
    Ok(())
}

fn worker_result<T>(
    worker: std::thread::JoinHandle<Result<T, milieu_threads::stack::Errno>>,
) -> Result<T, Box<dyn std::error::Error>> {
    Ok(worker.join().map_err(|_| "the thread has failed")??)
}
