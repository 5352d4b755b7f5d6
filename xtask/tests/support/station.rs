//! A weather station in C++ that runs, and its world: a machine of files, a home
//! and a tamper input.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long something may take on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A machine of files, a home, and a tamper input: what one station sees of the world.
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> World {
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

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // As people do who must not show halves.
        let beside = path.with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, path).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    pub fn battery(&self, percent: u32, status: &str) {
        let folder = "root/sys/class/power_supply/BAT0";
        self.write(&format!("{folder}/capacity"), &format!("{percent}\n"));
        self.write(&format!("{folder}/status"), &format!("{status}\n"));
        self.write(&format!("{folder}/type"), "Battery\n");
    }

    /// Waits until the station says this on standard error, after what it has said
    /// before; sanitizers speak there, too.
    pub fn says(&self, before: usize, what: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let bytes = fs::read(self.at("said")).unwrap();
            // The last of it may be half written.
            let said =
                String::from_utf8_lossy(bytes.get(before..).unwrap_or_default()).into_owned();
            if said.contains(what) {
                return said;
            }
            assert!(Instant::now() < until, "it does not say {what:?}: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a station that does not begin: its exit code, and what it says.
    pub fn refused(&self, program: &Path, arguments: &[&str]) -> (Option<i32>, String) {
        let said = fs::File::create(self.at("refused")).unwrap();
        let mut command = self.command(program);
        command.args(arguments).stdout(Stdio::piped()).stderr(said);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        if !line.is_empty() {
            let _ = child.kill();
        }
        let status = child.wait().unwrap();
        assert_eq!(line, "", "it begins with {arguments:?}");
        (status.code(), self.read("refused"))
    }

    pub fn bare(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", self.at("home"))
            .env("XDG_CONFIG_HOME", self.at("home"))
            .env("XDG_STATE_HOME", self.at("state"))
            .env("XDG_CONFIG_DIRS", self.at("etc"))
            .env("WEATHER_STATION_PORT", "0")
            .env_remove("WEATHER_STATION_ADDRESS")
            .env_remove("WEATHER_STATION_PROFILE")
            .args(["--interval=1", "--speed=86400"]);
        command
    }

    /// With the files of this world.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = self.bare(program);
        command
            .arg(format!("--root={}", self.at("root").display()))
            .arg(format!("--profile={}", self.at("profile").display()));
        command
    }

    pub fn start(&self, program: &Path, arguments: &[&str]) -> Station {
        self.started(self.command(program).args(arguments))
    }

    pub fn started(&self, command: &mut Command) -> Station {
        let said = fs::File::create(self.at("said")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(said).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/\n"));
        let address = address.unwrap_or_else(|| {
            let said = self.read("said");
            panic!("it prints where it listens, not {line:?}: {said}")
        });
        Station {
            address: address.to_owned(),
            child,
        }
    }
}

/// A station that runs.
pub struct Station {
    pub address: String,
    child: Child,
}

impl Drop for Station {
    fn drop(&mut self) {
        // Where a test has failed before the end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn shows(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    /// The cookie that it sets.
    pub fn cookie(&self) -> Option<String> {
        let line = self
            .head
            .lines()
            .find_map(|l| l.strip_prefix("Set-Cookie: "));
        line.map(|line| line.split(';').next().unwrap().to_owned())
    }
}

impl Station {
    /// Sends these bytes and takes whatever comes back.
    pub fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A server that refuses what it has not read resets the connection.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
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

    pub fn page(&self, headers: &str) -> Answer {
        let answer = self.ask("GET", "/", headers, "");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer
    }

    pub fn choose(&self, language: &str, headers: &str) -> Answer {
        let body = format!("language={language}");
        self.ask("POST", "/language", headers, &body)
    }

    /// Waits until the page is as it should be.
    pub fn page_when(&self, what: &str, is: impl Fn(&Answer) -> bool) -> Answer {
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

    pub fn signal(&self, name: &str) {
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
    pub fn ended(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn end(mut self) {
        self.signal("TERM");
        assert_eq!(self.ended(), Some(0));
    }
}
