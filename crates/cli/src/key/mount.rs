//! `milieu key mount`.

use std::path::PathBuf;

use clap::Args;
use milieu_diagnostics::Diagnostic;
use milieu_store::{Mount as Row, Mounts, StoreError, format, ini};

use super::complete;
use super::failure::{Failure, NOT_FOUND};
use super::json::Object;
use super::scope::{locations, name, namespace};
use crate::terminal;

/// Say which file holds which part of the tree
///
/// Without a name, lists the mount points. A path counts from the folder of
/// the application's settings. Keys that are below the mount point already are
/// hidden until it is removed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key mount --app weather-station
  milieu key mount --app weather-station /sw/pi/sensors sensors.toml
  milieu key mount --app weather-station --remove /sw/pi/sensors")]
pub(super) struct Mount {
    /// The mount point, for example /sw/pi/sensors
    #[arg(requires = "path", required = false, add = complete::names())]
    name: Option<String>,
    /// The file
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// How the file is written; without, its ending says so
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    format: Option<String>,
    /// Remove this mount point; the file stays
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "path", "format"])]
    remove: Option<String>,
    /// The application whose settings are meant
    #[arg(long, value_name = "NAME", default_value = "milieu")]
    app: String,
    /// The table of the system instead of the user's
    #[arg(long)]
    system: bool,
    /// Print results as lines of JSON, and errors too
    #[arg(long)]
    pub(super) json: bool,
}

/// The names of the formats, for the parser and its help.
pub(super) fn formats() -> Vec<&'static str> {
    format::all().iter().map(|format| format.name()).collect()
}

impl Mount {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if let Some(at) = &self.remove {
            return self.remove(at);
        }
        if let (Some(at), Some(file)) = (&self.name, &self.path) {
            let format = self.format.as_deref().and_then(format::by_name);
            let row = Row {
                at: name(at)?,
                file: file.clone(),
                format,
            };
            return Ok(self.table()?.mount(&row)?);
        }
        let places = locations().mounted_places(&self.app)?;
        let width = places.iter().map(|place| place.mount.as_str().len()).max();
        let lines = places.iter().map(|place| {
            let (at, format) = (ini::encode_name(place.mount.as_str()), place.format.name());
            let path = place.path.display().to_string();
            if self.json {
                let object = Object::new().text("name", place.mount.as_str());
                let object = object.text("namespace", place.namespace.as_str());
                return object.text("file", &path).text("format", format).line();
            }
            let missing = if place.path.exists() {
                ""
            } else {
                "  (no file)"
            };
            let width = width.unwrap_or(0);
            format!(
                "{:8} {at:width$}  {format:5} {path}{missing}\n",
                place.namespace.as_str()
            )
        });
        Ok(terminal::print(&lines.collect::<String>())?)
    }

    fn remove(&self, at: &str) -> Result<(), Failure> {
        let at = name(at)?;
        let mut table = self.table()?;
        if table.unmount(&at)? {
            return Ok(());
        }
        let shown = ini::encode_name(at.as_str());
        let diagnostic = Diagnostic::error(format!("nothing is mounted at `{shown}`"));
        let diagnostic = diagnostic.help("`milieu key mount` lists the mount points");
        let table = table.path().display().to_string();
        Err(Failure::new(table, diagnostic, NOT_FOUND))
    }

    /// The table that is changed.
    fn table(&self) -> Result<Mounts, Failure> {
        let namespace = namespace(self.system);
        let places = locations().places(&self.app)?;
        let place = places.iter().find(|place| place.namespace == namespace);
        match place {
            Some(place) => Ok(Mounts::of(place)?),
            None => Err(StoreError::NoFile { namespace }.into()),
        }
    }
}
