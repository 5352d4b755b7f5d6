//! What compilers say of the headers for C++, and what they make of them.

mod support;

use support::{Language, Program, compilers, generate_into, package, scratch};

/// Whoever includes the headers may be strict, and may be ahead of C++17.
#[test]
fn strict_compilers_find_nothing() {
    let folder = scratch("cpp-strict");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    let sources = ["context.cpp", "layers.cpp"].map(|it| package().join("tests/programs").join(it));
    for compiler in compilers(Language::Cpp) {
        let standards = ["-std=c++17", "-std=c++20"].into_iter();
        for (standard, source) in standards.flat_map(|it| sources.each_ref().map(|of| (it, of))) {
            let flags = [
                "-fsyntax-only",
                "-Wpedantic",
                "-Wconversion",
                "-Wsign-conversion",
                "-Wshadow",
                "-Wold-style-cast",
                // Of the tests' own `!"it throws"`.
                "-Wno-string-conversion",
                standard,
            ];
            let program = Program {
                language: Language::Cpp,
                compiler,
                source: source.clone(),
                folder: &folder,
                flags: &flags,
            };
            let (_, output) = program.compile_only();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{compiler} {standard}:\n{said}");
        }
    }
}

/// Every optimizing compiler makes of a contextual read what it makes of a plain one.
#[test]
fn reading_costs_what_reading_a_variable_costs() {
    let folder = scratch("cpp-reads");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    for compiler in compilers(Language::Cpp) {
        let text = assembly(compiler, "reads.cpp", &folder);
        for what in ["boolean", "number", "factor", "text", "sum"] {
            let contextual = instructions(&text, &format!("contextual_{what}"));
            let plain = instructions(&text, &format!("plain_{what}"));
            assert!(!plain.is_empty(), "{compiler}: {what}\n{text}");
            assert_eq!(contextual, plain, "{compiler}: {what}");
        }
    }
}

/// What a compiler makes of a program of these tests.
fn assembly(compiler: &str, source: &str, folder: &std::path::Path) -> String {
    let program = Program {
        language: Language::Cpp,
        compiler,
        source: package().join("tests/programs").join(source),
        folder,
        flags: &[
            "-O2",
            "-g0",
            "-S",
            "-fno-asynchronous-unwind-tables",
            "-fno-verbose-asm",
        ],
    };
    let (assembly, output) = program.compile_only();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    std::fs::read_to_string(assembly).expect("the assembly can be read")
}

/// Policies and all their combinations: reads are those of any other, and what a
/// policy leaves out leaves no instruction.
#[test]
fn policies_cost_nothing() {
    let folder = scratch("cpp-policies");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    let layers = [
        "threads",
        "single",
        "own",
        "read_threads",
        "read_single",
        "read_own",
        "read_read",
    ];
    let without_layers = ["none", "frozen", "read_none"];
    let shared = ["threads", "read_threads", "read_read"];
    for compiler in compilers(Language::Cpp) {
        let text = assembly(compiler, "policies.cpp", &folder);
        let of = |what: &str, policy: &str| {
            let found = instructions(&text, &format!("{what}_{policy}"));
            assert!(!found.is_empty(), "{compiler}: {what}_{policy}");
            // Of itself a function may have a part that it jumps to.
            let own = format!("{what}_{policy}");
            let found = found.into_iter().map(|line| line.replace(&own, what));
            found.collect::<Vec<_>>()
        };
        let block = instructions(&text, "block_only");
        let nothing = instructions(&text, "nothing");
        for policy in layers.into_iter().chain(without_layers) {
            for what in ["read", "text"] {
                assert_eq!(
                    of(what, policy),
                    of(what, "threads"),
                    "{compiler}: {what}_{policy}"
                );
            }
            if shared.contains(&policy) {
                assert_eq!(
                    of("sync", policy),
                    of("sync", "threads"),
                    "{compiler}: {policy}"
                );
                assert_ne!(of("sync", policy), nothing, "{compiler}: {policy}");
            } else {
                assert_eq!(of("sync", policy), nothing, "{compiler}: {policy}");
            }
        }
        for policy in without_layers {
            for what in ["with", "chain", "follow"] {
                assert_eq!(of(what, policy), block, "{compiler}: {what}_{policy}");
            }
            assert_eq!(of("switch", policy), nothing, "{compiler}: {policy}");
        }
        for policy in layers {
            for what in ["with", "chain", "follow"] {
                assert_ne!(of(what, policy), block, "{compiler}: {what}_{policy}");
                let threads = of(what, "threads");
                assert_eq!(of(what, policy), threads, "{compiler}: {what}_{policy}");
            }
            // Whoever switches for others synchronizes first.
            let is_shared = shared.contains(&policy);
            let like = if is_shared { "threads" } else { "single" };
            let switch = of("switch", policy);
            assert_eq!(switch, of("switch", like), "{compiler}: switch_{policy}");
        }
        let [with, without] = ["threads", "single"].map(|policy| of("switch", policy).len());
        assert!(without < with, "{compiler}: a switch without others");
        // Not to assign is not to have a function, and those that are there differ in nothing.
        for policy in ["threads", "single", "none", "own"] {
            for what in ["set", "add", "name"] {
                let threads = of(what, "threads");
                assert_ne!(threads, nothing, "{compiler}: {what}");
                assert_eq!(of(what, policy), threads, "{compiler}: {what}_{policy}");
            }
        }
    }
}

/// The instructions of a function; labels are numbered from where it begins.
fn instructions(assembly: &str, function: &str) -> Vec<String> {
    // Compilers comment on what they do, each in its way.
    let lines = assembly
        .lines()
        .map(|line| line.split(" #").next().unwrap_or(line));
    let lines = lines.map(|line| line.split("\t#").next().unwrap_or(line).trim_end());
    let body = lines
        .skip_while(|line| *line != format!("{function}:"))
        .skip(1)
        .take_while(|line| {
            !line.trim_start().starts_with(".size") && !line.starts_with(".Lfunc_end")
        });
    let mut labels: Vec<String> = Vec::new();
    let mut numbered = |word: &str| {
        if !word.starts_with(".L") {
            return word.to_owned();
        }
        let name = word.trim_end_matches(':');
        let known = labels.iter().position(|label| label == name);
        let place = known.unwrap_or_else(|| {
            labels.push(name.to_owned());
            labels.len() - 1
        });
        format!("label {place}")
    };
    body.filter(|line| !line.starts_with(".LF") && !line.starts_with('#'))
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().map(&mut numbered).collect();
            words.join(" ")
        })
        .filter(|line| !line.starts_with('.') && !line.is_empty())
        .collect()
}
