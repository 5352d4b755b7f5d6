//! Whose choices are kept: the layer `session` has as many values as somebody
//! cares to invent, so the choices that were made longest ago are forgotten.

use crate::environment::{Environment, layer};
use crate::web::session::SessionId;
use milieu::Context;
use std::collections::{BTreeMap, HashMap};

/// The sessions that have keys, by their last choice.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    most: usize,
    count: u64,
    stamps: HashMap<SessionId, u64>,
    by_stamp: BTreeMap<u64, SessionId>,
}

impl Visitors {
    /// Those that a file remembers. Their choices were made before all that
    /// follow; in which order the file does not say.
    pub(crate) fn new(cx: &mut Context<Environment>) -> Visitors {
        let mut visitors = Visitors {
            most: cx.sw.pi.web.sessions as usize,
            ..Visitors::default()
        };
        let known: Vec<SessionId> = {
            let coordinator = cx.coordinator();
            let held = coordinator.require_lock();
            let entries = held.entries();
            let level =
                |name: &str| SessionId::parse(name.strip_prefix("/sw/pi/")?.split('/').next()?);
            entries
                .iter()
                .filter_map(|entry| level(entry.name))
                .collect()
        };
        for session in known {
            visitors.chose(cx, &session);
        }
        visitors
    }

    /// A session has chosen something; the oldest beyond the number goes.
    pub(crate) fn chose(&mut self, cx: &mut Context<Environment>, session: &SessionId) {
        self.count += 1;
        if let Some(before) = self.stamps.insert(session.clone(), self.count) {
            self.by_stamp.remove(&before);
        }
        self.by_stamp.insert(self.count, session.clone());
        while self.stamps.len() > self.most {
            let Some((_, oldest)) = self.by_stamp.pop_first() else {
                return;
            };
            self.stamps.remove(&oldest);
            cx.forget(layer::Session(oldest.as_ref()));
        }
    }
}
