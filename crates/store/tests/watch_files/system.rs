//! What the system does to a way: mounts, limits, permissions, lost events.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use milieu_keys::Namespace;
use milieu_store::watch::{FileNews, Files, Filter, Pace, Watch};
use milieu_store::{Place, Store};

use super::{PATIENCE, Watched, folder, shell};

/// Runs the rest of the test in a process that another program starts, and says
/// whether this is it. Where that program cannot do its work here, as in a
/// container without rights, there is nothing to test.
fn inside(test: &str, starter: &[&str]) -> bool {
    if std::env::var_os("MILIEU_INSIDE").is_some() {
        return true;
    }
    let run = |program: &[&str]| {
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).args(program);
        command.env("MILIEU_INSIDE", test).output()
    };
    if !run(&["true"]).is_ok_and(|output| output.status.success()) {
        eprintln!("left out: `{}` does not work here", starter.join(" "));
        return false;
    }
    let program = std::env::current_exe().unwrap();
    let test = format!("system::{test}");
    let output = run(&[program.to_str().unwrap(), "--exact", &test, "--nocapture"]).unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{shown}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(shown.contains("1 passed"), "{shown}");
    false
}

#[test]
fn events_that_overflow_the_queue() {
    let folder = folder("overflow");
    let (noisy, quiet) = (folder.join("noisy"), folder.join("a/quiet"));
    shell(&folder, "mkdir a; printf 1 > a/quiet; printf 1 > noisy");
    let (told, news) = channel();
    let (go_on, wait) = channel::<()>();
    let files = Files::start(Pace::default(), move |turn| {
        for path in turn.paths() {
            told.send((path.to_owned(), fs::read_to_string(path).ok()))
                .unwrap();
        }
        let _ = wait.recv();
    })
    .unwrap();
    files.add(&noisy).unwrap();
    files.add(&quiet).unwrap();
    fs::write(&noisy, "2").unwrap();
    news.recv_timeout(PATIENCE).unwrap();
    // The thread is in its handler now and takes no events.
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let queue: usize = queue.trim().parse().unwrap();
    let file = fs::File::options().write(true).open(&noisy).unwrap();
    for turn in 0..=queue / 2 {
        // Of equal events that follow each other the kernel keeps one.
        file.set_permissions(fs::Permissions::from_mode(0o600))
            .unwrap();
        file.set_len(turn as u64 % 2).unwrap();
    }
    // These find no room in the queue.
    shell(&folder, "mv a b; mkdir a; printf 3 > a/quiet");
    drop(go_on);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (path, content) = news.recv_timeout(left).expect("the quiet file is told of");
        if path == quiet {
            assert_eq!(content.as_deref(), Some("3"));
            break;
        }
    }
    fs::write(&quiet, "4").unwrap();
    loop {
        let (path, content) = news.recv_timeout(PATIENCE).expect("it is watched again");
        if path == quiet && content.as_deref() == Some("4") {
            break;
        }
    }
}

#[test]
fn file_systems_that_are_mounted_over_the_way() {
    let test = "file_systems_that_are_mounted_over_the_way";
    if !inside(test, &["unshare", "--user", "--map-root-user", "--mount"]) {
        return;
    }
    let folder = folder("mounts");
    let file = folder.join("point/f");
    shell(
        &folder,
        "mkdir point origin; printf below > point/f; printf 1 > origin/f",
    );
    let watched = Watched::new(&[&file]);
    shell(&folder, "mount --bind origin point");
    watched.until(&file, Some("1"));
    // Inodes are the same whichever way they are reached.
    shell(&folder, "printf 2 > origin/f");
    watched.until(&file, Some("2"));
    shell(&folder, "printf 3 > origin/g; mv origin/g origin/f");
    watched.until(&file, Some("3"));
    shell(&folder, "umount point");
    watched.until(&file, Some("below"));
    shell(&folder, "mount -t tmpfs none point; printf 4 > point/f");
    watched.until(&file, Some("4"));
    shell(&folder, "umount point");
    watched.until(&file, Some("below"));
}

#[test]
fn layers_of_a_container() {
    let test = "layers_of_a_container";
    let starter = ["unshare", "--user", "--map-root-user", "--mount"];
    if !inside(test, &starter) {
        return;
    }
    let folder = folder("layers");
    shell(
        &folder,
        "mkdir -p lower/a/b upper work merged; printf 1 > lower/a/b/f",
    );
    let mount =
        "mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work,userxattr merged";
    let mut shell_of_mount = Command::new("sh");
    let mounted = shell_of_mount.args(["-c", mount]).current_dir(&folder);
    if !mounted.status().unwrap().success() {
        eprintln!("left out: layers cannot be mounted here");
        return;
    }
    let file = folder.join("merged/a/b/f");
    let watched = Watched::new(&[&file]);
    let follows = |script: &str, content: Option<&str>| {
        shell(&folder, script);
        watched.until(&file, content);
    };
    // The first write copies the file to the upper layer.
    follows("printf 2 > merged/a/b/f", Some("2"));
    follows("printf 3 > merged/a/b/f", Some("3"));
    follows("printf 4 > merged/g; mv merged/g merged/a/b/f", Some("4"));
    follows("rm -r merged/a", None);
    follows("mkdir -p merged/a/b; printf 5 > merged/a/b/f", Some("5"));
}

#[test]
fn a_limit_of_watches() {
    if !inside(
        "a_limit_of_watches",
        &["unshare", "--user", "--map-root-user"],
    ) {
        return;
    }
    let folder = folder("limit");
    let (told, news) = channel();
    let (troubled, troubles) = channel();
    let pace = Pace {
        look: Some(Duration::from_millis(20)),
        ..Pace::default()
    };
    let files = Files::start(pace, move |turn| {
        for path in turn.paths() {
            let _ = told.send((path.to_owned(), fs::read_to_string(path).ok()));
        }
        turn.troubles()
            .for_each(|trouble| troubled.send(trouble).unwrap());
    })
    .unwrap();
    let path = folder.join("a/b/c/f");
    files.add(&path).unwrap();
    // Each folder is watched already; there is room for one more watch.
    let enough = folder.ancestors().count();
    fs::write("/proc/sys/user/max_inotify_watches", enough.to_string()).unwrap();
    let other = folder.join("x/y/z/f");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    let error = files.add(&other).unwrap_err().to_string();
    assert!(
        error.contains("sysctl fs.inotify.max_user_watches="),
        "{error}"
    );
    assert!(error.contains("x/y/z/f"), "{error}");

    // What was watched before needs more now. It is said once, and then looked at.
    let watched = Watched { files, news };
    for turn in 0..3 {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, turn.to_string()).unwrap();
        watched.until(&path, Some(&turn.to_string()));
    }
    let (of, error) = troubles.recv_timeout(PATIENCE).unwrap();
    assert_eq!(*of, *path);
    assert!(
        error
            .to_string()
            .contains("sysctl fs.inotify.max_user_watches="),
        "{error}"
    );
    std::thread::sleep(Duration::from_millis(100));
    assert!(troubles.try_recv().is_err(), "it was said before");
    fs::write("/proc/sys/user/max_inotify_watches", "100000").unwrap();
    watched.files.add(&other).unwrap();
    fs::write(&other, "1").unwrap();
    watched.until(&other, Some("1"));

    fs::write("/proc/sys/user/max_inotify_instances", "0").unwrap();
    let error = Files::start(Pace::default(), |_| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("sysctl fs.inotify.max_user_instances="),
        "{error}"
    );
}

#[test]
fn a_store_above_the_limit_of_watches() {
    let test = "a_store_above_the_limit_of_watches";
    if !inside(test, &["unshare", "--user", "--map-root-user"]) {
        return;
    }
    let folder = folder("store-limit");
    let path = folder.join("a/b/c/app.ini");
    let place = Place::new(Namespace::User, path.clone());
    let store = Store::read(vec![place]).unwrap();
    let limit = |watches: usize| {
        fs::write("/proc/sys/user/max_inotify_watches", watches.to_string()).unwrap();
    };
    limit(1);
    let error = Watch::start(&store, Pace::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("sysctl fs.inotify.max_user_watches="),
        "{error}"
    );
    limit(folder.ancestors().count());
    let pace = Pace {
        look: Some(Duration::from_millis(20)),
        ..Pace::default()
    };
    let watch = Watch::start(&store, pace).unwrap();
    let changes = watch.changes(store.keys(), Filter::all());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "a = 1\n").unwrap();
    let (mut unwatched, mut changed) = (0, 0);
    while changed == 0 || unwatched == 0 {
        let news = changes.recv_timeout(PATIENCE).unwrap();
        changed += news.changes.len();
        for file in &news.files {
            let FileNews::Unwatched { path: of, error } = file else {
                panic!("{file:?}");
            };
            assert!(
                *of == path && error.to_string().contains("max_user_watches"),
                "{error}"
            );
            unwatched += 1;
        }
    }
    assert_eq!((changed, unwatched), (1, 1));
}

#[test]
fn folders_and_files_without_permission() {
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let test = "folders_and_files_without_permission";
    // Whoever may do everything is not refused anything.
    let starter = if rustix::process::geteuid().is_root() {
        &nobody[..]
    } else {
        &["env"]
    };
    if !inside(test, starter) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("milieu-permissions-{}", std::process::id()));
    let path = folder.join("a/b/f");
    shell(
        Path::new("/"),
        &format!("mkdir -p {0}/a/b; printf 1 > {0}/a/b/f", folder.display()),
    );
    let pace = Pace {
        look: Some(Duration::from_millis(20)),
        ..Pace::default()
    };
    let watched = Watched::at(pace, &[&path]);
    let follows = |script: &str, content: Option<&str>| {
        shell(&folder, script);
        watched.until(&path, content);
    };
    // The file, then a folder: permissions come and go.
    follows("chmod 0 a/b/f", None);
    follows("chmod 600 a/b/f", Some("1"));
    follows("chmod 0 a/b", None);
    follows("chmod 700 a/b", Some("1"));
    follows("chmod 0 a", None);
    follows("chmod 700 a", Some("1"));
    // A file that may not be read is replaced by one that may.
    follows("chmod 0 a/b/f", None);
    follows("printf 2 > g; mv -f g a/b/f", Some("2"));
    // Folders that may be passed and not listed.
    follows("chmod 100 a a/b; printf 3 > a/b/f", Some("3"));
    follows("mv a x; mkdir -p a/b; printf 4 > a/b/f", Some("4"));
    follows("chmod 700 a a/b; printf 5 > g; mv g a/b/f", Some("5"));
    drop(watched);

    // Nothing of the way can be watched but the way to it: it is looked at.
    shell(&folder, "chmod 300 a a/b");
    let watched = Watched::at(pace, &[&path]);
    shell(&folder, "rm -f a/b/f; printf 6 > a/b/f");
    watched.until(&path, Some("6"));
    shell(&folder, "chmod -R 700 .; rm -r *");
    fs::remove_dir(&folder).unwrap();
}
