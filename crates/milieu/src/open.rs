//! A program's surroundings, and contexts over environments in them.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use milieu_context::{
    Allowed, Context, ContextOptions, Coordinator, Description, Environment, Erased, Identity,
    Layout, Policy, Threads,
};

#[cfg(feature = "store")]
use crate::files::Files;
use crate::{Error, required::missing};

/// A program's surroundings: the coordinator of its contexts, and the files
/// behind its key set.
pub struct Milieu {
    coordinator: Coordinator,
    app: String,
    #[cfg(feature = "store")]
    pub(crate) files: Files,
    /// Environments of which every required key has a value.
    complete: Mutex<Vec<Identity>>,
    #[cfg(feature = "stream")]
    pub(crate) kept: crate::streams::Kept,
}

impl fmt::Debug for Milieu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Milieu");
        shown.field("app", &self.app);
        #[cfg(feature = "store")]
        shown.field("files", &self.files.places);
        shown.finish_non_exhaustive()
    }
}

impl Milieu {
    /// Without files: an empty key set, which cannot be persisted.
    #[must_use]
    pub fn in_memory() -> Milieu {
        Milieu::new(
            String::new(),
            Coordinator::new(),
            #[cfg(feature = "store")]
            Files::default(),
        )
    }

    pub(crate) fn new(
        app: String,
        coordinator: Coordinator,
        #[cfg(feature = "store")] files: Files,
    ) -> Milieu {
        Milieu {
            coordinator,
            app,
            #[cfg(feature = "store")]
            files,
            complete: Mutex::default(),
            #[cfg(feature = "stream")]
            kept: crate::streams::Kept::default(),
        }
    }

    /// A context for this thread or task.
    ///
    /// # Errors
    ///
    /// Fails where the settings break the rules of the environment, or do not
    /// give a value that it requires; every offending key is named, with its
    /// place and the way out.
    pub fn context<E: Environment>(&self) -> Result<Context<E>, Error> {
        self.context_with::<E, Threads>(ContextOptions::new())
    }

    /// A context with a policy, a role, or both.
    ///
    /// # Errors
    ///
    /// As [`context`](Milieu::context).
    pub fn context_with<E: Environment, P: Policy>(
        &self,
        options: ContextOptions,
    ) -> Result<Context<E, P>, Error> {
        let environment = Description::of::<E>();
        #[cfg(feature = "store")]
        self.files.adopt(&environment, &self.coordinator)?;
        let cx = self.coordinator.context_with(options)?;
        self.complete(&environment)?;
        Ok(cx)
    }

    /// A context over an environment that is described while the program runs.
    ///
    /// # Errors
    ///
    /// As [`context`](Milieu::context).
    pub fn erased(
        &self,
        layout: &'static Layout,
        options: ContextOptions,
        allowed: Allowed,
    ) -> Result<Erased, Error> {
        let environment = layout.description();
        #[cfg(feature = "store")]
        self.files.adopt(&environment, &self.coordinator)?;
        let cx = self.coordinator.erased(layout, options, allowed)?;
        self.complete(&environment)?;
        Ok(cx)
    }

    /// Sees to it that somebody gives the values that somebody has to give.
    fn complete(&self, environment: &Description) -> Result<(), Error> {
        let complete = || lock(&self.complete);
        if complete().contains(&environment.identity()) {
            return Ok(());
        }
        #[cfg(feature = "store")]
        let file = self.files.of_user();
        #[cfg(not(feature = "store"))]
        let file: Option<String> = None;
        let missing = missing(environment, &self.coordinator, file.as_deref());
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        complete().push(environment.identity());
        Ok(())
    }

    /// The application's name, as it was opened.
    #[must_use]
    pub fn app(&self) -> &str {
        &self.app
    }

    /// What all contexts share: actions, and the lock of the key set.
    #[must_use]
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
