//! What library code leaves to programs.
//!
//! A library returns values and typed errors; printing and exiting are the
//! program's. The vocabulary is pure besides: it reads no file, opens no
//! socket, and asks neither the environment nor the clock. Tests are free.

use super::dependencies::VOCABULARY;
use super::{File, Finding, Repository};

/// In no library: these are the program's.
const PROGRAMS: &[&str] = &[
    "println!(",
    "print!(",
    "eprintln!(",
    "eprint!(",
    "dbg!(",
    "process::exit(",
];

/// In no pure library: these reach out of the program. Addresses are values and
/// may be parsed; sockets are not.
const OUTSIDE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "ToSocketAddrs",
    "io::stdin",
    "Instant::now",
    "SystemTime::now",
];

/// Where a line may have such a word, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "crates/spec/src/build.rs",
    "println!(",
    "a build script speaks to Cargo on its standard output",
)];

pub fn check(repository: &Repository) -> Vec<Finding> {
    check_but(repository, EXCEPTIONS)
}

fn check_but(repository: &Repository, exceptions: &[(&str, &str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = vec![false; exceptions.len()];
    for package in repository
        .packages
        .iter()
        .filter(|package| package.has_library)
    {
        let Some(part) = package.folder.strip_prefix("crates/") else {
            continue;
        };
        let sources = format!("{}/src/", package.folder);
        let is_pure = VOCABULARY.contains(&part);
        let outside = OUTSIDE.iter().filter(|_| is_pure);
        let forbidden: Vec<&str> = PROGRAMS.iter().chain(outside).copied().collect();
        for file in repository.files_ending(&[".rs"]) {
            let is_free = ["/main.rs", "/tests.rs"]
                .iter()
                .any(|end| file.path.ends_with(end));
            if is_free || !file.path.starts_with(&sources) {
                continue;
            }
            for (number, line) in code(file) {
                for word in forbidden.iter().filter(|word| says(line, word)) {
                    let excepted = exceptions
                        .iter()
                        .position(|(path, what, _)| *path == file.path && what == word);
                    match excepted {
                        Some(index) => used[index] = true,
                        None => {
                            findings.push(file.finding(
                                number,
                                format!("`{word}` in a library; {}", remedy(word)),
                            ))
                        }
                    }
                }
            }
        }
    }
    for ((path, word, _), _) in exceptions.iter().zip(used).filter(|(_, used)| !used) {
        findings.push(Finding {
            path: (*path).to_owned(),
            line: 0,
            message: format!(
                "has no `{word}` any more; strike the exception in xtask/src/tidy/libraries.rs"
            ),
        });
    }
    findings
}

fn remedy(word: &str) -> &'static str {
    if PROGRAMS.contains(&word) {
        "return the value or the error, and let the program do it"
    } else {
        "this part is pure: let the caller hand in what it needs"
    }
}

/// The lines of code before the tests, without comments.
fn code(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.lines()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Whether the line has the word, at the start of an identifier and outside a
/// string.
fn says(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = &line[..at];
        let is_within = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_quoted = before.matches('"').count() % 2 == 1;
        !is_within && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::super::example::{package, repository, shown};
    use super::*;

    fn with(path: &str, text: &str) -> Repository {
        let folder: Vec<&str> = path.split('/').take(2).collect();
        Repository {
            packages: vec![package(&folder.join("/"), &[])],
            ..repository(&[(path, text)])
        }
    }

    #[test]
    fn a_library_that_prints_or_exits_is_found() {
        for line in [
            "    println!(\"{x}\");",
            "    let x = dbg!(y);",
            "    std::process::exit(1);",
        ] {
            let text = format!("//! A.\nfn a() {{\n{line}\n}}\n");
            let found = check_but(&with("crates/context/src/lib.rs", &text), &[]);
            assert_eq!(found.len(), 1, "{line}");
            assert!(shown(&found).starts_with("crates/context/src/lib.rs:3: "));
        }
    }

    #[test]
    fn comments_strings_tests_and_programs_are_free() {
        let text = "//! A.\n/// println!(\"{x}\")\nfn a() { b(\"println!()\"); writeln!(c, \"\"); }\n\
                    #[cfg(test)]\nmod tests { fn b() { println!(); } }\n";
        assert_eq!(check_but(&with("crates/context/src/lib.rs", text), &[]), []);
        let program = "//! A.\nfn main() { println!(); }\n";
        for path in [
            "crates/context/src/main.rs",
            "crates/context/src/name/tests.rs",
            "crates/context/tests/a.rs",
            "examples/hello/src/lib.rs",
        ] {
            assert_eq!(check_but(&with(path, program), &[]), [], "{path}");
        }
    }

    #[test]
    fn the_vocabulary_is_pure() {
        let text = "//! A.\nuse std::fs::File;\n";
        assert_eq!(
            check_but(&with("crates/keys/src/lib.rs", text), &[]).len(),
            1
        );
        assert_eq!(check_but(&with("crates/store/src/lib.rs", text), &[]), []);
        let address = "//! A.\nuse std::net::IpAddr;\n";
        assert_eq!(check_but(&with("crates/keys/src/lib.rs", address), &[]), []);
    }

    #[test]
    fn an_exception_is_used_or_found() {
        let exceptions = [("crates/context/src/lib.rs", "println!(", "a reason")];
        let printing = with(
            "crates/context/src/lib.rs",
            "//! A.\nfn a() { println!(); }\n",
        );
        assert_eq!(check_but(&printing, &exceptions), []);
        let silent = with("crates/context/src/lib.rs", "//! A.\n");
        let found = check_but(&silent, &exceptions);
        assert!(shown(&found).contains("strike the exception"), "{found:?}");
    }
}
