//! What specifications mean and how their mistakes are shown.
//!
//! Each `tests/specification/pass/*.ini` is without errors; beside it stands, as
//! `.txt`, what it exports, with the warnings in front. Each `fail/*.ini` has
//! errors, and the `.txt` shows them. `UPDATE_EXPECT=1 cargo test` writes what
//! is expected anew; read the difference before you keep it.

use milieu_diagnostics::{Diagnostic, Source, render};
use milieu_keys::Specification;
use std::fs;
use std::path::{Path, PathBuf};

fn load(path: &Path) -> (Specification, Vec<Diagnostic>, Source) {
    let text = fs::read_to_string(path).expect("a readable specification");
    let name = path.file_name().expect("a file").to_string_lossy();
    let source = Source::new(name, text);
    let (specification, mut found) = Specification::parse(&source);
    found.extend(specification.check(&source));
    (specification, found, source)
}

/// The files of a folder with that extension, in order.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/specification")
        .join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of specifications")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty() || extension == "txt");
    files
}

/// Compares what is shown for each specification of a folder with its `.txt`.
fn compare(folder: &str, show: impl Fn(&Path) -> String) {
    let update = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for path in files(folder, "ini") {
        let shown = show(&path);
        let expected_path = path.with_extension("txt");
        if update {
            fs::write(&expected_path, &shown).expect("a writable expectation");
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        if shown != expected {
            wrong.push(format!(
                "{}\n--- shown\n{shown}--- expected\n{expected}",
                path.display()
            ));
        }
    }
    for path in files(folder, "txt") {
        assert!(
            path.with_extension("ini").exists(),
            "{} belongs to nothing",
            path.display()
        );
    }
    assert!(
        wrong.is_empty(),
        "UPDATE_EXPECT=1 accepts these:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn pass() {
    compare("pass", |path| {
        let (specification, found, source) = load(path);
        let shown = render(&source, &found, false);
        assert!(
            !found.iter().any(Diagnostic::is_error),
            "{}:\n{shown}",
            path.display()
        );
        let exported = specification.to_ini();
        let (again, found) = Specification::parse(&Source::new("exported", exported.as_str()));
        assert_eq!(
            (&again, &*found),
            (&specification, &[][..]),
            "{}",
            path.display()
        );
        match shown.as_str() {
            "" => exported,
            warnings => format!("{warnings}\n{exported}"),
        }
    });
}

#[test]
fn fail() {
    compare("fail", |path| {
        let (_, found, source) = load(path);
        assert!(
            found.iter().any(Diagnostic::is_error),
            "{} has no error",
            path.display()
        );
        render(&source, &found, false)
    });
}
