//! A home of a test's own, in which it runs the real program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of one test's own, with the XDG variables set to it.
pub struct Home(pub PathBuf);

/// What a run printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new(test: &str) -> Home {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("key")
            .join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command.arg("key").current_dir(&self.0);
        command.env_clear().env("HOME", &self.0);
        command
            .env("XDG_CONFIG_HOME", self.0.join("user"))
            .env("XDG_CONFIG_DIRS", self.0.join("system"));
        command
    }

    /// Runs `milieu key …`; in the output the folder is called HOME.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(self.command().args(arguments).output().unwrap())
    }

    pub fn ran(&self, output: Output) -> Ran {
        let text = |bytes| {
            String::from_utf8(bytes)
                .unwrap()
                .replace(self.0.to_str().unwrap(), "HOME")
        };
        Ran {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Runs what must succeed in silence but for its result.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(
            (ran.code, ran.err.as_str()),
            (Some(0), ""),
            "{arguments:?}: {ran:?}"
        );
        ran.out
    }

    /// Runs what must fail without a result.
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(code), ""),
            "{arguments:?}: {ran:?}"
        );
        ran.err
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }
}
