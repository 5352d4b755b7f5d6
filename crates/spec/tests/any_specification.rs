//! Whatever a specification says, the compiler answers with diagnostics or with
//! output that is well formed.

use std::{fs, path::Path, process::Command};

use milieu_diagnostics::{Diagnostic, Source, render};
use milieu_spec::{Settings, backend, check, generate};

/// A small generator of pseudo-random numbers (xorshift), repeatable by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

const LEVELS: &[&str] = &[
    "sw",
    "pi",
    "%session%",
    "%a%%b%",
    "%a b%",
    "x-%a%",
    "type",
    "Self",
    "self",
    "at",
    "layer",
    "environment",
    "str",
    "u32",
    "option",
    "maxSpeed",
    "max-speed",
    "7",
    "größe",
    "#",
    "%",
    "\\/",
    "two words",
    "r#try",
    "_",
    "core",
    "std",
    "milieu",
    "a\\]b",
    "Ok",
    "default",
    "text",
];

const METADATA: &[&str] = &[
    "type=boolean",
    "type=long",
    "type=double\ndefault=3.14159",
    "type=string\ndefault=\"\\u{202e}\"",
    "type=enum\ncheck/enum/#0=a\ncheck/enum/#1=Self\ncheck/enum/#2=c++\ncheck/enum/#3=C",
    "type=enum\ncheck/enum=x, y, z\ndefault=y",
    "type=float\ndefault=1e-30",
    "readonly",
    "require",
    "type=unsigned_short\nrange=1-10\ndefault=5",
    "opt=p",
    "opt/long=port\nopt/arg=optional",
    "args=remaining",
    "args=indexed\nargs/index=0",
    "command=go",
    "command",
    "env/#0=LANG",
    "identifier=own",
    "description=a\\\n  b [c] <d> `e",
    "description=.SH \"x\" \\fB'",
    "description=\"*/ \\\" \\\\ \\n\\n# x\\n- y\"",
    "default=\"###\\\"#\"",
    "unit=s\nexample=5",
    "check/validation=^[a-z]*$",
    "check/length=0-99",
    "deprecated=yes",
    "rationale=because",
    "lnog",
    "x/own=mine",
    "allow/overlap",
    "secret",
    "removed=gone",
    "was/#0=/sw/old/%session%/%a%",
    "was/#0=/sw/pi",
    "was/#0=/old\nwas/#0/convert=a -> b",
    "order=1",
];

fn specification(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(6) {
        if random.below(8) == 0 {
            text.push_str(&format!(
                "[%{}%]\nallow/unused\n",
                random.one_of(&["a", "session", "on"])
            ));
            text.push_str(random.one_of(&["type=long\n", "inherited\n", "type=string\n", "\n"]));
            continue;
        }
        text.push('[');
        for _ in 0..=random.below(4) {
            text.push('/');
            text.push_str(random.one_of(LEVELS));
        }
        text.push_str("]\n");
        for _ in 0..random.below(4) {
            text.push_str(random.one_of(METADATA));
            text.push('\n');
        }
    }
    text
}

#[test]
fn every_specification_gives_diagnostics_or_well_formed_output() {
    let mut generated = 0;
    for seed in 1..=2_000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let source = Source::new("random.ini", specification(&mut random));
        let is_right = !check(&source).iter().any(Diagnostic::is_error);
        for backend in backend::all() {
            let output = generate(&source, backend, &Settings::new("random"));
            let errors = output.diagnostics.iter().any(Diagnostic::is_error);
            let context = format!("seed {seed}, {}:\n{}", backend.name(), source.text);
            assert_eq!(output.files.is_empty(), errors, "{context}");
            // What `check` accepts, every back end can generate, but for what
            // its own target forbids.
            let own = output
                .diagnostics
                .iter()
                .filter(|found| found.is_error())
                .all(|found| matches!(found.code, Some("identifier" | "array")));
            assert!(
                !is_right || !errors || own,
                "{context}\n{}",
                render(&source, &output.diagnostics, false)
            );
            for file in &output.files {
                well_formed(backend.name(), &file.text, &context);
                generated += 1;
            }
        }
    }
    assert!(generated > 300, "only {generated} files were generated");
}

fn well_formed(backend: &str, text: &str, context: &str) {
    match backend {
        "rust" => {
            if let Err(error) = syn::parse_file(text) {
                panic!("{error}\n{context}\n{text}");
            }
        }
        "man" => assert!(
            text.is_ascii() && text.starts_with(".TH"),
            "{context}\n{text}"
        ),
        "ini" => {
            let source = Source::new("exported.ini", text);
            let found = check(&source);
            assert!(
                !found
                    .iter()
                    .any(|found| found.is_error() && found.code != Some("identifier")),
                "{context}\n{text}\n{}",
                render(&source, &found, false)
            );
        }
        // A compiler reads them below.
        "c" | "cpp" => assert!(text.ends_with("#endif\n"), "{context}\n{text}"),
        _ => assert!(text.starts_with("# "), "{context}\n{text}"),
    }
}

/// Each in a header of its own, and all of them in one program, since what they
/// declare begins with the program's name.
#[test]
fn headers_of_every_specification_compile() {
    for (backend, extension, compiler, standard) in [
        ("c", "h", "cc", "-std=c11"),
        ("cpp", "hpp", "c++", "-std=c++17"),
    ] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("any-{extension}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for headers");
        let backend = backend::by_name(backend).expect("the back end is there");
        let mut program = String::new();
        for seed in 1..=2_000_u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let source = Source::new("random.ini", specification(&mut random));
            let settings = Settings::new(format!("seed{seed}"));
            for file in generate(&source, backend, &settings).files {
                fs::write(folder.join(&file.name), &file.text).expect("the header can be written");
                program.push_str(&format!("#include \"{}\"\n", file.name));
            }
        }
        let main = folder.join("all.source");
        fs::write(&main, program).expect("the program can be written");
        let output = Command::new(compiler)
            .args(["-x", if extension == "h" { "c" } else { "c++" }, standard])
            .args([
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
                "-fsyntax-only",
                "-I",
            ])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi/include"))
            .arg(&main)
            .output();
        let Ok(output) = output else {
            eprintln!("skipped: there is no {compiler} here");
            continue;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", folder.display());
    }
}

/// Any bytes at all: every file is read to its end.
#[test]
fn damaged_specifications_do_no_harm() {
    let whole = include_str!("golden/documentation.ini");
    for seed in 1..=1_500_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut text: Vec<char> = whole.chars().collect();
        for _ in 0..=random.below(8) {
            let at = random.below(text.len());
            match random.below(3) {
                0 => text.truncate(at.max(1)),
                1 => text[at] = ['\\', '%', '/', '[', '\n', '"', '\u{0}', 'ß'][random.below(8)],
                _ => text.insert(
                    at,
                    ['=', ']', '#', ' ', '\t', '\r', '`', '.'][random.below(8)],
                ),
            }
        }
        let source = Source::new("damaged.ini", text.into_iter().collect::<String>());
        for backend in backend::all() {
            let output = generate(&source, backend, &Settings::new("damaged"));
            let errors = output.diagnostics.iter().any(Diagnostic::is_error);
            assert_eq!(
                output.files.is_empty(),
                errors,
                "seed {seed}:\n{}",
                source.text
            );
        }
    }
}
