//! Folders and links on the way to a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{Watched, folder, pause, shell};

#[test]
fn folders_that_do_not_exist_yet() {
    let folder = folder("folders");
    let file = folder.join("a/b/c/f");
    let watched = Watched::new(&[&file]);
    watched.nothing();
    for turn in 0..30 {
        shell(
            &folder,
            &format!("mkdir -p a/b/c && printf {turn} > a/b/c/f"),
        );
        watched.until(&file, Some(&turn.to_string()));
        shell(&folder, "rm -r a");
        watched.until(&file, None);
    }
    // One after the other, and with something else in between.
    for path in ["a", "a/x", "a/b", "a/b/c", "a/b/c/x"] {
        fs::create_dir(folder.join(path)).unwrap();
        pause();
    }
    fs::write(&file, "last").unwrap();
    watched.until(&file, Some("last"));
}

#[test]
fn a_folder_that_is_made_elsewhere_and_moved_here() {
    let folder = folder("moved-here");
    let file = folder.join("a/b/f");
    let watched = Watched::new(&[&file]);
    shell(&folder, "mkdir -p x/b; printf 1 > x/b/f; mv x a");
    watched.until(&file, Some("1"));
    shell(&folder, "mv a y");
    watched.until(&file, None);
    shell(&folder, "mkdir -p z/b; printf 2 > z/b/f; mv z a");
    watched.until(&file, Some("2"));
    // The old one no longer concerns the path.
    watched.settle();
    shell(&folder, "printf 3 > y/b/f");
    watched.nothing();
    // Two folders change places.
    rustix::fs::renameat_with(
        rustix::fs::CWD,
        folder.join("a"),
        rustix::fs::CWD,
        folder.join("y"),
        rustix::fs::RenameFlags::EXCHANGE,
    )
    .unwrap();
    watched.until(&file, Some("3"));
}

#[test]
fn a_folder_that_is_removed_while_somebody_is_in_it() {
    let folder = folder("occupied");
    let file = folder.join("a/b/f");
    let watched = Watched::new(&[&file]);
    for turn in 0..10 {
        fs::create_dir_all(folder.join("a/b")).unwrap();
        // The kernel keeps a folder that somebody is in, and tells nobody who
        // watches the folder itself that it was removed.
        let mut somebody = Command::new("sleep")
            .arg("60")
            .current_dir(folder.join("a/b"))
            .spawn()
            .unwrap();
        let mut other = Command::new("sleep")
            .arg("60")
            .current_dir(folder.join("a"))
            .spawn()
            .unwrap();
        fs::write(&file, "x").unwrap();
        watched.until(&file, Some("x"));
        if turn % 2 == 0 {
            // The watcher now waits in an empty folder.
            fs::remove_file(&file).unwrap();
            watched.until(&file, None);
        }
        fs::remove_dir(folder.join("a/b")).unwrap_or_else(|_| {
            fs::remove_dir_all(folder.join("a/b")).unwrap();
        });
        if turn % 4 == 0 {
            pause();
        }
        fs::remove_dir(folder.join("a")).unwrap();
        if turn % 3 == 0 {
            pause();
        }
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(&file, turn.to_string()).unwrap();
        watched.until(&file, Some(&turn.to_string()));
        for process in [&mut somebody, &mut other] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        fs::remove_dir_all(folder.join("a")).unwrap();
        watched.until(&file, None);
    }
}

#[test]
fn an_empty_folder_that_another_one_replaces() {
    let folder = folder("empty");
    let file = folder.join("a/f");
    shell(&folder, "mkdir a new; printf 1 > new/f");
    let watched = Watched::new(&[&file]);
    fs::rename(folder.join("new"), folder.join("a")).unwrap();
    watched.until(&file, Some("1"));
}

#[test]
fn links_at_every_place_of_the_path() {
    let folder = folder("links");
    shell(
        &folder,
        "mkdir -p one two/deep real; printf 1 > real/f; printf 2 > two/deep/f
         ln -s real/f file; ln -s ../file one/up; ln -s \"$PWD/one\" absolute; ln -s absolute again",
    );
    // again → absolute → /…/one, one/up → ../file → real/f
    let path = folder.join("again/up");
    let watched = Watched::new(&[&path]);
    let follows = |script: &str, content: Option<&str>| {
        shell(&folder, script);
        watched.until(&path, content);
    };
    follows("printf 1b > real/f", Some("1b"));
    follows("printf 1c > g; mv g real/f", Some("1c"));
    follows("ln -sfn two/deep/f file", Some("2"));
    follows("printf 2b > two/deep/f", Some("2b"));
    follows("ln -s real/f new; mv -T new file", Some("1c"));
    follows(
        "mkdir three; printf 3 > three/up; ln -sfn three absolute",
        Some("3"),
    );
    follows("rm again; ln -s one again", Some("1c"));
    follows("mv real away", None);
    follows("mkdir real; printf 4 > real/f", Some("4"));
    follows("rm one/up", None);
    follows("ln -s \"$PWD/two/deep/../../real/./f\" one/up", Some("4"));
    follows("rm -r one", None);
    follows("mkdir one; printf 5 > one/up", Some("5"));
}

#[test]
fn links_that_lead_nowhere() {
    let folder = folder("nowhere");
    shell(
        &folder,
        "ln -s missing/deep/f link; ln -s round about; ln -s about round",
    );
    let (link, round) = (folder.join("link"), folder.join("round"));
    let watched = Watched::new(&[&link, &round]);
    shell(&folder, "mkdir -p missing/deep; printf 1 > missing/deep/f");
    watched.until(&link, Some("1"));
    shell(&folder, "ln -sfn link about");
    watched.until(&round, Some("1"));
    shell(&folder, "printf 2 > missing/deep/f");
    watched.until(&round, Some("2"));
}

#[test]
fn a_mounted_config_map() {
    let folder = folder("config-map");
    let update = |version: u32| {
        format!(
            "mkdir ..2026_{version}; printf {version} > ..2026_{version}/app.ini
             printf x{version} > ..2026_{version}/other.ini
             ln -s ..2026_{version} ..data_tmp; mv -T ..data_tmp ..data"
        )
    };
    shell(&folder, &update(0));
    shell(
        &folder,
        "ln -s ..data/app.ini app.ini; ln -s ..data/other.ini other.ini",
    );
    let (app, other) = (folder.join("app.ini"), folder.join("other.ini"));
    let watched = Watched::new(&[&app, &other]);
    for version in 1..10 {
        shell(
            &folder,
            &format!("{}; rm -r ..2026_{}", update(version), version - 1),
        );
        watched.until_whole(&app, &version.to_string());
        watched.until(&other, Some(&format!("x{version}")));
    }
}

#[test]
fn a_file_with_several_names() {
    let folder = folder("names");
    fs::write(folder.join("f"), "1").unwrap();
    fs::hard_link(folder.join("f"), folder.join("hard")).unwrap();
    symlink("f", folder.join("soft")).unwrap();
    let (file, soft) = (folder.join("f"), folder.join("soft"));
    let watched = Watched::new(&[&file, &soft]);
    fs::write(folder.join("hard"), "2").unwrap();
    watched.until(&file, Some("2"));
    fs::write(&soft, "3").unwrap();
    watched.until(&file, Some("3"));
    watched.until(&soft, Some("3"));
    // One of two paths to the same inodes is no longer watched.
    watched.files.remove(&file);
    fs::write(folder.join("new"), "4").unwrap();
    fs::rename(folder.join("new"), &file).unwrap();
    watched.until(&soft, Some("4"));
    watched.files.remove(&soft);
    watched.settle();
    fs::write(&file, "5").unwrap();
    watched.nothing();
    watched.files.add(&file).unwrap();
    watched.files.add(&file).unwrap();
    fs::write(&file, "6").unwrap();
    watched.until(&file, Some("6"));
}

#[test]
fn what_is_no_file() {
    let folder = folder("no-file");
    let (path, below) = (folder.join("p"), folder.join("p/f"));
    let watched = Watched::new(&[&path, &below]);
    shell(&folder, "printf 1 > p");
    watched.until(&path, Some("1"));
    shell(&folder, "rm p; mkdir p; printf 2 > p/f");
    watched.until(&below, Some("2"));
    shell(&folder, "rm -r p; mkfifo p; rm p; printf 3 > p");
    watched.until(&path, Some("3"));
    shell(&folder, "rm p; ln -s . p; printf 4 > f");
    watched.until(&below, Some("4"));
}

#[test]
fn what_happens_beside_the_way_is_not_told() {
    let folder = folder("beside");
    shell(&folder, "mkdir -p a/b; printf 1 > a/b/f");
    let watched = Watched::new(&[&folder.join("a/b/f"), &folder.join("a/missing/f")]);
    shell(
        &folder,
        "printf x > g; mkdir -p a/c; printf x > a/b/g; rm a/b/g; mv g h; rm -r a/c",
    );
    watched.nothing();
}
