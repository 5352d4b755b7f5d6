//! Watching files: what changes a file, whoever does it, is told as changes of keys.
//!
//! ```text
//!  kernel ──events──▶ Files (one thread) ──paths──▶ Watch ──┬─▶ callback
//!                       │        ▲                    │     ├─▶ recv, recv_timeout, iter
//!              trail: folders,   │ pace: quiet        │     └─▶ Stream
//!              links, the file ──┘ or at most …       └─ per reader: newest of each key
//! ```
//!
//! [`Watch`] is for keys, [`Files`] for whoever only wants to know that a file
//! may have changed.
//!
//! # What is noticed
//!
//! - Writing in place, also under another name of the file (a hard link), and
//!   replacement as editors, `sed -i`, `mv` and [`commit`](crate::Store::commit)
//!   do it.
//! - Files that are made, removed and come back, with any of their folders.
//! - Symbolic links anywhere on the way, each watched as well as what it leads
//!   to. That covers mounted ConfigMaps, whose link `..data` is replaced.
//! - Folders that are moved, file systems that are mounted over the way or
//!   unmounted, permissions that come and go.
//! - Anything, when the kernel says that it has lost events.
//!
//! # What is not
//!
//! - What another host does on a network file system, the kernel here does not
//!   tell. Files on NFS, SMB, 9P, FUSE and their like are looked at in intervals
//!   instead ([`Pace::look`], 5 s), and so is what cannot be watched because the
//!   limit of watches is reached or a folder may not be listed. There, two
//!   changes of the same size within one tick of the file system's clock are one.
//! - Writing through a mapping, `mmap`, until the file is closed.
//! - What the kernel itself makes up, in `/proc` and `/sys`.
//!
//! # Properties kept
//!
//! - No change is missed: whatever is read when a file is told of is its newest
//!   content, or it is told of again. That holds from the moment at which a path
//!   is added.
//! - An idle watch costs nothing: its thread sleeps without a timeout, and what
//!   happens beside the watched paths in busy folders does not wake it.
//! - A file is read when its change is complete, as far as anybody can know: when
//!   the writer has closed it, a file that was moved away has come back, or
//!   nothing more happened for a while ([`Pace`]).
//! - What waits for a slow reader is bounded, and its last value is the newest.
//! - No user code runs while a lock is held.

mod blind;
mod changes;
mod files;
mod load;
mod news;
mod pace;
mod state;
mod store;
mod trail;
mod watches;

pub use changes::Changes;
pub use files::{Files, Turn};
pub use news::{Change, FileNews, Filter, News};
pub use pace::Pace;
pub use store::{Registration, Watch};

/// The number of a watched path.
type Id = u64;
