//! Tables of stack sizes are sources that compile and say what they were told.

use std::path::PathBuf;
use std::process::Command;

use milieu_threads::stack::{Language, Row, emit};
use proptest::prelude::*;

fn row<'r>(start: &'r str, role: &'r str, bytes: u64) -> Row<'r> {
    Row {
        start,
        role,
        position: "src/net.c:12",
        bytes,
        peak_bytes: 20480,
        given_bytes: 8 << 20,
    }
}

/// Names as symbolizers give them, and names that want to end what they stand in.
const ROWS: &[(&str, &str, u64)] = &[
    ("worker", "net", 262_144),
    ("pool::Pool<T>::run::{{closure}}", "", 131_072),
    ("pool::Pool::run", "", 65_536),
    ("pool__Pool<T>::run{closure}", "*/ #error", 163_840),
    ("worker", "\"quoted\" \\ ??/ \n*/", 278_528),
    ("λ", "größe", 294_912),
    ("", "", 327_680),
    ("7th", "//", 344_064),
];

fn rows() -> Vec<Row<'static>> {
    ROWS.iter()
        .map(|(start, role, bytes)| row(start, role, *bytes))
        .collect()
}

fn text(language: Language, rows: &[Row<'_>]) -> String {
    let mut text = String::new();
    emit(language, rows, &mut text).unwrap();
    text
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("stack-emit-{name}-{}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    assert_eq!(error, "", "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a program prints that has such a table: name and role as bytes, and the size.
fn expected() -> String {
    let bytes = |text: &str| {
        text.bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let line = |(start, role, size): &(&str, &str, u64)| {
        format!("{}|{}|{size}\n", bytes(start), bytes(role))
    };
    ROWS.iter().map(line).collect()
}

#[test]
fn the_header_compiles_and_says_what_it_was_told() {
    let folder = Folder::new("c");
    std::fs::write(folder.0.join("stacks.h"), text(Language::C, &rows())).unwrap();
    let program = r#"
        #include <stdio.h>
        #include "stacks.h"
        #include "stacks.h"
        static void bytes(const char *text, char end) {
            for (; *text; text++) printf("%02x", (unsigned char)*text);
            putchar(end);
        }
        int main(void) {
            const struct milieu_stack *row;
            for (row = milieu_stacks; row->start; row++) {
                bytes(row->start, '|');
                bytes(row->role, '|');
                printf("%lu\n", row->bytes);
            }
            return MILIEU_STACK_WORKER != 262144 || MILIEU_STACK_WORKER__2 != 278528;
        }
    "#;
    for (compiler, file, standard) in [("cc", "a.c", "-std=c99"), ("c++", "a.cpp", "-std=c++11")] {
        let (source, built) = (folder.0.join(file), folder.0.join(compiler));
        std::fs::write(&source, program).unwrap();
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"]);
        output(command.arg(&built).arg(&source));
        assert_eq!(output(&mut Command::new(&built)), expected(), "{compiler}");
    }
}

#[test]
fn the_module_compiles_and_says_what_it_was_told() {
    let folder = Folder::new("rust");
    let program = format!(
        "//! Stacks.\n#![deny(warnings, missing_docs)]\n{}\nfn main() {{\n\
         let bytes = |text: &str| text.bytes().map(|it| format!(\"{{it:02x}}\")).collect::<String>();\n\
         for (start, role, size) in STACKS {{ println!(\"{{}}|{{}}|{{size}}\", bytes(start), bytes(role)); }}\n\
         assert_eq!((STACK_WORKER, STACK_WORKER__2), (262_144, 278_528));\n}}\n",
        text(Language::Rust, &rows()).replace("pub const", "#[allow(dead_code)]\npub const")
    );
    let (source, built) = (folder.0.join("main.rs"), folder.0.join("main"));
    std::fs::write(&source, program).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2021", "-o"]);
    output(command.arg(&built).arg(&source));
    assert_eq!(output(&mut Command::new(&built)), expected());
}

#[test]
fn a_table_reads_well() {
    let rows = &rows()[..2];
    assert_eq!(
        text(Language::C, rows),
        "/* Stack sizes that were learned; `milieu thread profile --emit c` writes them.
 * pthread_attr_setstacksize takes them. */
#ifndef MILIEU_STACKS_H
#define MILIEU_STACKS_H

/* worker, src/net.c:12, role net: 20480 of 8388608 bytes were used */
#define MILIEU_STACK_WORKER 262144ul

/* pool::Pool<T>::run::{{closure}}, src/net.c:12: 20480 of 8388608 bytes were used */
#define MILIEU_STACK_POOL_POOL_T_RUN_CLOSURE 131072ul

struct milieu_stack {
    const char *start;
    const char *role;
    unsigned long bytes;
};

/* The last one has no name. */
static const struct milieu_stack milieu_stacks[] = {
    {\"worker\", \"net\", MILIEU_STACK_WORKER},
    {\"pool::Pool<T>::run::{{closure}}\", \"\", MILIEU_STACK_POOL_POOL_T_RUN_CLOSURE},
    {0, 0, 0},
};

#endif
"
    );
}

proptest! {
    #[test]
    fn every_row_has_a_constant_of_its_own(names in prop::collection::vec("[aA_:2]{0,5}", 0..9)) {
        let rows: Vec<_> = names.iter().map(|name| row(name, "", 1)).collect();
        let text = text(Language::Rust, &rows);
        let mut constants: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("pub const STACK_")?.strip_suffix(": usize = 1;"))
            .collect();
        prop_assert_eq!(constants.len(), rows.len());
        constants.sort_unstable();
        constants.dedup();
        prop_assert_eq!(constants.len(), rows.len());
    }
}
