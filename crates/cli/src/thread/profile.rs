//! `milieu thread profile`: what was learned of stacks.

mod suggest;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use milieu_device::monitor::{Monitor, Scope};
use milieu_device::profile::{self, Profile as Learned, Start, Symbols, verdict};
use milieu_threads::stack::{self, Entry, Language, Policy, Row, Verdict, Zones};
use serde_json::{Value, json};

use super::{Failure, Outcome, print};
use crate::arguments::seconds;

/// Show what was learned of stacks: depths, sizes, and where their threads begin
///
/// Files are those that `milieu thread run` keeps; several are joined: of each number
/// the greatest. Without any, all are shown that are kept for this user.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu thread profile
  milieu thread profile server.stacks --emit c > stacks.h
  milieu thread profile meter.stacks --emit c --bits 32 --floor 64K --margin 50 > stacks.h
  milieu thread profile monday.stacks tuesday.stacks --merge week.stacks
  milieu thread profile --suggest --pid 4711 --seconds 10 > server.roles")]
pub(super) struct Profile {
    /// Profiles
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write all of them as one file; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["emit", "suggest"])]
    merge: Option<PathBuf>,

    /// Print a table of sizes for the next compilation
    #[arg(long, value_enum, conflicts_with = "suggest")]
    emit: Option<Source>,

    /// Propose patterns: critical threads by their wake-ups, and start functions
    /// whose threads have no role, with where these are created if `run --sites` has noted that
    #[arg(long)]
    suggest: bool,

    /// Whose wake-ups are looked at [default: those of all programs that are served]
    #[arg(long, value_name = "NUMBER", requires = "suggest")]
    pid: Vec<u32>,

    /// For how long
    #[arg(long, value_name = "SECONDS", default_value = "2", requires = "suggest", value_parser = seconds)]
    seconds: Duration,

    /// Bounds of the zones of stacks, in percent [default: those of the device, or 25,75]
    #[arg(long, value_name = "LOW,HIGH", value_parser = super::zones::parse)]
    zones: Option<Zones>,

    /// No stack is to be smaller than this [default: 256K, or 128K with 32 bits]
    #[arg(long, value_name = "BYTES[K|M]", value_parser = super::floor)]
    floor: Option<u64>,

    /// What is added to the deepest that was seen [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = super::margin)]
    margin: Option<u8>,

    /// Of how many bits programs are [default: as this one]
    #[arg(long, value_name = "32|64", value_parser = ["32", "64"])]
    bits: Option<String>,

    /// Print it as lines of JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Source {
    /// A header for C and C++
    C,
    /// A module for Rust
    Rust,
}

/// Where profiles are kept if nobody names a file.
pub(super) fn default_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|it| !it.is_empty());
    match (variable("XDG_STATE_HOME"), variable("HOME")) {
        (Some(state), _) => PathBuf::from(state).join("milieu"),
        (None, Some(home)) => PathBuf::from(home).join(".local/state/milieu"),
        (None, None) => PathBuf::from("/var/lib/milieu"),
    }
}

impl Profile {
    pub(super) fn run(&self) -> Outcome {
        let learned = self.load()?;
        for complaint in &learned.complaints {
            eprintln!("milieu: {complaint}");
        }
        if let Some(path) = &self.merge {
            return merge(&learned, path);
        }
        let zones = super::zones::chosen(self.zones)?;
        if self.suggest {
            return self.propose(&learned, zones);
        }
        let rows = Rows::of(&learned.entries, &learned, zones, self.policy());
        if let Some(source) = self.emit {
            return print(&rows.source(source));
        }
        print(&match self.json {
            true => rows.json(None),
            false => rows.text(),
        })
    }

    /// By what sizes are enough.
    fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        if let Some(bits) = &self.bits {
            policy.floor_bytes = Policy::floor_bytes_of(bits == "32");
        }
        policy.floor_bytes = self.floor.unwrap_or(policy.floor_bytes);
        policy.margin_percent = self.margin.unwrap_or(policy.margin_percent);
        policy
    }

    fn load(&self) -> Outcome<Learned> {
        let mut files = self.files.clone();
        if files.is_empty() {
            files = kept(&default_folder());
            // Wake-ups are told without a profile.
            if files.is_empty() && !self.suggest {
                return Err(Failure::new(
                    format!("nothing was learned yet in {}", default_folder().display()),
                    "`milieu thread run -- PROGRAM` learns; or name a file",
                ));
            }
        }
        profile::load(&files).map_err(|error| {
            Failure::new(
                error.to_string(),
                "name files that `milieu thread run` wrote",
            )
        })
    }

    fn propose(&self, learned: &Learned, zones: Zones) -> Outcome {
        let mut monitor = Monitor::new(Scope {
            processes: (!self.pid.is_empty()).then(|| self.pid.clone()),
            has_no_stacks: true,
            ..Scope::default()
        });
        monitor.sample(Instant::now());
        std::thread::sleep(self.seconds);
        let sample = monitor.sample(Instant::now());
        if let Some(missing) = self
            .pid
            .iter()
            .find(|it| sample.processes.iter().all(|found| found.number != **it))
        {
            return Err(Failure::new(
                format!("there is no process {missing}"),
                "`milieu thread top --once` lists those that there are",
            ));
        }
        let wakers = suggest::wakers(&sample, !self.pid.is_empty());
        let sites = suggest::Sites::of(learned);
        if !self.json {
            return print(&suggest::text(&wakers, &sites));
        }
        let mut text = String::new();
        for waker in &wakers {
            let _ = writeln!(text, "{}", waker.json());
        }
        let nameless = learned.entries.iter().filter(|it| it.role.is_empty());
        let nameless: Vec<Entry> = nameless.copied().collect();
        let rows = Rows::of(&nameless, learned, zones, self.policy());
        let add = |line: &Line, document: &mut Value| {
            let proposal = sites.proposal(&line.entry.key);
            document["is"] = "has-no-role".into();
            document["created_by"] = sites.creations(&line.entry.key).into();
            document["line"] = json!(proposal.and_then(|it| it.as_ref().ok()));
            document["why_no_line"] = json!(proposal.and_then(|it| it.as_ref().err()));
        };
        print(&(text + &rows.json(Some(&add))))
    }
}

/// The profiles in a folder, also of programs that have only left notes for one.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let has = |it: &Path, end| it.extension().is_some_and(|it| it == end);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries
        .map(|it| it.path())
        .map(|it| match has(&it, "notes") {
            // `PROFILE.PID.notes`
            true => it.with_extension("").with_extension(""),
            false => it,
        });
    let mut files: Vec<PathBuf> = paths.filter(|it| has(it, "stacks")).collect();
    files.sort();
    files.dedup();
    files.iter().for_each(|it| profile::settle(it));
    files.retain(|it| it.exists());
    files
}

/// Puts the file in the place of one that is there, at once.
fn merge(learned: &Learned, path: &Path) -> Outcome {
    if path == Path::new("-") {
        return print(&String::from_utf8_lossy(&learned.text));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        io::Write::write_all(&mut file, &learned.text)?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map_err(|error| {
        Failure::new(
            format!("{} cannot be written: {error}", path.display()),
            "name a file in a folder that you may write",
        )
    })?;
    Ok(std::process::ExitCode::SUCCESS)
}

/// What is known of threads, with where they begin.
pub(super) struct Rows {
    rows: Vec<Line>,
    zones: Zones,
    policy: Policy,
}

/// Adds to what is told of a line.
type More<'m> = &'m dyn Fn(&Line, &mut Value);

pub(super) struct Line {
    entry: Entry,
    start: Start,
    verdict: Verdict,
}

impl Rows {
    /// The largest waste first.
    pub(super) fn of(entries: &[Entry], learned: &Learned, zones: Zones, policy: Policy) -> Rows {
        let mut symbols = Symbols::of(learned);
        let rows = entries.iter().map(|entry| Line {
            entry: *entry,
            start: symbols.start(&entry.key),
            verdict: verdict(entry, zones, &policy),
        });
        let mut rows: Vec<Line> = rows.collect();
        rows.sort_by(|a, b| {
            b.verdict
                .cmp(&a.verdict)
                .then_with(|| waste(b).cmp(&waste(a)))
        });
        Rows {
            rows,
            zones,
            policy,
        }
    }

    fn role(entry: &Entry) -> String {
        String::from_utf8_lossy(entry.role.as_bytes()).into_owned()
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{:<13} {:<6} {:>7} {:>7} {:>7} {:>5} {:>7} {:<16} START\n",
            "VERDICT", "ZONE", "PEAK", "GIVEN", "ENOUGH", "RUNS", "THREADS", "ROLE"
        );
        for row in &self.rows {
            let entry = &row.entry;
            let set = if entry.is_set { "=" } else { "" };
            let role: String = Self::role(entry)
                .chars()
                .filter(|it| !it.is_control())
                .collect();
            let _ = writeln!(
                text,
                "{:<13} {:<6} {:>7} {:>7} {:>7} {:>5} {:>7} {:<16} {}",
                row.verdict,
                self.zones.zone(entry.peak_bytes, entry.given_bytes),
                size(entry.peak_bytes),
                format!("{set}{}", size(entry.given_bytes)),
                size(self.policy.enough_bytes(entry.peak_bytes)),
                entry.runs,
                entry.threads,
                role,
                row.start.name,
            );
            if let Some(position) = &row.start.position {
                let _ = writeln!(text, "{:>82}{position}", "");
            }
            if entry.overflow_bytes > 0 {
                let _ = writeln!(
                    text,
                    "{:>82}has overflowed {}; it is not tuned again",
                    "",
                    size(entry.overflow_bytes)
                );
            }
        }
        let is_set = self.rows.iter().any(|it| it.entry.is_set);
        if is_set {
            text += "`=` before a size: the program has set it, and it stays unless asked for\n";
        }
        text
    }

    /// Lines, to which more may be added.
    pub(super) fn json(&self, more: Option<More<'_>>) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let entry = &row.entry;
            let mut document = json!({
                "key": entry.key.to_string(),
                "start": row.start.name,
                "position": row.start.position,
                "role": (!entry.role.is_empty()).then(|| Self::role(entry)),
                "runs": entry.runs,
                "threads": entry.threads,
                "peak_bytes": entry.peak_bytes,
                "given_bytes": entry.given_bytes,
                "is_set": entry.is_set,
                "enough_bytes": self.policy.enough_bytes(entry.peak_bytes),
                "overflow_bytes": (entry.overflow_bytes > 0).then_some(entry.overflow_bytes),
                "zone": self.zones.zone(entry.peak_bytes, entry.given_bytes).to_string(),
                "verdict": row.verdict.to_string(),
            });
            if let Some(more) = more {
                more(row, &mut document);
            }
            let _ = writeln!(text, "{document}");
        }
        text
    }

    fn source(&self, source: Source) -> String {
        // A key that has overflowed is not tuned again, by nobody.
        let sound = self.rows.iter().filter(|it| it.entry.overflow_bytes == 0);
        let roles: Vec<(&Line, String)> = sound.map(|it| (it, Self::role(&it.entry))).collect();
        let rows: Vec<Row<'_>> = roles
            .iter()
            .map(|(row, role)| Row {
                start: &row.start.name,
                role,
                position: row.start.position.as_deref().unwrap_or_default(),
                bytes: self.policy.enough_bytes(row.entry.peak_bytes),
                peak_bytes: row.entry.peak_bytes,
                given_bytes: row.entry.given_bytes,
            })
            .collect();
        let language = match source {
            Source::C => Language::C,
            Source::Rust => Language::Rust,
        };
        let mut text = String::new();
        // A text takes everything.
        let _ = stack::emit(language, &rows, &mut text);
        text
    }
}

fn waste(row: &Line) -> u64 {
    let entry = &row.entry;
    let each = entry.given_bytes.saturating_sub(entry.peak_bytes);
    each.saturating_mul(entry.threads)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..0xa0_0000 => format!("{}K", bytes.div_ceil(1024)),
        _ => format!("{}M", bytes.div_ceil(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_never_less_than_they_are() {
        let shown = [0, 1, 4096, 8 << 20, (8 << 20) + 1, 100 << 20].map(size);
        assert_eq!(shown, ["0K", "1K", "4K", "8192K", "8193K", "100M"]);
    }
}
