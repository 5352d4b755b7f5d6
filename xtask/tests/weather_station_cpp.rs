//! The weather station in C++ (`examples/weather-station-cpp`): built by CMake
//! from an installed tree, driven as a browser does.

#[path = "support/station.rs"]
mod station;
mod support;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::{Duration, Instant},
};

use station::{Answer, PATIENCE, Station, World};
use support::{build, configure, defined, has, root, scratch, succeed, tree};

fn sessions_have_languages_that_survive_a_restart(program: &Path) {
    let world = World::new();
    let station = world.start(program, &[]);
    let anna = station.page("").cookie().expect("a visitor gets a session");
    let anna = format!("Cookie: a=b; {anna}; c=d\r\n");
    let ben = station
        .choose("ar", "")
        .cookie()
        .expect("whoever chooses has a session");
    let ben = format!("Cookie: {ben}\r\n");
    let chosen = station.choose("de", &anna);
    assert_eq!((chosen.status, chosen.cookie()), (303, None));

    let speaks = |station: &Station, who: &str, language: &str, word: &str| {
        let page = station.page(&format!("{who}Accept-Language: xx, fr-CH;q=0.5\r\n"));
        let html = format!("<html lang='{language}'");
        assert!(page.shows(&html) && page.shows(word), "{}", page.body);
    };
    let all = |station: &Station| {
        speaks(station, &anna, "de", "<title>Wetterstation");
        speaks(station, &ben, "ar' dir='rtl", "العربية");
        // Everybody else gets what the browser asks for.
        speaks(station, "", "fr", "Température");
    };
    all(&station);
    station.end();
    let file = world.read("home/weather-station/weather-station.ini");
    assert!(
        file.contains("language = de") && !file.contains("Wetterstation"),
        "{file}"
    );
    let station = world.start(program, &[]);
    all(&station);
    station.end();

    // Only the choice made last is kept.
    let station = world.start(program, &["--sessions=1"]);
    let carl = station.choose("es", "").cookie().unwrap();
    speaks(
        &station,
        &format!("Cookie: {carl}\r\n"),
        "es",
        "Temperatura",
    );
    speaks(&station, &anna, "fr", "Température");
    station.end();
    let file = world.read("home/weather-station/weather-station.ini");
    assert!(
        !file.contains("language = de") && file.contains("language = es"),
        "{file}"
    );
}

fn choices_are_forgotten_in_their_order_also_after_a_restart(program: &Path) {
    let world = World::new();
    let cookie = |digit: &str| {
        let id = digit.repeat(32);
        format!("Cookie: weather-station-session={id}\r\n")
    };
    let restarted_for = |arguments: &[&str], digits: &[&str]| {
        let station = world.start(program, arguments);
        for digit in digits {
            assert_eq!(station.choose("de", &cookie(digit)).status, 303);
        }
        station
    };
    // Neither in the order of their names nor in its opposite.
    restarted_for(&[], &["f", "8", "0"]).end();
    restarted_for(&[], &["8"]).end();
    let station = restarted_for(&["--sessions=2"], &["4"]);
    for (digit, is_known) in [("f", false), ("0", false), ("8", true), ("4", true)] {
        let page = station.page(&cookie(digit));
        assert_eq!(page.shows("<title>Wetterstation"), is_known, "{digit}");
    }
    station.end();
}

fn sensors_appear(program: &Path) {
    let world = World::new();
    let station = world.start(program, &[]);
    station.page_when("the machine", |page| {
        page.shows("id='load'>0.42<") && page.shows("id='battery'>80%<")
    });
    station.page_when("the weather", |page| {
        ["EWR", "JFK", "LGA", " °C</td>", " m/s</td>", " hPa</td>"]
            .iter()
            .all(|text| page.shows(text))
    });
    world.write("root/proc/loadavg", "1.25 0.36 0.30 1/234 5678\n");
    station.page_when("another load", |page| page.shows("id='load'>1.25<"));
    station.end();
}

fn a_low_battery_makes_it_do_less_and_an_empty_one_ends_it(program: &Path) {
    let world = World::new();
    let mut station = world.start(program, &[]);
    station.page_when("all points", |page| page.shows("data-points='48'"));
    assert!(station.page("").shows("content='1'"));
    world.battery(14, "Discharging");
    let page = station.page_when("a low battery", |page| page.shows("content='30'"));
    assert!(page.shows("data-points='12'"), "{}", page.body);
    world.battery(14, "Charging");
    station.page_when("a battery that is charged", |page| {
        page.shows("content='1'")
    });
    world.battery(1, "Discharging");
    assert_eq!(station.ended(), Some(0), "a stream ends it by the layer");
}

fn tampering_is_seen_by_every_thread(program: &Path) {
    let world = World::new();
    let station = world.start(program, &[]);
    let alarm = "<p role='alert'>Tampering detected</p>";
    assert!(!station.page("").shows(alarm));
    assert_eq!(world.read("watchdog"), "");
    world.write("pi/tamper.txt", "1\n");
    station.page_when("an alarm", |page| page.shows(alarm));
    // More at once than the pool has threads.
    std::thread::scope(|scope| {
        let ask = || scope.spawn(|| station.page("").shows(alarm));
        let asked: Vec<_> = (0..32).map(|_| ask()).collect();
        assert!(asked.into_iter().all(|page| page.join().unwrap()));
    });
    // The action of the layer makes the station careful, which the watchdog follows.
    station.page_when("the watchdog", |page| {
        page.shows("<code>/watchdog/A/enable")
    });
    let until = Instant::now() + PATIENCE;
    while world.read("watchdog").len() < 3 {
        assert!(Instant::now() < until, "the watchdog is told");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!world.read("watchdog").contains('V'));
    world.write("pi/tamper.txt", "0\n");
    station.page_when("its end", |page| {
        !page.shows(alarm) && !page.shows("id='watchdog'")
    });
    while !world.read("watchdog").ends_with('V') {
        assert!(Instant::now() < until, "the watchdog is let go");
        std::thread::sleep(Duration::from_millis(20));
    }
    // An alarm that was there before the station, and one that is there when it ends.
    world.write("pi/tamper.txt", "1\n");
    station.end();
    world.write("watchdog", "");
    let until = Instant::now() + PATIENCE;
    let station = world.start(program, &[]);
    station.page_when("the alarm of before", |page| page.shows("id='watchdog'"));
    // The page may know before the watchdog's thread does.
    while world.read("watchdog").is_empty() {
        assert!(
            Instant::now() < until,
            "the watchdog is told of the alarm of before"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    station.end();
    assert!(world.read("watchdog").ends_with('V'));
}

fn the_profile_says_what_is_watched(program: &Path) {
    let world = World::new();
    let station = world.start(program, &[]);
    let page = station.page("");
    assert!(
        page.shows("Hardware profile: elitebook <code>"),
        "{}",
        page.body
    );
    world.write("profile", "pi\0");
    station.signal("HUP");
    let page = station.page_when("another profile", |page| page.shows("Hardware profile: pi"));
    assert!(page.shows("gpio7"), "{}", page.body);
    world.write("pi/tamper.txt", "1\n");
    world.write("other/gpio7/value", "1\n");
    station.page_when("the tamper input of the profile", |page| {
        page.shows("role='alert'")
    });
    world.write("other/gpio7/value", "0\n");
    station.page_when("its end, whatever the other says", |page| {
        !page.shows("role='alert'")
    });
    // What others write into its settings it learns by itself, and keeps when it persists.
    let settings = "home/weather-station/weather-station.ini";
    let text = world.read(settings) + "[/hw/pi/pi/gpio]\ntamper = elsewhere\n";
    world.write(settings, &text);
    station.page_when("other settings", |page| page.shows("elsewhere"));
    station.choose("de", "");
    let kept = world.read(settings);
    assert!(
        kept.contains("elsewhere") && kept.contains("= de"),
        "{kept}"
    );
    fs::remove_file(world.at("profile")).unwrap();
    station.signal("HUP");
    station.page_when("no profile", |page| page.shows("No hardware profile"));
    station.end();
}

fn bad_requests_are_refused(program: &Path) {
    let world = World::new();
    let station = world.start(program, &["--patience=1"]);
    let long = "x".repeat(9000);
    for (request, status) in [
        (station.choose("xx", ""), 400),
        (station.choose("", ""), 400),
        (station.ask("POST", "/language", "", &long), 413),
        (station.ask("GET", "/language", "", ""), 404),
        (station.ask("GET", "/../../etc/passwd", "", ""), 404),
        (station.ask("DELETE", "/", "", ""), 404),
        (station.ask("GET", &format!("/{long}"), "", ""), 414),
    ] {
        assert_eq!(request.status, status, "{}", request.body);
        assert!(request.body.ends_with('\n') && request.cookie().is_none());
    }
    // A cookie that is not one of ours is no session, and never a name.
    for cookie in ["", "../../x", "%", &"A".repeat(32), &"0".repeat(33)] {
        let headers = format!("Cookie: weather-station-session={cookie}\r\n");
        assert!(station.page(&headers).cookie().is_some(), "{cookie}");
    }
    for garbage in [
        &b"\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"GET / HTTP/1.1\r\nHo",
    ] {
        let answer = station.raw(garbage);
        assert!(!answer.contains(" 200 "), "{garbage:?}: {answer}");
    }
    assert!(
        !world
            .read("home/weather-station/weather-station.ini")
            .contains("language")
    );
    station.page("");
    station.end();
}

fn it_ends_whatever_clients_do_and_says_what_is_wrong(program: &Path) {
    let world = World::new();
    let station = world.start(program, &["--patience=1"]);
    let idle = TcpStream::connect(&station.address).unwrap();
    let mut half = TcpStream::connect(&station.address).unwrap();
    half.write_all(b"POST /language HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
        .unwrap();
    let port = station.address.rsplit(':').next().unwrap().to_owned();
    let (code, said) = world.refused(program, &[&format!("--port={port}")]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&port) && said.contains("--port"), "{said}");
    station.signal("INT");
    let mut station = station;
    assert_eq!(station.ended(), Some(0));
    drop((idle, half));
}

fn it_ends_in_good_order_while_requests_run(program: &Path) {
    let world = World::new();
    let mut station = world.start(program, &["--patience=1"]);
    let address = station.address.clone();
    let (is_asked, asked) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (is_asked, address) = (is_asked.clone(), &address);
            scope.spawn(move || {
                // Until nobody is there any more. What is answered is answered whole.
                while let Ok(mut stream) = TcpStream::connect(address) {
                    if stream.local_addr().ok() == stream.peer_addr().ok() {
                        // The port is free, and the system gave it to this end.
                        break;
                    }
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                    let mut answer = Vec::new();
                    let sent = stream.write_all(request);
                    // A connection that nobody has accepted is reset.
                    if sent.is_err()
                        || stream.read_to_end(&mut answer).is_err()
                        || answer.is_empty()
                    {
                        continue;
                    }
                    let answer = String::from_utf8_lossy(&answer);
                    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
                    assert!(answer.ends_with("</html>\n"), "{answer}");
                    let _ = is_asked.send(());
                }
            });
        }
        for _ in 0..32 {
            asked.recv_timeout(PATIENCE).expect("pages are served");
        }
        station.signal("TERM");
        assert_eq!(station.ended(), Some(0), "{}", world.read("said"));
    });
    assert_eq!(world.read("said"), "");
}

fn a_flow_file_is_read_again(program: &Path) {
    let world = World::new();
    let ours = root().join("examples/weather-station-cpp/station.flow");
    let ours = fs::read_to_string(ours).unwrap();
    let low_at = |percent: &str| {
        let other = format!("level_percent < {percent}");
        let text = ours.replace("level_percent < 15.0", &other);
        assert!(text.contains(&other));
        world.write("some.flow", &text);
    };
    low_at("15.0");
    world.battery(40, "Discharging");
    let flow = format!("--flow={}", world.at("some.flow").display());
    let station = world.start(program, &[&flow]);
    let is_low = |page: &Answer| page.shows("content='30'");
    station.page_when("the battery", |page| page.shows("id='battery'>40%<"));
    assert!(!is_low(&station.page("")));
    low_at("50.0");
    station.signal("HUP");
    station.page_when("another idea of low", is_low);

    // What is wrong is told with its place, and what was there before goes on.
    let mut before = world.read("said").len();
    for (flow, why) in [
        (Some("/tamper/contact | debuonce 20ms\n"), "some.flow:1:"),
        (Some("\u{1}"), "some.flow:1:"),
        (None, "some.flow: the file cannot be read"),
    ] {
        match flow {
            Some(text) => world.write("some.flow", text),
            None => fs::remove_file(world.at("some.flow")).unwrap(),
        }
        station.signal("HUP");
        let said = world.says(before, why);
        assert!(said.contains("it goes on as before"), "{said}");
        before += said.len();
        world.battery(60, "Discharging");
        station.page_when("a battery that is not low", |page| !is_low(page));
        world.battery(40, "Discharging");
        station.page_when("one that is", is_low);
    }
    low_at("15.0");
    station.signal("HUP");
    station.page_when("the first idea of low", |page| !is_low(page));
    let said = world.read("said");
    assert_eq!(said.matches("it goes on as before").count(), 3, "{said}");
    station.end();

    world.write("some.flow", "/tamper/contact | debuonce 20ms\n");
    let (code, said) = world.refused(program, &[&flow]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("some.flow:1:"), "{said}");
}

fn wrong_settings_are_told_and_change_nothing(program: &Path) {
    let world = World::new();
    let settings = "home/weather-station/weather-station.ini";
    let right = world.read(settings);
    let line = right.lines().count() + 2;
    let with = |text: &str| world.write(settings, &format!("{right}{text}"));
    let wrong = [
        ("[/sw/pi/web]\npatience = never\n", "/sw/pi/web/patience"),
        ("[/sw/pi/web]\nno key at all\n", "no key at all"),
    ];
    for (text, what) in wrong {
        with(text);
        let (code, said) = world.refused(program, &[]);
        assert_eq!(code, Some(2), "{said}");
        let place = format!("weather-station.ini:{line}");
        assert!(said.contains(what) && said.contains(&place), "{said}");
    }
    with("");
    let station = world.start(program, &[]);
    let mut before = 0;
    for (text, what) in wrong {
        with(&format!("{text}\n[/sw/pi/en/text]\ntitle = Wrong\n"));
        before += world.says(before, what).len();
        assert!(station.page("").shows("<title>Weather station<"));
        with("[/sw/pi/en/text]\ntitle = Right\n");
        station.page_when("settings that are mended", |page| {
            page.shows("<title>Right<")
        });
        with("");
        station.page_when("settings as they were", |page| {
            page.shows("<title>Weather station<")
        });
    }
    station.end();
}

fn wrong_arguments_are_told(program: &Path) {
    let world = World::new();
    for (argument, what) in [
        ("--port=99999", "--port"),
        ("--speed=-1", "--speed"),
        ("--patience=never", "--patience"),
        ("--speeed=5", "--speed"),
        ("--port", "--port"),
        ("-x", "-x"),
        ("further", "further"),
        ("--address=nowhere", "--address"),
    ] {
        let (code, said) = world.refused(program, &[argument]);
        assert_eq!(code, Some(2), "{argument}: {said}");
        assert!(said.starts_with("weather-station: "), "{argument}: {said}");
        assert!(said.contains(what), "{argument}: {said}");
    }
    // An address of documentation is nobody's, and the system refuses it.
    let (code, said) = world.refused(program, &["--address=192.0.2.1"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("192.0.2.1") && said.contains("--address"),
        "{said}"
    );
    let output = world.command(program).arg("--help").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(
        help.contains("--watchdog=FILE") && help.contains("replayed year"),
        "{help}"
    );
}

/// The commands that the README shows, each block with its lines.
fn shown() -> Vec<Vec<String>> {
    let text = root().join("examples/weather-station-cpp/README.md");
    let text = fs::read_to_string(text).unwrap();
    let mut blocks = Vec::new();
    for part in text.split("```sh\n").skip(1) {
        let (block, _) = part.split_once("```").unwrap();
        blocks.push(block.lines().map(str::to_owned).collect());
    }
    blocks
}

/// What a stranger does who follows the README, with a folder of the test's for
/// `/tmp`. The first block has built the program.
fn the_readme_is_right(program: &Path) {
    let blocks = shown();
    let [build, prepare, tamper, machine] = &blocks[..] else {
        panic!("the README has four blocks of commands");
    };
    let world = World::new();
    world.write("home/weather-station/weather-station.ini", "");
    let tmp = world.at("tmp").display().to_string();
    fs::create_dir(&tmp).unwrap();
    // The profile of the laptop, as settings.ini has it, lies in /tmp.
    let settings = format!("[/hw/pi/elitebook/gpio]\nfolder = {tmp}/weather-station\n");
    world.write("home/weather-station/weather-station.ini", &settings);
    let run = |lines: &[String]| {
        let script = lines.join("\n").replace("/tmp/", &format!("{tmp}/"));
        assert!(!script.contains("sudo"));
        let mut sh = Command::new("sh");
        succeed(sh.args(["-e", "-c", &script]).current_dir(&tmp));
    };
    assert_eq!(
        build.last().map(String::as_str),
        Some("build/weather-station")
    );
    let (start, prepare) = prepare.split_last().unwrap();
    let profile = start.strip_prefix("build/weather-station ").unwrap();
    run(prepare);
    let profile = profile.replace("/tmp/", &format!("{tmp}/"));
    let station = world.started(world.bare(program).arg(profile));
    assert!(station.page("").shows("Hardware profile: elitebook"));
    run(tamper);
    station.page_when("an alarm", |page| page.shows("role='alert'"));
    station.end();

    run(machine);
    let root = format!("--root={tmp}/machine");
    let mut station = world.started(world.bare(program).arg(root));
    station.page_when("a low battery", |page| page.shows("content='30'"));
    world.write("tmp/machine/sys/class/power_supply/BAT0/capacity", "1\n");
    assert_eq!(station.ended(), Some(0));
}

/// What a station has to do: a test each of the program as its README builds it,
/// and one for all of it with sanitizers.
macro_rules! checks {
    ($($check:ident)*) => {
        mod plain {
            $(
                #[test]
                fn $check() {
                    if let Some(program) = &*super::PROGRAM {
                        super::$check(program);
                    }
                }
            )*
        }

        #[test]
        fn the_station_passes_the_sanitizers() {
            let options = [
                "-DCMAKE_BUILD_TYPE=Debug",
                "-DCMAKE_CXX_FLAGS=-fsanitize=address,undefined -fno-sanitize-recover=all",
            ];
            if let Some(program) = built("station-sanitized", &options) {
                $($check(&program);)*
            }
        }
    };
}

checks! {
    sessions_have_languages_that_survive_a_restart
    choices_are_forgotten_in_their_order_also_after_a_restart
    sensors_appear
    a_low_battery_makes_it_do_less_and_an_empty_one_ends_it
    tampering_is_seen_by_every_thread
    the_profile_says_what_is_watched
    bad_requests_are_refused
    it_ends_whatever_clients_do_and_says_what_is_wrong
    it_ends_in_good_order_while_requests_run
    a_flow_file_is_read_again
    wrong_settings_are_told_and_change_nothing
    wrong_arguments_are_told
    the_readme_is_right
}

static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(built_as_shown);

/// Whether what the example needs is here.
fn can_build() -> bool {
    if !has(&["cmake", "pkg-config", "c++"]) {
        return false;
    }
    let known = Command::new("pkg-config")
        .args(["--exists", "cpp-httplib"])
        .status();
    let is_here = known.is_ok_and(|status| status.success());
    if !is_here {
        eprintln!("skipped: cpp-httplib is not installed (Debian: libcpp-httplib-dev)");
    }
    is_here
}

/// The example, built by the commands of its README in a copy of it.
fn built_as_shown() -> Option<PathBuf> {
    if !can_build() {
        return None;
    }
    let examples = scratch("station");
    let ours = root().join("examples");
    succeed(
        Command::new("cp")
            .arg("-R")
            .arg(ours.join("weather-station-cpp"))
            .arg(&examples),
    );
    std::os::unix::fs::symlink(
        ours.join("weather-station"),
        examples.join("weather-station"),
    )
    .unwrap();
    let folder = examples.join("weather-station-cpp");
    let _ = fs::remove_dir_all(folder.join("build"));
    // What is installed and laid out before is here; what it starts, tests start.
    let blocks = shown();
    let commands = blocks[0].iter().filter(|line| line.starts_with("cmake "));
    let commands: Vec<&str> = commands.map(String::as_str).collect();
    assert_eq!(commands.len(), 2, "{blocks:?}");
    let script = commands.join("\n");
    let script = script.replace("/tmp/milieu", &tree().display().to_string());
    let mut sh = Command::new("sh");
    sh.args(["-e", "-c", &script]).current_dir(&folder);
    succeed(sh.env("CXXFLAGS", "-Werror"));
    Some(folder.join("build/weather-station"))
}

/// The example, built with options.
fn built(name: &str, options: &[&str]) -> Option<PathBuf> {
    if !can_build() {
        return None;
    }
    let folder = scratch(name);
    let source = root().join("examples/weather-station-cpp");
    let mut configure = configure(&source, &folder, options);
    configure.arg(defined("CMAKE_PREFIX_PATH", tree()));
    succeed(configure.arg("-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"));
    build(&folder);
    Some(folder.join("weather-station"))
}

/// Keys, with what is said of each, of a specification or a file of settings.
fn sections(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections = Vec::new();
    for line in text.lines() {
        match line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            Some(name) => sections.push((name, Vec::new())),
            None => sections
                .last_mut()
                .map_or((), |(_, says): &mut (_, Vec<_>)| says.push(line)),
        }
    }
    sections
}

#[test]
fn both_stations_understand_each_others_files() {
    let read = |path: &str| fs::read_to_string(root().join("examples").join(path)).unwrap();
    let rust = read("weather-station/weather-station.ini");
    let cpp = read("weather-station-cpp/station.ini");
    let rust = sections(&rust);
    let mut shared = 0;
    for (name, says) in sections(&cpp) {
        let Some((_, there)) = rust.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        shared += 1;
        let meant = |says: &[&str]| {
            let words = ["type=", "check/", "readonly"];
            let kept = |line: &&&str| words.iter().any(|word| line.starts_with(word));
            // Without a type it is a text.
            let kept = says
                .iter()
                .filter(kept)
                .filter(|line| **line != "type=string");
            kept.map(|line| (*line).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(meant(&says), meant(there), "{name}");
    }
    assert!(shared > 20, "{shared}");
}

#[test]
fn it_takes_a_few_hundred_lines_of_its_own() {
    let sources = fs::read_dir(root().join("examples/weather-station-cpp/src")).unwrap();
    let lines = sources.map(|file| {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        text.lines().count()
    });
    let lines: usize = lines.sum();
    assert!((300..=700).contains(&lines), "{lines} lines");
}
