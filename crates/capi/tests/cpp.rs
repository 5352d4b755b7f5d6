//! Programs in C++.

mod support;

use support::{Language, Program, compilers, generate_into, package, passes, scratch};

/// An empty folder for settings.
fn settings(folder: &std::path::Path) -> std::path::PathBuf {
    let files = folder.join("files");
    let _ = std::fs::remove_dir_all(&files);
    std::fs::create_dir(&files).expect("a folder for settings");
    files
}

#[test]
fn every_listing_of_the_paper_runs() {
    let folder = scratch("cpp-listings");
    let listings = package().join("../../examples/listings");
    for name in [
        "algorithm",
        "device",
        "http",
        "profile",
        "server",
        "value",
        "version",
        "watchdog",
        "workers",
    ] {
        generate_into(
            &folder,
            &format!("../../examples/listings/{name}.ini"),
            "cpp",
        );
    }
    passes(Language::Cpp, "listings.cpp", &folder, || {
        vec![settings(&folder).into(), listings.clone().into()]
    });
}

#[test]
fn contexts_work_from_cpp() {
    let folder = scratch("cpp-context");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    passes(Language::Cpp, "context.cpp", &folder, || {
        vec![settings(&folder).into()]
    });
}

/// Every optimizing compiler makes of a contextual read what it makes of a plain one.
#[test]
fn reading_costs_what_reading_a_variable_costs() {
    let folder = scratch("cpp-reads");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    for compiler in compilers(Language::Cpp) {
        let program = Program {
            language: Language::Cpp,
            compiler,
            source: package().join("tests/programs/reads.cpp"),
            folder: &folder,
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
        let text = std::fs::read_to_string(assembly).expect("the assembly can be read");
        for what in ["boolean", "number", "factor", "text", "sum"] {
            let contextual = instructions(&text, &format!("contextual_{what}"));
            let plain = instructions(&text, &format!("plain_{what}"));
            assert!(!plain.is_empty(), "{compiler}: {what}\n{text}");
            assert_eq!(contextual, plain, "{compiler}: {what}");
        }
    }
}

/// The instructions of a function; labels are numbered from where it begins.
fn instructions(assembly: &str, function: &str) -> Vec<String> {
    let lines = assembly.lines().map(str::trim_end);
    let body = lines
        .skip_while(|line| *line != format!("{function}:"))
        .skip(1)
        .take_while(|line| !line.trim_start().starts_with(".size"));
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
    body.filter(|line| !line.starts_with(".LF"))
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().map(&mut numbered).collect();
            words.join(" ")
        })
        .filter(|line| !line.starts_with('.') && !line.is_empty())
        .collect()
}
