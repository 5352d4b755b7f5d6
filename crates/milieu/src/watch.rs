//! What others write into the files, on its way into contextual values.
//!
//! ```text
//!  editor, `milieu key`, another program ─▶ file ─▶ watch ─▶ coordinator ─▶ sync
//! ```

use std::sync::{Arc, OnceLock, Weak};

use milieu_context::{Coordinator, Difference, Invalid};
use milieu_keys::Namespace;
use milieu_store::watch::{self, FileNews, Filter, Pace, Watch};

use crate::{
    Error, Milieu,
    files::{Known, Watches},
};

/// What has come from the files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum News {
    /// Keys have other values. Contexts see them at their next synchronization,
    /// all of one commit together.
    Changed(Vec<Difference>),
    /// Values that break the rules of this program's environments. Nothing of
    /// that namespace is taken over; what was in force stays in force until all
    /// of it is right again. Said once for each set of wrong values.
    Refused(Vec<Invalid>),
    /// A file became invalid, or valid again. The keys that it had stay in force.
    File(FileNews),
}

/// Keeps the files watched; dropping it ends that.
#[must_use = "the files are watched for as long as this is kept"]
#[derive(Debug)]
pub struct Watching {
    // The callbacks go first: they hold on to nothing then.
    _callbacks: Vec<watch::Registration>,
    _watch: Arc<Watch>,
}

/// What the callbacks of both namespaces share.
struct Taker {
    coordinator: Coordinator,
    known: Arc<Known>,
    watch: OnceLock<Weak<Watch>>,
}

impl Milieu {
    /// Takes over from now on what others write into this program's files:
    /// other programs, `milieu key`, people with editors. Contexts see it at
    /// their next synchronization, and those who
    /// [wait](milieu_context::Context::wait) are woken. What this program has
    /// assigned and not yet persisted stays in force.
    ///
    /// `tell` is told what has come, after it is published, in a thread of the
    /// watch and without any lock.
    ///
    /// # Errors
    ///
    /// Fails where a file cannot be read or watched.
    pub fn watch(&self, tell: impl Fn(News) + Send + Sync + 'static) -> Result<Watching, Error> {
        let store = self.files.store()?;
        let watch = Arc::new(Watch::start(&store, Pace::default())?);
        let watched: Weak<Watch> = Arc::downgrade(&watch);
        self.files.watched_by(watched);
        let taker = Arc::new(Taker {
            coordinator: self.coordinator().clone(),
            known: Arc::clone(&self.files.known),
            watch: OnceLock::from(Arc::downgrade(&watch)),
        });
        let tell = Arc::new(tell);
        let callbacks = [Namespace::User, Namespace::System].map(|namespace| {
            let (taker, tell) = (Arc::clone(&taker), Arc::clone(&tell));
            let mut refused = String::new();
            // What has changed since the program read it counts as news.
            let known = self.files.known.read(namespace, store.keys());
            let filter = Filter::all().in_namespace(namespace);
            watch.on_change(&known, filter, move |news| {
                if namespace == Namespace::User {
                    let files = news.files.into_iter();
                    let shown = files.map(|file| News::File(taker.known.shown(file)));
                    shown.for_each(&*tell);
                }
                if let Some(news) = taker.take(namespace, &mut refused) {
                    tell(news);
                }
            })
        });
        Ok(Watching {
            _callbacks: callbacks.into(),
            _watch: watch,
        })
    }
}

impl Watches for Watch {
    fn look(&self, namespace: Namespace) {
        Watch::look(self, namespace);
    }
}

impl Taker {
    /// Takes over a namespace. What is refused again is not said again.
    fn take(&self, namespace: Namespace, refused: &mut String) -> Option<News> {
        let watch = self.watch.get()?.upgrade()?;
        let mut taking = self.known.taking();
        let taken = taking.take_over(&self.coordinator, namespace, watch.keys());
        drop(taking);
        match taken {
            Ok(changed) => {
                refused.clear();
                (!changed.is_empty()).then_some(News::Changed(changed))
            }
            Err(invalid) => {
                let texts: Vec<String> = invalid.iter().map(Invalid::to_string).collect();
                let before = std::mem::replace(refused, texts.join("\n"));
                (*refused != before).then_some(News::Refused(invalid))
            }
        }
    }
}
