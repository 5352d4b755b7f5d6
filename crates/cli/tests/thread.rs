//! `milieu thread run`, `top`, `profile` and `probe`, with real programs.

mod suggest;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// Far more than anything here takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn milieu(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command
            .arg("thread")
            .args(arguments)
            .current_dir(self.0.path());
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        // Those of this device are nobody's business.
        command.env("MILIEU_THREAD_ZONES", "25,75");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.milieu(arguments).output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        text(&output.stdout)
    }

    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        assert_eq!(text(&output.stdout), "");
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn probing_says_of_every_means_whether_it_works() {
    let home = Home::new();
    let found = &json_lines(&home.ok(&["probe", "--json"]))[0];
    let names = |list: &str| -> Vec<String> {
        let all = found[list].as_array().unwrap().iter();
        all.map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("rungs"), ["realtime", "cgroup", "idle", "nice"]);
    assert_eq!(names("stacks"), ["scan", "pagemap", "mincore"]);
    let best = found["best"].as_str().unwrap();
    for rung in found["rungs"].as_array().unwrap() {
        let works = rung["works"].as_bool().unwrap();
        assert!(
            works || rung["why"].is_string() && rung["remedy"].is_string(),
            "{rung}"
        );
        assert!(works || rung["name"] != best);
    }
    let shown = home.ok(&["probe"]);
    assert_eq!(shown.matches("and is used").count(), 1, "{shown}");
}

#[test]
fn top_shows_the_threads_of_a_process() {
    let home = Home::new();
    // In whole ticks of the kernel's.
    let before = boot_time().saturating_sub(Duration::from_millis(20));
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = child.id().to_string();
    // It is this program for a moment, until it has become the other.
    let end = Instant::now() + PATIENCE;
    while fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() != "sleep\n" {
        assert!(Instant::now() < end);
    }
    let shown = home.ok(&["top", "--once", "--interval", "0", "--pid", &pid]);
    assert!(shown.starts_with("1 threads of 1 processes"), "{shown}");
    assert_eq!(
        shown.lines().filter(|it| it.contains(" sleep ")).count(),
        1,
        "{shown}"
    );
    let tree = home.ok(&["top", "--once", "--interval", "0", "--tree", "--pid", &pid]);
    assert!(tree.contains(" resident  sleep 1000"), "{tree}");
    let arguments = [
        "top",
        "--once",
        "--interval",
        "0.01",
        "--json",
        "--pid",
        &pid,
    ];
    let found = &json_lines(&home.ok(&arguments))[0];
    let process = &found["processes"][0];
    let [all, resident] =
        ["virtual_bytes", "resident_bytes"].map(|it| process[it].as_u64().unwrap());
    assert!(all >= resident && resident > 0, "{process}");
    let thread = &process["threads"][0];
    assert_eq!(thread["thread"].as_u64(), Some(child.id().into()));
    assert_eq!(
        (&thread["name"], &thread["policy"]),
        (&"sleep".into(), &"OTHER".into())
    );
    assert_eq!(thread["role"], Value::Null);
    assert!(thread["per_second"]["run"].is_number(), "{thread}");
    let created = Duration::from_nanos(thread["created_ns"].as_u64().unwrap());
    assert!(created >= before && created <= boot_time(), "{thread}");
    let none = home.ok(&[&arguments[..], &["--filter", "name=awake"]].concat());
    assert_eq!(json_lines(&none)[0]["processes"], Value::Array(Vec::new()));
    child.kill().unwrap();
    child.wait().unwrap();
    let error = home.fails(2, &arguments);
    assert!(error.contains("there is no process"), "{error}");
    let error = home.fails(2, &["top", "--filter", "colour=red"]);
    assert!(error.contains("no field `colour`"), "{error}");
}

/// Time since the machine began.
fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    now.try_into().unwrap()
}

/// A terminal, at which a program is.
struct Terminal {
    ours: fs::File,
    theirs: OwnedFd,
    shown: Vec<u8>,
}

impl Terminal {
    fn new() -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = fs::File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap());
        let size = rustix::termios::Winsize {
            ws_row: 20,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&ours, size).unwrap();
        Terminal {
            ours: fs::File::from(ours),
            theirs: theirs.unwrap().into(),
            shown: Vec::new(),
        }
    }

    fn start(&self, command: &mut Command) -> Child {
        let theirs = || Stdio::from(self.theirs.try_clone().unwrap());
        command
            .env("TERM", "xterm")
            .stdin(theirs())
            .stdout(theirs())
            .stderr(theirs());
        command.spawn().unwrap()
    }

    /// Reads until this was shown.
    fn until(&mut self, expected: &str) {
        let mut space = [0; 4096];
        while !text(&self.shown).contains(expected) {
            let length = self.ours.read(&mut space).unwrap();
            self.shown.extend_from_slice(&space[..length]);
        }
    }

    fn press(&mut self, keys: &str) {
        self.shown.clear();
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    fn modes(&self) -> (bool, bool) {
        let modes = rustix::termios::tcgetattr(&self.theirs)
            .unwrap()
            .local_modes;
        use rustix::termios::LocalModes;
        (
            modes.contains(LocalModes::ECHO),
            modes.contains(LocalModes::ICANON),
        )
    }
}

const ENTERS: &str = "\x1b[?1049h";
const LEAVES: &str = "\x1b[?1049l";
const SHOWS_CURSOR: &str = "\x1b[?25h";

#[test]
fn the_view_leaves_the_terminal_as_it_was_however_it_ends() {
    let home = Home::new();
    let pid = std::process::id().to_string();
    for end in ["q", "\x03", "TERM"] {
        let mut terminal = Terminal::new();
        let before = terminal.modes();
        let mut child = terminal.start(&mut home.milieu(&["top", "--pid", &pid]));
        terminal.until("q quit");
        assert!(text(&terminal.shown).contains(ENTERS));
        assert_eq!(terminal.modes(), (false, false));
        terminal.press("?");
        terminal.until("PgUp");
        terminal.press("/");
        terminal.until("Enter takes it");
        terminal.press("no-such-thread\r");
        terminal.until("filter: no-such-thread");
        if end == "TERM" {
            let sent = Command::new("kill").arg(child.id().to_string()).status();
            assert!(sent.unwrap().success());
        } else {
            terminal.press(end);
        }
        // Who shows something waits until somebody reads it.
        terminal.until(LEAVES);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(text(&terminal.shown).contains(SHOWS_CURSOR));
        assert_eq!(terminal.modes(), before);
    }
}

const PROFILE: &str = "milieu stacks 1\nmodule ab12 /nowhere\n\
    thread ab12+10 runs=4 threads=16 peak=20480 given=8388608 role=net/worker\n\
    thread ab12+20 runs=4 threads=4 peak=126000 given=131072 set\n\
    thread ab12+30 runs=1 threads=1 peak=4096 given=65536 overflow=65536 role=deep\n";

#[test]
fn bounds_of_zones_are_those_of_the_command_else_of_the_user_else_of_the_device() {
    let home = Home::new();
    fs::write(home.path("a.stacks"), PROFILE).unwrap();
    fs::write(home.path("threads.toml"), "# strict\nzones = [0, 0]\n").unwrap();
    fs::write(home.path("wrong.toml"), "\nzones = [90, 10]\n").unwrap();
    let run = |variable: &str, file: &str, arguments: &[&str]| {
        let mut command = home.milieu(arguments);
        command.env("MILIEU_THREAD_ZONES", variable);
        command.env("MILIEU_THREAD_SETTINGS", file);
        command.env("MILIEU_PRELOAD_DIR", home.path("preload"));
        command.output().unwrap()
    };
    let profile = ["profile", "a.stacks", "--json"];
    let zone = |output: Output| {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let found = json_lines(&text(&output.stdout));
        let worker = found.iter().find(|it| it["role"] == "net/worker").unwrap();
        worker["zone"].as_str().unwrap().to_owned()
    };
    assert_eq!(zone(run("", "", &profile)), "low");
    assert_eq!(zone(run("", "threads.toml", &profile)), "high");
    assert_eq!(zone(run("0,100", "threads.toml", &profile)), "normal");
    let asked = [&profile[..], &["--zones", "25,75"]].concat();
    assert_eq!(zone(run("0,0", "wrong.toml", &asked)), "low");

    let pid = std::process::id().to_string();
    let top = ["top", "--once", "--interval", "0", "--pid", &pid];
    let shown = text(&run("", "threads.toml", &top).stdout);
    assert!(shown.contains("Stacks: 0 waste, 0 are fine, "), "{shown}");

    // A program is not started only to have no report then. The preload is not looked at.
    fs::create_dir_all(home.path("preload")).unwrap();
    let library = home.path("preload/libmilieu_preload.so");
    fs::copy(env!("CARGO_BIN_EXE_milieu"), library).unwrap();
    let report = ["run", "--report", "--", "touch", "started"];
    for arguments in [&profile[..2], &top, &report] {
        for (variable, file, words) in [
            (
                "75,25",
                "",
                ["MILIEU_THREAD_ZONES is `75,25`", "mend the variable"],
            ),
            (
                "",
                "wrong.toml",
                ["wrong.toml:2:", "write `zones = [25, 75]`"],
            ),
            (
                "",
                "none.toml",
                ["none.toml cannot be read", "with `--zones`"],
            ),
        ] {
            let output = run(variable, file, arguments);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(words.iter().all(|it| error.contains(it)), "{error}");
        }
    }
    assert!(!home.path("started").exists());
}

/// What C calls `f` and `i` is not what C++ would read there.
#[test]
fn start_functions_have_the_names_that_their_sources_give_them() {
    let home = Home::new();
    let source = "void *f(void *a) { return a; }\nvoid *i(void *a) { return f(a); }\n";
    fs::write(home.path("short.c"), source).unwrap();
    let compiled = Command::new("gcc")
        .args(["-shared", "-fPIC", "-Wl,--build-id=0xab12ab12", "short.c"])
        .args(["-o", "short.so"])
        .current_dir(home.path(""))
        .status();
    if !compiled.is_ok_and(|it| it.success()) {
        return eprintln!("not tested: gcc is not installed");
    }
    let library = home.path("short.so");
    let symbols = Command::new("nm").arg(&library).output().unwrap();
    let symbols = text(&symbols.stdout);
    let offset = |name: &str| {
        let line = symbols.lines().find(|it| it.ends_with(name)).unwrap();
        let address = line.split(' ').next().unwrap();
        u64::from_str_radix(address, 16).unwrap()
    };
    let mut profile = format!("milieu stacks 1\nmodule ab12ab12 {}\n", library.display());
    for name in [" T f", " T i"] {
        let at = offset(name);
        profile += &format!("thread ab12ab12+{at:x} runs=4 threads=4 peak=8192 given=8388608\n");
    }
    fs::write(home.path("short.stacks"), profile).unwrap();
    let header = home.ok(&["profile", "short.stacks", "--emit", "c"]);
    assert!(
        header.contains("\"f\"") && header.contains("\"i\""),
        "{header}"
    );
    let found = json_lines(&home.ok(&["profile", "short.stacks", "--json"]));
    let mut names: Vec<&str> = found.iter().filter_map(|it| it["start"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["f", "i"]);
}

#[test]
fn what_was_learned_is_shown_merged_and_emitted() {
    let home = Home::new();
    let error = home.fails(2, &["profile"]);
    assert!(error.contains("nothing was learned yet"), "{error}");
    fs::create_dir_all(home.path("state/milieu")).unwrap();
    fs::write(home.path("state/milieu/a.stacks"), PROFILE).unwrap();
    let shown = home.ok(&["profile"]);
    assert!(shown.contains("\nnear overflow high "), "{shown}");
    assert!(
        shown.contains("=128K") && shown.contains("has overflowed 64K"),
        "{shown}"
    );
    let found = json_lines(&home.ok(&["profile", "--json"]));
    let worker = found.iter().find(|it| it["role"] == "net/worker").unwrap();
    assert_eq!(
        (&worker["verdict"], &worker["zone"]),
        (&"wastes".into(), &"low".into())
    );

    let other = PROFILE.replace("peak=20480", "peak=30000") + "nonsense\n";
    fs::write(home.path("b"), other).unwrap();
    let files = ["state/milieu/a.stacks", "b"];
    let output = home.run(&[&["profile"], &files[..], &["--merge", "c"]].concat());
    assert!(text(&output.stderr).contains("b, line 6"), "{output:?}");
    let merged = fs::read_to_string(home.path("c")).unwrap();
    assert!(
        merged.contains("peak=30000") && merged.contains("nonsense"),
        "{merged}"
    );
    assert_eq!(home.ok(&["profile", "c", "--merge", "-"]), merged);

    let header = home.ok(&["profile", "b", "--emit", "c"]);
    assert!(
        header.contains("262144ul") && !header.contains("deep"),
        "{header}"
    );
    let module = home.ok(&["profile", "b", "--emit", "rust"]);
    assert!(module.contains(": usize = 262144;"), "{module}");
    let emitted = |options: &[&str]| {
        let emit = ["profile", "b", "--emit", "c"];
        home.ok(&[&emit[..], options].concat())
    };
    let header = emitted(&["--floor", "512K"]);
    assert_eq!(header.matches(" 524288ul").count(), 2, "{header}");
    // What is asked for is 126000 bytes and two and a half times as many, in whole steps.
    let header = emitted(&["--bits", "32", "--margin", "250"]);
    assert!(
        header.contains(" 131072ul") && header.contains(" 442368ul"),
        "{header}"
    );
    for (option, value, word) in [
        ("--floor", "much", "a number of bytes"),
        ("--floor", "64K;margin=1", "one value"),
        ("--margin", "251", "a percentage from 0 to 250"),
        ("--bits", "16", "32, 64"),
        ("--zones", "75,25", "ascending order"),
    ] {
        let error = home.fails(2, &["profile", "b", option, value]);
        assert!(error.contains(word), "{option} {value}: {error}");
    }
    let error = home.fails(2, &["profile", "none"]);
    assert!(error.contains("none cannot be read"), "{error}");
    fs::write(home.path("foreign"), "hello\n").unwrap();
    let error = home.fails(2, &["profile", "foreign"]);
    assert!(error.contains("this is no profile of stacks"), "{error}");
}

/// Start functions without a role are named, and lines say which kind they are of.
#[test]
fn start_functions_without_a_role_are_named() {
    let home = Home::new();
    fs::write(home.path("a"), PROFILE).unwrap();
    let arguments = ["profile", "a", "--suggest", "--seconds", "0.01"];
    let proposed = home.ok(&arguments);
    let (_, sites) = proposed.split_once("have no role:\n").unwrap();
    assert_eq!(
        sites,
        "# ab12+20, no debug information: 4 threads\n\
         #   no line: the file that has it is not there, or is another by now\n"
    );
    let found = json_lines(&home.ok(&[&arguments[..], &["--json"]].concat()));
    let (nameless, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|it| it["is"] == "has-no-role");
    assert!(others.iter().all(|it| it["is"] == "wakes-often"));
    assert_eq!(nameless.len(), 1);
    assert_eq!(
        (&nameless[0]["start"], &nameless[0]["role"]),
        (&"ab12+20".into(), &Value::Null)
    );
    assert_eq!(nameless[0]["line"], Value::Null);
    assert!(nameless[0]["why_no_line"].is_string());
    // By itself a profile has lines of one kind.
    let kept = json_lines(&home.ok(&["profile", "a", "--json"]));
    assert!(kept.len() == 3 && kept.iter().all(|it| it["is"] == Value::Null));
}

/// A thread that wakes often is proposed, one that computes is not.
#[test]
fn threads_that_wake_often_are_proposed_as_critical() {
    let home = Home::new();
    let mut child = Command::new("sh")
        .args(["-c", "while :; do sleep 0.01; done"])
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let arguments = ["profile", "--suggest", "--pid", &pid, "--seconds", "1"];
    let end = Instant::now() + PATIENCE;
    let proposed = loop {
        let proposed = home.ok(&arguments);
        let mut patterns = proposed.lines().filter(|it| it.starts_with("name "));
        // On a machine that does much else it wakes seldom.
        if patterns.next() == Some("name sh => sh critical") {
            break proposed;
        }
        assert!(Instant::now() < end, "{proposed}");
    };
    let lines = json_lines(&home.ok(&[&arguments[..], &["--json"]].concat()));
    let is_whole = |it: &Value| it["is"] == "wakes-often" && it["line"].is_string();
    assert!(lines.iter().all(is_whole), "{lines:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(home.path("roles"), &proposed).unwrap();
    // What is proposed is understood, up to the program that is not there.
    let error = home.fails(127, &["run", "--roles", "roles", "--", "./none"]);
    assert!(error.contains("there is no program"), "{error}");
}

/// The preload's folder, where it was built.
fn preload() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_milieu"));
    let built = program.parent()?.parent()?.join("preload");
    built.join("libmilieu_preload.so").exists().then_some(built)
}

const SOURCE: &str = "#include <pthread.h>\n#include <string.h>\n#include <unistd.h>\n\
    void *worker(void *a) { char b[20000]; memset(b, 1, sizeof b); return (void *)(long)b[7]; }\n\
    int main(int n, char **v) {\n\
      pthread_t t[3];\n\
      for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, worker, 0);\n\
      for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n\
      if (n > 1) pause();\n\
      return 7;\n\
    }\n";

#[test]
fn a_program_is_run_and_what_was_learned_of_it_is_told() {
    let home = Home::new();
    let Some(preload) = preload() else {
        eprintln!(
            "skipped, the preload was not built: cargo build -p milieu-preload --profile preload"
        );
        return;
    };
    fs::write(home.path("a.c"), SOURCE).unwrap();
    let compiled = Command::new("gcc")
        .args([
            "-g",
            "-rdynamic",
            "-pthread",
            "-Wl,--build-id",
            "-o",
            "program",
            "a.c",
        ])
        .current_dir(home.0.path())
        .status();
    assert!(compiled.unwrap().success());
    let run = |arguments: &[&str]| {
        let mut command = home.milieu(&["run"]);
        command.env("MILIEU_PRELOAD_DIR", &preload).args(arguments);
        command
    };
    // The exit code is the program's, with and without a report.
    let report = ["--report", "--json", "--zones", "0,0", "--floor", "3M"];
    let output = run(&[&report[..], &["--", "./program"]].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let told = json_lines(&text(&output.stderr));
    let worker = told.iter().find(|it| it["start"] == "worker").unwrap();
    assert_eq!(
        (worker["threads"].as_u64(), worker["runs"].as_u64()),
        (Some(3), Some(1))
    );
    assert!(worker["peak_bytes"].as_u64() >= Some(20_000), "{worker}");
    assert_eq!(
        (&worker["zone"], &worker["enough_bytes"]),
        (&"high".into(), &(3 << 20).into())
    );
    assert!(
        worker["position"].as_str().unwrap().ends_with("a.c:4"),
        "{worker}"
    );
    let output = run(&["--", "./program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let kept = json_lines(&home.ok(&["profile", "--json"]));
    let worker = kept.iter().find(|it| it["start"] == "worker").unwrap();
    assert_eq!(
        (worker["threads"].as_u64(), worker["runs"].as_u64()),
        (Some(6), Some(2))
    );
    // A signal that is meant for the program reaches it, and says how it ended.
    let mut waiting = run(&["--report", "--", "./program", "wait"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let number = waiting.id();
    let end = Instant::now() + PATIENCE;
    let paused = || {
        let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).ok()?;
        let child = children.split_whitespace().next()?.to_owned();
        let line = fs::read_to_string(format!("/proc/{child}/syscall")).ok()?;
        let is_program = fs::read_to_string(format!("/proc/{child}/comm")).ok()? == "program\n";
        // `pause` on x86-64, or what libraries call for it on others.
        (is_program && (line.starts_with("34 ") || line.starts_with("73 "))).then_some(())
    };
    while paused().is_none() {
        assert!(Instant::now() < end, "it never waits");
        std::thread::sleep(Duration::from_millis(10));
    }
    let sent = Command::new("kill").arg(number.to_string()).status();
    assert!(sent.unwrap().success());
    assert_eq!(waiting.wait().unwrap().code(), Some(128 + 15));
    // What it had learned by then is not lost.
    let kept = json_lines(&home.ok(&["profile", "--json"]));
    let worker = kept.iter().find(|it| it["start"] == "worker").unwrap();
    assert_eq!(worker["runs"].as_u64(), Some(3), "{worker}");
    assert!(worker["threads"].as_u64() >= Some(8), "{worker}");
}

#[test]
fn what_cannot_be_run_is_told_before_anything_is_started() {
    let home = Home::new();
    // Any library of this machine stands for the preload: nothing is started.
    fs::create_dir_all(home.path("preload")).unwrap();
    let library = home.path("preload/libmilieu_preload.so");
    fs::copy(env!("CARGO_BIN_EXE_milieu"), library).unwrap();
    let fails = |code, arguments: &[&str]| {
        let mut command = home.milieu(&["run"]);
        command
            .env("MILIEU_PRELOAD_DIR", home.path("preload"))
            .args(arguments);
        let output = command.output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        text(&output.stderr)
    };
    for (code, arguments, word) in [
        (127, &["--", "no-such-program"][..], "there is no program"),
        (126, &["--", "/"], "cannot be executed"),
        (
            2,
            &["--rung", "fast", "--", "true"],
            "`rung=fast`: expected `auto`",
        ),
        (
            2,
            &["--floor", "much", "--", "true"],
            "`floor=much`: expected a number of bytes",
        ),
        (
            2,
            &["--wait-max", "long", "--", "true"],
            "`long` is no time",
        ),
        (
            2,
            &["--report", "--zones", "90,10", "--", "true"],
            "two percentages in ascending order",
        ),
        (2, &["--zones", "10,90", "--", "true"], "--report"),
        (2, &["--roles", "none", "--", "true"], "none cannot be read"),
        (2, &["--profile", "a;b", "--", "true"], "a semicolon"),
        (2, &[], "required arguments"),
    ] {
        let error = fails(code, arguments);
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
    fs::write(home.path("roles"), "name a b c\nname x => y fast\n").unwrap();
    let error = fails(2, &["--roles", "roles", "--", "true"]);
    assert!(
        error.contains("roles, line 1") && error.contains("roles, line 2"),
        "{error}"
    );
    let lines = fails(2, &["--json", "--roles", "roles", "--", "true"]);
    assert_eq!(json_lines(&lines).len(), 2);
}
