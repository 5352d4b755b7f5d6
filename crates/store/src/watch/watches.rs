//! Many paths behind one inotify instance: which inodes they need, and what an
//! event about an inode means for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, Event, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

use super::Id;
use super::blind::{self, Fingerprint};
use super::pace::Sign;
use super::trail::{Arm, Step, Trail, Wd, walk};
use crate::error::StoreError;

/// How often a way is walked at once while it keeps changing.
const WALKS: usize = 16;
/// How many events are taken at once, so that whoever makes them without end
/// does not keep their reader for ever.
const EVENTS: usize = 4096;

/// The watched paths and their inodes.
pub(super) struct Watches {
    kernel: Kernel,
    paths: BTreeMap<Id, Watched>,
    ids: HashMap<Arc<Path>, Id>,
    next: Id,
    /// Paths whose way changed faster than it could be walked.
    restless: BTreeSet<Id>,
    troubles: Vec<(Arc<Path>, StoreError)>,
}

struct Watched {
    path: Arc<Path>,
    trail: Trail,
    /// How the file looked, where the kernel may not tell when it changes.
    looked: Option<Fingerprint>,
}

/// What the kernel watches for us.
struct Kernel {
    /// Shared with the thread that waits for events.
    inotify: Arc<OwnedFd>,
    inodes: HashMap<Wd, Inode>,
}

#[derive(Default)]
struct Inode {
    /// What the kernel tells about it.
    mask: WatchFlags,
    users: BTreeSet<Id>,
}

impl Arm for Kernel {
    fn arm(&mut self, path: &Path, mask: WatchFlags) -> Result<Wd, Errno> {
        let flags = mask | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
        let wd = inotify::add_watch(&self.inotify, path, flags)?;
        self.inodes.entry(wd).or_default().mask |= mask;
        Ok(wd)
    }
}

impl Watches {
    pub fn new() -> Result<Watches, StoreError> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(blind::no_instance)?;
        Ok(Watches {
            kernel: Kernel {
                inotify: Arc::new(inotify),
                inodes: HashMap::new(),
            },
            paths: BTreeMap::new(),
            ids: HashMap::new(),
            next: 0,
            restless: BTreeSet::new(),
            troubles: Vec::new(),
        })
    }

    /// Readable when there are events.
    pub fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.kernel.inotify)
    }

    /// Watches a path. When this returns, no change of it goes unnoticed.
    ///
    /// # Errors
    /// When the limit of watches is reached. The path is not watched then.
    pub fn add(&mut self, path: &Arc<Path>) -> Result<Id, StoreError> {
        let id = self.next;
        self.next += 1;
        let watched = Watched {
            path: Arc::clone(path),
            trail: Trail::default(),
            looked: None,
        };
        self.paths.insert(id, watched);
        self.ids.insert(Arc::clone(path), id);
        self.settle(id);
        match blind::trouble(&self.paths[&id].trail) {
            Some(error) => {
                let error = blind::not_watched(path, error);
                self.remove(id);
                Err(error)
            }
            None => Ok(id),
        }
    }

    /// Watches a path no longer.
    pub fn remove(&mut self, id: Id) {
        if let Some(watched) = self.paths.remove(&id) {
            self.ids.remove(&watched.path);
            self.restless.remove(&id);
            let wds = watched.trail.steps.iter().map(|step| step.wd).collect();
            self.release(wds);
        }
    }

    /// The path of that number.
    pub fn path(&self, id: Id) -> Option<&Arc<Path>> {
        self.paths.get(&id).map(|watched| &watched.path)
    }

    /// The number of a path.
    pub fn id(&self, path: &Path) -> Option<Id> {
        self.ids.get(path).copied()
    }

    /// Takes the events that have come, and hands out what they mean.
    pub fn drain(&mut self, note: &mut dyn FnMut(Id, Sign)) {
        let mut turned = BTreeSet::new();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.kernel.inotify, &mut buffer);
        let mut taken = 0;
        // What has been read already is taken in any case.
        while taken < EVENTS || !reader.is_buffer_empty() {
            taken += 1;
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => break,
            };
            let mut means = |id, sign, turns| {
                note(id, sign);
                if turns {
                    turned.insert(id);
                }
            };
            let told = event.events();
            if told.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.paths
                    .keys()
                    .for_each(|id| means(*id, Sign::Touched, true));
            }
            let Some(inode) = self.kernel.inodes.get(&event.wd()) else {
                continue;
            };
            for id in &inode.users {
                let steps = self.paths[id].trail.steps.iter();
                for step in steps.filter(|step| step.wd == event.wd()) {
                    if let Some((sign, turns)) = meaning(step, &event) {
                        means(*id, sign, turns);
                    }
                }
            }
            if told.contains(ReadFlags::IGNORED) {
                self.kernel.inodes.remove(&event.wd());
            }
        }
        for id in turned {
            self.walk_again(id, note);
        }
    }

    /// Walks all ways again: anything may have changed.
    pub fn all_may_have_changed(&mut self, note: &mut dyn FnMut(Id, Sign)) {
        let ids: Vec<Id> = self.paths.keys().copied().collect();
        for id in ids {
            note(id, Sign::Touched);
            self.walk_again(id, note);
        }
    }

    /// The paths whose way changed faster than it could be walked. They have to
    /// be walked [again](Watches::calm).
    pub fn restless(&self) -> impl Iterator<Item = Id> {
        self.restless.iter().copied()
    }

    /// Walks the way of a restless path again.
    pub fn calm(&mut self, id: Id, note: &mut dyn FnMut(Id, Sign)) {
        if self.restless.remove(&id) && self.paths.contains_key(&id) {
            self.walk_again(id, note);
        }
    }

    /// Paths that are watched no longer as they should be, and why.
    pub fn troubles(&mut self) -> Vec<(Arc<Path>, StoreError)> {
        std::mem::take(&mut self.troubles)
    }

    /// Whether any path has to be looked at because the kernel does not tell everything.
    pub fn has_blind(&self) -> bool {
        self.paths.values().any(|watched| watched.looked.is_some())
    }

    /// Looks at the paths of which the kernel does not tell everything.
    pub fn look(&mut self, note: &mut dyn FnMut(Id, Sign)) {
        let ids: Vec<Id> = self.paths.keys().copied().collect();
        for id in ids {
            let watched = &self.paths[&id];
            let Some(before) = &watched.looked else {
                continue;
            };
            // What could not be watched perhaps can be by now.
            if watched.trail.blind.is_some() || Fingerprint::of(&watched.path) != *before {
                self.walk_again(id, note);
            }
        }
    }

    fn walk_again(&mut self, id: Id, note: &mut dyn FnMut(Id, Sign)) {
        let before = &self.paths[&id];
        let (found, trouble) = (before.trail.found, blind::trouble(&before.trail));
        let before = before.looked.clone();
        self.settle(id);
        let Watched {
            path,
            trail,
            looked,
        } = &self.paths[&id];
        if *looked != before {
            note(id, Sign::Touched);
        }
        if found && !trail.found {
            // What vanished may be on its way back: many replace a file in two steps.
            note(id, Sign::Begun);
        }
        if let Some(error) = blind::trouble(trail).filter(|_| trouble.is_none()) {
            let error = blind::not_watched(path, error);
            self.troubles.push((Arc::clone(path), error));
        }
    }

    /// Walks the way of a path until two walks agree.
    fn settle(&mut self, id: Id) {
        let path = Arc::clone(&self.paths[&id].path);
        let mut trail = std::mem::take(&mut self.paths.get_mut(&id).expect("it is watched").trail);
        let mut wds: BTreeSet<Wd> = trail.steps.iter().map(|step| step.wd).collect();
        let mut agree = false;
        for _ in 0..WALKS {
            let again = walk(&path, &mut self.kernel);
            wds.extend(again.steps.iter().map(|step| step.wd));
            agree = again == trail;
            trail = again;
            if agree {
                break;
            }
        }
        if !agree {
            self.restless.insert(id);
        }
        for step in &trail.steps {
            let inode = self.kernel.inodes.entry(step.wd).or_default();
            inode.users.insert(id);
        }
        let watched = self.paths.get_mut(&id).expect("it is watched");
        watched.looked = blind::has_to_look(&trail).then(|| Fingerprint::of(&path));
        watched.trail = trail;
        self.release(wds);
    }

    /// Has the kernel watch these inodes for no more than is needed now.
    fn release(&mut self, wds: BTreeSet<Wd>) {
        for wd in wds {
            let Some(inode) = self.kernel.inodes.get_mut(&wd) else {
                continue;
            };
            let mut needed = WatchFlags::empty();
            let mut at = None;
            inode.users.retain(|user| {
                let trail = self.paths.get(user).map(|watched| &watched.trail);
                let steps = trail.into_iter().flat_map(|trail| &trail.steps);
                let mut uses = false;
                for step in steps.filter(|step| step.wd == wd) {
                    uses = true;
                    needed |= step.mask;
                    at = Some(step.at.clone());
                }
                uses
            });
            match at {
                None => {
                    self.kernel.inodes.remove(&wd);
                    // It may be gone already, with its inode.
                    let _ = inotify::remove_watch(&self.kernel.inotify, wd);
                }
                Some(at) if inode.mask != needed => {
                    inode.mask = needed;
                    self.narrow(wd, &at, needed);
                }
                Some(_) => {}
            }
        }
    }

    /// Has the kernel tell less about an inode.
    fn narrow(&mut self, wd: Wd, at: &Path, mask: WatchFlags) {
        let flags = mask | WatchFlags::DONT_FOLLOW;
        let found = inotify::add_watch(&self.kernel.inotify, at, flags);
        let Some(other) = found.ok().filter(|found| *found != wd) else {
            // Where it is gone from its place, it stays watched for too much.
            return;
        };
        // Another inode has taken the place, which its watches have told. It may
        // now be watched for too little until its users walk again.
        let inode = self.kernel.inodes.entry(other).or_default();
        inode.mask = mask;
        self.restless.extend(&inode.users);
        if inode.users.is_empty() {
            self.kernel.inodes.remove(&other);
            let _ = inotify::remove_watch(&self.kernel.inotify, other);
        }
    }
}

/// What an event says about a path that has this step: how far the change is,
/// and whether the way may lead elsewhere now.
fn meaning(step: &Step, event: &Event<'_>) -> Option<(Sign, bool)> {
    let told = event.events();
    let concerns = step.mask.bits() & told.bits() != 0;
    match (&step.entry, event.file_name()) {
        (None, None) if told.contains(ReadFlags::MODIFY) => {
            concerns.then_some((Sign::Begun, false))
        }
        (None, None) if told.contains(ReadFlags::CLOSE_WRITE) => {
            concerns.then_some((Sign::Finished, false))
        }
        (None, None) => Some((Sign::Touched, true)),
        (Some(entry), Some(name)) if concerns && entry.as_bytes() == name.to_bytes() => {
            Some(if told.contains(ReadFlags::CREATE) {
                (of_creation(&step.at.join(entry)), true)
            } else if told.contains(ReadFlags::MOVED_TO) {
                (Sign::Finished, true)
            } else if told.contains(ReadFlags::CLOSE_WRITE) {
                (Sign::Finished, false)
            } else {
                (Sign::Touched, true)
            })
        }
        _ => None,
    }
}

/// A new file is still to be written, and a new folder to be filled. A link is complete.
fn of_creation(path: &Path) -> Sign {
    let is_link = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Symlink);
    if is_link { Sign::Finished } else { Sign::Begun }
}
