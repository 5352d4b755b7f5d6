//! `milieu key` as its users meet it: the real program in a folder of its own.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::home::Home;

const USER: &str = "user/milieu/milieu.ini";
const SYSTEM: &str = "system/milieu/milieu.ini";

const SPECIFICATION: &str = "\
[/sw/pi/%session%/language]
check/enum=de, en, fr
type=enum
default=en
opt/long=language
fallback/#0=/sw/pi/lang

[/sw/pi/lang]

[/sw/pi/port]
type=unsigned_short
check/range=1024-65535
default=8080
";

#[test]
fn what_is_set_is_there() {
    let home = Home::new("set");
    assert_eq!(home.ok(&["set", "/sw/pi/anna/language", "de"]), "");
    assert_eq!(home.ok(&["set", "/sw/pi/anna/volume", "-3"]), "");
    assert_eq!(home.ok(&["set", "/sw/pi/anna/motto", "--", "--help"]), "");
    assert_eq!(home.ok(&["get", "/sw/pi/anna/language"]), "de\n");
    assert_eq!(
        home.read(USER),
        "[/sw/pi/anna]\nlanguage = de\nvolume = -3\nmotto = --help\n"
    );
    assert_eq!(
        home.ok(&["set", "-v", "/sw/pi/anna/language", "two\nlines"]),
        "/sw/pi/anna/language = \"two\\nlines\"  (was de; HOME/user/milieu/milieu.ini:2)\n"
    );
    assert_eq!(home.ok(&["get", "/sw/pi/anna/language"]), "two\nlines\n");
    let mut child = home.command();
    child.args(["set", "/sw/pi/anna/pin", "--stdin"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"47\n11\n").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(home.ok(&["get", "/sw/pi/anna/pin"]), "47\n11\n");
    home.ok(&["rm", "/sw/pi/anna/pin"]);
    home.fails(2, &["set", "/sw/pi/anna/pin"]);
    home.fails(2, &["set", "/sw/pi/anna/pin", "4711", "--stdin"]);
    assert_eq!(
        home.ok(&["set", "-v", "/a", "1"]),
        "/a = 1  (new; HOME/user/milieu/milieu.ini:7)\n"
    );
    assert_eq!(
        home.ok(&["set", "-v", "--json", "/a", "1"]),
        "{\"name\":\"/a\",\"value\":\"1\",\"namespace\":\"user\",\"file\":\"HOME/user/milieu/milieu.ini\",\"line\":7,\"replaced\":\"1\"}\n"
    );
}

#[test]
fn names_are_written_as_in_a_file() {
    let home = Home::new("names");
    home.ok(&["set", r"/a\nb/x=y/#0", "1"]);
    assert_eq!(home.ok(&["ls"]), "/a\\nb/x\\=y/#0\n");
    assert_eq!(home.ok(&["get", r"/a\u{a}b/x\=y//./#0"]), "1\n");
    assert_eq!(home.read(USER), "[/a\\nb/x=y]\n\\#0 = 1\n");
}

#[test]
fn a_hand_written_file_keeps_everything_but_the_value() {
    let home = Home::new("comments");
    let text = "; Anna's.\r\n[/sw/pi/anna]\r\n\tlanguage   =  de\t\r\n\r\n# the end";
    home.write(USER, text);
    home.ok(&["set", "/sw/pi/anna/language", "fr"]);
    assert_eq!(home.read(USER), text.replace("de", "fr"));
}

#[test]
fn applications_namespaces_and_files_are_apart() {
    let home = Home::new("scopes");
    home.ok(&["set", "--app", "station", "/a", "station"]);
    home.ok(&["set", "/a", "user"]);
    home.ok(&["set", "--system", "/a", "system"]);
    home.ok(&["set", "--file", "here.ini", "/a", "file"]);
    assert_eq!(home.ok(&["get", "/a"]), "user\n");
    assert_eq!(home.ok(&["get", "--system", "/a"]), "system\n");
    assert_eq!(home.ok(&["get", "--user", "/a"]), "user\n");
    assert_eq!(home.ok(&["get", "--app", "station", "/a"]), "station\n");
    assert_eq!(home.ok(&["get", "--file", "here.ini", "/a"]), "file\n");
    assert_eq!(home.read("here.ini"), "/a = file\n");
    assert_eq!(home.read(SYSTEM), "/a = system\n");
}

#[test]
fn listing_shows_names_or_all_that_is_known() {
    let home = Home::new("ls");
    assert_eq!(home.ok(&["ls"]), "");
    home.write(USER, "[/sw/pi/anna]\nlanguage = de\n[/sw/pia]\nx = 1\n");
    home.write(SYSTEM, "[/sw/pi/anna]\nlanguage = en\nvolume = 11\n");
    assert_eq!(
        home.ok(&["ls"]),
        "/sw/pi/anna/language\n/sw/pi/anna/volume\n/sw/pia/x\n"
    );
    assert_eq!(
        home.ok(&["ls", "--long", "/sw/pi"]),
        "user     /sw/pi/anna/language = de  (HOME/user/milieu/milieu.ini:2)\n\
         system   /sw/pi/anna/volume = 11  (HOME/system/milieu/milieu.ini:3)\n"
    );
    assert_eq!(
        home.ok(&["ls", "--json", "/sw/pi/anna/volume"]),
        "{\"name\":\"/sw/pi/anna/volume\",\"value\":\"11\",\"namespace\":\"system\",\"file\":\"HOME/system/milieu/milieu.ini\",\"line\":3}\n"
    );
    assert!(
        home.fails(1, &["ls", "/sw/po"])
            .starts_with("error: there is no key `/sw/po`\n")
    );
}

#[test]
fn removing_uncovers_what_is_below() {
    let home = Home::new("rm");
    home.write(USER, "[/sw/pi/anna]\nlanguage = de\nvolume = 3\n");
    home.write(SYSTEM, "[/sw/pi/anna]\nlanguage = en\n");
    assert_eq!(home.ok(&["rm", "/sw/pi/anna/language"]), "");
    assert_eq!(home.ok(&["get", "/sw/pi/anna/language"]), "en\n");
    assert_eq!(
        home.fails(1, &["rm", "/sw/pi/anna/volume", "/sw/pi/anna/language"]),
        "error: there is no key `/sw/pi/anna/language` of the user\n \
         --> HOME/system/milieu/milieu.ini:2\n  \
         = help: the system has it: use `--system`\n"
    );
    assert_eq!(
        home.ok(&["get", "/sw/pi/anna/volume"]),
        "3\n",
        "all are removed or none"
    );
    assert_eq!(
        home.ok(&["rm", "-v", "--recursive", "/sw/pi"]),
        "user     /sw/pi/anna/volume = 3  (HOME/user/milieu/milieu.ini:2)\n"
    );
    assert_eq!(home.read(USER), "");
}

#[test]
fn a_missing_key_names_the_files_and_what_was_perhaps_meant() {
    let home = Home::new("missing");
    assert_eq!(
        home.fails(1, &["get", "/sw/pi/anna/language"]),
        "error: there is no key `/sw/pi/anna/language`\n \
         --> HOME/user/milieu/milieu.ini\n  \
         = note: nor is it in HOME/system/milieu/milieu.ini\n  \
         = note: nor is it in /etc/milieu.ini\n  \
         = help: none of the files exists: is this the right application?\n"
    );
    home.write(USER, "[/sw/pi/anna]\nlanguage = de\n");
    let text = home.fails(1, &["get", "--user", "/sw/pi/ana/langauge"]);
    assert!(
        text.ends_with("  = help: did you mean `/sw/pi/anna/language`?\n"),
        "{text}"
    );
    let text = home.fails(1, &["get", "--user", "/sw/pi"]);
    assert!(
        text.ends_with("  = help: 1 key is below it: `milieu key ls /sw/pi` lists them\n"),
        "{text}"
    );
    assert_eq!(
        home.fails(1, &["get", "--user", "--json", "/x"]),
        "{\"severity\":\"error\",\"code\":null,\"message\":\"there is no key `/x`\",\"file\":\"HOME/user/milieu/milieu.ini\",\
         \"line\":null,\"column\":null,\"end_line\":null,\"end_column\":null,\"label\":null,\"help\":[],\"notes\":[]}\n"
    );
}

#[test]
fn explaining_shows_the_cascade() {
    let home = Home::new("explain");
    home.write("station.spec.ini", SPECIFICATION);
    home.write(USER, "[/sw/pi]\nlang = de\n");
    home.write(SYSTEM, "\n[/sw/pi/anna]\nlanguage = fr\n");
    assert_eq!(
        home.ok(&[
            "explain",
            "--spec",
            "station.spec.ini",
            "/sw/pi/anna/language"
        ]),
        "\
/sw/pi/anna/language = fr
  pattern  /sw/pi/%session%/language
  layer    session = anna
  proc     at run       option --language
  user     unset        HOME/user/milieu/milieu.ini
  system   wins     fr  HOME/system/milieu/milieu.ini:3
  system   no file      /etc/milieu.ini
  user     loses    de  HOME/user/milieu/milieu.ini:2  (fallback /sw/pi/lang)
  system   unset        HOME/system/milieu/milieu.ini  (fallback /sw/pi/lang)
  system   no file      /etc/milieu.ini  (fallback /sw/pi/lang)
  default  loses    en  station.spec.ini:4
"
    );
    assert_eq!(
        home.ok(&["explain", "--user", "--json", "/sw/pi/lang"]),
        "{\"name\":\"/sw/pi/lang\",\"pattern\":null,\"layers\":{},\"via\":\"name\",\"namespace\":\"user\",\"state\":\"wins\",\"value\":\"de\",\
         \"file\":\"HOME/user/milieu/milieu.ini\",\"line\":2}\n"
    );
    assert_eq!(
        home.ok(&["get", "--spec", "station.spec.ini", "/sw/pi/ben/language"]),
        "de\n",
        "by the fallback"
    );
    let ran = home.run(&["explain", "--user", "/nothing"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        ran.out,
        "/nothing has no value\n  user     unset      HOME/user/milieu/milieu.ini\n"
    );
}

#[test]
fn a_specification_decides_which_values_are_allowed() {
    let home = Home::new("spec");
    home.write("station.spec.ini", SPECIFICATION);
    let spec = |verb: &str| -> Vec<String> {
        vec![
            verb.to_owned(),
            "--spec".to_owned(),
            "station.spec.ini".to_owned(),
        ]
    };
    let with = |verb: &str, rest: &[&str]| -> Vec<String> {
        spec(verb)
            .into_iter()
            .chain(rest.iter().map(|&text| text.to_owned()))
            .collect()
    };
    let run = |arguments: Vec<String>| {
        home.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(run(with("set", &["/sw/pi/port", "8081"])).code, Some(0));
    let ran = run(with("set", &["/sw/pi/port", "80"]));
    assert_eq!(ran.code, Some(3));
    assert_eq!(
        ran.err,
        "\
error: `/sw/pi/port`: `80` is out of range; give a number of 1024 to 65535 (rule check/range=1024-65535)
  --> station.spec.ini:12:1
   |
12 | check/range=1024-65535
   | ^^^^^^^^^^^^^^^^^^^^^^ by this rule
"
    );
    assert_eq!(home.ok(&["get", "/sw/pi/port"]), "8081\n");
    let ran = run(with("set", &["/sw/pi/prot", "8080"]));
    assert_eq!(ran.code, Some(3));
    assert_eq!(
        ran.err,
        "\
error: the specification has no key `/sw/pi/prot`
 --> station.spec.ini
  = help: did you mean `/sw/pi/port`?
"
    );
    assert_eq!(
        run(with("get", &["/sw/pi/anna/language"])).out,
        "en\n",
        "the default"
    );

    home.write(USER, "# by hand\n[/sw/pi]\nport = 80\n");
    let ran = run(with("get", &["/sw/pi/port"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""));
    assert_eq!(
        ran.err,
        "\
error: `/sw/pi/port`: `80` is out of range; give a number of 1024 to 65535 (rule check/range=1024-65535)
 --> HOME/user/milieu/milieu.ini:3:8
  |
3 | port = 80
  |        ^^ this value
  |
  = note: the rule is in station.spec.ini:12
"
    );
    let by_variable = home
        .command()
        .env("MILIEU_SPEC", "station.spec.ini")
        .args(["get", "/sw/pi/port"])
        .output();
    assert_eq!(home.ran(by_variable.unwrap()).code, Some(3));
    let unset = home
        .command()
        .env("MILIEU_SPEC", "")
        .args(["get", "/sw/pi/port"])
        .output();
    assert_eq!(home.ran(unset.unwrap()).out, "80\n");
    assert_eq!(
        run(with("set", &["/sw/pi/port", "2000"])).code,
        Some(0),
        "a bad value can be mended"
    );

    let text = home.fails(2, &["get", "--spec", "nowhere.ini", "/a"]);
    assert!(
        text.starts_with(
            "error: cannot read the specification: no such file or directory\n --> nowhere.ini\n"
        ),
        "{text}"
    );
    home.write("broken.spec.ini", "[/sw/pi/port\ntype=long\n");
    let text = home.fails(2, &["get", "--spec", "broken.spec.ini", "/a"]);
    assert!(text.contains("broken.spec.ini:1:"), "{text}");
}

#[test]
fn a_file_that_cannot_be_understood_is_shown_with_the_line() {
    let home = Home::new("broken");
    home.write(USER, "[/sw/pi]\nport = 80\nlangua");
    let expected = "\
error: this line is neither a key nor a section nor a comment
 --> HOME/user/milieu/milieu.ini:3:1
  |
3 | langua
  | ^^^^^^ no `=` here
  |
  = help: write `name = value`, or begin the line with `#` to make it a comment
";
    assert_eq!(home.fails(2, &["get", "/sw/pi/port"]), expected);
    assert_eq!(home.fails(2, &["set", "/sw/pi/port", "81"]), expected);
    assert_eq!(
        home.read(USER),
        "[/sw/pi]\nport = 80\nlangua",
        "nothing is written over what is not understood"
    );
}

#[test]
fn errors_name_place_and_remedy() {
    let home = Home::new("errors");
    assert_eq!(
        home.fails(2, &["get", "sw/pi"]),
        "\
error: a name starts with `/`
 --> the command line:1:1
  |
1 | sw/pi
  | ^ here
  |
  = help: write `/sw/pi`
"
    );
    let text = home.fails(2, &["get", "/a\\q"]);
    assert!(
        text.starts_with("error: `\\q` is no escape\n --> the command line:1:3\n"),
        "{text}"
    );
    assert_eq!(
        home.fails(2, &["get", "--app", "../x", "/a"]),
        "\
error: `../x` is not the name of an application
 --> the name of the application
  = help: give the name of its folder below `~/.config`, such as `weather-station`
"
    );
    assert!(
        home.fails(2, &["get", "--user", "--system", "/a"])
            .contains("cannot be used with")
    );
    assert!(
        home.fails(2, &["frobnicate"])
            .contains("unrecognized subcommand")
    );
    let json = home.fails(2, &["get", "--json"]);
    assert!(
        json.starts_with(r#"{"severity":"error","code":null,"message":"the following required arguments were not provided:","#)
            && json.lines().count() == 1,
        "{json}"
    );
    let homeless = home
        .command()
        .env_clear()
        .args(["set", "/a", "1"])
        .output()
        .unwrap();
    assert_eq!(
        home.ran(homeless).err,
        "\
error: there is no folder for the user's settings: HOME is not set to an absolute path
 --> the environment
  = help: set HOME, or set XDG_CONFIG_HOME to the folder that holds the settings
"
    );
}

#[test]
fn when_writing_fails_the_old_state_stays() {
    let home = Home::new("full");
    let text: String = (0..200)
        .map(|number| format!("/key{number} = {number}\n"))
        .collect();
    home.write("full.ini", &text);
    home.write("plain", "");
    // A limit on the size of files does what a full disk does: it ends a write in the middle.
    let limited = Command::new("sh")
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 1; exec \"$0\" key set --file full.ini /new value")
        .arg(env!("CARGO_BIN_EXE_milieu"))
        .current_dir(&home.0)
        .output()
        .unwrap();
    let ran = home.ran(limited);
    assert_eq!(ran.code, Some(2));
    assert_eq!(
        ran.err,
        "\
error: cannot write the temporary file: file too large
 --> .full.ini.new
  = help: the file would be larger than this process may write; see `ulimit -f`
"
    );
    assert_eq!(home.read("full.ini"), text);
    assert!(!home.0.join(".full.ini.new").exists());
    assert_eq!(
        home.fails(2, &["set", "--file", "plain/a.ini", "/a", "1"]),
        "\
error: cannot read the file: not a directory
 --> plain/a.ini
  = help: a part of the path is a file and no folder; remove or rename it
"
    );
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let home = Home::new("pipe");
    let text: String = (0..20_000)
        .map(|number| format!("/a/long/name/of/a/key{number} = {number}\n"))
        .collect();
    home.write(USER, &text);
    let mut child = home
        .command()
        .arg("ls")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn output_that_is_no_terminal_has_no_colours() {
    let home = Home::new("colour");
    assert!(!home.fails(1, &["get", "/a"]).contains('\u{1b}'));
}

#[test]
fn two_processes_that_write_different_keys_lose_nothing() {
    let home = Home::new("together");
    home.write(USER, "# both write here\n[/first]\n\n[/second]\n");
    std::thread::scope(|scope| {
        for writer in ["first", "second"] {
            let home = &home;
            scope.spawn(move || {
                for number in 0..100 {
                    home.ok(&[
                        "set",
                        &format!("/{writer}/key{number}"),
                        &number.to_string(),
                    ]);
                }
            });
        }
    });
    let lines = |writer: &str| {
        (0..100)
            .map(|number| format!("key{number} = {number}\n"))
            .collect::<String>()
            + writer
    };
    let expected = format!(
        "# both write here\n[/first]\n{}[/second]\n{}",
        lines("\n"),
        lines("")
    );
    assert_eq!(home.read(USER), expected);
    let files: Vec<_> = fs::read_dir(home.0.join("user/milieu")).unwrap().collect();
    assert_eq!(
        files.len(),
        3,
        "the file, its lock and its history: {files:?}"
    );
}

#[test]
fn killed_writers_leave_whole_files_and_everything_confirmed() {
    let home = Home::new("killed");
    let padding = "x".repeat(200);
    let text: String = (0..500)
        .map(|number| format!("/padding/key{number} = {padding}\n"))
        .collect();
    home.write(USER, &text);
    let mut seed = 20_260_729_u64;
    let (mut confirmed, mut killed) = (Vec::new(), 0);
    // Grows after a kill and shrinks after a success, so that both are frequent
    // on any machine.
    let mut reach_us = 5_000_u64;
    for number in 0..120 {
        let key = format!("/key{number}");
        let mut child = home
            .command()
            .args(["set", &key, "value"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((seed >> 33) % reach_us));
        // SIGKILL, unless it has ended already.
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            confirmed.push(key);
            reach_us = reach_us * 10 / 11 + 100;
        } else {
            killed += 1;
            reach_us = reach_us * 11 / 10;
        }
        let ran = home.run(&["ls"]);
        assert_eq!(
            (ran.code, ran.err.as_str()),
            (Some(0), ""),
            "after {number} writers (seed {seed})"
        );
        let names: Vec<&str> = ran.out.lines().collect();
        assert_eq!(
            names
                .iter()
                .filter(|name| name.starts_with("/padding/"))
                .count(),
            500
        );
        for key in &confirmed {
            assert!(
                names.contains(&key.as_str()),
                "{key} was confirmed and is gone (seed {seed})"
            );
        }
    }
    assert!(
        killed > 0 && !confirmed.is_empty(),
        "{killed} were killed, {} were not",
        confirmed.len()
    );
    home.ok(&["set", "/last", "value"]);
    let files: Vec<_> = fs::read_dir(home.0.join("user/milieu")).unwrap().collect();
    assert_eq!(files.len(), 3, "the next writer clears up: {files:?}");
}

#[test]
fn a_real_shell_completes_verbs_options_and_names() {
    let home = Home::new("completion");
    home.write(
        "user/ws/ws.ini",
        "[/sw/pi]\nport = 1\n[/sw/pi/anna]\nlanguage = de\n",
    );
    // What bash does when the user presses the tabulator behind these words.
    let complete = |words: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_milieu")).parent().unwrap();
        let script = format!(
            "PATH={}:$PATH; source <(milieu completion bash)
            COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9
            COMP_LINE=\"${{COMP_WORDS[*]}}\"; COMP_POINT=${{#COMP_LINE}}
            $(complete -p milieu | sed 's/.*-F \\([^ ]*\\).*/\\1/') milieu \"${{COMP_WORDS[COMP_CWORD]}}\" ''
            printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            program.display()
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script])
            .env("XDG_CONFIG_HOME", home.0.join("user"))
            .current_dir(&home.0)
            .output()
            .unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        lines.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(complete("milieu key ex").contains(&"explain".to_owned()));
    assert!(complete("milieu key get --a").contains(&"--app".to_owned()));
    assert_eq!(complete("milieu key get --app ws /sw/"), ["/sw/pi/"]);
    assert_eq!(
        complete("milieu key get --app ws /sw/pi/"),
        ["/sw/pi/anna/", "/sw/pi/port"]
    );
    home.write(
        "s.ini",
        &SPECIFICATION.replace("default=8080", "default=8080\n[/sw/on]\ntype=boolean"),
    );
    let set = "milieu key set --app=ws --spec s.ini";
    let values = |words: &str| {
        let mut all = complete(&format!("{set} {words}"));
        // Where nothing is written yet, options fit as well.
        all.retain(|word| !word.starts_with("--"));
        all
    };
    assert_eq!(values("/sw/pi/anna/language ''"), ["de", "en", "fr"]);
    assert_eq!(values("/sw/pi/%/language d"), ["de"]);
    assert_eq!(values("/sw/on ''"), ["true", "false"]);
    assert_eq!(values("/sw/pi/port ''"), [""; 0]);
    // Names of other verbs, and names that only the specification knows.
    assert_eq!(
        complete("milieu key explain --spec s.ini --app ws /sw/pi/p"),
        ["/sw/pi/port"]
    );
    assert_eq!(
        complete("milieu key rm --file user/ws/ws.ini /sw/pi/port /sw/pi/a"),
        ["/sw/pi/anna/"]
    );
}

#[test]
fn elements_of_an_array_keep_its_rules_and_its_size() {
    let home = Home::new("arrays");
    let specification = "[/hosts/#]\narray/min=1\narray/max=3\ncheck/length=1-5\n";
    fs::write(home.0.join("s.ini"), specification).unwrap();
    let with = |verb: &str, rest: &[&str]| {
        let arguments = [&[verb, "--file", "c.ini", "--spec", "s.ini"], rest].concat();
        home.run(&arguments)
    };
    for (element, value) in [("/hosts/#0", "a"), ("/hosts/#1", "b"), ("/hosts/#2", "c")] {
        assert_eq!(with("set", &[element, value]).code, Some(0));
    }
    let many = with("set", &["/hosts/#3", "d"]);
    assert_eq!(many.code, Some(3));
    assert!(
        many.err.contains("one too many for an array of at most 3"),
        "{}",
        many.err
    );
    assert!(many.err.contains("s.ini:3:1"), "{}", many.err);
    assert_eq!(with("set", &["/hosts/#1", "toolong"]).code, Some(3));
    assert_eq!(with("rm", &["/hosts/#2"]).code, Some(0));
    assert_eq!(with("rm", &["/hosts/#1"]).code, Some(0));
    let few = with("rm", &["/hosts/#0"]);
    assert_eq!(few.code, Some(3));
    assert!(few.err.contains("the array needs 1 or more"), "{}", few.err);
    assert_eq!(home.ok(&["ls", "--file", "c.ini"]), "/hosts/#0\n");
}
