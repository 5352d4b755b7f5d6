//! `milieu key export` and `milieu key import` as their users meet them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::home::{Home, Ran};

const SPECIFICATION: &str = "\
[/sw/pi/%session%/language]
type=enum
check/enum=en, de, fr
default=en
was/#0=/pi/lang/%session%

[/sw/pi/port]
type=unsigned_short
check/range=1024-65535
default=8080

[/sw/pi/id]

[/sw/pi/hosts/#]

[/sw/pi/hours]
removed=since 2.0 the clock decides

[/sw/mail/password]
secret
";

const APP: [&str; 4] = ["--app", "ws", "--spec", "s.ini"];

fn home(test: &str) -> Home {
    let home = Home::new(test);
    home.write("s.ini", SPECIFICATION);
    home
}

fn with<'a>(verb: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&[verb], &APP[..], rest].concat()
}

/// Runs with a text on standard input.
fn piped(home: &Home, arguments: &[&str], text: &str) -> Ran {
    let mut child = home
        .command()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    home.ran(child.wait_with_output().unwrap())
}

fn mode(home: &Home, file: &str) -> u32 {
    let metadata = fs::metadata(home.path().join(file)).unwrap();
    metadata.permissions().mode() & 0o777
}

const USER: &str = "\
[/sw/pi]
id = 7
port = 9000
hosts/#0 = a
hosts/#1 = b

[/sw/pi/anna]
language = de
";

#[test]
fn every_format_says_what_the_application_gets() {
    let home = home("export-formats");
    home.write("user/ws/ws.ini", USER);
    home.write(
        "system/ws/ws.ini",
        "[/sw/pi]\nport = 1\nben/language = fr\n",
    );
    let export = |format| home.ok(&with("export", &["--format", format, "--effective"]));
    assert_eq!(
        export("yaml"),
        "\
sw:
  pi:
    id: \"7\"
    port: 9000
    \"%\":
      language: en
    anna:
      language: de
    ben:
      language: fr
    hosts:
      - a
      - b
"
    );
    assert_eq!(
        export("toml"),
        "\
[sw.pi]
id = \"7\"
port = 9000
hosts = [\"a\", \"b\"]

[sw.pi.\"%\"]
language = \"en\"

[sw.pi.anna]
language = \"de\"

[sw.pi.ben]
language = \"fr\"
"
    );
    assert_eq!(
        export("ini"),
        "\
[/sw/pi]
id = 7
port = 9000

[/sw/pi/%]
language = en

[/sw/pi/anna]
language = de

[/sw/pi/ben]
language = fr

[/sw/pi/hosts]
\\#0 = a
\\#1 = b
"
    );
    assert_eq!(
        home.ok(&with("export", &["--system", "/sw/pi"])),
        "[/ben]\nlanguage = fr\n\n[/]\nport = 1\n"
    );
}

#[test]
fn what_is_exported_can_be_imported_and_mounted() {
    let home = home("export-round");
    home.write("user/ws/ws.ini", USER);
    let before = home.ok(&with("ls", &["--user", "--json"]));
    let values = |text: &str| -> Vec<String> {
        let member = |line: &str| line.split(",\"namespace\"").next().unwrap().to_owned();
        text.lines().map(member).collect()
    };
    for ending in ["ini", "toml", "json"] {
        let file = format!("out.{ending}");
        home.ok(&with("export", &["--user", "-o", &file]));
        home.write("user/ws/ws.ini", "");
        home.ok(&with("import", &[&file]));
        let after = home.ok(&with("ls", &["--user", "--json"]));
        assert_eq!(values(&after), values(&before), "{ending}");
        // Names count from the prefix, so the file can be mounted there.
        let file = format!("user/ws/pi.{ending}");
        home.ok(&with("export", &["--user", "-o", &file, "/sw/pi"]));
        home.ok(&["mount", "--app", "ws", "/sw/pi", &format!("pi.{ending}")]);
        let mounted = home.ok(&with("ls", &["--user", "--json"]));
        assert_eq!(values(&mounted), values(&before), "{ending}");
        home.ok(&["mount", "--app", "ws", "--remove", "/sw/pi"]);
        home.ok(&with("rm", &["-r", "/sw"]));
        home.ok(&with("import", &["--at", "/sw/pi", &file]));
        let at = home.ok(&with("ls", &["--user", "--json"]));
        assert_eq!(values(&at), values(&before), "{ending}");
    }
}

#[test]
fn the_ending_of_the_output_says_its_format() {
    let home = home("export-ending");
    home.write("user/ws/ws.ini", "x = 1\na/b = 2\n");
    let export = |rest: &[&str]| home.ok(&[&["export", "--app", "ws"], rest].concat());
    assert_eq!(export(&[]), "[/a]\nb = 2\n\n[/]\nx = 1\n");
    export(&["-o", "out.yml"]);
    assert_eq!(home.read("out.yml"), "a:\n  b: 2\nx: 1\n");
    export(&["-o", "out.yml", "--format", "toml"]);
    assert_eq!(home.read("out.yml"), "x = 1\n\n[a]\nb = 2\n");
    assert_eq!(
        export(&["--json"]),
        "{\n  \"a\": {\n    \"b\": 2\n  },\n  \"x\": 1\n}\n"
    );
    let text = home.fails(1, &["export", "--app", "ws", "/b"]);
    assert!(text.contains("there is no key `/b`"), "{text}");
    let text = home.fails(2, &["export", "--app", "ws", "/x"]);
    assert!(text.contains("cannot export this"), "{text}");
    let text = home.fails(2, &["export", "--app", "ws", "-o", "none/out.ini"]);
    assert!(text.contains("cannot write the output"), "{text}");
    home.fails(2, &["export", "--effective", "--user"]);
}

#[test]
fn secrets_leave_only_when_asked_and_then_into_a_private_file() {
    let home = home("export-secret");
    home.ok(&with("set", &["/sw/mail/password", "hunter2"]));
    let ran = home.run(&with("export", &["--user", "-o", "out.ini"]));
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.err,
        "\
note: left out, since secret: `/sw/mail/password`
 --> out.ini
  = help: `--secrets` has them as well
"
    );
    assert_eq!(home.read("out.ini"), "");
    fs::set_permissions(
        home.path().join("out.ini"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    home.ok(&with("export", &["--user", "-o", "out.ini", "--secrets"]));
    assert!(home.read("out.ini").contains("hunter2"));
    assert_eq!(mode(&home, "out.ini"), 0o600);
    // An import does not take away what the export has left out.
    home.write("empty.ini", "");
    home.ok(&with("import", &["--replace", "empty.ini"]));
    assert_eq!(home.ok(&with("get", &["/sw/mail/password"])), "hunter2\n");
    home.ok(&with("import", &["--replace", "--secrets", "empty.ini"]));
    home.write("secret.ini", "[/sw/mail]\npassword = hunter3\n");
    let shown = home.ok(&with("import", &["-v", "secret.ini"]));
    assert_eq!(shown, "/sw/mail/password = (secret)  (new)\n");
    assert_eq!(mode(&home, "user/ws/ws.ini"), 0o600);
}

#[test]
fn only_what_differs_is_written() {
    let home = home("import-differs");
    let text = "# mine\n[/a]\nx = 1 \ny = 2 # no comment\n";
    home.write("user/ws/ws.ini", text);
    home.write("in.toml", "[a]\nx = 1\ny = 3\nz = \"new\"\n");
    let import = |rest: &[&str]| home.ok(&[&["import", "--app", "ws"], rest].concat());
    let lines = "/a/y = 3  (was 2 # no comment)\n/a/z = new  (new)\n";
    assert_eq!(import(&["-n", "in.toml"]), lines);
    assert_eq!(
        home.read("user/ws/ws.ini"),
        text,
        "a dry run writes nothing"
    );
    assert_eq!(import(&["-v", "in.toml"]), lines);
    assert_eq!(
        home.read("user/ws/ws.ini"),
        "# mine\n[/a]\nx = 1 \ny = 3\nz = new\n"
    );
    assert_eq!(import(&["-v", "in.toml"]), "");
    assert_eq!(
        home.ok(&["log", "--app", "ws"]).lines().count(),
        3,
        "one change of two keys"
    );
    home.ok(&["undo", "--app", "ws"]);
    assert_eq!(home.ok(&["get", "--app", "ws", "/a/y"]), "2 # no comment\n");
    assert_eq!(
        import(&["-n", "--json", "in.toml"]),
        "{\"name\":\"/a/y\",\"old\":\"2 # no comment\",\"new\":\"3\"}\n\
         {\"name\":\"/a/z\",\"old\":null,\"new\":\"new\"}\n"
    );
}

#[test]
fn replacing_removes_what_the_text_does_not_have_below_the_name() {
    let home = home("import-replace");
    home.write("user/ws/ws.ini", "[/a]\nx = 1\ny = 2\n[/b]\nz = 3\n");
    home.write("user/ws/list.json", "{\"l\": [1, 2, 3]}\n");
    home.ok(&["mount", "--app", "ws", "/c", "list.json"]);
    let import = |rest: &[&str], text: &str| {
        let ran = piped(
            &home,
            &[&["import", "--app", "ws"], rest, &["-"]].concat(),
            text,
        );
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        ran.out
    };
    assert_eq!(
        import(&["--replace", "-v", "--at", "/a"], "x = 5\n"),
        "/a/y removed  (was 2)\n/a/x = 5  (was 1)\n"
    );
    assert_eq!(home.ok(&["get", "--app", "ws", "/b/z"]), "3\n");
    import(
        &["--replace", "--at", "/c", "--format", "json"],
        "{\"l\": [1]}",
    );
    assert_eq!(home.read("user/ws/list.json"), "{\"l\": [1]}\n");
    import(&["--replace"], "only = 1\n");
    assert_eq!(home.ok(&["ls", "--app", "ws"]), "/only\n");
}

#[test]
fn nothing_is_written_that_the_specification_does_not_allow() {
    let home = home("import-spec");
    home.write("user/ws/ws.ini", USER);
    home.write(
        "in.ini",
        "[/sw/pi]\nport = 80\nben/language = fr\nprot = 1\n[/sw/mail]\npassword = hunter2\n",
    );
    let ran = home.run(&with("import", &["in.ini"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""));
    assert_eq!(
        ran.err,
        "\
error: `/sw/pi/port`: `80` is out of range; give a number of 1024 to 65535 (rule check/range=1024-65535)
 --> in.ini:2:8
  |
2 | port = 80
  |        ^^ this value
  |
  = note: the rule is in s.ini:9

error[unknown-key]: the specification has no key `/sw/pi/prot`
 --> in.ini:4:8
  |
4 | prot = (secret)
  |        ^^^^^^^^ nothing reads this
  |
  = help: did you mean `/sw/pi/port`?
"
    );
    assert_eq!(home.read("user/ws/ws.ini"), USER);
    let dry = home.run(&with("import", &["--dry-run", "in.ini"]));
    assert_eq!(dry.code, Some(3));
}

#[test]
fn names_of_before_become_those_of_today() {
    let home = home("import-old");
    home.write("in.ini", "[/pi/lang]\nanna = de\n[/sw/pi]\nhours = 8\n");
    let ran = home.run(&with("import", &["-v", "in.ini"]));
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "/sw/pi/anna/language = de  (new)\n")
    );
    assert!(
        ran.err.contains("warning[renamed]") && ran.err.contains("warning[removed]"),
        "{}",
        ran.err
    );
    assert_eq!(
        home.read("user/ws/ws.ini"),
        "[/sw/pi/anna]\nlanguage = de\n"
    );
}

#[test]
fn texts_that_cannot_be_read_change_nothing() {
    let home = home("import-wrong");
    home.write("in.json", "{\"a\": 1,\n");
    let text = home.fails(2, &["import", "--app", "ws", "in.json"]);
    assert!(text.contains(" --> in.json:"), "{text}");
    home.write("in.yaml", "a: 1\n");
    assert_eq!(
        home.fails(2, &["import", "--app", "ws", "in.yaml"]),
        "\
error: YAML is only written, not read
 --> in.yaml
  = help: convert the file to one of ini, toml, json
"
    );
    let text = home.fails(2, &["import", "--app", "ws", "none.ini"]);
    assert!(
        text.contains("cannot read the file") && text.contains("none.ini"),
        "{text}"
    );
    fs::write(home.path().join("binary.ini"), b"a = \xff\n").unwrap();
    let text = home.fails(2, &["import", "--app", "ws", "binary.ini"]);
    assert!(text.contains("not UTF-8"), "{text}");
    assert!(!home.path().join("user").exists());
}

#[test]
fn what_others_wrote_meanwhile_is_a_conflict() {
    let home = home("import-conflict");
    home.write("user/ws/ws.ini", "a = 1\n");
    // Between reading the files and the text somebody else writes.
    let fifo = home.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let import = |how: &[&str]| {
        let mut command = home.command();
        command.args([&["import", "--app", "ws"], how, &["fifo"]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // This waits until the text is asked for, after the files were read.
        let mut text = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
        home.ok(&["set", "--app", "ws", "/a", "2"]);
        text.write_all(b"a = 3\n").unwrap();
        drop(text);
        home.ran(child.wait_with_output().unwrap())
    };
    let ran = import(&[]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("changed `/a` as well"), "{}", ran.err);
    assert_eq!(home.read("user/ws/ws.ini"), "a = 2\n");
    home.write("user/ws/ws.ini", "a = 1\n");
    assert_eq!(import(&["--on-conflict", "ours"]).code, Some(0));
    assert_eq!(home.read("user/ws/ws.ini"), "a = 3\n");
}
