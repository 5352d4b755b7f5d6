//! The weather station in C++ (`examples/weather-station-cpp`): built by CMake
//! from an installed tree, driven as a browser does.

mod support;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

use support::{build, configure, defined, has, root, scratch, succeed, tree};

/// How long something may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// A machine of files, a home, and a tamper input: what one station sees of the world.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let world = World {
            folder: tempfile::tempdir().unwrap(),
        };
        world.write("root/proc/loadavg", "0.42 0.36 0.30 1/234 5678\n");
        world.battery(80, "Discharging");
        world.write("profile", "elitebook\nand more\n");
        world.write("pi/tamper.txt", "0\n");
        world.write("other/gpio7/value", "0\n");
        let at = |path: &str| world.at(path).display().to_string();
        world.write(
            "home/weather-station/weather-station.ini",
            &format!(
                "[/hw/pi/elitebook/gpio]\nfolder = {}\ntamper = tamper.txt\n\
                 [/hw/pi/pi/gpio]\nfolder = {}\n\
                 [/watchdog]\ndevice = {}\ninterval = 0.05\n",
                at("pi"),
                at("other"),
                at("watchdog"),
            ),
        );
        world.write("watchdog", "");
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // As people do who must not show halves.
        let beside = path.with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, path).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn battery(&self, percent: u32, status: &str) {
        let folder = "root/sys/class/power_supply/BAT0";
        self.write(&format!("{folder}/capacity"), &format!("{percent}\n"));
        self.write(&format!("{folder}/status"), &format!("{status}\n"));
        self.write(&format!("{folder}/type"), "Battery\n");
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", self.at("home"))
            .env("XDG_CONFIG_HOME", self.at("home"))
            .env("XDG_STATE_HOME", self.at("state"))
            .env("WEATHER_STATION_PORT", "0")
            .env_remove("WEATHER_STATION_ADDRESS")
            .env_remove("WEATHER_STATION_PROFILE")
            .args(["--interval=1", "--speed=86400"])
            .arg(format!("--root={}", self.at("root").display()))
            .arg(format!("--profile={}", self.at("profile").display()));
        command
    }

    fn start(&self, program: &Path, arguments: &[&str]) -> Station {
        let mut child = self
            .command(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/\n"));
        let address = address.unwrap_or_else(|| panic!("it prints where it listens, not {line:?}"));
        Station {
            address: address.to_owned(),
            child,
        }
    }
}

/// A station that runs.
struct Station {
    address: String,
    child: Child,
}

impl Drop for Station {
    fn drop(&mut self) {
        // Where a test has failed before the end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn shows(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    /// The cookie that it sets.
    fn cookie(&self) -> Option<String> {
        let line = self
            .head
            .lines()
            .find_map(|l| l.strip_prefix("Set-Cookie: "));
        line.map(|line| line.split(';').next().unwrap().to_owned())
    }
}

impl Station {
    /// Sends these bytes and takes whatever comes back.
    fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A server that refuses what it has not read resets the connection.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let answer = self.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: {}\r\n{headers}\r\n{body}",
                self.address,
                body.len()
            )
            .as_bytes(),
        );
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn page(&self, headers: &str) -> Answer {
        let answer = self.ask("GET", "/", headers, "");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer
    }

    fn choose(&self, language: &str, headers: &str) -> Answer {
        let body = format!("language={language}");
        self.ask("POST", "/language", headers, &body)
    }

    /// Waits until the page is as it should be.
    fn page_when(&self, what: &str, is: impl Fn(&Answer) -> bool) -> Answer {
        let until = Instant::now() + PATIENCE;
        loop {
            let page = self.page("");
            if is(&page) {
                return page;
            }
            assert!(Instant::now() < until, "{what}: {}", page.body);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for the end and says how it ended.
    fn ended(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(mut self) {
        self.signal("TERM");
        assert_eq!(self.ended(), Some(0));
    }
}

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
    let run = |arguments: &[&str]| {
        let output = world.command(program).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said, output.stdout)
    };
    let (code, said, _) = run(&[&format!("--port={port}")]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&port) && said.contains("--port"), "{said}");
    station.signal("INT");
    let mut station = station;
    assert_eq!(station.ended(), Some(0));
    drop((idle, half));

    let (code, said, _) = run(&["--port=99999"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--port"), "{said}");
    let (code, _, help) = run(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(String::from_utf8_lossy(&help).contains("--watchdog=FILE"));
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
    sensors_appear
    a_low_battery_makes_it_do_less_and_an_empty_one_ends_it
    tampering_is_seen_by_every_thread
    the_profile_says_what_is_watched
    bad_requests_are_refused
    it_ends_whatever_clients_do_and_says_what_is_wrong
}

static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| built("station", &[]));

/// The example, built as its README says, if what that needs is here.
fn built(name: &str, options: &[&str]) -> Option<PathBuf> {
    if !has(&["cmake", "pkg-config", "c++"]) {
        return None;
    }
    let known = Command::new("pkg-config")
        .args(["--exists", "cpp-httplib"])
        .status();
    if !known.is_ok_and(|status| status.success()) {
        eprintln!("skipped: cpp-httplib is not installed (Debian: libcpp-httplib-dev)");
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
