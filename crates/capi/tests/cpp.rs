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
