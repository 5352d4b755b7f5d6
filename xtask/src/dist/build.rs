//! What goes into the tree: built by Cargo, or built before.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Arguments;
use crate::metadata::Metadata;
use crate::process;

/// A package, and the file that Cargo makes of it.
struct Product {
    package: &'static str,
    file: &'static str,
}

const LIBRARIES: Product = Product {
    package: "milieu-capi",
    file: "libmilieu_capi.a",
};

const COMMAND: Product = Product {
    package: "milieu-cli",
    file: "milieu",
};

/// The packages that the tree is made of.
pub fn packages(arguments: &Arguments) -> Vec<&'static str> {
    let command = (!arguments.libraries_only).then_some(COMMAND.package);
    [LIBRARIES.package].into_iter().chain(command).collect()
}

/// What Cargo has built, and what is to be said of it.
pub struct Built {
    /// The static library.
    pub archive: PathBuf,
    /// The command `milieu`, if it is wanted.
    pub program: Option<PathBuf>,
    /// The version of the libraries.
    pub version: String,
    /// The system's libraries that the static one needs, by their names for `-l`.
    pub system_libraries: Vec<String>,
    /// The size of a pointer on the target, in bytes.
    pub pointer_bytes: u32,
}

impl Built {
    /// Builds, or takes what was built.
    pub fn get(arguments: &Arguments, cc: &str) -> Result<Self> {
        let get = |product: &Product, features: &[&str]| match &arguments.built {
            Some(folder) => existing(folder, product),
            None => build(arguments, cc, product, features),
        };
        let mut features = Vec::new();
        if arguments.no_default_features {
            features.push("--no-default-features");
        }
        if let Some(list) = &arguments.features {
            features.extend(["--features", list]);
        }
        let archive = get(&LIBRARIES, &features)?;
        // Built apart, so that the libraries get no features that only the command wants.
        let program = match arguments.libraries_only {
            true => None,
            false => Some(get(&COMMAND, &[])?),
        };
        let target = arguments.target.as_deref();
        Ok(Self {
            archive,
            program,
            version: version()?,
            system_libraries: system_libraries(target)?,
            pointer_bytes: pointer_bytes(target)?,
        })
    }
}

fn existing(folder: &Path, product: &Product) -> Result<PathBuf> {
    let file = std::path::absolute(folder)?.join(product.file);
    if !file.is_file() {
        bail!(
            "{} is not there; `cargo build --release -p {}` makes it, or leave --built out",
            file.display(),
            product.package
        );
    }
    Ok(file)
}

/// Builds the preload, which has a profile of its own.
pub fn build_preload(
    target: Option<&str>,
    cc: &str,
    package: &'static str,
    file: &'static str,
) -> Result<PathBuf> {
    let product = Product { package, file };
    build_with(target, cc, &product, "preload", &[])
}

fn build(arguments: &Arguments, cc: &str, product: &Product, features: &[&str]) -> Result<PathBuf> {
    let target = arguments.target.as_deref();
    build_with(target, cc, product, &arguments.profile, features)
}

fn build_with(
    target: Option<&str>,
    cc: &str,
    product: &Product,
    profile: &str,
    features: &[&str],
) -> Result<PathBuf> {
    let Product { package, file } = product;
    let mut cargo = process::cargo(["build", "--package", package]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo.args(["--profile", profile]).args(features);
    if let Some(target) = target {
        cargo.args(["--target", target]);
        process::link_with(&mut cargo, target, cc);
    }
    let shown = process::display(&cargo);
    eprintln!("$ {shown}");
    let mut made = None;
    let status = process::each_line(cargo, |line| {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        let files = message["filenames"].as_array().into_iter().flatten();
        let mut paths = files.filter_map(|path| path.as_str().map(PathBuf::from));
        if let Some(path) = paths.find(|path| path.file_name().is_some_and(|it| it == *file)) {
            made = Some(path);
        }
    })?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    made.with_context(|| format!("`{shown}` made no {file}"))
}

fn version() -> Result<String> {
    let packages = Metadata::read()?.packages;
    let package = packages.into_iter().find(|it| it.name == LIBRARIES.package);
    Ok(package
        .context("the workspace has no package of the libraries")?
        .version)
}

/// What Rust's standard library needs of the system. The C library and what
/// unwinds is left out: every C compiler adds them, in the form that fits.
fn system_libraries(target: Option<&str>) -> Result<Vec<String>> {
    let said = rustc(
        target,
        &["--crate-type", "staticlib", "--print", "native-static-libs"],
    )?;
    let line = said
        .lines()
        .find_map(|line| line.split_once("native-static-libs: "));
    let (_, libraries) = line.context("rustc does not say what a static library needs")?;
    Ok(libraries
        .split_whitespace()
        .filter_map(|flag| flag.strip_prefix("-l"))
        .filter(|name| !["c", "gcc_s", "gcc_eh", "gcc"].contains(name))
        .map(str::to_owned)
        .collect())
}

fn pointer_bytes(target: Option<&str>) -> Result<u32> {
    let said = rustc(target, &["--print", "cfg"])?;
    let width = said
        .lines()
        .find_map(|line| line.strip_prefix("target_pointer_width="));
    let bits: Option<u32> = width.and_then(|width| width.trim_matches('"').parse().ok());
    Ok(bits.context("rustc does not say how large a pointer is")? / 8)
}

/// All that rustc says of an empty program.
fn rustc(target: Option<&str>, arguments: &[&str]) -> Result<String> {
    let mut rustc = process::command("rustc");
    rustc.args(arguments);
    if let Some(target) = target {
        rustc.args(["--target", target]);
    }
    // Others, in this process too, may ask at the same time.
    let folder = tempfile::tempdir_in(process::scratch("dist")?)?;
    rustc.arg("--out-dir").arg(folder.path()).arg("-");
    rustc.stdin(std::process::Stdio::null());
    let output = rustc.output().context("rustc does not start")?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said += &String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("rustc failed ({}):\n{said}", output.status);
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_adds_anyway_is_not_asked_for() {
        let libraries = system_libraries(None).unwrap();
        assert!(libraries.contains(&"pthread".to_owned()), "{libraries:?}");
        assert!(!libraries.contains(&"c".to_owned()), "{libraries:?}");
    }

    #[test]
    fn a_pointer_is_as_large_as_here() {
        let here = u32::try_from(size_of::<usize>()).unwrap();
        assert_eq!(pointer_bytes(None).unwrap(), here);
    }

    #[test]
    fn several_may_ask_the_compiler_at_the_same_time() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| system_libraries(None).unwrap());
            }
        });
    }

    #[test]
    fn what_was_not_built_is_told_with_what_builds_it() {
        let error = existing(Path::new("/no/such"), &LIBRARIES).unwrap_err();
        let message = "/no/such/libmilieu_capi.a is not there; \
                       `cargo build --release -p milieu-capi` makes it";
        assert!(error.to_string().starts_with(message), "{error}");
    }
}
