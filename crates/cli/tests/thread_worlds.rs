//! Programs do the same under a mediator of the whole device as by themselves: the test
//! programs of the preload, run in both worlds, end in the same way and print the same.

mod mediated;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use mediated::{Device, end, preload, text};

/// Compiles one of the preload's programs; none if its compiler is not here.
fn compiled(device: &Device, compiler: &[&str], source: &str) -> Option<PathBuf> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/tests/programs");
    let program = device.path(&format!("{}worlds", device.prefix));
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .arg(programs.join(source))
        .arg("-o")
        .arg(&program)
        .output();
    let Ok(output) = output else {
        eprintln!("skipped, {} is not installed", compiler[0]);
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(program)
}

/// How a program has ended, and what it said.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    status: String,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// Of a program that ends after five minutes if it hangs.
    fn of(mut command: Command) -> Ended {
        let output: Output = command.stdin(Stdio::null()).output().unwrap();
        Ended {
            status: output.status.to_string(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

fn limited() -> Command {
    let mut command = Command::new("timeout");
    command.arg("300");
    command
}

/// All cases of a program, natively and under a mediator by each rung. Its first thread is
/// critical, so that all others wait, and return often.
fn does_the_same(test: &str, compiler: &[&str], source: &str) {
    let Some(preload) = preload() else {
        eprintln!(
            "skipped, the preload was not built: cargo build -p milieu-preload --profile preload"
        );
        return;
    };
    for rung in ["realtime", "cgroup", "idle", "nice"] {
        let device = Device::new(test, "");
        let Some(program) = compiled(&device, compiler, source) else {
            return;
        };
        let settings = ["--wait-max", "0.02", "--turn", "50"];
        let Some((mediator, mut news)) = device.mediator(rung, &settings) else {
            continue;
        };
        let roles = device.path("roles");
        fs::write(&roles, "number 0 => main critical\n").unwrap();
        let listed = Ended::of(Command::new(&program)).stdout;
        let cases: Vec<&str> = listed.lines().collect();
        assert!(cases.len() >= 5, "{listed}");
        for case in &cases {
            let mut native = limited();
            native.arg(&program).arg(case);
            let mut served = limited();
            served
                .arg(env!("CARGO_BIN_EXE_milieu"))
                .env("MILIEU_PRELOAD_DIR", &preload)
                .env("HOME", device.path("home"))
                .env_remove("XDG_STATE_HOME")
                .args(["thread", "run", "--no-profile", "--quiet", "--mediator"])
                .arg(device.path("run/mediator"))
                .arg("--roles")
                .arg(&roles)
                .arg("--")
                .arg(&program)
                .arg(case);
            assert_eq!(Ended::of(served), Ended::of(native), "{case} by {rung}");
        }
        assert_eq!(end(mediator), Some(0));
        let told = std::iter::from_fn(|| news.next());
        let served = told.filter(|it| it["is"] == "serves").count();
        assert!(served >= cases.len(), "{served} programs were served");
    }
}

const OF_C: [&str; 5] = ["-Wall", "-g", "-O1", "-D_GNU_SOURCE", "-pthread"];

fn of_c<'a>(compiler: &'a str, standard: &'a str, include: &'a str) -> Vec<&'a str> {
    let mut words = vec![compiler, standard, "-I", include];
    words.extend(OF_C);
    words
}

fn include() -> String {
    format!("{}/../preload/include", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn programs_in_c_do_the_same() {
    does_the_same("wc", &of_c("gcc", "-std=c11", &include()), "worlds.c");
}

#[test]
fn programs_in_cpp_do_the_same() {
    does_the_same("wp", &of_c("g++", "-std=c++20", &include()), "worlds.cpp");
}

#[test]
fn programs_in_rust_do_the_same() {
    let rustc = [
        "rustc",
        "--edition",
        "2021",
        "-O",
        "-C",
        "link-arg=-Wl,--build-id",
    ];
    does_the_same("wr", &rustc, "worlds.rs");
}
