//! Programs in C and C++ that use streams.

#![cfg(feature = "stream")]

mod support;

use support::{Language, Program, compilers, generate_into, package, passes, run, scratch};

#[test]
fn streams_work_from_cpp() {
    let folder = scratch("cpp-streams");
    passes(Language::Cpp, "streams.cpp", &folder, Vec::new);
}

#[test]
fn streams_work_from_c() {
    let folder = scratch("c-streams");
    passes(Language::C, "streams.c", &folder, || {
        let kept = folder.join("files");
        let _ = std::fs::remove_dir_all(&kept);
        std::fs::create_dir(&kept).expect("a folder for what is kept");
        vec![kept.into()]
    });
}

#[test]
fn what_c_gets_wrong_with_streams_is_told() {
    let folder = scratch("c-streams-misuse");
    passes(Language::C, "streams_misuse.c", &folder, Vec::new);
}

#[test]
fn fields_of_all_kinds_work_from_c() {
    let folder = scratch("c-streams-fields");
    passes(Language::C, "streams_fields.c", &folder, Vec::new);
}

#[test]
fn names_threads_and_expressions_work_from_c() {
    let folder = scratch("c-streams-more");
    passes(Language::C, "streams_more.c", &folder, Vec::new);
}

/// A clock of the program, threads, what is remembered, rights.
#[test]
fn streams_run_on_terms_of_c() {
    let folder = scratch("c-streams-terms");
    passes(Language::C, "streams_terms.c", &folder, Vec::new);
}

#[test]
fn streams_run_on_terms_of_cpp() {
    let folder = scratch("cpp-streams-terms");
    passes(Language::Cpp, "streams_terms.cpp", &folder, Vec::new);
}

#[test]
fn operators_of_c_are_told_fields_and_functions() {
    let folder = scratch("c-streams-operators");
    passes(Language::C, "streams_operators.c", &folder, Vec::new);
}

#[test]
fn functions_of_bodies_work_from_cpp() {
    let folder = scratch("cpp-streams-operators");
    passes(Language::Cpp, "streams_operators.cpp", &folder, Vec::new);
}

#[test]
fn flows_of_values_and_rehearsals_work_from_c() {
    let folder = scratch("c-streams-flows");
    passes(Language::C, "streams_flows.c", &folder, Vec::new);
}

#[test]
fn flows_of_values_and_rehearsals_work_from_cpp() {
    let folder = scratch("cpp-streams-flows");
    passes(Language::Cpp, "streams_flows.cpp", &folder, Vec::new);
}

#[test]
fn all_of_it_works_from_cpp() {
    let folder = scratch("cpp-streams-more");
    passes(Language::Cpp, "streams_more.cpp", &folder, Vec::new);
}

/// From a source in C through an operator in C++ to a layer and a contextual value.
#[test]
fn a_source_in_c_reaches_contexts_by_an_operator_in_cpp() {
    let folder = scratch("c-to-cpp");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    let pairs = compilers(Language::C)
        .into_iter()
        .zip(compilers(Language::Cpp));
    for (c, cpp) in pairs {
        let sensor = Program {
            language: Language::C,
            compiler: c,
            source: package().join("tests/programs/sensor.c"),
            folder: &folder,
            flags: &["-c"],
        };
        let (sensor, output) = sensor.compile_only();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{c} does not compile the sensor:\n{said}"
        );
        let sensor = sensor.to_string_lossy();
        let whole = Program {
            language: Language::Cpp,
            compiler: cpp,
            source: package().join("tests/programs/sensor.cpp"),
            folder: &folder,
            flags: &["-O1", &sensor],
        };
        assert_eq!(run(&whole.compiled(), &[]), "ok\n");
    }
}

#[cfg(feature = "links")]
#[test]
fn machines_are_joined_from_c() {
    let folder = scratch("c-links");
    passes(Language::C, "links.c", &folder, Vec::new);
}

#[cfg(feature = "links")]
#[test]
fn events_are_bytes_in_modes_of_c() {
    let folder = scratch("c-modes");
    passes(Language::C, "modes.c", &folder, Vec::new);
}

#[cfg(feature = "links")]
#[test]
fn events_are_bytes_in_modes_of_cpp() {
    let folder = scratch("cpp-modes");
    passes(Language::Cpp, "modes.cpp", &folder, Vec::new);
}

/// Two processes, over an engine that is written in C++.
#[cfg(feature = "links")]
#[test]
fn machines_are_joined_from_cpp() {
    let folder = scratch("cpp-links");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    passes(Language::Cpp, "links.cpp", &folder, Vec::new);
}
