//! A real broker, mosquitto, and its clients.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::client::eventually;

/// A broker that ends with the test.
pub struct Broker {
    pub port: u16,
    child: Option<Child>,
    folder: tempfile::TempDir,
}

fn program() -> &'static str {
    // Debian has it where only root looks.
    match std::path::Path::new("/usr/sbin/mosquitto").exists() {
        true => "/usr/sbin/mosquitto",
        false => "mosquitto",
    }
}

/// Whether there is a broker on this machine; else says so.
pub fn is_here() -> bool {
    let has = |program: &str, argument: &str| {
        let mut command = Command::new(program);
        command
            .arg(argument)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok()
    };
    let is_here = has(program(), "-h") && has("mosquitto_pub", "--help");
    if !is_here {
        eprintln!("not tested: there is no mosquitto here; install mosquitto, mosquitto-clients");
    }
    is_here
}

impl Broker {
    /// A port, and nobody there yet. It is none of those that the kernel gives to
    /// whoever asks for any.
    pub fn reserved() -> Broker {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        const FIRST: u32 = 10_000;
        const PORTS: u32 = 20_000;
        const EACH_PROCESS: u32 = 64;
        let begin = std::process::id().wrapping_mul(EACH_PROCESS);
        let ports = std::iter::repeat_with(|| {
            let next = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            u16::try_from(FIRST + next % PORTS).unwrap()
        });
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        Broker {
            port: ports.take(PORTS as usize).find(is_free).unwrap(),
            child: None,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn started() -> Broker {
        let mut broker = Broker::reserved();
        broker.start();
        broker
    }

    pub fn start(&mut self) {
        let file = self.folder.path().join("mosquitto.conf");
        let text = format!(
            "listener {} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_packet_size 4000000\n",
            self.port
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program());
        command
            .arg("-c")
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        assert!(eventually(
            || TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        ));
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["-h", "127.0.0.1", "-q", "1", "-p", &self.port.to_string()]);
        command
    }

    pub fn publish(&self, topic: &str, payload: &[u8], more: &[&str]) {
        let mut command = self.client("mosquitto_pub");
        let from = if payload.is_empty() { "-n" } else { "-s" };
        command
            .args(["-t", topic, from])
            .args(more)
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(payload);
        assert!(child.wait().unwrap().success());
    }

    /// Deletes what is retained.
    pub fn forget(&self, topic: &str) {
        assert!(
            self.client("mosquitto_pub")
                .args(["-t", topic, "-r", "-n"])
                .status()
                .unwrap()
                .success()
        );
    }

    /// What is retained under topics that a filter covers, as `topic payload`.
    pub fn retained(&self, filter: &str) -> Vec<String> {
        let mut command = self.client("mosquitto_sub");
        command.args(["-t", filter, "-v", "--retained-only", "-W", "1"]);
        let said = command.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        text.lines().map(str::to_owned).collect()
    }

    /// Reads what is published from now on.
    pub fn listen(&self, filter: &str) -> Heard {
        // What it says of itself would otherwise wait until there is more of it.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "mosquitto_sub", "-h", "127.0.0.1", "-q", "1"]);
        command.args(["-p", &self.port.to_string(), "-t", filter, "-v", "-R", "-d"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (text, mut output) = (
            Arc::new(Mutex::new(Vec::new())),
            child.stdout.take().unwrap(),
        );
        let all = Arc::clone(&text);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                all.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        let heard = Heard { child, text };
        assert!(eventually(|| heard.text().contains("Subscribed (mid")));
        heard
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a client of the broker has heard.
pub struct Heard {
    child: Child,
    text: Arc<Mutex<Vec<u8>>>,
}

impl Heard {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub fn wait_for(&self, line: &str) {
        let is_there = eventually(|| self.text().lines().any(|one| one == line));
        assert!(is_there, "`{line}` is not in:\n{}", self.text());
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A wire to a broker that can be cut.
pub struct Wire {
    pub port: u16,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    pub fn to(port: u16) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Wire {
            port: listener.local_addr().unwrap().port(),
            ends: Arc::default(),
        };
        let ends = Arc::clone(&wire.ends);
        thread::spawn(move || {
            for here in listener.incoming() {
                let Ok((here, there)) =
                    here.and_then(|here| Ok((here, TcpStream::connect(("127.0.0.1", port))?)))
                else {
                    return;
                };
                for (mut from, mut to) in [
                    (here.try_clone().unwrap(), there.try_clone().unwrap()),
                    (there.try_clone().unwrap(), here.try_clone().unwrap()),
                ] {
                    thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                ends.lock().unwrap().extend([here, there]);
            }
        });
        wire
    }

    pub fn cut(&self) {
        for end in self.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
    }
}
