//! `cargo xtask dist`: the tree that programs in C and C++ are built against.
//!
//! ```text
//! DEST/PREFIX/
//!   bin/milieu
//!   include/milieu.h  milieu.hpp  milieu/…
//!   lib/libmilieu.a  libmilieu.so → libmilieu.so.0 → libmilieu.so.0.1.0
//!   lib/milieu/lib/…/libmilieu_preload.so
//!   lib/pkgconfig/milieu.pc
//!   lib/systemd/system/milieu-mediator.service
//!   lib/cmake/Milieu/MilieuConfig.cmake …
//!   share/man/man1/milieu.1 …  share/man/man3/milieu.3 …
//!   share/doc/milieu/…  share/bash-completion/…  share/zsh/…  share/fish/…
//! ```
//!
//! Nothing in the tree names the place where it stands, so it works wherever it
//! is moved. Everything is built, linked and laid out in a folder of its own
//! before the first file comes to its place, and each file comes there whole.

mod build;
mod licenses;
mod link;
mod manual;
mod preload;
mod tree;

use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use build::Built;
use tree::Staging;

/// Lay out what C and C++ programs are built with, and the command, as they are installed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask dist --dest ~/milieu
  cargo xtask dist --dest debian/tmp --prefix /usr --libdir lib/x86_64-linux-gnu
  cargo xtask dist --dest board --target aarch64-unknown-linux-gnu --libraries-only
  sudo target/debug/xtask dist --dest / --prefix /usr/local --built target/release")]
pub struct Arguments {
    /// The folder that gets the tree; made if it is not there, other files in it are left alone
    #[arg(long, value_name = "DIR")]
    dest: PathBuf,
    /// Where the tree stands below it, as on the machine that gets it
    #[arg(long, value_name = "DIR", default_value = "/")]
    prefix: PathBuf,
    /// Where libraries stand below the prefix
    #[arg(long, value_name = "DIR", default_value = "lib")]
    libdir: PathBuf,
    /// The profile to build with
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// Build for this target of Rust instead of this machine
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// The C compiler that links the shared library [default: $CC, else the target's]
    #[arg(long, value_name = "PROGRAM")]
    cc: Option<String>,
    /// Leave the command out, as small machines do without it
    #[arg(long)]
    libraries_only: bool,
    /// Features of the libraries, separated by commas
    #[arg(long, value_name = "LIST")]
    features: Option<String>,
    /// Leave the default features of the libraries out
    #[arg(long)]
    no_default_features: bool,
    /// Take libmilieu_capi.a and milieu from this folder; only the preload is built
    #[arg(long, value_name = "DIR", conflicts_with_all = ["profile", "features", "no_default_features"])]
    built: Option<PathBuf>,
}

/// What the templates and names of the tree are made of.
struct Names {
    /// `0.1.0`
    version: String,
    /// What programs link and ask the system for: `libmilieu.so.0`.
    soname: String,
}

impl Names {
    /// The file of the shared library: `libmilieu.so.0.1.0`.
    fn shared(&self) -> String {
        format!("libmilieu.so.{}", self.version)
    }
}

/// Builds and lays out; prints where.
pub fn run(arguments: &Arguments) -> Result<bool> {
    for (option, folder) in [
        ("--prefix", &arguments.prefix),
        ("--libdir", &arguments.libdir),
    ] {
        if folder.components().any(|it| it == Component::ParentDir) {
            bail!(
                "{option} {} leaves the tree; give it without `..`",
                folder.display()
            );
        }
    }
    if arguments.libdir.is_absolute() {
        bail!(
            "--libdir {} is below --prefix; give it without the first `/`",
            arguments.libdir.display()
        );
    }
    let prefix = arguments
        .prefix
        .strip_prefix("/")
        .unwrap_or(&arguments.prefix);
    // Without a slash at its end, where there is no prefix.
    let place: PathBuf = std::path::absolute(&arguments.dest)?
        .join(prefix)
        .components()
        .collect();
    // What cannot be written shall be known before minutes of building.
    let staging = Staging::new(&place)?;
    let cc = link::compiler(arguments.cc.as_deref(), arguments.target.as_deref())?;
    let built = Built::get(arguments, &cc)?;
    let names = Names {
        version: built.version.clone(),
        soname: link::soname()?,
    };
    lay_out(arguments, &staging, &built, &names, &cc)
        .with_context(|| format!("{} is as it was", place.display()))?;
    let files = staging.install()?;
    crate::process::print(&format!("{files} files in {}\n", place.display()))?;
    Ok(true)
}

fn lay_out(
    arguments: &Arguments,
    tree: &Staging,
    built: &Built,
    names: &Names,
    cc: &str,
) -> Result<()> {
    let capi = crate::process::root().join("crates/capi");
    tree.copy_folder(&capi.join("include"), "include")?;
    if built.program.is_some() {
        let units = crate::process::root().join("crates/device/install");
        tree.copy_folder(&units, "lib/systemd/system")?;
    }

    let libdir = &arguments.libdir;
    let archive = tree.copy(&built.archive, libdir.join("libmilieu.a"))?;
    link::strip(cc, "--strip-debug", &archive)?;
    let shared = tree.path(libdir.join(names.shared()))?;
    link::shared(cc, &archive, &shared, &built.system_libraries)?;
    tree.link(&names.shared(), libdir.join(&names.soname))?;
    tree.link(&names.soname, libdir.join("libmilieu.so"))?;

    preload::install(arguments, tree, cc)?;

    let templates = Templates::new(libdir, built, names);
    let install = capi.join("install");
    let cmake = libdir.join("cmake/Milieu");
    for name in ["MilieuConfig.cmake", "MilieuConfigVersion.cmake"] {
        let template = install.join(format!("{name}.in"));
        tree.write(cmake.join(name), &templates.fill(&template)?)?;
    }
    let generate = "MilieuGenerate.cmake";
    tree.copy(&install.join(generate), cmake.join(generate))?;
    let pkg_config = templates.fill(&install.join("milieu.pc.in"))?;
    tree.write(libdir.join("pkgconfig/milieu.pc"), &pkg_config)?;

    if let Some(program) = &built.program {
        let program = tree.copy(program, "bin/milieu")?;
        link::strip(cc, "--strip-all", &program)?;
        of_program(tree, &program)?;
    }
    manual(tree, &names.version)?;
    documents(arguments, tree)
}

/// What `@…@` stands for in `crates/capi/install`.
struct Templates(Vec<(&'static str, String)>);

impl Templates {
    fn new(libdir: &Path, built: &Built, names: &Names) -> Self {
        let up = |folders: usize| vec![".."; folders].join("/");
        let depth = libdir
            .components()
            .filter(|it| *it != Component::CurDir)
            .count();
        let mut numbers = names.version.split('.');
        let major = numbers.next().unwrap_or_default().to_owned();
        // Until 1.0 minor versions may break programs.
        let series = match numbers.next() {
            Some(minor) if major == "0" => format!("0.{minor}"),
            _ => major.clone(),
        };
        let libraries = &built.system_libraries;
        let flags: Vec<String> = libraries.iter().map(|name| format!("-l{name}")).collect();
        Self(vec![
            ("VERSION", names.version.clone()),
            ("MAJOR", major),
            ("SERIES_PATTERN", series.replace('.', r"\\.")),
            ("SERIES", series),
            ("SONAME", names.soname.clone()),
            ("SHARED_FILE", names.shared()),
            ("STATIC_FLAGS", flags.join(" ")),
            ("STATIC_LIBRARIES", libraries.join(";")),
            ("POINTER_BYTES", built.pointer_bytes.to_string()),
            ("PREFIX_FROM_PKGCONFIG", up(depth + 1)),
            ("PREFIX_FROM_CMAKE", up(depth + 2)),
        ])
    }

    fn fill(&self, template: &Path) -> Result<String> {
        let text = std::fs::read_to_string(template)
            .with_context(|| format!("cannot read {}", template.display()))?;
        let filled = self.0.iter().fold(text, |text, (name, value)| {
            text.replace(&format!("@{name}@"), value)
        });
        Ok(filled)
    }
}

/// The program knows its completions and manual pages, unless it is for another
/// machine.
fn of_program(tree: &Staging, program: &Path) -> Result<()> {
    if !crate::process::succeeds_silently(command(program, &["--version"])) {
        eprintln!(
            "note: bin/milieu does not run on this machine, so completions and its manual pages \
             are left out"
        );
        return Ok(());
    }
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/milieu"),
        ("zsh", "share/zsh/site-functions/_milieu"),
        ("fish", "share/fish/vendor_completions.d/milieu.fish"),
    ] {
        let script = crate::process::output(command(program, &["completion", shell]))?;
        tree.write(file, &script)?;
    }
    let mut pages = command(program, &["manual", "--out"]);
    pages.arg(tree.path("share/man/man1")?);
    crate::process::output(pages).map(drop)
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// A header that has a page of its own.
struct Documented {
    page: &'static str,
    /// That which programs include, and those which that includes.
    headers: &'static [&'static str],
    summary: &'static str,
    see_also: &'static [(&'static str, &'static str)],
}

/// The C interface.
const DOCUMENTED: &[Documented] = &[
    Documented {
        page: "milieu",
        headers: &["milieu.h", "milieu/actions.h"],
        summary: "the C interface of Milieu",
        see_also: &[
            ("milieu", "1"),
            ("milieu-spec-generate", "1"),
            ("milieu-files", "3"),
            ("milieu-streams", "3"),
        ],
    },
    Documented {
        page: "milieu-files",
        headers: &["milieu/files.h"],
        summary: "what stands in files of settings, for programs in C",
        see_also: &[("milieu-key", "1"), ("milieu", "3")],
    },
    Documented {
        page: "milieu-streams",
        headers: &[
            "milieu/streams.h",
            "milieu/events.h",
            "milieu/operators.h",
            "milieu/effects.h",
            "milieu/flows.h",
        ],
        summary: "streams of events for programs in C",
        see_also: &[
            ("milieu-stream", "1"),
            ("milieu", "3"),
            ("milieu-sources", "3"),
            ("milieu-rights", "3"),
            ("milieu-modes", "3"),
            ("milieu-links", "3"),
        ],
    },
    Documented {
        page: "milieu-modes",
        headers: &["milieu/modes.h"],
        summary: "events as bytes, and transfer modes written in C",
        see_also: &[("milieu-streams", "3"), ("milieu-links", "3")],
    },
    Documented {
        page: "milieu-sources",
        headers: &["milieu/sources.h"],
        summary: "sources of events that have names, for programs in C",
        see_also: &[("milieu-stream-sources", "1"), ("milieu-streams", "3")],
    },
    Documented {
        page: "milieu-foreign",
        headers: &["milieu/foreign.h"],
        summary: "streams of events over HTTP and MQTT, for programs in C",
        see_also: &[("milieu-streams", "3"), ("milieu-rights", "3")],
    },
    Documented {
        page: "milieu-rights",
        headers: &["milieu/rights.h"],
        summary: "who may read and publish what, for programs in C",
        see_also: &[("milieu-streams", "3")],
    },
    Documented {
        page: "milieu-links",
        headers: &["milieu/links.h"],
        summary: "links between machines, for programs in C",
        see_also: &[
            ("milieu-streams", "3"),
            ("milieu-rights", "3"),
            ("milieu-engines", "3"),
        ],
    },
    Documented {
        page: "milieu-engines",
        headers: &["milieu/engines.h"],
        summary: "engines that carry frames between machines, written in C",
        see_also: &[("milieu-links", "3")],
    },
];

fn manual(tree: &Staging, version: &str) -> Result<()> {
    for it in DOCUMENTED {
        let include = format!("#include <{}>", it.headers[0]);
        let page = manual::Page {
            name: it.page,
            summary: it.summary,
            include: &include,
            see_also: it.see_also,
            version,
        };
        let mut text = String::new();
        for header in it.headers {
            let path = crate::process::root()
                .join("crates/capi/include")
                .join(header);
            text += &std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
        }
        tree.write(format!("share/man/man3/{}.3", it.page), &page.of(&text))?;
    }
    Ok(())
}

fn documents(arguments: &Arguments, tree: &Staging) -> Result<()> {
    let folder = Path::new("share/doc/milieu");
    let root = crate::process::root();
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        tree.copy(&root.join(name), folder.join(name))?;
    }
    tree.copy_folder(&root.join("docs"), folder.join("docs"))?;
    let packages = build::packages(arguments);
    licenses::write(tree, folder, &packages, arguments.target.as_deref())
}
