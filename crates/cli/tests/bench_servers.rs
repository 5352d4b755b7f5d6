//! Test servers, each a process of its own: steps over several of them, and what becomes of one that is lost.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const LONG: Duration = Duration::from_secs(60);

/// A test server, which ends with this.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path, listen: &str, before: &[&str]) -> Option<Server> {
        let program = env!("CARGO_BIN_EXE_milieu");
        let words = [before, &[program, "bench", "serve", "--listen", listen]].concat();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .args(["--applications", "applications.toml", "--key", "key"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next()?.parse().ok()?;
        Some(Server { child, port })
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(applications: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::write(folder.path("applications.toml"), applications).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn server(&self) -> Server {
        Server::start(self.0.path(), "127.0.0.1:0", &[]).unwrap()
    }

    /// A description of one test, whose servers listen at these ports and have
    /// these applications.
    fn describe(&self, more: &str, servers: &[(u16, &str)]) {
        let mut text = format!("[[test]]\nname = \"test\"\n{more}\n");
        for (port, applications) in servers {
            text.push_str(&format!(
                "[[test.server]]\nhost = \"127.0.0.1\"\nport = {port}\napplication = [{applications}]\n"
            ));
        }
        fs::write(self.path("test.toml"), text).unwrap();
    }

    fn bench(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command
            .args(["bench", "run", "test.toml", "--key", "key"])
            .args(words);
        command.current_dir(self.0.path());
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String) {
        let output = self.bench(words).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    fn result(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path("results.json")).unwrap()).unwrap()
    }
}

fn unusual(number: u32) -> String {
    (std::process::id() * 100 + 50 + number).to_string()
}

/// Whether a process has this word among its arguments.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap();
    processes.into_iter().any(|process| {
        let line = fs::read(process.unwrap().path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|argument| argument == word.as_bytes())
    })
}

fn wait_until(mut holds: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_step_runs_over_several_servers() {
    let folder = Folder::new(
        r#"
[broker]
command = ["sh", "-c", "echo listening on 4104; exec sleep 1000"]
service = true
ready = "listening on (?<port>[0-9]+)"
[client]
command = ["sh", "-c", "echo value=$(($0 + $1))", "{broker.port}", "{n}"]
result = "value=(.*)"
parameters.n = "integer"
"#,
    );
    let (one, two, three) = (folder.server(), folder.server(), folder.server());
    folder.describe(
        "variable = { name = \"n\", values = [1, 2] }",
        &[
            (one.port, "{ kind = \"client\", name = \"a\" }"),
            (two.port, "{ kind = \"broker\" }"),
            (three.port, "{ kind = \"client\", name = \"b\" }"),
        ],
    );
    let (code, said) = folder.run(&[]);
    assert_eq!(code, 0, "{said}");
    let result = folder.result();
    let points = result["tests"][0]["points"].as_array().unwrap();
    assert_eq!(points[1]["metrics"]["value"]["mean"], 4106.0);
    assert_eq!(points[1]["metrics"]["value"]["count"], 2);
    let hosts = result["hosts"].as_object().unwrap();
    assert_eq!(hosts.len(), 3);
    for host in hosts.values() {
        // It is one machine, so its clocks differ by nothing but the error.
        let offset = &host["clock-offset"];
        let of = |name: &str| offset[name].as_i64().unwrap();
        assert!(of("monotonic-ns").abs() <= of("error-ns"), "{offset}");
        assert!(of("error-ns") < 1_000_000_000, "{offset}");
    }
}

#[test]
fn a_server_runs_only_what_its_owner_allows_for_those_who_know_its_key() {
    let folder =
        Folder::new("[allowed]\ncommand = [\"echo\", \"value=1\"]\nresult = \"value=(.*)\"\n");
    let server = folder.server();
    folder.describe("", &[(server.port, "{ kind = \"other\" }")]);
    let (code, said) = folder.run(&[]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("the catalogue of this machine has no `other`"),
        "{said}"
    );

    folder.describe("", &[(server.port, "{ kind = \"allowed\" }")]);
    let mut command = folder.bench(&["--key", "another", "--restart"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a key is given once");
    fs::rename(folder.path("key"), folder.path("former")).unwrap();
    let (code, said) = folder.run(&["--restart"]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("it does not accept our key"), "{said}");
    fs::rename(folder.path("former"), folder.path("key")).unwrap();
    assert_eq!(folder.run(&["--restart"]).0, 0);

    // Strangers are no trouble.
    for said in ["GET / HTTP/1.1\r\n\r\n", "{}\n{}\n"] {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
    }
    assert_eq!(folder.run(&[]).0, 0);
}

#[test]
fn the_loss_of_a_host_is_survived_and_nothing_is_left_running() {
    let (mark, other) = (unusual(1), unusual(2));
    let folder = Folder::new(&format!(
        r#"
[first]
command = ["sh", "-c", "if [ ! -e came-back ]; then touch hangs; sleep {mark}; fi; echo value=1"]
result = "value=(.*)"
[second]
command = ["sh", "-c", "if [ ! -e came-back ]; then sleep {other}; fi; echo value=2"]
result = "value=(.*)"
"#
    ));
    let (mut one, two) = (folder.server(), folder.server());
    folder.describe(
        "",
        &[
            (one.port, "{ kind = \"first\" }"),
            (two.port, "{ kind = \"second\" }"),
        ],
    );
    let mut coordinator = folder.bench(&[]).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| runs(&mark) && runs(&other), "both run");
    one.kill();
    wait_until(|| !runs(&mark), "what a lost server ran ends");
    wait_until(
        || !runs(&other),
        "what other servers ran for that step ends",
    );
    fs::write(folder.path("came-back"), "").unwrap();
    let listen = format!("127.0.0.1:{}", one.port);
    let _one = Server::start(folder.0.path(), &listen, &[]).unwrap();
    assert_eq!(coordinator.wait().unwrap().code(), Some(0));
    let step = &folder.result()["tests"][0]["steps"][0];
    assert_eq!(step["outcome"], "measured");
    assert_eq!(step["lost"].as_array().unwrap().len(), 1, "{step}");
}

#[test]
fn a_host_that_stays_away_is_skipped_or_the_end() {
    let folder = Folder::new(
        "[k]\ncommand = [\"sh\", \"-c\", \"touch ran; sleep 60; echo value=1\"]\nresult = \"value=(.*)\"\n",
    );
    for (policy, expected) in [("skip", 3), ("fail", 5)] {
        let _ = fs::remove_file(folder.path("ran"));
        let mut server = folder.server();
        folder.describe(
            &format!("lost-host = \"{policy}\""),
            &[(server.port, "{ kind = \"k\" }")],
        );
        let mut command = folder.bench(&["--patience", "0.1", "--restart"]);
        let mut coordinator = command.stderr(Stdio::null()).spawn().unwrap();
        wait_until(|| folder.path("ran").exists(), "it runs");
        server.kill();
        assert_eq!(
            coordinator.wait().unwrap().code(),
            Some(expected),
            "{policy}"
        );
    }
}

#[test]
fn nothing_is_left_running_when_the_coordinator_is_killed() {
    let (mark, own_session) = (unusual(3), unusual(4));
    let folder = Folder::new(&format!(
        "[k]\ncommand = [\"sh\", \"-c\", \"setsid sleep {own_session} & sleep {mark}\"]\n"
    ));
    let server = folder.server();
    folder.describe("", &[(server.port, "{ kind = \"k\" }")]);
    let mut coordinator = folder.bench(&[]).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| runs(&mark) && runs(&own_session), "it runs");
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_until(|| !runs(&mark) && !runs(&own_session), "all of it ends");
}

#[test]
fn what_hides_and_does_not_listen_ends_with_its_server() {
    let (mark, hidden) = (unusual(5), unusual(6));
    // It leaves its parents and their session, and does not end when it is told to.
    let deaf = "trap '' TERM HUP INT";
    let folder = Folder::new(&format!(
        "[k]\ncommand = [\"sh\", \"-c\", \"{deaf}; (setsid sh -c \\\"{deaf}; sleep {hidden}; sleep {hidden}\\\" &); sleep {mark}; sleep {mark}\"]\n"
    ));
    let mut server = folder.server();
    folder.describe("lost-host = \"fail\"", &[(server.port, "{ kind = \"k\" }")]);
    let mut command = folder.bench(&["--patience", "0.1"]);
    let mut coordinator = command.stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| runs(&mark) && runs(&hidden), "it runs");
    server.kill();
    wait_until(|| !runs(&mark) && !runs(&hidden), "all of it ends");
    assert_eq!(coordinator.wait().unwrap().code(), Some(5));
}

#[test]
fn the_offset_between_clocks_is_measured() {
    let folder = Folder::new("[k]\ncommand = [\"echo\", \"value=1\"]\nresult = \"value=(.*)\"\n");
    let ahead = 1_000_000;
    let apart = [
        "unshare",
        "--time",
        "--fork",
        "--kill-child",
        "--monotonic",
        "1000000",
    ];
    let can = Command::new(apart[0])
        .args(&apart[1..])
        .arg("true")
        .output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: time namespaces need root and a kernel that has them");
        return;
    }
    let server = Server::start(folder.0.path(), "127.0.0.1:0", &apart).unwrap();
    folder.describe("", &[(server.port, "{ kind = \"k\" }")]);
    let (code, said) = folder.run(&[]);
    assert_eq!(code, 0, "{said}");
    let host = &folder.result()["hosts"][format!("127.0.0.1:{}", server.port)];
    let expected = ahead * 1_000_000_000_i64;
    for when in ["clock-offset", "clock-offset-ended"] {
        let of = |name: &str| host[when][name].as_i64().unwrap();
        let apart = (of("monotonic-ns") - expected).abs();
        assert!(apart <= of("error-ns"), "{host}");
        // A namespace moves only the clock that nobody sets.
        assert!(of("real-ns").abs() <= of("error-ns"), "{host}");
    }
}
