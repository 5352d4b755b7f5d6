//! Names at which nothing stands: whoever waits for their events is told.

use milieu::diagnostics::Source;
use milieu::stream::language::Language;
use milieu::stream::names::{LayerValues, Query};
use milieu::stream::{Flow, operators};

use crate::nearest::nearest;

/// The names that a flow reads, as far as it can be understood here: a running
/// program may know more functions. Those that depend on layers are left out, as
/// something may stand there under others.
pub(super) fn names(flow: &str) -> Vec<String> {
    let source = Source::new("flow", flow);
    let subscription = Language::Pipeline.subscription(&source, &operators::catalogue());
    let mut names = Vec::new();
    if let Ok(subscription) = subscription {
        subscription.flow.visit(&mut |flow| match flow {
            Flow::Stream(name) if !name.contains('%') => names.push(name.to_string()),
            _ => {}
        });
    }
    names
}

/// Says of a name that nothing stands there, and what was perhaps meant.
pub(super) fn say<'a>(name: &str, known: impl Iterator<Item = &'a str>) {
    let meant = match nearest(name, known).first() {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    eprintln!("note: nothing stands at `{name}` now{meant}");
}

/// Says so of all names that a flow reads, where only these have events.
pub(super) fn say_all(flow: &str, known: &[&str]) {
    for name in names(flow) {
        let Ok(query) = Query::parse(&name) else {
            continue;
        };
        let query = query.resolve(&LayerValues::default());
        let is_unheard = query.is_some_and(|query| !known.iter().any(|it| query.matches(it)));
        if is_unheard {
            say(&name, known.iter().copied());
        }
    }
}
