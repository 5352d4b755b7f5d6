//! `milieu key migrate`.

use clap::Args;
use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_keys::migration::{Fate, Notice, Outcome, Target};
use milieu_store::{Mounts, Place, Store, ini};

use super::conflict::Conflicts;
use super::failure::{Failure, REFUSED};
use super::scope::{Scope, locations, signed};
use super::show::{self, View};
use crate::terminal;

/// Give keys the names that they have today
///
/// Rewrites the files of the user, or with `--system` those of the system, whose
/// keys have old names: a key gets the name and the form of value that it has
/// today, and one that is no more goes. The specification says what these are.
/// A value that is not allowed today stays where it is, with an error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key migrate --app weather-station --spec station.spec.ini --dry-run
  milieu key migrate --app weather-station --spec station.spec.ini
  milieu key migrate --file old.ini --spec station.spec.ini")]
pub(super) struct Migrate {
    /// Only print what would change
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    conflicts: Conflicts,
    #[command(flatten)]
    pub(super) scope: Scope,
}

impl Migrate {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let Some(schema) = self.scope.schema()? else {
            let diagnostic = Diagnostic::error("nobody says which names are old")
                .help("give the specification with `--spec`, or in the variable MILIEU_SPEC");
            return Err(Failure::new(
                "the command line",
                diagnostic,
                terminal::ERROR,
            ));
        };
        let mut is_refused = false;
        // What stands in one file wins over another one also after it is
        // migrated, so each is migrated with what is mounted from it alone.
        for places in self.files()? {
            let mut store = signed(Store::read(places)?).with_schema(schema.clone());
            for notice in store.notices().iter().filter(|notice| notice.is_error()) {
                terminal::report(&notice.source(), &notice.diagnostics(), self.scope.json);
                is_refused = true;
            }
            let lines = self.lines(&store);
            if !self.dry_run {
                let changes = store.migration(self.scope.namespace());
                let resolve = self.conflicts.resolve(Some(&schema));
                self.scope.commit(&mut store, &changes, resolve)?;
            }
            terminal::print(&lines)?;
        }
        match is_refused {
            true => Err(Failure::Ended(REFUSED)),
            false => Ok(()),
        }
    }

    /// The files that are written to, each with those mounted from its table.
    fn files(&self) -> Result<Vec<Vec<Place>>, Failure> {
        if let Some(path) = &self.scope.file {
            return Ok(vec![vec![Place::new(self.scope.namespace(), path)]]);
        }
        let mut places = locations().places(&self.scope.app)?;
        places.retain(|place| place.namespace == self.scope.namespace());
        let with_mounted = |place: Place| {
            let mounted = Mounts::of(&place)?.places()?;
            Ok(std::iter::once(place).chain(mounted).collect())
        };
        places.into_iter().map(with_mounted).collect()
    }

    fn lines(&self, store: &Store) -> String {
        let view = View::of(store);
        let lines = store.notices().iter().flat_map(|notice| {
            let moves = moves(notice);
            moves.into_iter().map(|moved| match self.scope.json {
                true => object(view, notice, &moved),
                false => line(view, notice, &moved),
            })
        });
        lines.collect()
    }
}

/// What becomes of an old key.
enum Moved<'n> {
    To(&'n Name, &'n str),
    /// Why it goes without becoming another key.
    Gone(String),
}

fn moves(notice: &Notice) -> Vec<Moved<'_>> {
    let targets = match &notice.fate {
        Fate::Renamed(targets) => targets,
        Fate::Removed(why) => return vec![Moved::Gone(why.clone())],
        Fate::Deprecated(_) => return Vec::new(),
    };
    let taken = targets.iter().filter_map(|target| match &target.outcome {
        Outcome::Taken(key) => Some(Moved::To(&target.name, key.value())),
        Outcome::Outranked(_) | Outcome::Refused(_) => None,
    });
    let taken: Vec<Moved<'_>> = taken.collect();
    match targets.first() {
        Some(target) if taken.is_empty() && targets.iter().all(Target::is_settled) => {
            let name = ini::encode_name(target.name.as_str());
            vec![Moved::Gone(format!("`{name}` has a value"))]
        }
        _ => taken,
    }
}

/// `/pi/timeout = 1500 -> /sw/pi/timeout = 1500 ms  (station.ini:4)`
fn line(view: View<'_>, notice: &Notice, moved: &Moved<'_>) -> String {
    let (key, place) = (&notice.key, show::origin(&notice.key));
    let old = view.key(key.name(), key.value());
    match moved {
        Moved::To(name, value) => {
            format!("{old} -> {}  ({place})\n", view.key(name.as_str(), value))
        }
        Moved::Gone(why) => format!("{old} -> removed: {why}  ({place})\n"),
    }
}

fn object(view: View<'_>, notice: &Notice, moved: &Moved<'_>) -> String {
    let object = view.object(&notice.key);
    match moved {
        Moved::To(name, value) => object
            .text("new_name", name.as_str())
            .text("new_value", view.value(name.as_str(), value))
            .optional("removed", None),
        Moved::Gone(why) => object
            .optional("new_name", None)
            .optional("new_value", None)
            .text("removed", why),
    }
    .line()
}
