//! Whose choices are kept: the layer `session` has as many values as somebody
//! cares to invent, so the choices that were made longest ago are forgotten.

use crate::environment::{Environment, at, layer};
use crate::web::session::SessionId;
use milieu::Context;
use milieu::context::Invalid;
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
    /// Those that a file remembers, in the order of their last choices.
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
        let mut by_choice = Vec::new();
        for session in known {
            let chosen = cx.enter(layer::Session(session.as_ref())).sw.pi.chosen;
            by_choice.push((chosen, session));
        }
        by_choice.sort_by_key(|(chosen, _)| *chosen);
        for (chosen, session) in by_choice {
            visitors.keep(cx, &session, chosen);
        }
        visitors
    }

    /// A session has chosen something, for which its layer is entered; the oldest
    /// beyond the number goes.
    pub(crate) fn chose(
        &mut self,
        cx: &mut Context<Environment>,
        session: &SessionId,
    ) -> Result<(), Invalid> {
        self.keep(cx, session, 0);
        cx.set::<at::sw::pi::chosen>(self.count)
    }

    /// A choice comes after all others before it, with this number at least.
    fn keep(&mut self, cx: &mut Context<Environment>, session: &SessionId, number: u64) {
        self.count = (self.count + 1).max(number);
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
