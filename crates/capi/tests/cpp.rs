//! Programs in C++.

mod support;

use support::{Language, generate_into, package, passes, scratch};

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

/// By their classes and ids, of every kind, from contexts and from actions.
#[test]
fn layers_of_every_kind_are_switched_from_cpp() {
    let folder = scratch("cpp-layers");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    passes(Language::Cpp, "layers.cpp", &folder, Vec::new);
}

/// Each exception of a callback goes on in its own call, and stays nowhere.
#[test]
fn exceptions_go_on_where_they_were_thrown() {
    let folder = scratch("cpp-exceptions");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    passes(Language::Cpp, "exceptions.cpp", &folder, Vec::new);
}

/// Conflicts, keys of before, and who has written what.
#[cfg(all(feature = "checks", feature = "history"))]
#[test]
fn files_are_looked_into_from_cpp() {
    let folder = scratch("cpp-files");
    generate_into(&folder, "tests/programs/files.ini", "cpp");
    passes(Language::Cpp, "files.cpp", &folder, || {
        vec![settings(&folder).into()]
    });
}
