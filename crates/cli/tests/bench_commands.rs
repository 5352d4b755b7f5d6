//! Commands of hosts, and properties that hosts say of themselves.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

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

    fn bench(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command.arg("bench").args(words).current_dir(self.0.path());
        command
    }

    /// Runs a verb: standard output, standard error and exit code.
    fn said(&self, words: &[&str]) -> (String, String, i32) {
        let output = self.bench(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap();
        (text(output.stdout), text(output.stderr), code)
    }

    /// Runs a test with these applications, on this machine or a server; standard
    /// error, exit code and what was written to `log`.
    fn run(&self, more: &str, applications: &str, words: &[&str]) -> (String, i32, String) {
        let _ = fs::remove_file(self.path("log"));
        let text = format!(
            "[[test]]\nname = \"test\"\ntimeout = 300\n{more}application = [{applications}]\n"
        );
        fs::write(self.path("test.toml"), text).unwrap();
        let run = ["run", "test.toml", "--key", "key"];
        let (_, said, code) = self.said(&[&run[..], words].concat());
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        (said, code, log.split('\n').collect::<Vec<_>>().join(" "))
    }

    fn result(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path("results.json")).unwrap()).unwrap()
    }
}

/// A test server, which ends with this.
struct Server(Child, u16);

impl Server {
    fn start(folder: &Folder) -> Server {
        let words = ["serve", "--listen", "127.0.0.1:0", "--key", "key"];
        let mut child = folder
            .bench(&words)
            .args(["--applications", "applications.toml", "--state", "state"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse().unwrap();
        Server(child, port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const LOCAL: [&str; 3] = ["--applications", "applications.toml", "--restart"];

const COMMANDS: &str = r#"
[shape]
command = ["sh", "-c", "echo shape $0 >> log", "{rate}"]
parameters.rate = "integer"
when = "before-step"

[unshape]
command = ["sh", "-c", "echo unshape >> log"]
when = "after-step"
parameters = {}

[build]
command = ["sh", "-c", "echo build >> log; [ ! -e broken ]"]
when = "before-test"
parameters = {}

[clean]
command = ["sh", "-c", "echo clean >> log"]
when = "after-test"
parameters = {}

[free]
command = ["sh", "-c", "echo there are $0 free", "{unit}"]
when = "request"
parameters.unit = { kind = "text", default = "MiB" }

[serves]
command = ["sh", "-c", "echo serves >> log; exec sleep 1000"]
service = true
parameters = {}

[k]
# After a step has begun, its service comes first.
command = ["sh", "-c", "while tail -n 1 log 2>&1 | grep -q ^shape; do sleep 0.01; done; echo measures >> log; echo value=1; [ ! -e fails ]"]
result = "value=(.*)"
parameters = {}
"#;

const ALL: &str = "{ kind = \"k\" }, { kind = \"serves\" }, { kind = \"unshape\" }, \
                   { kind = \"clean\" }, { kind = \"build\" }, { kind = \"shape\" }";

/// What happens in two steps.
const WHOLE: &str = "build shape 5 serves measures unshape shape 9 serves measures unshape clean ";

const VARIABLE: &str = "variable = { name = \"rate\", values = [5, 9] }\n[[test.server]]\n";

#[test]
fn commands_of_a_host_run_before_and_after_steps_and_tests() {
    let folder = Folder::new(COMMANDS);
    let (said, code, log) = folder.run(VARIABLE, ALL, &LOCAL);
    assert_eq!((code, &*log), (0, WHOLE), "{said}");
    let result = folder.result();
    let runs = result["tests"][0]["steps"][0]["runs"].as_array().unwrap();
    let names: Vec<_> = runs.iter().map(|run| &run["application"]).collect();
    assert_eq!(names, ["k", "serves", "unshape", "shape"]);
    let around = result["tests"][0]["commands"].as_array().unwrap();
    let names: Vec<_> = around.iter().map(|run| &run["application"]).collect();
    assert_eq!(names, ["build", "clean"]);

    // On a server it is the same.
    let server = Server::start(&folder);
    let there = format!("{VARIABLE}host = \"127.0.0.1\"\nport = {}\n", server.1);
    let (said, code, log) = folder.run(&there, ALL, &["--restart"]);
    assert_eq!((code, &*log), (0, WHOLE), "{said}");

    // What was done before a step is undone, although that failed.
    fs::write(folder.path("fails"), "").unwrap();
    let (said, code, log) = folder.run(VARIABLE, ALL, &LOCAL);
    assert_eq!((code, &*log), (3, WHOLE), "{said}");
}

#[test]
fn a_command_that_fails_is_told_and_nothing_is_measured() {
    let folder = Folder::new(COMMANDS);
    fs::write(folder.path("broken"), "").unwrap();
    let (said, code, log) = folder.run(VARIABLE, ALL, &LOCAL);
    assert_eq!((code, &*log), (5, "build clean "), "{said}");
    assert!(
        said.contains("`build` around the test `test`: it failed"),
        "{said}"
    );
    fs::remove_file(folder.path("broken")).unwrap();

    fs::write(
        folder.path("applications.toml"),
        COMMANDS.replace("echo shape $0 >> log", "exit 7"),
    )
    .unwrap();
    let (said, code, log) = folder.run(VARIABLE, ALL, &LOCAL);
    assert_eq!((code, &*log), (3, "build unshape unshape clean "), "{said}");
    let run = &folder.result()["tests"][0]["steps"][0]["runs"][3];
    assert_eq!(
        (&run["error"], &run["status"]),
        (&"it failed".into(), &7.into())
    );

    let (said, code, _) = folder.run(
        VARIABLE,
        "{ kind = \"k\" }, { kind = \"shape\", parameters.rate = \"x\" }",
        &LOCAL,
    );
    assert_eq!(code, 2, "{said}");
    let (said, code, _) = folder.run("[[test.server]]\n", "{ kind = \"free\" }", &LOCAL);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("it runs for whoever asks the server"),
        "{said}"
    );
}

#[test]
fn a_server_runs_what_its_owner_has_added_for_whoever_asks() {
    let folder = Folder::new(COMMANDS);
    let server = Server::start(&folder);
    let at = format!("127.0.0.1:{}", server.1);
    let ask =
        |words: &[&str]| folder.said(&[&["ask"], words, &["--at", &at, "--key", "key"]].concat());
    let (answer, said, code) = ask(&["free"]);
    assert_eq!((&*answer, code), ("there are MiB free\n", 0), "{said}");
    assert_eq!(
        ask(&["free", "unit=$(id); x"]).0,
        "there are $(id); x free\n"
    );
    // What is for tests is not for whoever asks, and neither is an application.
    for name in ["shape", "k", "reboot"] {
        let (_, said, code) = ask(&[name]);
        assert_eq!(code, 2, "{said}");
        let message = format!("this server has no command `{name}`");
        assert!(said.contains(&message), "{said}");
    }
}

#[test]
fn hosts_say_what_they_are() {
    let properties = r#"
[properties]
compiler = ["sh", "-c", "echo; echo 'cc <13> | fast'; echo more"]
lost = ["/no/such/program"]
fails = ["sh", "-c", "echo no disk >&2; exit 2"]
"#;
    let folder = Folder::new(&format!("{COMMANDS}{properties}"));
    let server = Server::start(&folder);
    let there = format!("host = \"127.0.0.1\"\nport = {}\n", server.1);
    let servers = format!(
        "[[test.server]]\napplication = [{{ kind = \"k\", name = \"a\" }}]\n[[test.server]]\n{there}"
    );
    let (said, code, _) = folder.run(&servers, "{ kind = \"k\" }", &LOCAL);
    assert_eq!(code, 0, "{said}");
    let result = folder.result();
    for (_, host) in result["hosts"].as_object().unwrap() {
        assert_eq!(
            host["properties"],
            serde_json::json!({ "compiler": "cc <13> | fast" })
        );
        assert_eq!(host["milieu"], env!("CARGO_PKG_VERSION"));
        let lacks = |name: &str| host["lacks"][name].as_str().unwrap().to_owned();
        assert!(lacks("lost").contains("cannot be run"));
        assert_eq!(lacks("fails"), "it ended with 2: no disk\n");
    }
    let (markdown, _, _) = folder.said(&["report", "markdown", "results.json"]);
    let shown = format!(
        "; milieu {}; compiler cc &lt;13> \\| fast",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(markdown.matches(&shown).count(), 2, "{markdown}");
    let (html, _, _) = folder.said(&["report", "html", "results.json"]);
    assert!(html.contains("; compiler cc &lt;13&gt; | fast"), "{html}");
}
