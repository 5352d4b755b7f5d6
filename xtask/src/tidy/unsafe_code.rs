//! Unsafe code of libraries stands only in the parts that `cargo xtask ci` runs under Miri or
//! a sanitizer, and in the text that compilers generate for them.

use super::{Finding, Repository};

/// Parts that have it, and why.
const ALLOWED: &[(&str, &str)] = &[
    (
        "crates/bench/src/run/kernel.rs",
        "system calls that no library has; neither Miri nor a sanitizer knows them",
    ),
    (
        "crates/context/",
        "fields are written through their offsets",
    ),
    ("crates/capi/", "programs in C hand in pointers"),
    (
        "crates/macros/",
        "generates the descriptions of these fields",
    ),
    (
        "crates/preload/src/",
        "stands before functions of the C library, whose programs hand in pointers; its tests \
         run programs with the sanitizers for addresses and threads",
    ),
    ("crates/spec/", "generates the descriptions of these fields"),
    (
        "crates/threads/src/",
        "makes the system calls of the kernel and of the C library that nothing else may \
         make below the allocator; memory is shared with other processes",
    ),
    (
        "crates/transfer/src/event.rs",
        "the body of an event is found without a virtual call",
    ),
    (
        "crates/stream/src/runtime/slot.rs",
        "an event goes from one thread to another without a lock",
    ),
    (
        "crates/stream/src/runtime/queue.rs",
        "puts events into that slot",
    ),
    (
        "crates/threads/src/stack/",
        "asks the kernel and the loader without a library, and handles a signal",
    ),
];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files_ending(&[".rs"]) {
        // What a test does unsafely, a counting allocator for instance, stays in it.
        let is_source = file.path.starts_with("crates/") && file.path.contains("/src/");
        if !is_source || ALLOWED.iter().any(|(part, _)| file.path.starts_with(part)) {
            continue;
        }
        for (number, line) in file.lines() {
            let code = line.trim_start();
            let begins = [
                "unsafe {",
                "unsafe fn",
                "unsafe impl",
                "unsafe extern",
                "unsafe trait",
            ];
            let is_comment = code.starts_with("//");
            if !is_comment && begins.iter().any(|word| has_outside_strings(code, word)) {
                findings.push(file.finding(
                    number,
                    "unsafe code here is not run under Miri; do without it, or name this part in \
                     xtask/src/tidy/unsafe_code.rs and in the step `miri` of cargo xtask ci",
                ));
            }
        }
    }
    findings
}

fn has_outside_strings(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| line[..at].matches('"').count() % 2 == 0)
}

#[cfg(test)]
mod tests {
    use super::super::example::{repository, shown};
    use super::*;

    #[test]
    fn unsafe_code_in_another_part_is_found() {
        for line in [
            "    let a = unsafe { b() };",
            "pub unsafe fn a() {}",
            "unsafe impl Send for A {}",
        ] {
            let text = format!("//! A.\n{line}\n");
            let found = check(&repository(&[
                ("crates/context/src/core.rs", &text),
                ("crates/keys/tests/memory.rs", &text),
                ("crates/keys/src/lib.rs", &text),
            ]));
            assert_eq!(found.len(), 1, "{line}");
            assert!(shown(&found).starts_with("crates/keys/src/lib.rs:2: "));
        }
    }

    #[test]
    fn comments_and_texts_are_free() {
        let text = "//! unsafe { }\nconst A: &str = \"unsafe fn a()\";\n";
        assert_eq!(check(&repository(&[("crates/keys/src/lib.rs", text)])), []);
    }
}
