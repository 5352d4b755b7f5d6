//! Texts that say one flow, for whoever can do nothing else with a text.

use crate::support::catalogue;
use milieu_diagnostics::{Source, render};
use milieu_stream::language::Language;
use milieu_stream::rehearsal::{Case, Wrong, rehearse};
use milieu_stream::{Delivery, Flow};

fn source(text: &str) -> Source {
    Source::new("flow", text)
}

/// What is wrong with a text that is to say one subscription.
fn wrong(text: &str) -> String {
    let found = Language::Pipeline.subscription(&source(text), &catalogue());
    render(&source(text), &found.expect_err(text), false)
}

#[test]
fn what_a_subscriber_cannot_do_is_a_mistake_with_its_place() {
    assert_eq!(
        wrong("/t | publish /u"),
        "error[flow]: one flow is asked for: leave out `publish`\n \
         --> flow:1:6\n  \
         |\n\
         1 | /t | publish /u\n  \
         |      ^^^^^^^ this does something else with a flow\n  \
         |\n  \
         = help: leave it out; a file of subscriptions may have it, and `Milieu::apply` does \
         what that says\n"
    );
    for (text, message, place) in [
        ("/t; /u | publish /v", "leave out `publish`", "1:10"),
        ("/t; /u | bind /v", "leave out `bind`", "1:10"),
        ("/t; /u | activate low", "leave out `activate`", "1:10"),
        ("/t; /u | set /v", "leave out `set`", "1:10"),
        ("/t; /u", "here are several", "1:5"),
        ("/t | subscribe name=heat", "leave out its `name`", "1:21"),
    ] {
        let said = wrong(text);
        assert!(said.contains(message), "{text}: {said}");
        assert!(said.contains(&format!("flow:{place}\n")), "{text}: {said}");
        assert_eq!(said.matches("error").count(), 1, "{text}: {said}");
    }
    for text in ["", "let hot = /t | filter value > 3"] {
        assert!(wrong(text).contains("here is none"), "{text}");
    }
    // What is no text of the language is said as ever, and nothing besides.
    let said = wrong("/t | fliter value > 3 | publish /u");
    assert!(
        said.contains("`filter`") && !said.contains("leave out"),
        "{said}"
    );
}

#[test]
fn a_subscription_has_its_delivery_and_mode_and_a_flow_has_neither() {
    let text = "let hot = /t | filter value > 3; hot | subscribe latest mode=json";
    let read = Language::Pipeline.subscription(&source(text), &catalogue());
    let read = read.expect("one subscription");
    assert_eq!(
        (read.delivery, read.mode.as_deref()),
        (Delivery::Latest, Some("json"))
    );
    let refused = Language::Pipeline.flow(&source(text), &catalogue());
    let refused = refused.expect_err("it has both");
    let messages = refused.iter().map(|found| &*found.message);
    assert_eq!(
        messages.collect::<Vec<_>>(),
        [
            "one flow is asked for: leave out its `delivery`",
            "one flow is asked for: leave out its `mode`",
        ]
    );
    for text in ["/t | subscribe capacity=3", "/t | subscribe overflow=close"] {
        assert!(
            Language::Pipeline
                .subscription(&source(text), &catalogue())
                .is_ok()
        );
        assert!(
            Language::Pipeline
                .flow(&source(text), &catalogue())
                .is_err()
        );
    }
}

#[test]
fn every_language_says_one_flow() {
    let toml = "[[subscribe]]\nfrom = \"/t\"\n\n[[publish]]\nfrom = \"/t\"\nname = \"/u\"\n";
    let xml = "<subscriptions xmlns=\"urn:milieu:subscriptions:1\">\
               <subscribe><stream name=\"/t\"/></subscribe>\
               <publish name=\"/u\"><stream name=\"/t\"/></publish>\
               </subscriptions>";
    for (language, text) in [(Language::Toml, toml), (Language::Xml, xml)] {
        assert!(
            language.parse(&source(text), &catalogue()).is_ok(),
            "{text}"
        );
        let found = language.flow(&source(text), &catalogue()).expect_err(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("`publish`") && found[0].span().is_some());
    }
}

#[test]
fn what_is_written_is_read_again() {
    let texts = [
        "/t",
        "/t | filter value > 3 | aggregate mean 10m",
        "/t, (/u | change) | merge | filter name.matches(\"a  b\\\\n\")",
    ];
    for text in texts {
        let read = |language: Language, text: &str| -> Flow {
            let read = language.flow(&source(text), &catalogue());
            read.unwrap_or_else(|found| panic!("{}", render(&source(text), &found, false)))
        };
        let flow = read(Language::Pipeline, text);
        for language in Language::ALL {
            let written = language.write_flow(&flow, &catalogue());
            assert_eq!(read(language, &written), flow, "{written}");
            let is_line = !written.contains('\n');
            assert!(is_line || language != Language::Pipeline, "{written}");
        }
    }
}

#[test]
fn a_rehearsal_says_what_it_does_not_do() {
    for flow in [
        "/t | publish /u",
        "/t | subscribe latest",
        "/t; /t | publish /u",
    ] {
        let case = Case {
            flow: flow.to_owned(),
            title: String::new(),
            lines: String::new(),
            start: 0,
        };
        let Err(Wrong::Flow(found)) = rehearse(&case, &catalogue()) else {
            panic!("{flow}");
        };
        assert!(found[0].message.contains("leave out"), "{found:?}");
    }
}
