//! Symbolic links, which stay, and hard links, which part.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use milieu_keys::Namespace;
use milieu_store::{Store, Strategy};

use super::{folder, names, open, places, set, shown, text};

#[test]
fn a_chain_of_links_through_folders_stays() {
    let folder = folder("links-chain");
    fs::create_dir_all(folder.join("one/two")).unwrap();
    fs::create_dir(folder.join("data")).unwrap();
    symlink("one/b.ini", folder.join("a.ini")).unwrap();
    symlink("two/c.ini", folder.join("one/b.ini")).unwrap();
    symlink(folder.join("far/d.ini"), folder.join("one/two/c.ini")).unwrap();
    // A folder of the way is a link itself.
    symlink("data", folder.join("far")).unwrap();
    for (number, before) in [None, Some("/x = 1\n")].into_iter().enumerate() {
        assert_eq!(text(&folder.join("a.ini")).as_deref(), before);
        let changes = [set("/x", (number + 1).to_string())];
        open(&folder.join("a.ini"))
            .commit(Namespace::User, &changes, Strategy::Refuse)
            .unwrap();
        let target = folder.join("data/d.ini");
        assert_eq!(text(&target), Some(format!("/x = {}\n", number + 1)));
        for link in ["a.ini", "one/b.ini", "one/two/c.ini", "far"] {
            assert!(folder.join(link).is_symlink(), "{link}");
        }
        assert_eq!(names(&folder.join("data")), [".d.ini.lock", "d.ini"]);
        assert_eq!(names(&folder), ["a.ini", "data", "far", "one"]);
    }
}

#[test]
fn a_link_that_is_turned_meanwhile_is_followed_anew() {
    let folder = folder("links-turned");
    fs::write(folder.join("old.ini"), "x = old\n").unwrap();
    fs::write(folder.join("new.ini"), "x = old\ny = new\n").unwrap();
    symlink("old.ini", folder.join("a.ini")).unwrap();
    let mut store = open(&folder.join("a.ini"));
    fs::remove_file(folder.join("a.ini")).unwrap();
    symlink("new.ini", folder.join("a.ini")).unwrap();
    let changes = [set("/x", "ours")];
    store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    assert_eq!(text(&folder.join("old.ini")).unwrap(), "x = old\n");
    assert_eq!(
        text(&folder.join("new.ini")).unwrap(),
        "x = ours\ny = new\n"
    );
    assert_eq!(store.keys().len(), 2);
}

#[test]
fn a_chain_without_end_is_an_error() {
    let folder = folder("links-long");
    for number in 0..50 {
        symlink(
            format!("{}.ini", number + 1),
            folder.join(format!("{number}.ini")),
        )
        .unwrap();
    }
    let error = Store::read(places([folder.join("0.ini")])).unwrap_err();
    assert_eq!(
        shown(&error, &folder),
        "error: cannot read the file: too many levels of symbolic links\n \
         --> FOLDER/0.ini\n  \
         = help: the symbolic links lead in a circle; mend one of them"
    );
}

/// A commit gives the name to another file. Whoever has the old one under another
/// name, or open, keeps the old text: that is what makes reading safe at any time.
#[test]
fn a_hard_link_keeps_the_old_text() {
    let folder = folder("links-hard");
    let (path, other) = (folder.join("a.ini"), folder.join("other.ini"));
    fs::write(&path, "x = 1\n").unwrap();
    fs::hard_link(&path, &other).unwrap();
    let changes = [set("/x", "2")];
    open(&path)
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    assert_eq!(text(&path).unwrap(), "x = 2\n");
    assert_eq!(text(&other).unwrap(), "x = 1\n");
    assert_eq!(fs::metadata(&other).unwrap().nlink(), 1);
}
