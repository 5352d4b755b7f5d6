//! What is said of roles, and what each thread says of itself: two things, so that what a
//! context takes from a thread comes back when the context lets go.

use std::collections::HashMap;

use super::{Attributes, Priority, Role, StackSize};

/// What a context says of the threads of a role. What it leaves open is theirs to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub is_critical: Option<bool>,
    pub priority: Option<Priority>,
    /// A size of their own, or the usual one.
    pub stack: Option<Option<StackSize>>,
    pub region: Option<Best>,
}

/// The best region that threads may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Best {
    Fast,
    Own,
    Lazy,
}

impl Bounds {
    /// What a thread is for that says this of itself. The region comes last, as it
    /// bounds all else.
    pub fn of(&self, own: Attributes) -> Attributes {
        let mut now = own;
        if let Some(priority) = self.priority {
            now = now.with_priority(priority);
        }
        now = match self.is_critical {
            Some(true) => now.time_critical(now.priority()),
            Some(false) => now.not_critical(),
            None => now,
        };
        now = match self.stack {
            Some(Some(size)) => now.with_stack(size),
            Some(None) => now.without_stack(),
            None => now,
        };
        match self.region {
            Some(Best::Lazy) => now.lazy(),
            Some(Best::Own) => now.not_critical(),
            Some(Best::Fast) | None => now,
        }
    }
}

/// What was said of a role as a whole.
#[derive(Clone, Copy, Default)]
struct Said {
    /// In the place of what builders say.
    whole: Option<Attributes>,
    bounds: Bounds,
}

/// All that was said.
#[derive(Default)]
pub(super) struct Roles {
    said: HashMap<Role, Said>,
    /// What threads say that are listed or about to be, by identity.
    own: HashMap<u64, Attributes>,
}

impl Roles {
    /// What threads of a role are for whose builders say nothing; none if nothing was said
    /// of the role either.
    pub fn of_role(&self, role: Role) -> Option<Attributes> {
        let said = self.said.get(&role)?;
        Some(said.bounds.of(said.whole.unwrap_or(Attributes::of(role))))
    }

    /// What a thread says of itself and what it is for, by what its builder says.
    pub fn of_builder(&self, says: Attributes) -> (Attributes, Attributes) {
        let said = self.said.get(&says.role()).copied().unwrap_or_default();
        let own = said.whole.unwrap_or(says);
        (own, said.bounds.of(own))
    }

    /// A thread says this of itself, and is about to be listed if it is not.
    pub fn says(&mut self, identity: u64, own: Attributes) {
        self.own.insert(identity, own);
    }

    /// A thread is not listed any more.
    pub fn ended(&mut self, identity: u64) {
        self.own.remove(&identity);
    }

    /// Somebody says of all threads of a role what they are for, in the place of all that
    /// was said before.
    pub fn set(&mut self, attributes: Attributes) {
        let said = Said {
            whole: Some(attributes),
            bounds: Bounds::default(),
        };
        self.said.insert(attributes.role(), said);
        let of_role = |it: &&mut Attributes| it.role() == attributes.role();
        for own in self.own.values_mut().filter(of_role) {
            *own = attributes;
        }
    }

    /// A context says something of a role.
    pub fn bound(&mut self, role: Role, bounds: Bounds) {
        self.said.entry(role).or_default().bounds = bounds;
    }

    /// What a thread is for by what the context says now.
    pub fn bounded(&self, identity: u64, listed: Attributes) -> Attributes {
        let role = listed.role();
        let bounds = self.said.get(&role).map(|it| it.bounds);
        // Whom somebody else has begun says what is listed.
        let own = self.own.get(&identity).filter(|it| it.role() == role);
        bounds.unwrap_or_default().of(*own.unwrap_or(&listed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role() -> Role {
        Role::new("pool").expect("a role")
    }

    fn critical(nice: i32) -> Attributes {
        Attributes::of(role()).time_critical(Priority::new(nice).expect("a nice value"))
    }

    fn region(best: Best) -> Bounds {
        Bounds {
            region: Some(best),
            ..Bounds::default()
        }
    }

    #[test]
    fn a_region_is_the_best_that_a_thread_may_be_in() {
        let plain = Attributes::of(role());
        for (says, best, is_critical, is_lazy) in [
            (critical(-3), Best::Fast, true, false),
            (critical(-3), Best::Own, false, false),
            (critical(-3), Best::Lazy, false, true),
            (plain, Best::Fast, false, false),
            (plain, Best::Own, false, false),
            (plain, Best::Lazy, false, true),
            (plain.lazy(), Best::Fast, false, true),
            (plain.lazy(), Best::Own, false, true),
        ] {
            let now = region(best).of(says);
            let found = (now.is_time_critical(), now.is_lazy());
            assert_eq!(found, (is_critical, is_lazy), "{says:?} {best:?}");
            assert_eq!(now.priority(), says.priority());
        }
        let lazy_and_critical = Bounds {
            is_critical: Some(true),
            ..region(Best::Lazy)
        };
        assert!(lazy_and_critical.of(plain).is_lazy());
    }

    #[test]
    fn what_a_region_takes_comes_back() {
        let mut roles = Roles::default();
        let (own, now) = roles.of_builder(critical(-3));
        assert_eq!((own, now), (critical(-3), critical(-3)));
        roles.says(1, own);
        roles.bound(role(), region(Best::Lazy));
        let lazy = roles.bounded(1, now);
        assert!(lazy.is_lazy() && !lazy.is_time_critical());
        // Also from who begins meanwhile.
        let (own, late) = roles.of_builder(critical(4));
        assert_eq!((own, late.is_lazy()), (critical(4), true));
        roles.says(2, own);
        roles.bound(role(), region(Best::Fast));
        assert_eq!(roles.bounded(1, lazy), critical(-3));
        assert_eq!(roles.bounded(2, late), critical(4));
        // Who has ended says nothing any more.
        roles.ended(2);
        assert!(roles.bounded(2, late).is_lazy());
    }

    #[test]
    fn what_is_said_of_all_counts_in_the_place_of_builders() {
        let mut roles = Roles::default();
        let plain = Attributes::of(role());
        assert_eq!(roles.of_role(role()), None);
        roles.says(1, plain);
        roles.bound(role(), region(Best::Lazy));
        assert_eq!(roles.of_role(role()), Some(plain.lazy()));
        roles.set(critical(2));
        assert_eq!(roles.of_role(role()), Some(critical(2)));
        assert_eq!(roles.of_builder(plain), (critical(2), critical(2)));
        roles.bound(role(), region(Best::Own));
        assert_eq!(roles.bounded(1, plain), critical(2).not_critical());
    }
}
