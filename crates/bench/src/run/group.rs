//! Control groups: what the kernel counts for an application and all that it starts.
//!
//! Each application of a step gets a group of its own, below the harness's:
//!
//! ```text
//! the harness's own group
//! └─ milieu-bench-PID.0   locked as long as the harness lives
//!    ├─ 0                 an application of a step
//!    └─ 1                 another
//! ```
//!
//! A group that nobody has locked is one of a harness that was killed: what still
//! runs there is ended by the next one. Hierarchies of version 2 count processor
//! time, memory, packets and switches; where memory is still counted by version 1,
//! a group is made there, too. What cannot be counted is left out, and
//! [`Measures`] says why.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use super::counters::{Packets, Switches};
use super::minder::Resources;

const PREFIX: &str = "milieu-bench-";
/// How often a group that is being left is looked at.
const PAUSE: Duration = Duration::from_millis(2);
/// How often at most: a process that hangs in the kernel is nothing to wait for.
const LOOKS_MAX: u32 = 2500;

/// What can be counted for single applications on this machine, by what, and why
/// not the rest.
#[derive(Debug, Default)]
pub struct Measures {
    homes: Vec<Home>,
    next: AtomicU64,
    /// What counts a figure: `processor`, `memory`, `switches`, `network`.
    pub by: BTreeMap<String, String>,
    /// Why a figure is not counted, or only in part.
    pub lacks: BTreeMap<String, String>,
}

/// Where the groups of a harness are.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Measures {
    /// Tries what can be counted here.
    #[must_use]
    pub fn here() -> Measures {
        let mut measures = Measures::default();
        let (unified, memory) = hierarchies();
        let found = unified.ok_or_else(|| "no control groups of version 2 are mounted".to_owned());
        match found.and_then(|own| Home::new(&own).map_err(|error| refused(&own, &error))) {
            Ok(home) => measures.homes.push(home),
            Err(why) => {
                for (figure, instead) in [
                    ("processor", "; rusage of processes that were waited for"),
                    ("switches", "; rusage of processes that were waited for"),
                    ("memory", "; the largest process alone"),
                    ("network", ""),
                ] {
                    measures.lack(figure, format!("{why}{instead}"));
                }
                return measures;
            }
        }
        // Where version 2 has it, version 1 does not.
        if let Some(Ok(home)) = memory.map(|own| Home::new(&own)) {
            measures.homes.push(home);
        }
        let mut tried = Group::make(&measures.next());
        // What is allowed to make a group is not always allowed to move there.
        tried.enter();
        tried.leave();
        let mut resources = Resources::default();
        tried.read(&mut resources);
        let processor = resources.counted_by.get("processor").cloned();
        let memory = resources.counted_by.get("memory").cloned();
        let why = "this process may not move to a control group of its own, which needs one that \
                   is delegated to it";
        measures.found("processor", processor.ok_or(why));
        let why = "the controller of memory is not enabled there; the largest process alone";
        measures.found("memory", memory.ok_or(why));
        let of = |counts: &io::Result<()>, by: &str| match counts {
            Ok(()) => Ok(by.to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let packets = of(&tried.packets.as_ref().map(|_| ()).map_err(copied), PACKETS);
        let switches = of(
            &tried.switches.as_ref().map(|_| ()).map_err(copied),
            SWITCHES,
        );
        measures.found(
            "network",
            packets.map_err(|why| format!("needs root: bpf: {why}")),
        );
        let why =
            |why| format!("needs root: perf: {why}; rusage of processes that were waited for");
        measures.found("switches", switches.map_err(why));
        tried.remove();
        measures
    }

    fn found(&mut self, figure: &str, found: Result<String, impl Into<String>>) {
        match found {
            Ok(by) => _ = self.by.insert(figure.into(), by),
            Err(why) => self.lack(figure, why),
        }
    }

    fn lack(&mut self, figure: &str, why: impl Into<String>) {
        self.lacks.insert(figure.into(), why.into());
    }

    /// Where the groups of the next application are.
    pub(super) fn next(&self) -> Vec<PathBuf> {
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let paths = self.homes.iter().map(|home| home.path.join(&number));
        paths.collect()
    }
}

const PACKETS: &str = "bpf: packets at the sockets of its control group";
const SWITCHES: &str = "perf: software event of its control group";

fn copied(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

fn refused(own: &Path, error: &io::Error) -> String {
    let own = own.display();
    format!(
        "no control group can be made in {own}: {error}; be root, or begin with \
         `systemd-run --user --scope -p Delegate=yes`"
    )
}

impl Home {
    fn new(own: &Path) -> io::Result<Home> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        sweep(own);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = own.join(format!("{PREFIX}{}.{number}", std::process::id()));
        let lock = loop {
            make(&path)?;
            let lock = Flock::lock(File::open(&path)?, FlockArg::LockExclusive);
            let lock = lock.map_err(|(_, error)| io::Error::from(error))?;
            // Another harness may have swept it before it was locked.
            if path.exists() {
                break lock;
            }
        };
        share_memory(own);
        share_memory(&path);
        Ok(Home { path, _lock: lock })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What is still being ended there is left to the next harness.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Makes a group, unless it is there.
fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Lets the groups in a group of version 2 count memory, where that is possible.
fn share_memory(group: &Path) {
    let share = || fs::write(group.join("cgroup.subtree_control"), "+memory");
    // A group that shares has no processes of its own, and so not the harness, if
    // that is alone there.
    let is_busy = share().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy);
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    if is_busy && processes.trim() == std::process::id().to_string() {
        let aside = group.join(format!("{PREFIX}harness"));
        if make(&aside).and_then(|()| enter(&aside)).is_ok() {
            let _ = share();
        }
    }
}

/// Ends what a harness has left that was killed, and removes its groups.
fn sweep(own: &Path) {
    for home in fs::read_dir(own).into_iter().flatten().flatten() {
        let name = home.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        // The group aside of a harness is none of them.
        if pid.is_none_or(|pid| !pid.contains('.')) {
            continue;
        }
        let path = home.path();
        let Ok(file) = File::open(&path) else {
            continue;
        };
        if let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            for group in fs::read_dir(&path).into_iter().flatten().flatten() {
                remove(&group.path());
            }
            let _ = fs::remove_dir(&path);
        }
    }
}

/// This process's own groups: of version 2, and of the memory of version 1.
fn hierarchies() -> (Option<PathBuf>, Option<PathBuf>) {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (mounts, own) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
    (
        hierarchy(&mounts, &own, None),
        hierarchy(&mounts, &own, Some("memory")),
    )
}

/// Where a process's own group is mounted: that of a controller of version 1, or of
/// version 2.
fn hierarchy(mounts: &str, own: &str, controller: Option<&str>) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match controller {
            None => number == "0" && controllers.is_empty(),
            Some(controller) => controllers.split(',').any(|it| it == controller),
        };
        is_it.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, point) = (words.next()?, words.next()?);
        let mut words = file_system.split(' ');
        let is_it = match (words.next()?, controller) {
            ("cgroup2", None) => true,
            ("cgroup", Some(controller)) => {
                words.nth(1)?.split(',').any(|option| option == controller)
            }
            _ => false,
        };
        // What is above the mount cannot be reached.
        let within = Path::new(own).strip_prefix(root).ok()?;
        is_it.then(|| Path::new(point).join(within))
    })
}

/// Moves this process into a group.
fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// Kills all processes of a group; the kernel leaves none out.
fn kill(group: &Path) {
    if fs::write(group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    // Version 1, or a kernel before 5.14.
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines().filter_map(|pid| pid.parse().ok()) {
        let pid = nix::unistd::Pid::from_raw(pid);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    }
}

/// Kills all processes of a group until it can be removed.
pub(super) fn remove(group: &Path) {
    for _ in 0..LOOKS_MAX {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                kill(group);
                thread::sleep(PAUSE);
            }
            _ => return,
        }
    }
}

/// The groups of one application.
pub(super) struct Group {
    paths: Vec<PathBuf>,
    /// Where this process was before it entered them.
    before: Vec<PathBuf>,
    packets: io::Result<Packets>,
    switches: io::Result<Switches>,
}

impl Group {
    /// Makes the groups at these paths, as far as that is possible; the first one is
    /// of version 2.
    pub fn make(paths: &[PathBuf]) -> Group {
        let paths: Vec<PathBuf> = paths
            .iter()
            .filter(|path| fs::create_dir(path).is_ok())
            .cloned()
            .collect();
        let none = || io::Error::from(io::ErrorKind::NotFound);
        let first = paths.first().cloned();
        Group {
            before: Vec::new(),
            packets: first.as_deref().ok_or_else(none).and_then(Packets::of),
            switches: first.as_deref().ok_or_else(none).and_then(Switches::of),
            paths,
        }
    }

    /// Moves this process into the groups: what it starts is there, too.
    pub fn enter(&mut self) {
        let (unified, memory) = hierarchies();
        for path in &self.paths {
            // Only groups of version 2 tell of events.
            let is_unified = path.join("cgroup.events").exists();
            let own = if is_unified { &unified } else { &memory };
            if let (Some(own), Ok(())) = (own, enter(path)) {
                self.before.push(own.clone());
            }
        }
        if self.before.len() < self.paths.len() {
            // Half of it would be taken for the whole.
            self.leave();
            self.remove();
        }
    }

    /// Moves this process back.
    pub fn leave(&mut self) {
        let left = self.before.iter().try_for_each(|path| enter(path));
        if left.is_err() {
            // It would count, and end, itself.
            self.paths.clear();
        }
    }

    /// Kills what is left, and waits until nothing is.
    pub fn end(&self) {
        let Some(group) = self.paths.first() else {
            return;
        };
        kill(group);
        for _ in 0..LOOKS_MAX {
            let events = fs::read_to_string(group.join("cgroup.events")).unwrap_or_default();
            if !events.lines().any(|line| line == "populated 1") {
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Takes over what was counted.
    pub fn read(&mut self, resources: &mut Resources) {
        let mut by = |figure: &str, by: &str| {
            resources.counted_by.insert(figure.into(), by.into());
        };
        let Some(unified) = self.paths.first() else {
            return;
        };
        let text = fs::read_to_string(unified.join("cpu.stat")).unwrap_or_default();
        let of = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let (_, microseconds) = lines.find(|(key, _)| *key == name)?;
            Some(Duration::from_micros(microseconds.parse().ok()?).as_secs_f64())
        };
        if let (Some(user), Some(system)) = (of("user_usec"), of("system_usec")) {
            (resources.user_seconds, resources.system_seconds) = (user, system);
            by("processor", "its control group");
        }
        let files = ["memory.peak", "memory.max_usage_in_bytes"];
        let mut files = self
            .paths
            .iter()
            .flat_map(|path| files.map(|file| path.join(file)));
        let peak = files.find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
        if let Some(bytes) = peak {
            resources.memory_together_bytes_max = Some(bytes);
            by("memory", "its control group");
        }
        if let Some(network) = self.packets.as_ref().ok().and_then(|it| it.settled().ok()) {
            resources.network = Some(network);
            by("network", PACKETS);
        }
        if let Some(switches) = self.switches.as_mut().ok().and_then(|it| it.read().ok()) {
            resources.switches = Some(switches);
            by("switches", SWITCHES);
        }
    }

    /// Removes the groups, with all that runs there.
    pub fn remove(&mut self) {
        for path in self.paths.drain(..) {
            remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_groups_are_found_in_what_is_mounted() {
        let mixed = "\
29 24 0:25 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
30 29 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:5 - cgroup2 cgroup2 rw
33 29 0:29 /pod /sys/fs/cgroup/memory rw shared:7 - cgroup cgroup rw,memory
35 29 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:8 - cgroup cgroup rw,cpu,cpuacct";
        let own = "9:cpu,cpuacct:/a\n4:memory:/pod/b\n0::/user.slice/c:d";
        let found = |controller| hierarchy(mixed, own, controller);
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(found(None), path("/sys/fs/cgroup/unified/user.slice/c:d"));
        assert_eq!(found(Some("memory")), path("/sys/fs/cgroup/memory/b"));
        assert_eq!(found(Some("cpuacct")), path("/sys/fs/cgroup/cpu,cpuacct/a"));
        assert_eq!(found(Some("pids")), None);
        let above = own.replace("/pod/b", "/../other");
        assert_eq!(hierarchy(mixed, &above, Some("memory")), None);
        let plain = "30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(hierarchy(plain, "0::/", None), path("/sys/fs/cgroup/"));
        assert_eq!(hierarchy(plain, "0::/", Some("memory")), None);
    }
}
