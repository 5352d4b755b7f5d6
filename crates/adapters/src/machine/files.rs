//! The small files of procfs and sysfs.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use rustix::io::Errno;

use crate::failure::{Failure, shortened};

/// No longer file is read: a machine with ten thousand network interfaces says
/// less.
const LENGTH_MAX: u64 = 4 << 20;

/// The files below a root folder.
#[derive(Clone, Debug)]
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    pub(super) fn below(root: impl Into<PathBuf>) -> Files {
        Files { root: root.into() }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// A failure of a file.
    pub(super) fn failure(&self, file: &str, reason: impl std::fmt::Display) -> Failure {
        Failure::new(self.path(file).display(), reason)
    }

    /// The whole text of a file; nothing if it is absent, or if the driver
    /// behind it says that its sensor is off.
    pub(super) fn read(&self, file: &str) -> Result<Option<String>, Failure> {
        let mut bytes = Vec::new();
        let read = File::open(self.path(file))
            .and_then(|open| open.take(LENGTH_MAX + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes.len() as u64 > LENGTH_MAX => {
                Err(self.failure(file, "it is longer than 4 MiB and is not read"))
            }
            Ok(_) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.failure(file, "it is not UTF-8 text")),
            },
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(self.failure(file, format!("it cannot be read: {error}"))),
        }
    }

    /// The whole text of a file that has to be there.
    pub(super) fn need(&self, file: &str, remedy: &str) -> Result<String, Failure> {
        let text = self.read(file)?;
        text.ok_or_else(|| self.failure(file, format!("there is no such file; {remedy}")))
    }

    /// The whole number that a file holds.
    pub(super) fn integer(&self, file: &str) -> Result<Option<i64>, Failure> {
        let Some(text) = self.read(file)? else {
            return Ok(None);
        };
        let text = text.trim();
        let number = text.parse().map_err(|_| {
            let reason = format!("`{}` is not a whole number", shortened(text));
            self.failure(file, reason)
        });
        number.map(Some)
    }

    /// The text of a small file if it has any: names and labels.
    pub(super) fn word(&self, file: &str) -> Option<String> {
        let text = self.read(file).ok()??;
        let text = text.trim();
        (!text.is_empty()).then(|| shortened(text).to_owned())
    }

    /// The names in a folder that begin with `prefix`, in the order of their
    /// numbers (`hwmon2` before `hwmon10`); none if there is no such folder.
    pub(super) fn folder(&self, folder: &str, prefix: &str) -> Result<Vec<String>, Failure> {
        let entries = match std::fs::read_dir(self.path(folder)) {
            Ok(entries) => entries,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(error) => {
                return Err(self.failure(folder, format!("it cannot be listed: {error}")));
            }
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(prefix))
            .collect();
        let number = |name: &str| {
            let digits = name.bytes().filter(u8::is_ascii_digit);
            digits.fold(0u64, |number, digit| {
                number
                    .saturating_mul(10)
                    .saturating_add(u64::from(digit - b'0'))
            })
        };
        names.sort_by(|a, b| number(a).cmp(&number(b)).then_with(|| a.cmp(b)));
        Ok(names)
    }
}

/// Errors by which the kernel says that a sensor is not there or is off.
fn is_absence(error: &io::Error) -> bool {
    let off = [Errno::NODEV, Errno::NXIO, Errno::NODATA, Errno::OPNOTSUPP];
    error.kind() == ErrorKind::NotFound
        || Errno::from_io_error(error).is_some_and(|errno| off.contains(&errno))
}
