//! Where control sockets are, and which of them are of programs that live.
//!
//! A program that is killed leaves its socket behind. Nobody listens there, which
//! the system tells whoever connects; but neither does somebody for a moment who
//! is about to. So sockets are made and removed under a lock of their folder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// The folder of the user's control sockets, which nobody else may enter.
///
/// # Errors
/// If it cannot be made, or is somebody else's.
fn folder() -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR").filter(|it| !it.is_empty()) {
        Some(run) => Path::new(&run).join("milieu"),
        None => std::env::temp_dir().join(format!("milieu-{user}")),
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let there = fs::symlink_metadata(&folder)?;
    if !there.is_dir() || there.uid() != user || there.mode() & 0o077 != 0 {
        let shown = folder.display();
        let text = format!(
            "{shown} is not a folder that only you can enter; remove it, or set XDG_RUNTIME_DIR"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(folder)
}

/// The lock of the folder, until it is dropped.
fn lock(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let lock = options.open(folder.join(".lock"))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// Makes a socket of this name, in the place of one that nobody listens at.
pub(super) fn open(name: &str) -> io::Result<(PathBuf, UnixListener)> {
    let folder = folder()?;
    let _lock = lock(&folder)?;
    let path = folder.join(name);
    if lives(&path) {
        let text = format!("{} is in use: a program opens it once", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    remove(&path)?;
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok((path, listener))
}

/// The sockets at which somebody listens; the others are removed.
pub(super) fn all() -> io::Result<Vec<PathBuf>> {
    let folder = folder()?;
    let entries = fs::read_dir(&folder)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "sock"));
    paths.sort();
    let (living, left): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| lives(path));
    if left.is_empty() {
        return Ok(living);
    }
    let _lock = lock(&folder)?;
    for path in left {
        // Another program may have made it again meanwhile.
        if !lives(&path) {
            remove(&path)?;
        }
    }
    Ok(living)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether somebody listens at a socket. Whoever is too busy to answer does.
fn lives(path: &Path) -> bool {
    use rustix::io::Errno;

    let Ok(address) = SocketAddrUnix::new(path) else {
        return false;
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    // Without descriptors nothing can be told, and nothing is to be removed.
    let Ok(socket) = socket else { return true };
    !matches!(
        connect(&socket, &address),
        Err(Errno::CONNREFUSED | Errno::NOENT)
    )
}
