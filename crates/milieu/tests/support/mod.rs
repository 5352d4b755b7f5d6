//! A machine in a folder of its own: files, variables and arguments of a test.
#![allow(dead_code, unreachable_pub)]

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use milieu::{
    Environment, Error, Milieu, Start,
    keys::options::Program,
    store::{Locations, Store},
};

/// The application of all tests.
pub const APP: &str = "hello";

/// A home, and the folders of the system, until it is dropped.
pub struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    pub fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        Machine { folder }
    }

    pub fn locations(&self) -> Locations {
        locations_in(self.folder.path())
    }

    /// Where it is, for a process of its own that [opens](open_in) its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, folder: &str) -> PathBuf {
        self.folder.path().join(folder).join(APP).join("hello.ini")
    }

    /// The user's file.
    pub fn user_file(&self) -> PathBuf {
        self.file("home")
    }

    /// Writes the user's file.
    pub fn user(self, text: &str) -> Machine {
        write(&self.file("home"), text);
        self
    }

    /// Writes the system's file.
    pub fn system(self, text: &str) -> Machine {
        write(&self.file("xdg"), text);
        self
    }

    /// What the user's file holds.
    pub fn text(&self) -> String {
        fs::read_to_string(self.user_file()).expect("the user's file")
    }

    pub fn open(&self) -> Milieu {
        self.start(Milieu::builder(APP))
            .expect("settings without errors")
    }

    /// Opens with a command line and variables.
    pub fn open_with<E: Environment>(
        &self,
        arguments: &[&str],
        variables: &'static [(&str, &str)],
    ) -> Result<Milieu, Error> {
        let arguments = arguments.iter().map(OsString::from).collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        self.start(Milieu::builder(APP).arguments::<E>(Program::new(APP), arguments, variable))
    }

    fn start(&self, builder: milieu::Builder) -> Result<Milieu, Error> {
        match builder.locations(self.locations()).start()? {
            Start::Run(milieu) => Ok(*milieu),
            Start::Say(text) => panic!("nobody asked for {text}"),
        }
    }

    /// The same files, as another process sees them.
    pub fn store(&self) -> Store {
        Store::open(APP, &self.locations()).expect("files without errors")
    }
}

fn locations_in(folder: &Path) -> Locations {
    Locations {
        user: Some(folder.join("home")),
        system: vec![folder.join("xdg")],
        etc: folder.join("etc"),
    }
}

/// Opens the files of a machine that another process has.
pub fn open_in(folder: &Path) -> Milieu {
    let builder = Milieu::builder(APP).locations(locations_in(folder));
    match builder.start().expect("settings without errors") {
        Start::Run(milieu) => *milieu,
        Start::Say(text) => panic!("nobody asked for {text}"),
    }
}

/// Writes a file at once, as who watches it may look at any time.
fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder");
    let new = path.with_extension("new");
    fs::write(&new, text).expect("a file");
    fs::rename(&new, path).expect("a file");
}
