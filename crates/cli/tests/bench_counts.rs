//! What is counted for single applications, and what ends with them: where this machine lets control groups be made.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const LONG: Duration = Duration::from_secs(30);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(script: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::write(folder.path("k.sh"), script).unwrap();
        let catalogue = "[k]\ncommand = [\"bash\", \"k.sh\"]\nresult = \"value=(.*)\"\n";
        fs::write(folder.path("applications.toml"), catalogue).unwrap();
        let test = "[[test]]\nname = \"t\"\ntimeout = 60\nserver = [{ application = [{ kind = \"k\" }] }]\n";
        fs::write(folder.path("test.toml"), test).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn bench(&self, before: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_milieu");
        let run = [
            "bench",
            "run",
            "test.toml",
            "--applications",
            "applications.toml",
            "--restart",
        ];
        let words = [before, &[program], &run].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.0.path());
        command
    }

    /// What the application used.
    fn resources(&self, before: &[&str]) -> Value {
        let output = self.bench(before).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let text = fs::read_to_string(self.path("results.json")).unwrap();
        let mut result: Value = serde_json::from_str(&text).unwrap();
        result["tests"][0]["steps"][0]["runs"][0]["resources"].take()
    }
}

/// Whether a figure is counted on this machine.
fn counts(figure: &str) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
        .args(["bench", "doctor", "--json"])
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let is_counted = said["counts"].get(figure).is_some();
    if !is_counted {
        eprintln!("not run: {}", said["lacks"][figure]);
    }
    is_counted
}

/// A number that no other test sleeps for, so that its processes are known.
fn unusual(number: u32) -> String {
    (std::process::id() * 100 + 70 + number).to_string()
}

/// The processes that are this very command.
fn processes(command: &[&str]) -> Vec<u32> {
    let of = |path: PathBuf| {
        let line = fs::read(path.join("cmdline")).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let is_it = words.len() > command.len()
            && command
                .iter()
                .zip(&words)
                .all(|(word, it)| word.as_bytes() == *it);
        is_it.then(|| path.file_name()?.to_str()?.parse().ok())?
    };
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|process| of(process.unwrap().path()))
        .collect()
}

fn wait_until(mut holds: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sends over the loopback interface until it is dropped: much, but not so much that
/// the kernel throws away what others send.
struct Flood(Arc<AtomicBool>);

impl Flood {
    fn begin() -> Flood {
        let goes_on = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&goes_on);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        thread::spawn(move || {
            while flag.load(Ordering::Acquire) {
                let _ = socket.send_to(&[0; 1400], to.local_addr().unwrap());
                thread::sleep(Duration::from_millis(1));
            }
        });
        Flood(goes_on)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[test]
fn network_bytes_are_those_of_the_application_and_of_nobody_else() {
    if !counts("network") {
        return;
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap().port();
    let _flood = Flood::begin();
    // Each datagram has a socket of its own, some in a process that is left behind.
    let folder = Folder::new(&format!(
        "send() {{ for i in {{1..25}}; do printf %0972d 1 > /dev/udp/127.0.0.1/{to}; done; touch sent$1; }}
         setsid bash -c \"$(declare -f send); send 1\" & send 2
         until [ -e sent1 ]; do sleep 0.01; done; echo value=1"
    ));
    let network = folder.resources(&[])["network"].take();
    let expected = serde_json::json!({
        "sent-bytes": 50_000, "sent-packets": 50, "received-bytes": 0, "received-packets": 0,
    });
    // 972 bytes, 8 of UDP and 20 of IP.
    assert_eq!(network, expected);
}

#[test]
fn short_connections_are_counted_as_they_are_on_the_wire() {
    if !counts("network") {
        return;
    }
    const CONNECTIONS: u64 = 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().port();
    // More than a segment of the loopback interface holds.
    let payload = 300_000;
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut all = (&stream).take(payload);
            if std::io::copy(&mut all, &mut std::io::sink()).is_ok_and(|read| read == payload) {
                let _ = stream.write_all(b"!");
            }
        }
    });
    let _flood = Flood::begin();
    let folder = Folder::new(&format!(
        "for i in {{1..{CONNECTIONS}}}; do
           exec 3<> /dev/tcp/127.0.0.1/{to}; printf %0{payload}d 1 >&3; read -n 1 <&3; exec 3>&-
         done; echo value=1"
    ));
    // What is lost on a busy machine is sent again: one of these runs will lose nothing.
    let is_exact = |network: &Value| {
        let of = |name: &str| network[name].as_u64().unwrap();
        let headers = of("sent-bytes").checked_sub(CONNECTIONS * payload);
        let headers = headers.unwrap_or_else(|| panic!("not all was counted: {network}"));
        assert!(of("received-packets") >= 2 * CONNECTIONS, "{network}");
        (40..=60).contains(&(headers / of("sent-packets")))
    };
    let network: Vec<Value> = (0..10)
        .map(|_| folder.resources(&[])["network"].take())
        .collect();
    assert!(network.iter().any(is_exact), "{network:?}");
}

#[test]
fn resources_are_those_of_all_processes_together() {
    if !counts("processor") || !counts("memory") || !counts("switches") {
        return;
    }
    // Each child keeps 24 MB, and reaps itself.
    let folder = Folder::new(
        "trap '' CHLD
         for child in 1 2 3; do (x=$(printf %024000000d 1); touch has$child; sleep 0.2; for i in {1..10}; do sleep 0.001; done) & done
         until [ -e has1 ] && [ -e has2 ] && [ -e has3 ]; do sleep 0.01; done; sleep 0.3; echo value=1",
    );
    let resources = folder.resources(&[]);
    let of = |name: &str| resources[name].as_u64().unwrap_or(0);
    assert!(of("memory-together-bytes-max") > 72_000_000, "{resources}");
    assert!(of("memory-bytes-max") > 24_000_000, "{resources}");
    assert!(
        of("memory-bytes-max") < of("memory-together-bytes-max"),
        "{resources}"
    );
    assert!(of("switches") >= 30, "{resources}");
    for figure in ["processor", "memory", "switches"] {
        let by = resources["counted-by"][figure].as_str().unwrap();
        assert!(by.contains("control group"), "{by}");
    }
}

#[test]
fn without_privileges_nothing_is_made_up() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let folder = Folder::new("sleep 0.3; echo value=1");
    let before: &[&str] = match is_root {
        // Somebody who may not make control groups, in a folder of their own.
        true => &["setpriv", "--reuid", "65534", "--clear-groups"],
        false => &[],
    };
    if is_root {
        std::os::unix::fs::chown(folder.0.path(), Some(65534), None).unwrap();
    }
    let output = folder.bench(before).output().unwrap();
    if is_root && !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        // Where this program is may be closed to others.
        assert!(said.contains("ermission denied"), "{said}");
        eprintln!("not run: nobody else may run this program: {said}");
        return;
    }
    let text = fs::read_to_string(folder.path("results.json")).unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    let resources = &result["tests"][0]["steps"][0]["runs"][0]["resources"];
    let lacks = &result["hosts"]["here"]["lacks"];
    assert_eq!(
        resources.get("network").is_none(),
        lacks.get("network").is_some(),
        "{result}"
    );
    if is_root {
        assert!(
            lacks["network"]
                .as_str()
                .unwrap()
                .contains("Permission denied")
        );
        assert!(
            resources.get("memory-together-bytes-max").is_none(),
            "{resources}"
        );
        assert_eq!(resources["counted-by"]["processor"], "rusage");
    }
    // A shell is smaller than what runs it, and is not said to be as large.
    assert!(resources.get("memory-bytes-max").is_none(), "{resources}");
    let seen = resources["memory-bytes-seen"].as_u64().unwrap();
    assert!(
        (100_000..6_000_000).contains(&seen),
        "a shell has {seen} bytes"
    );
}

/// A control group that is removed with this.
struct Delegated(PathBuf);

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn whoever_has_a_control_group_uses_it() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 || !counts("processor") {
        return;
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let unified = mounts
        .lines()
        .find(|line| line.contains(" - cgroup2 "))
        .unwrap();
    let mount = PathBuf::from(unified.split(' ').nth(4).unwrap());
    let group = Delegated(mount.join(format!("milieu-test-{}", std::process::id())));
    fs::create_dir(&group.0).unwrap();
    for file in ["", "cgroup.procs", "cgroup.subtree_control"] {
        std::os::unix::fs::chown(group.0.join(file), Some(65534), None).unwrap();
    }
    let folder = Folder::new("for i in {1..50000}; do :; done; echo value=1");
    std::os::unix::fs::chown(folder.0.path(), Some(65534), None).unwrap();
    let script = format!(
        "echo $$ > {}/cgroup.procs; exec setpriv --reuid 65534 --clear-groups \"$@\"",
        group.0.display()
    );
    let output = folder.bench(&["sh", "-c", &script, "sh"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("ermission denied") {
        eprintln!("not run: nobody else may run this program: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let text = fs::read_to_string(folder.path("results.json")).unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    let resources = &result["tests"][0]["steps"][0]["runs"][0]["resources"];
    assert_eq!(resources["counted-by"]["processor"], "its control group");
    let host = &result["hosts"]["here"];
    assert_eq!(host["counts"]["processor"], "its control group");
    assert!(
        host["lacks"]["network"]
            .as_str()
            .unwrap()
            .contains("needs root"),
        "{host}"
    );
    let left: Vec<_> = fs::read_dir(&group.0)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// An application that has left its parents and its session, and ignores what it is
/// told.
fn stubborn(mark: &str) -> Folder {
    Folder::new(&format!(
        "trap '' TERM HUP INT; (setsid bash -c \"trap '' TERM HUP INT; sleep {mark}; sleep {mark}\" &) ; touch runs; sleep {mark}"
    ))
}

#[test]
fn what_a_minder_leaves_that_was_killed_is_ended() {
    if !counts("processor") {
        return;
    }
    let mark = unusual(1);
    let folder = stubborn(&mark);
    let mut harness = folder.bench(&[]).stderr(Stdio::null()).spawn().unwrap();
    let sleeps = || processes(&["sleep", &mark]).len();
    wait_until(|| sleeps() == 2, "both run");
    let minders = processes(&[env!("CARGO_BIN_EXE_milieu"), "bench", "mind"]);
    let minder = minders
        .into_iter()
        .find(|pid| parent(*pid) == Some(harness.id()))
        .unwrap();
    kill(minder);
    wait_until(|| sleeps() == 0, "all of it ends");
    assert_eq!(harness.wait().unwrap().code(), Some(3));
}

#[test]
fn what_a_harness_and_a_minder_leave_that_were_killed_is_ended_by_the_next() {
    if !counts("processor") {
        return;
    }
    let mark = unusual(2);
    let folder = stubborn(&mark);
    let mut harness = folder.bench(&[]).stderr(Stdio::null()).spawn().unwrap();
    let sleeps = || processes(&["sleep", &mark]).len();
    wait_until(|| sleeps() == 2, "both run");
    let minders = processes(&[env!("CARGO_BIN_EXE_milieu"), "bench", "mind"]);
    let minder = minders
        .into_iter()
        .find(|pid| parent(*pid) == Some(harness.id()))
        .unwrap();
    // Stopped, it does not notice that the harness goes.
    signal(minder, "-STOP");
    harness.kill().unwrap();
    harness.wait().unwrap();
    kill(minder);
    // Another harness begins.
    assert!(counts("processor"));
    wait_until(|| sleeps() == 0, "all of it ends");
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

fn kill(pid: u32) {
    signal(pid, "-KILL");
}

fn signal(pid: u32, signal: &str) {
    let mut command = Command::new("kill");
    let status = command.args([signal, &pid.to_string()]).status();
    assert!(status.unwrap().success());
}
