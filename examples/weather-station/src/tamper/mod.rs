//! The tamper input: a file that behaves like the kernel's GPIO files, or a
//! line of a GPIO character device (CoElektra, IV-A).
//!
//! [`Watch::wait`] blocks in `poll(2)` until the input changes or somebody
//! calls [`Wake::wake`] from any other thread, which is how a blocked thread
//! learns that it shall end. An input that fails keeps saying why and goes on
//! being watched; it comes back by itself when the failure is mended.

mod file;
mod line;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often an input is read again even if nothing announced a change:
/// network file systems and some drivers announce none.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Where tampering is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file that holds `1` or `0`.
    File(PathBuf),
    /// A line of a GPIO chip, by its offset or its name.
    Line {
        /// The character device, `/dev/gpiochip0` for instance.
        chip: PathBuf,
        /// `7`, or a name such as `tamper`.
        line: String,
    },
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Line { chip, line } => write!(f, "{} line {line}", chip.display()),
        }
    }
}

/// Why an input cannot be read: where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The file or the line.
    pub place: String,
    /// What is wrong and what to do about it.
    pub reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for Failure {}

/// What the input says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody tampers.
    Quiet,
    /// Somebody tampers.
    Tampered,
    /// It cannot be read.
    Failed(Failure),
}

/// What ended a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The input says something new.
    Changed(State),
    /// Somebody called [`Wake::wake`].
    Woken,
}

/// Wakes a thread that waits for its input; once woken, it stays awake.
#[derive(Clone, Debug)]
pub struct Wake(Arc<OwnedFd>);

impl Wake {
    /// Wakes the thread, now or when it next waits. Any thread may call it,
    /// any number of times.
    pub fn wake(&self) {
        // Only a full counter refuses a further one, and a full counter wakes.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// An input being watched.
#[derive(Debug)]
pub struct Watch {
    wake: Arc<OwnedFd>,
    source: Box<dyn Source>,
    said: Option<State>,
}

/// What kinds of input have in common.
trait Source: fmt::Debug + Send {
    /// Reads the input. `None` is no news: a writer is in the middle of it.
    fn read(&mut self) -> Option<State>;
    /// What to poll for, until the next [`read`](Source::read).
    fn poll_on(&self) -> Vec<(BorrowedFd<'_>, PollFlags)>;
}

impl Watch {
    /// Watches an input. An input that cannot be read is reported by
    /// [`wait`](Watch::wait), not here.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn new(input: &Input) -> std::io::Result<Watch> {
        let source: Box<dyn Source> = match input {
            Input::File(path) => Box::new(file::File::new(path)?),
            Input::Line { chip, line } => line::source(chip, line),
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Watch {
            wake: Arc::new(wake),
            source,
            said: None,
        })
    }

    /// A handle by which another thread ends a wait.
    #[must_use]
    pub fn wake(&self) -> Wake {
        Wake(Arc::clone(&self.wake))
    }

    /// What the input says now, if that is something other than the last time.
    pub fn look(&mut self) -> Option<State> {
        let state = self.source.read()?;
        if self.said.as_ref() == Some(&state) {
            return None;
        }
        self.said = Some(state.clone());
        Some(state)
    }

    /// Blocks until the input says something other than the last time; the
    /// first call returns what it says now.
    pub fn wait(&mut self) -> Event {
        loop {
            if let Some(state) = self.look() {
                return Event::Changed(state);
            }
            let mut polled = vec![PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
            polled.extend(
                self.source
                    .poll_on()
                    .into_iter()
                    .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)),
            );
            let timeout = Timespec {
                tv_sec: READ_AGAIN.as_secs() as i64,
                tv_nsec: 0,
            };
            // A signal that interrupts the wait is a reason to look again.
            let _ = poll(&mut polled, Some(&timeout));
            if !polled[0].revents().is_empty() {
                return Event::Woken;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_watch() -> (tempfile::TempDir, PathBuf, Watch) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tamper.txt");
        let watch = Watch::new(&Input::File(path.clone())).unwrap();
        (folder, path, watch)
    }

    #[test]
    fn a_file_is_read_whenever_it_changes() {
        let (_folder, path, mut watch) = file_watch();
        std::fs::write(&path, "0\n").unwrap();
        assert_eq!(watch.wait(), Event::Changed(State::Quiet));
        std::fs::write(&path, "1\n").unwrap();
        assert_eq!(watch.wait(), Event::Changed(State::Tampered));
        // Replaced as careful programs do it.
        let new = path.with_extension("new");
        std::fs::write(&new, "0").unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert_eq!(watch.wait(), Event::Changed(State::Quiet));
    }

    #[test]
    fn a_change_wakes_a_waiting_thread() {
        let (_folder, path, mut watch) = file_watch();
        std::fs::write(&path, "0").unwrap();
        assert_eq!(watch.wait(), Event::Changed(State::Quiet));
        let waiting = std::thread::spawn(move || watch.wait());
        std::fs::write(&path, "1").unwrap();
        assert_eq!(waiting.join().unwrap(), Event::Changed(State::Tampered));
    }

    #[test]
    fn waking_ends_a_wait_from_another_thread() {
        let (_folder, path, mut watch) = file_watch();
        std::fs::write(&path, "0").unwrap();
        assert_eq!(watch.wait(), Event::Changed(State::Quiet));
        let wake = watch.wake();
        let waiting = std::thread::spawn(move || (watch.wait(), watch.wait()));
        wake.wake();
        wake.wake();
        assert_eq!(waiting.join().unwrap(), (Event::Woken, Event::Woken));
    }

    #[test]
    fn a_broken_input_says_why_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("later").join("tamper.txt");
        let mut watch = Watch::new(&Input::File(path.clone())).unwrap();
        let Event::Changed(State::Failed(failure)) = watch.wait() else {
            panic!("there is no such folder")
        };
        assert_eq!(failure.place, path.display().to_string());
        assert!(failure.reason.contains("create it"), "{failure}");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "maybe").unwrap();
        let Event::Changed(State::Failed(failure)) = watch.wait() else {
            panic!("maybe is no state")
        };
        assert!(
            failure.reason.contains("`maybe` is neither `1` nor `0`"),
            "{failure}"
        );
        std::fs::write(&path, b"\xff\xff").unwrap();
        let Event::Changed(State::Failed(_)) = watch.wait() else {
            panic!("bytes are no state")
        };
        std::fs::write(&path, "1").unwrap();
        assert_eq!(watch.wait(), Event::Changed(State::Tampered));
        std::fs::remove_file(&path).unwrap();
        let Event::Changed(State::Failed(_)) = watch.wait() else {
            panic!("there is no such file any more")
        };
    }

    #[test]
    fn a_file_that_is_being_written_is_no_news() {
        let (_folder, path, mut watch) = file_watch();
        std::fs::write(&path, "1").unwrap();
        assert_eq!(watch.wait(), Event::Changed(State::Tampered));
        std::fs::write(&path, "").unwrap();
        let wake = watch.wake();
        wake.wake();
        assert_eq!(watch.wait(), Event::Woken);
    }

    #[test]
    fn a_line_that_is_not_there_names_chip_and_line() {
        let input = Input::Line {
            chip: "/nowhere/gpiochip0".into(),
            line: "7".to_owned(),
        };
        let Event::Changed(State::Failed(failure)) = Watch::new(&input).unwrap().wait() else {
            panic!("there is no such chip")
        };
        assert_eq!(failure.place, "/nowhere/gpiochip0 line 7");
    }
}
