//! Profiles of applications: perf or callgrind runs them, and what it writes is kept.
//!
//! A profile is a folder of files, one for each process (callgrind), or one for all
//! (perf). Files are called by numbers alone, whatever tests and applications are
//! called: `TEST-STEP-APPLICATION-FILE.PROFILER`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::{Order, Ordered};

/// How many files of an application in a step are kept.
const FILES_MAX: usize = 64;
/// How long a file is that is kept.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A program that says where others spend their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profiler {
    /// `perf record`: samples, of the processor's cycles where it counts them, of time
    /// elsewhere.
    Perf,
    /// `valgrind --tool=callgrind`: every instruction, many times slower.
    Callgrind,
}

impl Profiler {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Profiler::Perf => "perf",
            Profiler::Callgrind => "callgrind",
        }
    }

    /// The command that runs another and writes its profile into a folder.
    fn around(self, folder: &Path) -> Vec<String> {
        let folder = folder.display();
        let words: &[&str] = match self {
            Profiler::Perf => &["perf", "record", "--quiet", "--call-graph", "fp"],
            Profiler::Callgrind => &[
                "valgrind",
                "--tool=callgrind",
                "--quiet",
                "--trace-children=yes",
            ],
        };
        let mut command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Profiler::Perf => command.push(format!("--output={folder}/0")),
            Profiler::Callgrind => command.push(format!("--callgrind-out-file={folder}/%p")),
        }
        command.push("--".into());
        command
    }

    /// The command with the profiler before it. The folder for the profile is made.
    ///
    /// # Errors
    /// The profiler does not work here.
    pub(super) fn before(self, folder: &Path, command: Vec<String>) -> Result<Vec<String>, String> {
        fs::create_dir(folder).map_err(|error| error.to_string())?;
        self.check(folder)?;
        Ok([self.around(folder), command].concat())
    }

    /// Tries it, until it has worked once.
    fn check(self, folder: &Path) -> Result<(), String> {
        static WORKS: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
        let works = &WORKS[self as usize];
        if works.load(Ordering::Acquire) {
            return Ok(());
        }
        let words = self.around(folder);
        let (name, package) = match self {
            Profiler::Perf => ("perf", "perf (linux-perf, linux-tools)"),
            Profiler::Callgrind => ("callgrind", "valgrind"),
        };
        let output = Command::new(&words[0])
            .args(&words[1..])
            .arg("true")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                format!("{name} cannot be run here: {error}; the package {package} has it")
            })?;
        for file in files(folder).unwrap_or_default() {
            let _ = fs::remove_file(file);
        }
        if output.status.success() {
            works.store(true, Ordering::Release);
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
        let said: Vec<&str> = lines.take(4).collect();
        let help = match self {
            Profiler::Perf => {
                "; root may always, others if kernel.perf_event_paranoid is 2 or less"
            }
            Profiler::Callgrind => "",
        };
        Err(format!(
            "{name} does not work here: {}{help}",
            said.join(" ")
        ))
    }
}

impl std::str::FromStr for Profiler {
    type Err = String;

    fn from_str(text: &str) -> Result<Profiler, String> {
        match text {
            "perf" => Ok(Profiler::Perf),
            "callgrind" => Ok(Profiler::Callgrind),
            _ => Err("there are perf and callgrind".into()),
        }
    }
}

/// What is to be profiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Wanted {
    /// How.
    pub profiler: Profiler,
    /// The application; `None` is each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
}

impl Wanted {
    /// The profiler of an application.
    pub(crate) fn of(&self, application: &Ordered) -> Option<Profiler> {
        let is_it = |name: &String| *name == application.name;
        let is_wanted = self.application.as_ref().is_none_or(is_it);
        is_wanted.then_some(self.profiler)
    }
}

/// What is to be profiled, and where it is kept.
#[derive(Clone, Debug)]
pub struct Profiling {
    /// What.
    pub wanted: Wanted,
    /// The folder of the files.
    pub folder: PathBuf,
}

/// The profile of an application in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Profile {
    /// How it was made.
    pub by: Profiler,
    /// Its files, in the folder of profiles beside the result.
    pub files: Vec<String>,
    /// Why it is missing, or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

impl Profiling {
    /// Keeps files. Each is opened when it is its turn.
    pub(crate) fn keep<R: Read>(
        &self,
        order: &Order,
        index: usize,
        count: usize,
        open: impl FnMut(usize) -> io::Result<R>,
    ) -> Profile {
        let mut profile = Profile {
            by: self.wanted.profiler,
            files: Vec::new(),
            lacks: None,
        };
        if count == 0 {
            profile.lacks = Some("the profiler has written nothing".into());
        }
        if let Err(error) = self.keep_all(order, index, count, open, &mut profile) {
            profile.lacks = Some(format!("it cannot be kept: {error}"));
        }
        profile
    }

    fn keep_all<R: Read>(
        &self,
        order: &Order,
        index: usize,
        count: usize,
        mut open: impl FnMut(usize) -> io::Result<R>,
        profile: &mut Profile,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        for number in 0..count.min(FILES_MAX) {
            let by = profile.by.name();
            let name = format!("{}-{}-{index}-{number}.{by}", order.test, order.step.index);
            let mut file = File::create(self.folder.join(&name))?;
            let mut from = open(number)?.take(FILE_BYTES_MAX);
            if io::copy(&mut from, &mut file)? == FILE_BYTES_MAX {
                profile.lacks = Some("a file has more than 1 GiB, and was cut".into());
            }
            profile.files.push(name);
        }
        if count > FILES_MAX {
            profile.lacks = Some(format!("only {FILES_MAX} of {count} files are kept"));
        }
        Ok(())
    }
}

/// The files of a profile, in their order.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = entries.collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// Whether a name is one of those that files of profiles have.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_lead_nowhere_else() {
        assert!(is_name("0-12-1-3.callgrind"));
        for name in [
            "",
            "..",
            "../0.perf",
            "/etc/passwd",
            "0/../../x",
            ".0",
            "0\0",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
