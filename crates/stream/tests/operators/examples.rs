//! The examples of the documentation, run by the machine.

use milieu_stream::operators;
use milieu_stream::rehearsal::{Case, rehearse};

#[test]
fn examples_are_true() {
    for page in operators::pages() {
        for example in page.examples {
            let case = Case {
                title: example.shows.to_owned(),
                flow: example.flow.to_owned(),
                lines: example.lines.to_owned(),
                start: 0,
            };
            let found = rehearse(&case, &operators::catalogue());
            let found = found.unwrap_or_else(|wrong| panic!("`{}`: {wrong:?}", example.flow));
            assert_eq!(found, example.lines, "`{}`", example.flow);
        }
        assert!(!page.examples.is_empty(), "{}", page.definition.name);
    }
}
