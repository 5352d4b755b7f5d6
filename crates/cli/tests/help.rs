//! The help of every command, as it is printed: what users read is reviewed.
//!
//! `UPDATE_EXPECT=1 cargo test -p milieu-cli --test integration help` writes it anew.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The help of a command.
fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
        .args(command)
        .arg("--help")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that a help lists.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[test]
fn every_command_says_what_it_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let mut expected: Vec<String> = Vec::new();
    let mut different = Vec::new();
    let mut todo: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = todo.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help(&words);
        for verb in commands(&text) {
            todo.push([&command[..], &[verb.to_owned()]].concat());
        }
        let name = [&["milieu"], &words[..]].concat().join("-") + ".txt";
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(&name), &text).unwrap();
        }
        if fs::read_to_string(folder.join(&name)).unwrap_or_default() != text {
            different.push(name.clone());
        }
        expected.push(name);
    }
    expected.sort();
    let files = fs::read_dir(&folder).unwrap();
    let mut files: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, expected, "a command has one file each");
    assert!(
        different.is_empty(),
        "the help is another one: {different:?}; look at it, then run with UPDATE_EXPECT=1"
    );
}

#[test]
fn the_examples_of_key_are_understood() {
    let key = help(&["key"]);
    for verb in commands(&key) {
        let text = help(&["key", verb]);
        let mut examples = 0;
        let lines = text.lines().skip_while(|line| !line.starts_with("Example"));
        for line in lines {
            let Some(at) = line.find("milieu key ") else {
                continue;
            };
            // What stands in a pipe is for the shell.
            let command = line[at..].split(" | ").next().unwrap();
            let words = command.split_whitespace().skip(1);
            let words = words.map(|word| word.trim_matches('\''));
            examples += 1;
            // It is the usage that counts: with --help nothing is done. Behind
            // `--` an option is a value.
            let mut words: Vec<&str> = words.collect();
            let at = words.iter().position(|word| *word == "--");
            words.insert(at.unwrap_or(words.len()), "--help");
            let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
                .args(&words)
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {error}");
        }
        assert!(examples > 0, "`milieu key {verb}` has no example");
    }
}
