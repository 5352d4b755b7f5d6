//! Programs that the preload serves, under a mediator of the whole device: what they ask and
//! begin, locks that critical threads wait for, threads that run away, and a mediator that
//! goes and comes back.

mod mediated;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mediated::{Device, IDLE, OTHER, Running, end, preload, text, until};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, send, sendmsg, socket_with, socketpair,
};

/// The program of these tests, under a name of the device's; none where it cannot be made.
fn program(device: &Device, name: &str) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = device.path(name);
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"])
        .args(["-D_GNU_SOURCE", "-pthread", "-I"])
        .arg(package.join("../preload/include"))
        .arg("-I")
        .arg(package.join("../preload/tests/programs"))
        .arg(package.join("tests/programs/served.c"))
        .arg("-o")
        .arg(&path)
        .output();
    let Ok(output) = compiled else {
        eprintln!("skipped, there is no C compiler: apt-get install gcc");
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(path)
}

/// That program with the preload, served by the device's mediator.
fn served(device: &Device, preload: &Path, program: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
    command
        .env("MILIEU_PRELOAD_DIR", preload)
        .env("HOME", device.path("home"))
        .env_remove("XDG_STATE_HOME")
        .args(["thread", "run", "--mediator"])
        .arg(device.path("run/mediator"))
        .arg("--")
        .arg(program)
        .stdin(Stdio::null());
    command
}

/// What all of these need.
fn made(test: &str) -> Option<(Device, PathBuf, PathBuf)> {
    made_by(test, "")
}

/// The same, with rules of the device.
fn made_by(test: &str, rules: &str) -> Option<(Device, PathBuf, PathBuf)> {
    let Some(preload) = preload() else {
        eprintln!(
            "skipped, the preload was not built: cargo build -p milieu-preload --profile preload"
        );
        return None;
    };
    let device = Device::new(test, rules);
    let program = program(&device, &format!("{}served", device.prefix))?;
    Some((device, preload, program))
}

const NEVER: &[&str] = &["--wait-max", "never"];

#[test]
fn it_is_told_of_its_own_and_what_it_begins_has_that() {
    for rung in ["idle", "nice", "realtime"] {
        let Some((device, preload, program)) = made("k") else {
            return;
        };
        let other = device.path("other");
        fs::copy(&program, &other).unwrap();
        let Some((mediator, _news)) = device.mediator(rung, NEVER) else {
            continue;
        };
        let mut command = served(&device, &preload, &program);
        let output = command.args(["own", rung]).arg(&other).output().unwrap();
        assert!(output.status.success(), "{rung}: {output:?}");
        assert_eq!(text(&output.stdout), "done\n");
        assert_eq!(end(mediator), Some(0));
    }
}

#[test]
fn who_has_a_lock_that_a_critical_thread_waits_for_is_urgent() {
    for rung in ["idle", "nice", "realtime"] {
        let Some((device, preload, program)) = made("l") else {
            return;
        };
        let Some((mediator, _news)) = device.mediator(rung, NEVER) else {
            continue;
        };
        let mut command = served(&device, &preload, &program);
        let output = command.args(["boosts", rung]).output().unwrap();
        assert!(output.status.success(), "{rung}: {output:?}");
        assert_eq!(text(&output.stdout), "done\n");
        assert_eq!(end(mediator), Some(0));
    }
}

/// One for each processor: nobody else would have any.
#[test]
fn all_that_run_away_are_demoted_and_told_and_others_go_on() {
    const SPIN_MAX_NS: u64 = 300_000_000;
    let processors = std::thread::available_parallelism().unwrap().get();
    for rung in ["idle", "realtime"] {
        let Some((device, preload, program)) = made("n") else {
            return;
        };
        let Some((mediator, mut news)) = device.mediator(rung, &["--spin-max", "0.3"]) else {
            continue;
        };
        let mut busy = device.program("busy", "dash");
        let busy = Running(busy.args(["-c", "while :; do :; done"]).spawn().unwrap());
        let mut command = served(&device, &preload, &program);
        let spinning = command.args(["spins", &processors.to_string()]).spawn();
        let _spinning = Running(spinning.unwrap());
        for _ in 0..processors {
            let demoted = news.until("demoted");
            assert_eq!(demoted["role"], "probe");
            // It never waits, so this is how long it was before others.
            let ran = processor_time_ns(demoted["thread"].as_u64().unwrap());
            assert!(
                (SPIN_MAX_NS..1_000_000_000).contains(&ran),
                "{rung}: {ran} ns"
            );
        }
        until("nobody is before others", || {
            device.status()[0]["fast"] == 0
        });
        until("who was lazy has returned", || busy.policy() == OTHER);
        // In ticks, of which there are a hundred a second.
        let (before, begun) = (busy.field(14), Instant::now());
        until("others go on", || busy.field(14) >= before + 20);
        // 5 % of a processor.
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(4), "{rung}: {took:?}");
        assert_eq!(end(mediator), Some(0));
    }
}

fn processor_time_ns(thread: u64) -> u64 {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// A program with a critical thread, and its thread that is none.
fn waiting(device: &Device, preload: &Path, program: &Path) -> (Running, u32) {
    let mut command = served(device, preload, program);
    command.arg("waits").stdin(Stdio::piped());
    let running = Running(command.spawn().unwrap());
    let process = running.number();
    let mut logger = 0;
    until("it has two threads and one of ours", || {
        let folder = fs::read_dir(format!("/proc/{process}/task"));
        let numbers = folder.map(|it| {
            let names = it.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
            let mut numbers: Vec<u32> = names.filter(|it| *it != process).collect();
            numbers.sort_unstable();
            numbers
        });
        let numbers = numbers.unwrap_or_default();
        // That of ours has its name in a moment.
        let (ours, others): (Vec<u32>, Vec<u32>) =
            numbers.iter().partition(|it| is_ours(process, **it));
        logger = others.first().copied().unwrap_or(0);
        (ours.len(), others.len()) == (1, 2)
    });
    (running, logger)
}

/// Whether it is the thread that the preload has begun.
fn is_ours(process: u32, thread: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
    name.is_ok_and(|it| it == "milieu\n")
}

/// One that is linked with the preload, or has it otherwise, looks where a mediator of its user
/// would be.
#[test]
fn a_program_without_settings_registers_as_well() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let Some((device, preload, program)) = made_by("u", &format!("user {NOBODY}")) else {
        return;
    };
    let Some((mediator, _news)) = device.mediator("idle", NEVER) else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped, only root begins programs of others");
    }
    // The user's folder, with the device's as the one of Milieu in it.
    let folder = device.path("user");
    fs::create_dir(&folder).unwrap();
    symlink(device.path("run"), folder.join("milieu")).unwrap();
    let library = device.path("libmilieu_preload.so");
    fs::copy(preload.join("libmilieu_preload.so"), &library).unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(device.path("."), open).unwrap();
    let begun = |variable: &str| {
        let mut command = Command::new(&program);
        let command = command.arg("waits").stdin(Stdio::piped()).uid(NOBODY);
        let command = command
            .env_remove("MILIEU_THREADS")
            .env("LD_PRELOAD", &library);
        Running(command.env(variable, &folder).spawn().unwrap())
    };
    let _elsewhere = begun("NOT_XDG_RUNTIME_DIR");
    let running = begun("XDG_RUNTIME_DIR");
    until("it is registered", || device.status()[0]["programs"] == 1);
    drop(running);
    until("it is gone", || device.status()[0]["programs"] == 0);
    assert_eq!(end(mediator), Some(0));
}

fn kill(mut mediator: Running) {
    mediator.0.kill().unwrap();
    mediator.0.wait().unwrap();
}

#[test]
fn a_program_registers_again_when_the_mediator_is_back() {
    let Some((device, preload, program)) = made("o") else {
        return;
    };
    let other = device.waiting("other");
    let Some((mediator, _news)) = device.mediator("idle", NEVER) else {
        return;
    };
    let (_running, _) = waiting(&device, &preload, &program);
    until("the other one is lazy", || other.policy() == IDLE);
    let mut mediator = mediator;
    // More often than it has sockets for it.
    for round in 0..6 {
        // As a restart ends it, and as nobody should.
        if round % 2 == 0 {
            assert_eq!(end(mediator), Some(0));
        } else {
            kill(mediator);
        }
        until("the other one has returned", || other.policy() == OTHER);
        let Some((next, _news)) = device.mediator("idle", NEVER) else {
            panic!("it did work");
        };
        if round < 2 {
            until("it is registered", || device.status()[0]["programs"] == 1);
            until("the other one is lazy", || other.policy() == IDLE);
        }
        mediator = next;
    }
    assert_eq!(end(mediator), Some(0));
}

/// Until it comes back, the program does it by itself.
#[test]
fn a_program_mediates_itself_while_there_is_no_mediator() {
    let Some((device, preload, program)) = made("p") else {
        return;
    };
    let other = device.waiting("other");
    let Some((mut mediator, _news)) = device.mediator("idle", NEVER) else {
        return;
    };
    let (running, logger) = waiting(&device, &preload, &program);
    let process = running.number();
    let policy = |thread: u32| -> Option<u64> {
        let path = format!("/proc/{process}/task/{thread}/stat");
        let line = fs::read_to_string(path).ok()?;
        let rest = line.rsplit_once(')')?.1;
        rest.split_whitespace().nth(41 - 3)?.parse().ok()
    };
    for _ in 0..2 {
        until("both are lazy", || {
            (other.policy(), policy(logger)) == (IDLE, Some(IDLE))
        });
        kill(mediator);
        until("the other one has returned", || other.policy() == OTHER);
        until("its own has, too, or is lazy again", || {
            policy(logger).is_some()
        });
        // With rung `auto` a program of root's takes real time, where nobody is lazy.
        let table = || milieu_threads::table::View::of_process(process).unwrap();
        until("it mediates itself", || {
            let view = table();
            let fast = view
                .iter()
                .filter(|(_, it)| it.region == milieu_threads::table::Region::Fast);
            fast.count() == 1
        });
        assert_eq!(other.policy(), OTHER);
        let Some((next, _news)) = device.mediator("idle", NEVER) else {
            panic!("it did work");
        };
        mediator = next;
        until("it is registered", || device.status()[0]["programs"] == 1);
        let own = table();
        assert!(
            own.iter()
                .all(|(_, it)| { it.region == milieu_threads::table::Region::Own })
        );
    }
    until("both are lazy", || {
        (other.policy(), policy(logger)) == (IDLE, Some(IDLE))
    });
    assert_eq!(end(mediator), Some(0));
    assert_eq!((other.policy(), policy(logger)), (OTHER, Some(OTHER)));
}

/// A connection to a mediator, by which this process is a program.
struct Told(OwnedFd);

impl Told {
    fn new(path: &Path) -> Told {
        let kind = SocketType::SEQPACKET;
        let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        set_socket_timeout(&socket, Timeout::Recv, Some(mediated::PATIENCE)).unwrap();
        Told(socket)
    }

    fn hand(&self, packet: &[u8], file: BorrowedFd<'_>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let files = [file];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
        let parts = [IoSlice::new(packet)];
        sendmsg(&self.0, &parts, &mut ancillary, SendFlags::NOSIGNAL).unwrap();
    }

    /// What is answered by a socket of its own.
    fn ask(&self, packet: &str) -> String {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (here, there) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        set_socket_timeout(&here, Timeout::Recv, Some(mediated::PATIENCE)).unwrap();
        self.hand(packet.as_bytes(), there.as_fd());
        drop(there);
        heard(&here)
    }
}

fn heard(socket: &OwnedFd) -> String {
    let mut bytes = [0; 256];
    let (length, _) = recv(socket, &mut bytes, RecvFlags::empty()).unwrap();
    text(&bytes[..length])
}

#[test]
fn a_program_speaks_of_its_own_threads_alone() {
    let device = Device::new("q", "only thread_served*");
    let other = device.waiting("other");
    let Some((mediator, _news)) = device.mediator("idle", NEVER) else {
        return;
    };
    let table = milieu_threads::table::Table::new(16).unwrap();
    let path = format!("/proc/self/fd/{}", table.descriptor().unwrap());
    let memory = fs::File::open(path).unwrap();
    let told = Told::new(&device.path("run/mediator"));
    let me = milieu_threads::kernel::thread_id();
    // Before it has registered it has no threads.
    send(&told.0, b"w 1 2", SendFlags::NOSIGNAL).unwrap();
    assert!(heard(&told.0).starts_with("no "));
    told.hand(b"milieu 2", memory.as_fd());
    assert_eq!(heard(&told.0), "yes");
    assert_eq!(told.ask(&format!("own {me}")), "own 0 0 0 0");
    assert_eq!(told.ask(&format!("home {me}")), "yes");
    let its = other.number();
    for packet in [
        format!("own {its}"),
        format!("home {its}"),
        format!("home 1 {me}"),
        format!("home {me} {its}"),
        "own 2147483647".to_owned(),
    ] {
        assert_eq!(told.ask(&packet), "no that is no thread of this program");
    }
    // What is no socket is not asked, and what is not understood is told so.
    told.hand(format!("home {me}").as_bytes(), memory.as_fd());
    for packet in [
        format!("w {its} {me}"),
        format!("w {me} {its}"),
        format!("s {its}"),
    ] {
        send(&told.0, packet.as_bytes(), SendFlags::NOSIGNAL).unwrap();
    }
    send(&told.0, b"home", SendFlags::NOSIGNAL).unwrap();
    assert!(heard(&told.0).starts_with("no that is not understood"));
    assert_eq!(told.ask(&format!("own {me}")), "own 0 0 0 0");
    assert_eq!(device.status()[0]["programs"], 1);
    drop(told);
    until("it is not served any more", || {
        device.status()[0]["programs"] == 0
    });
    assert_eq!(other.policy(), OTHER);
    assert_eq!(end(mediator), Some(0));
}
