//! Programs that compilers have to refuse, each with its reason.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::{Language, Program, compilers, generate_into, package, scratch};

/// Each file of `tests/refused` says what is expected: one of several texts, as
/// compilers differ in their words. It fails for that alone: `station.ini`'s
/// headers compile, as other tests show.
#[test]
fn what_must_not_compile_does_not() {
    let folder = scratch("refused");
    generate_into(&folder, "tests/programs/station.ini", "c");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    let prepared: BTreeMap<_, _> = compilers(Language::Cpp)
        .into_iter()
        .map(|compiler| (compiler, prepared(&folder, compiler)))
        .collect();
    let files = fs::read_dir(package().join("tests/refused")).expect("the folder is there");
    let mut count = 0;
    for file in files {
        let source = file.expect("the entry can be read").path();
        let language = match source.extension() {
            Some(extension) if extension == "c" => Language::C,
            _ => Language::Cpp,
        };
        let text = fs::read_to_string(&source).expect("the program can be read");
        let expected: Vec<&str> = text
            .lines()
            .filter_map(|line| Some(line.split_once("expect: ")?.1))
            .map(|line| line.trim_end_matches(" */"))
            .collect();
        assert!(!expected.is_empty(), "{} says nothing", source.display());
        for compiler in compilers(language) {
            let mut flags = vec!["-c"];
            if language == Language::Cpp {
                flags.extend(prepared[compiler].iter().map(String::as_str));
            }
            let program = Program {
                language,
                compiler,
                source: source.clone(),
                folder: &folder,
                flags: &flags,
            };
            let (_, output) = program.compile_only();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success(),
                "{compiler} takes {}",
                source.display()
            );
            assert!(
                expected.iter().any(|text| said.contains(text)),
                "{compiler} refuses {} for another reason:\n{said}",
                source.display()
            );
            count += 1;
        }
    }
    assert!(count > 0 || compilers(Language::C).is_empty());
}

/// Lets a compiler read the generated header once, and not again for each program: what
/// tells it so.
fn prepared(folder: &Path, compiler: &str) -> Vec<String> {
    let header = folder.join("station.hpp");
    let program = Program {
        language: Language::Cpp,
        compiler,
        source: header.clone(),
        folder,
        flags: &["-x", "c++-header"],
    };
    let (made, output) = program.compile_only();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} refuses it:\n{said}");
    if compiler.starts_with("clang") {
        return vec!["-include-pch".to_owned(), made.display().to_string()];
    }
    // It is taken by its name alone.
    fs::rename(made, header.with_extension("hpp.gch")).expect("it can be renamed");
    Vec::new()
}
