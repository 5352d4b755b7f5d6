//! From contexts to threads: what the threads of a role are for is a function of
//! context.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use milieu_context::{Context, Descriptor, Environment, Policy};
use milieu_keys::Pattern;

use super::keeper::Message;
use super::mediator::name_of;
use super::roles::{Best, Bounds};
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
    /// changes nothing. What no value says is as builders, threads and
    /// [`set_role`](Mediator::set_role) have it. The region is applied last and bounds
    /// all else: a thread that is critical by its builder, or by `/pool/critical`, is
    /// lazy while the region is, and critical again when it is `fast`. What threads
    /// are set to while they run holds until the context changes the next time; what
    /// is said of stacks holds for threads that begin later.
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
        let rule = move |cx: &Context<E, P>, mut bounds| {
            for said in &named {
                let text = cx.text(said.pattern).unwrap_or_default();
                (said.read)(&mut bounds, text);
            }
            bounds
        };
        let news = move |bounds| News::Bounds(role, bounds);
        self.follow_with(cx, rule, Bounds::default(), news);
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
        // The role is the one that follows, whatever the function says.
        let rule = move |cx: &Context<E, P>, before| rule(cx, before).with_role(role);
        self.follow_with(
            cx,
            rule,
            before.unwrap_or(Attributes::of(role)),
            News::Whole,
        );
    }

    fn follow_with<E: Environment, P: Policy, T: Copy + PartialEq + Send + 'static>(
        &self,
        cx: Context<E, P>,
        rule: impl Fn(&Context<E, P>, T) -> T + Send + 'static,
        last: T,
        news: impl Fn(T) -> News + Send + 'static,
    ) {
        let followed = Followed {
            cx,
            rule,
            last,
            news,
            is_new: true,
        };
        self.ask(Message::Follow(Box::new(followed)));
        self.settle();
    }
}

/// What a context says by now.
pub(super) enum News {
    /// What all threads of a role are for.
    Whole(Attributes),
    /// What bounds the threads of a role.
    Bounds(Role, Bounds),
}

/// A context that a role follows.
pub(super) trait Follow: Send {
    /// When there is something to synchronize.
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
    /// What it says of the threads, if that is something else than before.
    fn news(&mut self) -> Option<News>;
}

struct Followed<E: Environment, P: Policy, R, T, N> {
    cx: Context<E, P>,
    rule: R,
    last: T,
    news: N,
    is_new: bool,
}

impl<E, P, R, T, N> Follow for Followed<E, P, R, T, N>
where
    E: Environment,
    P: Policy,
    R: Fn(&Context<E, P>, T) -> T + Send,
    T: Copy + PartialEq + Send,
    N: Fn(T) -> News + Send,
{
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(self.cx.changed())
    }

    fn news(&mut self) -> Option<News> {
        let is_first = std::mem::take(&mut self.is_new);
        if !is_first && !self.cx.has_news() {
            return None;
        }
        self.cx.sync();
        let now = (self.rule)(&self.cx, self.last);
        let before = std::mem::replace(&mut self.last, now);
        (is_first || now != before).then(|| (self.news)(now))
    }
}

/// A value that says something of threads.
struct Said {
    pattern: &'static str,
    /// Reads what it says; what says nothing of the kind changes nothing.
    read: fn(&mut Bounds, &str),
}

fn said(value: &Descriptor, role: Role) -> Option<Said> {
    let levels = Pattern::parse(value.pattern).ok()?.identifiers();
    let (what, name) = levels.split_last()?;
    if !name.iter().eq(role.as_str().split('/')) {
        return None;
    }
    let read: fn(&mut Bounds, &str) = match what.as_str() {
        "critical" => |it, text| match text {
            "true" | "1" | "yes" | "on" | "enabled" => it.is_critical = Some(true),
            "false" | "0" | "no" | "off" | "disabled" => it.is_critical = Some(false),
            _ => {}
        },
        "priority" => |it, text| {
            let priority = text.parse().ok().and_then(|nice| Priority::new(nice).ok());
            it.priority = priority.or(it.priority);
        },
        "region" => |it, text| match text {
            "fast" => it.region = Some(Best::Fast),
            "own" => it.region = Some(Best::Own),
            "lazy" => it.region = Some(Best::Lazy),
            _ => {}
        },
        "stack" => |it, text| match text.parse() {
            Ok(0) => it.stack = Some(None),
            Ok(bytes) => it.stack = StackSize::of_bytes(bytes).ok().map(Some).or(it.stack),
            Err(_) => {}
        },
        _ => return None,
    };
    Some(Said {
        pattern: value.pattern,
        read,
    })
}
