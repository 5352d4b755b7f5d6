//! Who wants the same: clients whose events are encoded once for all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use milieu_stream::names::{LayerValues, Rights};
use milieu_stream::{Flow, Reader, Streams};
use milieu_transfer::Press;

use super::server::Server;
use super::wish::Wish;

/// The presses in use, one for each flow, mode and set of rights.
#[derive(Default)]
pub(super) struct Presses {
    known: Mutex<HashMap<Wanted, Weak<Shared>>>,
    readers: Mutex<Vec<(Rights, Arc<Reader>)>>,
    /// What presses have encoded that are not in use any more.
    encoded: Arc<AtomicU64>,
}

/// What a press is for: the flow, the number of the reader, the mode, and
/// whether private fields are read.
type Wanted = (Flow, usize, &'static str, bool);

/// A press, and where its encodings are counted when it goes.
pub(super) struct Shared {
    press: Mutex<Press>,
    encoded: Arc<AtomicU64>,
}

impl Shared {
    pub fn press(&self) -> MutexGuard<'_, Press> {
        self.press.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let encodings = self.press().encodings();
        self.encoded.fetch_add(encodings, Ordering::Relaxed);
    }
}

impl Presses {
    /// The press for what somebody wants.
    pub fn of(&self, server: &Server, wish: &Wish) -> Arc<Shared> {
        let private = wish.rights == milieu_transfer::Rights::READ;
        let (reader, _) = self.reader(&server.streams, &wish.reads);
        let wanted = (wish.flow.clone(), reader, wish.mode.name(), private);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.get(&wanted).and_then(Weak::upgrade) {
            return shared;
        }
        known.retain(|_, shared| shared.strong_count() > 0);
        // What waits for one client, and what it has taken out but not sent.
        let most = 2 * server.settings.bounds.queue_events as usize;
        let press = Press::new(Arc::clone(&wish.mode), wish.rights, most);
        let shared = Arc::new(Shared {
            press: Mutex::new(press),
            encoded: Arc::clone(&self.encoded),
        });
        known.insert(wanted, Arc::downgrade(&shared));
        shared
    }

    /// The reader with these rights, whose number is its own. All who have them
    /// read as one, so that equal flows of theirs run once.
    pub fn reader(&self, streams: &Streams, rights: &Rights) -> (usize, Arc<Reader>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = readers.iter().position(|(known, _)| known == rights);
        let number = known.unwrap_or_else(|| {
            let reader = streams.reader(LayerValues::new(), rights.clone());
            readers.push((rights.clone(), Arc::new(reader)));
            readers.len() - 1
        });
        (number, Arc::clone(&readers[number].1))
    }

    /// How many frames have been encoded.
    pub fn encodings(&self) -> u64 {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use: Vec<Arc<Shared>> = known.values().filter_map(Weak::upgrade).collect();
        drop(known);
        let in_use_encoded: u64 = in_use.iter().map(|shared| shared.press().encodings()).sum();
        self.encoded.load(Ordering::Relaxed) + in_use_encoded
    }
}
