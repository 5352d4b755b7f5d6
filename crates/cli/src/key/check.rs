//! `milieu key check`.

use std::path::Path;

use clap::Args;
use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::Namespace;
use milieu_store::inspect::{Inspection, inspect};
use milieu_store::{Place, Schema};

use super::failure::{Failure, REFUSED, shown};
use super::scope::{Scope, locations};
use crate::terminal;

/// Say what is wrong with the files of settings
///
/// Looks at every file of the application, mount tables included, and says all
/// that is wrong with each: lines that cannot be understood and, with a
/// specification, values that it does not allow, keys that it does not have or
/// has no more, keys without a value, and secrets that others may read. Keys
/// that another file is mounted over are found as well, and elements of arrays
/// that stand behind a gap.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key check --app weather-station --spec station.spec.ini
  milieu key check --file station.ini --spec station.spec.ini
  milieu key check --app weather-station --json | jq -r .message")]
pub(super) struct Check {
    #[command(flatten)]
    pub(super) scope: Scope,
}

/// What was found, in words and as an exit code.
#[derive(Default)]
struct Found {
    errors: usize,
    warnings: usize,
    unreadable: bool,
}

impl Check {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let schema = self.scope.schema()?;
        let schema = schema.as_ref();
        let mut found = Found::default();
        let places = self.places(schema, &mut found)?;
        let inspection = inspect(&places, schema);
        for file in &inspection.files {
            found.unreadable |= file.keys.is_none();
            self.tell(&file.source, &file.diagnostics, &mut found)?;
        }
        if let Some(schema) = schema.filter(|_| !self.scope.user && !self.scope.system) {
            self.tell(schema.source(), &inspection.missing, &mut found)?;
        }
        match found {
            Found {
                unreadable: true, ..
            } => Err(Failure::Ended(terminal::ERROR)),
            Found { errors: 1.., .. } => Err(Failure::Ended(REFUSED)),
            _ if self.scope.json => Ok(()),
            _ => Ok(terminal::print(&summary(&places, &inspection, &found))?),
        }
    }

    /// The files that are meant; mount tables that are wrong are told of.
    fn places(&self, schema: Option<&Schema>, found: &mut Found) -> Result<Vec<Place>, Failure> {
        if let Some(path) = &self.scope.file {
            return given(path).map(|place| vec![place]);
        }
        let mut mistakes = Vec::new();
        let mut places = locations().mounted_places_despite(&self.scope.app, |of, error| {
            mistakes.push((of, error));
            Ok(())
        })?;
        places.retain(|place| self.scope.has(place.namespace));
        for (_, error) in mistakes.iter().filter(|(of, _)| self.scope.has(*of)) {
            found.unreadable = true;
            let (source, diagnostics) = shown(error, schema);
            self.tell(&source, &diagnostics, found)?;
        }
        Ok(places)
    }

    /// What is found is the result, so programs get it as that.
    fn tell(
        &self,
        source: &Source,
        diagnostics: &[Diagnostic],
        found: &mut Found,
    ) -> Result<(), Failure> {
        let errors = diagnostics.iter().filter(|found| found.is_error()).count();
        found.errors += errors;
        found.warnings += diagnostics.len() - errors;
        match self.scope.json {
            true => terminal::print(&terminal::json_lines(source, diagnostics))?,
            false => terminal::report(source, diagnostics, false),
        }
        Ok(())
    }
}

/// A file that has to be there, since it was asked for.
fn given(path: &Path) -> Result<Place, Failure> {
    if matches!(path.try_exists(), Ok(false)) {
        let diagnostic = Diagnostic::error("there is no such file").help("mend the path");
        return Err(Failure::new(
            path.display().to_string(),
            diagnostic,
            terminal::ERROR,
        ));
    }
    Ok(Place::new(Namespace::User, path))
}

/// `2 files with 14 keys: nothing is wrong`
fn summary(places: &[Place], inspection: &Inspection, found: &Found) -> String {
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    if inspection.files.is_empty() {
        let paths = places.iter().map(|place| place.path.display().to_string());
        let paths: Vec<String> = paths.collect();
        return format!("no file is there: {}\n", paths.join(", "));
    }
    let keys = inspection.files.iter().filter_map(|file| file.keys).sum();
    let (files, keys) = (many(inspection.files.len(), "file"), many(keys, "key"));
    match found.warnings {
        0 => format!("{files} with {keys}: nothing is wrong\n"),
        warnings => format!(
            "{files} with {keys}: no errors, {}\n",
            many(warnings, "warning")
        ),
    }
}
