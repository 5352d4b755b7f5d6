//! Transfer modes of the program's own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use milieu_transfer::{Mode, Modes};

use crate::{Error, Milieu};

/// The modes of a program, beside those of Milieu.
#[derive(Clone, Default)]
pub(crate) struct OwnModes(Arc<Mutex<Vec<Arc<dyn Mode>>>>);

impl OwnModes {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<dyn Mode>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All modes that the program knows.
    pub(crate) fn known(&self) -> Modes {
        let mut modes = Modes::standard();
        for own in &*self.all() {
            modes.add(Arc::clone(own));
        }
        modes
    }
}

impl Milieu {
    /// Makes a transfer mode of the program's own known: by its name it can be
    /// chosen from then on by other tools of the same user
    /// ([`control`](Milieu::control)), and [`modes`](Milieu::modes) has it.
    ///
    /// # Errors
    /// [`Error::Naming`] if there is a mode of its name.
    pub fn add_mode(&self, mode: impl Mode + 'static) -> Result<(), Error> {
        let standard = Modes::standard();
        let mut own = self.kept.modes.all();
        let name = mode.name();
        if standard.named(name).is_some() || own.iter().any(|known| known.name() == name) {
            let text = format!("there is a mode `{name}` already; choose another name");
            return Err(Error::Naming(text));
        }
        own.push(Arc::new(mode));
        Ok(())
    }

    /// The transfer modes that the program knows: those of Milieu, and its own
    /// behind them. `Terms::modes` of a link takes them.
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
