//! Paths on a real file system: whatever leads to another content of one is told.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use milieu_store::watch::{Files, Pace};

mod content;
mod system;
mod ways;

/// Longer than any machine takes. Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// The content of a file; nothing if there is none.
type Content = Option<String>;

/// What is in a file. A pipe without a writer has nothing, and nobody waits for one.
fn content_of(path: &Path) -> Content {
    let mut options = fs::File::options();
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = options.read(true).custom_flags(flags).open(path).ok()?;
    io::read_to_string(file).ok()
}

/// Watched paths, and what was read each time one of them was news.
struct Watched {
    files: Files,
    news: Receiver<(PathBuf, Content)>,
}

impl Watched {
    fn new(paths: &[&Path]) -> Watched {
        Watched::at(Pace::default(), paths)
    }

    fn at(pace: Pace, paths: &[&Path]) -> Watched {
        let (told, news) = channel();
        let files = Files::start(pace, move |turn| {
            for path in turn.paths() {
                let _ = told.send((path.to_owned(), content_of(path)));
            }
        })
        .unwrap();
        for path in paths {
            files.add(path).unwrap();
        }
        Watched { files, news }
    }

    /// Waits until a path was last seen with a content, and returns all that was
    /// seen of it until then.
    #[track_caller]
    fn until(&self, path: &Path, content: Option<&str>) -> Vec<Content> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok((of, found)) if of == path => {
                    let ends = found.as_deref() == content;
                    seen.push(found);
                    if ends {
                        return seen;
                    }
                }
                Ok(_) => {}
                Err(_) => panic!("{} was never {content:?}, but {seen:?}", path.display()),
            }
        }
    }

    /// The same, and the file was neither missing nor empty on the way.
    #[track_caller]
    fn until_whole(&self, path: &Path, content: &str) {
        let seen = self.until(path, Some(content));
        let half = |seen: &Content| seen.as_ref().is_none_or(String::is_empty);
        assert!(!seen.iter().any(half), "{seen:?}");
    }

    /// Waits until all is told.
    fn settle(&self) {
        while self.news.recv_timeout(Duration::from_millis(200)).is_ok() {}
    }

    /// Nothing comes for a while that is long enough for what would come.
    #[track_caller]
    fn nothing(&self) {
        let found = self.news.recv_timeout(Duration::from_millis(200));
        assert_eq!(found, Err(RecvTimeoutError::Timeout));
    }
}

/// Gives a writer so much time to go on that no busy machine exceeds it.
fn patient() -> Pace {
    Pace {
        unfinished: Duration::from_secs(5),
        at_most: Duration::from_secs(10),
        ..Pace::default()
    }
}

/// Time in which a watcher that waits for nothing would look.
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// A folder of one test's own, empty at the start.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("watch-files")
        .join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn shell(folder: &Path, script: &str) {
    let mut shell = Command::new("sh");
    let status = shell.args(["-euc", script]).current_dir(folder).status();
    assert!(status.unwrap().success(), "{script}");
}
