//! A program with a mediator of its own, where there is one of the whole device.

mod mediated;

use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::channel;
use std::{env, fs};

use mediated::{Device, IDLE, OTHER, Running, end, until};
use milieu::threads::{Mediator, Priority};

const SOCKET: &str = "MILIEU_TEST_SOCKET";

/// The program that the other test runs: what it is told, a line each, and says. By itself
/// it does nothing.
#[test]
fn program() {
    let Some(socket) = env::var_os(SOCKET) else {
        return;
    };
    let mediator = Mediator::options()
        .device(socket)
        .start()
        .expect("it starts");
    let mutex = mediator.mutex(0);
    let mut lines = stdin().lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        match line.as_str() {
            "state" => {
                let mediates = mediator.rung().is_some();
                println!("\n= {} {mediates}", mediator.is_registered());
            }
            "critical" => {
                let (begun, begins) = channel();
                let (end, ends) = channel::<()>();
                let thread = mediator.thread("gas-detection").expect("a role");
                let thread = thread.critical(Priority::new(-5).expect("a priority"));
                let thread = thread.spawn(move || {
                    begun.send(()).expect("somebody waits");
                    let _ = ends.recv();
                });
                begins.recv().expect("it begins");
                println!("\n= begun");
                lines.next();
                drop(end);
                thread.expect("it began").join().expect("it ends");
                println!("\n= ended");
            }
            "lock" => {
                *mutex.lock().expect("nobody panics") += 1;
                println!("\n= locked");
            }
            other => panic!("{other}?"),
        }
    }
}

struct Program {
    running: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(device: &Device) -> Program {
        let name = format!("{}own", device.prefix);
        let path = device.path(&name);
        fs::copy(env::current_exe().expect("this test"), &path).expect("a copy");
        let mut command = device.program("own", "sleep");
        command
            .args(["--exact", "program", "--nocapture"])
            .env(SOCKET, device.path("run/mediator"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Program {
            running: Running(child),
            input,
            output,
        }
    }

    fn asked(&mut self, what: &str) -> String {
        writeln!(self.input, "{what}").expect("it reads");
        let mut lines = self.output.by_ref().lines().map_while(Result::ok);
        let said = lines.find_map(|it| it.strip_prefix("= ").map(str::to_owned));
        said.expect("it says something")
    }

    /// Whether it is registered, and whether it mediates itself.
    fn state(&mut self) -> (bool, bool) {
        let said = self.asked("state");
        let (registered, mediates) = said.split_once(' ').expect("two words");
        (registered == "true", mediates == "true")
    }
}

/// Somebody of it is critical while the mediator is back, and then nobody.
fn comes_back(device: &Device, other: &Running, program: &mut Program) {
    until("it has registered again", || {
        device.status()[0]["programs"] == 1
    });
    until("the other one is lazy", || other.policy() == IDLE);
    assert_eq!(program.asked("end"), "ended");
    assert_eq!(program.state(), (true, false));
}

#[test]
fn it_is_served_with_all_others_and_mediates_itself_meanwhile() {
    let device = Device::new("r", "");
    let other = device.waiting("other");
    let never = ["--wait-max", "never"];
    let Some((mediator, _news)) = device.mediator("idle", &never) else {
        return;
    };
    let mut program = Program::start(&device);
    assert_eq!(program.state(), (true, false));
    assert_eq!(device.status()[0]["programs"], 1);
    assert_eq!(program.asked("critical"), "begun");
    until("the other one is lazy", || other.policy() == IDLE);
    until("its other threads are lazy", || {
        program.running.policy() == IDLE
    });
    let all = device.status();
    let its = all.iter().find(|it| it["role"] == "gas-detection");
    let its = its.expect("it is known");
    assert_eq!(
        (&its["region"], &its["priority"]),
        (&"fast".into(), &(-5).into())
    );
    assert_eq!(program.asked("end"), "ended");
    until("the other one has returned", || other.policy() == OTHER);
    until("its own have returned", || {
        program.running.policy() == OTHER
    });
    assert_eq!(program.asked("lock"), "locked");

    // The mediator goes while somebody is critical, and comes back.
    assert_eq!(program.asked("critical"), "begun");
    until("the other one is lazy", || other.policy() == IDLE);
    assert_eq!(end(mediator), Some(0));
    assert_eq!(other.policy(), OTHER);
    let (mediator, _news) = device.mediator("idle", &never).expect("as before");
    comes_back(&device, &other, &mut program);

    // It goes while nobody is critical, and another comes.
    assert_eq!(end(mediator), Some(0));
    until("it knows that", || !program.state().0);
    let (mediator, _news) = device.mediator("idle", &never).expect("as before");
    until("it has registered again", || program.state().0);
    assert_eq!(device.status()[0]["programs"], 1);

    // It goes, and nobody else comes.
    assert_eq!(end(mediator), Some(0));
    assert_eq!(program.asked("critical"), "begun");
    assert_eq!(program.asked("end"), "ended");
    let mut times = 0;
    while !matches!(program.state(), (false, true)) {
        assert!(times < 600, "it never mediates itself");
        times += 1;
        assert_eq!(program.asked("critical"), "begun");
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(program.asked("end"), "ended");
    }
    assert_eq!(other.policy(), OTHER);

    // Nobody is moved by two.
    let (mediator, _news) = device.mediator("idle", &never).expect("as before");
    assert_eq!(program.asked("critical"), "begun");
    comes_back(&device, &other, &mut program);
    assert_eq!(end(mediator), Some(0));
}

/// Whoever accepts its call and says nothing is not asked again and again, and meanwhile it
/// mediates itself.
#[test]
fn who_does_not_answer_is_left_alone() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let device = Device::new("w", "");
    let Some((mediator, _news)) = device.mediator("idle", &["--wait-max", "never"]) else {
        return;
    };
    assert_eq!(end(mediator), Some(0));
    let path = device.path("run/mediator");
    let _ = fs::remove_file(&path);
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new(&path).expect("a path")).expect("it is free");
    listen(&listener, 100).expect("it listens");
    let mut program = Program::start(&device);
    assert_eq!(program.state(), (false, true));
    let begun = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(program.asked("critical"), "begun");
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(program.asked("end"), "ended");
        assert_eq!(program.state(), (false, true));
    }
    // Each time that it asks it would wait for two seconds.
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(30), "{took:?}");
}
