//! `milieu bench`, as its users run it: real processes that measure, fail, hang and leave others behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const LONG: Duration = Duration::from_secs(30);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a program. Another process does: what this one has open for writing,
    /// children that other tests are starting have open still, and it could not be run.
    fn program(&self, name: &str, text: &str) -> PathBuf {
        let draft = self.write("draft", text);
        let path = self.path(name);
        let mut install = Command::new("install");
        install.args(["-m", "755"]).args([&draft, &path]);
        assert!(install.status().unwrap().success());
        path
    }

    fn bench(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command.arg("bench").args(words).current_dir(self.0.path());
        command
    }

    /// Runs it; standard output, standard error and exit code.
    fn said(&self, words: &[&str]) -> (String, String, i32) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.bench(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(stdout), text(stderr), status.code().unwrap())
    }

    fn result(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path("results.json")).unwrap()).unwrap()
    }
}

/// A description of one test with these applications.
fn test(more: &str, applications: &str) -> String {
    format!(
        "name = \"group\"\n[[test]]\nname = \"test\"\n{more}\n[[test.server]]\napplication = [{applications}]\n"
    )
}

/// A number that no other test sleeps for, so that its processes are known.
fn unusual(number: u32) -> String {
    (std::process::id() * 100 + number).to_string()
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

const RUN: [&str; 4] = ["run", "test.toml", "--applications", "applications.toml"];

#[test]
fn a_sweep_of_real_processes_gives_a_result_that_documents_itself() {
    let folder = Folder::new();
    folder.write(
        "applications.toml",
        r#"
[square]
command = ["sh", "-c", "read start; echo '{\"result\": '$(($0 * $0))'}'", "{n}"]
parameters.n = "integer"

[words]
command = ["sh", "-c", "echo some output; echo rate=$0.5 lost=1; echo done >&2", "{n}"]
result = "rate=(?<rate>[0-9.]+) lost=(?<lost>[0-9]+)"
parameters.n = "integer"
"#,
    );
    let description = test(
        "repetitions = 2\nvariable = { name = \"n\", start = 1, end = 3 }",
        "{ kind = \"square\" }, { kind = \"words\" }",
    );
    folder.write("test.toml", &description);
    let (_, said, code) = folder.said(&RUN);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("step 6 of 6"), "{said}");
    assert!(!folder.path("results.steps").exists());
    let result = folder.result();
    assert_eq!(result["group"]["tests"][0]["variables"][0]["name"], "n");
    assert!(result["hosts"]["here"]["cores"].as_u64().unwrap() > 0);
    let points = result["tests"][0]["points"].as_array().unwrap();
    let means: Vec<f64> = points
        .iter()
        .map(|point| point["metrics"]["value"]["mean"].as_f64().unwrap())
        .collect();
    assert_eq!(means, [1.0, 4.0, 9.0]);
    assert_eq!(points[2]["metrics"]["rate"]["mean"], 3.5);
    let step = &result["tests"][0]["steps"][0];
    let words = &step["runs"][1];
    assert_eq!(words["output"], "some output\nrate=1.5 lost=1\ndone\n");
    // It may be smaller than what it is counted by, and too quick to be looked at.
    let memory = words["resources"].get("memory-bytes-max");
    assert!(memory.is_none_or(|bytes| bytes.as_u64().unwrap() > 0));
    assert!(words["resources"]["switches-voluntary"].as_u64().unwrap() > 0);

    let (markdown, _, code) = folder.said(&["report", "markdown", "results.json"]);
    assert_eq!(code, 0);
    assert!(
        markdown.contains("| test | 3 | rate | 2 | 3.5 |"),
        "{markdown}"
    );
    let words = [
        "report",
        "csv",
        "results.json",
        "--metric",
        "value",
        "--column",
    ];
    let (table, said, code) = folder.said(&[&words[..], &["each=value.mean / double(n)"]].concat());
    assert_eq!(code, 0, "{said}");
    let cells =
        |line: &str| -> Vec<String> { line.rsplit(',').take(2).map(str::to_owned).collect() };
    let ends: Vec<Vec<String>> = table.lines().map(cells).collect();
    assert_eq!(
        ends,
        [["failed", "each"], ["0", "1"], ["0", "2"], ["0", "3"]],
        "{table}"
    );
    for (column, message) in [
        ("each=value.mean /", "ends where a value should be"),
        ("each=rtae.mean", "the column `each` cannot be computed"),
        ("each", "write it as NAME=EXPRESSION"),
    ] {
        let (_, said, code) = folder.said(&[&words[..], &[column]].concat());
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(message), "{said}");
    }
    let (_, _, code) = folder.said(&["compare", "results.json", "results.json"]);
    assert_eq!(code, 0);
    for form in ["line", "bar", "box", "html", "xml"] {
        let (report, said, code) = folder.said(&["report", form, "results.json"]);
        assert_eq!(code, 0, "{form}: {said}");
        let is_html = form == "html";
        if !is_html {
            well_formed(&report);
        }
    }
}

/// Checks that a text is XML.
fn well_formed(text: &str) {
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return,
            Ok(_) => {}
            Err(error) => panic!("{error}:\n{text}"),
        }
    }
}

#[test]
fn services_start_first_tell_where_they_are_and_are_stopped() {
    let folder = Folder::new();
    let mark = unusual(1);
    let own_session = unusual(2);
    folder.write(
        "applications.toml",
        &format!(
            r#"
[broker]
command = ["sh", "-c", "sleep {mark} & setsid sleep {own_session} & sleep 0.3; echo listening on 4104; wait"]
service = true
ready = "listening on (?<port>[0-9]+)"

[client]
command = ["sh", "-c", "echo value=$0", "{{broker.port}}"]
result = "value=(.*)"
"#
        ),
    );
    // What serves starts first, wherever it stands.
    folder.write(
        "test.toml",
        &test("", "{ kind = \"client\" }, { kind = \"broker\" }"),
    );
    let (_, said, code) = folder.said(&RUN);
    assert_eq!(code, 0, "{said}");
    let result = folder.result();
    assert_eq!(
        result["tests"][0]["points"][0]["values"][0]["value"],
        4104.0
    );
    assert!(
        !runs(&mark) && !runs(&own_session),
        "nothing is left running"
    );
}

#[test]
fn what_hangs_fails_crashes_or_says_nothing_is_told_and_ended() {
    let folder = Folder::new();
    let mark = unusual(3);
    folder.write(
        "applications.toml",
        &format!(
            r#"
[hangs]
command = ["sh", "-c", "trap '' TERM; echo still here; sleep {mark}; sleep {mark}"]
[fails]
command = ["sh", "-c", "echo '{{\"result\": 1}}'; echo no disk >&2; exit 3"]
[crashes]
command = ["sh", "-c", "kill -SEGV $$"]
[silent]
command = ["true"]
[missing]
command = ["/no/such/program"]
[invalid]
command = ["echo", "{{\"invalid\": \"fell behind\"}}\n{{\"result\": 5}}"]
[error]
command = ["echo", "{{\"error\": \"no route\"}}"]
[unmatched]
command = ["echo", "nothing"]
result = "rate=(.*)"
[unready]
command = ["sh", "-c", "exit 0"]
service = true
ready = "never"
"#
        ),
    );
    let cases = [
        ("hangs", "it took too long and was ended", 3),
        ("fails", "it failed", 3),
        ("crashes", "it ended without a result", 3),
        ("silent", "it ended without a result", 3),
        ("missing", "`/no/such/program` cannot be run", 3),
        ("error", "no route", 3),
        ("unmatched", "its pattern matched nothing in the output", 3),
        ("unready", "it ended before it was ready", 3),
        (
            "unknown",
            "the catalogue of this machine has no `unknown`",
            3,
        ),
        ("invalid", "fell behind", 4),
    ];
    for (kind, message, expected) in cases {
        let timeout = if kind == "hangs" {
            "timeout = 3"
        } else {
            "timeout = 30"
        };
        // A host of its own: its kinds are not checked before it runs.
        folder.write(
            "test.toml",
            &test(timeout, &format!("{{ kind = \"{kind}\" }}")).replace(
                "unknown\" }",
                "silent\" }, { kind = \"silent\", name = \"x\" }",
            ),
        );
        let words = match kind {
            "unknown" => vec!["run", "test.toml"],
            _ => RUN.to_vec(),
        };
        let (_, said, code) = folder.said(&words);
        let message = message.replace("unknown", "silent");
        assert_eq!(code, expected, "{kind}: {said}");
        assert!(said.contains(&message), "{kind}: {said}");
        let result = folder.result();
        let run = &result["tests"][0]["steps"][0]["runs"][0];
        let why = run["error"].as_str().or(run["invalid"].as_str()).unwrap();
        assert!(why.contains(&message), "{kind}: {why}");
        match kind {
            "fails" => {
                assert_eq!(run["status"], 3);
                assert_eq!(run["output"], "no disk\n");
                assert!(run.get("results").is_none());
            }
            "crashes" => assert_eq!(run["signal"], 11),
            "hangs" => assert_eq!(run["output"], "still here\n"),
            _ => {}
        }
        let (markdown, _, _) = folder.said(&["report", "markdown", "results.json"]);
        assert!(markdown.contains("Failed:"), "{markdown}");
    }
    assert!(!runs(&mark), "nothing is left running");
}

#[test]
fn nothing_is_left_running_when_the_harness_is_killed() {
    let folder = Folder::new();
    let (mark, own_session) = (unusual(4), unusual(5));
    folder.write(
        "applications.toml",
        &format!(
            "[long]\ncommand = [\"sh\", \"-c\", \"setsid sleep {own_session} & sleep {mark}\"]\n"
        ),
    );
    folder.write("test.toml", &test("", "{ kind = \"long\" }"));
    let mut harness = folder.bench(&RUN).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| runs(&mark) && runs(&own_session), "it starts");
    harness.kill().unwrap();
    harness.wait().unwrap();
    wait_until(|| !runs(&mark) && !runs(&own_session), "all of it ends");
}

#[test]
fn an_interrupted_run_is_resumed() {
    let folder = Folder::new();
    folder.write(
        "applications.toml",
        "[k]\ncommand = [\"sh\", \"-c\", \"echo $0 >> ran; while [ $0 = 2 ] && [ ! -e go ]; do sleep 0.05; done; echo value=$0\", \"{n}\"]\n\
         result = \"value=(.*)\"\nparameters.n = \"integer\"\n",
    );
    let values = "variable = { name = \"n\", values = [1, 2, 3] }";
    folder.write("test.toml", &test(values, "{ kind = \"k\" }"));
    let mut harness = folder.bench(&RUN).stderr(Stdio::piped()).spawn().unwrap();
    let ran = || fs::read_to_string(folder.path("ran")).unwrap_or_default();
    wait_until(|| ran().contains('2'), "the second step starts");
    let pid = harness.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    folder.write("go", "");
    let status = harness.wait().unwrap();
    assert_eq!(status.code(), Some(5));
    let (_, said, code) = folder.said(&RUN);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--resume"), "{said}");
    let (_, said, code) = folder.said(&[&RUN[..], &["--resume"]].concat());
    assert_eq!(code, 0, "{said}");
    assert_eq!(ran(), "1\n2\n3\n");
    assert_eq!(
        folder.result()["tests"][0]["points"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn values_stay_within_their_argument_and_reports_have_no_markup_of_others() {
    let folder = Folder::new();
    let nasty = "$(touch owned); `touch owned` <script>alert(1)</script> | =1+1 ' \\\" ../../x";
    folder.write(
        "applications.toml",
        "[k]\ncommand = [\"printf\", \"out: %s\\\\n value=1\\\\n\", \"{text}\"]\nresult = \"value=(.*)\"\n",
    );
    let variable = format!("variable = {{ name = \"text\", values = [\"{nasty}\", \"<b>\"] }}");
    folder.write("test.toml", &test(&variable, "{ kind = \"k\" }"));
    let (_, said, code) = folder.said(&RUN);
    assert_eq!(code, 0, "{said}");
    assert!(!folder.path("owned").exists());
    let output = folder.result()["tests"][0]["steps"][0]["runs"][0]["output"].to_string();
    assert!(output.contains("$(touch owned)"), "{output}");
    for form in ["html", "bar", "markdown"] {
        let (report, said, code) = folder.said(&["report", form, "results.json"]);
        assert_eq!(code, 0, "{said}");
        assert!(
            !report.contains("<script>alert") && !report.contains("<b>"),
            "{form}: {report}"
        );
    }
    let (_, said, code) = folder.said(&["report", "line", "results.json"]);
    assert_eq!(code, 2);
    assert!(said.contains("a line chart needs numbers"), "{said}");
}

#[test]
fn a_program_is_a_report_too() {
    let folder = Folder::new();
    folder.write(
        "applications.toml",
        "[k]\ncommand = [\"echo\", \"value=7\"]\nresult = \"value=(.*)\"\n",
    );
    folder.write("test.toml", &test("", "{ kind = \"k\" }"));
    assert_eq!(folder.said(&RUN).2, 0);
    let program = folder.program(
        "count.sh",
        "#!/bin/sh\ngrep -c '\"metric\"' | sed 's/^/numbers: /'\n",
    );
    let program = program.to_str().unwrap();
    let (report, said, code) = folder.said(&["report", "--with", program, "results.json"]);
    assert_eq!((&*report, code), ("numbers: 1\n", 0), "{said}");
    let (_, said, code) = folder.said(&["report", "--with", "./none", "results.json"]);
    assert_eq!(code, 2);
    assert!(said.contains("cannot be run"), "{said}");
}

#[test]
fn ratios_are_of_the_same_round() {
    let folder = Folder::new();
    // What drifts from round to round is the same for all of a round.
    folder.write(
        "k.sh",
        r#"round=$(head -1 | sed 's/.*"round":\([0-9]*\).*/\1/')
echo '{"result":'$(($1 * (1 + 100 * round)))'}'
"#,
    );
    folder.write(
        "applications.toml",
        "[k]\ncommand = [\"sh\", \"k.sh\", \"{n}\"]\nparameters.n = \"integer\"\n",
    );
    let variable = "repetitions = 3\nvariable = { name = \"n\", values = [2, 4, 6] }";
    folder.write("test.toml", &test(variable, "{ kind = \"k\" }"));
    let (_, said, code) = folder.said(&RUN);
    assert_eq!(code, 0, "{said}");
    let (table, said, code) =
        folder.said(&["report", "ratios", "results.json", "--baseline", "n=2"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        table.contains("| test | n = 4 | value | 2 | 2 | 2 | 3 |"),
        "{table}"
    );
    assert!(
        table.contains("| test | n = 6 | value | 3 | 3 | 3 | 3 |"),
        "{table}"
    );
    for (words, message) in [
        (
            &["report", "ratios", "results.json"][..],
            "ratios need --baseline",
        ),
        (
            &["report", "ratios", "results.json", "--baseline", "n=3"],
            "no point has a pair",
        ),
        (
            &["report", "ratios", "results.json", "--baseline", "n"],
            "write it as VARIABLE=VALUE",
        ),
    ] {
        let (_, said, code) = folder.said(words);
        assert_eq!(code, 2);
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn a_search_says_what_it_found() {
    let folder = Folder::new();
    folder.write(
        "applications.toml",
        "[k]\ncommand = [\"echo\", \"time={n}\"]\nresult = \"time=(?<time>.*)\"\nparameters.n = \"integer\"\n",
    );
    let variable =
        "variable = { name = \"n\", start = 1, end = 50, while = \"time.mean <= 30.0\" }";
    folder.write("test.toml", &test(variable, "{ kind = \"k\" }"));
    let (checked, _, _) = folder.said(&["check", "test.toml"]);
    assert!(checked.contains("50 points, at most 10 steps"), "{checked}");
    let (_, said, code) = folder.said(&RUN);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("found: n = 30\n"), "{said}");
    let (markdown, _, _) = folder.said(&["report", "markdown", "results.json"]);
    assert!(markdown.contains("Found:\n\n- n = 30\n"), "{markdown}");
    let wrong = variable.replace("<= 30.0", "<=");
    folder.write("test.toml", &test(&wrong, "{ kind = \"k\" }"));
    let (_, said, code) = folder.said(&["check", "test.toml"]);
    assert_eq!(code, 2);
    assert!(said.contains("this is no condition"), "{said}");
}

#[test]
fn changes_have_an_exit_code_of_their_own() {
    let folder = Folder::new();
    let catalogue = |value: &str| {
        format!(
            "[k]\ncommand = [\"sh\", \"-c\", \"echo value={value}.$(( $$ % 10 ))\"]\nresult = \"value=(.*)\"\n"
        )
    };
    folder.write("test.toml", &test("repetitions = 4", "{ kind = \"k\" }"));
    for (value, name) in [("100", "old.json"), ("200", "new.json")] {
        folder.write("applications.toml", &catalogue(value));
        assert_eq!(folder.said(&[&RUN[..], &["-o", name]].concat()).2, 0);
    }
    let (changes, said, code) = folder.said(&["compare", "old.json", "new.json"]);
    assert_eq!(code, 1, "{said}");
    // The last digit is that of a process.
    let ratio = changes.strip_prefix("test [] value: ").unwrap();
    let ratio: f64 = ratio.split(' ').next().unwrap().parse().unwrap();
    assert!((1.97..=2.03).contains(&ratio), "{changes}");
    assert!(changes.ends_with("larger\n"), "{changes}");
    let (changes, _, code) = folder.said(&[
        "compare", "old.json", "new.json", "--margin", "3", "--json", "--all",
    ]);
    assert_eq!(code, 0);
    let change: Value = serde_json::from_str(&changes).unwrap();
    assert_eq!(change["verdict"], "same");
}

#[test]
fn mistakes_say_what_to_do() {
    let folder = Folder::new();
    folder.write(
        "applications.toml",
        "[k]\ncommand = [\"true\"]\nparameters = {}\n",
    );
    folder.write("test.toml", &test("parameters.x = 1", "{ kind = \"k\" }"));
    folder.write("test.ini", "");
    folder.write("results.json", "{}");
    let cases: [(&[&str], &str); 8] = [
        (&RUN, "no application here takes `x`"),
        (&["run", "none.toml"], "cannot read the description"),
        (&["run", "test.ini"], "is in no language that is known"),
        (
            &["run", "test.toml", "-o", "x.txt"],
            "is no name of a result",
        ),
        (
            &["run", "test.toml", "-o", "no/x.json"],
            "steps cannot be kept",
        ),
        (&["run", "test.toml", "--test", "x"], "there is no test `x`"),
        (&["report", "pie", "results.json"], "there is no form `pie`"),
        (&["report", "csv", "results.json"], "this is no result"),
    ];
    for (words, message) in cases {
        let (_, said, code) = folder.said(words);
        assert_eq!(code, 2, "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
        assert!(said.contains("help:"), "{words:?}: {said}");
        let (_, said, _) = folder.said(&[words, &["--json"]].concat());
        if words[0] == "run" {
            let line = said.lines().next().unwrap();
            let found: Value = serde_json::from_str(line).unwrap();
            assert!(
                found["message"].as_str().unwrap().contains(message),
                "{said}"
            );
        }
    }
    assert!(!Path::new(&folder.path("results.steps")).exists());
}

#[test]
fn programs_in_c_and_python_are_applications_with_a_helper() {
    let folder = Folder::new();
    for (language, file) in [("c", "milieu_bench.h"), ("python", "milieu_bench.py")] {
        let (helper, _, code) = folder.said(&["helper", language]);
        assert_eq!(code, 0);
        folder.write(file, &helper);
    }
    folder.write(
        "measure.c",
        r#"
#include "milieu_bench.h"
int main(void) {
    struct milieu_bench bench;
    double n, none;
    char text[16], small[4];
    if (!milieu_bench_start(&bench)) return 1;
    if (!milieu_bench_number(&bench, "nested.n", &n)) return milieu_bench_error("no n");
    if (!milieu_bench_text(&bench, "text", text, sizeof text)) return milieu_bench_error("no text");
    if (milieu_bench_text(&bench, "text", small, sizeof small)) return milieu_bench_error("too long");
    if (milieu_bench_number(&bench, "none", &none)) return milieu_bench_error("what?");
    if (n < 0) return milieu_bench_invalid("below \"0\"");
    milieu_bench_result("n", n * 2);
    milieu_bench_result("length", (double)strlen(text));
    return 0;
}
"#,
    );
    let compiled = Command::new("cc")
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "measure.c",
            "-o",
            "measure",
        ])
        .current_dir(folder.0.path())
        .status();
    assert!(compiled.unwrap().success());
    folder.write(
        "measure.py",
        r#"
import milieu_bench

@milieu_bench.application
def measure(parameters, ready):
    ready(port=1)
    n = parameters["nested.n"]
    if n < 0:
        raise milieu_bench.Invalid('below "0"')
    return {"n": n * 2, "length": len(parameters["text"])}
"#,
    );
    folder.write(
        "applications.toml",
        "[c]\ncommand = [\"./measure\"]\n[python]\ncommand = [\"python3\", \"measure.py\"]\n",
    );
    let has_python = Command::new("python3").arg("-V").output().is_ok();
    for kind in ["c", "python"] {
        if kind == "python" && !has_python {
            eprintln!("not run: there is no python3; apt-get install python3");
            continue;
        }
        let description = test(
            "parameters.text = \"a \\\"b\\\"\\n\\u0001\\\\\"\n\
             variable = { name = \"nested.n\", values = [2.5, -1] }",
            &format!("{{ kind = \"{kind}\" }}"),
        );
        folder.write("test.toml", &description);
        let (_, said, code) = folder.said(&RUN);
        assert_eq!(code, 4, "{kind}: {said}");
        let result = folder.result();
        let steps = result["tests"][0]["steps"].as_array().unwrap();
        let of = |name: &str| steps[0]["runs"][0]["results"][name].as_f64();
        assert_eq!((of("n"), of("length")), (Some(5.0), Some(8.0)), "{kind}");
        assert_eq!(steps[1]["runs"][0]["invalid"], "below \"0\"", "{kind}");
        folder.write("test.toml", &test("", &format!("{{ kind = \"{kind}\" }}")));
        let (_, said, code) = folder.said(&RUN);
        assert_eq!(code, 3, "{kind}: {said}");
        assert!(
            said.contains(if kind == "c" { "no n" } else { "KeyError" }),
            "{said}"
        );
    }
}
