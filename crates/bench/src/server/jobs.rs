//! Jobs: groups that a server runs for clients, who need not stay.
//!
//! ```text
//! state folder, for its owner alone, locked as long as a server has it
//! └─ 7              a job
//!    ├─ job.json    what was asked for; a job is there once this is
//! ├─ steps       the steps that have ended, as they came
//!    ├─ profiles    files of profiles, if they were asked for
//!    ├─ result.json once it is done
//!    └─ end.json    how it ended; without it, it runs, or goes on with the next server
//! ```
//!
//! Jobs run one after the other, in the order in which they came: two at once would
//! measure each other.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Cluster, Key};
use crate::catalogue::Catalogue;
use crate::description::{self, Group};
use crate::plan::Plan;
use crate::result::{Outcome, Results, StepResult};
use crate::run::journal::Journal;
use crate::run::{
    Clock, Local, Observer, Profiling, Progress, Runner, SystemClock, Wanted, profile,
};

/// The folder of the profiles of a job.
const PROFILES: &str = "profiles";
/// How much of a file goes in one piece.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// A job, as far as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Job {
    /// What it is called.
    pub id: u64,
    /// What its group is called.
    pub name: String,
    /// When it came.
    pub submitted: String,
    /// How far it is.
    pub state: State,
    /// Why it ended before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The worst that happened to a step of a job that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How many steps have ended.
    pub done: u64,
    /// How many there are, at most.
    pub steps: u64,
    /// How many seconds the rest probably takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_seconds: Option<f64>,
    /// Which step runs: its test, and what its variables are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Others run before it.
    Waiting,
    /// It runs.
    Running,
    /// Its result can be fetched.
    Done,
    /// It ended before its end, and can be resumed.
    Stopped,
    /// Somebody has cancelled it; it can be resumed.
    Cancelled,
}

impl State {
    /// Whether nothing will happen any more, unless somebody resumes it.
    #[must_use]
    pub fn has_ended(self) -> bool {
        !matches!(self, State::Waiting | State::Running)
    }
}

/// What was asked for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Asked {
    submitted: String,
    patience_seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<Wanted>,
    group: Group,
}

/// How a job ended.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct End {
    state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

/// A part of a file.
#[derive(Serialize, Deserialize)]
pub(super) struct Piece {
    /// Its bytes, in base 64.
    data: String,
    /// How long the whole file is.
    pub bytes: u64,
}

impl Piece {
    /// The part of a file from a place on.
    pub fn of(path: &Path, from: u64) -> io::Result<Piece> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        file.seek(SeekFrom::Start(from))?;
        let mut data = Vec::new();
        file.take(PIECE_BYTES_MAX).read_to_end(&mut data)?;
        let data = STANDARD.encode(data);
        Ok(Piece { data, bytes })
    }

    pub fn data(&self) -> Result<Vec<u8>, String> {
        let data = STANDARD.decode(&self.data);
        data.map_err(|error| format!("no base 64: {error}"))
    }
}

/// The jobs of a server.
pub struct Jobs {
    folder: PathBuf,
    known: Mutex<BTreeMap<u64, Job>>,
    changed: Condvar,
    /// Whether the job that runs is to end.
    stops: Arc<AtomicBool>,
    _lock: Flock<File>,
}

impl Jobs {
    /// The jobs that are kept in a folder, which is made if it is not there. Those
    /// that had not ended go on when a server serves.
    ///
    /// # Errors
    /// Others can read the folder, another server has it, or it cannot be used.
    pub fn open(folder: &Path) -> io::Result<Jobs> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
        let shown = folder.display();
        let wrong = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
        if fs::metadata(folder)?.permissions().mode() & 0o077 != 0 {
            return Err(wrong(format!("others may read {shown}; chmod 700 {shown}")));
        }
        let lock = Flock::lock(File::open(folder)?, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|_| wrong(format!("another server has {shown}")))?;
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // One that was not asked for as a whole was never promised.
            if let Ok(job) = load(folder, id) {
                known.insert(id, job);
            }
        }
        Ok(Jobs {
            folder: folder.into(),
            known: Mutex::new(known),
            changed: Condvar::new(),
            stops: Arc::default(),
            _lock: lock,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Job>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a job is kept.
    fn path(&self, id: u64, name: &str) -> PathBuf {
        self.folder.join(id.to_string()).join(name)
    }

    /// All jobs.
    pub(super) fn all(&self) -> Vec<Job> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn job(&self, id: u64) -> Result<Job, String> {
        let job = self.lock().get(&id).cloned();
        job.ok_or_else(|| format!("there is no job {id}"))
    }

    /// Adds a job.
    pub(super) fn submit(
        &self,
        group: Group,
        patience_seconds: f64,
        profile: Option<Wanted>,
    ) -> Result<u64, String> {
        let checked = description::check(&group, &Catalogue::default());
        checked.map_err(|found| {
            let first = found.first().map(ToString::to_string);
            format!("the description is wrong: {}", first.unwrap_or_default())
        })?;
        let kept = |error: io::Error| format!("the job cannot be kept: {error}");
        let mut known = self.lock();
        let mut id = known.keys().next_back().map_or(1, |last| last + 1);
        loop {
            match DirBuilder::new()
                .mode(0o700)
                .create(self.folder.join(id.to_string()))
            {
                // One that was never promised.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => id += 1,
                made => break made.map_err(kept)?,
            }
        }
        let asked = Asked {
            submitted: SystemClock::default().now(),
            patience_seconds,
            profile,
            group,
        };
        put(&self.path(id, "job.json"), &asked).map_err(kept)?;
        let job = load(&self.folder, id).map_err(kept)?;
        known.insert(id, job);
        self.changed.notify_all();
        Ok(id)
    }

    /// Ends a job that has not ended.
    pub(super) fn cancel(&self, id: u64) -> Result<(), String> {
        let mut known = self.lock();
        let job = known
            .get_mut(&id)
            .ok_or_else(|| format!("there is no job {id}"))?;
        match job.state {
            State::Running => self.stops.store(true, Ordering::Release),
            State::Waiting => {
                let end = End {
                    state: State::Cancelled,
                    why: None,
                    outcome: None,
                };
                put(&self.path(id, "end.json"), &end).map_err(|error| error.to_string())?;
                job.state = State::Cancelled;
            }
            _ => return Err(format!("the job {id} has ended")),
        }
        Ok(())
    }

    /// Lets a job go on that has ended before its end.
    pub(super) fn resume(&self, id: u64) -> Result<(), String> {
        let mut known = self.lock();
        let job = known
            .get_mut(&id)
            .ok_or_else(|| format!("there is no job {id}"))?;
        match job.state {
            State::Stopped | State::Cancelled => {
                fs::remove_file(self.path(id, "end.json")).map_err(|error| error.to_string())?;
                (job.state, job.why) = (State::Waiting, None);
                self.changed.notify_all();
                Ok(())
            }
            State::Done => Err(format!("the job {id} is done")),
            State::Waiting | State::Running => Err(format!("the job {id} has not ended")),
        }
    }

    /// A part of the result of a job that is done.
    pub(super) fn result(&self, id: u64, from: u64) -> Result<Piece, String> {
        let job = self.job(id)?;
        match job.state {
            State::Done => Piece::of(&self.path(id, "result.json"), from)
                .map_err(|error| format!("its result cannot be read: {error}")),
            _ => Err(format!("the job {id} is not done: {}", job.shown())),
        }
    }

    /// A part of a file of the profiles of a job.
    pub(super) fn profile(&self, id: u64, name: &str, from: u64) -> Result<Piece, String> {
        self.job(id)?;
        if !profile::is_name(name) {
            return Err(format!("`{name}` is no profile"));
        }
        let path = self.path(id, PROFILES).join(name);
        Piece::of(&path, from).map_err(|error| format!("the profile cannot be read: {error}"))
    }

    /// Runs jobs, one after the other, for ever.
    pub(super) fn work(
        &self,
        local: &Arc<Local>,
        key: &Key,
        profiles: bool,
        tell: &dyn Fn(String),
    ) {
        loop {
            let id = self.next();
            let end = self.run(id, local, key, profiles).unwrap_or_else(|why| {
                match self.stops.load(Ordering::Acquire) {
                    true => End {
                        state: State::Cancelled,
                        why: None,
                        outcome: None,
                    },
                    false => End {
                        state: State::Stopped,
                        why: Some(why),
                        outcome: None,
                    },
                }
            });
            if let Err(error) = put(&self.path(id, "end.json"), &end) {
                tell(format!("the end of job {id} cannot be kept: {error}"));
            }
            if let Some(job) = self.lock().get_mut(&id) {
                (job.state, job.why, job.outcome) = (end.state, end.why, end.outcome);
                (job.now, job.left_seconds) = (None, None);
                if job.state == State::Done {
                    // A search may have needed fewer.
                    job.steps = job.done;
                }
                tell(format!("job {id}: {}", job.shown()));
            }
        }
    }

    /// Waits for a job that is to run, and says that it does.
    fn next(&self) -> u64 {
        let mut known = self.lock();
        loop {
            let mut waiting = known.values_mut().filter(|job| job.state == State::Waiting);
            if let Some(job) = waiting.next() {
                self.stops.store(false, Ordering::Release);
                job.state = State::Running;
                return job.id;
            }
            known = self
                .changed
                .wait(known)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, id: u64, local: &Arc<Local>, key: &Key, profiles: bool) -> Result<End, String> {
        let text = |error: io::Error| format!("the job cannot be kept: {error}");
        let asked: Asked = get(&self.path(id, "job.json")).map_err(text)?;
        let mut journal = Journal::open(&self.path(id, "steps"), &asked.group).map_err(text)?;
        let patience = Duration::try_from_secs_f64(asked.patience_seconds).unwrap_or_default();
        let mut executor = Cluster::new(Arc::clone(local), key.clone())
            .patience(patience)
            .stops(Arc::clone(&self.stops))
            .allow_profiles_here(profiles)
            .profile(asked.profile.map(|wanted| Profiling {
                wanted,
                folder: self.path(id, PROFILES),
            }));
        let results = Runner {
            executor: &mut executor,
            clock: &SystemClock::default(),
            observer: &mut Looks { jobs: self, id },
            keeper: &mut journal,
        }
        .run(&asked.group)?;
        put(&self.path(id, "result.json"), &results).map_err(text)?;
        Ok(End {
            state: State::Done,
            why: None,
            outcome: Some(results.outcome()),
        })
    }
}

/// Tells how far the job is that runs.
struct Looks<'j> {
    jobs: &'j Jobs,
    id: u64,
}

impl Observer for Looks<'_> {
    fn begins(&mut self, progress: &Progress<'_>) {
        if let Some(job) = self.jobs.lock().get_mut(&self.id) {
            job.done = progress.done;
            job.left_seconds = progress.left.map(|left| left.as_secs_f64());
            job.now = Some(progress.shown());
        }
    }

    fn ended(&mut self, progress: &Progress<'_>, _: &StepResult) {
        if let Some(job) = self.jobs.lock().get_mut(&self.id) {
            job.done = progress.done;
        }
    }

    fn stops(&mut self) -> bool {
        self.jobs.stops.load(Ordering::Acquire)
    }
}

/// Reads what is known of a job.
fn load(folder: &Path, id: u64) -> io::Result<Job> {
    let path = |name: &str| folder.join(id.to_string()).join(name);
    let asked: Asked = get(&path("job.json"))?;
    let end: Option<End> = get(&path("end.json")).ok();
    let steps = fs::read(path("steps")).unwrap_or_default();
    // The first line says which group it is.
    let lines = steps.iter().filter(|byte| **byte == b'\n').count();
    let done = lines.saturating_sub(1) as u64;
    let plans = asked.group.tests.iter().map(Plan::new);
    let state = end.as_ref().map_or(State::Waiting, |end| end.state);
    Ok(Job {
        id,
        name: asked.group.name,
        submitted: asked.submitted,
        state,
        why: end.as_ref().and_then(|end| end.why.clone()),
        outcome: end.and_then(|end| end.outcome),
        done,
        steps: match state {
            State::Done => done,
            _ => plans.map(|plan| plan.steps_max()).sum(),
        },
        left_seconds: None,
        now: None,
    })
}

fn get<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Writes a file as a whole, or not at all, though the power may go.
fn put(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

impl Job {
    /// How far it is, in a line.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut shown = match self.state {
            State::Waiting => "waiting".to_owned(),
            State::Running => format!("running, step {} of {}", self.done + 1, self.steps),
            State::Done => format!("done, {} steps", self.steps),
            State::Stopped => format!("stopped after {} of {} steps", self.done, self.steps),
            State::Cancelled => format!("cancelled after {} of {} steps", self.done, self.steps),
        };
        for more in [&self.why, &self.now].into_iter().flatten() {
            shown.push_str(": ");
            shown.push_str(more);
        }
        shown
    }
}

/// The result that a client has fetched.
pub(super) fn results(text: &[u8]) -> Result<Results, String> {
    Results::parse(std::str::from_utf8(text).map_err(|error| error.to_string())?)
}
