//! However a program ends, what was learned of its threads is not lost.

mod support;

use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{World, compile, scratch, skipped};

/// What threads use that end, and those that stay.
const SHALLOW: &str = "20000";
const DEEP: &str = "90000";

/// What is waited for takes that long at most, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(200);

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

    fn command(&self, arguments: &[&str]) -> Command {
        self.world().command(&self.program, arguments)
    }

    fn path(&self) -> CString {
        let path = self.profile.to_str().expect("a path of letters");
        CString::new(path).expect("no zeros")
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
        milieu_threads::stack::settle(&self.path(), 60_000).expect("notes can be added");
        assert_eq!(self.notes(), [] as [PathBuf; 0]);
        fs::read_to_string(&self.profile).expect("it was learned")
    }
}

/// A process that is ready, and does not outlive the test: who has started it ends with it
/// by this signal.
struct Waiting {
    child: Child,
    signal: &'static str,
}

impl Waiting {
    fn new(mut command: Command, signal: &'static str) -> Waiting {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let output = child.stdout.take().expect("a pipe");
        let waiting = Waiting { child, signal };
        let mut said = String::new();
        BufReader::new(output).read_line(&mut said).expect("a line");
        assert_eq!(said, "ready\n");
        waiting
    }

    /// Ends it, and who has started it with it.
    fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            signal(self.signal, &self.child.id().to_string());
            let _ = self.child.wait();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.stop();
    }
}

fn signal(name: &str, process: &str) {
    let told = Command::new("kill").args(["-s", name, process]).status();
    assert!(told.expect("it starts").success());
}

/// What a program notes whose three deep threads never end, once it has noted them.
fn noted(notes: &Path) -> String {
    let begun = Instant::now();
    loop {
        let bytes = fs::read(notes).expect("they are there");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let noted = numbers(&text);
        if noted.last().is_some_and(|it| it[1] == 3 && it[2] >= 90_000) {
            return text;
        }
        assert!(begun.elapsed() < PATIENCE, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whose notes they are, by their name.
fn number_of(notes: &Path) -> String {
    let name = notes.file_name().and_then(|it| it.to_str());
    let mut parts = name.expect("a name").split('.');
    parts.nth(1).expect("a number").to_owned()
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
        let command = scene.command(&["wait", SHALLOW, DEEP]);
        let mut waiting = Waiting::new(command, "TERM");
        let notes = scene.notes().pop().expect("it notes");
        let text = noted(&notes);
        let number = number_of(&notes);
        self::signal(signal, &number);
        assert!(!waiting.child.wait().expect("it was there").success());
        let settled = scene.settled();
        assert_eq!(numbers(&settled), numbers(&text), "{settled}");
        assert!(numbers(&settled).iter().all(|it| it[0] == 1), "{settled}");
    }
}

/// Those who note and end at once beside one profile take nothing from each other.
#[test]
fn what_several_learn_at_once_arrives() {
    const DEEPER: &str = "200000";
    let Some(scene) = Scene::new("at-once") else {
        return;
    };
    let begin = |deep| Waiting::new(scene.command(&["wait", SHALLOW, deep]), "TERM");
    let children = [DEEP, DEEPER].map(begin);
    let notes = scene.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    let texts: Vec<String> = notes.iter().map(|it| noted(it)).collect();
    // Nobody who reads the profile now takes them for those of a process that has ended.
    milieu_threads::stack::settle(&scene.path(), 60_000).expect("there is nothing to add");
    assert_eq!(scene.notes().len(), 2);
    children.into_iter().for_each(Waiting::end);
    let text = scene.settled();
    let seen: Vec<_> = texts.iter().map(|it| numbers(it)).collect();
    let sum = |key: usize, part: usize| seen[0][key][part] + seen[1][key][part];
    let peak = |key: usize| seen[0][key][2].max(seen[1][key][2]);
    let expected = [0, 1].map(|key| [sum(key, 0), sum(key, 1), peak(key)]);
    assert_eq!(numbers(&text), expected, "{text}");
    assert!((200_000..260_000).contains(&expected[1][2]), "{text}");

    // And those that end by themselves, in the same moment.
    const COUNT: u64 = 4;
    let ends = (0..COUNT).map(|_| {
        let mut command = scene.command(&["return", SHALLOW, DEEP]);
        command.stdout(Stdio::null()).spawn().expect("it starts")
    });
    let mut ends: Vec<Child> = ends.collect();
    for child in &mut ends {
        assert!(child.wait().expect("it was there").success());
    }
    let text = scene.settled();
    let [shallow, deep] = expected.map(|it| [it[0] + COUNT, it[1] + 3 * COUNT, it[2]]);
    assert_eq!(numbers(&text), [shallow, deep], "{text}");
}

/// A process whose number is another one's here is known to live all the same.
#[test]
fn notes_of_other_namespaces_stay_while_their_processes_live() {
    const STARTER: [&str; 3] = ["--pid", "--fork", "--kill-child"];
    let tried = Command::new("unshare").args(STARTER).arg("true").output();
    if !tried.is_ok_and(|it| it.status.success()) {
        return skipped("no namespace of processes can be made here");
    }
    let Some(scene) = Scene::new("namespace") else {
        return;
    };
    let inner = scene.command(&["wait", SHALLOW, DEEP]);
    let mut command = Command::new("unshare");
    command
        .args(STARTER)
        .arg(inner.get_program())
        .args(inner.get_args());
    let child = Waiting::new(command, "KILL");
    let notes = scene.notes().pop().expect("it notes");
    let text = noted(&notes);
    let path = scene.path();
    let settle = || milieu_threads::stack::settle(&path, 60_000).expect("notes can be added");
    settle();
    assert_eq!(scene.notes(), [notes]);
    assert!(!scene.profile.exists());
    // It ends with who has started it, a moment later.
    child.end();
    let begun = Instant::now();
    while !scene.notes().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{text}");
        std::thread::sleep(Duration::from_millis(20));
        settle();
    }
    let settled = fs::read_to_string(&scene.profile).expect("it was learned");
    assert_eq!(numbers(&settled), numbers(&text), "{settled}");
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
