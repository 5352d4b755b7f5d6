//! What the kernel tells of processes and threads: files below `/proc`.
//!
//! Whatever cannot be read, or understood, is none: threads end while one looks.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Reads files of the kernel into memory that is used again.
#[derive(Default)]
pub struct Reader {
    path: String,
    content: Vec<u8>,
}

/// What is asked of a thread each time that it is looked at, kept open: to find a file
/// costs more than to read it. They are this thread's for ever, whoever has its number.
#[derive(Debug)]
pub struct Files {
    stat: File,
    times: File,
}

impl Files {
    /// How many files these are.
    pub const COUNT: usize = 2;

    /// Of how many threads they may be open at once: the limit of this process says it.
    pub fn room() -> usize {
        // What is open besides.
        const OTHERS: u64 = 256;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let files = limit.unwrap_or(u64::MAX).saturating_sub(OTHERS);
        usize::try_from(files).unwrap_or(usize::MAX) / Files::COUNT
    }

    /// Those of a thread; none when it has ended, or where no more files may be open.
    pub fn of(process: u32, thread: u32) -> Option<Files> {
        let open = |name| File::open(format!("/proc/{process}/task/{thread}/{name}")).ok();
        Some(Files {
            stat: open("stat")?,
            times: open("schedstat")?,
        })
    }
}

/// What `/proc/PID/task/TID/stat` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The name of the thread.
    pub name: String,
    /// `R` for one that runs or wants to, `S` and `D` for one that waits, `Z` for one
    /// that has ended.
    pub state: char,
    /// The process that started this one.
    pub parent: u32,
    /// Whether it is one of the kernel's own.
    pub is_kernel: bool,
    /// Processor time in ticks, its own and the kernel's for it.
    pub ticks: u64,
    /// The nice value.
    pub nice: i8,
    /// When it began, in ticks since the machine did. With the number it tells a
    /// thread from one that has got its number since.
    pub start: u64,
    /// The address space of its process.
    pub virtual_bytes: u64,
    /// How much of that is in memory, as the kernel counts it by and by.
    pub resident_bytes: u64,
    /// The processor on which it was last.
    pub processor: u32,
    /// Among real-time threads.
    pub realtime_priority: u8,
    /// `SCHED_OTHER`, `SCHED_RR`, … as the kernel numbers them.
    pub policy: u8,
}

/// What a thread has had of the processors, and has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Nanoseconds on a processor.
    pub run_ns: u64,
    /// Nanoseconds in which it wanted one.
    pub wait_ns: u64,
    /// How often it got one.
    pub slices: u64,
}

/// How often a thread gave a processor away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// Because it had to wait for something.
    pub voluntary: u64,
    /// Because another was to have it.
    pub involuntary: u64,
}

impl Reader {
    /// What the file says at this moment.
    fn text(&mut self, path: std::fmt::Arguments<'_>) -> Option<&str> {
        self.path.clear();
        self.path.write_fmt(path).ok()?;
        self.content.clear();
        let mut file = File::open(&self.path).ok()?;
        file.read_to_end(&mut self.content).ok()?;
        self.content_as_text()
    }

    /// What an open file says at this moment, which is short and comes at once.
    fn text_of(&mut self, file: &File) -> Option<&str> {
        const SHORT: usize = 2048;
        self.content.resize(SHORT, 0);
        let length = file.read_at(&mut self.content, 0).ok()?;
        self.content.truncate(length);
        self.content_as_text()
    }

    fn content_as_text(&mut self) -> Option<&str> {
        // Names of threads may be any bytes; the rest is ASCII.
        if std::str::from_utf8(&self.content).is_err() {
            let text = String::from_utf8_lossy(&self.content).into_owned();
            self.content = text.into_bytes();
        }
        std::str::from_utf8(&self.content).ok()
    }

    /// What a thread does.
    pub fn stat(&mut self, process: u32, thread: u32) -> Option<Stat> {
        stat(self.text(format_args!("/proc/{process}/task/{thread}/stat"))?)
    }

    /// What a thread has had of the processors.
    pub fn times(&mut self, process: u32, thread: u32) -> Option<Times> {
        times(self.text(format_args!("/proc/{process}/task/{thread}/schedstat"))?)
    }

    /// What a thread does, by its files.
    pub fn stat_of(&mut self, files: &Files) -> Option<Stat> {
        stat(self.text_of(&files.stat)?)
    }

    /// What a thread has had of the processors, by its files.
    pub fn times_of(&mut self, files: &Files) -> Option<Times> {
        times(self.text_of(&files.times)?)
    }

    /// How often a thread gave a processor away.
    pub fn switches(&mut self, process: u32, thread: u32) -> Option<Switches> {
        switches(self.text(format_args!("/proc/{process}/task/{thread}/status"))?)
    }

    /// The largest stack that the first thread of a process may have.
    pub fn stack_limit(&mut self, process: u32) -> Option<u64> {
        let text = self.text(format_args!("/proc/{process}/limits"))?;
        let line = text
            .lines()
            .find_map(|it| it.strip_prefix("Max stack size"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// The program's words as it was started; nothing for threads of the kernel.
    pub fn words(&mut self, process: u32) -> Vec<String> {
        let text = self.text(format_args!("/proc/{process}/cmdline"));
        let words = text.unwrap_or_default().split_terminator('\0');
        words.map(str::to_owned).collect()
    }
}

/// Numbers of all processes.
pub fn processes() -> Vec<u32> {
    numbers("/proc")
}

/// Numbers of the threads of a process; none when it has ended. While threads end, some that
/// do not may be left out.
pub fn threads(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// Whether a process has this thread.
pub fn has(process: u32, thread: u32) -> bool {
    Path::new(&format!("/proc/{process}/task/{thread}")).exists()
}

/// Whose the process is.
pub fn user(process: u32) -> Option<u32> {
    let metadata = fs::metadata(format!("/proc/{process}"));
    metadata.ok().map(|it| it.uid())
}

/// When a thread began, which tells it from a later one of its number.
pub fn start_of(reader: &mut Reader, process: u32, thread: u32) -> Option<u64> {
    reader.stat(process, thread).map(|it| it.start)
}

fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = names.collect();
    numbers.sort_unstable();
    numbers
}

fn stat(text: &str) -> Option<Stat> {
    // The name is between the first and the last parenthesis, and may have more.
    let (before, rest) = text.split_once('(')?;
    let (name, after) = rest.rsplit_once(')')?;
    let _: u32 = before.trim().parse().ok()?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    // They are numbered from 1, and the state is the third.
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |at: usize| field(at)?.parse::<u64>().ok();
    const KERNEL: u64 = 0x0020_0000;
    Some(Stat {
        name: name.to_owned(),
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        is_kernel: number(9)? & KERNEL != 0,
        ticks: number(14)?.saturating_add(number(15)?),
        nice: field(19)?.parse().ok()?,
        start: number(22)?,
        virtual_bytes: number(23)?,
        resident_bytes: number(24)?.saturating_mul(rustix::param::page_size() as u64),
        processor: field(39)?.parse().ok()?,
        realtime_priority: field(40)?.parse().ok()?,
        policy: field(41)?.parse().ok()?,
    })
}

fn times(text: &str) -> Option<Times> {
    let mut numbers = text.split_whitespace().map(|it| it.parse().ok());
    Some(Times {
        run_ns: numbers.next()??,
        wait_ns: numbers.next()??,
        slices: numbers.next()??,
    })
}

fn switches(text: &str) -> Option<Switches> {
    let number = |name: &str| {
        let line = text.lines().rev().find_map(|it| it.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(Switches {
        voluntary: number("voluntary_ctxt_switches:")?,
        involuntary: number("nonvoluntary_ctxt_switches:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_parentheses_and_blanks() {
        let mut text = "17 (a) (b) S 1".to_owned();
        for field in 5..=41 {
            text += &format!(" {}", if field == 19 { -5 } else { field });
        }
        let stat = stat(&text).expect("all fields are there");
        assert_eq!((stat.name.as_str(), stat.state), ("a) (b", 'S'));
        assert_eq!((stat.parent, stat.nice, stat.start), (1, -5, 22));
        assert_eq!((stat.ticks, stat.policy), (14 + 15, 41));
        let page = rustix::param::page_size() as u64;
        let memory = (stat.virtual_bytes, stat.resident_bytes);
        assert_eq!(memory, (23, 24 * page));
    }

    #[test]
    fn what_is_cut_short_is_none() {
        assert_eq!(stat("17 (name) S 1 2 3"), None);
        assert_eq!(stat("17 name S 1 2 3"), None);
        assert_eq!(stat(""), None);
        assert_eq!(times("1 2"), None);
        assert_eq!(switches("voluntary_ctxt_switches:\t5\n"), None);
    }

    #[test]
    fn this_thread_is_found() {
        let process = std::process::id();
        let mut reader = Reader::default();
        assert!(processes().contains(&process));
        let threads = threads(process);
        assert!(threads.contains(&process), "{threads:?}");
        let stat = reader.stat(process, process).expect("it lives");
        assert!(!stat.is_kernel && stat.start > 0);
        assert!(stat.resident_bytes > 0 && stat.virtual_bytes >= stat.resident_bytes);
        assert!(reader.switches(process, process).is_some());
        let files = Files::of(process, process).expect("it lives");
        let again = reader.stat_of(&files).expect("it lives");
        assert_eq!((again.name, again.start), (stat.name, stat.start));
        assert!(reader.times_of(&files).is_some());
        assert_eq!(user(process), Some(rustix::process::getuid().as_raw()));
        assert!(reader.words(process).len() == std::env::args().count());
        assert_eq!(reader.stat(u32::MAX, u32::MAX), None);
    }
}
