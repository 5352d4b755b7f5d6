//! Which part may be built from which.
//!
//! Compilers and run times meet only in generated code: they share the
//! vocabulary and nothing else. The one arrow between them is the facade's on
//! `macros`, which runs inside the compiler and links nothing into a program.
//! What only the tests of a package use is free.
//!
//! `threads` runs below all of them, and below the allocator: a feature `std` would be
//! on for the preload as soon as anything else in the same build wants it.

use super::{Finding, Package, Repository};

/// The vocabulary, shared by all.
pub const VOCABULARY: &[&str] = &["keys", "diagnostics"];

/// Linked into applications.
const RUN_TIMES: &[&str] = &[
    "context",
    "store",
    "transfer",
    "expressions",
    "stream",
    "adapters",
    "star",
    "fiber",
    "threads",
    "preload",
    "capi",
    "milieu",
];

/// Text in, files out.
const COMPILERS: &[&str] = &["spec", "sched", "weave", "macros"];

/// Programs that may use everything and that nothing is built from, but for the
/// command line, which gives each of them a command.
const TOOLS: &[&str] = &["bench", "dashboard", "device", "cli"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let crates: Vec<(&str, &Package)> = repository
        .packages
        .iter()
        .filter_map(|package| Some((package.folder.strip_prefix("crates/")?, package)))
        .collect();
    let mut findings = Vec::new();
    for (part, package) in &crates {
        let expected = if *part == "milieu" {
            "milieu".to_owned()
        } else {
            format!("milieu-{part}")
        };
        let mut complain = |message: String| {
            findings.push(Finding {
                path: format!("{}/Cargo.toml", package.folder),
                line: 0,
                message,
            });
        };
        if package.name != expected {
            complain(format!("the package of this folder is named `{expected}`"));
        }
        if *part == "threads" && package.features.iter().any(|name| name == "std") {
            complain(
                "`threads` has no feature `std`: a build of the workspace would turn it on for \
                 the preload, too; put what needs the standard library into `milieu`"
                    .to_owned(),
            );
        }
        let Some(allowed) = allowed(part) else {
            complain(format!(
                "`{part}` is neither vocabulary, run time, compiler nor tool; \
                 say in xtask/src/tidy/dependencies.rs what it is"
            ));
            continue;
        };
        for (other, used) in &crates {
            if package.dependencies.contains(&used.name) && !allowed(other) {
                complain(format!(
                    "`{part}` ({}) must not depend on `{other}` ({}); move what both need to \
                     `keys`, or let generated code carry it",
                    kind(part),
                    kind(other)
                ));
            }
        }
    }
    findings
}

/// What a part may depend on; nothing is known of a part that has no kind.
fn allowed(part: &str) -> Option<fn(&str) -> bool> {
    match part {
        "threads" => Some(|_| false),
        "milieu" => {
            Some(|other| is(VOCABULARY, other) || is(RUN_TIMES, other) || other == "macros")
        }
        _ if is(VOCABULARY, part) => Some(|other| is(VOCABULARY, other)),
        _ if is(RUN_TIMES, part) => Some(|other| is(VOCABULARY, other) || is(RUN_TIMES, other)),
        _ if is(COMPILERS, part) => Some(|other| is(VOCABULARY, other) || is(COMPILERS, other)),
        "cli" => Some(|other| other != "cli"),
        _ if is(TOOLS, part) => Some(|other| !is(TOOLS, other)),
        _ => None,
    }
}

fn is(kind: &[&str], part: &str) -> bool {
    kind.contains(&part)
}

fn kind(part: &str) -> &'static str {
    [
        (VOCABULARY, "vocabulary"),
        (RUN_TIMES, "a run time"),
        (COMPILERS, "a compiler"),
        (TOOLS, "a tool"),
    ]
    .into_iter()
    .find_map(|(parts, kind)| is(parts, part).then_some(kind))
    .unwrap_or("of no kind")
}

#[cfg(test)]
mod tests {
    use super::super::example::{package, shown};
    use super::*;

    fn findings(of: &str, on: &str) -> String {
        let used = package(&format!("crates/{on}"), &[]);
        let using = package(&format!("crates/{of}"), &[used.name.as_str(), "serde"]);
        shown(&check(&Repository {
            packages: vec![using, used],
            ..Repository::default()
        }))
    }

    #[test]
    fn allowed_arrows_are_silent() {
        for (of, on) in [
            ("keys", "diagnostics"),
            ("context", "keys"),
            ("spec", "keys"),
            ("macros", "spec"),
            ("milieu", "context"),
            ("milieu", "macros"),
            ("cli", "spec"),
            ("cli", "store"),
        ] {
            assert_eq!(findings(of, on), "", "{of} → {on}");
        }
    }

    #[test]
    fn forbidden_arrows_are_found() {
        for (of, on) in [
            ("spec", "context"),
            ("macros", "milieu"),
            ("context", "spec"),
            ("store", "macros"),
            ("keys", "context"),
            ("threads", "keys"),
            ("milieu", "spec"),
            ("context", "cli"),
        ] {
            let shown = findings(of, on);
            assert!(
                shown.contains(&format!("`{of}`")) && shown.contains("must not depend"),
                "{of} → {on}: {shown}"
            );
        }
    }

    #[test]
    fn threads_have_no_feature_std() {
        let found = |part: &str, features: &[&str]| {
            let mut package = package(&format!("crates/{part}"), &["libc"]);
            package.features = features.iter().map(|&name| name.to_owned()).collect();
            shown(&check(&Repository {
                packages: vec![package],
                ..Repository::default()
            }))
        };
        assert_eq!(found("threads", &["default", "trace"]), "");
        assert_eq!(found("keys", &["std"]), "");
        let shown = found("threads", &["default", "std"]);
        assert!(
            shown.starts_with("crates/threads/Cargo.toml") && shown.contains("no feature `std`"),
            "{shown}"
        );
    }

    #[test]
    fn an_unknown_part_and_a_strange_name_are_found() {
        let shown = findings("helpers", "keys");
        assert!(shown.contains("neither vocabulary"), "{shown}");
        let mut strange = package("crates/keys", &[]);
        strange.name = "keys".to_owned();
        let findings = check(&Repository {
            packages: vec![strange],
            ..Repository::default()
        });
        assert!(
            findings[0].message.contains("`milieu-keys`"),
            "{findings:?}"
        );
    }
}
