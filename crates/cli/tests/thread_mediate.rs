//! `milieu thread mediate` over real programs, which it leaves as they were.
//!
//! What programs say that the preload serves is tested in `thread_served`.

mod mediated;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use mediated::{Device, IDLE, OTHER, ROUND_ROBIN, Running, end, field, preload, text, until};
use serde_json::Value;

const RULES: &str = "critical PREFIXcrit PREFIXcrit -5\n";

#[test]
fn others_wait_while_a_critical_thread_is_there_and_return_when_it_ends() {
    for rung in ["idle", "nice", "cgroup"] {
        let device = Device::new("a", RULES);
        let other = device.waiting("other");
        let lazy = |it: &Running| match rung {
            "idle" => it.policy() == IDLE,
            "nice" => it.field(19) == 19,
            _ => group(it.number()).contains("milieu-device-"),
        };
        let (home, nice) = (group(other.number()), other.field(19));
        let Some((mediator, _news)) = device.mediator(rung, &["--wait-max", "never"]) else {
            continue;
        };
        assert!(!lazy(&other));
        let critical = device.waiting("crit");
        until("the other one is lazy", || lazy(&other));
        assert!(!lazy(&critical));
        // One that begins meanwhile.
        let late = device.waiting("late");
        until("a later one is lazy", || lazy(&late));
        drop(critical);
        until("both have returned", || !lazy(&other) && !lazy(&late));
        assert_eq!(
            (group(other.number()), other.field(19)),
            (home.clone(), nice)
        );
        // Once more, and the mediator ends first.
        let critical = device.waiting("crit");
        until("the other one is lazy", || lazy(&other) && lazy(&late));
        assert_eq!(end(mediator), Some(0));
        assert!(!lazy(&other) && !lazy(&late));
        assert_eq!((group(other.number()), other.field(19)), (home, nice));
        assert_eq!((other.policy(), critical.policy()), (OTHER, OTHER));
        assert!(!device.path("run/mediator.journal").exists());
    }
}

fn group(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default()
}

#[test]
fn critical_threads_run_in_real_time_and_nobody_else_is_touched() {
    let device = Device::new("b", "critical PREFIXcrit *\nbackground PREFIXback\n");
    let Some((mediator, _news)) = device.mediator("realtime", &[]) else {
        return;
    };
    let (other, background) = (device.waiting("other"), device.waiting("back"));
    let critical = device.waiting("crit");
    until("it runs in real time", || critical.policy() == ROUND_ROBIN);
    until("the background is lazy", || background.policy() == IDLE);
    assert_eq!(other.policy(), OTHER);
    assert_eq!(end(mediator), Some(0));
    let all = [&critical, &background, &other].map(Running::policy);
    assert_eq!(all, [OTHER; 3]);
}

/// What the program's nice value, policy and group are.
fn state(of: &Running) -> (i64, u64, String) {
    (of.field(19), of.policy(), group(of.number()))
}

#[test]
fn a_mediator_that_is_killed_leaves_nothing_behind() {
    for rung in ["idle", "nice", "cgroup", "realtime"] {
        let device = Device::new("c", RULES);
        let (other, critical) = (device.waiting("other"), device.waiting("crit"));
        let before = [state(&other), state(&critical)];
        let is_as_before = || [state(&other), state(&critical)] == before;
        // In real time only critical ones are moved.
        let is_moved = || match rung {
            "realtime" => critical.policy() == ROUND_ROBIN,
            _ => state(&other) != before[0],
        };
        let Some((mut mediator, _news)) = device.mediator(rung, &["--wait-max", "never"]) else {
            continue;
        };
        until("somebody is moved", is_moved);
        mediator.0.kill().unwrap();
        mediator.0.wait().unwrap();
        until("its guard has undone it", is_as_before);
        // A later one takes its place, socket and all.
        let Some((mediator, _news)) = device.mediator(rung, &["--wait-max", "never"]) else {
            panic!("it did work");
        };
        until("somebody is moved", is_moved);
        assert_eq!(end(mediator), Some(0));
        assert!(is_as_before(), "{rung}");
    }
}

#[test]
fn groups_come_one_after_the_other_and_who_is_excluded_stays() {
    const GROUPS: &str = "exclude PREFIXex\nurgent PREFIXur\nservice PREFIXse\n\
                          background PREFIXba\ncritical PREFIXur *\n\
                          critical PREFIXno *\ncritical PREFIXse *\n";
    for rung in ["realtime", "idle"] {
        let device = Device::new("g", GROUPS);
        let [excluded, other, background] = ["ex", "ot", "ba"].map(|it| device.waiting(it));
        let Some((mediator, _news)) = device.mediator(rung, &["--wait-max", "never"]) else {
            continue;
        };
        let critical = ["ur", "no", "se"].map(|it| device.waiting(it));
        until("the background is lazy", || background.policy() == IDLE);
        if rung == "realtime" {
            until("all of them run in real time", || {
                critical.iter().all(|it| it.policy() == ROUND_ROBIN)
            });
            // The kernel's: more is sooner.
            let [urgent, normal, service] = critical.each_ref().map(|it| it.field(40));
            assert!(urgent > normal && normal > service && service > 0);
            assert_eq!(other.policy(), OTHER);
        } else {
            until("the other one is lazy", || other.policy() == IDLE);
            until("the critical are not", || {
                critical.iter().all(|it| it.policy() == OTHER)
            });
        }
        assert_eq!((excluded.policy(), excluded.field(19)), (OTHER, 0));
        drop(critical);
        until("the other one is as it was", || other.policy() == OTHER);
        assert_eq!(background.policy(), IDLE);
        assert_eq!(end(mediator), Some(0));
        assert_eq!(
            [&excluded, &other, &background].map(Running::policy),
            [OTHER; 3]
        );
    }
}

/// As when the guard was killed as well: the journal is all that is left.
#[test]
fn what_was_left_behind_is_undone_on_request() {
    let device = Device::new("d", RULES);
    let other = device.waiting("other");
    let Some((mut mediator, _news)) = device.mediator("nice", &["--wait-max", "never"]) else {
        return;
    };
    let _critical = device.waiting("crit");
    until("the other one is lazy", || other.field(19) == 19);
    let refused = device.milieu(&["--restore"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("a mediator runs"),
        "{refused:?}"
    );
    // The guard first: it has no time to do its work.
    let guard = children(mediator.number());
    assert_eq!(guard.len(), 1);
    let killed = Command::new("kill")
        .args(["-s", "KILL", &guard[0].to_string()])
        .status();
    assert!(killed.unwrap().success());
    mediator.0.kill().unwrap();
    mediator.0.wait().unwrap();
    assert_eq!(other.field(19), 19);
    let output = device.milieu(&["--restore", "--json"]).output().unwrap();
    let found: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    // The critical one had been raised, where that is permitted.
    assert!(found["restored"].as_u64() >= Some(1), "{found}");
    assert_eq!(found["refused"], 0);
    assert_eq!(other.field(19), 0);
    let again = device.milieu(&["--restore"]).output().unwrap();
    assert!(text(&again.stdout).starts_with("0 threads"), "{again:?}");
}

fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).unwrap();
    text.split_whitespace()
        .map(|it| it.parse().unwrap())
        .collect()
}

#[test]
fn one_that_runs_away_is_demoted_and_told() {
    for rung in ["idle", "realtime"] {
        let device = Device::new("e", RULES);
        let Some((mediator, mut news)) = device.mediator(rung, &["--spin-max", "0.2"]) else {
            continue;
        };
        let other = device.waiting("other");
        let mut spinning = device.program("crit", "dash");
        let spinning = Running(
            spinning
                .args(["-c", "while :; do :; done"])
                .spawn()
                .unwrap(),
        );
        let demoted = news.until("demoted");
        assert_eq!(demoted["thread"].as_u64(), Some(spinning.number().into()));
        until("it is not in real time", || {
            spinning.policy() != ROUND_ROBIN
        });
        until("the other one is not lazy", || other.policy() == OTHER);
        let status = device.status();
        assert_eq!(
            (&status[0]["rung"], &status[0]["fast"]),
            (&Value::from(rung), &Value::from(0))
        );
        let its = status.iter().find(|it| it["thread"] == demoted["thread"]);
        assert_eq!(its.unwrap()["is_demoted"], true);
        assert_eq!(end(mediator), Some(0));
        assert_eq!(spinning.policy(), OTHER);
    }
}

/// What begins on one processor, and computes there for as long as it lives.
fn computing(device: &Device, name: &str) -> Running {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status
        .lines()
        .find_map(|it| it.strip_prefix("Cpus_allowed_list:"));
    let first = allowed.unwrap().trim().split([',', '-']).next().unwrap();
    let program = device.program(name, "dash");
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", first]).arg(program.get_program());
    pinned.args(["-c", "while :; do :; done"]);
    Running(pinned.stdin(Stdio::null()).spawn().unwrap())
}

#[test]
fn who_waits_for_a_processor_for_too_long_has_a_turn() {
    for rung in ["idle", "realtime"] {
        let device = Device::new("j", RULES);
        let options = ["--wait-max", "0.2", "--turn", "20", "--spin-max", "1000"];
        let Some((mediator, _news)) = device.mediator(rung, &options) else {
            continue;
        };
        let (other, critical) = (computing(&device, "other"), computing(&device, "crit"));
        let comes_second = || match rung {
            "idle" => other.policy() == IDLE,
            _ => critical.policy() == ROUND_ROBIN,
        };
        for _ in 0..3 {
            until("the other one waits", comes_second);
            until("it is its turn", || !comes_second());
        }
        assert_eq!(end(mediator), Some(0));
        assert_eq!((other.policy(), critical.policy()), (OTHER, OTHER));

        let options = ["--wait-max", "never", "--spin-max", "1000"];
        let (mediator, _news) = device.mediator(rung, &options).expect("it did before");
        until("the other one waits", comes_second);
        for _ in 0..50 {
            assert!(comes_second(), "nobody has asked for turns");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(end(mediator), Some(0));
        assert_eq!((other.policy(), critical.policy()), (OTHER, OTHER));
    }
}

#[test]
fn turns_may_take_more_of_the_time_where_a_wait_is_asked_for() {
    let asked = ["--wait-max", "1"];
    let chosen = ["--wait-max", "1", "--turn-max", "60"];
    for (options, percent) in [(&[][..], 50), (&asked[..], 90), (&chosen[..], 60)] {
        let device = Device::new("m", RULES);
        let Some((mediator, _news)) = device.mediator("idle", options) else {
            return;
        };
        assert_eq!(device.status()[0]["turn_percent_max"], percent);
        assert_eq!(end(mediator), Some(0));
    }
}

#[test]
fn who_is_blocked_keeps_nobody_waiting_if_so_wished() {
    for rung in ["idle", "realtime"] {
        let device = Device::new("k", RULES);
        let options = [
            "--leave-while-blocked",
            "--wait-max",
            "never",
            "--spin-max",
            "1000",
        ];
        let Some((mediator, _news)) = device.mediator(rung, &options) else {
            continue;
        };
        let other = device.waiting("other");
        let until_told = device.path("until");
        let mut critical = device.program("crit", "dash");
        critical.args([
            "-c",
            "read x; while [ ! -e \"$1\" ]; do :; done; read x",
            "-",
        ]);
        critical.arg(&until_told).stdin(Stdio::piped());
        let mut critical = Running(critical.spawn().unwrap());
        let mut asked = critical.0.stdin.take().unwrap();
        let comes_first = || match rung {
            "idle" => other.policy() == IDLE,
            _ => critical.policy() == ROUND_ROBIN,
        };
        let fast = || device.status()[0]["fast"].clone();
        let is_known = || {
            device
                .status()
                .iter()
                .any(|it| it["thread"] == critical.number())
        };
        until("it is known", is_known);
        until("it does not count", || {
            fast() == 0 && other.policy() == OTHER
        });
        asked.write_all(b"\n").unwrap();
        until("it counts while it computes", || {
            comes_first() && fast() == 1
        });
        fs::write(until_told, "").unwrap();
        until("it is blocked once more", || {
            fast() == 0 && other.policy() == OTHER
        });
        assert_eq!(end(mediator), Some(0));
        assert_eq!((other.policy(), critical.policy()), (OTHER, OTHER));
    }
}

/// It knows of no mediator: the preload registers it, with what the patterns say.
#[test]
fn a_program_that_is_served_registers_and_is_mediated_with_all_others() {
    let Some(preload) = preload() else {
        eprintln!(
            "skipped, the preload was not built: cargo build -p milieu-preload --profile preload"
        );
        return;
    };
    let device = Device::new("i", "");
    let other = device.waiting("other");
    let Some((mediator, _news)) = device.mediator("idle", &["--wait-max", "never"]) else {
        return;
    };
    let roles = device.path("roles");
    fs::write(&roles, "number 0 => gas-detection critical=-5\n").unwrap();
    let program = device.program("served", "sleep");
    let mut served = Command::new(env!("CARGO_BIN_EXE_milieu"));
    served
        .env("MILIEU_PRELOAD_DIR", preload)
        .env("HOME", device.path("home"))
        .env_remove("XDG_STATE_HOME")
        .args(["thread", "run", "--mediator"])
        .arg(device.path("run/mediator"))
        .arg("--roles")
        .arg(&roles)
        .arg("--")
        .arg(program.get_program())
        .arg("1000")
        .stdin(Stdio::null());
    let served = Running(served.spawn().unwrap());
    let status = || device.status();
    until("it has registered", || status()[0]["programs"] == 1);
    until("the other one is lazy", || other.policy() == IDLE);
    let all = status();
    let its = all.iter().find(|it| it["thread"] == served.number());
    let its = its.expect("it is known");
    assert_eq!(
        (&its["role"], &its["region"], &its["priority"]),
        (
            &Value::from("gas-detection"),
            &Value::from("fast"),
            &Value::from(-5)
        )
    );
    drop(served);
    until("the other one has returned", || other.policy() == OTHER);
    until("it is forgotten", || status()[0]["programs"] == 0);
    assert_eq!(end(mediator), Some(0));
}

fn renice(of: &Running, nice: i64) {
    let said = Command::new("renice")
        .args(["-n", &nice.to_string(), "-p", &of.number().to_string()])
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
}

/// The same of a critical one, which keeps its place before others.
#[test]
fn what_others_say_of_a_critical_program_it_has_on_return() {
    for (name, rung, policy) in [("q", "idle", OTHER), ("r", "realtime", ROUND_ROBIN)] {
        let rules = "critical PREFIXcrit *\nbackground PREFIXback\n";
        let device = Device::new(name, rules);
        let Some((mediator, _news)) = device.mediator(rung, &["--wait-max", "never"]) else {
            continue;
        };
        let (background, critical) = (device.waiting("back"), device.waiting("crit"));
        until("the background is lazy", || background.policy() == IDLE);
        until("it is critical", || critical.policy() == policy);
        renice(&critical, 6);
        assert_eq!(background.policy(), IDLE);
        assert_eq!(end(mediator), Some(0));
        assert_eq!((critical.policy(), critical.field(19)), (OTHER, 6));
    }
}

/// With nobody to help: the wish is found, and had on return.
#[test]
fn what_a_program_wants_meanwhile_it_has_on_return() {
    let device = Device::new("f", RULES);
    let other = device.waiting("other");
    let Some((mediator, _news)) = device.mediator("idle", &["--wait-max", "never"]) else {
        return;
    };
    let critical = device.waiting("crit");
    until("the other one is lazy", || other.policy() == IDLE);
    renice(&other, 7);
    drop(critical);
    until("it has returned", || other.policy() == OTHER);
    assert_eq!(other.field(19), 7);
    assert_eq!(end(mediator), Some(0));
    assert_eq!((other.policy(), other.field(19)), (OTHER, 7));
}

/// A child has what its parent has: the lazy region is not for ever.
#[test]
fn what_a_lazy_program_begins_returns_to_what_that_had() {
    let device = Device::new("g", RULES);
    let path = device.path("numbers");
    // It begins another when it is told to, and itself goes on.
    let script = format!(
        "read line; {} 1000 & echo $! > {}; wait",
        device.path(&format!("{}kid", device.prefix)).display(),
        path.display()
    );
    drop(device.program("kid", "sleep"));
    let mut parent = device.program("other", "dash");
    let parent = parent
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut parent = Running(parent);
    let Some((mediator, _news)) = device.mediator("idle", &["--wait-max", "never"]) else {
        return;
    };
    let critical = device.waiting("crit");
    until("the parent is lazy", || parent.policy() == IDLE);
    drop(parent.0.stdin.take());
    let mut kid = 0;
    until("there is a child", || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        kid = text.trim().parse().unwrap_or(0);
        kid != 0 && field(kid, 41).is_some()
    });
    assert_eq!(field(kid, 41), Some(IDLE as i64));
    drop(critical);
    until("both have returned", || {
        parent.policy() == OTHER && field(kid, 41) == Some(OTHER as i64)
    });
    assert_eq!(end(mediator), Some(0));
    let _ = Command::new("kill").arg(kid.to_string()).status();
}

/// Its unit says nothing that systemd does not understand.
#[test]
fn systemd_understands_the_unit() {
    let there = Command::new("systemd-analyze").arg("--version").output();
    if !there.is_ok_and(|it| it.status.success()) {
        return eprintln!("skipped, systemd-analyze is not here: apt-get install systemd");
    }
    const UNIT: &str = "milieu-mediator.service";
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let unit = fs::read_to_string(package.join("../device/install").join(UNIT)).unwrap();
    // Where it is installed is in the path of the system.
    let installed = format!("={} thread", env!("CARGO_BIN_EXE_milieu"));
    let here = unit.replace("=milieu thread", &installed);
    assert_eq!(here.matches(&installed).count(), 2);
    let verify = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(UNIT), text).unwrap();
        let mut command = Command::new("systemd-analyze");
        let command = command.arg("verify").arg(folder.path().join(UNIT));
        let output = command.output().unwrap();
        // Of other units of this machine it may have something to say.
        let said = text_of_both(&output);
        let about: Vec<_> = said.lines().filter(|it| it.contains(UNIT)).collect();
        about.join("\n")
    };
    let wrong = verify(&here.replace("KillMode=mixed", "KillMode=gently"));
    if !wrong.contains("KillMode") {
        return eprintln!("skipped, systemd-analyze does not look at units here: {wrong}");
    }
    assert_eq!(verify(&here), "");
}

fn text_of_both(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn there_is_one_and_whoever_asks_for_none_is_told() {
    let device = Device::new("h", "");
    let none = device.milieu(&["--status"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(
        text(&none.stderr).contains("no mediator answers"),
        "{none:?}"
    );
    let Some((mediator, _news)) = device.mediator("nice", &[]) else {
        return;
    };
    let second = device.milieu(&[]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    let error = text(&second.stderr);
    assert!(error.contains("another mediator listens there"), "{error}");
    let status = device.milieu(&["--status"]).output().unwrap();
    assert!(text(&status.stdout).starts_with("by nice: 0 programs registered"));
    assert_eq!(end(mediator), Some(0));
    assert!(!device.path("run/mediator").exists());
}

#[test]
fn wrong_rules_are_told_line_by_line() {
    let device = Device::new("i", "fast it\ncritical a b 99\n");
    let wrong = |more: &[&str]| -> Output {
        let mut command = device.milieu(&["--check", "--rules"]);
        command
            .arg(device.path("rules"))
            .args(more)
            .output()
            .unwrap()
    };
    let output = wrong(&[]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(
        error.contains("line 2: `fast`") && error.contains("line 3: `99`"),
        "{error}"
    );
    let lines = text(&wrong(&["--json"]).stderr);
    assert_eq!(lines.lines().count(), 2);
    assert!(
        lines
            .lines()
            .all(|it| serde_json::from_str::<Value>(it).is_ok())
    );
    fs::write(device.path("rules"), "exclude sshd\n").unwrap();
    assert_eq!(text(&wrong(&[]).stdout), "the rules are right\n");
}
