//! From files, options and variables to contextual values.

use std::{ffi::OsString, fs};

use crate::support::Machine;
use milieu::{Array, Environment, Error, Milieu, Start, Text, keys::options::Program};

milieu::layer! { struct Session(String) = "session"; }

/// The whole of it.
#[derive(Environment, Debug)]
#[environment(root = "/sw/hello")]
struct Settings {
    /// The language of the greeting.
    #[key("%session%/language", default = "en", opt = 'l', opt/long = "language", env = ["HELLO_LANGUAGE"], check/length = "2-5")]
    language: Text,
    /// How often to greet.
    #[key("times", default = 1, range = "1-10", opt/long = "times")]
    times: u32,
}

const LANGUAGE: &str = "/sw/hello/%/language";

#[test]
fn the_first_source_that_has_a_value_wins() {
    let file = |value: &str| format!("{LANGUAGE} = {value}\n");
    let variables: &[(&str, &str)] = &[("HELLO_LANGUAGE", "fr")];
    // From the weakest to the strongest, each with what was there before.
    let mut machine = Machine::new();
    let language = |machine: &Machine, arguments: &[&str], variables| {
        let milieu = machine.open_with::<Settings>(arguments, variables).unwrap();
        let cx = milieu.context::<Settings>().unwrap();
        let origin = cx.origin::<at::language>().map(ToString::to_string);
        (cx.language.to_string(), origin.unwrap_or_default())
    };
    assert_eq!(language(&machine, &[], &[]), ("en".into(), String::new()));

    machine = machine.system(&file("es"));
    let (value, origin) = language(&machine, &[], &[]);
    assert_eq!(value, "es");
    assert!(origin.ends_with("xdg/hello/hello.ini:1"), "{origin}");

    machine = machine.user(&format!("# mine\n{}", file("it")));
    let (value, origin) = language(&machine, &[], &[]);
    assert_eq!(value, "it");
    assert!(origin.ends_with("home/hello/hello.ini:2"), "{origin}");

    let variable = ("fr".to_owned(), "variable HELLO_LANGUAGE".to_owned());
    assert_eq!(language(&machine, &[], variables), variable);

    let option = ("de".to_owned(), "option --language".to_owned());
    assert_eq!(language(&machine, &["--language=de"], variables), option);
    assert_eq!(language(&machine, &["-l", "de"], variables).1, "option -l");
}

#[test]
fn a_value_of_a_session_comes_from_a_file() {
    let machine = Machine::new().user("[/sw/hello/anna]\nlanguage = de\n");
    let mut cx = machine.open().context::<Settings>().unwrap();
    assert!(cx.is_default::<at::language>());
    let cx = cx.enter(Session("anna".into()));
    assert_eq!(cx.language, "de");
    let origin = cx.origin::<at::language>().unwrap().to_string();
    assert!(origin.ends_with("hello.ini:2"), "{origin}");
}

#[test]
fn files_of_the_program_are_the_last_of_the_cascade() {
    let machine = Machine::new().user("[/sw/hello/anna]\nlanguage = de\n");
    let ours = tempfile::tempdir().unwrap();
    let [first, second] = ["first.ini", "second.ini"].map(|name| ours.path().join(name));
    fs::write(
        &first,
        "[/sw/hello/anna]\nlanguage = fr\n[/sw/hello/ben]\nlanguage = fr\n",
    )
    .unwrap();
    fs::write(
        &second,
        "[/sw/hello]\ntimes = 4\n[/sw/hello/ben]\nlanguage = es\n",
    )
    .unwrap();
    let milieu = machine.open();
    milieu.defaults(&[&first, &second]).unwrap();
    let mut cx = milieu.context::<Settings>().unwrap();
    let mut language = |who: &str| {
        cx.sync();
        cx.with(Session(who.into()), |cx| {
            (cx.language.to_string(), cx.times)
        })
    };
    assert_eq!(language("anna"), ("de".into(), 4));
    assert_eq!(language("ben"), ("fr".into(), 4));

    // What is wrong changes nothing.
    let missing = milieu
        .defaults(&[&ours.path().join("none.ini")])
        .unwrap_err();
    assert!(missing.to_string().contains("none.ini"), "{missing}");
    fs::write(&first, "[/sw/hello]\ntimes = 40\n").unwrap();
    let wrong = milieu.defaults(&[&first]).unwrap_err().to_string();
    assert!(
        wrong.contains("first.ini:2") && wrong.contains("1-10"),
        "{wrong}"
    );
    assert_eq!(language("ben"), ("fr".into(), 4));

    // Those that were read before go, and nobody persists any.
    milieu.defaults(&[&second]).unwrap();
    assert_eq!(language("ben"), ("es".into(), 4));
    milieu.persist().unwrap();
    assert!(!machine.text().contains("es"), "{}", machine.text());
}

#[test]
fn what_the_program_assigns_comes_from_nobody_else() {
    let machine = Machine::new().user("/sw/hello/times = 2\n");
    let mut cx = machine.open().context::<Settings>().unwrap();
    cx.set::<at::times>(3).unwrap();
    assert!(cx.origin::<at::times>().is_none());
    assert!(!cx.is_default::<at::times>());
    cx.unset::<at::times>();
    assert!(cx.is_default::<at::times>());
}

#[test]
fn a_wrong_value_is_reported_also_where_an_option_hides_it() {
    let machine = Machine::new()
        .user("/sw/hello/times = 99\n")
        .system("# ours\n/sw/hello/times = often\n");
    let milieu = machine.open_with::<Settings>(&["--times=2"], &[]).unwrap();
    let error = milieu.context::<Settings>().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines[0].contains("home/hello/hello.ini:1: /sw/hello/times: `99`"));
    assert!(lines[1].contains("xdg/hello/hello.ini:2: /sw/hello/times: `often`"));
}

#[test]
fn a_value_out_of_range_names_file_line_rule_value_and_way_out() {
    let machine = Machine::new().user("# mine\n\n[/sw/hello]\ntimes = 99\n%/language = x\n");
    let error = machine.open().context::<Settings>().err().unwrap();
    let file = machine.user_file().display().to_string();
    let text = error.to_string();
    let [first, second] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("one line for each key: {text}");
    };
    assert!(first.starts_with(&format!("{file}:5: /sw/hello/%/language: `x` ")));
    assert_eq!(
        second,
        format!(
            "{file}:4: /sw/hello/times: `99` is out of range; give a number of 1 to 10 \
             (rule range=1-10)"
        )
    );
}

#[test]
fn a_program_that_returns_an_error_from_main_shows_it_readably() {
    let machine = Machine::new().user("/sw/hello/times = many\n");
    let error = machine.open().context::<Settings>().err().unwrap();
    assert_eq!(format!("Error: {error:?}"), format!("Error: {error}"));
    // Several lines begin below `Error: `.
    let machine = Machine::new().user("[/sw/hello\ntimes = 1\n");
    let error = Milieu::builder("hello")
        .locations(machine.locations())
        .start()
        .unwrap_err();
    assert_eq!(format!("{error:?}"), format!("\n{error}"));
    let text = error.to_string();
    let place = format!("{}:1:", machine.user_file().display());
    assert!(text.contains(&place) && text.contains("help: "), "{text}");
}

#[test]
fn a_wrong_option_is_an_error_before_any_file_is_read() {
    // The file is broken too, but nobody looks.
    let machine = Machine::new().user("[/sw\n");
    for (arguments, expected) in [
        (
            ["--times=99"],
            "option --times: `99` is out of range; give a number of 1 to 10",
        ),
        (["--times=x"], "option --times: `x`"),
        (["--tmes=3"], "--times"),
    ] {
        let error = machine.open_with::<Settings>(&arguments, &[]).unwrap_err();
        assert!(matches!(error, Error::Options(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = machine
        .open_with::<Settings>(&[], &[("HELLO_LANGUAGE", "x")])
        .unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("variable HELLO_LANGUAGE: "), "{text}");
}

fn said(arguments: &[&str]) -> String {
    let program = Program::new("hello").version("1.2").description("Greets.");
    let arguments = arguments.iter().map(OsString::from).collect();
    let machine = Machine::new();
    let builder = Milieu::builder("hello")
        .locations(machine.locations())
        .arguments::<Settings>(program, arguments, |_| None);
    match builder.start().unwrap() {
        Start::Say(text) => text,
        Start::Run(_) => panic!("it runs"),
    }
}

#[test]
fn help_and_version_are_said_and_nothing_is_opened() {
    assert_eq!(
        said(&["--help"]),
        "\
Usage: hello [OPTION]...

Greets.

Options:
  -l, --language=LANGUAGE  The language of the greeting. [default: en]
      --times=TIMES        How often to greet. [range: 1-10; default: 1]
  -h, --help               show this help and exit
      --version            show the version and exit

Environment:
  HELLO_LANGUAGE  used if --language is not given
"
    );
    assert_eq!(said(&["--version"]), "hello 1.2\n");
}

/// The specification of the paper's section III-G.
mod version {
    milieu::environment! { "
        [/version]
        type=boolean
        readonly
        opt=-V
    " }
}

#[test]
fn an_option_of_the_paper_sets_a_read_only_value() {
    use version::{Environment, at};
    let open = |arguments: &[&str]| {
        let milieu = Machine::new().open_with::<Environment>(arguments, &[]);
        milieu.unwrap().context::<Environment>().unwrap()
    };
    assert!(!open(&[]).version);
    let cx = open(&["-V"]);
    assert!(cx.version);
    let origin = cx.origin::<at::version>().unwrap();
    assert_eq!(origin.to_string(), "option -V");
    let help = version::options("version").help::<&str>(&[]);
    assert!(help.contains("\n  -V"), "{help}");
}

/// The markers of `Server` stand in a module of their own.
mod server {
    use milieu::{Environment, Text};

    #[derive(Environment)]
    pub struct Server {
        #[key("/server/port", require, opt/long = "port", env = ["PORT"])]
        pub port: u16,
        #[key("/server/%zone%/name", require)]
        pub name: Text,
    }
}

#[test]
fn a_required_array_has_an_element() {
    #[derive(Environment, Debug)]
    #[environment(root = "/sw/hello", at = of_required)]
    struct Required {
        #[key("%session%/hosts/#", require, env = ["HOSTS"], array/min = 2)]
        hosts: Array<Text>,
    }
    let machine = Machine::new();
    let error = machine
        .open()
        .context::<Required>()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/sw/hello/%session%/hosts/#: nobody gives it a value"),
        "{error}"
    );
    let milieu = machine
        .open_with::<Required>(&[], &[("HOSTS", "a:b")])
        .unwrap();
    let cx = milieu.context::<Required>().unwrap();
    assert_eq!(cx.hosts, ["a", "b"]);
    assert_eq!(
        cx.origin::<of_required::hosts>().unwrap().to_string(),
        "variable HOSTS"
    );
    let machine = machine.user("/sw/hello/anna/hosts/#0 = c\n");
    let error = machine
        .open()
        .context::<Required>()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("hello.ini:1: /sw/hello/anna/hosts/#: `1` is too small"),
        "{error}"
    );
}

#[test]
fn a_required_value_that_nobody_gives_is_an_error_with_the_ways_out() {
    use server::Server;
    let machine = Machine::new();
    let milieu = machine.open();
    let error = milieu.context::<Server>().err().unwrap();
    let file = machine.user_file();
    assert_eq!(
        error.to_string(),
        format!(
            "/server/port: nobody gives it a value, and somebody has to (rule require); \
             give option --port, or set variable PORT, or write it into {0}\n\
             /server/%zone%/name: nobody gives it a value, and somebody has to (rule require); \
             write it into {0}",
            file.display()
        )
    );
    // Whoever gives it, and under whatever layer.
    milieu
        .coordinator()
        .assign("/server/eu/name", "x", None)
        .unwrap();
    milieu
        .coordinator()
        .assign("/server/port", "80", None)
        .unwrap();
    assert_eq!(milieu.context::<Server>().unwrap().port, 80);
    let machine = Machine::new().system("/server/%/name = x\n");
    let milieu = machine.open_with::<Server>(&["--port=80"], &[]).unwrap();
    assert_eq!(milieu.context::<Server>().unwrap().name, "x");
}

#[test]
fn without_a_home_a_program_runs_and_only_persisting_fails() {
    let mut locations = Machine::new().locations();
    locations.user = None;
    let Start::Run(milieu) = Milieu::builder("hello")
        .locations(locations)
        .start()
        .unwrap()
    else {
        panic!("nobody asked for help");
    };
    let mut cx = milieu.context::<Settings>().unwrap();
    assert!(milieu.persist().unwrap().names.is_empty());
    cx.set::<at::times>(3).unwrap();
    let error = milieu.persist().unwrap_err().to_string();
    assert!(error.contains("HOME"), "{error}");
    assert_eq!(cx.times, 3);
}

#[test]
fn an_application_needs_a_name() {
    let error = Milieu::open("a/b").unwrap_err().to_string();
    assert!(
        error.contains("`a/b` is not the name of an application"),
        "{error}"
    );
}
