//! `merge`: several streams as one.

use milieu_transfer::Event;

use super::{Example, Page};
use crate::catalogue::{Definition, Inputs};
use crate::operator::{Fate, Operator, Output};

pub(super) static PAGE: Page = Page {
    definition: &MERGE,
    details: "\
Events go on as they are, in the order in which they come, those of failed sensors too. An event \
that comes by two ways comes twice: `deduplicate` keeps one.",
    examples: &[Example {
        shows: "all doors of a building",
        flow: "/doors/front, /doors/back | merge",
        lines: "\
1 /doors/back true
@1 true
2 /doors/front false
@2 false",
    }],
};

static MERGE: Definition = Definition {
    name: "merge",
    summary: "Lets the events of all its inputs go on as one stream.",
    inputs: Inputs::Unordered,
    parameters: &[],
    make: |_| Ok(Box::new(Merge)),
};

struct Merge;

impl Operator for Merge {
    fn event(&mut self, _: usize, _: &Event, _: &mut Output<'_>) -> Fate {
        Fate::Passed
    }

    fn is_filter(&self) -> bool {
        true
    }
}
