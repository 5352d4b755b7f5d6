//! Command lines and environments: what they give, and what is said when they
//! are not as they should be.

use milieu_keys::options::{Argument, Position, Program};
use milieu_keys::{Namespace, OptionError, Options, Parsed};
use std::ffi::OsString;
use std::fmt::Write;

/// Metadata with the name of its key: `/x | opt=x | type=short`.
fn keys(text: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    text.lines()
        .map(|line| line.split('|').map(str::trim))
        .filter_map(|mut parts| {
            let name = parts.next().filter(|name| !name.is_empty())?;
            let metadata = parts.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            Some((name, metadata.collect()))
        })
        .collect()
}

fn try_options(program: Program, text: &str) -> Result<Options, String> {
    let keys = keys(text);
    let keys = keys.iter().map(|(name, metadata)| (*name, &metadata[..]));
    Options::new(program, keys).map_err(|error| error.to_string())
}

fn options(text: &str) -> Options {
    try_options(Program::new("app").version("1.2"), text).unwrap()
}

fn parse(options: &Options, line: &str) -> Result<Parsed, OptionError> {
    // `A=1 B=2 $ arguments`, as in a shell; `'` quotes nothing.
    let (variables, arguments) = line.split_once('$').unwrap_or(("", line));
    let variables: Vec<(&str, &str)> = variables
        .split_whitespace()
        .map(|pair| pair.split_once('=').unwrap())
        .collect();
    let variable = |name: &str| {
        let found = variables.iter().find(|(given, _)| *given == name);
        found.map(|&(_, value)| OsString::from(value))
    };
    options.parse(arguments.split_whitespace().map(OsString::from), variable)
}

/// `/a=1 (option -a), /b=2 (variable B)`, or the help, or the error.
fn outcome(options: &Options, line: &str) -> String {
    match parse(options, line) {
        Ok(Parsed::Keys(keys)) => keys
            .iter()
            .map(|key| {
                assert_eq!(key.namespace(), Namespace::Proc);
                format!("{}={} ({})", key.name(), key.value(), key.origin())
            })
            .collect::<Vec<_>>()
            .join(", "),
        Ok(Parsed::Help(_)) => "help".to_owned(),
        Ok(Parsed::Version(text)) => text,
        Err(error) => error.to_string(),
    }
}

const TOOL: &str = "
    /a      | opt=a | opt/arg=none | type=boolean
    /b      | opt=-b | opt/long=bee | type=boolean
    /c      | opt=c | opt/arg=none | opt/flagvalue=blue
    /o      | opt=o | opt/long=out | opt/long/#0=output
    /port   | opt/#0=p | opt/#1=P | opt/long=port | type=unsigned_short | env=PORT | env/#0=APP_PORT
    /colour | opt=C | opt/long=colour | opt/arg=optional | opt/flagvalue=always | check/enum=always,never
    /%l%/x  | opt/long=ex
    /inc/#  | opt=I | opt/long=include | array/max=12 | env=INCLUDE
    /secret | opt/long=secret | opt/hidden
    /lines  | env=LINES | type=long | range=1-99
    /time   | opt/long=timeout | type=long | check/unit=time
    /other  | description=not an option
    /from   | args=indexed | args/index=0
    /to     | args=indexed | args/index=1 | type=long
";

#[test]
fn command_lines_and_environments() {
    let tool = options(TOOL);
    for (line, expected) in [
        ("", ""),
        ("-a", "/a=true (option -a)"),
        (
            "-abc",
            "/a=true (option -a), /b=true (option -b), /c=blue (option -c)",
        ),
        ("-b", "/b=true (option -b)"),
        ("--bee=no", "/b=false (option --bee)"),
        (
            "--bee=off -a",
            "/a=true (option -a), /b=false (option --bee)",
        ),
        ("-oVALUE", "/o=VALUE (option -o)"),
        ("-o VALUE", "/o=VALUE (option -o)"),
        ("-aoVALUE", "/a=true (option -a), /o=VALUE (option -o)"),
        ("-o -a", "/o=-a (option -o)"),
        ("-o --", "/o=-- (option -o)"),
        ("--out=VALUE", "/o=VALUE (option --out)"),
        ("--out=", "/o= (option --out)"),
        ("--out=a=b", "/o=a=b (option --out)"),
        ("--output VALUE", "/o=VALUE (option --output)"),
        ("-P 80", "/port=80 (option -P)"),
        ("--port 0080", "/port=80 (option --port)"),
        ("--colour", "/colour=always (option --colour)"),
        ("--colour=never", "/colour=never (option --colour)"),
        (
            "-C never",
            "/colour=always (option -C), /from=never (argument FROM)",
        ),
        ("--ex=1", "/%/x=1 (option --ex)"),
        ("--secret x", "/secret=x (option --secret)"),
        ("--timeout=2min", "/time=120 (option --timeout)"),
        (
            "-I a --include=b -Ic",
            "/inc/#0=a (option -I), /inc/#1=b (option --include), /inc/#2=c (option -I)",
        ),
        (
            "-x1",
            "option -x in -x1: there is no such option; see `app --help`",
        ),
        // Arguments.
        ("one 2", "/from=one (argument FROM), /to=2 (argument TO)"),
        (
            "one -a 2",
            "/a=true (option -a), /from=one (argument FROM), /to=2 (argument TO)",
        ),
        ("-- -a", "/from=-a (argument FROM)"),
        ("- -2", "/from=- (argument FROM), /to=-2 (argument TO)"),
        (
            "a 1 b",
            "argument b: only 2 arguments are expected; see `app --help`",
        ),
        (
            "-- a -- b",
            "argument b: only 2 arguments are expected; see `app --help`",
        ),
        // Variables.
        ("PORT=1 APP_PORT=2 $", "/port=1 (variable PORT)"),
        ("PORT= APP_PORT=2 $", "/port=2 (variable APP_PORT)"),
        ("PORT=x $ -p 3", "/port=3 (option -p)"),
        (
            "INCLUDE=a:b $",
            "/inc/#0=a (variable INCLUDE), /inc/#1=b (variable INCLUDE)",
        ),
        ("INCLUDE=a:b $ -I c", "/inc/#0=c (option -I)"),
        ("LINES=24 COLUMNS=x $", "/lines=24 (variable LINES)"),
        // Help and version.
        ("-h", "help"),
        ("-ah", "help"),
        ("--port=x --help", "help"),
        ("--version", "app 1.2\n"),
        ("-- --help", "/from=--help (argument FROM)"),
        // Errors.
        (
            "--port",
            "option --port: its argument is missing; write `--port=PORT`",
        ),
        ("-ap", "option -p: its argument is missing; write `-p PORT`"),
        (
            "--prot 80",
            "option --prot: there is no such option; did you mean `--port`?",
        ),
        (
            "--hlep",
            "option --hlep: there is no such option; did you mean `--help`?",
        ),
        (
            "--zebra",
            "option --zebra: there is no such option; see `app --help`",
        ),
        (
            "--secrte=1",
            "option --secrte: there is no such option; see `app --help`",
        ),
        (
            "-port=80",
            "option -p: `ort=80` is not a whole number; give digits only, from 0 to 65535 (rule type=unsigned_short); did you mean `--port=80`?",
        ),
        (
            "-Output",
            "option -O in -Output: there is no such option; see `app --help`",
        ),
        (
            "-timeout",
            "option -t in -timeout: there is no such option; did you mean `--timeout`?",
        ),
        ("-z", "option -z: there is no such option; see `app --help`"),
        (
            "-aza",
            "option -z in -aza: there is no such option; see `app --help`",
        ),
        (
            "--help=me",
            "option --help: there is no such option; did you mean `--help`?",
        ),
        (
            "-p 1 --port=2",
            "option --port: the value is given a second time, after option -p; give it once",
        ),
        (
            "-bb",
            "option -b: the value is given a second time, after option -b; give it once",
        ),
        (
            "--port 80000",
            "option --port: `80000` does not fit unsigned_short; give a whole number from 0 to 65535 (rule type=unsigned_short)",
        ),
        (
            "--colour=maybe",
            "option --colour: `maybe` is not one of the texts allowed: always, never (rule check/enum=always,never)",
        ),
        (
            "LINES=100 $",
            "variable LINES: `100` is out of range; give a number of 1 to 99 (rule range=1-99)",
        ),
        (
            "a b",
            "argument TO: `b` is not a whole number; give digits only, from -2147483648 to 2147483647 (rule type=long)",
        ),
        (
            "INCLUDE=1:2:3:4:5:6:7:8:9:10:11:12:13 $",
            "variable INCLUDE: at most 12 values are allowed; give fewer",
        ),
    ] {
        assert_eq!(outcome(&tool, line), expected, "{line}");
    }
}

#[test]
fn a_flag_without_argument_takes_none() {
    let tool = options("/v | opt/long=verbose | opt/arg=none | type=boolean");
    assert_eq!(
        outcome(&tool, "--verbose=yes"),
        "option --verbose: it takes no argument; write `--verbose` alone"
    );
    assert_eq!(
        outcome(&tool, "x"),
        "argument x: no arguments are expected; see `app --help`"
    );
}

#[test]
fn elements_of_arrays_sort_in_order() {
    let tool = options("/x/# | args=remaining");
    let line = (0..12).fold(String::new(), |mut line, n| {
        write!(line, " {n}").unwrap();
        line
    });
    let Ok(Parsed::Keys(keys)) = parse(&tool, &line) else {
        panic!("{}", outcome(&tool, &line));
    };
    let values: Vec<usize> = keys
        .iter()
        .map(|key| key.value().parse().unwrap())
        .collect();
    assert_eq!(values, (0..12).collect::<Vec<_>>());
    assert!(keys.lookup("/x/#9").is_some() && keys.lookup("/x/#_11").is_some());
    let few = options("/x/# | opt=x | array/min=2");
    assert_eq!(outcome(&few, ""), "");
    assert_eq!(
        outcome(&few, "-x 1"),
        "option -x: 1 given, but at least 2 are needed; give more, or none"
    );
}

#[test]
fn a_value_comes_from_an_option_or_an_argument() {
    let tool = options("/file | opt=f | args=indexed | args/index=0 | env=FILE");
    assert_eq!(outcome(&tool, "FILE=v $ -f o"), "/file=o (option -f)");
    assert_eq!(outcome(&tool, "FILE=v $ a"), "/file=a (argument FILE)");
    assert_eq!(
        outcome(&tool, "-f o a"),
        "argument FILE: the value is given a second time, after option -f; give it once"
    );
}

#[test]
fn a_digit_may_be_an_option() {
    let tool = options("/n | opt=5 | opt/arg=none\n/x | args=indexed | args/index=0");
    assert_eq!(outcome(&tool, "-5"), "/n=1 (option -5)");
    assert_eq!(outcome(&tool, "-6.5"), "/x=-6.5 (argument X)");
}

#[test]
fn help_and_version_can_be_taken() {
    let tool = options(
        "/h | opt=h | opt/long=help | type=boolean\n/v | opt=V | opt/long=version | type=boolean",
    );
    assert_eq!(outcome(&tool, "-h"), "/h=true (option -h)");
    assert_eq!(outcome(&tool, "--help"), "/h=true (option --help)");
    assert_eq!(outcome(&tool, "--version"), "/v=true (option --version)");
    assert_eq!(
        outcome(&tool, "-x"),
        "option -x: there is no such option; see the manual of `app`"
    );
    // The specification of the paper (CoElektra, III-G).
    let paper = try_options(
        Program::new("app"),
        "/version | type=boolean | readonly | opt=-V",
    )
    .unwrap();
    assert_eq!(outcome(&paper, "-V"), "/version=true (option -V)");
    assert_eq!(
        outcome(&paper, "--version"),
        "option --version: there is no such option; see `app --help`"
    );
}

#[cfg(unix)]
#[test]
fn text_that_is_not_utf8_is_named() {
    use std::os::unix::ffi::OsStringExt;
    let tool = options("/x | opt=x | env=X");
    let bad = || OsString::from_vec(b"caf\xE9".to_vec());
    let error = tool
        .parse([OsString::from("-x"), bad()], |_| None)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument caf\u{fffd}: it is not UTF-8; write it in UTF-8"
    );
    let error = tool.parse([], |_| Some(bad())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "variable X: `caf\u{fffd}` is not UTF-8; set it to text in UTF-8, or unset it"
    );
}

#[test]
fn what_is_wrong_with_a_secret_does_not_show_it() {
    let tool = options(
        "/password | opt/long=password | env=PASSWORD | secret | check/length=20-40
         /port | opt=p | type=short",
    );
    for line in [
        "--password=hunter2",
        "--password hunter2",
        "PASSWORD=hunter2 $",
        "-password=hunter2",
        "-xpassword=hunter2",
    ] {
        let error = outcome(&tool, line);
        assert!(
            !error.contains("hunter2") && !error.contains('7'),
            "{line}: {error}"
        );
    }
    assert_eq!(
        outcome(&tool, "-password=hunter2"),
        "option -p: `(secret)` breaks this rule; give one that keeps it (rule type=short); did you \
         mean `--password`?"
    );
}

#[cfg(unix)]
#[test]
fn a_secret_that_is_not_utf8_is_not_shown() {
    use std::os::unix::ffi::OsStringExt;
    let tool = options("/password | opt/long=password | env=PASSWORD | secret");
    let bad = || OsString::from_vec(b"hunter\xE9".to_vec());
    let given = tool.parse([OsString::from("--password"), bad()], |_| None);
    let set = tool.parse([], |_| Some(bad()));
    for error in [given.unwrap_err(), set.unwrap_err()] {
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
}

const KDB: &str = "
    /kdb              | command= | description=Reads and writes keys.
    /kdb/printversion | opt=v | opt/long=version | opt/arg=none | type=boolean
    /kdb/get          | command=get | description=Shows the value of a key.
    /kdb/get/verbose  | opt=v | opt/long=verbose | opt/arg=none | type=boolean | env=KDB_VERBOSE
    /kdb/get/keyname  | args=indexed | args/index=0 | require
    /kdb/setter       | command=set | description=Gives a key a value.
    /kdb/setter/verbose | opt=v | opt/long=verbose | opt/arg=none | type=boolean | env=KDB_VERBOSE
    /kdb/setter/now   | command=now
    /kdb/hidden       | command=hidden | opt/hidden
";

#[test]
fn subcommands() {
    let kdb = options(KDB);
    let none = "/kdb/get= (argument COMMAND), /kdb/hidden= (argument COMMAND), \
                /kdb/setter= (argument COMMAND), /kdb/setter/now= (argument COMMAND)";
    let get = "/kdb/hidden= (argument COMMAND), /kdb/setter= (argument COMMAND), \
               /kdb/setter/now= (argument COMMAND)";
    for (line, expected) in [
        ("", format!("/kdb= (argument COMMAND), {none}")),
        (
            "-v",
            format!("/kdb= (argument COMMAND), {none}").replace(
                "/kdb/setter=",
                "/kdb/printversion=true (option -v), /kdb/setter=",
            ),
        ),
        (
            "get -v name",
            format!(
                "/kdb=get (argument get), /kdb/get= (argument COMMAND), \
                 /kdb/get/keyname=name (argument KEYNAME), /kdb/get/verbose=true (option -v), {get}"
            ),
        ),
        // The key of the command gives the value, not what the user types.
        ("set", format!("/kdb=setter (argument set), {none}")),
        (
            "KDB_VERBOSE=1 $ set now",
            "/kdb=setter (argument set), /kdb/get= (argument COMMAND), \
             /kdb/hidden= (argument COMMAND), /kdb/setter=now (argument now), \
             /kdb/setter/now= (argument COMMAND), \
             /kdb/setter/verbose=true (variable KDB_VERBOSE)"
                .to_owned(),
        ),
        ("get --help", "help".to_owned()),
        (
            "gte",
            "command gte: there is no such command; did you mean `get`?".to_owned(),
        ),
        (
            "hiden",
            "command hiden: there is no such command; see `app --help`".to_owned(),
        ),
        (
            "set later",
            "command later: there is no such command; see `app set --help`".to_owned(),
        ),
        (
            "get --version",
            "option --version: there is such an option only before the command `get`; \
             see `app get --help`"
                .to_owned(),
        ),
        (
            "get a b",
            "argument b: only one argument is expected; see `app get --help`".to_owned(),
        ),
        (
            "-- get",
            "argument get: no arguments are expected; see `app --help`".to_owned(),
        ),
    ] {
        assert_eq!(outcome(&kdb, line), expected, "{line}");
    }
}

#[test]
fn an_unknown_command_may_be_dynamic() {
    let kdb = options(&format!("{KDB}\n/kdb/dynamic/# | args=remaining"));
    let given = outcome(&kdb, "custom -v -x z");
    let dynamic = "/kdb/dynamic/#0=custom (argument DYNAMIC), /kdb/dynamic/#1=-v (argument DYNAMIC), \
                   /kdb/dynamic/#2=-x (argument DYNAMIC), /kdb/dynamic/#3=z (argument DYNAMIC)";
    assert!(given.contains(dynamic), "{given}");
}

#[test]
fn the_program_needs_no_key_of_its_own() {
    let tool = options(
        "/sw/add | command=add\n/sw/add/all | opt=a | type=boolean\n/sw/q | opt=q | type=boolean",
    );
    assert_eq!(
        outcome(&tool, "-q add -a"),
        "/sw/add= (argument COMMAND), /sw/add/all=true (option -a), /sw/q=true (option -q)"
    );
    assert_eq!(tool.synopsis(&["add"]), "app add [OPTION]...");
}

#[test]
fn declarations_that_cannot_be_meant() {
    for (keys, expected) in [
        (
            "/a | opt=x\n/b | opt=x",
            "key /b: metadata `opt=x`: /a has this option already",
        ),
        (
            "/a | opt=x | opt/#0=x",
            "key /a: metadata `opt=x`: /a has this option already",
        ),
        (
            "/a | opt/long=x\n/b | opt/long/#0=x",
            "key /b: metadata `opt/long=x`: /a has",
        ),
        (
            "/a | opt=xy",
            "key /a: metadata `opt=xy`: an option is one character",
        ),
        (
            "/a | args=remaining",
            "key /a: metadata `args=remaining`: one value cannot take",
        ),
        (
            "/a/# | args=indexed | args/index=0",
            "key /a/#: metadata `args=indexed`: an array",
        ),
        (
            "/a | args=indexed | args/index=1",
            "no key of the command takes the argument 0",
        ),
        (
            "/a | args=indexed | args/index=0\n/b | args=indexed | args/index=0",
            "key /b: metadata `args/index=0`: /a takes the same already",
        ),
        (
            "/a/# | args=remaining\n/b/# | args=remaining",
            "/a/# takes the same already",
        ),
        (
            "/a | command=\n/b | command=",
            "key /b: metadata `command=`: another key",
        ),
        (
            "/a | command=x\n/b | command=x",
            "key /b: metadata `command=x`: /a is a command",
        ),
        (
            "/a | command=x\n/a | command=x",
            "key /a: metadata `command=x`: /a is a command",
        ),
        ("/a | command=x y", "nobody can call a command"),
        ("/a | command=x | type=boolean", "make it `type=string`"),
        (
            "/a | opt=a | opt/arg=none | range=5-6",
            "give `opt/flagvalue` a value",
        ),
        ("/a | opt=a | type=lnog", "did you mean `long`?"),
        ("a | opt=a", "a name starts with `/`"),
    ] {
        let error = try_options(Program::new("app"), keys).expect_err(keys);
        assert!(error.contains(expected), "{keys}: {error}");
    }
    // In different commands the same option may mean different things.
    options("/a | opt=x\n/c | command=c\n/c/a | opt=x");
}

const STATION: &str = "
    /sw/station/config  | opt=c | opt/long=config | opt/arg/name=FILE | description=read this file instead of the usual ones
    /sw/station/port    | opt=p | opt/long=port | type=unsigned_short | default=8080 | env=STATION_PORT | env/#0=PORT | opt/help=listen on this port of the loopback interface; 0 lets the system choose one that is free | description=A long text for the manual.
    /sw/station/speed   | opt/long=replay-speed-of-the-recorded-year | type=double | default=1 | unit=days/s | check/range=0-100 | description=how fast the recorded year is replayed
    /sw/station/colour  | opt/long=colour | opt/arg=optional | opt/flagvalue=always | type=enum | check/enum=always,never,auto | default=auto | opt/arg/name=WHEN | opt/arg/help=when to use colour | description=colour the page
    /sw/station/verbose | opt=v | opt/long=verbose | type=boolean | default=false | description=say more
    /sw/station/quiet   | opt=q | type=boolean
    /sw/station/secret  | opt/long=secret | opt/hidden | env=SECRET
    /sw/station/home    | env=STATION_HOME | description=where the station keeps its files | default=~/station
    /sw/station/sensors/# | args=remaining | opt/arg/name=SENSOR | description=the sensors to show
";

#[test]
fn help_text() {
    let program = || {
        Program::new("weather-station")
            .version("0.1.0")
            .description("Shows the weather of this machine on a page of its own, and of one year that was recorded.")
    };
    let station = try_options(program(), STATION).unwrap();
    let Ok(Parsed::Help(text)) = parse(&station, "--help") else {
        panic!("help was asked for");
    };
    let expected = "\
Usage: weather-station [OPTION]... [SENSOR]...

Shows the weather of this machine on a page of its own, and of one year that was
recorded.

Arguments:
  SENSOR...  the sensors to show

Options:
  -c, --config=FILE    read this file instead of the usual ones
  -p, --port=PORT      listen on this port of the loopback interface; 0 lets the
                       system choose one that is free [default: 8080]
      --replay-speed-of-the-recorded-year=SPEED
                       how fast the recorded year is replayed [range: 0-100;
                       unit: days/s; default: 1]
      --colour[=WHEN]  colour the page; WHEN: when to use colour [one of:
                       always, never, auto; default: auto]
  -v, --verbose        say more
  -q
  -h, --help           show this help and exit
      --version        show the version and exit

Environment:
  STATION_PORT  used if --port is not given
  PORT          used if STATION_PORT is not set
  STATION_HOME  where the station keeps its files [default: ~/station]
";
    assert_eq!(text, expected);
    assert_eq!(station.help::<&str>(&[]), text);
    for width in [0, 1, 20, 40, 60, 120] {
        let narrow = station.clone().with_width(width).help::<&str>(&[]);
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&narrow), words(&text), "no word is lost");
        // Only what cannot be broken may stick out.
        if width >= 60 {
            assert!(narrow.lines().all(|line| line.chars().count() <= width));
        }
    }
}

#[test]
fn help_of_commands() {
    let kdb = options(&KDB.replace("opt=v | opt/long=version", "opt=V"));
    let expected = "\
Usage: app [OPTION]... [COMMAND]

Reads and writes keys.

Options:
  -V
  -h, --help     show this help and exit
      --version  show the version and exit

Commands:
  get  Shows the value of a key.
  set  Gives a key a value.
";
    assert_eq!(kdb.help::<&str>(&[]), expected);
    let expected = "\
Usage: app get [OPTION]... KEYNAME

Shows the value of a key.

Arguments:
  KEYNAME

Options:
  -v, --verbose
  -h, --help     show this help and exit

Environment:
  KDB_VERBOSE  used if --verbose is not given
";
    assert_eq!(kdb.help(&["get"]), expected);
    let Ok(Parsed::Help(text)) = parse(&kdb, "get x -h") else {
        panic!("help was asked for");
    };
    assert_eq!(text, expected);
    assert_eq!(kdb.synopsis(&["set", "now"]), "app set now [OPTION]...");
}

#[test]
fn the_table_can_be_walked() {
    let station = try_options(Program::new("station"), STATION).unwrap();
    let port = &station.entries()[1];
    assert_eq!(port.pattern().as_str(), "/sw/station/port");
    assert_eq!(
        (port.short(), port.long()),
        (&['p'][..], &["port".to_owned()][..])
    );
    assert_eq!(
        (port.argument(), port.placeholder()),
        (Argument::Required, "PORT")
    );
    assert_eq!(port.variables(), ["STATION_PORT", "PORT"]);
    assert_eq!(port.rules().default(), Some("8080"));
    assert_eq!(port.notes(), ["default: 8080"]);
    let colour = &station.entries()[3];
    assert_eq!(colour.argument(), Argument::Optional);
    assert_eq!(colour.argument_help(), Some("when to use colour"));
    assert!(station.entries().iter().any(|entry| entry.hidden()));
    let sensors = station.entries().last().unwrap();
    assert_eq!(sensors.position(), Some(Position::Remaining));
    assert!(sensors.is_array());
    let kdb = options(KDB);
    let paths: Vec<String> = kdb.commands().map(|(path, _)| path.join(" ")).collect();
    assert_eq!(paths, ["", "get", "set", "set now", "hidden"]);
    assert_eq!(kdb.entries_of(&["get"]).count(), 2);
    assert_eq!(
        kdb.commands().nth(1).unwrap().1.help(),
        Some("Shows the value of a key.")
    );
}

#[test]
fn help_cannot_steer_a_terminal() {
    let tool = options("/a\u{1b}[2J | opt=a | default=\u{7}x | description=ring\u{7}");
    let tool = tool.help::<&str>(&[]);
    assert!(
        !tool.contains(|c: char| c.is_control() && c != '\n'),
        "{tool:?}"
    );
    assert!(tool.contains("ring\\u{7} [default: \\u{7}x]"), "{tool}");
}

#[test]
fn no_command_line_makes_it_panic() {
    let tables = [options(TOOL), options(KDB), options(STATION)];
    let parts = [
        "-",
        "--",
        "=",
        "-p",
        "--port",
        "get",
        "set",
        "é",
        "\u{0}",
        "\u{1b}[2J",
        "-é",
        "--é=é",
        "",
        "-5",
        "-.5e9",
        "99999999999999999999999",
        "-abcC",
        "--colour",
        "#",
        "--=",
        "-=",
        "---",
        "h",
        "-v",
        "now",
    ];
    let mut random = 1_u64;
    for _ in 0..20_000 {
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        let line: Vec<OsString> = (0..next(6))
            .map(|_| {
                let joined: String = (0..=next(2)).map(|_| parts[next(parts.len())]).collect();
                OsString::from(joined)
            })
            .collect();
        let value = parts[next(parts.len())];
        let table = &tables[next(tables.len())];
        if let Err(error) = table.parse(line, |_| Some(OsString::from(value))) {
            let shown = error.to_string();
            assert!(!shown.contains(char::is_control), "{shown:?}");
        }
    }
}
