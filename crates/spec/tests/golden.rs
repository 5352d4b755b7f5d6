//! Golden outputs: one specification for each feature, and what every back end
//! that has something to say about it makes of it.
//!
//! `UPDATE_EXPECT=1 cargo test -p milieu-spec` writes them anew.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use milieu_diagnostics::{Source, render};
use milieu_spec::{Settings, backend, generate};

/// A specification, the back ends to run, and the branch to generate.
const GOLDENS: &[(&str, &[&str], Option<&str>)] = &[
    ("nested", &["rust"], None),
    ("types", &["rust", "c", "cpp"], None),
    ("enumeration", &["rust", "c", "cpp"], None),
    ("keywords", &["rust", "c", "cpp"], None),
    ("readonly", &["rust", "c", "cpp"], None),
    ("layers", &["rust", "c", "cpp", "markdown"], None),
    ("options", &["rust", "markdown", "man"], None),
    ("root", &["rust", "c", "cpp", "ini"], Some("/sw/pi")),
    ("documentation", &["rust", "markdown", "man"], None),
    ("hostile", &["rust", "c", "cpp", "markdown", "man"], None),
    ("secrets", &["rust", "markdown", "man"], None),
    ("migration", &["rust", "markdown", "man"], None),
    (
        "array",
        &["rust", "c", "cpp", "markdown", "man", "ini"],
        None,
    ),
    ("array_inside", &["rust", "markdown"], None),
    ("collision", &["rust", "c", "cpp"], None),
    ("spelling", &["rust", "markdown"], None),
    ("variants", &["rust"], None),
    ("command_line", &["man"], None),
    ("no_such_root", &["rust"], Some("/sw/po")),
    ("paper", &["rust", "c", "cpp"], None),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// What is to be compared with the file of that name.
struct Golden {
    file: PathBuf,
    actual: String,
}

fn goldens() -> Vec<Golden> {
    let mut all = Vec::new();
    for (name, backends, root) in GOLDENS {
        let text = fs::read_to_string(folder().join(format!("{name}.ini")))
            .unwrap_or_else(|error| panic!("{name}.ini: {error}"));
        let source = Source {
            name: format!("{name}.ini"),
            text,
        };
        let mut settings = Settings::new(*name);
        settings.root = root.map(str::to_owned);
        for backend in *backends {
            let backend = backend::by_name(backend).expect("the table names back ends");
            let output = generate(&source, backend, &settings);
            let extension = match backend.name() {
                "rust" => "rs",
                "c" => "h",
                "cpp" => "hpp",
                "markdown" => "md",
                "man" => "man",
                other => other,
            };
            let extension = if extension == "ini" {
                "exported.ini"
            } else {
                extension
            };
            for file in output.files {
                all.push(Golden {
                    file: folder().join(format!("{name}.{extension}")),
                    actual: file.text,
                });
            }
            if !output.diagnostics.is_empty() {
                all.push(Golden {
                    file: folder().join(format!("{name}.{extension}.diagnostics")),
                    actual: render(&source, &output.diagnostics, false),
                });
            }
        }
    }
    all
}

#[test]
fn outputs_are_as_expected() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut differing = String::new();
    for Golden { file, actual } in goldens() {
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if expected == actual {
            continue;
        }
        if update {
            fs::write(&file, &actual).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        } else {
            differing.push_str(&format!("--- {}\n{actual}\n", file.display()));
        }
    }
    assert!(
        differing.is_empty(),
        "these outputs are not the expected ones; \
         UPDATE_EXPECT=1 accepts them:\n{differing}"
    );
}

#[test]
fn no_golden_is_left_over() {
    let expected: Vec<_> = goldens().into_iter().map(|golden| golden.file).collect();
    for entry in fs::read_dir(folder()).expect("the folder can be listed") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_input = GOLDENS
            .iter()
            .any(|(golden, ..)| name == format!("{golden}.ini"));
        assert!(
            is_input || expected.contains(&path),
            "{name} belongs to no golden"
        );
    }
}

#[test]
fn the_same_text_gives_the_same_files() {
    let (first, second) = (goldens(), goldens());
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one.actual, other.actual);
    }
}

/// Every public item of the generated Rust has a doc comment above its attributes.
#[test]
fn generated_rust_is_documented() {
    for Golden { file, actual } in rust() {
        let lines: Vec<_> = actual.lines().map(str::trim).collect();
        for (number, line) in lines.iter().enumerate() {
            if !line.starts_with("pub ") {
                continue;
            }
            let above = lines[..number]
                .iter()
                .rev()
                .find(|line| !line.starts_with("#["));
            assert!(
                above.is_some_and(|above| above.starts_with("///")),
                "{}:{}: `{line}` has no documentation",
                file.display(),
                number + 1
            );
        }
    }
}

#[test]
fn generated_rust_is_formatted() {
    if run("rustfmt", &["--version"], "").is_none() {
        eprintln!("skipped: there is no rustfmt here");
        return;
    }
    for Golden { file, actual } in rust() {
        let result = run("rustfmt", &["--edition", "2024", "--check"], &actual);
        let printed = result.expect("rustfmt ran a moment ago");
        assert_eq!(printed, "", "{}", file.display());
    }
}

/// roff is silent about bad requests unless it is asked to warn.
#[test]
fn manual_pages_render_without_warnings() {
    if run("groff", &["--version"], "").is_none() {
        eprintln!("skipped: there is no groff here");
        return;
    }
    for Golden { file, actual } in goldens() {
        if file.extension().is_some_and(|extension| extension == "man") {
            let result = run("groff", &["-man", "-Tutf8", "-ww", "-z"], &actual);
            let printed = result.expect("groff ran a moment ago");
            assert_eq!(printed, "", "{}", file.display());
        }
    }
}

fn rust() -> impl Iterator<Item = Golden> {
    goldens().into_iter().filter(|golden| {
        let extension = golden.file.extension();
        extension.is_some_and(|extension| extension == "rs")
    })
}

/// What a program prints, on both streams; nothing, if it cannot be started.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    // A program that does not read its input may have closed it already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().ok()?;
    Some(format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}
