//! Secrets: who shows them, and who does not.

use crate::home::Home;

const SPECIFICATION: &str = "\
[/password]
secret
check/length=0-12
[/name]
";

fn home(test: &str) -> Home {
    let home = Home::new(test);
    home.write("s.ini", SPECIFICATION);
    home
}

fn with<'a>(verb: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&[verb, "--app", "ws", "--spec", "s.ini"], rest].concat()
}

#[test]
fn whoever_asks_for_a_secret_gets_it_and_nobody_else() {
    let home = home("secret");
    let shown = home.ok(&with("set", &["-v", "/password", "hunter2"]));
    assert_eq!(
        shown,
        "/password = (secret)  (new; HOME/user/ws/ws.ini:1)\n"
    );
    assert_eq!(home.ok(&with("get", &["/password"])), "hunter2\n");
    let json = home.ok(&with("get", &["--json", "/password"]));
    assert!(json.contains(r#""value":"hunter2""#), "{json}");

    let everything = [
        with("ls", &["--long"]),
        with("explain", &["/password"]),
        with("log", &[]),
        with("check", &[]),
        with("export", &["--user", "--format", "json"]),
        with("set", &["-v", "/password", "hunter2"]),
        with("migrate", &[]),
        with("watch", &["--initial", "--count", "1"]),
        with("rm", &["-v", "/password"]),
        with("log", &["/password"]),
    ];
    for arguments in everything {
        for json in [false, true] {
            let mut arguments = arguments.clone();
            if json {
                arguments.push("--json");
            }
            let ran = home.run(&arguments);
            let said = ran.out + &ran.err;
            assert!(!said.contains("hunter2"), "{arguments:?}: {said}");
            if arguments[0] == "rm" {
                home.ok(&with("set", &["/password", "hunter2"]));
            }
        }
    }
}

#[test]
fn it_is_said_that_there_is_a_secret() {
    let home = home("secret-said");
    home.ok(&with("set", &["/password", "hunter2"]));
    assert_eq!(
        home.ok(&with("ls", &["--long"])),
        "user     /password = (secret)  (HOME/user/ws/ws.ini:1)\n"
    );
    let object = r#"{"name":"/password","value":"(secret)","namespace":"user","file":"HOME/user/ws/ws.ini","line":1,"secret":true}"#;
    assert_eq!(home.ok(&with("ls", &["--json"])), format!("{object}\n"));
    let log = home.ok(&with("log", &[]));
    assert!(log.ends_with("   /password  (secret)\n"), "{log}");
    let log = home.ok(&with("log", &["--json"]));
    assert!(
        log.contains(r#""old":null,"new":null,"secret":true"#),
        "{log}"
    );
    let error = home.fails(2, &with("undo", &[]));
    assert!(error.contains("`/password` is secret"), "{error}");
}

#[test]
fn what_was_noted_before_the_key_was_secret_is_not_shown_either() {
    let home = home("secret-before");
    home.ok(&["set", "--app", "ws", "/password", "hunter2"]);
    let log = home.ok(&["log", "--app", "ws"]);
    assert!(log.contains("/password = hunter2  (new)"), "{log}");
    let log = home.ok(&with("log", &[]));
    assert!(log.contains("/password = (secret)  (new)"), "{log}");
    let log = home.ok(&with("log", &["--json"]));
    assert!(log.contains(r#""new":"(secret)","secret":true"#), "{log}");
    let undone = home.ok(&with("undo", &[]));
    assert!(
        undone.contains("/password removed  (was (secret))"),
        "{undone}"
    );
}

#[test]
fn errors_do_not_tell_of_secrets() {
    let home = home("secret-errors");
    let error = home.fails(3, &with("set", &["/password", "hunter2hunter2"]));
    assert!(!error.contains("hunter2"), "{error}");
    assert!(error.contains("(rule check/length=0-12)"), "{error}");
    home.write("user/ws/ws.ini", "/password hunter2\n");
    let error = home.fails(2, &with("get", &["/name"]));
    assert!(
        error.contains("ws.ini:1:1") && !error.contains("hunter2"),
        "{error}"
    );
    for value in ["hunter1", "hunter2", "hunter3"] {
        home.write("user/ws/ws.ini", "");
        home.ok(&["set", "--app", "ws", "/password", value]);
    }
    // Another writer's conflict names the key, and neither value.
    home.ok(&["set", "--app", "ws", "/password", "hunter4"]);
    let error = home.fails(4, &with("undo", &["1"]));
    assert!(
        error.contains("changed `/password` as well") && !error.contains("hunter"),
        "{error}"
    );
}
