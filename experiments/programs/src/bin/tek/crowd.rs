//! Programs that know nothing of Milieu, started as users start them: by themselves or
//! by `milieu thread run`, in as much address space as a small machine has.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use experiments::Failed;
use nix::sys::personality::{self, Persona};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tempfile::TempDir;

use super::number;

/// `ADDR_LIMIT_3GB`: programs of 32 bits have addresses below 3 GB only.
const ADDRESSES_OF_3_GB: Persona = Persona::from_bits_retain(0x0800_0000);

/// What a program is given room for.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The size of stacks that nobody sets.
    pub stack_bytes: u64,
    /// The address space of a process.
    pub space_bytes: Option<u64>,
    /// Whether a program of 32 bits has 3 GB of it, as on the paper's machine, instead
    /// of the 4 GB that it has beside a kernel of 64 bits.
    pub has_3_gb: bool,
}

impl Limits {
    /// The default of most systems.
    pub const NONE: Limits = Limits {
        stack_bytes: 8 << 20,
        space_bytes: None,
        has_3_gb: false,
    };

    fn apply(self, command: &mut Command) {
        let limit = |what, bytes: u64| {
            let (_, most) = getrlimit(what)?;
            setrlimit(what, bytes, most)
        };
        let prepare = move || {
            limit(Resource::RLIMIT_STACK, self.stack_bytes)?;
            // Some crash here, which is no reason to keep what they had.
            limit(Resource::RLIMIT_CORE, 0)?;
            // A page of 2 MB is nothing that a thread has used. Older kernels know no way.
            // SAFETY: has no pointers.
            unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
            if self.has_3_gb {
                // Where that is not permitted, it has the 4 GB.
                let _ = personality::set(ADDRESSES_OF_3_GB);
            }
            if let Some(bytes) = self.space_bytes {
                limit(Resource::RLIMIT_AS, bytes)?;
            }
            Ok(())
        };
        // SAFETY: it only asks the kernel, which may be done between `fork` and `exec`.
        unsafe { command.pre_exec(prepare) };
    }
}

/// What is learned of a program's stacks.
pub struct Profile {
    folder: TempDir,
}

/// How often it is run to learn: as often as Milieu wants it to be.
const LEARNING_RUNS: u32 = 3;

impl Profile {
    /// Of a program that is run without limits, some times.
    pub fn learned(program: &str, arguments: &[&str]) -> Result<Profile, Failed> {
        let folder = tempfile::tempdir()?;
        let profile = Profile { folder };
        for _ in 0..LEARNING_RUNS {
            let served = profile.serves("learn", &[]);
            Crowd::start(program, arguments, Some(&served), Limits::NONE)?.end()?;
        }
        Ok(profile)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("learned.stacks")
    }

    /// The command that starts programs with this profile, in one of its modes.
    pub fn serves(&self, mode: &str, options: &[&str]) -> Vec<String> {
        let path = self.path().display().to_string();
        let words = ["--mode", mode, "--profile", &path];
        served([&words, options].concat())
    }
}

/// How `milieu` starts a program, with these options.
pub fn served<'w>(options: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    let words = ["thread", "run", "--no-mediator"].into_iter();
    words.chain(options).map(str::to_owned).collect()
}

/// A program that runs, and has said what became of its threads.
pub struct Crowd {
    child: Child,
    input: Option<ChildStdin>,
    /// The numbers of its line.
    told: BTreeMap<String, f64>,
    errors: std::process::ChildStderr,
}

/// How a program has ended.
pub struct Ended {
    pub status: ExitStatus,
    /// What it has said.
    pub told: BTreeMap<String, f64>,
    /// What it, or Milieu, has said on the standard error output.
    pub errors: String,
}

impl Crowd {
    /// Starts a program, by `milieu` with these words before its own if it is to be
    /// served, and waits until it has said something, or nothing.
    pub fn start(
        program: &str,
        arguments: &[&str],
        served: Option<&[String]>,
        limits: Limits,
    ) -> Result<Crowd, Failed> {
        let mut command = match served {
            None => Command::new(program),
            Some(words) => {
                let mut command = Command::new("milieu");
                command.args(words).arg("--").arg(program);
                command
            }
        };
        limits.apply(&mut command);
        command.args(arguments).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = "it has no pipes";
        let output = child.stdout.take().ok_or(missing)?;
        let errors = child.stderr.take().ok_or(missing)?;
        let input = child.stdin.take();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let pairs = words.chunks_exact(2);
        let told = pairs.filter_map(|pair| Some((pair[0].to_owned(), pair[1].parse().ok()?)));
        Ok(Crowd {
            told: told.collect(),
            child,
            input,
            errors,
        })
    }

    /// The kernel's number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// How much of its address space it uses, in KiB, as the kernel counts it.
    pub fn space_kib(&self) -> Result<f64, Failed> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process()))?;
        let size = status.lines().find_map(|it| it.strip_prefix("VmSize:"));
        let size = size.and_then(|it| it.split_whitespace().next());
        Ok(size.ok_or("nobody knows its size")?.parse()?)
    }

    /// Lets it end, however it does.
    pub fn ended(mut self) -> Result<Ended, Failed> {
        drop(self.input.take());
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors)?;
        Ok(Ended {
            status: self.child.wait()?,
            told: std::mem::take(&mut self.told),
            errors,
        })
    }

    /// Lets it end, which it is to do well; what it has said.
    pub fn end(self) -> Result<BTreeMap<String, f64>, Failed> {
        let ended = self.ended()?;
        match ended.status.success() {
            true => Ok(ended.told),
            false => Err(format!("{}: {}", ended.status, ended.errors.trim()).into()),
        }
    }
}

impl Drop for Crowd {
    /// Whoever does not wait for it wants nothing of it any more.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A thread as `milieu thread top` shows it.
pub struct Shown {
    pub role: String,
    pub stack_kib: f64,
    pub peak_kib: f64,
}

/// The threads of a process but for its first and Milieu's own, in the order in which they
/// began. Where the stack of a thread is, it shows while it waits: those that were just
/// woken up are looked at again.
pub fn shown(process: u32) -> Result<Vec<Shown>, Failed> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let begun = Instant::now();
    loop {
        let threads = shown_now(process)?;
        let count = threads.len();
        let all: Vec<Shown> = threads.into_iter().flatten().collect();
        if all.len() == count {
            return Ok(all);
        }
        if begun.elapsed() > PATIENCE {
            return Err("a thread is shown without its stack".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The same at this moment; none for threads whose stack is not told.
fn shown_now(process: u32) -> Result<Vec<Option<Shown>>, Failed> {
    let mut command = Command::new("milieu");
    command.args(["thread", "top", "--once", "--json", "--interval", "0"]);
    let output = command.arg("--pid").arg(process.to_string()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let threads = document["processes"][0]["threads"].as_array();
    let mut threads = threads.ok_or("nobody shows its threads")?.clone();
    threads.sort_by_key(|it| it["thread"].as_u64());
    let kib = |of: &serde_json::Value| of.as_u64().map(|it| number(it) / 1024.0);
    let one = |it: &serde_json::Value| -> Option<Shown> {
        Some(Shown {
            role: it["role"].as_str().unwrap_or_default().to_owned(),
            stack_kib: kib(&it["stack_bytes"])?,
            peak_kib: kib(&it["stack_bytes_peak"])?,
        })
    };
    // The first thread has the number of the process, and by far not always the least.
    let of_the_program = threads
        .iter()
        .filter(|it| it["thread"] != process && it["name"] != "milieu");
    Ok(of_the_program.map(one).collect())
}
