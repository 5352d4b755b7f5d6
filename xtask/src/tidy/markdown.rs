//! What Markdown files name exists, and what the README shows is compiled.
//!
//! A path is the target of a link; or a word in code that begins with one of
//! the repository's top folders or ends in `.md`. Keys begin with a slash and
//! are no paths; neither are words with a placeholder, `<name>` or `$NAME`.

use super::{File, Finding, Repository};

/// Folders of the root: a path that begins with one is one of ours.
const TOP: &[&str] = &[
    ".cargo",
    ".ci",
    "crates",
    "docs",
    "examples",
    "experiments",
    "fuzz",
    "xtask",
];

/// Every path that a Markdown file names exists.
pub fn paths(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files_ending(&[".md"]) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut in_block = false;
        for (number, line) in file.lines() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
                continue;
            }
            let mut named = Vec::new();
            if in_block {
                named.extend(line.split_whitespace().filter_map(path_in_code));
            } else {
                named.extend(links(line).into_iter().filter_map(path_of_link));
                named.extend(code_spans(line).into_iter().filter_map(path_in_code));
            }
            for path in named.iter().flat_map(|path| alternatives(path)) {
                if !exists(repository, folder, &path) {
                    findings.push(file.finding(number, format!("there is no `{path}`")));
                }
            }
        }
    }
    findings
}

/// Every Rust sample of the README stands, line by line, in one of the examples.
pub fn samples(repository: &Repository) -> Vec<Finding> {
    let Some(readme) = repository
        .files
        .iter()
        .find(|file| file.path == "README.md")
    else {
        return Vec::new();
    };
    let examples: Vec<Vec<&str>> = repository
        .files_ending(&[".rs"])
        .filter(|file| file.path.contains("examples/"))
        .map(|file| essence(file.text.lines()))
        .collect();
    rust_blocks(readme)
        .into_iter()
        .filter(|(_, sample)| {
            !examples.iter().any(|example| {
                example
                    .windows(sample.len().max(1))
                    .any(|lines| lines == sample.as_slice())
            })
        })
        .map(|(number, _)| {
            readme.finding(
                number,
                "this sample stands in no example; copy it from one, so that it is compiled and run",
            )
        })
        .collect()
}

/// The ```` ```rust ```` blocks of a file, with the numbers of their first lines.
fn rust_blocks(file: &File) -> Vec<(usize, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = file.lines();
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let block = lines.by_ref().map(|(_, line)| line);
            let block: Vec<&str> = block.take_while(|line| !line.starts_with("```")).collect();
            if language.starts_with("rust") {
                blocks.push((number + 1, essence(block.into_iter())));
            }
        }
    }
    blocks
}

/// Lines without their indentation; empty ones are left out.
fn essence<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect()
}

fn links(line: &str) -> Vec<&str> {
    let inline = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next());
    let definition = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, target)| target.split_whitespace().next());
    inline.chain(definition).collect()
}

fn code_spans(line: &str) -> Vec<&str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .flat_map(str::split_whitespace)
        .collect()
}

fn path_of_link(target: &str) -> Option<&str> {
    let path = target.split('#').next().unwrap_or(target);
    let is_elsewhere = path.contains("://") || path.starts_with("mailto:");
    (!path.is_empty() && !is_elsewhere).then_some(path)
}

fn path_in_code(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| "\"'(),;".contains(c));
    let word = word.trim_end_matches(['.', ':']);
    // `file.rs:12` names a line of the file.
    let path = match word.rsplit_once(':') {
        Some((path, line)) if line.chars().all(|c| c.is_ascii_digit()) => path,
        _ => word,
    };
    let is_pattern = path.contains(['<', '>', '$', '%', '…']) || path.contains("://");
    let begins_below_top = path
        .split_once('/')
        .is_some_and(|(top, _)| TOP.contains(&top.trim_start_matches("./")));
    let is_document = path.ends_with(".md") && !path.starts_with('/');
    (!is_pattern && (begins_below_top || is_document)).then_some(path)
}

/// `crates/{keys,spec}/src` is two paths.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let Some((inside, after)) = rest.split_once('}') else {
        return vec![path.to_owned()];
    };
    inside
        .split(',')
        .flat_map(|choice| alternatives(&format!("{before}{choice}{after}")))
        .collect()
}

/// Whether a path exists from the root or from the folder of the file that
/// names it; a `*` stands for any part of a name.
fn exists(repository: &Repository, folder: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/').trim_start_matches("./");
    [path.to_owned(), resolve(folder, path)]
        .iter()
        .any(|path| match path.split_once('*') {
            Some((before, after)) => repository.paths.iter().any(|known| {
                known.strip_prefix(before).is_some_and(|rest| {
                    rest.strip_suffix(after)
                        .is_some_and(|star| !star.contains('/'))
                })
            }),
            None => repository.paths.contains(path),
        })
}

/// The path from the root that `path` is, seen from `folder`.
fn resolve(folder: &str, path: &str) -> String {
    let mut levels: Vec<&str> = folder
        .split('/')
        .filter(|level| !level.is_empty())
        .collect();
    for level in path.split('/') {
        match level {
            "." | "" => {}
            ".." => {
                levels.pop();
            }
            level => levels.push(level),
        }
    }
    levels.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::example::{repository, shown};
    use super::*;

    fn findings(text: &str) -> String {
        shown(&paths(&repository(&[
            ("docs/visibility.md", text),
            (
                "README.md",
                "See [the truth table](docs/visibility.md#with).\n",
            ),
            ("crates/keys/src/name.rs", ""),
            ("crates/spec/src/lib.rs", ""),
        ])))
    }

    #[test]
    fn what_exists_is_silent() {
        for text in [
            "[names](../crates/keys/src/name.rs), [here](visibility.md), [x](https://a.b/c.md)",
            "`crates/keys`, `crates/keys/src/name.rs:12`, `crates/{keys,spec}/src`, `README.md`",
            "`crates/*/src`, `crates/<part>/src`, `/sw/pi/%session%/language`, `target/debug`",
            "```sh\ncat crates/keys/src/name.rs\n```",
            "[names]: ../crates/keys/src/name.rs",
        ] {
            assert_eq!(findings(text), "", "{text}");
        }
    }

    #[test]
    fn what_does_not_exist_is_found() {
        for (text, missing) in [
            ("[names](crates/keys/name.rs)", "crates/keys/name.rs"),
            ("[names]: name.rs", "name.rs"),
            (
                "see `crates/keys/src/names.rs:3`.",
                "crates/keys/src/names.rs",
            ),
            ("`crates/{keys,sched}/src`", "crates/sched/src"),
            ("`crates/*/tests`", "crates/*/tests"),
            ("`STYLE.md`", "STYLE.md"),
            ("```sh\nls docs/figures\n```", "docs/figures"),
            (
                "`cargo run --manifest-path fuzz/Cargo.toml`",
                "fuzz/Cargo.toml",
            ),
        ] {
            let shown = findings(text);
            assert!(
                shown.contains(&format!("there is no `{missing}`")),
                "{text}: {shown}"
            );
        }
    }

    #[test]
    fn a_sample_that_no_example_has_is_found() {
        let example = "//! Hello.\nfn main() {\n    let a = 1;\n\n    let b = 2;\n}\n";
        for (sample, found) in [("let a = 1;\nlet b = 2;", 0), ("let a = 1;\nlet b = 3;", 1)] {
            let readme = format!("# Milieu\n\n```rust\n{sample}\n```\n");
            let found_now = samples(&repository(&[
                ("README.md", &readme),
                ("examples/hello/src/main.rs", example),
            ]));
            assert_eq!(found_now.len(), found, "{sample}");
            if found > 0 {
                assert_eq!(found_now[0].line, 4);
            }
        }
    }
}
