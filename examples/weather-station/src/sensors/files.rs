//! Reading the small files of procfs and sysfs.

use super::{Failure, Reading};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// No sensor file is longer; what lies behind is not read.
const LENGTH_MAX: u64 = 64 * 1024;

/// The whole text of a file below `root`, or `None` if there is no such
/// sensor: the file is absent, or the driver behind it says that it is off.
pub(super) fn read(root: &Path, file: &str) -> Option<Reading<String>> {
    let mut bytes = Vec::new();
    let read = File::open(root.join(file)).and_then(|f| f.take(LENGTH_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => Some(String::from_utf8(bytes).map_err(|_| failure(file, "it is not UTF-8 text"))),
        Err(e) if is_absence(&e) => None,
        Err(e) => Some(Err(failure(file, format!("it cannot be read: {e}")))),
    }
}

/// Like [`read`], for files that hold one integer.
pub(super) fn integer(root: &Path, file: &str) -> Option<Reading<i64>> {
    read(root, file).map(|text| {
        text.and_then(|text| {
            let text = text.trim();
            text.parse()
                .map_err(|_| failure(file, format!("`{}` is not a whole number", shortened(text))))
        })
    })
}

/// The text of a small file if it has any, for names and labels.
pub(super) fn word(root: &Path, file: &str) -> Option<String> {
    let text = read(root, file)?.ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| shortened(text).to_owned())
}

/// The names in a folder below `root` that begin with `prefix`, in the order
/// of their numbers (`hwmon2` before `hwmon10`).
pub(super) fn folder(root: &Path, folder: &str, prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    let number = |name: &str| {
        name.bytes().filter(u8::is_ascii_digit).fold(0u64, |n, d| {
            n.saturating_mul(10).saturating_add(u64::from(d - b'0'))
        })
    };
    names.sort_by(|a, b| number(a).cmp(&number(b)).then_with(|| a.cmp(b)));
    names
}

/// A failure of a file.
pub(super) fn failure(file: &str, reason: impl Into<String>) -> Failure {
    Failure {
        file: format!("/{file}"),
        reason: reason.into(),
    }
}

/// The first forty characters, so that a strange file fills no page.
pub(super) fn shortened(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(end, _)| &text[..end])
}

/// Errors by which the kernel says that a sensor is not there or is off.
fn is_absence(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
        || error.kind() == ErrorKind::Unsupported
        || error.raw_os_error().is_some_and(|code| {
            [
                rustix::io::Errno::NODEV,
                rustix::io::Errno::NXIO,
                rustix::io::Errno::NODATA,
                rustix::io::Errno::OPNOTSUPP,
            ]
            .iter()
            .any(|errno| errno.raw_os_error() == code)
        })
}
