//! The control group for lazy threads of the whole device: one, beside those that
//! programs are in, which are not touched.
//!
//! Only version 1 of control groups lets a thread be in another group than its
//! process without a say of who made that group; in version 2 threads can only be
//! divided below their program's own group.

use std::fs;
use std::io;
use std::path::PathBuf;

use milieu_threads::kernel::Errno;

/// Where version 1 has the processors.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// What the group is called, with the number of the mediator behind it.
const PREFIX: &str = "milieu-device-";

/// The group for lazy threads, removed in the end.
pub struct LazyGroup {
    folder: PathBuf,
}

impl LazyGroup {
    /// Makes it, and removes those of mediators that were killed.
    ///
    /// # Errors
    /// Why there can be none, with what would help.
    pub fn new() -> Result<LazyGroup, String> {
        let root = root().ok_or(
            "control groups of version 1 with the controller `cpu` are not mounted here; use \
             another rung",
        )?;
        remove_left_behind(root);
        let folder = PathBuf::from(root).join(format!("{PREFIX}{}", std::process::id()));
        let made = fs::create_dir(&folder).and_then(|()| fs::write(folder.join("cpu.idle"), "1"));
        match made {
            Ok(()) => Ok(LazyGroup { folder }),
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(format!(
                    "a control group that is idle cannot be made in {root}: {error}; start the \
                     mediator as root, on Linux 5.15 or later"
                ))
            }
        }
    }

    /// Puts a thread there.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub fn take(&self, thread: u32) -> Result<(), Errno> {
        write(self.folder.join("tasks"), thread)
    }
}

impl Drop for LazyGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The group that a thread is in, as its path below the root; none where it is in ours.
pub fn home_of(process: u32, thread: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/cgroup")).ok()?;
    let name = name_in(&text)?;
    (!name.contains(PREFIX)).then(|| name.to_owned())
}

/// Whether a thread is in a group of ours.
pub fn is_lazy(process: u32, thread: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/cgroup"));
    text.is_ok_and(|it| name_in(&it).is_some_and(|name| name.contains(PREFIX)))
}

/// Puts a thread that is in a group of ours back to where it was. Where that has been
/// removed since, it goes to the root.
///
/// # Errors
/// Why the kernel refuses.
pub fn bring_home(thread: u32, home: &str) -> Result<(), Errno> {
    let text = fs::read_to_string(format!("/proc/{thread}/cgroup"));
    let text = text.map_err(|_| Errno(3))?;
    if !name_in(&text).is_some_and(|it| it.contains(PREFIX)) {
        return Ok(());
    }
    let root = PathBuf::from(root().ok_or(Errno(2))?);
    let folder = root.join(home.trim_start_matches('/'));
    write(folder.join("tasks"), thread).or_else(|_| write(root.join("tasks"), thread))
}

fn root() -> Option<&'static str> {
    let is_there = |it: &&str| fs::exists(format!("{it}/cpu.shares")).unwrap_or(false);
    ROOTS.into_iter().find(is_there)
}

fn write(path: PathBuf, thread: u32) -> Result<(), Errno> {
    let written = fs::write(path, thread.to_string());
    written.map_err(|error: io::Error| Errno(error.raw_os_error().unwrap_or(5)))
}

fn remove_left_behind(root: &str) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|it| it.strip_prefix(PREFIX));
        let number: Option<u32> = number.and_then(|it| it.parse().ok());
        let is_left = number.is_some_and(|it| !fs::exists(format!("/proc/{it}")).unwrap_or(true));
        if is_left {
            // One that has threads stays: whoever has their records brings them home.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The name of the group in the hierarchy of the processors.
fn name_in(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, name) = (parts.next()?, parts.next()?, parts.next()?);
        let has_it = controllers.split(',').any(|it| it == "cpu");
        (has_it && !name.contains("/..")).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_that_of_the_processors() {
        let text = "9:name=systemd:/a\n4:cpuacct,cpu:/b:c\n3:cpuset:/c\n0::/d\n";
        assert_eq!(name_in(text), Some("/b:c"));
        assert_eq!(name_in("0::/d\n"), None);
        assert_eq!(name_in("4:cpu:/../x\n"), None);
    }
}
