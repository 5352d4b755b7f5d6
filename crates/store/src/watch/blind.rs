//! Where the kernel does not tell what changes, and what is done about it.
//!
//! Such files are looked at from time to time: their inode, size and times tell
//! whether they have changed.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::trail::Trail;
use crate::error::StoreError;

const INSTANCES: &str = "/proc/sys/fs/inotify/max_user_instances";
const WATCHES: &str = "/proc/sys/fs/inotify/max_user_watches";

/// File systems that other hosts, or a server of their own, change without the
/// kernel's knowledge; the numbers are those of `statfs(2)`.
const ELSEWHERE: [u32; 13] = [
    0x0000_6969, // NFS
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB 2 and 3
    0x0000_517b, // SMB
    0x0000_564c, // NCP
    0x5346_414f, // AFS
    0x7375_7245, // Coda
    0x00c3_6400, // Ceph
    0x0102_1997, // 9P
    0x6573_5546, // FUSE, and with it virtiofs, sshfs, GlusterFS
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x786f_4256, // VirtualBox's shared folders
];

/// How a file looks from the outside; nothing if there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint(Option<[i128; 7]>);

impl Fingerprint {
    pub fn of(path: &Path) -> Fingerprint {
        let status = rustix::fs::statat(CWD, path, AtFlags::empty());
        Fingerprint(status.ok().map(|status| {
            [
                i128::from(status.st_dev),
                i128::from(status.st_ino),
                i128::from(status.st_size),
                i128::from(status.st_mtime),
                i128::from(status.st_mtime_nsec),
                i128::from(status.st_ctime),
                i128::from(status.st_ctime_nsec),
            ]
        }))
    }
}

/// Whether the kernel may keep silent about changes on this way.
pub(super) fn has_to_look(trail: &Trail) -> bool {
    trail.blind.is_some()
        || rustix::fs::statfs(&trail.end).is_ok_and(|found| is_elsewhere(found.f_type as u32))
}

fn is_elsewhere(kind: u32) -> bool {
    ELSEWHERE.contains(&kind)
}

/// Why a path is watched less well than its owner may expect. That a folder
/// on the way may not be listed is no reason: it is seldom moved.
pub(super) fn trouble(trail: &Trail) -> Option<Errno> {
    trail.blind.filter(|error| *error != Errno::ACCESS)
}

/// The error for a path that the kernel refuses to watch.
pub(super) fn not_watched(path: &Path, error: Errno) -> StoreError {
    let cause = match error {
        Errno::NOSPC => limit(
            "as many files are watched as the system allows",
            "fs.inotify.max_user_watches",
            WATCHES,
        ),
        other => other.into(),
    };
    StoreError::io("watch the file", path, cause)
}

/// The error for a process that gets no inotify instance.
pub(super) fn no_instance(error: Errno) -> StoreError {
    let cause = match error {
        Errno::MFILE => limit(
            "there are as many watchers as the system allows, or this process has opened as many \
             files as `ulimit -n` says",
            "fs.inotify.max_user_instances",
            INSTANCES,
        ),
        other => other.into(),
    };
    StoreError::io("watch files", Path::new("inotify"), cause)
}

fn limit(reached: &str, variable: &str, path: &str) -> io::Error {
    let now = std::fs::read_to_string(path).unwrap_or_default();
    let now = now.trim().parse::<u64>().ok();
    let shown = now.map_or_else(String::new, |now| format!(", which is {now}"));
    let more = now.map_or_else(|| "NUMBER".to_owned(), |now| (now * 2).to_string());
    io::Error::other(format!(
        "{reached}; raise the limit{shown}: `sysctl {variable}={more}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_name_the_limit_and_how_to_raise_it() {
        let error = not_watched(Path::new("/etc/app.ini"), Errno::NOSPC).to_string();
        assert!(error.contains("/etc/app.ini"), "{error}");
        assert!(
            error.contains("`sysctl fs.inotify.max_user_watches="),
            "{error}"
        );
        let error = no_instance(Errno::MFILE).to_string();
        assert!(
            error.contains("`sysctl fs.inotify.max_user_instances="),
            "{error}"
        );
    }

    #[test]
    fn file_systems_of_other_hosts_are_known_by_their_number() {
        assert!(is_elsewhere(0x6969) && is_elsewhere(0x6573_5546));
        // ext4, tmpfs and btrfs tell everything.
        assert!(!is_elsewhere(0xef53) && !is_elsewhere(0x0102_1994) && !is_elsewhere(0x9123_683e));
    }

    #[test]
    fn a_fingerprint_tells_whether_a_file_is_there_and_the_same() {
        let path = std::env::temp_dir().join(format!("milieu-fingerprint-{}", std::process::id()));
        let missing = Fingerprint::of(&path);
        assert_eq!(missing, Fingerprint(None));
        std::fs::write(&path, "a").unwrap();
        let first = Fingerprint::of(&path);
        assert_eq!(first, Fingerprint::of(&path));
        std::fs::write(&path, "ab").unwrap();
        let second = Fingerprint::of(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(missing != first && first != second);
    }
}
