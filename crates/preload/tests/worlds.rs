//! Programs do the same with the preload as without it: the same executables, run in
//! both worlds, end in the same way and print the same.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use milieu_threads::rung::probe;
use support::{
    Machine, NATIVE, World, cases, compile, has, has_small_preload, is_the_same, said, scratch,
    skipped,
};

/// Settings for every means that works here, with `main` critical, so that all threads of
/// the program wait in the lazy region, and often return from it: other programs run here.
fn mediated(folder: &Path) -> Vec<String> {
    let roles = folder.join("roles");
    fs::write(&roles, "number 0 => main critical\n").expect("a file");
    let works = |it: &&milieu_threads::rung::Report| it.verdict.is_ok();
    let reports = probe();
    let rungs = reports.iter().filter(works).map(|it| it.rung);
    rungs
        .map(|rung| {
            format!(
                "quiet=yes;wait=20;turn=50;rung={rung};roles={}",
                roles.display()
            )
        })
        .collect()
}

fn worlds_of(machine: Machine, name: &str) {
    let folder = scratch(name);
    let Some(program) = compile(machine.compiler("gcc"), "worlds.c", &folder, &[]) else {
        return;
    };
    if machine == Machine::Small && !is_here(&program) {
        return;
    }
    let cases = cases(&program);
    assert!(cases.len() > 20);
    let settings = mediated(&folder);
    let mut worlds = vec![World::served("quiet=yes")];
    worlds.extend(settings.iter().map(|it| World::served(it)));
    is_the_same(&program, &cases, &worlds);

    // Where threads were light, and sizes are applied that were learned then.
    let profile = folder.join("profile");
    let learned = format!("quiet=yes;stacks=force;profile={}", profile.display());
    let world = World::served(&learned);
    for case in &cases {
        for _ in 0..if case == "light" { 3 } else { 1 } {
            is_the_same(
                &program,
                std::slice::from_ref(case),
                &[World::served(&learned)],
            );
        }
    }
    is_the_same(&program, &cases, &[world]);
    let text = fs::read_to_string(&profile).expect("it was learned");
    assert!(text.lines().count() > 20, "{text}");
}

#[test]
fn programs_in_c_do_the_same() {
    worlds_of(Machine::Own, "worlds-c");
}

#[test]
fn programs_of_32_bits_do_the_same() {
    worlds_of(Machine::Small, "worlds-c-small");
}

#[test]
fn programs_in_cpp_do_the_same() {
    let folder = scratch("worlds-cpp");
    let settings = mediated(&folder);
    let mut worlds = vec![World::served("quiet=yes")];
    worlds.extend(settings.iter().map(|it| World::served(it)));
    // The library of 32 bits need not be installed.
    let small = ["-static-libstdc++", "-static-libgcc"];
    for (machine, compiler, flags) in [
        (Machine::Own, "g++", &[][..]),
        (Machine::Own, "clang++", &[]),
        (Machine::Small, "g++", &small),
    ] {
        let compiler = machine.compiler(compiler);
        let Some(program) = compile(compiler, "worlds.cpp", &folder, flags) else {
            continue;
        };
        if machine == Machine::Own || is_here(&program) {
            is_the_same(&program, &cases(&program), &worlds);
        }
    }
}

/// Whether a program of 32 bits runs, and there is a preload for it.
fn is_here(program: &Path) -> bool {
    let runs = NATIVE.run(program, &[]).status == "exit status: 0" && has_small_preload();
    if !runs {
        skipped("programs of 32 bits do not run here");
    }
    runs
}

#[test]
fn programs_in_rust_do_the_same() {
    let folder = scratch("worlds-rust");
    let settings = mediated(&folder);
    let mut worlds = vec![World::served("quiet=yes")];
    worlds.extend(settings.iter().map(|it| World::served(it)));
    for machine in [Machine::Own, Machine::Small] {
        if machine == Machine::Small && !has_small_preload() {
            skipped("there is no preload for programs of 32 bits");
            continue;
        }
        let program = folder.join(format!("worlds-rust-{machine:?}"));
        let mut compiler = Command::new("rustc");
        compiler.args(["--edition", "2021", "-O", "-C", "link-arg=-Wl,--build-id"]);
        if machine == Machine::Small {
            let linker = format!("linker={}", machine.compiler("gcc"));
            compiler.args(["--target", "i686-unknown-linux-gnu", "-C", &linker]);
        }
        let output = compiler
            .arg(support::package().join("tests/programs/worlds.rs"))
            .arg("-o")
            .arg(&program)
            .output()
            .expect("rustc starts");
        assert!(output.status.success(), "{}", said(&output.stderr));
        if machine == Machine::Own || is_here(&program) {
            is_the_same(&program, &cases(&program), &worlds);
        }
    }
}

/// Who may not return to what it had is bound when it begins, and otherwise the same.
#[test]
fn programs_without_privileges_do_the_same() {
    let folder = scratch("worlds-unprivileged");
    let starter = [
        "setpriv",
        "--inh-caps=-sys_nice",
        "--bounding-set=-sys_nice",
    ];
    let tried = Command::new(starter[0])
        .args(&starter[1..])
        .arg("true")
        .output();
    if !tried.is_ok_and(|it| it.status.success()) {
        return skipped("privileges cannot be given up here");
    }
    let Some(program) = compile("gcc", "worlds.c", &folder, &[]) else {
        return;
    };
    let roles = folder.join("roles");
    fs::write(&roles, "number 0 => main critical\n").expect("a file");
    let cases = cases(&program);
    for rung in ["auto", "idle", "nice"] {
        let settings = format!("quiet=yes;rung={rung};roles={}", roles.display());
        let world = World {
            starter: &starter,
            ..World::served(&settings)
        };
        let native = World {
            starter: &starter,
            ..NATIVE
        };
        // What children of bound threads inherit is theirs for ever.
        let inherit = [
            "other-programs",
            "another-program",
            "listed",
            "named",
            "with-variables",
        ];
        for case in cases.iter().filter(|it| !inherit.contains(&it.as_str())) {
            let expected = native.run(&program, &[case]);
            assert_eq!(world.run(&program, &[case]), expected, "{case} with {rung}");
        }
    }
}

/// The loader leaves the preload out of programs that run with another's rights.
#[test]
fn programs_with_rights_of_another_are_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = scratch("setuid");
    let Some(program) = compile("gcc", "attributes.c", &folder, &[]) else {
        return;
    };
    const NOBODY: u32 = 65534;
    if std::os::unix::fs::chown(&program, Some(NOBODY), None).is_err() {
        return skipped("only root gives files away");
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("it is ours");
    let world = World::served("");
    let run = world.run(&program, &[]);
    // It says that Milieu is not there.
    assert!(run.stderr.contains("Milieu is not here"), "{run:?}");
    assert_eq!(run.well(), "done\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let run = world.run(&program, &["served"]);
    assert_eq!(run.stderr, "");
    assert_eq!(run.well(), "done\n");
}

/// What compilers add for finding mistakes stands before the same functions.
#[test]
fn programs_with_sanitizers_do_the_same() {
    let folder = scratch("sanitizers");
    for (compiler, sanitizer) in [
        ("gcc", "address"),
        ("gcc", "thread"),
        ("gcc", "undefined"),
        ("clang", "address"),
        ("clang", "thread"),
    ] {
        let flag = format!("-fsanitize={sanitizer}");
        if !has(compiler) || !sanitizes(compiler, &flag, &folder) {
            continue;
        }
        let Some(program) = compile(compiler, "worlds.c", &folder, &[&flag]) else {
            continue;
        };
        // gcc's are shared objects that insist on being first.
        let shared = format!("lib{}san.so", &sanitizer[..1]);
        let first = match compiler {
            "gcc" => {
                let shared = shared.replace("libusan", "libubsan");
                let name = format!("-print-file-name={shared}");
                let found = Command::new(compiler).arg(name).output();
                said(&found.expect("it is here").stdout).trim().to_owned()
            }
            _ => String::new(),
        };
        let mut cases = cases(&program);
        cases.retain(|it| !changed_by(sanitizer).contains(&it.as_str()));
        assert!(cases.len() >= 20, "{cases:?}");
        let settings = mediated(&folder);
        let mut worlds = vec![World::served("quiet=yes")];
        worlds.extend(settings.iter().map(|it| World::served(it)));
        for world in &mut worlds {
            world.first = &first;
        }
        is_the_same(&program, &cases, &worlds);
        // By the preload it hears of C's threads, from their beginning to their end.
        if (compiler, sanitizer) == ("gcc", "thread") {
            for world in &worlds {
                let run = world.run(&program, &["c11"]);
                assert_eq!(run.well(), "result -4\nresult -5\n");
            }
        }
    }
}

/// Cases that end in another way with a sanitizer, without us as well.
fn changed_by(sanitizer: &str) -> &'static [&'static str] {
    match sanitizer {
        // Both have their own stack for signals, handler for overflows and large mappings.
        "address" => &["alternate-stacks", "overflow", "exhausted"],
        // It knows neither C's own threads nor a `main` that ends first, takes large
        // stacks, and refuses threads after a fork; some cases are what it reports; and it
        // reports an overflow only where the stack for signals is that of the preload.
        "thread" => &[
            "overflow",
            "main-ends-first",
            "c11",
            "stacks",
            "large-storage",
            "forked",
            "locks",
            "files",
            "exhausted",
        ],
        _ => &[],
    }
}

/// Whether a program with the sanitizer can be made and runs here.
fn sanitizes(compiler: &str, flag: &str, folder: &Path) -> bool {
    let source = folder.join("empty.c");
    let program = folder.join("empty");
    fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
    let made = Command::new(compiler)
        .args([flag, "-o"])
        .args([&program, &source])
        .output()
        .expect("the compiler was found before");
    let runs = made.status.success()
        && Command::new(&program)
            .output()
            .is_ok_and(|it| it.status.success());
    if !runs {
        skipped(&format!("{compiler} {flag} does not work here"));
    }
    runs
}
