//! The program as its users run it.

use std::{fs, path::Path, process::Command};

/// What the program prints and complains, and whether it succeeds.
fn run(home: &Path) -> (String, String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_hello"))
        .env("XDG_CONFIG_HOME", home)
        .env("XDG_CONFIG_DIRS", home.join("system"))
        .output()
        .expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        text(output.stdout),
        text(output.stderr),
        output.status.success(),
    )
}

fn write(home: &Path, text: &str) {
    fs::create_dir_all(home.join("hello")).expect("a folder");
    fs::write(home.join("hello/hello.ini"), text).expect("a file");
}

#[test]
fn it_greets_without_any_file() {
    let home = tempfile::tempdir().expect("a folder");
    let expected = (
        "Hello, world\nHello, world\n".to_owned(),
        String::new(),
        true,
    );
    assert_eq!(run(home.path()), expected);
    assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 0);
}

#[test]
fn it_greets_as_the_file_says() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path(), "/hello/de/greeting = Hallo\n");
    let expected = (
        "Hello, world\nHallo, world\n".to_owned(),
        String::new(),
        true,
    );
    assert_eq!(run(home.path()), expected);
}

#[test]
fn it_complains_readably_about_a_broken_file() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path(), "/hello/de/greeting = Hallo\n[/hello/de\n");
    let (printed, complaint, success) = run(home.path());
    assert_eq!((printed.as_str(), success), ("", false));
    let place = format!("{}:2:", home.path().join("hello/hello.ini").display());
    assert!(
        complaint.contains(&place) && complaint.contains("help: "),
        "{complaint}"
    );
}
