//! `milieu spec`: checks specifications and generates what follows from them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use milieu_diagnostics::{Diagnostic, Source};
use milieu_spec::backend::{
    Backend, Settings, c::C, cpp::Cpp, ini::Ini, man::Man, markdown::Markdown, rust::Rust,
};

use crate::files::{self, Audience};
use crate::terminal;

/// The exit code when a specification has errors.
const WRONG: u8 = 1;

/// Check specifications, and generate code and documents from them
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Exit codes:
  0  done; there may have been warnings
  1  a specification has errors
  2  a file cannot be read or written, or wrong usage"
)]
pub(crate) struct Spec {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Check(Check),
    Generate(Generate),
}

/// Say what is wrong with specifications
///
/// Nothing is printed about a specification that is right.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu spec check station.ini
  milieu spec check --json *.ini | jq -r .message
  milieu spec generate station.ini --lang ini | milieu spec check -")]
struct Check {
    /// The specifications; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print lines of JSON to standard output instead
    #[arg(long)]
    json: bool,
}

/// Generate code or documents from a specification
///
/// The output appears whole or not at all.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu spec generate station.ini --lang rust --out src/environment.rs
  milieu spec generate station.ini --lang rust --root /sw/pi
  milieu spec generate station.ini --lang man | man -l -")]
struct Generate {
    /// The specification; `-` is standard input
    file: PathBuf,
    /// What to generate
    #[arg(long, value_enum)]
    lang: Language,
    /// Generate only this branch, as the whole, for example /sw/pi
    #[arg(long, value_name = "NAME")]
    root: Option<String>,
    /// Where to write; `-` is standard output, a folder gets a file of the usual name
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// What the program is called in documents; the name of the file unless given
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Where generated Rust finds the facade
    #[arg(long, value_name = "PATH", default_value = "::milieu")]
    crate_path: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    /// Structs, enums, markers and layers
    Rust,
    /// A header for C++17: classes of the values, and layers
    Cpp,
    /// A header for C11: a struct, the numbers of its values, setters and layers
    C,
    /// A reference of all keys
    Markdown,
    /// A manual page: of section 1 where there are options, of section 5 elsewhere
    Man,
    /// The specification itself, in one order and form
    Ini,
}

impl Language {
    fn backend(self) -> &'static dyn Backend {
        match self {
            Language::Rust => &Rust,
            Language::Cpp => &Cpp,
            Language::C => &C,
            Language::Markdown => &Markdown,
            Language::Man => &Man,
            Language::Ini => &Ini,
        }
    }
}

impl Spec {
    pub(crate) fn run(&self) -> ExitCode {
        terminal::finish(match &self.verb {
            Verb::Check(check) => check.run(),
            Verb::Generate(generate) => generate.run(),
        })
    }
}

impl Check {
    fn run(&self) -> io::Result<ExitCode> {
        let mut worst = 0;
        for file in &self.files {
            let (source, diagnostics, code) = match files::read(file, "specification") {
                Ok(source) => {
                    let diagnostics = milieu_spec::check(&source);
                    let is_wrong = diagnostics.iter().any(Diagnostic::is_error);
                    (source, diagnostics, if is_wrong { WRONG } else { 0 })
                }
                Err(unreadable) => {
                    let (source, diagnostic) = *unreadable;
                    (source, vec![diagnostic], terminal::ERROR)
                }
            };
            worst = worst.max(code);
            if self.json {
                terminal::print(&terminal::json_lines(&source, &diagnostics))?;
            } else {
                terminal::report(&source, &diagnostics, false);
            }
        }
        Ok(ExitCode::from(worst))
    }
}

impl Generate {
    fn run(&self) -> io::Result<ExitCode> {
        let source = match files::read(&self.file, "specification") {
            Ok(source) => source,
            Err(unreadable) => {
                let (source, diagnostic) = *unreadable;
                terminal::report(&source, &[diagnostic], false);
                return Ok(ExitCode::from(terminal::ERROR));
            }
        };
        let settings = Settings {
            program: self.program(),
            root: self.root.clone(),
            crate_path: self.crate_path.clone(),
        };
        let output = milieu_spec::generate(&source, self.lang.backend(), &settings);
        terminal::report(&source, &output.diagnostics, false);
        if output.diagnostics.iter().any(Diagnostic::is_error) {
            return Ok(ExitCode::from(WRONG));
        }
        for file in &output.files {
            if self.out == Path::new("-") {
                terminal::print(&file.text)?;
                continue;
            }
            let path = if self.out.is_dir() {
                // A program's name may have slashes, its file has none.
                self.out.join(file.name.replace('/', "_"))
            } else {
                self.out.clone()
            };
            if let Err(error) = files::write_whole(&path, &file.text, Audience::Usual) {
                let place = Source::new(path.display().to_string(), "");
                let diagnostic = Diagnostic::error(format!("cannot write the output: {error}"))
                    .help("give another file with `--out`, or see to its folder; what stood there is unchanged");
                terminal::report(&place, &[diagnostic], false);
                return Ok(ExitCode::from(terminal::ERROR));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn program(&self) -> String {
        match (&self.program, self.file.file_stem()) {
            (Some(program), _) => program.clone(),
            (None, Some(stem)) if self.file != Path::new("-") => {
                stem.to_string_lossy().into_owned()
            }
            (None, _) => "program".to_owned(),
        }
    }
}
