//! `milieu key check` and `milieu key migrate` as their users meet them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::home::Home;

const SPECIFICATION: &str = "\
[/sw/pi/%session%/language]
type=enum
check/enum=en, de, fr
default=en
was/#0=/pi/lang/%session%
was/#0/convert=german -> de

[/sw/pi/timeout]
type=double
check/unit=time
default=1 s
was/#0=/pi/timeout
was/#0/unit=ms

[/sw/pi/port]
type=unsigned_short
check/range=1024-65535
default=8080

[/sw/pi/hours]
removed=since 2.0 the clock decides

[/sw/pi/motto]
deprecated=since 2.1, nobody reads it

[/sw/mail/password]
secret
check/length=0-8
was/#0=/mail/password
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

#[test]
fn files_without_a_fault_are_told_of_in_one_line() {
    let home = home("check-fine");
    assert_eq!(
        home.ok(&with("check", &[])),
        "no file is there: HOME/user/ws/ws.ini, HOME/system/ws/ws.ini, /etc/ws.ini\n"
    );
    home.write("user/ws/ws.ini", "[/sw/pi]\nport = 8080\n");
    assert_eq!(
        home.ok(&with("check", &[])),
        "1 file with 1 key: nothing is wrong\n"
    );
    home.write("system/ws/ws.ini", "[/sw/pi]\nport = 8081\nmotto = x\n");
    let ran = home.run(&with("check", &[]));
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (
            Some(0),
            "2 files with 3 keys: no errors, 1 warning\n",
            "\
warning[deprecated]: `/sw/pi/motto` is deprecated: since 2.1, nobody reads it
 --> HOME/system/ws/ws.ini:3:9
  |
3 | motto = x
  |         ^
"
        )
    );
    assert_eq!(
        home.ok(&with("check", &["--user"])),
        "1 file with 1 key: nothing is wrong\n"
    );
    assert_eq!(home.ok(&with("check", &["--user", "--json"])), "");
}

#[test]
fn a_refused_value_names_rule_value_and_place() {
    let home = home("check-refused");
    home.write("c.ini", "[/sw/pi]\nport = 80\nprot = 81\n");
    let ran = home.run(&["check", "--file", "c.ini", "--spec", "s.ini"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""));
    assert_eq!(
        ran.err,
        "\
error: `/sw/pi/port`: `80` is out of range; give a number of 1024 to 65535 (rule check/range=1024-65535)
 --> c.ini:2:8
  |
2 | port = 80
  |        ^^ this value
  |
  = note: the rule is in s.ini:17

warning[unknown-key]: the specification has no key `/sw/pi/prot`
 --> c.ini:3:8
  |
3 | prot = (secret)
  |        ^^^^^^^^ nothing reads this
  |
  = help: did you mean `/sw/pi/port`?
"
    );
    let json = home.run(&["check", "--file", "c.ini", "--spec", "s.ini", "--json"]);
    assert_eq!((json.code, json.err.as_str()), (Some(3), ""));
    let lines: Vec<&str> = json.out.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].contains(r#""file":"c.ini","line":2,"column":8"#),
        "{lines:?}"
    );
}

#[test]
fn all_files_are_checked_though_one_cannot_be_understood() {
    let home = home("check-broken");
    home.write("user/ws/ws.ini", "[/sw/pi]\nport\nprot\n");
    home.write("system/ws/ws.ini", "[/sw/pi]\nport = 80\n");
    home.write(
        "user/ws/ws.mounts.ini",
        "[/hw]\nfile = hw.json\nformat = xml\n",
    );
    home.write("system/ws/ws.mounts.ini", "[/hw]\nfile = hw.json\n");
    home.write("system/ws/hw.json", "{\"a\": 1,,}\n");
    let text = home.fails(2, &["check", "--app", "ws"]);
    for part in [
        "error: there is no format `xml`\n --> HOME/user/ws/ws.mounts.ini:3:10\n",
        " --> HOME/user/ws/ws.ini:2:1\n",
        " --> HOME/user/ws/ws.ini:3:1\n",
        " --> HOME/system/ws/hw.json:1:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // With secrets about, nobody knows what stands in these lines.
    let text = home.fails(2, &with("check", &[]));
    assert!(text.contains("`80` is out of range"), "{text}");
    assert!(
        text.contains("ws.ini:3:1\n") && !text.contains("3 | prot"),
        "{text}"
    );
    assert_eq!(
        home.fails(2, &["check", "--file", "none.ini"]),
        "error: there is no such file\n --> none.ini\n  = help: mend the path\n"
    );
    std::os::unix::fs::symlink("none.ini", home.path().join("link.ini")).unwrap();
    home.fails(2, &["check", "--file", "link.ini"]);
    let text = home.fails(2, &["check", "--spec", "none.ini"]);
    assert!(text.contains("cannot read the specification"), "{text}");
}

#[test]
fn keys_that_a_mount_hides_are_found() {
    let home = home("check-hidden");
    home.write("user/ws/ws.ini", "[/sw/pi]\nport = 8080\n");
    home.ok(&["mount", "--app", "ws", "/sw/pi", "pi.toml"]);
    let ran = home.run(&with("check", &[]));
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.err,
        "\
warning[hidden]: `/sw/pi/port` does nothing: another file is mounted at `/sw/pi`
 --> HOME/user/ws/ws.ini:2:8
  |
2 | port = 8080
  |        ^^^^ nothing reads this
  |
  = note: /sw/pi is in HOME/user/ws/pi.toml
  = help: move the key there, or remove it here
"
    );
}

#[test]
fn secrets_are_not_shown_and_not_left_to_others() {
    let home = home("check-secret");
    home.write("c.ini", "[/sw/mail]\npassword = hunter2hunter2\n");
    fs::set_permissions(home.path().join("c.ini"), fs::Permissions::from_mode(0o644)).unwrap();
    let text = home.fails(3, &["check", "--file", "c.ini", "--spec", "s.ini"]);
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("(rule check/length=0-8)"), "{text}");
    assert!(text.contains("= help: `chmod 600 c.ini`"), "{text}");
}

const OLD: &str = "\
# mine
[/pi/lang]
anna = german
ben = klingon

[/pi]
timeout = 1500

[/sw/pi]
hours = 8
motto = x

[/mail]
password = hunter2
";

#[test]
fn old_names_become_those_of_today() {
    let home = home("migrate");
    home.write("user/ws/ws.ini", OLD);
    let lines = "\
/pi/lang/anna = german -> /sw/pi/anna/language = de  (HOME/user/ws/ws.ini:3)
/pi/timeout = 1500 -> /sw/pi/timeout = 1500 ms  (HOME/user/ws/ws.ini:7)
/sw/pi/hours = 8 -> removed: since 2.0 the clock decides  (HOME/user/ws/ws.ini:10)
/mail/password = (secret) -> /sw/mail/password = (secret)  (HOME/user/ws/ws.ini:14)
";
    let dry = home.run(&with("migrate", &["--dry-run"]));
    assert_eq!((dry.code, dry.out.as_str()), (Some(3), lines));
    assert!(
        dry.err.contains("`/pi/lang/ben` cannot be taken"),
        "{}",
        dry.err
    );
    assert_eq!(home.read("user/ws/ws.ini"), OLD, "nothing is written");
    let ran = home.run(&with("migrate", &[]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), lines));
    assert_eq!(
        home.read("user/ws/ws.ini"),
        "\
# mine
[/pi/lang]
ben = klingon

[/sw/pi]
motto = x
timeout = 1500 ms

[/sw/pi/anna]
language = de

[/sw/mail]
password = hunter2
"
    );
    let mode = fs::metadata(home.path().join("user/ws/ws.ini")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600, "it has a secret");
    home.ok(&with("set", &["/sw/pi/ben/language", "fr"]));
    assert_eq!(home.ok(&with("migrate", &[])), "", "there is nothing left");
    let text = home.fails(2, &["migrate", "--app", "ws"]);
    assert!(
        text.contains("nobody says which names are old") && text.contains("--spec"),
        "{text}"
    );
}

#[test]
fn what_wins_over_what_is_the_same_after_a_migration() {
    let home = home("migrate-cascade");
    // Both files belong to the system; the first wins.
    home.write("system/ws/ws.ini", "[/pi]\ntimeout = 1\n");
    home.write(
        "second/ws/ws.ini",
        "[/sw/pi]\ntimeout = 2 ms\n[/pi]\nlang/anna = de\n",
    );
    let run = |arguments: &[&str]| {
        let mut command = home.command();
        let both = ["system", "second"].map(|folder| home.path().join(folder));
        command.env("XDG_CONFIG_DIRS", std::env::join_paths(both).unwrap());
        home.ran(command.args(arguments).output().unwrap())
    };
    let values = || run(&with("ls", &["--long", "/sw/pi"])).out;
    let before = values();
    let ran = run(&with("migrate", &["--system"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
    assert!(before.contains("/sw/pi/timeout = 1 ms"), "{before}");
    let shorten = |text: String| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.split("  (").next().unwrap().to_owned());
        lines.collect()
    };
    assert_eq!(shorten(values()), shorten(before));
    assert_eq!(home.read("system/ws/ws.ini"), "[/sw/pi]\ntimeout = 1 ms\n");
    assert_eq!(run(&with("migrate", &["--system"])).out, "");
}

#[test]
fn programs_get_what_is_migrated_as_json() {
    let home = home("migrate-json");
    home.write("c.ini", "[/pi]\ntimeout = 1500\n[/sw/pi]\nhours = 8\n");
    assert_eq!(
        home.ok(&["migrate", "--file", "c.ini", "--spec", "s.ini", "--json"]),
        "\
{\"name\":\"/pi/timeout\",\"value\":\"1500\",\"namespace\":\"user\",\"file\":\"c.ini\",\"line\":2,\"new_name\":\"/sw/pi/timeout\",\"new_value\":\"1500 ms\",\"removed\":null}
{\"name\":\"/sw/pi/hours\",\"value\":\"8\",\"namespace\":\"user\",\"file\":\"c.ini\",\"line\":4,\"new_name\":null,\"new_value\":null,\"removed\":\"since 2.0 the clock decides\"}
"
    );
}

#[test]
fn whoever_asks_for_a_key_of_before_is_told() {
    let home = home("before");
    home.write("user/ws/ws.ini", OLD);
    let ran = home.run(&with("get", &["/sw/pi/timeout"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "1500 ms\n"));
    assert_eq!(
        ran.err,
        "\
warning[renamed]: `/pi/timeout` is now `/sw/pi/timeout`
 --> HOME/user/ws/ws.ini:7
  = note: `/sw/pi/timeout` gets the value `1500 ms`
  = help: rename it, or run `milieu key migrate`
"
    );
    let ran = home.run(&with("get", &["/sw/pi/motto"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "x\n"));
    assert!(
        ran.err
            .starts_with("warning[deprecated]: `/sw/pi/motto` is deprecated"),
        "{}",
        ran.err
    );
    let text = home.fails(1, &with("get", &["/pi/timeout"]));
    assert!(
        text.contains("= help: it is called `/sw/pi/timeout` today"),
        "{text}"
    );
    let text = home.fails(1, &with("get", &["/sw/pi/nothing"]));
    assert!(!text.contains("today"), "{text}");
    let text = home.ok(&with("explain", &["/sw/pi/anna/language"]));
    assert!(
        text.contains("wins     de  HOME/user/ws/ws.ini:3  (as /pi/lang/anna)\n"),
        "{text}"
    );
    // Listing is no occasion to scold.
    assert!(home.ok(&with("ls", &["/sw"])).contains("/sw/pi/timeout\n"));
}
