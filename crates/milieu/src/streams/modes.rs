//! Transfer modes of the program's own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use milieu_transfer::{Mode, Modes, Offer, is_media_type};

use crate::{Error, Milieu};

/// The modes of a program, beside those of Milieu or in their place.
#[derive(Clone, Default)]
pub(crate) struct OwnModes(Arc<Mutex<Vec<Arc<dyn Mode>>>>);

impl OwnModes {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<dyn Mode>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All modes that the program knows.
    pub(crate) fn known(&self) -> Modes {
        known_with(&self.all())
    }
}

/// Those of Milieu, unless one of these has their name, and these.
fn known_with(own: &[Arc<dyn Mode>]) -> Modes {
    let mut modes = Modes::standard();
    for own in own {
        modes.replace(Arc::clone(own));
    }
    modes
}

impl Milieu {
    /// Makes a transfer mode of the program's own known: by its name it can be
    /// chosen from then on by other tools of the same user
    /// ([`control`](Milieu::control)), and [`modes`](Milieu::modes) has it.
    ///
    /// # Errors
    /// [`Error::Naming`] if its name or media type is none, or another mode has it.
    pub fn add_mode(&self, mode: impl Mode + 'static) -> Result<(), Error> {
        self.own_mode(mode, false)
    }

    /// As [`add_mode`](Milieu::add_mode), in the place of Milieu's mode of its name.
    /// Whoever is at the other end has to have it, too: no name tells the two apart. One
    /// called `json` writes a line for each frame, as servers send them as lines; tools
    /// are told JSON as Milieu writes it all the same.
    ///
    /// # Errors
    /// [`Error::Naming`] if Milieu has no mode of its name, or one of the program is
    /// there already; if its media type is none, or one of another mode.
    pub fn replace_mode(&self, mode: impl Mode + 'static) -> Result<(), Error> {
        self.own_mode(mode, true)
    }

    fn own_mode(&self, mode: impl Mode + 'static, replaces: bool) -> Result<(), Error> {
        let (name, media_type) = (mode.name(), mode.media_type());
        let wrong = |text: String| Err(Error::Naming(text));
        if format!("{name}/1").parse::<Offer>().is_err() {
            return wrong(format!(
                "a mode cannot be called `{}`; its name has letters, digits, `-` and `_`",
                name.escape_debug()
            ));
        }
        if !is_media_type(media_type) {
            return wrong(format!(
                "`{}` is no media type; one is `application/x-{name}`",
                media_type.escape_debug()
            ));
        }
        let mut own = self.kept.modes.all();
        let standard = Modes::standard();
        if replaces && standard.named(name).is_none() {
            let offers = standard.offers();
            let there: Vec<&str> = offers.iter().map(|offer| &*offer.name).collect();
            return wrong(format!(
                "Milieu has no mode `{name}` that another one could replace; it has {}",
                there.join(", ")
            ));
        }
        if replaces && own.iter().any(|it| it.name() == name) {
            return wrong(format!("the mode `{name}` was replaced already"));
        }
        let others = known_with(&own);
        for known in others.iter().filter(|it| !replaces || it.name() != name) {
            if known.name() == name {
                return wrong(format!(
                    "there is a mode `{name}` already; choose another name"
                ));
            }
            if known.media_type().eq_ignore_ascii_case(media_type) {
                return wrong(format!(
                    "`{media_type}` is what the mode `{}` makes; choose another media type",
                    known.name()
                ));
            }
        }
        own.push(Arc::new(mode));
        Ok(())
    }

    /// The transfer modes that the program knows: those of Milieu, and its own behind
    /// them or in their place. `Terms::modes` of a link takes them.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.kept.modes.known()
    }

    /// The transfer modes that the program has made known itself.
    #[must_use]
    pub fn own_modes(&self) -> Vec<Arc<dyn Mode>> {
        self.kept.modes.all().clone()
    }
}
