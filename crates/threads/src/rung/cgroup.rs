//! The control group for lazy threads, below the one that the process is in.
//!
//! Version 1 takes threads in `tasks`, version 2 in `cgroup.threads` of a group
//! that is threaded. Where systemd mounts them is where they are looked for.

mod controller;

use core::ffi::CStr;
use core::fmt::Arguments;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::Obstacle;
use crate::kernel::{self, Errno, File, Text};

/// Where version 1 has the processors, and version 2 everything.
const VERSION_1: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
const VERSION_2: &str = "/sys/fs/cgroup";

/// What lazy groups are called, with the process's number behind it, and one that
/// tells those of a process apart.
const PREFIX: &str = "milieu-lazy-";

static NUMBER: AtomicU32 = AtomicU32::new(0);

const PATH_MAX: usize = 512;

type Path = Text<PATH_MAX>;

/// The group of the process, and the one for lazy threads below it.
pub(super) struct Groups {
    /// As `/proc/PID/cgroup` has it.
    name: Path,
    /// The folder of the group of the process.
    home: Path,
    is_version_2: bool,
    process: u32,
    number: u32,
    is_removed: AtomicBool,
}

impl Groups {
    pub fn new() -> Result<Groups, Obstacle> {
        let mut space = [0; 4096];
        let text = kernel::read_file(c"/proc/self/cgroup", &mut space);
        let text = text.map_err(|_| Obstacle::NoGroup)?;
        let text = core::str::from_utf8(text).map_err(|_| Obstacle::NoGroup)?;
        let found = [false, true].into_iter().find_map(|is_version_2| {
            let name = name_in(text, is_version_2)?;
            let roots = if is_version_2 {
                &[VERSION_2][..]
            } else {
                &VERSION_1
            };
            let homes = roots.iter().filter_map(|root| {
                let below = name.strip_prefix('/').filter(|it| !it.is_empty());
                match below {
                    Some(below) => Path::of(format_args!("{root}/{below}")),
                    None => Path::of(format_args!("{root}")),
                }
            });
            let home = homes.into_iter().find(|it| has(it, is_version_2))?;
            Some((is_version_2, Path::of(format_args!("{name}"))?, home))
        });
        let (is_version_2, name, home) = found.ok_or(Obstacle::NoGroup)?;
        let groups = Groups {
            name,
            home,
            is_version_2,
            process: kernel::process_id(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            is_removed: AtomicBool::new(false),
        };
        groups.remove_left_behind();
        groups.make()?;
        Ok(groups)
    }

    fn make(&self) -> Result<(), Obstacle> {
        self.make_group()?;
        let mut idle = Ok(());
        for _ in 0..4 {
            if self.is_version_2 {
                controller::hand_on(&self.home).map_err(Obstacle::NotDelegated)?;
            }
            let switch = self.lazy("/cpu.idle");
            idle = switch.and_then(|it| kernel::write_file(it.as_c_str(), b"1"));
            // Somebody may have taken the controller back in between, and its files.
            if !self.is_version_2 || idle != Err(Errno(libc::ENOENT)) {
                break;
            }
        }
        idle.map_err(Obstacle::NoIdleGroup)
    }

    /// The group, which takes threads.
    fn make_group(&self) -> Result<(), Obstacle> {
        let lazy = self.lazy("").map_err(Obstacle::NotDelegated)?;
        match kernel::make_folder(lazy.as_c_str()) {
            Ok(()) | Err(Errno(libc::EEXIST)) => {}
            Err(error) => return Err(Obstacle::NotDelegated(error)),
        }
        if self.is_version_2 {
            let kind = self
                .lazy("/cgroup.type")
                .and_then(|it| kernel::write_file(it.as_c_str(), b"threaded"));
            kind.map_err(Obstacle::NotDelegated)?;
        }
        Ok(())
    }

    /// Puts a thread of the process into the lazy group, unless the program has put
    /// it into a group of its own.
    pub fn make_lazy(&self, tid: u32) -> Result<(), Errno> {
        let list = Text::<48>::of(format_args!("/proc/{tid}/cgroup"));
        let list = list.ok_or(Errno(libc::ENAMETOOLONG))?;
        let mut space = [0; 4096];
        let text = kernel::read_file(list.as_c_str(), &mut space)?;
        let text = core::str::from_utf8(text).unwrap_or_default();
        if name_in(text, self.is_version_2) != Some(self.name.as_str()) {
            return Ok(());
        }
        write_thread(&self.lazy(self.threads())?, tid)
    }

    /// Puts a thread that is in the lazy group back into that of the process.
    pub fn bring_home(&self, tid: u32) -> Result<(), Errno> {
        if !self.has_lazy(tid)? {
            return Ok(());
        }
        write_thread(
            &self.path(format_args!("{}{}", self.home.as_str(), self.threads()))?,
            tid,
        )
    }

    /// Whether a thread is in a lazy group.
    pub fn is_lazy(&self, tid: u32) -> bool {
        self.has_lazy(tid).unwrap_or_default()
    }

    fn has_lazy(&self, tid: u32) -> Result<bool, Errno> {
        let list = Text::<48>::of(format_args!("/proc/{tid}/cgroup"));
        let list = list.ok_or(Errno(libc::ENAMETOOLONG))?;
        let mut space = [0; 4096];
        let text = kernel::read_file(list.as_c_str(), &mut space)?;
        let text = core::str::from_utf8(text).unwrap_or_default();
        Ok(name_in(text, self.is_version_2).is_some_and(|it| it.contains(PREFIX)))
    }

    /// Leaves the group to the parent, and makes one for this process.
    pub fn after_fork(&mut self, process: u32) {
        self.process = process;
        self.is_removed.store(false, Ordering::Relaxed);
        // If it fails, so does making threads lazy, and that is told.
        let _ = self.make();
    }

    fn threads(&self) -> &'static str {
        if self.is_version_2 {
            "/cgroup.threads"
        } else {
            "/tasks"
        }
    }

    fn lazy(&self, file: &str) -> Result<Path, Errno> {
        let (home, process, number) = (self.home.as_str(), self.process, self.number);
        self.path(format_args!("{home}/{PREFIX}{process}-{number}{file}"))
    }

    fn path(&self, arguments: Arguments<'_>) -> Result<Path, Errno> {
        Path::of(arguments).ok_or(Errno(libc::ENAMETOOLONG))
    }

    /// Brings home whoever is still there, then removes the group.
    pub fn remove(&self) {
        if self.is_removed.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut space = [0; 4096];
        // As many as fit in the space come home in a round.
        for _ in 0..64 {
            let Ok(list) = self.lazy(self.threads()) else {
                return;
            };
            let listed = kernel::read_file(list.as_c_str(), &mut space).unwrap_or_default();
            if listed.is_empty() {
                break;
            }
            for line in listed.split(|it| *it == b'\n') {
                let tid = core::str::from_utf8(line)
                    .ok()
                    .and_then(|it| it.parse().ok());
                let _ = tid.map(|it: u32| self.bring_home(it));
            }
        }
        let _ = self.lazy("").map(|it| kernel::remove_folder(it.as_c_str()));
        if self.is_version_2 {
            controller::take_back(&self.home);
        }
    }

    /// Removes the groups of processes that were killed. One that has threads
    /// cannot be removed, so nobody is harmed.
    fn remove_left_behind(&self) {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let Ok(folder) = File::open(self.home.as_c_str(), flags) else {
            return;
        };
        let _ = kernel::each_name(&folder, |name| {
            let numbers = name.strip_prefix(PREFIX);
            let process = numbers.and_then(|it| it.split('-').next()?.parse().ok());
            let path = Path::of(format_args!("{}/{name}", self.home.as_str()));
            if let Some(path) = path.filter(|_| process.is_some_and(|it| !kernel::is_process(it))) {
                let _ = kernel::remove_folder(path.as_c_str());
            }
        });
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.remove();
    }
}

fn write_thread(path: &Path, tid: u32) -> Result<(), Errno> {
    let number = Text::<16>::of(format_args!("{tid}")).ok_or(Errno(libc::EINVAL))?;
    kernel::write_file(path.as_c_str(), number.as_str().as_bytes())
}

/// Whether a folder is a lazy group, by its name.
fn is_lazy_group(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Whether a folder is a group whose processors can be divided.
fn has(home: &Path, is_version_2: bool) -> bool {
    let file = |name: &str| Path::of(format_args!("{}/{name}", home.as_str()));
    let mut space = [0; 256];
    let mut read = |path: &CStr| {
        kernel::read_file(path, &mut space)
            .is_ok_and(|it| it.split(u8::is_ascii_whitespace).any(|word| word == b"cpu"))
    };
    if is_version_2 {
        file("cgroup.controllers").is_some_and(|it| read(it.as_c_str()))
    } else {
        file("cpu.shares").is_some_and(|it| File::open(it.as_c_str(), libc::O_RDONLY).is_ok())
    }
}

/// The name of the group in the hierarchy of the processors.
fn name_in(text: &str, is_version_2: bool) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, name) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = if is_version_2 {
            number == "0" && controllers.is_empty()
        } else {
            controllers.split(',').any(|it| it == "cpu")
        };
        // A name that leads out of what this namespace shows cannot be found.
        (is_it && !name.contains("/..")).then_some(name)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_either_version() {
        let text = "9:name=systemd:/a\n4:cpuacct,cpu:/b\n3:cpuset:/c\n0::/d\n";
        assert_eq!(name_in(text, false), Some("/b"));
        assert_eq!(name_in(text, true), Some("/d"));
        assert_eq!(name_in("3:cpuset:/c\nnonsense\n", false), None);
        assert_eq!(name_in("0::/../elsewhere\n", true), None);
    }

    /// Where a hierarchy of version 2 is mounted, also one without processors beside those
    /// of version 1: all but their division is the same there.
    #[cfg(not(miri))]
    #[test]
    fn threads_go_to_a_group_of_version_2_and_return() {
        use std::io::Write as _;
        use std::string::ToString;
        use std::sync::mpsc::channel;

        let skipped = |why| {
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
        };

        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("it is there");
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?;
            (words.next() == Some("cgroup2")).then_some(place)
        });
        let text = std::fs::read_to_string("/proc/self/cgroup").expect("it is there");
        let (Some(mount), Some(name)) = (mount, name_in(&text, true)) else {
            return skipped("control groups of version 2 are not mounted here");
        };
        let home = std::format!("{mount}{}", name.trim_end_matches('/'));
        let groups = Groups {
            name: Path::of(format_args!("{name}")).expect("it is short"),
            home: Path::of(format_args!("{home}")).expect("it is short"),
            is_version_2: true,
            process: kernel::process_id(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            is_removed: AtomicBool::new(false),
        };
        let Ok(()) = groups.make_group() else {
            return skipped("control groups of version 2 cannot be made here");
        };
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let waiting = std::thread::spawn(move || {
            tell.send(kernel::thread_id()).expect("somebody listens");
            let _ = ended.recv();
        });
        let tid = told.recv().expect("a thread");
        let group_of = |tid: u32| {
            let path = std::format!("/proc/self/task/{tid}/cgroup");
            let text = std::fs::read_to_string(path).expect("it waits");
            name_in(&text, true).expect("it is in one").to_string()
        };
        assert_eq!(groups.make_lazy(tid), Ok(()));
        assert!(groups.is_lazy(tid), "{}", group_of(tid));
        assert!(!groups.is_lazy(kernel::thread_id()));
        assert_eq!(groups.bring_home(tid), Ok(()));
        assert_eq!((groups.is_lazy(tid), group_of(tid).as_str()), (false, name));
        // Giving it up brings home whoever is there.
        assert_eq!(groups.make_lazy(tid), Ok(()));
        let lazy = groups.lazy("").expect("it is short").as_str().to_string();
        assert!(std::fs::exists(&lazy).expect("it can be seen"));
        drop(groups);
        assert_eq!(group_of(tid), name);
        assert!(!std::fs::exists(&lazy).expect("it can be seen"));
        drop(end);
        waiting.join().expect("it has waited");
    }
}
