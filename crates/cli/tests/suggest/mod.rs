//! What `milieu thread profile --suggest` proposes, in the next run of the program.

use std::io::{BufRead, BufReader};

use super::*;

/// Functions that no file exports; threads that name themselves, that others name, and that
/// nobody names.
const C: &str = "\
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int begun;
static void begin(void) { __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST); }
static void *waits(void *a) { for (begin();;) pause(); return a; }
static void *ticks(void *a) { for (begin();;) usleep(2000); return a; }
static void *tocks(void *a) { for (begin();;) usleep(2000); return a; }
static void *beats(void *a)
{
    pthread_setname_np(pthread_self(), \"beat\");
    for (begin();;) usleep(2000);
    return a;
}
int main(void)
{
    void *(*all[])(void *) = { waits, waits, ticks, tocks, beats };
    pthread_t thread;
    for (int i = 0; i < 5; i++) {
        if (pthread_create(&thread, NULL, all[i], NULL)) return 1;
        if (all[i] == tocks) pthread_setname_np(thread, \"tock # 1\");
    }
    while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < 5) usleep(1000);
    puts(\"begun\");
    fflush(stdout);
    exit(getchar() == EOF ? 0 : 1);
}
";

/// Threads of one kind or, with a word, of two.
const CPP: &str = "\
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
static std::atomic<int> begun;
static void work() { for (begun++;;) pause(); }
static void other(int) { for (begun++;;) pause(); }
int main(int n, char **)
{
    std::thread(work).detach();
    std::thread(work).detach();
    if (n > 1) std::thread(other, n).detach();
    while (begun < (n > 1 ? 3 : 2)) usleep(1000);
    puts(\"begun\");
    fflush(stdout);
    exit(getchar() == EOF ? 0 : 1);
}
";

/// The same, of which one has a name.
const RUST: &str = "\
use std::{io::Read, sync::mpsc::channel, thread, time::Duration};
fn main() {
    let (tell, told) = channel();
    let told_by_another = tell.clone();
    thread::spawn(move || {
        tell.send(()).unwrap();
        loop { thread::park() }
    });
    told.recv().unwrap();
    if std::env::args().count() > 1 {
        let beat = thread::Builder::new().name(\"beat\".into());
        let beats = move || {
            told_by_another.send(()).unwrap();
            loop { thread::sleep(Duration::from_millis(2)) }
        };
        beat.spawn(beats).unwrap();
        told.recv().unwrap();
    }
    println!(\"begun\");
    std::io::stdin().read_exact(&mut [0]).unwrap_err();
}
";

/// A program that is served and waits for the end of its input.
struct Served {
    child: Child,
    home: PathBuf,
}

impl Served {
    fn start(home: &Home, arguments: &[&str]) -> Option<Served> {
        let Some(preload) = preload() else {
            eprintln!(
                "skipped, the preload was not built: cargo build -p milieu-preload --profile \
                 preload"
            );
            return None;
        };
        // Nobody is moved: what threads are for is what counts.
        let mut command = home.milieu(&["run", "--rung", "off", "--profile", "learned"]);
        let command = command.env("MILIEU_PRELOAD_DIR", preload).args(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut said).unwrap();
        assert_eq!(said, "begun\n");
        let home = home.0.path().to_owned();
        Some(Served { child, home })
    }

    fn proposed(&self, home: &Home) -> String {
        let pid = self.child.id().to_string();
        home.ok(&[
            "profile",
            "learned",
            "--suggest",
            "--pid",
            &pid,
            "--seconds",
            "1",
        ])
    }

    /// What its threads are for, in the order in which they were created: role, and whether
    /// they are critical.
    fn roles(&self, home: &Home) -> Vec<String> {
        let first = u64::from(self.child.id());
        let pid = first.to_string();
        let shown = home.ok(&["top", "--once", "--interval", "0", "--json", "--pid", &pid]);
        let shown = &json_lines(&shown)[0]["processes"][0]["threads"];
        let mut threads = shown.as_array().unwrap().clone();
        // What Milieu has there itself is in no region.
        threads.retain(|it| !it["region"].is_null());
        // After the greatest number come small ones.
        threads.sort_by_key(|it| it["thread"].as_u64().map(|it| (it < first, it)));
        let role = |it: &Value| {
            let end = it["is_time_critical"].as_bool().unwrap();
            let end = if end { " critical" } else { "" };
            format!("{}{end}", it["role"].as_str().unwrap_or("-"))
        };
        threads.iter().map(role).collect()
    }

    /// They are that, at once or when all have begun.
    fn has(&self, home: &Home, expected: &[&str], proposed: &str) {
        let end = Instant::now() + PATIENCE;
        while self.roles(home) != expected {
            let roles = self.roles(home);
            assert!(Instant::now() < end, "{roles:?}, by {proposed}");
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        assert!(self.home.join("learned").exists());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compile(home: &Home, compiler: &str, source: &str, text: &str, options: &[&str]) -> bool {
    fs::write(home.path(source), text).unwrap();
    let mut command = Command::new(compiler);
    command.args(options).args(["-o", "program", source]);
    match command.current_dir(home.0.path()).output() {
        Ok(output) => {
            assert!(output.status.success(), "{output:?}");
            true
        }
        Err(_) => {
            eprintln!("skipped, there is no {compiler}");
            false
        }
    }
}

/// The lines that are no remarks.
fn lines(proposed: &str) -> Vec<&str> {
    let lines = proposed.lines();
    lines
        .filter(|it| !it.starts_with('#') && !it.is_empty())
        .collect()
}

/// Runs the program twice, the second time until so many lines are proposed; what is proposed
/// is the file of patterns of a third run, whose threads have these roles.
fn proposes(home: &Home, words: &[&str], count: usize, expected: &[&str]) -> Option<String> {
    Served::start(home, &[&["--"], words].concat())?.end();
    let served = Served::start(home, &[&["--"], words].concat())?;
    let end = Instant::now() + PATIENCE;
    let proposed = loop {
        let proposed = served.proposed(home);
        // On a machine that does much else, threads wake seldom.
        if lines(&proposed).len() >= count {
            break proposed;
        }
        assert!(Instant::now() < end, "{proposed}");
    };
    served.has(home, &vec!["-"; expected.len()], &proposed);
    served.end();
    fs::write(home.path("roles"), &proposed).unwrap();
    // Patterns know a program by its file, whatever it is started as.
    std::os::unix::fs::symlink("program", home.path("link")).unwrap();
    for program in ["./program", "./link"] {
        let run = [&["--roles", "roles", "--", program], &words[1..]].concat();
        let served = Served::start(home, &run)?;
        served.has(home, expected, &proposed);
        served.end();
    }
    Some(proposed)
}

const BUILD: [&str; 4] = ["-g", "-O1", "-pthread", "-Wl,--build-id"];

#[test]
fn what_is_proposed_of_functions_that_nobody_exports_and_of_names_works() {
    for options in [&[][..], &["-no-pie"], &["-rdynamic", "-Dstatic="]] {
        let home = Home::new();
        if !compile(&home, "gcc", "a.c", C, &[&BUILD, options].concat()) {
            return;
        }
        let expected = [
            "-",
            "waits",
            "waits",
            "ticks",
            "tock---1 critical",
            "beat critical",
        ];
        let Some(proposed) = proposes(&home, &["./program"], 6, &expected) else {
            return;
        };
        let names = lines(&proposed);
        let names: Vec<_> = names.iter().filter(|it| it.starts_with("name ")).collect();
        assert_eq!(names.len(), 2, "{proposed}");
        // A remark tells what people know it by, and why there is no line for one that has
        // the name of its program.
        assert!(
            proposed.contains("\n# waits, ") && proposed.contains("a.c:8: "),
            "{proposed}"
        );
        assert!(
            proposed.contains("the name of its program") && proposed.contains("`number 3`"),
            "{proposed}"
        );
        let is_exported = options.contains(&"-rdynamic");
        let line = match is_exported {
            true => "start waits => waits",
            false => "start program+0x",
        };
        assert!(proposed.contains(line), "{proposed}");
    }
}

#[test]
fn what_begins_all_threads_of_cpp_has_a_line_if_they_are_of_one_kind() {
    let home = Home::new();
    if !compile(&home, "g++", "a.cpp", CPP, &BUILD) {
        return;
    }
    let expected = ["-", "thread", "thread"];
    let Some(proposed) = proposes(&home, &["./program"], 1, &expected) else {
        return;
    };
    assert!(
        lines(&proposed)[0].starts_with("start libstdc++.so.6+0x"),
        "{proposed}"
    );
    let home = Home::new();
    compile(&home, "g++", "a.cpp", CPP, &BUILD);
    let proposed = proposes(&home, &["./program", "two"], 0, &["-"; 4]);
    let proposed = proposed.expect("the preload was built");
    assert_eq!(lines(&proposed), [""; 0]);
    assert_eq!(proposed.matches("other kinds begin with").count(), 2);
}

#[test]
fn what_begins_all_threads_of_rust_has_a_line_if_they_are_of_one_kind() {
    let home = Home::new();
    let options = ["--edition=2021", "-g", "-Clink-arg=-Wl,--build-id"];
    if !compile(&home, "rustc", "a.rs", RUST, &options) {
        return;
    }
    let Some(proposed) = proposes(&home, &["./program"], 1, &["-", "thread"]) else {
        return;
    };
    assert!(
        lines(&proposed)[0].starts_with("start program+0x"),
        "{proposed}"
    );
    let home = Home::new();
    compile(&home, "rustc", "a.rs", RUST, &options);
    let expected = ["-", "-", "beat critical"];
    let proposed = proposes(&home, &["./program", "two"], 1, &expected);
    let proposed = proposed.expect("the preload was built");
    assert_eq!(lines(&proposed), ["name beat => beat critical"]);
}

const NAMED: &str = "\
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *waits(void *a) { for (;;) pause(); return a; }
int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 200; i++) {
        if (pthread_create(&thread, NULL, waits, NULL)) return 1;
        if (pthread_setname_np(thread, \"tock\")) return 1;
    }
    puts(\"begun\");
    fflush(stdout);
    return getchar() != EOF;
}
";

/// Most of these have their names before they have had a processor.
#[test]
fn a_name_counts_that_a_thread_is_given_before_it_begins() {
    let home = Home::new();
    if !compile(&home, "gcc", "a.c", NAMED, &["-pthread"]) {
        return;
    }
    fs::write(home.path("roles"), "name tock => tock\n").unwrap();
    let Some(served) = Served::start(&home, &["--roles", "roles", "--", "./program"]) else {
        return;
    };
    let mut expected = vec!["tock"; 201];
    expected[0] = "-";
    served.has(&home, &expected, "its creator");
}

const HIRED_IN_C: &str = "\
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int begun;
static void *waits(void *a) { for (__sync_add_and_fetch(&begun, 1);;) pause(); return a; }
static __attribute__((noinline)) int hires(pthread_t *thread, int number)
{
    for (int i = 0; i < number; i++)
        if (pthread_create(thread, NULL, waits, NULL)) return 1;
    return 0;
}
int main(void)
{
    pthread_t thread;
    if (hires(&thread, 3) || pthread_create(&thread, NULL, waits, NULL)) return 1;
    while (__sync_add_and_fetch(&begun, 0) < 4) usleep(1000);
    puts(\"begun\");
    fflush(stdout);
    return getchar() != EOF;
}
";

const HIRED_IN_CPP: &str = "\
#include <atomic>
#include <cstdio>
#include <thread>
#include <unistd.h>
static std::atomic<int> begun;
static void waits(int) { for (begun++;;) pause(); }
struct Crew {
    template <typename Work> void hires(Work work) { std::thread(work, 7).detach(); }
};
int main()
{
    Crew().hires(waits);
    while (!begun) usleep(1000);
    puts(\"begun\");
    fflush(stdout);
    return getchar() != EOF;
}
";

const HIRED_IN_RUST: &str = "\
use std::{io::Read, sync::mpsc::channel, thread};
mod crew {
    pub fn hires(work: impl FnOnce() + Send + 'static) { super::thread::spawn(work); }
}
fn main() {
    let (tell, told) = channel();
    crew::hires(move || {
        tell.send(()).unwrap();
        loop { thread::park() }
    });
    told.recv().unwrap();
    println!(\"begun\");
    std::io::stdin().read_exact(&mut [0]).unwrap_err();
}
";

/// What is said of where threads are created that have no role, in three runs, of which each
/// finds what the first one has noted.
fn created(home: &Home) -> Option<String> {
    for _ in 0..3 {
        Served::start(home, &["--sites", "--", "./program"])?.end();
    }
    let text = fs::read_to_string(home.path("learned")).unwrap();
    let sites: Vec<&str> = text.lines().filter(|it| it.starts_with("site ")).collect();
    let each = sites.iter().collect::<std::collections::HashSet<_>>();
    assert_eq!(each.len(), sites.len(), "{text}");
    let asked = ["profile", "learned", "--suggest", "--seconds", "0.01"];
    let shown = home.ok(&asked);
    let documents = json_lines(&home.ok(&[&asked[..], &["--json"]].concat()));
    for site in documents.iter().filter(|it| it["is"] == "has-no-role") {
        for it in site["created_by"].as_array().unwrap() {
            assert!(shown.contains(it["function"].as_str().unwrap()), "{shown}");
        }
    }
    Some(shown)
}

#[test]
fn it_is_noted_where_threads_are_created() {
    let rust = ["--edition=2021", "-g", "-Clink-arg=-Wl,--build-id"];
    for (compiler, source, text, options, expected) in [
        (
            "gcc",
            "a.c",
            HIRED_IN_C,
            &BUILD[..],
            &["hires, ", "a.c:9, from main\n", "main, ", "a.c:15\n"][..],
        ),
        (
            "gcc",
            "a.c",
            HIRED_IN_C,
            &["-s", "-O1", "-Wl,--build-id"],
            &["program+0x"],
        ),
        (
            "g++",
            "a.cpp",
            HIRED_IN_CPP,
            &BUILD,
            &["Crew::hires<", "a.cpp:8, from main\n"],
        ),
        (
            "rustc",
            "a.rs",
            HIRED_IN_RUST,
            &rust,
            &["a::crew::hires", "a.rs:3, from a::main"],
        ),
    ] {
        let home = Home::new();
        if !compile(&home, compiler, source, text, options) {
            continue;
        }
        let Some(shown) = created(&home) else {
            return;
        };
        let is_about = |it: &&str| it.starts_with("#   created by ");
        let creators: Vec<&str> = shown.split_inclusive('\n').filter(is_about).collect();
        for part in expected {
            assert!(
                creators.iter().any(|it| it.contains(part)),
                "{part} in {shown}"
            );
        }
        for own in ["std::thread", "libstdc++", "libc.so", "libmilieu"] {
            let wrong = format!("created by {own}");
            assert!(!shown.contains(&wrong), "{shown}");
        }
    }
}

#[test]
fn nobody_is_asked_where_threads_are_created_unless_it_is_wanted() {
    let home = Home::new();
    if !compile(&home, "gcc", "a.c", HIRED_IN_C, &BUILD) {
        return;
    }
    let Some(served) = Served::start(&home, &["--", "./program"]) else {
        return;
    };
    served.end();
    let refused = home.fails(2, &["run", "--sites", "--mode", "off", "--", "./program"]);
    assert!(
        refused.contains("`--sites` with `--mode learn`"),
        "{refused}"
    );
    let text = fs::read_to_string(home.path("learned")).unwrap();
    assert!(
        text.contains("\nthread ") && !text.contains("\nsite "),
        "{text}"
    );
}
