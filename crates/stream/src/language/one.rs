//! A text that says one flow, for whoever can do nothing else with a text.

use milieu_diagnostics::{Diagnostic, Source};

use super::draft::{Argument, Draft, Use, next_place};
use super::{Language, lower, sinks};
use crate::catalogue::Catalogue;
use crate::flow::Flow;
use crate::subscription::{Delivery, Document, Subscription};

const ASKED: &str = "write one flow, as `/weather/temperature | filter value > 32`";
const ELSEWHERE: &str =
    "leave it out; a file of subscriptions may have it, and `Milieu::apply` does what that says";

impl Language {
    /// Reads one subscription, for whoever hands its events on. What such a one
    /// cannot do is a mistake: other flows beside it, `publish`, `bind`,
    /// `activate` and `set`, and a name to tell it from others.
    ///
    /// # Errors
    /// All mistakes that were found.
    pub fn subscription(
        self,
        source: &Source,
        catalogue: &Catalogue,
    ) -> Result<Subscription, Vec<Diagnostic>> {
        self.one(
            source,
            catalogue,
            &["delivery", "capacity", "overflow", "mode"],
        )
    }

    /// Reads one flow, for whoever decides alone how its events are delivered: as
    /// [`subscription`](Language::subscription), and what `subscribe` is told
    /// besides is a mistake too.
    ///
    /// # Errors
    /// All mistakes that were found.
    pub fn flow(self, source: &Source, catalogue: &Catalogue) -> Result<Flow, Vec<Diagnostic>> {
        let subscription = self.one(source, catalogue, &[])?;
        Ok(subscription.flow)
    }

    /// Writes one flow, which [`flow`](Language::flow) reads again; in
    /// [`Language::Pipeline`] it is one line.
    #[must_use]
    pub fn write_flow(self, flow: &Flow, catalogue: &Catalogue) -> String {
        let subscription = Subscription {
            name: None,
            flow: flow.clone(),
            delivery: Delivery::default(),
            mode: None,
        };
        let document = Document {
            subscriptions: vec![subscription],
            ..Document::default()
        };
        let mut text = self.write(&document, catalogue);
        text.truncate(text.trim_end().len());
        text
    }

    /// The one subscription of a text, which may be told these.
    fn one(
        self,
        source: &Source,
        catalogue: &Catalogue,
        may: &[&str],
    ) -> Result<Subscription, Vec<Diagnostic>> {
        let (draft, diagnostics) = self.draft(source, catalogue);
        let document = lower::whole(&draft, diagnostics, catalogue)?;
        let found = beside(&draft, may);
        match document.subscriptions.into_iter().next() {
            Some(subscription) if found.is_empty() => Ok(subscription),
            _ => Err(found),
        }
    }
}

/// What a text says beside one flow. It is without mistakes otherwise.
fn beside(draft: &Draft, may: &[&str]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let is_asked = |used: &&Use| used.sink.operator.text == "subscribe";
    for used in draft.uses.iter().filter(|used| !is_asked(used)) {
        let word = &used.sink.operator;
        found.push(
            Diagnostic::error(format!("one flow is asked for: leave out `{}`", word.text))
                .code("flow")
                .label(word.span, "this does something else with a flow")
                .help(ELSEWHERE),
        );
    }
    let mut asked = draft.uses.iter().filter(is_asked);
    if let Some(first) = asked.next() {
        found.extend(
            first
                .sink
                .arguments
                .iter()
                .enumerate()
                .filter_map(|(at, argument)| {
                    let name = told(&first.sink.arguments[..at], argument)?;
                    (!may.contains(&name)).then(|| {
                        Diagnostic::error(format!("one flow is asked for: leave out its `{name}`"))
                            .code("flow")
                            .label(argument.value.span(), "nobody goes by this here")
                            .help(ELSEWHERE)
                    })
                }),
        );
    } else if found.is_empty() {
        found.push(Diagnostic::error("one flow is asked for, and here is none").help(ASKED));
    }
    if let Some(second) = asked.next() {
        found.push(
            Diagnostic::error("one flow is asked for, and here are several")
                .code("flow")
                .label(second.pipeline.span, "the second one")
                .help("ask for one at a time, or let `merge` read them"),
        );
    }
    found
}

/// What an argument of `subscribe` tells, behind these others.
fn told<'a>(before: &[Argument], argument: &'a Argument) -> Option<&'a str> {
    match &argument.name {
        Some(name) => Some(&name.text),
        None => {
            let declared = sinks::get("subscribe")?.parameters;
            next_place(declared, before).map(|declared| declared.name)
        }
    }
}
