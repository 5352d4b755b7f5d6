//! Where the files of an application lie.
//!
//! | namespace | files, the first one that has a key wins                          |
//! |-----------|-------------------------------------------------------------------|
//! | `user`    | `$XDG_CONFIG_HOME/APP/APP.ini`, without it `~/.config/APP/APP.ini` |
//! | `system`  | `DIR/APP/APP.ini` for each `DIR` of `$XDG_CONFIG_DIRS`, without it `/etc/xdg` |
//! |           | `/etc/APP.ini`                                                    |
//!
//! `user` comes before `system`, and both before the defaults of a
//! specification. As the XDG Base Directory Specification demands, an empty
//! variable counts as unset and a relative path is ignored.
//!
//! Nothing here looks at a file or at the process's environment: variables are
//! handed in, so that a test decides where everything lies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use milieu_keys::{Name, Namespace};

use crate::error::StoreError;
use crate::format::{self, Format};
use crate::ini::Ini;

/// The folders in which applications have their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    /// The folder of the user's settings; nothing if the environment names none.
    pub user: Option<PathBuf>,
    /// The folders of the machine's settings, the first one wins.
    pub system: Vec<PathBuf>,
    /// The folder of the machine's settings that have no folder of their own.
    pub etc: PathBuf,
}

/// A file, and which part of which namespace it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The namespace of all keys in the file.
    pub namespace: Namespace,
    /// The file, which need not exist.
    pub path: PathBuf,
    /// Where in the namespace its keys stand. Keys below another place's mount
    /// point, further down in the same namespace, belong to that place alone.
    pub mount: Name,
    /// How the file is written.
    pub format: &'static dyn Format,
}

impl Place {
    /// A file for a whole namespace, in the format that its ending speaks for;
    /// INI where it speaks for none.
    pub fn new(namespace: Namespace, path: impl Into<PathBuf>) -> Place {
        let path = path.into();
        Place {
            namespace,
            mount: Name::root(),
            format: format::of_path(&path).unwrap_or(&Ini),
            path,
        }
    }

    /// The same file for a part of the namespace.
    pub fn at(mut self, mount: Name) -> Place {
        self.mount = mount;
        self
    }

    /// The same file in another format.
    pub fn written_as(mut self, format: &'static dyn Format) -> Place {
        self.format = format;
        self
    }
}

impl Locations {
    /// The locations that an environment decides; `variable` reads one variable of it.
    ///
    /// ```
    /// use milieu_store::Locations;
    ///
    /// let of_this_process = Locations::from_environment(|name| std::env::var_os(name));
    /// let of_a_test = Locations::from_environment(|name| (name == "HOME").then(|| "/home/anna".into()));
    /// assert_eq!(of_a_test.user.unwrap().to_str(), Some("/home/anna/.config"));
    /// ```
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Locations {
        let folder = |name: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let user =
            folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
        let dirs = variable("XDG_CONFIG_DIRS").unwrap_or_default();
        let mut system: Vec<PathBuf> = std::env::split_paths(&dirs)
            .filter(|path| path.is_absolute())
            .collect();
        if system.is_empty() {
            system.push(PathBuf::from("/etc/xdg"));
        }
        Locations {
            user,
            system,
            etc: PathBuf::from("/etc"),
        }
    }

    /// The files of an application in the order of the cascade.
    ///
    /// # Errors
    /// The name of an application is one level of a path: neither empty, nor
    /// `.` or `..`, and without slashes.
    pub fn places(&self, app: &str) -> Result<Vec<Place>, StoreError> {
        if app.is_empty() || app == "." || app == ".." || app.contains(['/', '\0']) {
            return Err(StoreError::Application {
                name: app.to_owned(),
            });
        }
        let inside = |folder: &Path| folder.join(app).join(format!("{app}.ini"));
        let user = self
            .user
            .iter()
            .map(|folder| (Namespace::User, inside(folder)));
        let system = self
            .system
            .iter()
            .map(|folder| (Namespace::System, inside(folder)));
        let etc = std::iter::once((Namespace::System, self.etc.join(format!("{app}.ini"))));
        Ok(user
            .chain(system)
            .chain(etc)
            .map(|(namespace, path)| Place::new(namespace, path))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Locations {
        Locations::from_environment(|name| {
            variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| OsString::from(value))
        })
    }

    fn paths(locations: &Locations) -> Vec<(Namespace, String)> {
        let places = locations.places("ws").unwrap();
        places
            .into_iter()
            .map(|place| (place.namespace, place.path.to_str().unwrap().to_owned()))
            .collect()
    }

    #[test]
    fn the_xdg_variables_decide() {
        let found = of(&[
            ("HOME", "/home/a"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_CONFIG_DIRS", "/x:/y"),
        ]);
        assert_eq!(
            paths(&found),
            [
                (Namespace::User, "/c/ws/ws.ini".to_owned()),
                (Namespace::System, "/x/ws/ws.ini".to_owned()),
                (Namespace::System, "/y/ws/ws.ini".to_owned()),
                (Namespace::System, "/etc/ws.ini".to_owned()),
            ]
        );
    }

    #[test]
    fn what_is_unset_empty_or_relative_falls_back() {
        let fallback = [
            (Namespace::User, "/home/a/.config/ws/ws.ini".to_owned()),
            (Namespace::System, "/etc/xdg/ws/ws.ini".to_owned()),
            (Namespace::System, "/etc/ws.ini".to_owned()),
        ];
        assert_eq!(paths(&of(&[("HOME", "/home/a")])), fallback);
        assert_eq!(
            paths(&of(&[
                ("HOME", "/home/a"),
                ("XDG_CONFIG_HOME", ""),
                ("XDG_CONFIG_DIRS", "")
            ])),
            fallback
        );
        let relative = [
            ("HOME", "/home/a"),
            ("XDG_CONFIG_HOME", "c"),
            ("XDG_CONFIG_DIRS", "x:./y"),
        ];
        assert_eq!(paths(&of(&relative)), fallback);
        let mixed = [("HOME", "/home/a"), ("XDG_CONFIG_DIRS", "x:/y:")];
        assert_eq!(paths(&of(&mixed))[1].1, "/y/ws/ws.ini");
    }

    #[test]
    fn without_a_home_there_is_no_user() {
        assert_eq!(of(&[]).user, None);
        assert_eq!(of(&[("HOME", "")]).user, None);
        assert_eq!(of(&[("HOME", "anna")]).user, None);
    }

    #[test]
    fn an_application_is_one_level_of_a_path() {
        for name in ["", ".", "..", "../x", "a/b", "a\0b"] {
            let error = of(&[]).places(name).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("is not the name of an application"),
                "{error}"
            );
        }
    }
}
