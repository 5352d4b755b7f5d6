//! Mount tables: which file, in which format, holds which part of the tree.
//!
//! ```ini
//! [/sw/pi/sensors]
//! file = sensors.toml
//!
//! [/hw]
//! file   = /etc/station/hardware.conf
//! format = json
//! ```
//!
//! A table stands beside the file of its namespace, as `APP.mounts.ini`; a path
//! in it counts from the table's folder. Without a format the ending of the
//! file speaks. The most specific mount point holds a key; everything that no
//! table mentions is in the application's own files.
//!
//! A table is a file of keys like any other and is edited as one, with all that
//! follows: atomic, merged by key, comments kept.

use std::path::{Path, PathBuf};

use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::{Key, KeySet, Name, Namespace};

use crate::error::StoreError;
use crate::format::{self, Entry, Format};
use crate::ini;
use crate::locations::{Locations, Place};
use crate::merge::{Change, Strategy};
use crate::read;
use crate::store::Store;

/// A row of a mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The mount point.
    pub at: Name,
    /// The file, as the table has it.
    pub file: PathBuf,
    /// The format, where the table states it.
    pub format: Option<&'static dyn Format>,
}

/// The mount table of one namespace.
#[derive(Debug)]
pub struct Mounts {
    store: Store,
    namespace: Namespace,
    path: PathBuf,
}

impl Mounts {
    /// Reads the table that belongs to a file of keys; there need not be one.
    ///
    /// # Errors
    /// Where the table cannot be read or understood.
    pub fn of(place: &Place) -> Result<Mounts, StoreError> {
        let path = place.path.with_extension("mounts.ini");
        let namespace = place.namespace;
        Ok(Mounts {
            store: Store::read(vec![Place::new(namespace, &path)])?,
            namespace,
            path,
        })
    }

    /// The table's own file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rows, in the order of their mount points.
    ///
    /// # Errors
    /// Rows without a file, in no known format, or with unknown fields.
    pub fn rows(&self) -> Result<Vec<Mount>, StoreError> {
        rows(self.store.keys(), &self.path)
    }

    /// The files that the rows speak of.
    ///
    /// # Errors
    /// As [`rows`](Mounts::rows).
    pub fn places(&self) -> Result<Vec<Place>, StoreError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let place = |row: Mount| {
            let place = Place::new(self.namespace, folder.join(&row.file)).at(row.at);
            match row.format {
                Some(format) => place.written_as(format),
                None => place,
            }
        };
        Ok(self.rows()?.into_iter().map(place).collect())
    }

    /// Mounts a file, in the place of one that is mounted at the same point.
    ///
    /// # Errors
    /// Where the table cannot be written, or another process mounts there.
    pub fn mount(&mut self, mount: &Mount) -> Result<(), StoreError> {
        let file = mount.file.to_string_lossy();
        let format = match mount.format {
            Some(format) => Change::set(mount.at.join("format"), format.name()),
            None => Change::remove(mount.at.join("format")),
        };
        self.change(&[Change::set(mount.at.join("file"), file), format])
    }

    /// Takes a mount point out of the table; the file stays. Says whether it
    /// was there.
    ///
    /// # Errors
    /// As [`mount`](Mounts::mount).
    pub fn unmount(&mut self, at: &Name) -> Result<bool, StoreError> {
        let there = self.rows()?.iter().any(|row| row.at == *at);
        let fields = ["file", "format"].map(|field| Change::remove(at.join(field)));
        self.change(&fields)?;
        Ok(there)
    }

    fn change(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let namespace = self.namespace;
        let there = |change: &&Change| {
            let name = change.name.as_str();
            change.value.is_some() || self.store.keys().get(namespace, name).is_some()
        };
        let changes: Vec<Change> = changes.iter().filter(there).cloned().collect();
        self.store.commit(namespace, &changes, Strategy::Refuse)?;
        Ok(())
    }
}

impl Locations {
    /// The files of an application with those that its mount tables name, in
    /// the order of the cascade.
    ///
    /// # Errors
    /// As [`places`](Locations::places), and where a mount table is wrong.
    pub fn mounted_places(&self, app: &str) -> Result<Vec<Place>, StoreError> {
        self.mounted_places_despite(app, |_, error| Err(error))
    }

    /// As [`mounted_places`](Locations::mounted_places), but what is wrong with
    /// a mount table is handed to `wrong`, with the table's namespace; where that
    /// gives no error back, it goes on without the table.
    ///
    /// # Errors
    /// As [`places`](Locations::places), and those that `wrong` gives back.
    pub fn mounted_places_despite(
        &self,
        app: &str,
        mut wrong: impl FnMut(Namespace, StoreError) -> Result<(), StoreError>,
    ) -> Result<Vec<Place>, StoreError> {
        let mut places = Vec::new();
        for place in self.places(app)? {
            let mounted = Mounts::of(&place).and_then(|table| table.places());
            let namespace = place.namespace;
            places.push(place);
            match mounted {
                Ok(mounted) => places.extend(mounted),
                Err(error) => wrong(namespace, error)?,
            }
        }
        Ok(places)
    }
}

fn rows(keys: &KeySet, path: &Path) -> Result<Vec<Mount>, StoreError> {
    let mut rows: Vec<(Mount, &Key)> = Vec::new();
    let mut wrong: Vec<(Diagnostic, &Key)> = Vec::new();
    for key in keys.effective() {
        let (at, field) = milieu_keys::split(key.name());
        let at = Name::parse(if at.is_empty() { "/" } else { at });
        let at = at.expect("the parent of a key is a name");
        let known = rows.iter().position(|(row, _)| row.at == at);
        let known = known.unwrap_or_else(|| {
            let (file, format) = (PathBuf::new(), None);
            rows.push((Mount { at, file, format }, key));
            rows.len() - 1
        });
        let row = &mut rows[known].0;
        match field {
            "file" => row.file = PathBuf::from(key.value()),
            "format" => {
                row.format = format::by_name(key.value());
                if row.format.is_none() {
                    let known: Vec<&str> = format::all().iter().map(|f| f.name()).collect();
                    let message = format!("there is no format `{}`", key.value());
                    let help = format!("use one of {}", known.join(", "));
                    wrong.push((Diagnostic::error(message).help(help), key));
                }
            }
            field => {
                let message = format!("`{field}` says nothing about a mount");
                let help = "a mount has a `file`, and may have a `format`";
                wrong.push((Diagnostic::error(message).help(help), key));
            }
        }
    }
    let without_file = |(row, _): &&(Mount, &Key)| row.file.as_os_str().is_empty();
    for (row, key) in rows.iter().filter(without_file) {
        let message = format!("the mount at `{}` has no file", row.at);
        let help = "add a line `file = …` to its section";
        wrong.push((Diagnostic::error(message).help(help), key));
    }
    if wrong.is_empty() {
        return Ok(rows.into_iter().map(|(row, _)| row).collect());
    }
    Err(mistakes(path, wrong))
}

/// The diagnostics with the places of the keys that they are about, as the
/// table is now.
fn mistakes(path: &Path, wrong: Vec<(Diagnostic, &Key)>) -> StoreError {
    let text = read::text(path).ok().flatten();
    let text = text.map_or_else(String::new, |content| content.text);
    let (document, _) = ini::Document::parse(&text);
    let placed = |(diagnostic, key): (Diagnostic, &Key)| {
        let is_it = |entry: &Entry<'_>| {
            (entry.line, entry.name.as_str()) == (key.origin().line, key.name())
        };
        match document.keys().find(is_it).and_then(|entry| entry.span) {
            Some(span) => diagnostic.label(span, ""),
            None => diagnostic.note(format!("see line {}", key.origin().line)),
        }
    };
    let diagnostics = wrong.into_iter().map(placed).collect();
    StoreError::Text {
        source: Source::new(path.display().to_string(), text),
        diagnostics,
    }
}
