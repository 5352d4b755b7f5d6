//! Files: what is in one whenever it changes, and what changes in a folder.
//!
//! ```
//! use milieu_adapters::{Format, files};
//!
//! let setpoint = files::content("/run/heating/setpoint").format(Format::number());
//! let scans = files::folder("/srv/scans");
//! ```
//!
//! The kernel tells of changes (inotify). A file that is replaced, deleted and
//! written again, or whose folder comes later, is followed. What the kernel does
//! not tell of (files of other machines, sysfs) is found by looking every half a
//! minute, or as often as is asked for; where it tells nothing because too many
//! watches exist, by looking every second.
//!
//! The files must be readable, and their folders as well.

mod content;
mod folder;
mod watch;

pub use content::{Content, content};
pub use folder::{Change, Folder, FolderChange, folder};

#[cfg(test)]
mod tests;
