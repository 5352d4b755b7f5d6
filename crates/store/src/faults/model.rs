//! A file system in memory that knows what a loss of power may make of it.
//!
//! It is as weak as the guarantees of POSIX, weaker than any single file system:
//! - what was written into a file and not synchronized may be on the disk, in
//!   part, in any selection of its sectors, or as zeros;
//! - of the entries of a folder that were made, removed and renamed since it was
//!   synchronized any selection may be on the disk;
//! - a synchronized file is on the disk, but whether a name leads to it is a
//!   matter of its folder;
//! - renaming is atomic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// What a disk writes whole or not at all. Pages of memory consist of several,
/// so that a page that is written or not is among the outcomes.
const SECTOR: usize = 512;

/// How many prefixes of a text are looked at, besides those near the border of a sector.
const PREFIXES: usize = 6;

/// A tree of files, as one sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    File(Content),
    Folder(BTreeMap<String, Node>),
    Link(PathBuf),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Content {
    pub bytes: Vec<u8>,
    pub mode: u32,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.bytes[..self.bytes.len().min(60)];
        let text = String::from_utf8_lossy(shown);
        write!(f, "{text:?} ({} bytes, {:o})", self.bytes.len(), self.mode)
    }
}

impl Node {
    pub fn file(text: impl Into<Vec<u8>>, mode: u32) -> Node {
        Node::File(Content {
            bytes: text.into(),
            mode,
        })
    }

    pub fn folder<const N: usize>(entries: [(&str, Node); N]) -> Node {
        Node::Folder(entries.map(|(name, node)| (name.to_owned(), node)).into())
    }

    /// Makes the tree at a path where nothing is yet.
    pub fn make(&self, path: &Path) {
        match self {
            Node::File(content) => {
                fs::write(path, &content.bytes).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(content.mode)).unwrap();
            }
            Node::Folder(entries) => {
                fs::create_dir(path).unwrap();
                for (name, node) in entries {
                    node.make(&path.join(name));
                }
            }
            Node::Link(target) => symlink(target, path).unwrap(),
        }
    }
}

/// The file system: what programs see, and what is on the disk for certain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Model {
    /// The first is the root.
    inodes: Vec<Inode>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Inode {
    File {
        disk: Content,
        seen: Content,
    },
    Folder {
        disk: Entries,
        /// What happened since, in order.
        since: Vec<EntryChange>,
    },
    Link(PathBuf),
}

type Entries = BTreeMap<String, usize>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum EntryChange {
    Add {
        name: String,
        inode: usize,
    },
    Remove {
        name: String,
    },
    Rename {
        from: String,
        to: String,
        inode: usize,
    },
}

impl EntryChange {
    fn apply(&self, entries: &mut Entries) {
        match self {
            EntryChange::Add { name, inode } => {
                entries.insert(name.clone(), *inode);
            }
            EntryChange::Remove { name } => {
                entries.remove(name);
            }
            EntryChange::Rename { from, to, inode } => {
                // Without the entry that was renamed the disk still learns of the new one.
                if entries.get(from) == Some(inode) {
                    entries.remove(from);
                }
                entries.insert(to.clone(), *inode);
            }
        }
    }
}

impl Model {
    /// A file system that has been synchronized, and the inode of each path in it.
    pub fn new(root: &Node) -> (Model, Vec<(PathBuf, usize)>) {
        let mut model = Model { inodes: Vec::new() };
        let mut paths = Vec::new();
        model.load(root, Path::new(""), &mut paths);
        (model, paths)
    }

    fn load(&mut self, node: &Node, path: &Path, paths: &mut Vec<(PathBuf, usize)>) -> usize {
        let inode = self.inodes.len();
        paths.push((path.to_owned(), inode));
        self.inodes.push(match node {
            Node::File(content) => Inode::File {
                disk: content.clone(),
                seen: content.clone(),
            },
            Node::Folder(_) => Inode::Folder {
                disk: Entries::new(),
                since: Vec::new(),
            },
            Node::Link(target) => Inode::Link(target.clone()),
        });
        if let Node::Folder(children) = node {
            for (name, child) in children {
                let child = self.load(child, &path.join(name), paths);
                let Inode::Folder { disk, .. } = &mut self.inodes[inode] else {
                    unreachable!("it was made as a folder");
                };
                disk.insert(name.clone(), child);
            }
        }
        inode
    }

    pub fn make_folder(&mut self, path: &Path) {
        self.add(
            path,
            Inode::Folder {
                disk: Entries::new(),
                since: Vec::new(),
            },
        );
    }

    /// Makes an empty file and returns its inode.
    pub fn create(&mut self, path: &Path, mode: u32) -> usize {
        let content = Content {
            bytes: Vec::new(),
            mode,
        };
        self.add(
            path,
            Inode::File {
                disk: content.clone(),
                seen: content,
            },
        )
    }

    fn add(&mut self, path: &Path, inode: Inode) -> usize {
        let number = self.inodes.len();
        self.inodes.push(inode);
        let name = name_of(path);
        self.change(
            path,
            EntryChange::Add {
                name,
                inode: number,
            },
        );
        number
    }

    pub fn remove(&mut self, path: &Path) {
        let name = name_of(path);
        self.change(path, EntryChange::Remove { name });
    }

    pub fn rename(&mut self, from: &Path, to: &Path) {
        assert_eq!(from.parent(), to.parent(), "renamed within a folder");
        let inode = self.find(from);
        let change = EntryChange::Rename {
            from: name_of(from),
            to: name_of(to),
            inode,
        };
        self.change(to, change);
    }

    /// What programs see of a file from now on.
    pub fn edit(&mut self, inode: usize, edit: impl FnOnce(&mut Content)) {
        let Inode::File { seen, .. } = &mut self.inodes[inode] else {
            panic!("only files have content");
        };
        edit(seen);
    }

    pub fn synchronize(&mut self, inode: usize) {
        match &mut self.inodes[inode] {
            Inode::File { disk, seen } => disk.clone_from(seen),
            Inode::Folder { disk, since } => {
                for change in since.drain(..) {
                    change.apply(disk);
                }
            }
            Inode::Link(_) => panic!("links are not synchronized"),
        }
    }

    pub fn synchronize_folder(&mut self, path: &Path) {
        let inode = self.find(path);
        self.synchronize(inode);
    }

    /// Appends a change to the folder that the path lies in.
    fn change(&mut self, path: &Path, change: EntryChange) {
        let folder = self.find(path.parent().expect("a path below the root"));
        let Inode::Folder { since, .. } = &mut self.inodes[folder] else {
            panic!("{} is in no folder", path.display());
        };
        since.push(change);
    }

    /// The inode that programs see at a path.
    pub fn find(&self, path: &Path) -> usize {
        path.components().fold(0, |inode, component| {
            let Component::Normal(name) = component else {
                panic!("{} is no plain path", path.display());
            };
            let Inode::Folder { disk, since } = &self.inodes[inode] else {
                panic!("{} leads through no folder", path.display());
            };
            let mut entries = disk.clone();
            since.iter().for_each(|change| change.apply(&mut entries));
            entries[name.to_str().expect("names of tests are text")]
        })
    }

    /// Every tree that may be found after the power was lost now.
    pub fn after_power_loss(&self) -> BTreeSet<Node> {
        self.outcomes(0)
    }

    fn outcomes(&self, inode: usize) -> BTreeSet<Node> {
        match &self.inodes[inode] {
            Inode::Link(target) => BTreeSet::from([Node::Link(target.clone())]),
            Inode::File { disk, seen } => {
                let modes = BTreeSet::from([disk.mode, seen.mode]);
                let contents = torn(&disk.bytes, &seen.bytes).into_iter();
                contents
                    .flat_map(|bytes| modes.iter().map(move |&mode| (bytes.clone(), mode)))
                    .map(|(bytes, mode)| Node::File(Content { bytes, mode }))
                    .collect()
            }
            Inode::Folder { disk, since } => {
                assert!(since.len() <= 12, "too many selections to look at");
                let mut outcomes = BTreeSet::new();
                for selection in 0..1_u32 << since.len() {
                    let mut entries = disk.clone();
                    for (index, change) in since.iter().enumerate() {
                        if selection >> index & 1 == 1 {
                            change.apply(&mut entries);
                        }
                    }
                    outcomes.extend(self.combinations(&entries));
                }
                outcomes
            }
        }
    }

    /// Every way in which the outcomes of the entries go together.
    fn combinations(&self, entries: &Entries) -> Vec<Node> {
        let mut folders = vec![BTreeMap::new()];
        for (name, &inode) in entries {
            let outcomes = self.outcomes(inode);
            folders = folders
                .into_iter()
                .flat_map(|folder| outcomes.iter().map(move |node| (folder.clone(), node)))
                .map(|(mut folder, node)| {
                    folder.insert(name.clone(), node.clone());
                    folder
                })
                .collect();
        }
        folders.into_iter().map(Node::Folder).collect()
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("a path below the root");
    name.to_str().expect("names of tests are text").to_owned()
}

/// What the disk may hold of a file that held `old` and was to hold `new`.
fn torn(old: &[u8], new: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut contents = BTreeSet::from([old.to_vec(), new.to_vec()]);
    if old == new {
        return contents;
    }
    // Cut off, and cut off with zeros up to the length that was written already.
    let near_a_sector = |length: usize| (length + 1) % SECTOR <= 2;
    for length in 0..new.len() {
        if length % new.len().div_ceil(PREFIXES) == 0 || near_a_sector(length) {
            let mut cut = new[..length].to_vec();
            contents.insert(cut.clone());
            cut.resize(new.len(), 0);
            contents.insert(cut);
        }
    }
    // Each sector old or new, at either length.
    let longest = old.len().max(new.len());
    let sectors = longest.div_ceil(SECTOR);
    assert!(sectors <= 8, "too many selections to look at");
    for selection in 0..1_u32 << sectors {
        for length in [old.len(), new.len()] {
            let mut mixed = vec![0; longest];
            for sector in 0..sectors {
                let source = if selection >> sector & 1 == 1 {
                    new
                } else {
                    old
                };
                let end = source.len().min((sector + 1) * SECTOR);
                let start = end.min(sector * SECTOR);
                mixed[start..end].copy_from_slice(&source[start..end]);
            }
            mixed.truncate(length);
            contents.insert(mixed);
        }
    }
    contents
}
