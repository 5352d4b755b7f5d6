//! Compiles programs in C and C++ against the static library and runs them.
//!
//! What is not installed is left out, and said on standard error. Where
//! `MILIEU_SANITIZER=thread` says that the library itself, the standard library
//! included, is built with the sanitizer for threads, programs are as well.

#![allow(dead_code)] // Each test uses its own part.

#[path = "../../../../xtask/src/linker.rs"]
mod linker;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{LazyLock, Mutex, Once, PoisonError},
};

use milieu_diagnostics::{Source, render};
use milieu_spec::{Settings, backend, generate};

/// A language, with its compilers by preference and what its standard is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
}

impl Language {
    fn compilers(self) -> &'static [&'static str] {
        match self {
            Language::C => &["gcc", "clang"],
            Language::Cpp => &["g++", "clang++"],
        }
    }

    fn standard(self) -> &'static str {
        match self {
            Language::C => "-std=c11",
            Language::Cpp => "-std=c++17",
        }
    }
}

/// The folder of this package.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder for what a test makes.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for what the test makes");
    folder
}

/// The static library, which Cargo builds beside this test whenever it builds
/// the library that the test itself is linked with. Its name has a number that
/// only Cargo knows; there may be older ones, of other features for instance.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let beside = test.parent().expect("it is in a folder");
    let mut folders = vec![beside.to_owned()];
    // Newer versions of Cargo have a folder for each thing that they build.
    let others = beside.parent().and_then(Path::parent).map(fs::read_dir);
    if let Some(Ok(others)) = others.filter(|_| beside.ends_with("out")) {
        folders.extend(others.filter_map(|other| Some(other.ok()?.path().join("out"))));
    }
    let listed = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let files = listed.flatten();
    let archives = files.filter_map(|file| {
        let file = file.ok()?;
        let name = file.file_name().into_string().ok()?;
        let is_archive = name.starts_with("libmilieu_capi-") && name.ends_with(".a");
        let built = file.metadata().ok()?.modified().ok()?;
        is_archive.then(|| (built, file.path()))
    });
    let (_, newest) = archives.max().expect("the static library is there");
    newest
}

/// Whether a program can be started.
pub fn has(program: &str) -> bool {
    let started = Command::new(program).arg("--version").output();
    started.is_ok_and(|output| output.status.success())
}

/// The compilers of a language that are here, and have the sanitizer of the library.
pub fn compilers(language: Language) -> Vec<&'static str> {
    let (here, missing): (Vec<&str>, Vec<&str>) =
        language.compilers().iter().partition(|name| has(name));
    static SAID: [Once; 2] = [Once::new(), Once::new()];
    SAID[language as usize].call_once(|| {
        for name in missing {
            skipped(&format!("{name} is not installed"));
        }
    });
    let sanitizer = sanitizer_of_library();
    here.into_iter()
        .filter(|compiler| sanitizer.is_none_or(|it| it.works(language, compiler)))
        .collect()
}

/// Says what is not tested, and why.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Writes what a specification, by its path in this package, generates into a folder.
pub fn generate_into(folder: &Path, specification: &str, backend: &str) {
    let path = package().join(specification);
    let text = fs::read_to_string(&path).expect("the specification can be read");
    let source = Source {
        name: specification.into(),
        text,
    };
    let program = path.file_stem().expect("a name");
    let settings = Settings::new(program.to_string_lossy());
    let backend = backend::by_name(backend).expect("the back end is there");
    let output = generate(&source, backend, &settings);
    let said = render(&source, &output.diagnostics, false);
    assert!(!output.files.is_empty(), "{said}");
    for file in output.files {
        fs::write(folder.join(&file.name), &file.text).expect("the header can be written");
    }
}

/// A program to compile.
pub struct Program<'a> {
    pub language: Language,
    pub compiler: &'a str,
    pub source: PathBuf,
    /// Where generated headers are and output goes.
    pub folder: &'a Path,
    pub flags: &'a [&'a str],
}

impl Program<'_> {
    /// What the compiler says, and the program if it has made one. It is built with
    /// the sanitizer that the library is built with.
    pub fn compile(&self) -> (PathBuf, Output) {
        let mut linked = vec![library().into_os_string(), "-ldl".into(), "-lm".into()];
        if let Some(sanitizer) = sanitizer_of_library() {
            linked.extend(sanitizer.flags().iter().map(OsString::from));
            linked.push(self.bridge().into());
            linked.push("-Wl,--wrap=__tsan_atomic64_fetch_sub".into());
        }
        self.make(&linked)
    }

    /// What is between this compiler's sanitizer and that of the library.
    fn bridge(&self) -> PathBuf {
        let object = self.folder.join(format!("sanitizer-{}.o", self.compiler));
        let output = Command::new(self.compiler)
            .args(["-x", "c", "-Wall", "-Wextra", "-Werror", "-c", "-o"])
            .arg(&object)
            .arg(package().join("tests/programs/sanitizer.c"))
            .output()
            .expect("the compiler was found before");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        object
    }

    /// The same where nothing is linked.
    pub fn compile_only(&self) -> (PathBuf, Output) {
        self.make(&[])
    }

    fn make(&self, linked: &[OsString]) -> (PathBuf, Output) {
        let stem = self.source.file_stem().expect("a name").to_string_lossy();
        let kind = self.flags.iter().filter(|flag| !flag.contains('/'));
        let kind = kind.copied().collect::<String>().replace(',', "_");
        let program = self.folder.join(format!("{stem}-{}{kind}", self.compiler));
        let output = Command::new(self.compiler)
            .args([
                self.language.standard(),
                "-Wall",
                "-Wextra",
                "-Werror",
                // Lines in reports are enough; types take the compiler a tenth of its time.
                "-g1",
            ])
            .args(["-pthread", "-I"])
            .arg(package().join("include"))
            .arg("-I")
            .arg(self.folder)
            .arg("-I")
            .arg(package().join("tests/programs"))
            .args(self.flags)
            .args(linked.first().map_or(&[][..], |_| Self::linker()))
            .arg(&self.source)
            .arg("-o")
            .arg(&program)
            .args(linked)
            .output()
            .expect("the compiler was found before");
        (program, output)
    }

    /// With the system's, as users have it, programs are linked against the installed
    /// tree.
    fn linker() -> &'static [String] {
        static FAST: LazyLock<Vec<String>> = LazyLock::new(linker::fast);
        &FAST
    }

    /// The program.
    pub fn compiled(&self) -> PathBuf {
        self.made(self.compile())
    }

    /// The program, linked with this library.
    pub fn linked_with(&self, library: &str) -> PathBuf {
        self.made(self.make(&[library.into(), "-ldl".into(), "-lm".into()]))
    }

    fn made(&self, (program, output): (PathBuf, Output)) -> PathBuf {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} does not compile {}:\n{said}",
            self.compiler,
            self.source.display()
        );
        program
    }
}

/// Runs a program, which has to end well.
pub fn run(program: &Path, arguments: &[OsString]) -> String {
    finish(Command::new(program).args(arguments), program)
}

/// Runs a program under valgrind, if that is here.
pub fn run_in_valgrind(program: &Path, arguments: &[OsString]) {
    if !has("valgrind") {
        return skipped("valgrind is not installed");
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
    // What Rust keeps by a pointer into its middle only looks lost.
    valgrind.arg("--errors-for-leak-kinds=definite,indirect");
    valgrind.arg("--show-leak-kinds=definite,indirect");
    finish(valgrind.arg(program).args(arguments), program);
}

/// Runs a program for what a sanitizer says of it.
pub fn observe(program: &Path, arguments: &[OsString]) -> Output {
    observed(Command::new(program).args(arguments))
}

fn observed(command: &mut Command) -> Output {
    // A leak is an error too; nobody is to symbolize at length.
    command
        .env("ASAN_OPTIONS", "detect_leaks=1")
        .env("UBSAN_OPTIONS", "halt_on_error=1")
        .env("TSAN_OPTIONS", "halt_on_error=1")
        .output()
        .expect("the program starts")
}

fn finish(command: &mut Command, program: &Path) -> String {
    let output = observed(command);
    let (out, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{} ends with {}:\n{out}{said}",
        program.display(),
        output.status
    );
    out.into_owned()
}

/// What looks at a program while it runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sanitizer {
    /// For addresses and undefined behaviour.
    Addresses,
    /// For data races. It has to know all of a program, the library too.
    Threads,
}

impl Sanitizer {
    /// What compilers are told.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Sanitizer::Addresses => &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
            Sanitizer::Threads => &["-fsanitize=thread", "-O1"],
        }
    }

    /// Whether a compiler has it, and it runs here: some compilers come without
    /// the library of it, and some kernels place memory where it wants none.
    pub fn works(self, language: Language, compiler: &str) -> bool {
        static KNOWN: Mutex<BTreeMap<(String, Sanitizer), bool>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry((compiler.to_owned(), self)).or_insert_with(|| {
            let flags = self.flags();
            // Tests run as processes of their own; what they try out is theirs alone.
            let folder = tempfile::tempdir().expect("a folder to try it out");
            let source = folder.path().join(match language {
                Language::C => "empty.c",
                Language::Cpp => "empty.cpp",
            });
            fs::write(&source, "int main(void) { return 0; }\n").expect("it can be written");
            let program = folder.path().join("empty");
            let compiled = Command::new(compiler)
                .args(flags)
                .arg(&source)
                .arg("-o")
                .arg(&program)
                .output();
            let runs = |path: &Path| {
                Command::new(path)
                    .output()
                    .is_ok_and(|it| it.status.success())
            };
            let works = compiled.is_ok_and(|it| it.status.success()) && runs(&program);
            if !works {
                skipped(&format!(
                    "what {compiler} {} makes does not run here; clang has its sanitizers in a \
                     package of its own (libclang-rt-dev)",
                    flags[0]
                ));
            }
            works
        })
    }
}

/// The sanitizer that the library is built with.
pub fn sanitizer_of_library() -> Option<Sanitizer> {
    match env::var("MILIEU_SANITIZER").ok()?.as_str() {
        "thread" => Some(Sanitizer::Threads),
        other => panic!("MILIEU_SANITIZER is `{other}`; it may be `thread`"),
    }
}

/// Whether each program is compiled in every way by every compiler.
fn in_all_ways() -> bool {
    env::var_os("MILIEU_COMPILERS").is_some_and(|which| which == "all")
}

/// The compiler among these whose turn a program is, by its name; all of them where
/// `MILIEU_COMPILERS=all` says so.
pub fn in_turn(program: &str, among: &[&'static str]) -> Vec<&'static str> {
    if in_all_ways() {
        return among.to_vec();
    }
    let turn = program.bytes().fold(0_usize, |turn, byte| {
        turn.wrapping_mul(33) ^ usize::from(byte)
    });
    let turn = (turn >> 3) % among.len().max(1);
    among.get(turn).copied().into_iter().collect()
}

/// The compilers that make a program with the sanitizers for addresses and undefined
/// behaviour, by its name.
pub fn sanitizing(language: Language, program: &str) -> Vec<&'static str> {
    let mut able = compilers(language);
    able.retain(|compiler| Sanitizer::Addresses.works(language, compiler));
    in_turn(program, &able)
}

/// Compiles a program with every compiler that is here and runs it: what one of them
/// makes, which differs from program to program, with the sanitizers for addresses and
/// undefined behaviour, and what the others make without, and in valgrind as well, but not
/// what a program in C of the same name does there. With `MILIEU_COMPILERS=all` each makes
/// both, and all are run in valgrind. A library that is built for a sanitizer wants this
/// one alone. Gives the program of the last, if there is a compiler.
pub fn passes(
    language: Language,
    source: &str,
    folder: &Path,
    arguments: impl Fn() -> Vec<OsString>,
) -> Option<PathBuf> {
    let compilers = compilers(language);
    let is_plain = sanitizer_of_library().is_none();
    let mut ways = Vec::new();
    if is_plain {
        let sanitized = sanitizing(language, source);
        ways.extend(sanitized.iter().map(|it| (*it, Some(Sanitizer::Addresses))));
        let does_both = in_all_ways() || compilers.len() == 1;
        let plain = compilers.into_iter();
        let plain = plain.filter(|it| does_both || !sanitized.contains(it));
        ways.extend(plain.map(|it| (it, None)));
    } else {
        ways.extend(in_turn(source, &compilers).into_iter().map(|it| (it, None)));
    }
    let path = package().join("tests/programs").join(source);
    let is_second = language == Language::Cpp && path.with_extension("c").exists();
    let mut last = None;
    for (compiler, sanitizer) in ways {
        let program = Program {
            language,
            compiler,
            source: path.clone(),
            folder,
            flags: sanitizer.map_or(&["-O1"], Sanitizer::flags),
        };
        let compiled = program.compiled();
        run(&compiled, &arguments());
        if is_plain && sanitizer.is_none() && (in_all_ways() || !is_second) {
            run_in_valgrind(&compiled, &arguments());
        }
        last = Some(compiled);
    }
    last
}
