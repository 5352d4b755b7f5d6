//! `milieu key watch` as its users meet it: a real process, real files.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::home::Home;

/// Only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A `milieu key watch` that runs.
struct Watching {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    home: String,
}

impl Watching {
    /// Starts it, and waits until it runs: it prints `/started` first.
    fn start(home: &Home, arguments: &[&str]) -> Watching {
        if !home.path().join("user/ws/ws.ini").exists() {
            home.write("user/ws/ws.ini", "/started = 1\n");
        }
        let mut child = home
            .command()
            .args(["watch", "--app", "ws", "--initial"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let watching = Watching {
            out: lines(out),
            err: lines(err),
            home: home.path().to_str().unwrap().to_owned(),
            child,
        };
        assert!(watching.line().contains("started"));
        watching
    }

    fn line(&self) -> String {
        self.of(&self.out)
    }

    /// A line with who it was and which process left out.
    fn signed(&self) -> String {
        let line = self.line();
        let (rest, who) = line.rsplit_once("; ").unwrap();
        let (user, program) = who.split_once(", ").unwrap();
        let (program, process) = program.split_once(" (").unwrap();
        let process = process.strip_suffix("))").unwrap();
        assert!(!user.is_empty() && process.parse::<u32>().is_ok(), "{line}");
        format!("{rest}; WHO, {program} (N))")
    }

    fn error(&self) -> String {
        self.of(&self.err)
    }

    fn of(&self, lines: &Receiver<String>) -> String {
        lines
            .recv_timeout(PATIENCE)
            .unwrap()
            .replace(&self.home, "HOME")
    }

    fn ends(mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not end");
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}

#[test]
fn changes_are_printed_whoever_makes_them() {
    let home = Home::new("watch-changes");
    home.write("user/ws/ws.ini", "/started = 1\n");
    home.write("system/ws/ws.ini", "\n\n\n/sw/language = en\n");
    let watching = Watching::start(&home, &[]);
    assert!(watching.line().starts_with("/sw/language = en"));
    home.ok(&["set", "--app", "ws", "/sw/language", "de"]);
    assert_eq!(
        watching.signed(),
        "/sw/language = de  (was en; HOME/user/ws/ws.ini:2; WHO, milieu (N))"
    );
    // As `sed -i` and editors do it.
    home.write("user/ws/new", "/started = 1\n[/sw]\nlanguage = fr\n");
    std::fs::rename(
        home.path().join("user/ws/new"),
        home.path().join("user/ws/ws.ini"),
    )
    .unwrap();
    assert_eq!(
        watching.line(),
        "/sw/language = fr  (was de; HOME/user/ws/ws.ini:3)"
    );
    home.ok(&["rm", "--app", "ws", "/sw/language"]);
    assert_eq!(
        watching.signed(),
        "/sw/language = en  (was fr; HOME/system/ws/ws.ini:4; WHO, milieu (N))",
        "what the user's covered comes to light"
    );
    home.write("system/ws/ws.ini", "");
    assert_eq!(
        watching.line(),
        "/sw/language removed  (was en; HOME/system/ws/ws.ini:4)"
    );
}

#[test]
fn programs_get_lines_of_json() {
    let home = Home::new("watch-json");
    let watching = Watching::start(&home, &["--json"]);
    home.ok(&["set", "--app", "ws", "/a", "x \"y\""]);
    assert_eq!(
        watching.line(),
        format!(
            r#"{{"name":"/a","old":null,"new":"x \"y\"","namespace":"user","file":"HOME/user/ws/ws.ini","line":2,{}}}"#,
            signature(&home, 0)
        )
    );
    home.ok(&["rm", "--app", "ws", "/a"]);
    assert_eq!(
        watching.line(),
        format!(
            r#"{{"name":"/a","old":"x \"y\"","new":null,"namespace":"user","file":"HOME/user/ws/ws.ini","line":2,{}}}"#,
            signature(&home, 1)
        )
    );
    home.write("user/ws/ws.ini", "/started = 2\n");
    let by_hand = watching.line();
    assert!(
        by_hand.ends_with(r#""line":1,"user":null,"program":null,"process":null,"host":null}"#),
        "{by_hand}"
    );
    home.write("user/ws/ws.ini", "/started\n");
    let error = watching.error();
    assert!(
        error.starts_with(r#"{"severity":"error","#) && error.contains(r#""line":1"#),
        "{error}"
    );
}

/// What the log says of who made a change.
fn signature(home: &Home, change: usize) -> String {
    let log = home.ok(&["log", "--app", "ws", "--json"]);
    let line = log.lines().rev().nth(change).unwrap();
    let start = line.find(r#""user""#).unwrap();
    line[start..line.find(r#","undoes""#).unwrap()].to_owned()
}

#[test]
fn only_what_is_below_the_prefix_counts() {
    let home = Home::new("watch-prefix");
    home.write("user/ws/ws.ini", "[/sw]\nstarted = 1\n");
    let watching = Watching::start(&home, &["--count", "2", "/sw"]);
    home.ok(&["set", "--app", "ws", "/swing", "1"]);
    home.ok(&["set", "--app", "ws", "/sw", "2"]);
    assert!(watching.line().starts_with("/sw = 2  (new; "));
    assert_eq!(watching.ends(), Some(0), "after two changes");
}

#[test]
fn nothing_is_said_of_what_is_there_unless_asked() {
    let home = Home::new("watch-initial");
    home.write("user/ws/ws.ini", "/a = 1\n/b = 2\n");
    let watch = |rest: &[&str]| home.run(&[&["watch", "--app", "ws"], rest].concat());
    let ran = watch(&["--timeout", "0.1"]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "", "")
    );
    let ran = watch(&["--initial", "--count", "1"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "/a = 1  (new; HOME/user/ws/ws.ini:1)\n")
    );
    let ran = watch(&["--initial", "--count", "3", "--timeout", "0.1"]);
    assert_eq!(ran.code, Some(1), "there were but two");
    assert_eq!(ran.out.lines().count(), 2);
    for wrong in ["-1", "soon", "inf"] {
        assert_eq!(watch(&[&format!("--timeout={wrong}")]).code, Some(2));
    }
    assert_eq!(watch(&["--count", "0"]).code, Some(2));
}

#[test]
fn a_file_that_is_not_understood_keeps_its_keys_and_is_told_of() {
    let home = Home::new("watch-invalid");
    let watching = Watching::start(&home, &[]);
    home.write("user/ws/ws.ini", "/started = 2\noops\n");
    let expected = [
        "error: this line is neither a key nor a section nor a comment",
        " --> HOME/user/ws/ws.ini:2:1",
        "  |",
        "2 | oops",
        "  | ^^^^ no `=` here",
        "  |",
        "  = note: what the file said before stays in force",
        "  = help: write `name = value`, or begin the line with `#` to make it a comment",
    ];
    let error: Vec<String> = expected.iter().map(|_| watching.error()).collect();
    assert_eq!(error, expected);
    home.write("user/ws/ws.ini", "/started = 3\n");
    assert_eq!(
        watching.line(),
        "/started = 3  (was 1; HOME/user/ws/ws.ini:1)"
    );
    assert_eq!(watching.error(), "note: the file is valid again");
    assert_eq!(watching.error(), " --> HOME/user/ws/ws.ini");
}

#[test]
fn values_that_the_specification_refuses_do_not_come_into_force() {
    let home = Home::new("watch-spec");
    home.write(
        "s.ini",
        "[/started]\ntype=long\ndefault=0\n[/password]\nsecret\ncheck/length=0-8\n[/z/default]\ndefault=1\n",
    );
    let watching = Watching::start(&home, &["--spec", "s.ini"]);
    assert_eq!(watching.line(), "/z/default = 1  (new; s.ini:8)");
    home.write("user/ws/ws.ini", "/started = x\npassword = hunter2\n");
    let error = watching.error();
    assert!(error.contains("`x` is not a whole number"), "{error}");
    home.write("user/ws/ws.ini", "/started = 1\npassword = hunter2\n");
    assert_eq!(
        watching.line(),
        "/password = (secret)  (new; HOME/user/ws/ws.ini:2)"
    );
    home.write("user/ws/ws.ini", "/started = 1\npassword = hunter3\n");
    assert_eq!(
        watching.line(),
        "/password = (secret)  (was (secret); HOME/user/ws/ws.ini:2)"
    );
    home.write("user/ws/ws.ini", "/started = 1\npassword hunter3\n");
    for _ in 0..40 {
        let error = watching.error();
        assert!(!error.contains("hunter"), "{error}");
        if error.contains("the lines are not shown") {
            return;
        }
    }
    panic!("the file is not understood, and nobody says so");
}

#[test]
fn signals_and_readers_that_leave_end_it_well() {
    for signal in ["INT", "TERM"] {
        let home = Home::new(&format!("watch-{signal}"));
        let watching = Watching::start(&home, &[]);
        let id = watching.child.id().to_string();
        let kill = ["-c", "kill -s $0 $1", signal, &id];
        assert!(Command::new("sh").args(kill).status().unwrap().success());
        assert_eq!(watching.ends(), Some(0), "{signal}");
    }
    // A reader is missed at once, not only when there is something to tell.
    let home = Home::new("watch-pipe");
    home.write("user/ws/ws.ini", "/started = 1\n");
    let script = "\"$0\" key watch --app ws --initial | head -n 1";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_milieu")]);
    for (name, value) in home.command().get_envs() {
        command.env(name, value.unwrap());
    }
    let ran = home.ran(command.output().unwrap());
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("/started = 1  (new; HOME/user/ws/ws.ini:1)\n", "")
    );
}
