//! The guides of commands as their readers would try them: their files are
//! written, their commands are run one after the other, and print what they say.
//!
//! A block of the language `console` is a session: behind `$` is a command, and
//! below it what that prints. `…` there stands for anything within a line. A
//! block with a file name behind its language is that file.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::home::Home;

/// A step of the guide, and the line in which it stands.
enum Step {
    File {
        name: String,
        text: String,
    },
    Run {
        line: usize,
        command: String,
        expected: String,
    },
}

fn guide(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

fn steps(guide: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = guide.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        let block = lines.by_ref().take_while(|(_, line)| *line != "```");
        let block: Vec<(usize, &str)> = block.collect();
        match language.split_once(' ') {
            Some((_, name)) => {
                let text = block.iter().map(|(_, line)| format!("{line}\n"));
                let (name, text) = (name.to_owned(), text.collect());
                steps.push(Step::File { name, text });
            }
            None if language == "console" => session(&block, &mut steps),
            None => {}
        }
    }
    steps
}

fn session(block: &[(usize, &str)], steps: &mut Vec<Step>) {
    for (line, text) in block {
        if let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step::Run {
                line: line + 1,
                command: command.to_owned(),
                expected: String::new(),
            });
        } else if let Some(Step::Run { expected, .. }) = steps.last_mut() {
            expected.push_str(text);
            expected.push('\n');
        }
    }
}

/// Whether a text is as it is expected, where `…` is anything within a line.
fn is_as(text: &str, expected: &str) -> bool {
    let lines = text.lines().count() == expected.lines().count();
    lines && text.lines().zip(expected.lines()).all(fits)
}

fn fits((line, expected): (&str, &str)) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        // The last part stands at the end.
        let found = match parts.peek() {
            Some(_) => rest.find(part),
            None => rest.strip_suffix(part).map(str::len),
        };
        match found {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[test]
fn every_session_of_the_guide_of_the_store_is_as_it_says() {
    sessions_are_as_they_say("store.md", 45);
}

#[test]
fn every_session_of_the_guide_of_bench_is_as_it_says() {
    sessions_are_as_they_say("bench.md", 8);
}

/// Runs what a guide shows, which is more than so many commands.
fn sessions_are_as_they_say(guide_name: &str, more_than: usize) {
    let home = Home::new(guide_name);
    let (root, user) = (home.path(), home.path().join("home/anna"));
    fs::create_dir_all(&user).unwrap();
    // One shell runs all of it, so that variables and jobs stay.
    let mut script = String::new();
    let mut runs = Vec::new();
    for step in steps(&guide(guide_name)) {
        match step {
            Step::File { name, text } => {
                script.push_str(&format!(
                    "cat > {name} <<'END-OF-FILE'\n{text}END-OF-FILE\n"
                ));
            }
            Step::Run {
                line,
                command,
                expected,
            } => {
                script.push_str(&format!("echo; echo '=== {line}'\n{command}\n"));
                runs.push((line, command, expected));
            }
        }
    }
    assert!(runs.len() > more_than, "the sessions are not found");
    let program = Path::new(env!("CARGO_BIN_EXE_milieu")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{script}")])
        .env_clear()
        .env("PATH", format!("{}:{path}", program.display()))
        .env("HOME", &user)
        .env("XDG_CONFIG_DIRS", root.join("etc/xdg"))
        .current_dir(&user)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace(user.to_str().unwrap(), "~");
    let text = text.replace(root.to_str().unwrap(), "");
    let mut different = String::new();
    let mut parts = text.split("\n=== ").skip(1);
    for (line, command, expected) in runs {
        let part = parts.next().unwrap_or_default();
        let (number, said) = part.split_once('\n').unwrap_or((part, ""));
        assert_eq!(number, line.to_string(), "the shell got lost: {text}");
        // The line break before the next mark is ours.
        let said = said.strip_suffix('\n').unwrap_or(said);
        if !is_as(said, &expected) {
            different.push_str(&format!(
                "docs/{guide_name}:{line}: $ {command}\nprints\n{said}\nand should print\n{expected}\n"
            ));
        }
    }
    assert!(different.is_empty(), "{different}");
}

#[test]
fn the_exit_codes_of_the_guide_are_those_of_the_help() {
    let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
        .args(["key", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, codes) = help.split_once("Exit codes, of every verb:\n").unwrap();
    let of_help: Vec<String> = codes
        .lines()
        .map(|line| line.trim().replacen("  ", " | ", 1))
        .collect();
    let guide = guide("store.md");
    let (_, table) = guide.split_once("| Code | Means |\n|---|---|\n").unwrap();
    let of_guide: Vec<&str> = table
        .lines()
        .map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .collect();
    assert_eq!(of_guide, of_help);
    assert_eq!(of_guide.len(), 5);
}
