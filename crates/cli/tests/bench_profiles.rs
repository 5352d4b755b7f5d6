//! Profiles of applications, kept beside the result, from wherever they ran.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

struct Folder(tempfile::TempDir);

const APPLICATIONS: &str = r#"
[sorts]
command = ["sh", "-c", "seq 20000 | sort -n | tail -1 | sed s/^/value=/"]
result = "value=(.*)"
[serves]
command = ["sleep", "1000"]
service = true
"#;

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::write(folder.path("applications.toml"), APPLICATIONS).unwrap();
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

    fn describe(&self, server: &str) {
        let text = format!(
            "[[test]]\nname = \"../test\"\nrepetitions = 2\n[[test.server]]\n{server}\n\
             application = [{{ kind = \"sorts\", name = \"../../a\" }}, {{ kind = \"serves\" }}]\n"
        );
        fs::write(self.path("test.toml"), text).unwrap();
    }

    fn runs(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("results.json")).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        let steps = result["tests"][0]["steps"].as_array().unwrap().clone();
        let runs = steps
            .iter()
            .flat_map(|step| step["runs"].as_array().unwrap());
        runs.cloned().collect()
    }

    /// The files of the profile of a run.
    fn files(&self, run: &Value) -> Vec<PathBuf> {
        let files = run["profile"]["files"].as_array().unwrap();
        let path = |file: &Value| self.path("results.profiles").join(file.as_str().unwrap());
        files.iter().map(path).collect()
    }
}

/// A test server, which ends with this.
struct Server(Child, String);

impl Server {
    fn start(folder: &Folder, words: &[&str]) -> Server {
        let mut child = folder
            .bench(&["serve", "--listen", "127.0.0.1:0", "--key", "key"])
            .args(["--applications", "applications.toml"])
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        Server(child, port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const LOCAL: [&str; 5] = [
    "run",
    "test.toml",
    "--applications",
    "applications.toml",
    "--restart",
];

/// Whether a profiler works on this machine.
fn works(program: &str, words: &[&str]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(program)
        .args(words)
        .current_dir(folder.path())
        .output();
    let works = output.is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("not run: {program} does not work here");
    }
    works
}

fn callgrind_works() -> bool {
    works("valgrind", &["--tool=callgrind", "true"])
}

fn perf_works() -> bool {
    works("perf", &["record", "true"])
}

/// Checks that callgrind has seen both a shell and what that runs.
fn is_of_sort(files: &[PathBuf]) {
    let all: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let cmd = |text: &String| {
        text.lines()
            .find_map(|line| Some(line.strip_prefix("cmd: ")?.to_owned()))
    };
    let commands: Vec<String> = all.iter().filter_map(cmd).collect();
    assert!(
        commands.iter().any(|command| command.ends_with("sort -n")),
        "{commands:?}"
    );
    assert!(all.iter().all(|text| text.contains("totals: ")));
}

#[test]
fn callgrind_s_profiles_are_kept_by_step_wherever_it_ran() {
    if !callgrind_works() {
        return;
    }
    let folder = Folder::new();
    folder.describe("");
    let words = [&LOCAL[..], &["--profile", "callgrind"]].concat();
    let (_, said, code) = folder.said(&words);
    assert_eq!(code, 0, "{said}");
    let runs = folder.runs();
    for run in &runs {
        assert_eq!(run["profile"]["by"], "callgrind");
        assert!(run["profile"].get("lacks").is_none(), "{run}");
    }
    // What was stopped has one, too.
    assert_eq!(folder.files(&runs[1]).len(), 1);
    is_of_sort(&folder.files(&runs[0]));
    is_of_sort(&folder.files(&runs[2]));
    let kept = fs::read_dir(folder.path("results.profiles"))
        .unwrap()
        .count();
    let files: usize = runs.iter().map(|run| folder.files(run).len()).sum();
    assert_eq!(kept, files, "each has a name of its own");

    // From a server they come back, if its owner lets them.
    fs::remove_dir_all(folder.path("results.profiles")).unwrap();
    for (allows, expected) in [(&["--allow-profiles"][..], 0), (&[], 3)] {
        let server = Server::start(&folder, &[allows, &["--state", "state"]].concat());
        folder.describe(&format!("host = \"127.0.0.1\"\nport = {}", server.1));
        let words = ["run", "test.toml", "--key", "key", "--profile", "callgrind"];
        let (_, said, code) = folder.said(&words);
        assert_eq!(code, expected, "{said}");
        match expected {
            0 => is_of_sort(&folder.files(&folder.runs()[0])),
            _ => assert!(said.contains("lets them with --allow-profiles"), "{said}"),
        }
    }
}

#[test]
fn perf_s_profile_of_one_application_is_fetched_with_the_result_of_a_job() {
    if !perf_works() {
        return;
    }
    let folder = Folder::new();
    let server = Server::start(&folder, &["--allow-profiles", "--state", "state"]);
    let at = format!("127.0.0.1:{}", server.1);
    folder.describe("");
    let at = ["--at", &at, "--key", "key"];
    let words = [
        "submit",
        "test.toml",
        "--profile",
        "perf",
        "--profile-application",
        "../../a",
    ];
    let (_, said, code) = folder.said(&[&words[..], &at].concat());
    assert_eq!(code, 0, "{said}");
    assert_eq!(folder.said(&[&["watch", "1"], &at[..]].concat()).2, 0);
    let (_, said, code) = folder.said(&[&["fetch", "1"], &at[..]].concat());
    assert_eq!(code, 0, "{said}");
    let runs = folder.runs();
    assert!(runs[1].get("profile").is_none(), "only one is profiled");
    for run in [&runs[0], &runs[2]] {
        let files = folder.files(run);
        let output = Command::new("perf")
            .args(["script", "-i"])
            .arg(&files[0])
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.lines().any(|line| line.starts_with("sort ")), "{text}");
    }
}

#[test]
fn a_profiler_that_is_missing_is_told() {
    let folder = Folder::new();
    folder.describe("");
    let words = [&LOCAL[..], &["--profile", "callgrind"]].concat();
    let shell = ["/bin/sh", "/usr/bin/sh"]
        .into_iter()
        .find(|path| PathBuf::from(path).exists());
    let bin = folder.path("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(shell.unwrap(), bin.join("sh")).unwrap();
    let output = folder.bench(&words).env("PATH", &bin).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the package valgrind has it"), "{said}");
    for (more, message) in [
        (&["--profile", "gprof"][..], "there are perf and callgrind"),
        (
            &["--profile", "perf", "--profile-application", "x"],
            "no application `x` to profile",
        ),
    ] {
        let (_, said, code) = folder.said(&[&LOCAL[..], more].concat());
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(message), "{said}");
    }
}
