//! A tree that is laid out beside its place and then moved there, file by file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What the folders of trees are called that are being laid out; a process follows.
const STAGING: &str = ".milieu-dist-";

/// The tree before it is in its place; gone with whatever is left of it.
pub struct Staging {
    place: PathBuf,
    /// Below `place`, so that files move within one file system.
    folder: PathBuf,
    /// The outermost folder that was made for it.
    made: Option<PathBuf>,
}

impl Staging {
    /// For a tree that comes to `place`, which is made if it is not there.
    pub fn new(place: &Path) -> Result<Self> {
        let missing = place.ancestors().take_while(|folder| !folder.exists());
        let made = missing.last().map(Path::to_path_buf);
        let folder = place.join(format!("{STAGING}{}", std::process::id()));
        remove_abandoned(place);
        let staging = Self {
            place: place.to_path_buf(),
            folder,
            made,
        };
        fs::create_dir_all(&staging.folder).with_context(|| {
            format!(
                "cannot write to {}; give another folder with --dest, or see to this one",
                place.display()
            )
        })?;
        Ok(staging)
    }

    /// Where a file of the tree is to be made, by its path below the prefix.
    pub fn path(&self, file: impl AsRef<Path>) -> Result<PathBuf> {
        let path = self.folder.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        Ok(path)
    }

    /// Copies a file, and says where it is now.
    pub fn copy(&self, from: &Path, file: impl AsRef<Path>) -> Result<PathBuf> {
        let to = self.path(file)?;
        fs::copy(from, &to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        Ok(to)
    }

    /// Copies what is in a folder, and in those below it.
    pub fn copy_folder(&self, from: &Path, folder: impl AsRef<Path>) -> Result<()> {
        for file in files(from)? {
            self.copy(&from.join(&file), folder.as_ref().join(&file))?;
        }
        Ok(())
    }

    /// Writes a file.
    pub fn write(&self, file: impl AsRef<Path>, text: &str) -> Result<()> {
        let to = self.path(file)?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))
    }

    /// Makes a symbolic link.
    pub fn link(&self, target: &str, file: impl AsRef<Path>) -> Result<()> {
        let to = self.path(file)?;
        symlink(target, &to).with_context(|| format!("cannot make the link {}", to.display()))
    }

    /// Moves all files to their places, and says how many they are.
    pub fn install(self) -> Result<usize> {
        let files = files(&self.folder)?;
        // A folder in the way is found before the first file has moved.
        for file in &files {
            let to = self.place.join(file);
            if to.is_dir() && !to.is_symlink() {
                bail!(
                    "{} is a folder where a file has to be; nothing is changed",
                    to.display()
                );
            }
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder).with_context(|| {
                    format!("cannot make {}; no file is changed", folder.display())
                })?;
            }
        }
        for file in &files {
            let to = self.place.join(file);
            fs::rename(self.folder.join(file), &to)
                .with_context(|| format!("cannot put {} in its place", to.display()))?;
        }
        Ok(files.len())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Whatever fails here has failed before, and was told.
        let _ = fs::remove_dir_all(&self.folder);
        let Some(made) = &self.made else { return };
        for folder in self.place.ancestors() {
            // Only what is empty goes.
            if fs::remove_dir(folder).is_err() || folder == made {
                break;
            }
        }
    }
}

/// Removes what runs have left here that were killed.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(STAGING));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // It is in nobody's way if it stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// All files below a folder, links among them, by their paths below it.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let listed = folder.join(&below);
        let entries =
            fs::read_dir(&listed).with_context(|| format!("cannot list {}", listed.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    fn place(name: &str) -> PathBuf {
        let place = process::scratch("dist").unwrap().join(name);
        let _ = fs::remove_dir_all(&place);
        place
    }

    #[test]
    fn a_tree_comes_to_its_place_beside_what_is_there() {
        let place = place("beside");
        fs::create_dir_all(place.join("lib")).unwrap();
        fs::write(place.join("lib/other"), "other").unwrap();
        fs::write(place.join("lib/a"), "old").unwrap();
        let staging = Staging::new(&place).unwrap();
        staging.write("lib/a", "new").unwrap();
        staging.link("a", "lib/b").unwrap();
        assert_eq!(fs::read_to_string(place.join("lib/a")).unwrap(), "old");
        assert_eq!(staging.install().unwrap(), 2);
        let names = files(&place).unwrap();
        assert_eq!(names, ["lib/a", "lib/b", "lib/other"].map(PathBuf::from));
        assert_eq!(fs::read_to_string(place.join("lib/b")).unwrap(), "new");
    }

    #[test]
    fn of_a_tree_that_was_not_finished_nothing_is_left() {
        let outer = place("unfinished");
        let staging = Staging::new(&outer.join("usr/local")).unwrap();
        staging.write("lib/a", "new").unwrap();
        drop(staging);
        assert!(!outer.exists());
    }

    #[test]
    fn what_a_killed_run_has_left_is_removed() {
        let place = place("killed");
        // No process has this number.
        let left = place.join(format!("{STAGING}4194305"));
        fs::create_dir_all(left.join("lib")).unwrap();
        let staging = Staging::new(&place).unwrap();
        assert!(!left.exists() && staging.folder.exists());
    }

    #[test]
    fn a_folder_in_the_way_is_told_before_anything_moves() {
        let place = place("way");
        fs::create_dir_all(place.join("lib/b")).unwrap();
        let staging = Staging::new(&place).unwrap();
        staging.write("lib/a", "new").unwrap();
        staging.write("lib/b", "new").unwrap();
        let error = staging.install().unwrap_err().to_string();
        assert!(error.ends_with("lib/b is a folder where a file has to be; nothing is changed"));
        assert!(!place.join("lib/a").exists());
    }
}
