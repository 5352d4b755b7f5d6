//! Descriptions in both languages: what they mean, and what is said of mistakes.

use std::collections::BTreeMap;

use milieu_bench::Value;
use milieu_bench::catalogue::Catalogue;
use milieu_bench::description::{Group, Language, LostHost, Order, parse, write};
use milieu_diagnostics::{Source, render};

/// Figure 3 of the Solar paper.
const FIGURE_3: &str = include_str!("data/figure3.xml");

const APPLICATIONS: &str = r#"
["solar.test.cases.SolarThroughput"]
command = ["throughput"]
parameters.iterations = "integer"
parameters.starHost = "text"
parameters.randomInstance.stringLength = "integer"

[star]
command = ["star"]
service = true
parameters = {}

[planet]
command = ["planet"]
service = true
parameters.starHost = "text"
parameters.address = { kind = ["text", "integer"], default = "0.0.0.0,80" }
"#;

fn catalogue() -> Catalogue {
    Catalogue::parse(&Source::new("applications.toml", APPLICATIONS)).unwrap()
}

fn read(language: Language, text: &str) -> Group {
    let source = Source::new("test", text);
    let read = parse(language, &source, &catalogue());
    read.unwrap_or_else(|found| panic!("{}", render(&source, &found, false)))
        .0
}

/// All that is said of a text.
fn said(language: Language, text: &str) -> String {
    let source = Source::new("test", text);
    match parse(language, &source, &catalogue()) {
        Ok((_, found)) | Err(found) => render(&source, &found, false),
    }
}

#[test]
fn the_paper_s_description_loads_as_printed() {
    let group = read(Language::Xml, FIGURE_3);
    assert_eq!(group.name, "Throughput (2 Receivers)");
    let [test] = &group.tests[..] else {
        panic!("one test");
    };
    let servers: Vec<(String, &str, &str)> = test
        .servers
        .iter()
        .flat_map(|server| {
            server
                .applications
                .iter()
                .map(move |it| (server.name(), &*it.name, &*it.kind))
        })
        .collect();
    assert_eq!(
        servers,
        [
            ("agentc24.cs.dartmouth.edu".into(), "star", "star"),
            ("agentc23.cs.dartmouth.edu".into(), "planet", "planet"),
            (
                "agentc22.cs.dartmouth.edu".into(),
                "throughput1",
                "solar.test.cases.SolarThroughput"
            ),
            (
                "agentc21.cs.dartmouth.edu".into(),
                "throughput2",
                "solar.test.cases.SolarThroughput"
            ),
        ]
    );
    let values = test.variables[0].all();
    assert_eq!(values.len(), 11);
    assert_eq!(values[10], Value::Integer(1000));
    assert_eq!(test.parameters["iterations"], Value::Integer(1000));
    assert_eq!(
        group.properties["java-version"],
        Value::Text("1.4.0 FC".into())
    );
}

#[test]
fn both_languages_say_the_same_and_are_read_as_they_are_written() {
    let toml = r#"
name = "all of it"
properties = { os = "Debian 12", note = "a \"b\" <c> & 'd'\n\te" }

[[test]]
name = "first"
repetitions = 3
warm-up = 1
order = "random"
seed = 7
timeout = 12.5
lost-host = "skip"
parameters = { starHost = "c24", "randomInstance.stringLength" = 3 }

[[test.variable]]
name = "iterations"
values = [1, 10, 100]

[[test.server]]
host = "c24"
port = 9000
parameters.address = ["c24", 81]

[[test.server.application]]
kind = "star"

[[test.server.application]]
name = "second planet"
kind = "planet"

[[test.server.application]]
name = "a"
kind = "solar.test.cases.SolarThroughput"
parameters.randomInstance.stringLength = 4

[[test]]
name = "second"
parameters.iterations = 1
parameters.starHost = "x"
variable = { name = "randomInstance.stringLength", start = 0, end = -10, step = -5 }
server = [{ application = [{ kind = "solar.test.cases.SolarThroughput" }] }]
"#;
    let group = read(Language::Toml, toml);
    let schedule = &group.tests[0].schedule;
    assert_eq!(
        (schedule.order, schedule.lost_host),
        (Order::Random, LostHost::Skip)
    );
    assert_eq!(group.tests[1].variables[0].all().len(), 3);
    let again = read(Language::Toml, &write(Language::Toml, &group));
    assert_eq!(again, group);
    // XML has texts only; otherwise it is the same.
    let xml = write(Language::Xml, &group);
    let through = read(Language::Xml, &xml);
    assert_eq!(write(Language::Xml, &through), xml);
    assert_eq!(texts(through), texts(group));
}

/// A group whose parameters are all texts.
fn texts(mut group: Group) -> Group {
    let make = |values: &mut BTreeMap<String, Value>| {
        values
            .values_mut()
            .for_each(|value| *value = Value::Text(value.to_string()));
    };
    make(&mut group.properties);
    for test in &mut group.tests {
        make(&mut test.parameters);
        for server in &mut test.servers {
            make(&mut server.parameters);
            server
                .applications
                .iter_mut()
                .for_each(|it| make(&mut it.parameters));
        }
    }
    group
}

#[test]
fn mistakes_are_shown_where_they_are() {
    // Each line: what is replaced in Figure 3, by what, and what is said.
    let cases = [
        (
            "\"iterations\"",
            "\"iteratons\"",
            "no application here takes `iteratons`",
        ),
        (
            "value=\"1000\"",
            "value=\"many\"",
            "`iterations` is a whole number",
        ),
        (
            "step=\"100\"",
            "step=\"-100\"",
            "no step leads from `start` to `end`",
        ),
        (
            "step=\"100\"",
            "step=\"0\"",
            "no step leads from `start` to `end`",
        ),
        (
            "step=\"100\"",
            "step=\"0.0000001\"",
            "a variable of 10000000001 values",
        ),
        (
            "step=\"100\"",
            "step=\"0.01\" /><var name=\"iterations\" start=\"1\" end=\"100\"",
            "the test `Solar` has 10000100 steps",
        ),
        ("step=\"100\"", "stop=\"100\"", "a variable has no `stop`"),
        (
            "step=\"100\"",
            "step=\"0.5\"",
            "`randomInstance.stringLength` is a whole number",
        ),
        (
            "stringLength\"",
            "stringLenght\"",
            "no application here takes `randomInstance.stringLenght`",
        ),
        (
            "throughput2",
            "throughput1",
            "two of the name `throughput1`: application",
        ),
        (
            "name=\"starHost\"",
            "name=\"iterations\"",
            "two of the name `iterations`: parameter",
        ),
        (
            "name=\"throughput2\"",
            "name=\"a&#10;b\"",
            "names of applications are letters",
        ),
        ("<planet />", "<comet />", "`comet` has no meaning here"),
        ("<star />", "<star>text</star>", "text has no meaning here"),
        ("test-group", "group", "this describes no group of tests"),
        ("</test>", "", "this is not well-formed XML"),
        (
            "<test-group",
            "<!DOCTYPE x [<!ENTITY a \"b\">]><test-group",
            "this is not well-formed XML",
        ),
        (
            "host=\"agentc24.cs.dartmouth.edu\"",
            "host=\"\"",
            "a host has a name",
        ),
        (
            "<star />",
            "<app name=\"x\"/>",
            "this application has no `kind`",
        ),
        (
            "name=\"Solar\"",
            "name=\"Solar\" repetitions=\"0\"",
            "`repetitions` is 1 at least",
        ),
        (
            "name=\"Solar\"",
            "name=\"Solar\" order=\"odd\"",
            "`odd` is no `order`",
        ),
        (
            "name=\"Solar\"",
            "name=\"Solar\" timeout=\"-1\"",
            "`timeout` is a number of seconds",
        ),
        (
            "name=\"Solar\"",
            "name=\"Solar\" lost-host=\"x\"",
            "`x` is no `lost-host`",
        ),
    ];
    for (from, to, expected) in cases {
        let text = FIGURE_3.replace(from, to);
        assert_ne!(text, FIGURE_3, "{from}");
        let said = said(Language::Xml, &text);
        assert!(said.contains(expected), "{from} → {to}:\n{said}");
        assert!(said.contains("--> test:"), "{said}");
    }
}

#[test]
fn mistakes_in_toml_have_places_too() {
    let cases = [
        ("x = ", "this is not TOML"),
        ("name = \"x\"", "there is no test"),
        ("test = 5", "`test` is a table"),
        ("[[test]]\nname = \"x\"", "the test `x` runs nothing"),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"stra\" }] }]",
            "nothing is known of `stra`",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"star\" }] }]\nparameters.a = [[1]]",
            "this cannot be a value",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"star\" }] }]\nparameters.a = 2026-01-01",
            "this cannot be a value",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"star\" }] }]\nvariable = { name = \"a\" }",
            "which values does `a` take?",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"star\" }] }]\n\
             variable = { name = \"a\", values = [1, 2, 1] }",
            "the value `1` is there twice",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"star\" }] }]\nparameters.a = nan",
            "this cannot be a value",
        ),
        (
            "[[test]]\nserver = [{ port = 70000, application = [{ kind = \"star\" }] }]",
            "ports end with 65535",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"planet\" }] }]",
            "`planet` needs `starHost`",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"planet\" }] }]\nparameters.starHost = \"a\"\n\
             variable = { name = \"starHost\", values = [\"a\"] }",
            "`starHost` is a variable and has a value",
        ),
        (
            "[[test]]\nserver = [{ application = [{ kind = \"planet\" }] }]\nparameters.starHost = \"a\"\n\
             parameters.address = [\"a\"]",
            "`address` is 2 values (a text, a whole number)",
        ),
    ];
    for (text, expected) in cases {
        let said = said(Language::Toml, text);
        assert!(said.contains(expected), "{text}:\n{said}");
        assert!(said.contains("--> test:"), "{said}");
    }
}

#[test]
fn deep_nesting_ends_in_an_error() {
    let deep = format!("[[test]]\nparameters{}.a = 1\n", ".x".repeat(500));
    assert!(said(Language::Toml, &deep).contains("error"));
    let deep = format!("<test-group>{}", "<test>".repeat(100_000));
    assert!(said(Language::Xml, &deep).contains("error"));
}

#[test]
fn what_follows_from_a_mistake_is_not_said_beside_it() {
    let application = "{ kind = \"solar.test.cases.SolarThroughput\" }";
    let other = "{ name = \"b\", kind = \"solar.test.cases.SolarThroughput\", \
                 parameters = { iteratons = 1 } }";
    let text = |test: &str, server: &str, applications: &str| {
        format!(
            "[[test]]\nparameters = {{ starHost = \"a\", randomInstance.stringLength = 1{test} }}\n\
             [[test.server]]\nparameters = {{ {server} }}\napplication = [{applications}]\n"
        )
    };
    // Each: where the name is mistyped, and what is needed in spite of it.
    let cases = [
        (text(", iteratons = 1", "", application), 0),
        (text("", "iteratons = 1", application), 0),
        (text("", "", other), 0),
        // One application's mistake says nothing of another's.
        (text("", "", &format!("{application}, {other}")), 1),
        (text(", other = 1", "", application), 1),
    ];
    for (text, expected) in cases {
        let said = said(Language::Toml, &text);
        assert!(said.contains("no application here takes"), "{said}");
        let needs = said.matches("needs `iterations`").count();
        assert_eq!(needs, expected, "{text}\n{said}");
        assert_eq!(said.matches("error[").count(), 1 + expected, "{said}");
    }
}
