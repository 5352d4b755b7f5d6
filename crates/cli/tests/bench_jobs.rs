//! Jobs that a server runs for clients, who need not stay: it may be killed at any time, too.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const LONG: Duration = Duration::from_secs(60);

struct Folder(tempfile::TempDir);

/// A test server, which ends with this.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Folder {
    fn new(applications: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::write(folder.path("applications.toml"), applications).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A server with a folder for jobs, at a port or any.
    fn server(&self, port: &str, state: &str) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_milieu"))
            .args(["bench", "serve", "--listen", &format!("127.0.0.1:{port}")])
            .args(["--applications", "applications.toml", "--key", "key"])
            .args(["--state", state])
            .current_dir(self.0.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        Server { child, port }
    }

    /// A verb at a server: standard output, standard error and exit code.
    fn said(&self, server: &Server, words: &[&str]) -> (String, String, i32) {
        let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
            .arg("bench")
            .args(words)
            .args([
                "--key",
                "key",
                "--at",
                &format!("127.0.0.1:{}", server.port),
            ])
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap();
        (text(output.stdout), text(output.stderr), code)
    }

    fn state(&self, server: &Server, id: &str) -> String {
        let (jobs, said, code) = self.said(server, &["jobs", "--json"]);
        assert_eq!(code, 0, "{said}");
        let mut jobs = jobs
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let job = jobs.find(|job| job["id"].as_u64() == id.parse().ok());
        job.unwrap()["state"].as_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

fn wait_until(mut holds: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Each step says that it ran; the fourth waits to be let go on.
const COUNTED: &str = r#"
[k]
command = ["sh", "-c", "echo $0 >> began; while [ $0 = 4 ] && [ ! -e go ]; do sleep 0.05; done; echo $0 >> ran; echo value=$0", "{n}"]
result = "value=(.*)"
parameters.n = "integer"
"#;

/// What is the same in each run: everything but times and what was used.
fn structure(mut result: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                let changing = [
                    "started",
                    "ended",
                    "took-seconds",
                    "resources",
                    "clock-offset",
                    "clock-offset-ended",
                ];
                map.retain(|key, _| !changing.contains(&&**key));
                map.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut result);
    result
}

#[test]
fn a_server_that_is_killed_goes_on_with_its_job_and_the_result_is_that_of_any_run() {
    let folder = Folder::new(COUNTED);
    let other = folder.server("0", "other");
    let mut server = folder.server("0", "state");
    // Part of it runs on the server that coordinates, part on another.
    let text = format!(
        "[[test]]\nname = \"test\"\nrepetitions = 2\nvariable = {{ name = \"n\", values = [1, 2, 4, 8] }}\n\
         server = [{{ application = [{{ kind = \"k\", name = \"here\" }}] }}, \
         {{ host = \"127.0.0.1\", port = {}, application = [{{ kind = \"k\", name = \"there\" }}] }}]\n",
        other.port
    );
    fs::write(folder.path("test.toml"), text).unwrap();
    let (id, said, code) = folder.said(&server, &["submit", "test.toml"]);
    assert_eq!((&*id, code), ("1\n", 0), "{said}");
    let mode = |name: &str| {
        fs::metadata(folder.path(name))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("state") & 0o077, 0);
    let lines = |name: &str| {
        let text = fs::read_to_string(folder.path(name)).unwrap_or_default();
        text.lines().filter(|line| *line == "4").count()
    };
    wait_until(|| lines("began") == 2, "the third step begins");
    let (_, said, code) = folder.said(&server, &["fetch", "1"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("the job 1 is not done: running, step 3 of 8: test n = 4"),
        "{said}"
    );
    server.kill();
    fs::write(folder.path("go"), "").unwrap();
    let mut server = folder.server(&server.port, "state");
    let (watched, said, code) = folder.said(&server, &["watch", "1"]);
    assert_eq!(code, 0, "{said}");
    assert!(watched.ends_with("1 : done, 8 steps\n"), "{watched}");
    assert_eq!(
        folder.said(&server, &["fetch", "1", "-o", "killed.json"]).2,
        0
    );

    // No step that had ended ran again, and none is missing.
    let ran = fs::read_to_string(folder.path("ran")).unwrap();
    let times = |n: &str| ran.lines().filter(|line| *line == n).count();
    assert_eq!(["1", "2", "8"].map(times), [4; 3], "{ran}");
    assert_eq!(folder.said(&server, &["submit", "test.toml"]).0, "2\n");
    assert_eq!(folder.said(&server, &["watch", "2"]).2, 0);
    assert_eq!(
        folder.said(&server, &["fetch", "2", "-o", "whole.json"]).2,
        0
    );
    let (killed, whole) = (folder.read("killed.json"), folder.read("whole.json"));
    assert_eq!(structure(killed), structure(whole));

    // What is done stays, whatever becomes of the server.
    server.kill();
    let server = folder.server("0", "state");
    assert_eq!(folder.state(&server, "1"), "done");
    assert_eq!(
        folder.said(&server, &["fetch", "1", "-o", "again.xml"]).2,
        0
    );
    assert!(folder.path("again.xml").exists());
}

#[test]
fn jobs_wait_for_each_other_and_can_be_cancelled_and_resumed() {
    let folder = Folder::new(COUNTED);
    let server = folder.server("0", "state");
    let text = "name = \"group\"\n[[test]]\nname = \"test\"\nvariable = { name = \"n\", values = [1, 4, 8] }\n\
                server = [{ application = [{ kind = \"k\" }] }]\n";
    fs::write(folder.path("test.toml"), text).unwrap();
    for id in ["1\n", "2\n", "3\n"] {
        assert_eq!(folder.said(&server, &["submit", "test.toml"]).0, id);
    }
    let began = || fs::read_to_string(folder.path("began")).unwrap_or_default();
    wait_until(
        || began() == "1\n4\n",
        "the first job is at its second step",
    );
    assert_eq!(folder.state(&server, "2"), "waiting");
    assert_eq!(folder.said(&server, &["cancel", "2"]).2, 0);
    assert_eq!(folder.state(&server, "2"), "cancelled");
    // A step that runs is ended.
    assert_eq!(folder.said(&server, &["cancel", "1"]).2, 0);
    let (watched, _, code) = folder.said(&server, &["watch", "1"]);
    assert_eq!(code, 5, "{watched}");
    assert!(
        watched.ends_with("1 group: cancelled after 1 of 3 steps\n"),
        "{watched}"
    );
    fs::write(folder.path("go"), "").unwrap();
    let (watched, _, code) = folder.said(&server, &["watch", "3", "--json"]);
    assert_eq!(code, 0, "{watched}");
    let last: Value = serde_json::from_str(watched.lines().last().unwrap()).unwrap();
    assert_eq!((&last["state"], &last["done"]), (&"done".into(), &3.into()));
    assert_eq!(began(), "1\n4\n1\n4\n8\n");
    assert_eq!(folder.said(&server, &["resume", "1"]).2, 0);
    assert_eq!(folder.said(&server, &["watch", "1"]).2, 0);
    assert_eq!(began(), "1\n4\n1\n4\n8\n4\n8\n", "its first step is kept");
    for (words, message) in [
        (&["resume", "1"][..], "the job 1 is done"),
        (&["cancel", "1"], "the job 1 has ended"),
        (&["watch", "7"], "there is no job 7"),
    ] {
        let (_, said, code) = folder.said(&server, words);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(message) && said.contains("help:"), "{said}");
    }
}

#[test]
fn a_job_that_cannot_go_on_says_why_and_a_server_refuses_what_is_wrong() {
    let folder = Folder::new(COUNTED);
    let server = folder.server("0", "state");
    let text = "[[test]]\nname = \"test\"\nlost-host = \"fail\"\n\
                server = [{ host = \"127.0.0.1\", port = 1, application = [{ kind = \"k\", parameters.n = 1 }] }]\n";
    fs::write(folder.path("test.toml"), text).unwrap();
    let words = ["submit", "test.toml", "--patience", "0.1"];
    assert_eq!(folder.said(&server, &words).0, "1\n");
    let (watched, _, code) = folder.said(&server, &["watch", "1"]);
    assert_eq!(code, 5, "{watched}");
    assert!(
        watched.contains("1 : stopped after 0 of 1 steps: the host 127.0.0.1:1 is lost"),
        "{watched}"
    );

    // Another server cannot have the same folder, nor one that others can read.
    fs::create_dir(folder.path("open")).unwrap();
    fs::set_permissions(folder.path("open"), fs::Permissions::from_mode(0o755)).unwrap();
    for (state, message) in [
        ("state", "another server has state"),
        ("open", "chmod 700 open"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
            .args(["bench", "serve", "--listen", "127.0.0.1:0", "--key", "key"])
            .args(["--applications", "applications.toml", "--state", state])
            .current_dir(folder.0.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn a_run_goes_on_without_its_terminal() {
    let folder = Folder::new(COUNTED);
    let text = "[[test]]\nname = \"test\"\nvariable = { name = \"n\", values = [1, 4] }\n\
                server = [{ application = [{ kind = \"k\" }] }]\n";
    fs::write(folder.path("test.toml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
        .args(["bench", "run", "test.toml", "--detach"])
        .args(["--applications", "applications.toml"])
        .current_dir(folder.0.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let began = || fs::read_to_string(folder.path("began")).unwrap_or_default();
    wait_until(|| began() == "1\n4\n", "it runs");
    assert!(!folder.path("results.json").exists());
    fs::write(folder.path("go"), "").unwrap();
    wait_until(|| folder.path("results.json").exists(), "it is done");
    let log = fs::read_to_string(folder.path("results.log")).unwrap();
    assert!(log.contains("step 2 of 2"), "{log}");
}

#[test]
fn whoever_looks_is_told_how_far_it_is() {
    let folder = Folder::new(COUNTED);
    let text = "[[test]]\nname = \"test\"\nvariable = { name = \"n\", values = [1, 2, 8] }\n\
                server = [{ application = [{ kind = \"k\" }] }]\n";
    fs::write(folder.path("test.toml"), text).unwrap();
    let program = env!("CARGO_BIN_EXE_milieu");
    let run = "bench run test.toml --applications applications.toml";
    let output = Command::new(program)
        .args(run.split(' '))
        .arg("--json")
        .current_dir(folder.0.path())
        .output()
        .unwrap();
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let done: Vec<_> = lines
        .iter()
        .map(|line| line["done"].as_u64().unwrap())
        .collect();
    assert_eq!(done, [1, 2, 3]);
    let left: Vec<_> = lines
        .iter()
        .map(|line| line["left-seconds"].as_f64().unwrap())
        .collect();
    assert!(left[0] > 0.0 && left[1] > 0.0 && left[2] == 0.0, "{left:?}");

    // On a terminal it is one line, which is written anew.
    let output = Command::new("script")
        .args([
            "--quiet",
            "--return",
            "--command",
            &format!("{program} {run}"),
            "typescript",
        ])
        .current_dir(folder.0.path())
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        eprintln!("not run: there is no `script`; apt-get install bsdutils");
        return;
    };
    let shown = String::from_utf8(output.stdout).unwrap();
    let steps: Vec<&str> = shown
        .lines()
        .next()
        .unwrap()
        .split("\r\x1b[K")
        .skip(1)
        .collect();
    assert_eq!(steps.len(), 3, "{shown:?}");
    assert!(
        steps[2].starts_with("step 3 of 3, ") && steps[2].contains(" left: test n = 8"),
        "{shown:?}"
    );
}
