//! Names that follow a flow: the machine's part, which subscribes, rebinds and
//! refuses.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::naming::ReaderId;
use super::node::NodeId;
use super::share::Planned;
use super::{Machine, SubscriptionId};
use crate::flow::Flow;
use crate::names::{Binding, Query, Refusal, Rights, TARGETS_MAX, Why};
use crate::operator::Now;
use crate::receiver::Receiver;

/// A name that follows a flow, as long as the machine is not told to
/// [`unbind`](Machine::unbind) it.
pub(crate) struct Following {
    name: Arc<str>,
    subscription: SubscriptionId,
    /// Those of its author.
    rights: Arc<Rights>,
}

impl Machine {
    /// Subscribes what rebinds a name to a flow. The name stands for nothing
    /// until that does it for the first time.
    pub(crate) fn bind_flow(
        &mut self,
        now: &Now<'_>,
        name: &str,
        planned: Planned,
        reader: ReaderId,
        application: Arc<str>,
        receiver: Box<dyn Receiver>,
    ) -> Result<Following, Refusal> {
        let rights = self.readers.get(&reader).map(|reader| &reader.rights);
        let rights = rights.map(Arc::clone).unwrap_or_default();
        let name = crate::names::name(name)?;
        if !rights.publish.allows(name.as_str()) {
            let message = format!("nothing may be put at `{}`", name.as_str());
            return self.tree.counted(Err(Refusal {
                why: Why::Right,
                span: None,
                message,
                help: "ask for the right to publish there".to_owned(),
            }));
        }
        self.vacant(name.as_str())?;
        let subscription = self.subscribe(now, planned, reader, application, receiver);
        let name: Arc<str> = name.as_str().into();
        let following = Following {
            name,
            subscription,
            rights,
        };
        let bound = self.may_follow(&following);
        let bound = bound.and_then(|()| self.put(now, &following.name, Binding::new([])?));
        match bound {
            Ok(()) => Ok(following),
            Err(refusal) => {
                self.unsubscribe(subscription);
                Err(refusal)
            }
        }
    }

    /// Lets the name stand for these. What is no name, may not be read by the
    /// author or leads to the name itself is left out, and told; the others hold.
    pub(crate) fn rebind(
        &mut self,
        now: &Now<'_>,
        following: &Following,
        names: &[Arc<str>],
    ) -> Result<(), Refusal> {
        if !self.subscribers.contains_key(&following.subscription.0) {
            return Ok(());
        }
        self.may_follow(following)?;
        let mut wrong = Ok(());
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            match self.target(following, name) {
                Ok(target) => targets.push(target),
                refused => wrong = self.tree.counted(refused.map(drop)),
            }
        }
        if targets.len() > TARGETS_MAX {
            targets.truncate(TARGETS_MAX);
            wrong = self.tree.counted(Err(Refusal {
                why: Why::Size,
                span: None,
                message: format!("`{}` is to stand for too many names", following.name),
                help: format!("let it stand for {TARGETS_MAX} at most: the others are left out"),
            }));
        }
        self.put(now, &following.name, Binding::new(targets)?)?;
        wrong
    }

    /// Takes the name away again.
    pub(crate) fn unbind(&mut self, now: &Now<'_>, following: &Following) {
        drop(self.unsubscribe(following.subscription));
        self.remove(now, &following.name);
    }

    /// What an event said, as what the name may stand for.
    fn target(&self, following: &Following, name: &str) -> Result<Query, Refusal> {
        let target = Query::parse(name)?;
        if !target.is_exact() || !target.conditions().is_empty() {
            return Err(Refusal {
                why: Why::Text,
                span: None,
                message: format!("`{name}` is not one name"),
                help: "say names without wildcards, placeholders and attributes".to_owned(),
            });
        }
        following.rights.read.check(&target)?;
        let help = "leave it out";
        self.tree.check_circle(&following.name, [&target], help)?;
        Ok(target)
    }

    /// Refuses a flow that reads the name that follows it, by whatever way.
    fn may_follow(&mut self, following: &Following) -> Result<(), Refusal> {
        let node = self.subscribers.get(&following.subscription.0);
        let queries = node.map(|node| self.reads(*node)).unwrap_or_default();
        let help = "let it follow a flow that does not read it";
        let checked = self.tree.check_circle(&following.name, &queries, help);
        self.tree.counted(checked)
    }

    /// The names that a node reads, and those that what is published there reads.
    fn reads(&self, node: NodeId) -> Vec<Query> {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![node]);
        let mut queries = Vec::new();
        while let Some(id) = todo.pop() {
            let Some(node) = self.nodes.get(id).filter(|_| seen.insert(id)) else {
                continue;
            };
            if let Some(Flow::Stream(name)) = &node.more.flow {
                queries.extend(Query::parse(name));
            }
            todo.extend(&node.more.inputs);
        }
        queries
    }
}
