//! What the preload does: threads have attributes, others see them, they go to their
//! regions and return, and what their stacks need is learned.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use milieu_threads::loader::{self, Image};
use milieu_threads::rung::{Return, Rung, probe};
use milieu_threads::table::View;
use support::{Machine, NATIVE, World, compile, has_small_preload, library, scratch, skipped};

/// What is waited for takes that long at most, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(200);

/// Begins a program that may not schedule others as it likes.
const WITHOUT_PRIVILEGE: [&str; 3] = [
    "setpriv",
    "--inh-caps=-sys_nice",
    "--bounding-set=-sys_nice",
];

/// Whether a program can be begun in this way.
fn begins(starter: &[&str]) -> bool {
    let mut tried = std::process::Command::new(starter[0]);
    let tried = tried.args(&starter[1..]).arg("true").output();
    tried.is_ok_and(|it| it.status.success())
}

const ABSENCE: &str = "milieu: threads are scheduled as always: Milieu is not here; \
                       `milieu thread run` starts this program with it\n";

#[test]
fn a_program_of_the_header_runs_with_and_without_milieu() {
    let folder = scratch("header");
    let source = fs::read_to_string(support::package().join("tests/programs/attributes.c"));
    let copy = folder.join("attributes.cpp");
    fs::write(&copy, source.expect("it is there")).expect("a file");
    let cpp = copy.to_str().expect("letters");
    let small = Machine::Small.compiler("gcc");
    for (compiler, source) in [
        ("gcc", "attributes.c"),
        ("clang", "attributes.c"),
        (small, "attributes.c"),
        ("g++", cpp),
        ("clang++", cpp),
    ] {
        // One that is not moved finds it too; and one of an earlier language understands it.
        let otherwise = match source == cpp {
            false => (compiler == "gcc").then_some(&["-no-pie", "-fno-pie"][..]),
            true => Some(&["-std=c++17"][..]),
        };
        for flags in [&[][..]].into_iter().chain(otherwise) {
            let Some(program) = compile(compiler, source, &folder, flags) else {
                continue;
            };
            let native = NATIVE.run(&program, &[]);
            if compiler == small && (native.status != "exit status: 0" || !has_small_preload()) {
                skipped("programs of 32 bits do not run here");
                continue;
            }
            assert_eq!(native.stderr, ABSENCE, "{compiler}");
            assert_eq!(native.well(), "done\n");
            for settings in ["", "rung=off", "stacks=off;capacity=1"] {
                let served = World::served(settings).run(&program, &["served"]);
                assert_eq!(served.stderr, "", "{compiler}");
                assert_eq!(served.well(), "done\n");
            }
        }
        if let Some(program) = compile(compiler, source, &folder, &["-DMILIEU_THREADS_SILENT"]) {
            assert_eq!(NATIVE.run(&program, &[]).stderr, "", "{compiler}");
        }
    }
}

#[test]
fn a_program_of_the_header_runs_with_an_older_preload() {
    let folder = scratch("older");
    for compiler in ["gcc", "clang"] {
        if let Some(program) = compile(compiler, "older.c", &folder, &[]) {
            assert_eq!(NATIVE.run(&program, &[]).well(), "done\n");
        }
    }
}

#[test]
fn a_program_may_be_linked_with_the_preload() {
    let folder = scratch("linked");
    let library = library();
    let library = library.to_str().expect("letters");
    let Some(program) = compile("gcc", "attributes.c", &folder, &[library]) else {
        return;
    };
    let path = Path::new(library).parent().expect("a folder");
    let path = format!("LD_LIBRARY_PATH={}", path.display());
    let world = World {
        starter: &["env", &path],
        ..NATIVE
    };
    let run = world.run(&program, &["served"]);
    assert_eq!(run.stderr, "");
    assert_eq!(run.well(), "done\n");
}

#[test]
fn static_programs_run_without_milieu() {
    let folder = scratch("static");
    let Some(program) = compile("gcc", "attributes.c", &folder, &["-static"]) else {
        return;
    };
    let run = World::served("").run(&program, &[]);
    assert_eq!(run.stderr, ABSENCE);
    assert_eq!(run.well(), "done\n");
}

#[test]
fn threads_go_to_their_regions_and_return() {
    let folder = scratch("regions");
    let Some(program) = compile("gcc", "regions.c", &folder, &[]) else {
        return;
    };
    for report in probe().iter().filter(|it| it.verdict == Ok(Return::Always)) {
        // Without turns: nobody returns because of the time.
        let settings = format!("wait=never;rung={}", report.rung);
        let run = World::served(&settings).run(&program, &[report.rung.name()]);
        assert_eq!(run.stderr, "", "{settings}");
        assert_eq!(run.well(), "done\n", "{settings}");
        let settings = format!("{settings};blocked=leave;spin=100000");
        let run = World::served(&settings).run(&program, &[report.rung.name(), "leave"]);
        assert_eq!(run.stderr, "", "{settings}");
        assert_eq!(run.well(), "done\n", "{settings}");
    }
}

#[test]
fn threads_that_cannot_return_are_bound_when_they_begin() {
    let folder = scratch("bound");
    if !begins(&WITHOUT_PRIVILEGE) {
        return skipped("privileges cannot be given up here");
    }
    let Some(program) = compile("gcc", "regions.c", &folder, &[]) else {
        return;
    };
    for rung in [Rung::Idle, Rung::Nice] {
        let settings = format!("rung={rung}");
        let world = World {
            starter: &WITHOUT_PRIVILEGE,
            ..World::served(&settings)
        };
        let run = world.run(&program, &[rung.name(), "bound"]);
        assert_eq!(run.stderr, "");
        assert_eq!(run.well(), "done\n", "{rung}");
    }
}

/// A limit is enough for real time.
#[test]
fn threads_are_real_time_within_a_limit() {
    let folder = scratch("limit");
    let starter = [&["prlimit", "--rtprio=40"], &WITHOUT_PRIVILEGE[..]].concat();
    if !begins(&starter) {
        return skipped("a limit of real time cannot be raised here, or privileges not given up");
    }
    let Some(program) = compile("gcc", "regions.c", &folder, &[]) else {
        return;
    };
    for settings in ["wait=never;rung=realtime", "wait=never;rung=auto"] {
        let world = World {
            starter: &starter,
            ..World::served(settings)
        };
        let run = world.run(&program, &["realtime", "limit"]);
        assert_eq!(run.stderr, "", "{settings}");
        assert_eq!(run.well(), "done\n", "{settings}");
    }
}

#[test]
fn patterns_give_roles_that_others_see() {
    let folder = scratch("roles");
    let Some(program) = compile("gcc", "roles.c", &folder, &["-rdynamic"]) else {
        return;
    };
    let roles = folder.join("roles");
    fs::write(
        &roles,
        "start worker_of_* => net/worker\nname audio-? => audio stack=300K\n\
         number 0 => main\nnumber 4 => last\n",
    )
    .expect("a file");
    let settings = format!("roles={};capacity=16", roles.display());
    let mut command = World::served(&settings).command(&program, &[]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut said).expect("a line");
    assert_eq!(said, "begun\n");
    let view = View::of_process(process_of(&child)).expect("it has a table");
    let mut threads: Vec<_> = view.iter().map(|(_, it)| it).collect();
    threads.sort_by_key(|it| it.tid);
    let roles: Vec<_> = threads
        .iter()
        .map(|it| it.attributes.role().as_str().to_owned())
        .collect();
    assert_eq!(roles, ["main", "net/worker", "audio", "", "last"]);
    for thread in &threads[1..] {
        assert!(thread.stack_kib > 0 && thread.stack_kib_peak > 0);
    }
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

/// The program that `timeout` has started.
fn process_of(child: &Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let process = fs::read_to_string(children).expect("it has one");
    process.trim().parse().expect("a number")
}

/// Whoever looks at the table sees how deep threads are that go on: where that is noted, and
/// where somebody is looked after.
#[test]
fn the_table_says_how_deep_threads_are_that_run() {
    let folder = scratch("deeper");
    let Some(program) = compile("gcc", "deeper.c", &folder, &[]) else {
        return;
    };
    let roles = folder.join("roles");
    fs::write(&roles, "number 1 => probe critical\n").expect("a file");
    let profile = folder.join("profile");
    for settings in [
        format!("stacks=learn;profile={}", profile.display()),
        format!("rung=idle;roles={}", roles.display()),
    ] {
        let mut command = World::served(&settings).command(&program, &[]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut said = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut said).expect("a line");
        assert_eq!(said, "begun\n");
        let view = View::of_process(process_of(&child)).expect("it has a table");
        let peak = || view.iter().map(|(_, it)| it.stack_kib_peak).max();
        assert!(peak() > Some(0) && peak() < Some(100), "{:?}", peak());
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(b"x").expect("it reads");
        let begun = Instant::now();
        while peak() < Some(200_000 / 1024) {
            assert!(begun.elapsed() < PATIENCE, "{settings}: {:?}", peak());
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(stdin);
        assert!(child.wait().expect("it ends").success());
    }
}

#[test]
fn what_cannot_be_understood_is_told_and_harms_nobody() {
    let folder = scratch("settings");
    let Some(program) = compile("gcc", "attributes.c", &folder, &[]) else {
        return;
    };
    let roles = folder.join("roles");
    fs::write(&roles, "name a => b urgent\n").expect("a file");
    for (settings, word) in [
        (
            "stacks=large",
            "`stacks=large` in MILIEU_THREADS: expected `off`".to_owned(),
        ),
        (
            &format!("roles={}", roles.display()),
            format!(
                "{}: line 1, `name a => b urgent`: expected",
                roles.display()
            ),
        ),
        (
            "roles=/nowhere/at/all",
            "/nowhere/at/all: the patterns cannot be read: ENOENT".to_owned(),
        ),
        (
            "profile=/nowhere/at/all",
            "/nowhere/at/all: what was learned is not kept: the file `.lock`".to_owned(),
        ),
    ] {
        let run = World::served(settings).run(&program, &["served"]);
        assert!(
            run.stderr.starts_with(&format!("milieu: {word}")),
            "{run:?}"
        );
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        assert_eq!(run.well(), "done\n");
        let quiet = format!("{settings};quiet=yes");
        let run = World::served(&quiet).run(&program, &["served"]);
        assert_eq!(run.stderr, "");
    }
}

/// A thread that overflows its stack is told of, and its key is not tuned again.
#[test]
fn stacks_are_learned_applied_and_left_alone_after_an_overflow() {
    let folder = scratch("learning");
    let Some(program) = compile("gcc", "stacks.c", &folder, &[]) else {
        return;
    };
    let roles = folder.join("roles");
    fs::write(&roles, "number 1-9 => pool/worker\n").expect("a file");
    let profile = folder.join("profile");
    let settings = |mode: &str| {
        let (profile, roles) = (profile.display(), roles.display());
        format!("stacks={mode};profile={profile};roles={roles}")
    };
    let bytes = |mode: &str, levels: &str| {
        let run = World::served(&settings(mode)).run(&program, &[levels]);
        assert_eq!(run.stderr, "");
        let stdout = run.well();
        stdout.trim().parse::<u64>().expect("a number of bytes")
    };
    let native = NATIVE.run(&program, &["1"]).well();
    let native: u64 = native.trim().parse().expect("a number of bytes");
    for _ in 0..3 {
        assert_eq!(bytes("learn", "1"), native);
    }
    let text = fs::read_to_string(&profile).expect("it was learned");
    assert!(text.contains(" runs=3 threads=9 "), "{text}");
    assert!(text.contains(" role=pool/worker"), "{text}");
    let tuned = bytes("force", "1");
    assert!(tuned < native && tuned >= 128 << 10, "{tuned}");
    // A heavier run is learned, and has its place.
    assert_eq!(bytes("force", "60"), tuned);
    let run = World::served(&settings("force")).run(&program, &["100000"]);
    assert!(
        run.status.contains("139") || run.status.contains("signal: 11"),
        "{run:?}"
    );
    assert!(run.stderr.starts_with("milieu: thread "), "{run:?}");
    assert!(
        run.stderr
            .contains("`pool/worker` has overflowed its stack of"),
        "{run:?}"
    );
    let text = fs::read_to_string(&profile).expect("it is there");
    assert!(text.contains(" overflow="), "{text}");
    assert_eq!(bytes("force", "1"), native);
}

/// In limited address space, stacks are as the program has them as long as there is enough
/// of it, and nobody overflows who would not without a tuner.
#[test]
fn learned_sizes_are_applied_where_space_runs_short() {
    let folder = scratch("short");
    let Some(program) = compile("gcc", "stacks.c", &folder, &[]) else {
        return;
    };
    let profile = folder.join("profile");
    let settings = format!("profile={}", profile.display());
    let limited = World {
        starter: &["prlimit", "--as=4294967296"],
        ..World::served(&settings)
    };
    let bytes = |world: &World<'_>, arguments: &[&str]| {
        let run = world.run(&program, arguments);
        assert_eq!(run.stderr, "");
        let stdout = run.well();
        stdout.trim().parse::<u64>().expect("a number of bytes")
    };
    if !support::has("prlimit") {
        return skipped("`prlimit` is not here, of the package util-linux");
    }
    let native = bytes(&NATIVE, &["1"]);
    for _ in 0..3 {
        assert_eq!(bytes(&limited, &["1"]), native);
    }
    // Each level takes more than a thousand bytes.
    let deep = (native / 4000).to_string();
    assert_eq!(bytes(&limited, &[&deep]), native);
    fs::remove_file(&profile).expect("it was learned");
    for _ in 0..3 {
        assert_eq!(bytes(&limited, &["1", "600"]), native);
    }
    let tuned = bytes(&limited, &["1", "600"]);
    assert!(tuned < native && tuned >= 128 << 10, "{tuned}");
    assert_eq!(bytes(&limited, &["1"]), native);
    assert_eq!(bytes(&World::served(&settings), &["1", "600"]), native);
}

/// What a program sets stays, and is told of; it shrinks for whoever asks for that.
#[test]
fn sizes_that_a_program_sets_shrink_on_request_alone() {
    let folder = scratch("set");
    let Some(program) = compile("gcc", "stacks.c", &folder, &[]) else {
        return;
    };
    // Of each thread, and by what all threads have.
    for ways in [&["1", "0", "4096"][..], &["1", "0", "4096", "default"]] {
        let profile = folder.join(format!("profile-{}", ways.len()));
        let settings = |rest: &str| format!("profile={};{rest}", profile.display());
        let bytes = |rest: &str| {
            let run = World::served(&settings(rest)).run(&program, ways);
            assert_eq!(run.stderr, "");
            let stdout = run.well();
            stdout.trim().parse::<u64>().expect("a number of bytes")
        };
        for _ in 0..3 {
            assert_eq!(bytes("stacks=learn"), 4 << 20);
        }
        let text = fs::read_to_string(&profile).expect("it was learned");
        assert!(text.contains(" given=4194304 set"), "{text}");
        assert_eq!(bytes("stacks=force"), 4 << 20);
        assert_eq!(bytes("stacks=force;set-sizes=keep"), 4 << 20);
        // It may ask for address space: that is short nowhere here.
        assert_eq!(bytes("stacks=tune;set-sizes=shrink"), 4 << 20);
        let shrunk = bytes("stacks=force;set-sizes=shrink");
        assert!((128 << 10..1 << 20).contains(&shrunk), "{shrunk}");
    }
}

/// The files by which stacks are measured may be closed, and their numbers be another's.
#[test]
fn a_program_may_close_files_that_it_does_not_know() {
    let folder = scratch("closes");
    let Some(program) = compile("gcc", "closes.c", &folder, &[]) else {
        return;
    };
    let closed = |world: &World<'_>| {
        let run = world.run(&program, &[]);
        assert_eq!(run.stderr, "");
        let closed = run.well();
        closed.trim().parse::<u32>().expect("a number of files")
    };
    let profile = folder.join("profile");
    let settings = format!("stacks=learn;profile={}", profile.display());
    // Whoever runs the tests may have left it some of its own.
    let inherited = closed(&NATIVE);
    assert!(closed(&World::served(&settings)) >= inherited + 2);
    let text = fs::read_to_string(&profile).expect("it was learned");
    let peaks = text.split_whitespace().filter_map(|it| {
        let bytes = it.strip_prefix("peak=")?;
        bytes.parse::<u64>().ok()
    });
    let deepest = peaks.max().expect("there are threads");
    // What it fills, and some pages of ours and the C library's.
    assert!((100 << 10..200 << 10).contains(&deepest), "{text}");
    assert!(text.contains(" threads=2 "), "{text}");
}

/// A program that forks has children that are served as it is.
#[test]
fn children_learn_too() {
    let folder = scratch("children");
    let Some(program) = compile("gcc", "worlds.c", &folder, &[]) else {
        return;
    };
    let profile = folder.join("profile");
    let settings = format!("profile={}", profile.display());
    World::served(&settings)
        .run(&program, &["other-programs"])
        .well();
    let text = fs::read_to_string(&profile).expect("it was learned");
    assert!(text.contains("threads=4 "), "{text}");
}

/// A mediator of the whole device gets the table, and is told of changes; the program
/// moves nobody itself while it is there.
#[test]
fn a_mediator_of_the_device_is_told() {
    let folder = scratch("device");
    let Some(program) = compile("gcc", "attributes.c", &folder, &[]) else {
        return;
    };
    let path = folder.join("mediator");
    let listening = seqpacket(&path);
    let settings = format!("mediator={}", path.display());
    let mut command = World::served(&settings).command(&program, &["served"]);
    let child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    // SAFETY: all of it lives as long as the calls, and is as long as they say.
    let told = unsafe {
        let socket = libc::accept(listening, null_mut(), null_mut());
        assert!(socket >= 0);
        let (text, table) = heard(socket).expect("it says something");
        assert_eq!(text, "milieu 2");
        let table = table.expect("the table");
        let link = format!("/proc/self/fd/{table}\0");
        let link = std::ffi::CString::from_vec_with_nul(link.into_bytes()).expect("a path");
        let view = View::open(&link).expect("it is a table");
        assert_eq!(view.iter().count(), 1);
        assert_eq!(libc::send(socket, c"yes".as_ptr().cast(), 3, 0), 3);
        let mut told = 0;
        while let Some((text, handed)) = heard(socket) {
            // What it asks is answered by the socket that comes with it.
            let answer = match text.split(' ').next() {
                Some("c") => {
                    told += 1;
                    continue;
                }
                Some("w" | "s") => continue,
                Some("home") => c"yes",
                Some("own") => c"own 0 0 0 0",
                other => panic!("{other:?} is none of what it says"),
            };
            let handed = handed.expect("a socket");
            let length = answer.to_bytes().len();
            assert!(libc::send(handed, answer.as_ptr().cast(), length, 0) > 0);
            libc::close(handed);
        }
        libc::close(table);
        libc::close(socket);
        libc::close(listening);
        told
    };
    // A thread begins and ends, and the main thread's attributes change.
    assert!(told >= 4, "{told}");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    // Where nobody listens the program does it itself.
    let run = World::served(&settings).run(&program, &["served"]);
    assert_eq!(run.stderr, "");
    run.well();
}

/// What comes by a socket, with a file that was handed over; none when it ends.
fn heard(socket: i32) -> Option<(String, Option<i32>)> {
    let mut text = [0_u8; 64];
    let mut part = libc::iovec {
        iov_base: text.as_mut_ptr().cast(),
        iov_len: text.len(),
    };
    let mut space = [0_usize; 16];
    // SAFETY: all of it lives as long as the calls, and is as long as they say.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = space.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&space) as _;
        let length = libc::recvmsg(socket, &mut message, 0);
        let header = libc::CMSG_FIRSTHDR(&message);
        let handed =
            (!header.is_null()).then(|| libc::CMSG_DATA(header).cast::<i32>().read_unaligned());
        let text = text.get(..usize::try_from(length).unwrap_or(0))?;
        (!text.is_empty()).then(|| (support::said(text), handed))
    }
}

/// A socket that listens, whose packets stay apart.
fn seqpacket(path: &Path) -> i32 {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: zeros are an address, and the call reads as much as there is.
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let bytes = path.as_os_str().as_bytes();
        assert!(bytes.len() < address.sun_path.len(), "the path is too long");
        for (into, byte) in address.sun_path.iter_mut().zip(bytes) {
            *into = *byte as _;
        }
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        assert_eq!(libc::bind(socket, (&raw const address).cast(), length), 0);
        assert_eq!(libc::listen(socket, 4), 0);
        // A program that does not come fails the test, and does not stop it.
        let patience = libc::timeval {
            tv_sec: 300,
            tv_usec: 0,
        };
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
        let length = size_of::<libc::timeval>() as libc::socklen_t;
        let said = libc::setsockopt(socket, level, option, (&raw const patience).cast(), length);
        assert_eq!(said, 0);
        socket
    }
}

/// A program of another C library would not start with a preload of glibc's.
#[test]
fn programs_of_other_libraries_begin_without_the_preload() {
    use std::os::unix::fs::PermissionsExt;
    let folder = scratch("others");
    let Some(own) = compile("gcc", "begins.c", &folder, &[]) else {
        return;
    };
    let bytes = fs::read(&own).expect("it was compiled");
    let Image::Loaded(loader) = loader::image(&bytes) else {
        panic!("it is linked dynamically");
    };
    let loader = String::from_utf8_lossy(loader).into_owned();
    // By that name it is another's.
    let others = folder.join("ld-musl.so.1");
    fs::copy(loader, &others).expect("a file");
    let flag = format!("-Wl,--dynamic-linker={}", others.display());
    fs::create_dir_all(folder.join("other")).expect("a folder");
    let other = compile("gcc", "begins.c", &folder.join("other"), &[&flag]).expect("as before");
    let script = folder.join("script");
    fs::write(&script, format!("#!{}\n", other.display())).expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");

    let ours = support::preload();
    let before = |first, program: &Path| {
        let world = World {
            first,
            ..World::served("")
        };
        let said = world
            .run(&own, &["begin", &program.display().to_string()])
            .well();
        let said = said.lines().map(|it| it.split_once(": ").expect("a way").1);
        let mut said: Vec<_> = said.map(str::to_owned).collect();
        assert_eq!(said.len(), 9);
        said.dedup();
        said
    };
    assert_eq!(before("", &own), [ours]);
    assert_eq!(before("", &other), ["nothing"]);
    assert_eq!(before("libm.so.6", &own), [format!("libm.so.6:{ours}")]);
    assert_eq!(before("libm.so.6", &other), ["libm.so.6"]);
    assert_eq!(before("libm.so.6", &script), ["libm.so.6"]);
}

/// One for each processor: nobody else would have any.
#[test]
fn all_that_run_away_are_demoted_and_told_and_others_go_on() {
    let folder = scratch("spins");
    let Some(program) = compile("gcc", "spins.c", &folder, &[]) else {
        return;
    };
    for report in probe() {
        // Where lazy threads have turns, others go on anyhow.
        let settings = format!("rung={};wait=never", report.rung);
        if report.verdict != Ok(Return::Always) {
            continue;
        }
        let world = World::served(&settings);
        let [used, all] = run_away(&world, &program, "not critical any more");
        // On a machine that does much else all of them have little, and it takes more than the
        // first second until they have run away.
        assert!(
            all < 1000 || used * 20 >= all,
            "{settings}: {used} of {all} ms"
        );
    }
}

/// One that is not critical began as lazy and stays it: those that run away join it.
#[test]
fn all_that_run_away_are_lazy_where_nobody_returns() {
    let folder = scratch("spins-unprivileged");
    let Some(program) = compile("gcc", "spins.c", &folder, &[]) else {
        return;
    };
    let starter = [&["prlimit", "--nice=0:0"], &WITHOUT_PRIVILEGE[..]].concat();
    if !begins(&starter) {
        return skipped("rights cannot be given up here");
    }
    for settings in ["rung=idle", "rung=nice"] {
        let world = World {
            starter: &starter,
            ..World::served(settings)
        };
        let lazy = "lazy from now on, as threads do not return here";
        run_away(&world, &program, lazy);
    }
}

/// Runs the program that has a critical thread for each processor which runs away: all are
/// told of with what they are then, and who is not critical has 5 % of what the program has;
/// how many milliseconds it had in the second second, and all of them.
fn run_away(world: &World<'_>, program: &Path, become_what: &str) -> [u64; 2] {
    let processors = std::thread::available_parallelism().expect("there are some");
    let run = world.run(program, &[]);
    let told =
        format!("`probe` kept a processor for 300 ms without blocking and is {become_what}\n");
    let settings = world.settings;
    assert_eq!(
        run.stderr.matches(&told).count(),
        processors.get(),
        "{settings:?}: {run:?}"
    );
    let used: Vec<u64> = run
        .well()
        .split_whitespace()
        .map(|it| it.parse().expect("milliseconds"))
        .collect();
    assert!(used[2] * 20 >= used[3], "{settings:?}: {used:?} ms");
    [used[0], used[1]]
}

/// Who is lazy when the rights go by which it returns would be so for good.
#[test]
fn threads_return_before_rights_go() {
    let folder = scratch("rights");
    let Some(program) = compile("gcc", "rights.c", &folder, &[]) else {
        return;
    };
    let user = fs::metadata("/proc/self").expect("this process");
    if std::os::unix::fs::MetadataExt::uid(&user) != 0 {
        return skipped("only root has rights to give up");
    }
    for report in probe() {
        if report.verdict != Ok(Return::Always) {
            continue;
        }
        let settings = format!("rung={};wait=never;stacks=off", report.rung);
        let run = World::served(&settings).run(&program, &[]);
        assert_eq!(run.status, "exit status: 0", "{settings}: {run:?}");
        let told = run
            .stderr
            .matches("has given up the rights by which")
            .count();
        assert_eq!(told, 1, "{settings}: {run:?}");
        // What takes no such right goes on, and is not told of.
        let run = World::served(&settings).run(&program, &["one"]);
        assert_eq!(run.status, "exit status: 0", "{settings}: {run:?}");
        let told = run.stderr.lines().count();
        assert_eq!(told, usize::from(report.rung != Rung::Cgroup), "{run:?}");
    }
}
