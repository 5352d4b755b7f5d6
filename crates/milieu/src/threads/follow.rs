//! From contexts to threads: what the threads of a role are for is a function of
//! context.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use milieu_context::{Context, Descriptor, Environment, Policy};
use milieu_keys::Pattern;

use super::keeper::Message;
use super::mediator::name_of;
use super::{Attributes, Mediator, Priority, Role, StackSize};
use crate::Error;

/// An environment has no value that says what threads of a role are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoValues(pub Role);

impl fmt::Display for NoValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name_of(self.0);
        write!(
            f,
            "no value of this environment says what the threads of {name} are for; have it one \
             of {name}/critical, {name}/priority, {name}/region, {name}/stack, with placeholders \
             where it depends on layers: {name}/%battery%/region"
        )
    }
}

impl std::error::Error for NoValues {}

impl Mediator {
    /// Lets the threads of a role follow a context: what they are for is what the
    /// values below its name say there, now and whenever a layer or a value
    /// changes. Levels that are placeholders do not count: `/pool/%battery%/region`
    /// is the region of the role `pool`. A text that says nothing of the kind
    /// changes nothing. What builders and threads say of themselves holds until the
    /// context changes the next time; of stacks, for threads that begin later.
    ///
    /// # Errors
    /// If the text is no role, or no value of the environment is below it.
    pub fn follow<E: Environment, P: Policy>(
        &self,
        role: &str,
        cx: Context<E, P>,
    ) -> Result<(), Error> {
        let role = Role::new(role)?;
        let named: Vec<Said> = E::VALUES.iter().filter_map(|it| said(it, role)).collect();
        if named.is_empty() {
            return Err(NoValues(role).into());
        }
        self.follow_by(role, cx, move |cx, before| {
            named.iter().fold(before, |attributes, said| {
                let text = cx.text(said.pattern).unwrap_or_default();
                (said.apply)(attributes, text)
            })
        });
        Ok(())
    }

    /// As [`follow`](Mediator::follow), by a function from the context to what the
    /// threads of a role are for. It is called in the mediator's thread whenever the
    /// context has changed, with what they were for before.
    pub fn follow_by<E: Environment, P: Policy>(
        &self,
        role: Role,
        cx: Context<E, P>,
        rule: impl Fn(&Context<E, P>, Attributes) -> Attributes + Send + 'static,
    ) {
        let before = self.shared().of_role(role);
        let followed = Followed {
            cx,
            rule,
            last: before.unwrap_or(Attributes::of(role)),
            is_new: true,
        };
        self.ask(Message::Follow(Box::new(followed)));
        self.settle();
    }
}

/// A context that a role follows.
pub(super) trait Follow: Send {
    /// When there is something to synchronize.
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
    /// What the threads are for, if that is something else than before.
    fn news(&mut self) -> Option<Attributes>;
}

struct Followed<E: Environment, P: Policy, R> {
    cx: Context<E, P>,
    rule: R,
    last: Attributes,
    is_new: bool,
}

impl<E, P, R> Follow for Followed<E, P, R>
where
    E: Environment,
    P: Policy,
    R: Fn(&Context<E, P>, Attributes) -> Attributes + Send,
{
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(self.cx.changed())
    }

    fn news(&mut self) -> Option<Attributes> {
        let is_first = std::mem::take(&mut self.is_new);
        if !is_first && !self.cx.has_news() {
            return None;
        }
        self.cx.sync();
        // The role is the one that follows, whatever the function says.
        let now = (self.rule)(&self.cx, self.last).with_role(self.last.role());
        let before = std::mem::replace(&mut self.last, now);
        (is_first || now != before).then_some(now)
    }
}

/// A value that says something of threads.
struct Said {
    pattern: &'static str,
    apply: fn(Attributes, &str) -> Attributes,
}

fn said(value: &Descriptor, role: Role) -> Option<Said> {
    let levels = Pattern::parse(value.pattern).ok()?.identifiers();
    let (what, name) = levels.split_last()?;
    if !name.iter().eq(role.as_str().split('/')) {
        return None;
    }
    let apply: fn(Attributes, &str) -> Attributes = match what.as_str() {
        "critical" => |it, text| match text {
            "true" | "1" | "yes" | "on" | "enabled" => it.time_critical(it.priority()),
            "false" | "0" | "no" | "off" | "disabled" => it.not_critical(),
            _ => it,
        },
        "priority" => |it, text| {
            let priority = text.parse().ok().and_then(|nice| Priority::new(nice).ok());
            priority.map_or(it, |priority| it.with_priority(priority))
        },
        "region" => |it, text| match text {
            "fast" => it.not_lazy(),
            "own" => it.not_lazy().not_critical(),
            "lazy" => it.lazy(),
            _ => it,
        },
        "stack" => |it, text| match text.parse() {
            Ok(0) => it.without_stack(),
            Ok(bytes) => StackSize::of_bytes(bytes).map_or(it, |size| it.with_stack(size)),
            Err(_) => it,
        },
        _ => return None,
    };
    Some(Said {
        pattern: value.pattern,
        apply,
    })
}
