//! What was done to threads, written down before it is done, so that whoever comes
//! after a mediator that was killed can undo it.
//!
//! ```text
//! milieu mediator 1
//! moved PID TID START POLICY NICE REALTIME RESET POLICY NICE REALTIME RESET [HOME]
//! back TID
//! ```
//!
//! The first four say what a thread had, the next four what it was given. A thread is
//! known by its number and by when it began, so nobody is taken for one that has ended.
//! Text that cannot be understood says nothing: a last line may be half there.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use milieu_threads::kernel::Errno;
use milieu_threads::rung::scheduling;
use milieu_threads::table::Scheduling;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::groups;
use crate::proc::Reader;

const HEADER: &str = "milieu mediator 1\n";

/// A journal that is longer is written anew.
const BYTES_MAX: u64 = 1 << 20;

/// What a thread had and what it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// When it began.
    pub start: u64,
    /// What it had.
    pub own: Scheduling,
    /// What it was given.
    pub given: Scheduling,
    /// The control group that it was in, if it was put into another.
    pub home: Option<String>,
}

/// The journal of a mediator that runs.
pub struct Journal {
    file: File,
    path: PathBuf,
    moved: HashMap<u32, Record>,
    /// How many bytes there are.
    bytes: u64,
}

/// What became of the threads that were left behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// They have what they had.
    pub restored: u32,
    /// They had ended, or the program has given them something else since.
    pub gone: u32,
    /// The kernel refused.
    pub refused: u32,
}

impl Journal {
    /// Opens a journal, alone. What a mediator left behind there that was killed is
    /// undone first.
    ///
    /// # Errors
    /// `WouldBlock` if another mediator has it, or why it cannot be written.
    pub fn open(path: &Path) -> io::Result<(Journal, Restored)> {
        let mut file = open(path)?;
        let restored = restore_from(&mut file)?;
        let mut journal = Journal {
            file,
            path: path.to_owned(),
            moved: HashMap::new(),
            bytes: 0,
        };
        journal.write_anew()?;
        Ok((journal, restored))
    }

    /// Notes what is about to be done, all of it at once.
    ///
    /// # Errors
    /// It cannot be written, and so must not be done.
    pub fn note(&mut self, records: Vec<Record>) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let text: String = records.iter().map(line).collect();
        self.append(&text)?;
        self.moved
            .extend(records.into_iter().map(|it| (it.thread, it)));
        Ok(())
    }

    /// Notes that these have what they had, or have ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&mut self, threads: &[u32]) -> io::Result<()> {
        let mut text = String::new();
        for thread in threads {
            if self.moved.remove(thread).is_some() {
                let _ = writeln!(text, "back {thread}");
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.moved.is_empty() || self.bytes > BYTES_MAX {
            return self.write_anew();
        }
        self.append(&text)
    }

    /// What was done and not undone.
    pub fn moved(&self) -> &HashMap<u32, Record> {
        &self.moved
    }

    /// Undoes what is left, and removes the file.
    pub fn close(mut self) -> Restored {
        let mut reader = Reader::default();
        let mut done = Restored::default();
        for record in std::mem::take(&mut self.moved).into_values() {
            done.add(&record, &mut reader);
        }
        if done.refused == 0 {
            let _ = fs::remove_file(&self.path);
        }
        done
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Only what counts. The file is the lock, so it stays the same; nothing is
    /// lost between, as a text that ends early says less than what was done only if
    /// that was undone.
    fn write_anew(&mut self) -> io::Result<()> {
        let mut text = HEADER.to_owned();
        text.extend(self.moved.values().map(line));
        if self.moved.is_empty() {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(text.as_bytes())?;
        } else {
            // At once: by a file that is complete before it takes the other's place.
            let new = self.path.with_extension("new");
            let _ = fs::remove_file(&new);
            let mut file = open(&new)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&new, &self.path)?;
            self.file = file;
        }
        self.bytes = text.len() as u64;
        Ok(())
    }
}

/// Undoes what a mediator left behind that was killed; nothing is left behind where
/// there is no file.
///
/// # Errors
/// `WouldBlock` if a mediator has it, or why it cannot be read.
pub fn restore(path: &Path) -> io::Result<Restored> {
    if !path.exists() {
        return Ok(Restored::default());
    }
    let mut file = open(path)?;
    let restored = restore_from(&mut file)?;
    if restored.refused == 0 {
        fs::remove_file(path)?;
    }
    Ok(restored)
}

/// The file, which nobody else has and which is no link to another.
fn open(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Somebody may have put another in its place before it was locked.
        let (there, locked) = (fs::metadata(path), rustix::fs::fstat(&file)?);
        use std::os::unix::fs::MetadataExt;
        if there.is_ok_and(|it| (it.dev(), it.ino()) == (locked.st_dev, locked.st_ino)) {
            return Ok(file);
        }
    }
}

fn restore_from(file: &mut File) -> io::Result<Restored> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let mut reader = Reader::default();
    let mut done = Restored::default();
    for record in records(&String::from_utf8_lossy(&bytes)) {
        done.add(&record, &mut reader);
    }
    Ok(done)
}

impl Restored {
    fn add(&mut self, record: &Record, reader: &mut Reader) {
        match record.undo(reader) {
            Ok(true) => self.restored += 1,
            Ok(false) | Err(Errno(3)) => self.gone += 1,
            Err(_) => self.refused += 1,
        }
    }
}

impl Record {
    /// Gives a thread what it had, unless it has ended or has something else.
    fn undo(&self, reader: &mut Reader) -> Result<bool, Errno> {
        let stat = reader.stat(self.process, self.thread);
        if stat.is_none_or(|it| it.start != self.start) {
            return Ok(false);
        }
        if let Some(home) = &self.home {
            groups::bring_home(self.thread, home)?;
        }
        let here = scheduling::of(self.thread)?;
        if here == self.own {
            return Ok(true);
        }
        if !is_as_given(&here, &self.given) {
            return Ok(false);
        }
        let own = Scheduling {
            nice: own_nice(&here, &self.given, &self.own),
            ..self.own
        };
        scheduling::set(self.thread, &own).map(|()| true)
    }
}

/// The nice value that a thread has by itself: in real time the kernel keeps it, and others
/// may have changed it.
pub fn own_nice(here: &Scheduling, given: &Scheduling, own: &Scheduling) -> i8 {
    match scheduling::is_realtime(given.policy) && is_as_given(here, given) {
        true => here.nice,
        false => own.nice,
    }
}

/// Whether a thread still has what it was given. In real time its nice value is no part of
/// that.
pub fn is_as_given(here: &Scheduling, given: &Scheduling) -> bool {
    let is_realtime = scheduling::is_realtime(given.policy);
    here.policy == given.policy
        && here.realtime_priority == given.realtime_priority
        && (is_realtime || here.nice == given.nice)
}

fn line(record: &Record) -> String {
    let words = |it: &Scheduling| {
        let reset = u8::from(it.is_reset_on_fork);
        format!("{} {} {} {reset}", it.policy, it.nice, it.realtime_priority)
    };
    let home = record.home.as_deref().unwrap_or_default();
    format!(
        "moved {} {} {} {} {} {home}\n",
        record.process,
        record.thread,
        record.start,
        words(&record.own),
        words(&record.given),
    )
}

/// What a journal says that was not undone.
fn records(text: &str) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut lines = text.split_inclusive('\n');
    if lines.next() != Some(HEADER) {
        return records;
    }
    // A line that is cut off was not acted upon.
    for line in lines.filter_map(|it| it.strip_suffix('\n')) {
        if let Some(thread) = line.strip_prefix("back ") {
            let thread: Option<u32> = thread.parse().ok();
            records.retain(|it| Some(it.thread) != thread);
        } else if let Some(record) = line.strip_prefix("moved ").and_then(record) {
            records.retain(|it| it.thread != record.thread);
            records.push(record);
        }
    }
    records
}

fn record(text: &str) -> Option<Record> {
    // What follows the last number is a path, which may have blanks.
    let mut words = text.splitn(12, ' ');
    let mut number = || words.next()?.parse::<i64>().ok();
    let (process, thread, start) = (number()?, number()?, number()?);
    let mut scheduling = || {
        Some(Scheduling {
            policy: number()?.try_into().ok()?,
            nice: number()?.try_into().ok()?,
            realtime_priority: number()?.try_into().ok()?,
            is_reset_on_fork: number()? != 0,
        })
    };
    let (own, given) = (scheduling()?, scheduling()?);
    let home = words.next().filter(|it| !it.is_empty());
    Some(Record {
        process: process.try_into().ok()?,
        thread: thread.try_into().ok()?,
        start: start.try_into().ok()?,
        own,
        given,
        home: home.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc;

    use milieu_threads::kernel;

    use super::*;

    fn example(thread: u32, home: Option<&str>) -> Record {
        Record {
            process: 17,
            thread,
            start: 4711,
            own: Scheduling {
                nice: -3,
                ..Scheduling::default()
            },
            given: Scheduling {
                policy: 2,
                realtime_priority: 20,
                is_reset_on_fork: true,
                ..Scheduling::default()
            },
            home: home.map(str::to_owned),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let some = [
            example(1, None),
            example(2, Some("/a b/c")),
            example(3, None),
        ];
        let mut text = HEADER.to_owned();
        text.extend(some.iter().map(line));
        assert_eq!(records(&text), some);
        text += "back 1\nnonsense\nmoved 1 2\nback 99\n";
        assert_eq!(records(&text), some[1..]);
        // Wherever it is cut off, nothing is made up.
        for end in 0..text.len() {
            let cut = records(&text[..end]);
            assert!(cut.iter().all(|it| some.contains(it)), "{end}");
        }
        assert_eq!(records("another file\nback 1\n"), []);
    }

    #[test]
    fn a_journal_has_one_owner_and_shrinks_when_all_is_undone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let (mut journal, restored) = Journal::open(&path).expect("nobody has it");
        assert_eq!(restored, Restored::default());
        let other = Journal::open(&path).map(|_| ()).expect_err("it is taken");
        assert_eq!(other.kind(), io::ErrorKind::WouldBlock);
        journal
            .note(vec![example(1, None), example(2, None)])
            .expect("it is written");
        journal.forget(&[1]).expect("it is written");
        let text = fs::read_to_string(&path).expect("it is there");
        assert_eq!(records(&text), [example(2, None)]);
        // What counts survives being written anew.
        journal.write_anew().expect("it is written");
        let text = fs::read_to_string(&path).expect("it is there");
        assert_eq!(text, format!("{HEADER}{}", line(&example(2, None))));
        let other = Journal::open(&path).map(|_| ()).expect_err("it is taken");
        assert_eq!(other.kind(), io::ErrorKind::WouldBlock);
        journal.forget(&[2, 3]).expect("it is written");
        let text = fs::read_to_string(&path).expect("it is there");
        assert_eq!(text, HEADER);
    }

    /// As when a mediator was killed: the file is all that is left of it.
    #[test]
    fn a_thread_is_given_back_what_it_had_unless_it_has_something_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            tell.send(kernel::thread_id()).expect("somebody listens");
            let _ = ended.recv();
        });
        let thread = told.recv().expect("its number");
        let process = std::process::id();
        let start = Reader::default()
            .stat(process, thread)
            .expect("it lives")
            .start;
        let own = scheduling::of(thread).expect("it lives");
        // Nicer is always permitted, and back only to whom has the privilege.
        let nicer = |by: i8| Scheduling {
            nice: (own.nice + by).min(19),
            ..own
        };
        let record = |start, own, given| Record {
            process,
            thread,
            start,
            own,
            given,
            home: None,
        };
        let run = |record: &Record| {
            let path = folder.path().join("state");
            fs::write(&path, format!("{HEADER}{}", line(record))).expect("it is written");
            let restored = restore(&path).expect("nobody has it");
            assert_eq!(path.exists(), restored.refused > 0);
            (restored, scheduling::of(thread).expect("it lives"))
        };
        scheduling::set(thread, &nicer(1)).expect("it is permitted");
        // It was another thread of this number.
        let (restored, now) = run(&record(start + 1, nicer(2), nicer(1)));
        assert_eq!((restored.gone, now), (1, nicer(1)));
        // The program has changed it since.
        let (restored, now) = run(&record(start, nicer(2), nicer(5)));
        assert_eq!((restored.gone, now), (1, nicer(1)));
        // It is what it was given.
        let (restored, now) = run(&record(start, nicer(3), nicer(1)));
        assert_eq!((restored.restored, now), (1, nicer(3)));
        // It was noted and not yet done.
        let (restored, now) = run(&record(start, nicer(3), nicer(7)));
        assert_eq!((restored.restored, now), (1, nicer(3)));
        // In real time it may have been made nicer meanwhile.
        let urgent = Scheduling {
            // Round robin.
            policy: 2,
            realtime_priority: 1,
            is_reset_on_fork: true,
            ..nicer(3)
        };
        if scheduling::set(thread, &urgent).is_ok() {
            let said = Command::new("renice")
                .args(["-n", "15", "-p", &thread.to_string()])
                .output();
            if said.is_ok_and(|it| it.status.success()) {
                let (restored, now) = run(&record(start, nicer(3), urgent));
                let reniced = Scheduling { nice: 15, ..own };
                assert_eq!((restored.restored, now), (1, reniced));
            }
        }
        drop(end);
        waiting.join().expect("it has waited");
        assert_eq!(
            restore(&folder.path().join("none")).ok(),
            Some(Restored::default())
        );
    }
}
