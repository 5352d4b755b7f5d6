//! `milieu spec` as its users see it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const RIGHT: &str = "[/sw/pi/%session%/language]\ntype=string\ndefault=en\nopt=l\n";
const WRONG: &str = "[/sw/port]\ntype=lnog\n";

/// A folder of its own for each test, removed when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("milieu-spec-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn milieu(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
    command.arg("spec").args(arguments).env("NO_COLOR", "1");
    command
}

fn run(arguments: &[&str]) -> Output {
    milieu(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn check_says_nothing_about_what_is_right() {
    let folder = Folder::new("right");
    let file = folder.file("station.ini", RIGHT);
    let output = run(&["check", text(&file)]);
    assert_eq!((code(&output), out(&output), err(&output)), (0, "", ""));
}

#[test]
fn check_points_at_what_is_wrong() {
    let folder = Folder::new("wrong");
    let (right, wrong) = (
        folder.file("right.ini", RIGHT),
        folder.file("wrong.ini", WRONG),
    );
    let output = run(&["check", text(&right), text(&wrong)]);
    assert_eq!((code(&output), out(&output)), (1, ""));
    assert!(err(&output).contains("wrong.ini:2:6"), "{}", err(&output));
    assert!(
        err(&output).contains("did you mean `long`?"),
        "{}",
        err(&output)
    );
}

#[test]
fn check_prints_lines_of_json() {
    let folder = Folder::new("json");
    let (one, other) = (
        folder.file("one.ini", WRONG),
        folder.file("other.ini", WRONG),
    );
    let output = run(&["check", "--json", text(&one), text(&other)]);
    assert_eq!((code(&output), err(&output)), (1, ""));
    let lines: Vec<_> = out(&output).lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with('{') && lines[0].contains("one.ini"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains("\"line\":2,\"column\":6"), "{}", lines[1]);
}

#[test]
fn what_cannot_be_read_is_another_error() {
    let folder = Folder::new("unreadable");
    let binary = folder.file("binary.ini", b"[/a\xff]");
    for file in [
        text(&folder.0.join("missing.ini")),
        text(&binary),
        text(&folder.0),
    ] {
        for arguments in [&["check", file][..], &["generate", file, "--lang", "man"]] {
            let output = run(arguments);
            assert_eq!((code(&output), out(&output)), (2, ""), "{file}");
            assert!(err(&output).contains(file), "{}", err(&output));
        }
    }
}

#[test]
fn standard_input_is_a_specification_too() {
    let mut child = milieu(&["generate", "-", "--lang", "rust", "--program", "station"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(RIGHT.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0);
    assert!(
        out(&output).contains("pub struct Environment"),
        "{}",
        out(&output)
    );
}

#[test]
fn generate_writes_a_file_or_into_a_folder() {
    let folder = Folder::new("out");
    let file = folder.file("station.ini", RIGHT);
    let target = folder.0.join("environment.rs");
    let output = run(&[
        "generate",
        text(&file),
        "--lang",
        "rust",
        "--out",
        text(&target),
    ]);
    assert_eq!((code(&output), out(&output), err(&output)), (0, "", ""));
    let output = run(&[
        "generate",
        text(&file),
        "--lang",
        "man",
        "--out",
        text(&folder.0),
    ]);
    assert_eq!(code(&output), 0);
    assert_eq!(
        folder.names(),
        ["environment.rs", "station.1", "station.ini"]
    );
    assert!(
        fs::read_to_string(target)
            .unwrap()
            .contains("pub language:")
    );
}

#[test]
fn an_output_is_replaced_whole_or_stays() {
    let folder = Folder::new("whole");
    let (right, wrong) = (
        folder.file("right.ini", RIGHT),
        folder.file("wrong.ini", WRONG),
    );
    let target = folder.file("out.md", "what was here");
    let output = run(&[
        "generate",
        text(&wrong),
        "--lang",
        "markdown",
        "--out",
        text(&target),
    ]);
    assert_eq!(code(&output), 1);
    assert_eq!(fs::read_to_string(&target).unwrap(), "what was here");
    let output = run(&[
        "generate",
        text(&right),
        "--lang",
        "markdown",
        "--out",
        text(&target),
    ]);
    assert_eq!(code(&output), 0);
    assert!(fs::read_to_string(&target).unwrap().starts_with("# right"));
    assert_eq!(folder.names(), ["out.md", "right.ini", "wrong.ini"]);

    let nowhere = folder.0.join("no/such/folder.md");
    let output = run(&[
        "generate",
        text(&right),
        "--lang",
        "markdown",
        "--out",
        text(&nowhere),
    ]);
    assert_eq!(code(&output), 2);
    assert!(
        err(&output).contains("cannot write the output"),
        "{}",
        err(&output)
    );
}

#[cfg(unix)]
#[test]
fn an_output_keeps_its_link_and_its_rights() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new("link");
    let file = folder.file("station.ini", RIGHT);
    let real = folder.file("real.ini", "old");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.0.join("link.ini");
    symlink(&real, &link).unwrap();
    let output = run(&[
        "generate",
        text(&file),
        "--lang",
        "ini",
        "--out",
        text(&link),
    ]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), RIGHT);
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn a_branch_is_generated_alone() {
    let folder = Folder::new("root");
    let text_ = format!("{RIGHT}\n[/hw/gpio]\n");
    let file = folder.file("station.ini", text_);
    let generate = |root: &str| run(&["generate", text(&file), "--lang", "ini", "--root", root]);
    let output = generate("/hw");
    assert_eq!((code(&output), out(&output)), (0, "[/hw/gpio]\n"));
    let output = generate("/nowhere");
    assert_eq!((code(&output), out(&output)), (1, ""));
    assert!(err(&output).contains("`/sw`, `/hw`"), "{}", err(&output));
}

/// What is exported is the same specification, and right.
#[test]
fn an_exported_specification_is_right() {
    let folder = Folder::new("export");
    let file = folder.file("station.ini", RIGHT);
    let first = run(&["generate", text(&file), "--lang", "ini"]);
    let exported = folder.file("exported.ini", out(&first));
    assert_eq!(code(&run(&["check", text(&exported)])), 0);
    let second = run(&["generate", text(&exported), "--lang", "ini"]);
    assert_eq!(out(&first), out(&second));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::new("pipe");
    let keys: String = (0..5000).map(|key| format!("[/sw/key{key}]\n")).collect();
    let file = folder.file("station.ini", keys);
    let mut child = milieu(&["generate", text(&file), "--lang", "markdown"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), err(&output)), (0, ""));
}
