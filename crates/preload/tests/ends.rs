//! However a program ends, what was learned of its threads is not lost.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{World, compile, scratch, skipped};

/// What threads use that end, and those that stay.
const SHALLOW: &str = "20000";
const DEEP: &str = "90000";

struct Scene {
    program: PathBuf,
    profile: PathBuf,
    settings: String,
}

impl Scene {
    fn new(name: &str) -> Option<Scene> {
        let folder = scratch(name);
        let program = compile("gcc", "ends.c", &folder, &[])?;
        Some(Scene::within(program, &folder.join("profiles")))
    }

    fn within(program: PathBuf, folder: &Path) -> Scene {
        fs::create_dir_all(folder).expect("a folder");
        let profile = folder.join("profile");
        let settings = format!("stacks=learn;profile={}", profile.display());
        Scene {
            program,
            profile,
            settings,
        }
    }

    fn world(&self) -> World<'_> {
        World::served(&self.settings)
    }

    /// The notes that there are.
    fn notes(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.profile.parent().expect("a folder")).expect("it is there");
        let paths = files.map(|it| it.expect("a file").path());
        paths
            .filter(|it| it.extension().is_some_and(|it| it == "notes"))
            .collect()
    }

    /// What the profile says once somebody has read it.
    fn settled(&self) -> String {
        let path = self.profile.to_str().expect("a path of letters");
        let path = std::ffi::CString::new(path).expect("no zeros");
        milieu_threads::stack::settle(&path, 60_000).expect("notes can be added");
        assert_eq!(self.notes(), [] as [PathBuf; 0]);
        fs::read_to_string(&self.profile).expect("it was learned")
    }
}

/// Of each key: in how many runs how many threads were seen, and how deep.
fn numbers(text: &str) -> Vec<[u64; 3]> {
    let lines = text.lines().filter(|it| it.starts_with("thread "));
    // Whoever reads while a line is written may not see all of it.
    let of = |line: &str| {
        let number = |name: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|it| it.strip_prefix(name))?.parse().ok()
        };
        Some([number("runs=")?, number("threads=")?, number("peak=")?])
    };
    let mut numbers: Vec<[u64; 3]> = lines.filter_map(of).collect();
    numbers.sort_by_key(|it| it[2]);
    numbers
}

fn is_shallow(bytes: u64) -> bool {
    (20_000..60_000).contains(&bytes)
}

fn is_deep(bytes: u64) -> bool {
    (90_000..150_000).contains(&bytes)
}

/// Threads that have ended are noted at once. Whoever is served next adds the notes.
#[test]
fn what_was_learned_outlives_ends_that_nobody_is_told_of() {
    let Some(scene) = Scene::new("ends") else {
        return;
    };
    let mut runs = 0;
    for end in ["_exit", "_Exit", "quick_exit", "abort"] {
        let run = scene.world().run(&scene.program, &[end, SHALLOW, DEEP]);
        assert_eq!(run.stdout, "ready\n", "{end}: {run:?}");
        assert!(!run.stderr.contains("milieu: "), "{end}: {run:?}");
        assert_eq!(scene.notes().len(), 1, "{end}");
        runs += 1;
    }
    // It has added what was there, and all of its own when it ended.
    let run = scene
        .world()
        .run(&scene.program, &["return", SHALLOW, DEEP]);
    assert_eq!(run.well(), "ready\n");
    assert_eq!(scene.notes(), [] as [PathBuf; 0]);
    let text = fs::read_to_string(&scene.profile).expect("it was learned");
    let learned = numbers(&text);
    let [seen, threads, peak] = learned[0];
    assert_eq!(seen, runs + 1, "{text}");
    // Of three, two at least are noted.
    assert!((2 * runs + 3..=3 * runs + 3).contains(&threads), "{text}");
    assert!(is_shallow(peak), "{text}");
    let [_, threads, peak] = learned[1];
    assert!(threads >= 3 && is_deep(peak), "{text}");
    assert!(
        text.contains(&format!(" {}\n", scene.program.display())),
        "{text}"
    );
}

/// Threads that never end are measured while they run, and a signal takes nothing away.
#[test]
fn what_was_learned_outlives_being_killed() {
    for signal in ["KILL", "TERM"] {
        let Some(scene) = Scene::new(&format!("killed-{signal}")) else {
            return;
        };
        let mut command = scene
            .world()
            .command(&scene.program, &["wait", SHALLOW, DEEP]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut said = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut said).expect("a line");
        assert_eq!(said, "ready\n");
        let notes = scene.notes().pop().expect("it notes");
        let begun = Instant::now();
        let text = loop {
            let bytes = fs::read(&notes).expect("they are there");
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let noted = numbers(&text);
            if noted.last().is_some_and(|it| it[1] == 3 && is_deep(it[2])) {
                break text;
            }
            assert!(begun.elapsed() < Duration::from_secs(200), "{text}");
            std::thread::sleep(Duration::from_millis(20));
        };
        let name = notes
            .file_name()
            .and_then(|it| it.to_str())
            .expect("a name");
        let number = name.split('.').nth(1).expect("a number");
        let told = Command::new("kill").args(["-s", signal, number]).status();
        assert!(told.expect("it starts").success());
        assert!(!child.wait().expect("it was there").success());
        let settled = scene.settled();
        assert_eq!(numbers(&settled), numbers(&text), "{settled}");
        assert!(numbers(&settled).iter().all(|it| it[0] == 1), "{settled}");
    }
}

/// A process that becomes another program, and the child of one, are runs of their own.
#[test]
fn programs_that_exec_and_fork_note_what_is_theirs() {
    for end in ["again", "child"] {
        let Some(scene) = Scene::new(&format!("ends-{end}")) else {
            return;
        };
        scene
            .world()
            .run(&scene.program, &[end, SHALLOW, "0"])
            .well();
        let text = scene.settled();
        let learned = numbers(&text);
        assert_eq!(learned.len(), 1, "{text}");
        let [runs, threads, peak] = learned[0];
        assert_eq!(runs, 2, "{text}");
        assert!((4..=6).contains(&threads), "{text}");
        assert!(is_shallow(peak), "{text}");
    }
}

/// A daemon that becomes another user cannot write its profile any more.
#[test]
fn what_was_learned_outlives_rights_that_are_given_up() {
    let Some(scene) = Scene::new("rights") else {
        return;
    };
    // SAFETY: no memory is involved.
    if unsafe { libc::geteuid() } != 0 {
        return skipped("only root can give up its rights");
    }
    let folder = scene.profile.parent().expect("a folder");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("its own");
    let run = scene.world().run(&scene.program, &["user", SHALLOW, DEEP]);
    assert_eq!(run.stderr, "");
    assert_eq!(run.well(), "ready\n");
    assert_eq!(scene.notes().len(), 1);
    let learned = numbers(&scene.settled());
    let [shallow, deep] = learned[..] else {
        panic!("{learned:?}");
    };
    assert_eq!((shallow[0], shallow[1]), (1, 3));
    assert_eq!((deep[0], deep[1]), (1, 3));
    assert!(is_shallow(shallow[2]) && is_deep(deep[2]), "{learned:?}");
}

/// Nothing happens to a program whose disk is full, or whose files must not be long.
#[test]
fn a_disk_that_is_full_harms_nobody() {
    let Some(scene) = Scene::new("full") else {
        return;
    };
    // There is room for a profile and none for notes, and not even for a table.
    for (limit, said) in [
        ("--fsize=100000", ""),
        ("--fsize=40", "milieu: this program is not served: "),
    ] {
        let limited = World {
            starter: &["prlimit", limit],
            ..scene.world()
        };
        if support::has("prlimit") {
            let run = limited.run(&scene.program, &["return", SHALLOW, "0"]);
            assert!(run.stderr.starts_with(said), "{run:?}");
            assert_eq!(run.stderr.lines().count(), usize::from(!said.is_empty()));
            assert_eq!(run.well(), "ready\n");
            let text = scene.settled();
            assert!(numbers(&text).len() == 1, "{text}");
        }
    }
    let mounts = |space: &str| {
        let folder = scene.profile.parent().expect("a folder").display();
        format!("mount -t tmpfs -o {space} none {folder}")
    };
    let tried = Command::new("unshare")
        .args(["-m", "sh", "-c", &mounts("size=4k")])
        .output();
    if !tried.is_ok_and(|it| it.status.success()) {
        return skipped("no file system can be mounted here");
    }
    // One page, which the notes take, and none at all.
    for (before, is_noted) in [("true", true), ("echo > \"$0/other\"", false)] {
        let folder = scene
            .profile
            .parent()
            .expect("a folder")
            .display()
            .to_string();
        let mount = mounts("size=4k");
        let script = format!("{mount} && {before} && \"$@\"; status=$?; ls $0 >&2; exit $status");
        let world = World {
            starter: &["unshare", "-m", "sh", "-c", &script, &folder],
            ..scene.world()
        };
        let run = world.run(&scene.program, &["return", SHALLOW, "0"]);
        assert_eq!(run.stdout, "ready\n", "{run:?}");
        assert_eq!(run.status, "exit status: 0", "{run:?}");
        assert_eq!(run.stderr.contains(".notes\n"), is_noted, "{run:?}");
        assert_eq!(
            run.stderr.contains("the disk is full"),
            !is_noted,
            "{run:?}"
        );
    }
}
