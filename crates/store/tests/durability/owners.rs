//! Who may use a file: before a commit, after it, and while others want to.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use milieu_keys::Namespace;
use milieu_store::{Change, Store, Strategy};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::fs::{Mode, XattrFlags, getxattr, setxattr};
use rustix::io::Errno;

use super::child::{self, Child};
use super::{folder, is_root, names, open, places, public_folder, set, shown, skip, text};

/// A user, and the rights that new files lack.
#[derive(Clone, Copy)]
struct User {
    id: u32,
    group: u32,
    /// Another group, which the user is a member of as well.
    also: u32,
    mask: u32,
}

const ANNA: User = User {
    id: 4001,
    group: 4001,
    also: 4000,
    mask: 0o022,
};

const BEN: User = User {
    id: 4002,
    group: 4002,
    also: 4000,
    mask: 0o077,
};

/// The group of both.
const TEAM: u32 = 4000;

/// Nobody's group.
const OTHERS: u32 = 4999;

impl User {
    /// Sets a key of a file in a process of this user.
    fn set(self, path: &Path, key: &str, value: &str) -> Result<(), String> {
        let User {
            id,
            group,
            also,
            mask,
        } = self;
        let who = [id, group, also, mask].map(|number| number.to_string());
        let [id, group, also, mask] = &who;
        let arguments = [id, group, also, mask, path.to_str().unwrap(), key, value];
        let said = Child::start("as", &arguments).rest();
        if said == ["done"] {
            Ok(())
        } else {
            Err(said.join("\n"))
        }
    }
}

/// The child: becomes a user and sets a key.
pub fn child(arguments: &[&str]) {
    let [id, group, also, mask, path, key, value] = arguments else {
        panic!("{arguments:?}");
    };
    let number = |text: &str| text.parse::<u32>().unwrap();
    setgroups(&[Gid::from_raw(number(also))]).unwrap();
    setgid(Gid::from_raw(number(group))).unwrap();
    setuid(Uid::from_raw(number(id))).unwrap();
    rustix::process::umask(Mode::from_raw_mode(number(mask)));
    let change = [set(key, *value)];
    let done = Store::read(places([path]))
        .and_then(|mut store| store.commit(Namespace::User, &change, Strategy::Refuse));
    match done {
        Ok(_) => child::say("done"),
        Err(error) => child::say(&error.to_string()),
    }
}

fn commit(path: &Path, changes: &[Change]) {
    open(path)
        .commit(Namespace::User, changes, Strategy::Refuse)
        .unwrap();
}

fn make(path: &Path, owner: u32, group: u32, mode: u32) {
    if !path.exists() {
        fs::write(path, "/x = 1\n").unwrap();
    }
    chown(path, Some(owner), Some(group)).unwrap();
    set_mode(path, mode);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn owner_group_mode(path: &Path) -> (u32, u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

#[test]
fn every_permission_stays() {
    let folder = folder("owners-mode");
    let path = folder.join("a.ini");
    fs::write(&path, "/x = 1\n").unwrap();
    for mode in [
        0o600, 0o640, 0o664, 0o444, 0o604, 0o777, 0o2640, 0o2664, 0o1644,
    ] {
        set_mode(&path, mode);
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        commit(&path, &[set("/x", format!("{mode:o}"))]);
        assert_eq!(
            fs::metadata(&path).unwrap().mode() & 0o7777,
            mode,
            "{mode:o}"
        );
    }
}

/// An access control list as the kernel has it: a version, and of each entry its
/// kind, what it permits, and whose it is.
fn access_list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (kind, permits, whose) in entries {
        list.extend(kind.to_le_bytes());
        list.extend(permits.to_le_bytes());
        list.extend(whose.to_le_bytes());
    }
    list
}

/// The owner reads and writes, so does user 4002, the group nothing, others nothing.
fn list_for_ben() -> Vec<u8> {
    let nobody = u32::MAX;
    access_list(&[
        (0x01, 6, nobody),
        (0x02, 6, BEN.id),
        (0x04, 0, nobody),
        (0x10, 6, nobody),
        (0x20, 0, nobody),
    ])
}

const LIST: &str = "system.posix_acl_access";

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1000];
    let length = getxattr(path, name, &mut value).ok()?;
    value.truncate(length);
    Some(value)
}

#[test]
fn attributes_and_access_lists_stay() {
    let folder = folder("owners-attributes");
    let path = folder.join("a.ini");
    fs::write(&path, "/x = 1\n").unwrap();
    let attributes = [
        ("user.mime_type", b"text/plain".to_vec()),
        ("user.empty", Vec::new()),
        (LIST, list_for_ben()),
    ];
    for (name, value) in &attributes {
        match setxattr(&path, *name, value, XattrFlags::CREATE) {
            Err(Errno::NOTSUP) => return skip("attributes", "this file system has none"),
            done => done.unwrap(),
        }
    }
    let mode = fs::metadata(&path).unwrap().mode();
    commit(&path, &[set("/x", "2")]);
    for (name, value) in &attributes {
        assert_eq!(attribute(&path, name).as_ref(), Some(value), "{name}");
    }
    assert_eq!(fs::metadata(&path).unwrap().mode(), mode);
}

#[test]
fn root_leaves_file_and_lock_to_the_owner() {
    if !is_root("root_leaves_file_and_lock_to_the_owner") {
        return;
    }
    let folder = public_folder("root");
    chown(&folder, Some(ANNA.id), Some(ANNA.group)).unwrap();
    let path = folder.join("a.ini");
    make(&path, ANNA.id, TEAM, 0o600);
    commit(&path, &[set("/x", "2")]);
    assert_eq!(owner_group_mode(&path), (ANNA.id, TEAM, 0o600));
    assert_eq!(ANNA.set(&path, "/x", "3"), Ok(()));
    commit(&path, &[set("/x", "4")]);
    assert_eq!(ANNA.set(&path, "/x", "5"), Ok(()));
    assert_eq!(text(&path).unwrap(), "/x = 5\n");
    fs::remove_dir_all(folder).unwrap();
}

/// Who may rename in a folder may put there, as a lock, what is not to be given away.
#[test]
fn what_is_in_place_of_the_lock_is_not_given_away() {
    if !is_root("what_is_in_place_of_the_lock_is_not_given_away") {
        return;
    }
    let folder = public_folder("lock");
    let (path, lock) = (folder.join("a.ini"), folder.join(".a.ini.lock"));
    make(&path, ANNA.id, ANNA.group, 0o666);
    make(&lock, 0, 0, 0o600);
    commit(&path, &[set("/x", "2")]);
    assert_eq!(owner_group_mode(&lock), (0, 0, 0o600));
    assert_eq!(owner_group_mode(&path), (ANNA.id, ANNA.group, 0o666));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn members_of_a_group_take_turns() {
    if !is_root("members_of_a_group_take_turns") {
        return;
    }
    let folder = public_folder("team");
    chown(&folder, None, Some(TEAM)).unwrap();
    set_mode(&folder, 0o770);
    let path = folder.join("a.ini");
    make(&path, ANNA.id, TEAM, 0o660);
    for (number, user) in [BEN, ANNA, BEN, BEN, ANNA].into_iter().enumerate() {
        assert_eq!(user.set(&path, "/x", &format!("{number} of it")), Ok(()));
        assert_eq!(owner_group_mode(&path), (user.id, TEAM, 0o660));
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn whoever_may_not_keep_the_group_lets_nobody_else_in() {
    if !is_root("whoever_may_not_keep_the_group_lets_nobody_else_in") {
        return;
    }
    let folder = public_folder("stranger");
    set_mode(&folder, 0o777);
    let path = folder.join("a.ini");
    make(&path, 0, OTHERS, 0o664);
    assert_eq!(ANNA.set(&path, "/x", "2"), Ok(()));
    assert_eq!(
        owner_group_mode(&path),
        (ANNA.id, ANNA.group, 0o644),
        "her group gets what everybody had, and not what the other group had"
    );
    // The same with a list: what looks like the rights of the group are those of Ben.
    make(&path, 0, OTHERS, 0o666);
    let everybody_reads = access_list(&[
        (0x01, 6, u32::MAX),
        (0x02, 6, BEN.id),
        (0x04, 0, u32::MAX),
        (0x10, 6, u32::MAX),
        (0x20, 4, u32::MAX),
    ]);
    match setxattr(&path, LIST, &everybody_reads, XattrFlags::empty()) {
        Err(Errno::NOTSUP) => skip("access lists", "this file system has none"),
        done => {
            done.unwrap();
            assert_eq!(owner_group_mode(&path), (0, OTHERS, 0o664));
            setxattr(&path, "user.kept", b"yes", XattrFlags::CREATE).unwrap();
            assert_eq!(ANNA.set(&path, "/x", "3"), Ok(()));
            assert_eq!(
                owner_group_mode(&path),
                (ANNA.id, ANNA.group, 0o600),
                "nobody who was not named is let in, and nobody who was named to be kept out"
            );
            assert_eq!(attribute(&path, LIST), None);
            assert_eq!(attribute(&path, "user.kept"), Some(b"yes".to_vec()));
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_mask_of_the_process_takes_rights_and_gives_none() {
    if !is_root("the_mask_of_the_process_takes_rights_and_gives_none") {
        return;
    }
    for mask in [0, 0o022, 0o077, 0o177] {
        let folder = public_folder("mask");
        chown(&folder, Some(ANNA.id), None).unwrap();
        let path = folder.join("a.ini");
        let user = User { mask, ..ANNA };
        assert_eq!(user.set(&path, "/x", "1"), Ok(()));
        let lock = folder.join(".a.ini.lock");
        for file in [&path, &lock] {
            assert_eq!(
                owner_group_mode(file),
                (ANNA.id, ANNA.group, 0o600),
                "{mask:o}"
            );
        }
        // What is there stays as it is.
        set_mode(&path, 0o666);
        assert_eq!(user.set(&path, "/x", "2"), Ok(()));
        assert_eq!(owner_group_mode(&path).2, 0o666);
        assert_eq!(
            owner_group_mode(&lock).2,
            0o666,
            "all may write, so all may lock"
        );
        fs::remove_dir_all(folder).unwrap();
    }
    // A folder that its own maker may not enter.
    let folder = public_folder("mask-of-everything");
    chown(&folder, Some(ANNA.id), None).unwrap();
    let user = User {
        mask: 0o777,
        ..ANNA
    };
    assert_eq!(
        user.set(&folder.join("app/a.ini"), "/x", "1")
            .map_err(|error| shown(&error, &folder)),
        Err("error: cannot lock the file: permission denied\n \
             --> FOLDER/app/.a.ini.lock\n  \
             = help: `ls -ld FOLDER/app FOLDER/app/.a.ini.lock` shows who may use it; \
             become one of them, or change it"
            .to_owned())
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_one_may_not_do_is_said() {
    if !is_root("what_one_may_not_do_is_said") {
        return;
    }
    let folder = public_folder("forbidden");
    let path = folder.join("a.ini");
    make(&path, 0, 0, 0o600);
    assert_eq!(
        ANNA.set(&path, "/x", "2")
            .map_err(|error| shown(&error, &folder)),
        Err("error: cannot read the file: permission denied\n \
             --> FOLDER/a.ini\n  \
             = help: `ls -ld FOLDER FOLDER/a.ini` shows who may use it; \
             become one of them, or change it"
            .to_owned())
    );
    // Her own file in a folder that is not hers.
    make(&path, ANNA.id, ANNA.group, 0o600);
    set_mode(&folder, 0o555);
    assert_eq!(
        ANNA.set(&path, "/x", "2")
            .map_err(|error| shown(&error, &folder)),
        Err("error: cannot lock the file: permission denied\n \
             --> FOLDER/.a.ini.lock\n  \
             = help: `ls -ld FOLDER FOLDER/.a.ini.lock` shows who may use it; \
             become one of them, or change it"
            .to_owned())
    );
    assert_eq!(text(&path).unwrap(), "/x = 1\n");
    assert_eq!(names(&folder), ["a.ini"]);
    fs::remove_dir_all(folder).unwrap();
}
