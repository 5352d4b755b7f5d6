//! What `milieu thread top` costs that shows 300 threads of a program, every two seconds,
//! on a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use milieu_device::proc::Reader;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// As many as the paper's devices run, this one and one in ten that works included.
const THREADS: usize = 300;
const WORKING: usize = 30;

/// So many refreshes are measured, of which each is at its time.
const REFRESHES: usize = 3;

/// Far more than anything here takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(240);

/// What the view begins each refresh with.
const BEGIN: &[u8] = b"\x1b[?2026h";

static NEVER: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

fn begin_threads() {
    for number in 1..THREADS {
        let begun = thread::Builder::new().stack_size(64 << 10).spawn(move || {
            if number > WORKING {
                let (lock, condition) = &NEVER;
                let held = lock.lock().unwrap();
                drop(condition.wait_while(held, |()| true));
            }
            loop {
                thread::sleep(Duration::from_millis(1));
            }
        });
        begun.unwrap();
    }
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that is written there, as it comes.
fn listen(mut terminal: File) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut space = vec![0; 64 << 10];
        // It fails when the program has ended.
        while let Ok(length @ 1..) = terminal.read(&mut space) {
            if tell.send(space[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    told
}

#[test]
fn threads_are_shown_on_a_terminal_for_little_processor_time() {
    begin_threads();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: 160,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let open = || {
        let flags = OFlags::NOCTTY.bits() as i32;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).custom_flags(flags);
        Stdio::from(options.open(name.to_str().unwrap()).unwrap())
    };
    let top = Command::new(env!("CARGO_BIN_EXE_milieu"))
        .args(["thread", "top"])
        .stdin(open())
        .stdout(open())
        .spawn()
        .unwrap();
    let mut top = Running(top);
    let mut terminal = File::from(terminal);
    let told = listen(terminal.try_clone().unwrap());
    let mut shown = Vec::new();
    let mut until_shown = |count: usize| {
        let end = Instant::now() + PATIENCE;
        while shown.windows(BEGIN.len()).filter(|it| *it == BEGIN).count() < count {
            let left = end.saturating_duration_since(Instant::now());
            shown.extend(told.recv_timeout(left).expect("it goes on"));
        }
        String::from_utf8_lossy(&shown).into_owned()
    };
    let number = top.0.id();
    let processor_ns = || Reader::default().times(number, number).unwrap().run_ns;
    // The second one comes soon, and has the first rates.
    until_shown(2);
    let (begun, before) = (Instant::now(), processor_ns());
    let text = until_shown(2 + REFRESHES);
    let (used, elapsed) = (processor_ns() - before, begun.elapsed());
    assert!(text.contains("every 2 s"), "{text}");
    let count = text.split(" threads of ").next().unwrap_or_default();
    let digits = count.rsplit(|it: char| !it.is_ascii_digit()).next();
    let count: Option<usize> = digits.and_then(|it| it.parse().ok());
    assert!(count >= Some(THREADS), "{text}");
    let percent = used as f64 / elapsed.as_nanos() as f64 * 100.0;
    println!("{{\"name\":\"top-percent\",\"value\":{percent:.3}}}");
    terminal.write_all(b"q").unwrap();
    let end = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = top.0.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < end, "it does not end");
        thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "{status}");
}
