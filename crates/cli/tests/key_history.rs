//! `milieu key log|undo|edit|mount` as their users meet them.

use crate::home::Home;

const APP: [&str; 2] = ["--app", "ws"];

/// The log without what differs from run to run.
fn log(home: &Home) -> Vec<String> {
    let out = home.ok(&["log", "--app", "ws"]);
    let shorten = |line: &str| match line.strip_prefix("   ") {
        Some(change) => change.to_owned(),
        None => {
            let state = line.split_once(") ").map_or("", |(_, state)| state.trim());
            format!("{} {state}", line.split(' ').next().unwrap())
                .trim()
                .to_owned()
        }
    };
    out.lines().map(shorten).collect()
}

#[test]
fn changes_are_logged_and_taken_back() {
    let home = Home::new("log");
    for (name, value) in [("/a", "1"), ("/a", "2"), ("/b", "x y")] {
        home.ok(&["set", "--app", "ws", name, value]);
    }
    home.ok(&["rm", "--app", "ws", "/b"]);
    let all = [
        "4",
        "/b removed  (was x y)",
        "3",
        "/b = x y  (new)",
        "2",
        "/a = 2  (was 1)",
        "1",
        "/a = 1  (new)",
    ];
    assert_eq!(log(&home), all);
    let out = home.ok(&["undo", "--app", "ws"]);
    assert!(
        out.starts_with("took back 4  ") && out.ends_with("   /b = x y  (new)\n"),
        "{out}"
    );
    home.ok(&["undo", "--app", "ws", "2"]);
    assert_eq!(home.ok(&["get", "--app", "ws", "/a"]), "1\n");
    let lines = log(&home);
    assert_eq!(
        lines[..4],
        [
            "6 (takes back 2)",
            "/a = 1  (was 2)",
            "5 (takes back 4)",
            "/b = x y  (new)"
        ]
    );
    assert!(
        lines.contains(&"2 (taken back by 6)".to_owned()),
        "{lines:?}"
    );
    let json = home.ok(&["log", "--app", "ws", "--json", "-n", "1"]);
    assert!(
        json.contains(r#""undoes":2"#) && json.contains(r#""old":"2","new":"1""#),
        "{json}"
    );
    assert_eq!(home.ok(&["log", "--app", "ws", "/nothing"]), "");
    let error = home.fails(2, &["undo", "--app", "ws", "77"]);
    assert!(
        error.contains("there is no change 77 to take back") && error.contains("milieu key log"),
        "{error}"
    );
}

#[test]
fn undo_refuses_what_changed_since_with_an_exit_code_of_its_own() {
    let home = Home::new("undo-conflict");
    for value in ["1", "2", "3"] {
        home.ok(&["set", "--app", "ws", "/a", value]);
    }
    let error = home.fails(4, &["undo", "--app", "ws", "2"]);
    assert!(error.contains("changed `/a` as well"), "{error}");
    home.ok(&["undo", "--app", "ws", "2", "--on-conflict", "theirs"]);
    assert_eq!(home.ok(&["get", "--app", "ws", "/a"]), "3\n");
    home.ok(&["undo", "--app", "ws", "2", "--on-conflict", "ours"]);
    assert_eq!(home.ok(&["get", "--app", "ws", "/a"]), "1\n");
}

#[test]
fn an_editor_changes_text_and_keys() {
    let home = Home::new("edit");
    home.write("user/ws/ws.ini", "# mine\n[/a]\nx = 1\n");
    let edit = |editor: &str| {
        let mut command = home.command();
        command
            .args(["edit"])
            .args(APP)
            .env("EDITOR", editor)
            .env("TMPDIR", home.path());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        home.ran(command.output().unwrap())
    };
    let ran = edit("sed -i -e s/mine/ours/ -e 's/x = 1/x = 2/'");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(home.read("user/ws/ws.ini"), "# ours\n[/a]\nx = 2\n");
    assert_eq!(log(&home), ["1", "/a/x = 2  (was 1)"]);

    let ran = edit("sed -i s/=/-/");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err.contains("ws.ini:3:")
            && ran
                .err
                .contains("note: your text is kept here\n --> HOME/ws"),
        "{}",
        ran.err
    );
    assert_eq!(home.read("user/ws/ws.ini"), "# ours\n[/a]\nx = 2\n");

    let ran = edit("false");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err
            .contains("the editor ended with exit status: 1; nothing is changed"),
        "{}",
        ran.err
    );

    // Somebody else sets a key while the editor is open.
    let milieu = env!("CARGO_BIN_EXE_milieu");
    let ran = edit(&format!(
        "sh -c '{milieu} key set --app ws /b new; sed -i s/2/3/ \"$0\"'"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("keys are merged"), "{}", ran.err);
    assert_eq!(home.ok(&["get", "--app", "ws", "/a/x"]), "3\n");
    assert_eq!(home.ok(&["get", "--app", "ws", "/b"]), "new\n");
}

#[test]
fn mount_points_are_listed_added_and_removed() {
    let home = Home::new("mount");
    home.ok(&[
        "mount", "--app", "ws", "/sw/pi", "pi.conf", "--format", "ini",
    ]);
    home.ok(&["set", "--app", "ws", "/sw/pi/a", "1"]);
    assert_eq!(home.read("user/ws/pi.conf"), "/a = 1\n");
    let out = home.ok(&["mount", "--app", "ws"]);
    let first: Vec<&str> = out.lines().take(2).collect();
    assert_eq!(
        first,
        [
            "user     /       ini   HOME/user/ws/ws.ini  (no file)",
            "user     /sw/pi  ini   HOME/user/ws/pi.conf",
        ]
    );
    assert!(home.ok(&["mount", "--app", "ws", "--json"]).contains(
        r#"{"name":"/sw/pi","namespace":"user","file":"HOME/user/ws/pi.conf","format":"ini"}"#
    ));
    home.ok(&["mount", "--app", "ws", "--remove", "/sw/pi"]);
    let error = home.fails(1, &["mount", "--app", "ws", "--remove", "/sw/pi"]);
    assert!(error.contains("nothing is mounted at `/sw/pi`"), "{error}");
    home.fails(1, &["get", "--app", "ws", "/sw/pi/a"]);
    home.fails(2, &["mount", "--app", "ws", "/sw/pi"]);
}
