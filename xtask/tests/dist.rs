//! Programs in C and C++ are built from an installed tree, as their authors do it.
//!
//! What is not installed is left out, and said on standard error.

mod support;

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use support::{build, configure, defined, dist, has, root, said, scratch, succeed, target, tree};

/// What the programs of `consumer` print.
const PRINTED: &str = "de 60\n";

fn consumer() -> PathBuf {
    root().join("xtask/tests/consumer")
}

#[track_caller]
fn fail(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(!output.status.success(), "{command:?}:\n{}", said(&output));
    // CMake breaks lines where it likes.
    said(&output)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let entry = entry.expect("it can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().expect("it is known").is_dir() {
            let below = files(&entry.path());
            found.extend(below.into_iter().map(|file| format!("{name}/{file}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

#[test]
fn the_tree_is_what_a_distribution_installs() {
    if !has(&["cc"]) {
        return;
    }
    let mut there = files(tree());
    let is_among_many = |file: &String| {
        ["milieu/docs/", "milieu/licenses/", "man/man1/milieu-"]
            .iter()
            .any(|it| file.contains(it))
    };
    assert!(there.contains(&"share/doc/milieu/docs/c-and-cpp.md".to_owned()));
    let of_libc = "share/doc/milieu/licenses/libc-";
    assert!(there.iter().any(|file| file.starts_with(of_libc)));
    there.retain(|file| !is_among_many(file));
    // It is found by what the loader calls `$LIB`, which has a name or two for each machine.
    let is_preload = |file: &String| file.ends_with("/libmilieu_preload.so");
    assert!(there.iter().any(is_preload));
    there.retain(|file| !is_preload(file));
    let mut expected: Vec<String> = [
        "bin/milieu",
        "lib/cmake/Milieu/MilieuConfig.cmake",
        "lib/cmake/Milieu/MilieuConfigVersion.cmake",
        "lib/cmake/Milieu/MilieuGenerate.cmake",
        "lib/libmilieu.a",
        "lib/libmilieu.so",
        "lib/libmilieu.so.0",
        "lib/libmilieu.so.0.1.0",
        "lib/pkgconfig/milieu.pc",
        "lib/systemd/system/milieu-mediator.service",
        "share/bash-completion/completions/milieu",
        "share/doc/milieu/CHANGELOG.md",
        "share/doc/milieu/LICENSE-APACHE",
        "share/doc/milieu/LICENSE-MIT",
        "share/doc/milieu/LICENSES.md",
        "share/doc/milieu/README.md",
        "share/fish/vendor_completions.d/milieu.fish",
        "share/man/man1/milieu.1",
        "share/zsh/site-functions/_milieu",
    ]
    .map(String::from)
    .into();
    let mut headers = files(&root().join("crates/capi/include"));
    headers.extend(files(&root().join("crates/preload/include")));
    expected.extend(headers.iter().map(|file| format!("include/{file}")));
    expected.extend(
        PAGES
            .iter()
            .map(|(page, _)| format!("share/man/man3/{page}.3")),
    );
    expected.sort();
    assert_eq!(there, expected);

    // Nothing that is read as text knows where it was made.
    for file in files(tree()) {
        let is_binary =
            file.starts_with("lib/lib") || file.starts_with("bin/") || is_preload(&file);
        if is_binary || is_among_many(&file) {
            continue;
        }
        let text = fs::read_to_string(tree().join(&file)).expect("it is text");
        assert!(!text.contains(&*root().to_string_lossy()), "{file}");
        let is_filled = !file.starts_with("lib/") || !text.contains("@VERSION@");
        assert!(is_filled, "{file}");
    }
}

/// A program in C that runs with the preload of the tree, found by what the program's own
/// loader calls `$LIB`, and without it.
fn is_served(compiler: &str, bits: u32) {
    let program = scratch(&format!("threads-{bits}")).join("program");
    let mut cc = Command::new(compiler);
    cc.args(["-pthread", "-o"]).arg(&program);
    cc.arg("-I").arg(tree().join("include"));
    succeed(cc.arg(consumer().join("threads.c")));
    let run = |preload: &str| {
        let mut run = Command::new(&program);
        run.env("LD_PRELOAD", preload);
        run.env("MILIEU_THREADS", "wait=never");
        succeed(&mut run)
    };
    let place = tree().join("lib/milieu/$LIB/libmilieu_preload.so");
    assert_eq!(
        run(&place.to_string_lossy()),
        format!("{bits} bits: `probe`\n")
    );
    assert_eq!(run(""), format!("{bits} bits: ``\n"));
}

#[test]
fn the_preload_serves_programs_of_this_machine() {
    if has(&["cc"]) {
        is_served("cc", usize::BITS);
    }
}

/// They run on the same machine, and have a preload of their own.
#[test]
fn the_preload_serves_programs_of_32_bits() {
    const TARGET: &str = "i686-unknown-linux-gnu";
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: programs of 32 bits are those of another machine");
        return;
    }
    if !has(&["cc", "i686-linux-gnu-gcc"]) {
        return;
    }
    let mut rustc = Command::new("rustc");
    let libraries = succeed(rustc.args(["--print", "target-libdir", "--target", TARGET]));
    if !Path::new(libraries.trim()).is_dir() {
        eprintln!("skipped: rustup target add {TARGET} was not run");
        return;
    }
    // The fifth byte of a library says for how many bits it is.
    for (folder, class) in [
        ("lib", 2),
        ("lib64", 2),
        ("lib/x86_64-linux-gnu", 2),
        ("lib32", 1),
        ("lib/i386-linux-gnu", 1),
    ] {
        let file = tree()
            .join("lib/milieu")
            .join(folder)
            .join("libmilieu_preload.so");
        let library = fs::read(&file).expect("each loader finds one");
        assert_eq!(library[4], class, "{}", file.display());
    }
    // The kernel may have been built without them.
    if has(&["/lib/ld-linux.so.2"]) {
        is_served("i686-linux-gnu-gcc", 32);
    }
}

/// The pages of headers, and the headers that each describes.
const PAGES: &[(&str, &[&str])] = &[
    ("milieu", &["milieu.h", "milieu/actions.h"]),
    ("milieu-engines", &["milieu/engines.h"]),
    ("milieu-files", &["milieu/files.h"]),
    ("milieu-foreign", &["milieu/foreign.h"]),
    ("milieu-links", &["milieu/links.h"]),
    ("milieu-modes", &["milieu/modes.h"]),
    ("milieu-rights", &["milieu/rights.h"]),
    ("milieu-sources", &["milieu/sources.h"]),
    (
        "milieu-streams",
        &[
            "milieu/streams.h",
            "milieu/events.h",
            "milieu/operators.h",
            "milieu/effects.h",
            "milieu/flows.h",
        ],
    ),
];

/// The function that a line of a header declares.
fn declared(line: &str) -> Option<&str> {
    let (before, _) = line
        .split_once('(')
        .filter(|_| !line.starts_with([' ', '/', '#']))?;
    let name = before.rsplit([' ', '*']).next()?;
    name.starts_with("milieu_").then_some(name)
}

/// Every verb has its page, and no reader of pages finds fault with one.
#[test]
fn manual_pages_are_those_of_the_commands_and_of_the_headers() {
    if !has(&["cc"]) {
        return;
    }
    let folder = tree().join("share/man");
    let pages = files(&folder);
    let mut documented: Vec<String> = files(&root().join("crates/cli/tests/help"));
    for page in &mut documented {
        *page = format!("man1/{}", page.replace(".txt", ".1"));
    }
    documented.extend(PAGES.iter().map(|(page, ..)| format!("man3/{page}.3")));
    documented.sort();
    assert_eq!(pages, documented);

    let read = |page: &str| fs::read_to_string(folder.join(page)).expect("it is text");
    let get = read("man1/milieu-key-get.1");
    for part in [
        ".TH \"MILIEU-KEY-GET\" \"1\" \"\" \"milieu 0.1.0\" \"User Commands\"\n",
        "\n\\fBmilieu key get\\fR [OPTIONS] <NAME>\n",
        "\n.SH EXAMPLES\n.nf\nmilieu key get \\-\\-app weather\\-station",
        "\n.SH \"SEE ALSO\"\n\\fBmilieu\\-key\\fR(1)\n",
    ] {
        assert!(get.contains(part), "{part}\n{get}");
    }
    // All functions that the library has are described.
    for (page, headers) in PAGES {
        let text = read(&format!("man3/{page}.3"));
        let mut functions = 0;
        for header in *headers {
            let header = root().join("crates/capi/include").join(header);
            let header = fs::read_to_string(header).expect("it is text");
            for name in header.lines().filter_map(declared) {
                assert!(text.contains(&format!("{name}(")), "{name}");
                functions += 1;
            }
        }
        assert!(functions > 0, "{page}");
    }

    for (reader, arguments) in [
        ("mandoc", ["-T", "lint", "-W", "warning"].as_slice()),
        ("groff", &["-man", "-ww", "-z", "-T", "utf8"]),
    ] {
        let mut reader = Command::new(reader);
        reader.args(arguments).args(&pages).current_dir(&folder);
        let Ok(output) = reader.output() else {
            eprintln!("skipped: {reader:?} does not start");
            continue;
        };
        let said = said(&output);
        // A page says the version, and no date.
        let faults = said.lines().filter(|it| !it.contains("missing date"));
        assert_eq!(faults.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

#[test]
fn the_shared_library_has_a_name_and_versioned_symbols_alone() {
    if !has(&["cc", "readelf", "nm"]) {
        return;
    }
    let library = tree().join("lib/libmilieu.so");
    let dynamic = succeed(Command::new("readelf").arg("-dW").arg(&library));
    assert!(dynamic.contains("soname: [libmilieu.so.0]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    assert!(!dynamic.contains("RPATH") && !dynamic.contains("RUNPATH"));
    let symbols = |which: &str| {
        let mut nm = Command::new("nm");
        let text = succeed(
            nm.args(["--dynamic", "--with-symbol-versions", which])
                .arg(&library),
        );
        let last = |line: &str| {
            line.split_whitespace()
                .last()
                .unwrap_or_default()
                .to_owned()
        };
        text.lines().map(last).collect::<Vec<String>>()
    };
    let exported = symbols("--defined-only");
    assert!(
        exported
            .iter()
            .any(|name| name == "milieu_version@@MILIEU_0.1")
    );
    for name in exported {
        let is_ours = name.starts_with("milieu_") && name.contains("@@MILIEU_");
        assert!(is_ours || name.starts_with("MILIEU_"), "{name}");
    }
    // What it does not have itself is the C library's, or nobody's who has to be there.
    for name in symbols("--undefined-only") {
        let is_of_system = name.contains("@GLIBC_") || name.contains("@GCC_");
        assert!(is_of_system || !name.starts_with("milieu_"), "{name}");
    }
}

/// The other tests take what is built already.
#[test]
fn libraries_are_built_with_the_features_that_are_asked_for() {
    if !has(&["cc", "nm"]) {
        return;
    }
    let tree = scratch("small");
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(["dist", "--profile", "dev", "--libraries-only"]);
    xtask.args(["--no-default-features", "--features", "floats"]);
    xtask.arg("--dest").arg(&tree);
    // This machine by its name, apart from the programs that other tests run; macros and
    // build scripts are theirs, so they are linked with the same.
    xtask.env_remove("CC");
    let said = succeed(Command::new("rustc").arg("-vV"));
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    xtask.args(["--target", host.expect("rustc says it")]);
    xtask.env("CARGO_TARGET_DIR", target());
    succeed(&mut xtask);
    assert!(!tree.join("bin").exists());
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only"]);
    let symbols = succeed(nm.arg(tree.join("lib/libmilieu.so")));
    assert!(symbols.contains(" milieu_version@@"), "{symbols}");
    assert!(!symbols.contains(" milieu_streams_"), "{symbols}");
}

#[test]
fn programs_are_built_with_cmake_and_follow_their_specification() {
    if !has(&["cc", "c++", "cmake"]) {
        return;
    }
    let source = scratch("cmake-source");
    for file in files(&consumer()) {
        let to = source.join(&file);
        fs::create_dir_all(to.parent().expect("a folder")).expect("it can be made");
        fs::copy(consumer().join(&file), to).expect("it can be copied");
    }
    let folder = scratch("cmake");
    let prefix = defined("CMAKE_PREFIX_PATH", tree());
    // As users have it, with the linker of the system.
    succeed(configure(&source, &folder, &[&prefix]).env_remove("LDFLAGS"));
    build(&folder);
    let programs = ["c_milieu", "c_static", "cpp_milieu", "cpp_static"];
    for program in programs {
        assert_eq!(
            succeed(&mut Command::new(folder.join(program))),
            PRINTED,
            "{program}"
        );
    }
    let document = fs::read_to_string(folder.join("station.md")).expect("it was made");
    assert!(document.contains("the station"), "{document}");

    // What has not changed is not made anew, and what has is.
    let idle = build(&folder);
    assert!(!idle.contains("Generating"), "{idle}");
    let specification = source.join("station.ini");
    let text = fs::read_to_string(&specification).expect("it was copied");
    fs::write(&specification, text.replace("default=60", "default=61")).expect("it is ours");
    make_newer(&specification, &folder.join("station.md"));
    let busy = build(&folder);
    assert!(busy.contains("Generating"), "{busy}");
    for program in programs {
        assert_eq!(
            succeed(&mut Command::new(folder.join(program))),
            "de 61\n",
            "{program}"
        );
    }

    // A specification that is wrong is an error of the build, at its place.
    fs::write(&specification, "[/station/interval]\ntype=lnog\n").expect("it is ours");
    make_newer(&specification, &folder.join("station.md"));
    let wrong = fail(Command::new("cmake").arg("--build").arg(&folder));
    assert!(
        wrong.contains("station.ini:2:") && wrong.contains("lnog"),
        "{wrong}"
    );
}

#[test]
fn programs_are_built_with_cmake_and_another_compiler() {
    if !has(&["cc", "clang", "clang++", "cmake"]) {
        return;
    }
    let folder = scratch("cmake-clang");
    let prefix = defined("CMAKE_PREFIX_PATH", tree());
    let mut cmake = configure(&consumer(), &folder, &[&prefix]);
    cmake.args(["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]);
    let said = succeed(&mut cmake);
    for language in ["C", "CXX"] {
        let known = format!("The {language} compiler identification is Clang");
        assert!(said.contains(&known), "{said}");
    }
    build(&folder);
    for program in ["c_milieu", "c_static", "cpp_milieu", "cpp_static"] {
        assert_eq!(
            succeed(&mut Command::new(folder.join(program))),
            PRINTED,
            "{program}"
        );
    }
}

/// As if it was edited a while after something was made.
fn make_newer(file: &Path, than: &Path) {
    let made = fs::metadata(than)
        .and_then(|it| it.modified())
        .expect("it is there");
    let later = made + std::time::Duration::from_secs(2);
    let file = fs::File::options()
        .append(true)
        .open(file)
        .expect("it is ours");
    file.set_modified(later).expect("it has a time");
}

#[test]
fn a_tree_may_stand_anywhere() {
    if !has(&["cc", "c++", "cmake", "pkg-config"]) {
        return;
    }
    let before = scratch("before");
    let libdir = "lib/x86_64-linux-gnu";
    succeed(&mut dist(
        &before,
        &["--prefix", "/usr", "--libdir", libdir],
    ));
    assert_eq!(fs::read_dir(&before).expect("it was made").count(), 1);
    let after = scratch("after").join("with a blank");
    fs::rename(&before, &after).expect("it can be moved");

    let folder = scratch("after-cmake");
    let package = defined(
        "Milieu_DIR",
        &after.join("usr").join(libdir).join("cmake/Milieu"),
    );
    succeed(&mut configure(&consumer(), &folder, &[&package]));
    build(&folder);
    for program in ["c_milieu", "cpp_static"] {
        assert_eq!(
            succeed(&mut Command::new(folder.join(program))),
            PRINTED,
            "{program}"
        );
    }

    let folder = scratch("after-cc");
    link_to(&after, &folder.join("tree"));
    let usr = folder.join("tree/usr");
    by_pkg_config(&usr, &usr.join(libdir), &folder);
    // A tree takes much room, as what is built without optimization does.
    fs::remove_dir_all(after).expect("it is ours");
}

fn link_to(target: &Path, link: &Path) {
    symlink(target, link).expect("a link can be made");
}

/// What programs are told who ask pkg-config, by how they have Milieu.
const LIBRARIES: [(&str, &[&str]); 2] = [
    ("shared", &["--cflags", "--libs", "milieu"]),
    ("static", &["--static", "--cflags", "--libs", "milieu"]),
];

/// The command that tells where the libraries of a tree are.
fn pkg_config(lib: &Path, arguments: &[&str]) -> Command {
    let mut pkg_config = Command::new("pkg-config");
    pkg_config
        .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
        .args(arguments);
    pkg_config
}

/// The header that the command of a tree makes of the specification.
fn generate(prefix: &Path, language: &str, header: &Path) {
    let mut milieu = Command::new(prefix.join("bin/milieu"));
    milieu.args(["spec", "generate", "--lang", language, "--out"]);
    succeed(milieu.arg(header).arg(consumer().join("station.ini")));
}

/// Builds and runs the program in C with what pkg-config says.
fn by_pkg_config(prefix: &Path, lib: &Path, folder: &Path) {
    generate(prefix, "c", &folder.join("station.h"));
    let asked = |arguments: &[&str]| pkg_config(lib, arguments);
    assert_eq!(succeed(&mut asked(&["--modversion", "milieu"])), "0.1.0\n");
    let refused = fail(&mut asked(&["--print-errors", "milieu >= 9"]));
    assert!(
        refused.contains("milieu >= 9") && refused.contains("0.1.0"),
        "{refused}"
    );

    for (name, options) in LIBRARIES {
        let flags = succeed(&mut asked(options));
        let program = folder.join(name);
        let mut cc = Command::new("cc");
        cc.arg(consumer().join("station.c")).arg("-I").arg(folder);
        cc.arg("-o").arg(&program);
        if name == "static" {
            // Whole programs without a shared library need a C library of that kind.
            cc.arg("-static");
        }
        succeed(cc.args(flags.split_whitespace()));
        let mut run = Command::new(&program);
        assert_eq!(succeed(run.env("LD_LIBRARY_PATH", lib)), PRINTED, "{name}");
    }
}

#[test]
fn programs_are_built_with_pkg_config_and_a_compiler() {
    if !has(&["cc", "pkg-config"]) {
        return;
    }
    let folder = scratch("cc");
    by_pkg_config(tree(), &tree().join("lib"), &folder);

    // And with the compiler alone.
    let program = folder.join("plain");
    let mut cc = Command::new("cc");
    cc.arg(consumer().join("station.c")).arg("-I").arg(&folder);
    cc.arg("-I")
        .arg(tree().join("include"))
        .arg("-o")
        .arg(&program);
    cc.arg(tree().join("lib/libmilieu.a"));
    succeed(cc.args(["-lpthread", "-ldl", "-lm"]));
    assert_eq!(succeed(&mut Command::new(&program)), PRINTED);
}

#[test]
fn programs_in_cpp_with_streams_are_built_with_pkg_config() {
    if !has(&["cc", "c++", "pkg-config"]) {
        return;
    }
    let folder = scratch("streams");
    let lib = tree().join("lib");
    fs::create_dir(folder.join("generated")).expect("it is ours");
    generate(tree(), "cpp", &folder.join("generated/station.hpp"));
    for (name, options) in LIBRARIES {
        let flags = succeed(&mut pkg_config(&lib, options));
        let program = folder.join(name);
        let mut cc = Command::new("c++");
        cc.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-o"]);
        cc.arg(&program).arg("-I").arg(&folder);
        cc.arg(consumer().join("heat.cpp"));
        if name == "static" {
            cc.arg("-static");
        }
        succeed(cc.args(flags.split_whitespace()));
        let mut run = Command::new(&program);
        let printed = succeed(run.env("LD_LIBRARY_PATH", &lib));
        assert_eq!(printed, "210 /weather 005 35\n", "{name}");
    }
}

/// Configures a project that does nothing but look for Milieu. It is one for all
/// requests, as CMake takes long to get to know the compiler.
fn found(source: &Path, request: &str) -> Command {
    let text = format!(
        "cmake_minimum_required(VERSION 3.19)\nproject(find C)\nfind_package(Milieu {request})\n\
         message(STATUS \"found ${{Milieu_FOUND}} ${{Milieu_VERSION}}\")\n"
    );
    fs::write(source.join("CMakeLists.txt"), text).expect("it can be written");
    let prefix = defined("CMAKE_PREFIX_PATH", tree());
    configure(source, &source.join("build"), &[&prefix])
}

#[test]
fn versions_and_components_that_are_not_there_are_refused() {
    if !has(&["cc", "cmake"]) {
        return;
    }
    let source = scratch("find");
    for request in [
        "REQUIRED",
        "0.1 REQUIRED",
        "0.1.0 EXACT REQUIRED",
        "0.1...<0.2 REQUIRED",
        "REQUIRED COMPONENTS shared OPTIONAL_COMPONENTS streams",
    ] {
        let said = succeed(&mut found(&source, request));
        assert!(said.contains("found 1 0.1.0"), "{request}: {said}");
    }
    for (request, why) in [
        ("0.2 REQUIRED", "requested version \"0.2\""),
        ("0.1.1 REQUIRED", "requested version \"0.1.1\""),
        ("1 REQUIRED", "requested version \"1\""),
        ("0.0.1...<0.1 REQUIRED", "version range"),
        (
            "REQUIRED COMPONENTS qt",
            "there is no component `qt`; there are shared, static and program",
        ),
    ] {
        let said = fail(&mut found(&source, request));
        assert!(said.contains(why), "{request}: {said}");
        let names_ours = said.contains("version: 0.1.0") || request.contains("COMPONENTS");
        assert!(names_ours, "{request}: {said}");
    }
}

/// The command runs on the machine that builds, which is not that of the tree.
#[test]
fn for_another_machine_the_command_is_that_of_this_one() {
    if !has(&["cc", "c++", "cmake"]) {
        return;
    }
    let folder = scratch("cross");
    let toolchain = folder.join("toolchain.cmake");
    let text = "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR other)\n";
    fs::write(&toolchain, text).expect("it can be written");
    let toolchain = defined("CMAKE_TOOLCHAIN_FILE", &toolchain);
    let prefix = defined("CMAKE_PREFIX_PATH", tree());
    let configure = |name: &str, arguments: &[&str], path: &str| {
        let mut cmake = configure(&consumer(), &folder.join(name), &[&toolchain, &prefix]);
        cmake.args(arguments);
        let inherited = env::var("PATH").unwrap_or_default();
        cmake.env("PATH", format!("{path}:{inherited}"));
        cmake
    };

    let bin = tree().join("bin");
    succeed(&mut configure("path", &[], &bin.to_string_lossy()));
    let cache = fs::read_to_string(folder.join("path/CMakeCache.txt")).expect("it was made");
    assert!(cache.contains(&format!(
        "MILIEU_PROGRAM:FILEPATH={}",
        bin.join("milieu").display()
    )));

    let nobody = "-DMILIEU_PROGRAM=/no/such/milieu";
    let said = fail(&mut configure("nobody", &[nobody], ""));
    assert!(said.contains("/no/such/milieu does not run here"), "{said}");

    // Another process writes it: what this one has open for writing, children that other
    // tests are starting have open still, and it could not be run.
    let (draft, other) = (folder.join("draft"), folder.join("milieu"));
    fs::write(&draft, "#!/bin/sh\necho milieu 9.9.9\n").expect("it can be written");
    succeed(Command::new("install").args([&draft, &other]));
    let said = fail(&mut configure(
        "old",
        &[&defined("MILIEU_PROGRAM", &other)],
        "",
    ));
    assert!(
        said.contains("is `milieu 9.9.9`, and these libraries are 0.1.0"),
        "{said}"
    );
}

#[test]
fn what_milieu_generate_cannot_do_is_told() {
    if !has(&["cc", "cmake"]) {
        return;
    }
    for (name, call, why) in [
        ("nothing", "", "milieu_generate needs SPEC"),
        (
            "target",
            "SPEC a.ini LANG c",
            "needs TARGET, whose sources include the header, or OUT",
        ),
        (
            "absent",
            "TARGET app SPEC a.ini LANG c",
            "there is no target `app` yet",
        ),
        (
            "word",
            "TARGET app SPEC a.ini LANG c FROM b",
            "does not know `FROM;b`",
        ),
        ("value", "OUT a.h SPEC a.ini LANG", "`LANG` has no value"),
        (
            "language",
            "TARGET it SPEC a.ini LANG rust",
            "of LANG c or cpp, not `rust`",
        ),
    ] {
        let source = scratch(&format!("call-{name}"));
        let text = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(call C)\nfind_package(Milieu REQUIRED)\n\
             add_library(it INTERFACE)\nmilieu_generate({call})\n"
        );
        fs::write(source.join("CMakeLists.txt"), text).expect("it can be written");
        let prefix = defined("CMAKE_PREFIX_PATH", tree());
        let said = fail(&mut configure(&source, &source.join("build"), &[&prefix]));
        assert!(said.contains(why), "{call}: {said}");
    }
}

#[test]
fn what_dist_cannot_do_is_told_and_leaves_nothing() {
    let folder = scratch("refused");
    let file = folder.join("file");
    fs::write(&file, "").expect("it can be written");
    let said = fail(&mut dist(&file.join("tree"), &[]));
    assert!(said.contains("give another folder with --dest"), "{said}");

    let dest = folder.join("tree");
    let xtask = || Command::new(env!("CARGO_BIN_EXE_xtask"));
    let arguments = ["dist", "--dest", "tree", "--built", "."];
    let said = fail(xtask().args(arguments).current_dir(&folder));
    assert!(
        said.contains("libmilieu_capi.a is not there; `cargo build"),
        "{said}"
    );
    assert!(!dest.exists());

    for (arguments, why) in [
        (
            ["--cc", "no-such-cc"],
            "there is no C compiler `no-such-cc`",
        ),
        (["--libdir", "/lib"], "--libdir /lib is below --prefix"),
        (["--prefix", "../usr"], "--prefix ../usr leaves the tree"),
    ] {
        let said = fail(&mut dist(&dest, &arguments));
        assert!(said.contains(why), "{said}");
        assert!(!dest.exists());
    }

    // An archive that cannot be linked.
    let broken = folder.join("broken");
    fs::create_dir(&broken).expect("a folder");
    for name in ["libmilieu_capi.a", "milieu"] {
        fs::write(broken.join(name), "this is none").expect("it can be written");
    }
    let mut xtask = xtask();
    xtask
        .arg("dist")
        .arg("--dest")
        .arg(&dest)
        .arg("--built")
        .arg(&broken);
    let said = fail(&mut xtask);
    assert!(
        said.contains("is as it was") && said.contains("strip"),
        "{said}"
    );
    assert!(!dest.exists());
}
