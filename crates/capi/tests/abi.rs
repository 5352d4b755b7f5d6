//! The header and the library are of one mind, and the shared library exports
//! what the header declares, versioned, and nothing else.

mod support;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use support::{
    Language, Program, Sanitizer, compilers, generate_into, has, library, package, passes, run,
    run_in_valgrind, sanitizing, scratch, skipped,
};

fn program<'a>(
    compiler: &'a str,
    source: &str,
    folder: &'a Path,
    flags: &'a [&'a str],
) -> Program<'a> {
    Program {
        language: Language::C,
        compiler,
        source: package().join("tests/programs").join(source),
        folder,
        flags,
    }
}

/// The header of actions, which `milieu.h` includes.
const ACTIONS: &str = "milieu/actions.h";
/// The header of files.
const FILES: &str = "milieu/files.h";
/// The headers of streams.
const STREAMS: [&str; 5] = [
    "milieu/streams.h",
    "milieu/events.h",
    "milieu/operators.h",
    "milieu/effects.h",
    "milieu/flows.h",
];
const RIGHTS: &str = "milieu/rights.h";
const MODES: &str = "milieu/modes.h";
const LINKS: [&str; 2] = ["milieu/links.h", "milieu/engines.h"];
/// That of sources which have names.
const SOURCES: &str = "milieu/sources.h";
/// That of programs which are not this one.
const FOREIGN: &str = "milieu/foreign.h";

/// The functions that the headers declare.
fn declared() -> BTreeSet<String> {
    let mut headers = vec!["milieu.h", ACTIONS, FILES];
    if cfg!(feature = "stream") {
        headers.extend(STREAMS);
        headers.extend([RIGHTS, MODES]);
    }
    if cfg!(feature = "links") {
        headers.extend(LINKS);
    }
    if cfg!(feature = "sources") {
        headers.push(SOURCES);
    }
    if cfg!(any(feature = "http", feature = "mqtt")) {
        headers.push(FOREIGN);
    }
    let mut declared = declared_in(&headers);
    declared.retain(|name| {
        (cfg!(feature = "http") || !name.starts_with("milieu_http_"))
            && (cfg!(feature = "mqtt") || !name.starts_with("milieu_mqtt_"))
    });
    declared
}

/// The functions that headers declare; those that they define aside.
fn declared_in(headers: &[&str]) -> BTreeSet<String> {
    let text = |header| fs::read_to_string(package().join("include").join(header));
    let header: String = headers
        .iter()
        .map(|header| text(header).expect("the header"))
        .collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut called = BTreeSet::new();
    let mut defined = BTreeSet::new();
    let is_code = |line: &&str| !line.trim_start().starts_with(['*', '/']);
    for line in header.lines().filter(is_code) {
        let mut rest = line;
        while let Some(at) = rest.find("milieu_") {
            let end = rest[at..]
                .find(|c| !is_name(c))
                .map_or(rest.len(), |end| at + end);
            if rest[end..].starts_with('(') {
                let name = rest[at..end].to_owned();
                let inline = line.starts_with("static inline");
                if inline { &mut defined } else { &mut called }.insert(name);
            }
            rest = &rest[end..];
        }
    }
    called.retain(|name| !defined.contains(name));
    called
}

/// A program in C and in C++ may hand null to what headers define as to anything else.
#[test]
fn what_headers_define_is_handed_null() {
    let text = |path: &str| fs::read_to_string(package().join(path)).expect("a text");
    let misuse = text("tests/programs/misuse.c");
    let mut defined = 0;
    for header in headers(&package().join("include")) {
        let header = fs::read_to_string(header).expect("the header");
        let inline = header.lines().filter(|it| it.starts_with("static inline"));
        for line in inline.filter(|line| line.split_once('(').is_some_and(|it| it.1.contains('*')))
        {
            let name = line
                .split('(')
                .next()
                .and_then(|it| it.split(' ').next_back());
            let name = name.expect("a name").trim_start_matches('*');
            let is_handed =
                |call: &str| call.split(';').next().is_some_and(|it| it.contains("NULL"));
            let call = format!("{name}(");
            let mut calls = misuse.split(&call).skip(1);
            assert!(calls.any(is_handed), "{name} is never handed null");
            defined += 1;
        }
    }
    assert!(defined > 2, "they are found");
}

/// The headers of C below a folder.
fn headers(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("the entry can be read").path());
    let of = |path: PathBuf| match path.is_dir() {
        true => headers(&path),
        false => vec![path],
    };
    let mut all: Vec<PathBuf> = paths.flat_map(of).collect();
    all.retain(|path| path.extension().is_some_and(|it| it == "h"));
    all
}

/// The symbols that `nm` finds defined for everybody.
fn symbols(arguments: &[&str], file: &Path) -> Vec<String> {
    let output = Command::new("nm").args(arguments).arg(file).output();
    let output = output.expect("nm comes with the compiler");
    let text = String::from_utf8_lossy(&output.stdout);
    let symbol = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.len() == 3).then(|| words[2].to_owned())
    };
    text.lines().filter_map(symbol).collect()
}

#[test]
fn the_header_declares_what_the_library_has() {
    if !has("nm") {
        return skipped("nm is not installed");
    }
    let symbols = symbols(&["--defined-only", "--extern-only"], &library());
    let ours: BTreeSet<String> = symbols
        .into_iter()
        .filter(|name| name.starts_with("milieu_") && !name.contains("::"))
        .collect();
    assert_eq!(ours, declared());
}

/// Each row of a program is a function of these headers, and each function a row.
fn every(source: &str, headers: &[&str], arguments: impl Fn(&Path) -> Vec<OsString>) {
    let folder = scratch(&format!("abi-{source}"));
    generate_into(&folder, "tests/programs/station.ini", "c");
    if let Some(compiled) = passes(Language::C, source, &folder, || arguments(&folder)) {
        let listed = run(&compiled, &["list".into()]);
        let listed: Vec<String> = listed.lines().map(str::to_owned).collect();
        let names: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(names.len(), listed.len(), "a function has one row");
        assert_eq!(names, declared_in(headers));
    }
}

#[test]
fn every_function_is_misused_in_every_way() {
    every("every.c", &["milieu.h", ACTIONS, FILES], |folder| {
        let files = folder.join("files");
        let _ = fs::remove_dir_all(&files);
        fs::create_dir(&files).expect("a folder for settings");
        vec![files.into()]
    });
}

#[cfg(feature = "stream")]
#[test]
fn every_function_of_streams_is_misused_in_every_way() {
    every("every_streams.c", &STREAMS, |folder| {
        // A run begins without what another has kept.
        let _ = fs::remove_file(folder.join("every"));
        vec![folder.into()]
    });
}

#[cfg(feature = "stream")]
#[test]
fn every_function_of_modes_is_misused_in_every_way() {
    every("every_modes.c", &[MODES], |_| Vec::new());
}

#[cfg(feature = "links")]
#[test]
fn every_function_of_links_is_misused_in_every_way() {
    every("every_links.c", &[RIGHTS, LINKS[0], LINKS[1]], |_| {
        Vec::new()
    });
}

#[cfg(feature = "sources")]
#[test]
fn every_function_of_sources_is_misused_in_every_way() {
    every("every_sources.c", &[SOURCES], |_| Vec::new());
}

#[cfg(all(feature = "http", feature = "mqtt"))]
#[test]
fn every_function_of_foreign_programs_is_misused_in_every_way() {
    every("every_foreign.c", &[FOREIGN], |_| Vec::new());
}

/// The functions that say what is constant, or was kept before.
const WITHOUT_WORK: [&str; 4] = [
    "milieu_failed_with",
    "milieu_message",
    "milieu_result_name",
    "milieu_version",
];

/// Sources of the library, those below a folder.
fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let mut texts = Vec::new();
    for entry in entries {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            texts.extend(sources(&path));
        } else if !path.ends_with("tests.rs") {
            texts.push(fs::read_to_string(&path).expect("a source is text"));
        }
    }
    texts
}

/// What stands between a brace or parenthesis, with which a text begins, and its
/// counterpart, and what comes behind that.
fn enclosed(text: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&text[1..at], &text[at + 1..]);
        }
    }
    panic!("it is never closed: {text}");
}

/// The exported functions of a source, with their bodies. Those that a macro makes
/// are one, which the macro names.
fn exported(source: &str) -> Vec<(&str, String)> {
    let begins = "extern \"C\" fn ";
    let mut found = Vec::new();
    for (at, _) in source.match_indices(begins) {
        let rest = &source[at + begins.len()..];
        let end = rest.find('(').expect("its arguments");
        let (_, rest) = enclosed(&rest[end..]);
        let name = &source[at + begins.len()..][..end];
        let body = &rest[rest.find('{').expect("its body")..];
        let lines = enclosed(body).0.lines();
        let code: Vec<&str> = lines
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        found.push((name, code.join("\n").trim().to_owned()));
    }
    found
}

/// Why a function does something where a panic would leave it, if it does.
fn unguarded(body: &str) -> Option<&str> {
    // What cannot fail, and has to outlive the call or to go with it.
    let is_prepared = |statement: &str| {
        statement == "let user = User::new(user, destroy);"
            || statement.starts_with("let mut ")
                && [" = 0;", " = milieu_text::EMPTY;"]
                    .iter()
                    .any(|it| statement.ends_with(it))
    };
    let rest = match body.split_once('\n') {
        Some((first, others)) if is_prepared(first) => others.trim_start(),
        _ => body,
    };
    let Some(work) = rest.strip_prefix("call(") else {
        return Some(rest);
    };
    let (_, behind) = enclosed(&rest[rest.len() - work.len() - 1..]);
    let behind = behind.trim_start_matches(';').trim();
    let is_name = behind.chars().all(|c| c.is_ascii_lowercase());
    (!is_name).then_some(behind)
}

#[test]
fn what_a_function_does_by_itself_is_seen() {
    for guarded in [
        "call(|| Ok(()))",
        "call(|| {\n    drop(take(it)?);\n    Ok(())\n});",
        "let user = User::new(user, destroy);\n    call(|| Ok(()))",
        "let mut role = milieu_text::EMPTY;\n    call(|| Ok(()));\n    role",
    ] {
        assert_eq!(unguarded(guarded), None, "{guarded}");
    }
    for body in [
        "recall(|| Ok(()))",
        "prepare();\n    call(|| Ok(()))",
        "let mut role = (*scope).role();\n    call(|| Ok(()));\n    role",
        "call(|| Ok(()));\n    role.unwrap()",
        "call(|| Ok(())) + more()",
    ] {
        assert!(unguarded(body).is_some(), "{body}");
    }
    let source = "pub extern \"C\" fn milieu_a(b: fn(u8)) -> c {\n    // It is.\n    call(d)\n}\n";
    assert_eq!(exported(source), [("milieu_a", "call(d)".to_owned())]);
}

/// A panic that leaves a function ends the program of somebody else.
#[test]
fn the_work_of_every_function_is_where_panics_end() {
    let mut names = BTreeSet::new();
    for source in sources(&package().join("src")) {
        for (name, body) in exported(&source) {
            if name == "$name" {
                let (_, made) = source.split_once("\nsetters! {").expect("they are set");
                let called = made.lines().filter_map(|line| line.split_once('('));
                let called = called.map(|(name, _)| name.trim().to_owned());
                names.extend(called.filter(|name| name.starts_with("milieu_")));
            } else {
                names.insert(name.to_owned());
            }
            if WITHOUT_WORK.contains(&name) {
                assert!(unguarded(&body).is_some(), "{name} is no exception");
                continue;
            }
            assert_eq!(unguarded(&body), None, "{name} does something by itself");
        }
    }
    let unseen: Vec<_> = declared().difference(&names).cloned().collect();
    assert_eq!(unseen, Vec::<String>::new());
}

/// Links the shared library as it is installed.
fn shared(compiler: &str, folder: &Path) -> PathBuf {
    let shared = folder.join("libmilieu.so.0");
    let output = Command::new(compiler)
        .arg(format!("@{}", package().join("shared.flags").display()))
        .arg(format!(
            "-Wl,--version-script={}",
            package().join("milieu.map").display()
        ))
        .arg("-o")
        .arg(&shared)
        .arg("-Wl,--whole-archive")
        .arg(library())
        .args(["-Wl,--no-whole-archive", "-ldl", "-lm"])
        .output()
        .expect("the compiler was found before");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    shared
}

#[test]
fn the_shared_library_exports_versioned_symbols() {
    let folder = scratch("abi-shared");
    generate_into(&folder, "tests/programs/station.ini", "c");
    for compiler in compilers(Language::C) {
        let library = shared(compiler, &folder);
        if has("nm") {
            let exported = symbols(&["--dynamic", "--defined-only"], &library);
            let mut functions = exported.clone();
            functions.retain(|name| name != "MILIEU_0.1" && name != "MILIEU_0.1@@MILIEU_0.1");
            let expected = declared();
            let expected: Vec<_> = expected
                .iter()
                .map(|name| format!("{name}@@MILIEU_0.1"))
                .collect();
            assert_eq!(functions, expected);
        }
    }
}

/// The compiler of C++ that comes with one of C, if it is here and does the same.
fn partner(c: &str, sanitizer: Option<Sanitizer>) -> Option<&'static str> {
    let name = if c == "gcc" { "g++" } else { "clang++" };
    compilers(Language::Cpp)
        .into_iter()
        .find(|cpp| *cpp == name && sanitizer.is_none_or(|it| it.works(Language::Cpp, cpp)))
}

/// Runs a host of plug-ins with one in each language, and with each both ways of
/// having Milieu: that of the host, and another that is linked into the plug-in.
fn hosted(
    (compiler, sanitizer): (&str, Option<Sanitizer>),
    folder: &Path,
    shared: &Path,
    look: impl Fn(&Path, &[OsString]),
) {
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let mut flags = vec![rpath.as_str()];
    flags.extend(sanitizer.map_or(&["-O1"][..], |it| it.flags()));
    let cpp = partner(compiler, sanitizer);
    let mut host_flags = flags.clone();
    if compiler == "clang" && sanitizer.is_some() && cpp.is_some() {
        // A host in C has what looks at plug-ins in C++ only if it is told.
        host_flags.extend(["-fsanitize-link-c++-runtime", "-Wl,--no-as-needed"]);
        host_flags.extend(["-lstdc++", "-Wl,--as-needed"]);
    }
    let host = program(compiler, "host.c", folder, &host_flags);
    let host = host.linked_with(&shared.to_string_lossy());
    flags.extend(["-shared", "-fPIC"]);
    for (milieu, archive, more) in [
        ("shared", shared.to_owned(), &[][..]),
        (
            "own",
            library(),
            // As the guide says.
            &["-Wl,--exclude-libs,ALL", "-Wl,-z,nodelete"],
        ),
    ] {
        let archive = archive.to_string_lossy();
        let flags = [&flags[..], more].concat();
        let plugin = program(compiler, "plugin.c", folder, &flags);
        look(&host, &[plugin.linked_with(&archive).into(), milieu.into()]);
        let Some(compiler) = cpp else { continue };
        let plugin = Program {
            language: Language::Cpp,
            ..program(compiler, "plugin.cpp", folder, &flags)
        };
        look(&host, &[plugin.linked_with(&archive).into(), milieu.into()]);
    }
}

#[test]
fn a_host_and_what_it_loads_do_not_know_of_each_other() {
    let folder = scratch("abi-plugin");
    generate_into(&folder, "tests/programs/station.ini", "c");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    let sanitizing = sanitizing(Language::C, "host.c");
    for (place, compiler) in compilers(Language::C).into_iter().enumerate() {
        let shared = shared(compiler, &folder);
        hosted((compiler, None), &folder, &shared, |host, arguments| {
            run(host, arguments);
            if place == 0 {
                run_in_valgrind(host, arguments);
            }
        });
        if sanitizing.contains(&compiler) {
            let way = (compiler, Some(Sanitizer::Addresses));
            hosted(way, &folder, &shared, |host, arguments| {
                run(host, arguments);
            });
        }
    }
}
