//! What is written is read as what it was, in each language.

use std::collections::BTreeMap;

use crate::generated;
use milieu_bench::catalogue::Catalogue;
use milieu_bench::description::{Group, Language, parse, write};
use milieu_bench::report::{Options, get};
use milieu_bench::result::{Point, Results};
use milieu_diagnostics::Source;
use proptest::prelude::*;
use roxmltree::Document;

/// Figure 4 of the Solar paper, without what it omits.
const FIGURE_4: &str = include_str!("data/figure4.xml");

fn read(language: Language, text: &str) -> Group {
    let source = Source::new("written", text);
    let read = parse(language, &source, &Catalogue::default());
    read.unwrap_or_else(|found| panic!("{found:?}:\n{text}")).0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn descriptions_say_the_same_in_toml_xml_and_rust(group in generated::group()) {
        let toml = write(Language::Toml, &group);
        prop_assert_eq!(&read(Language::Toml, &toml), &group, "{}", toml);
        let xml = write(Language::Xml, &group);
        prop_assert_eq!(&read(Language::Xml, &xml), &group, "{}", xml);
        let json = serde_json::to_string(&group).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Group>(&json).unwrap(), &group);
    }

    #[test]
    fn results_in_xml_say_what_those_in_json_do(results in generated::results()) {
        let json = Results::parse(&results.to_json()).unwrap();
        prop_assert_eq!(&json, &results);
        let xml = results.to_xml();
        let read = Results::parse(&xml);
        let read = read.unwrap_or_else(|why| panic!("{why}:\n{xml}"));
        prop_assert_eq!(&read.to_xml(), &xml);
        prop_assert_eq!(&read.group, &results.group);
        prop_assert_eq!(&read.hosts, &results.hosts);
        for (read, written) in read.tests.iter().zip(&results.tests) {
            prop_assert_eq!(&read.found, &written.found);
            let (read, written) = (&read.points[..], &written.points[..]);
            prop_assert_eq!(by_values(read), by_values(written), "{}", xml);
        }
    }

    #[test]
    fn every_report_on_results_in_xml_is_that_on_those_in_json(results in generated::results()) {
        let xml = Results::parse(&results.to_xml()).unwrap();
        for form in ["csv", "markdown", "html", "line", "bar", "box"] {
            let report = |results: &Results| {
                let report = get(form).unwrap().write(results, &Options::default());
                report.map(|report| String::from_utf8(report).unwrap())
            };
            prop_assert_eq!(report(&xml), report(&results), "{}", form);
        }
    }
}

/// The numbers of each point in one order.
fn by_values(points: &[Point]) -> Vec<Point> {
    let sorted = |point: &Point| {
        let mut point = point.clone();
        let key = |it: &milieu_bench::result::PointValue| {
            (it.metric.clone(), it.application.clone(), it.round)
        };
        point.values.sort_by_key(key);
        point
    };
    points.iter().map(sorted).collect()
}

#[test]
fn the_paper_s_results_are_read_and_written_as_printed() {
    let results = Results::parse(FIGURE_4).unwrap();
    let test = &results.tests[0];
    let means: Vec<f64> = test
        .points
        .iter()
        .map(|point| point.metrics["value"].mean)
        .collect();
    // Its mean is of 294.811, its second value 294.801.
    assert!((means[0] - 292.749).abs() < 1e-9 && (means[1] - 292.1).abs() < 1e-9);
    let star = &results.group.tests[0].servers[0].applications[0];
    let ports: BTreeMap<&str, String> = star
        .parameters
        .iter()
        .map(|(name, value)| (&**name, value.to_string()))
        .collect();
    assert_eq!(
        ports,
        BTreeMap::from([
            ("control-port", "5105".into()),
            ("data-port", "4104".into())
        ])
    );
    // Written again, each element of the paper is there, numbers as it rounds them.
    let written = results.to_xml();
    let written = Document::parse(&written).unwrap();
    let printed = Document::parse(FIGURE_4).unwrap();
    for element in printed.descendants().filter(|node| node.is_element()) {
        let is_same = |other: &roxmltree::Node| {
            element.tag_name() == other.tag_name()
                && element.attributes().all(|attribute| {
                    let other = other.attribute(attribute.name()).unwrap_or_default();
                    let numbers = (attribute.value().parse::<f64>(), other.parse::<f64>());
                    match numbers {
                        (Ok(told), Ok(other)) => (told - other).abs() < 0.011,
                        _ => attribute.value() == other,
                    }
                })
        };
        assert!(written.descendants().any(|it| is_same(&it)), "{element:?}");
    }
}

#[test]
fn results_in_xml_that_are_wrong_are_refused_with_their_line() {
    let cases = [
        (
            "value=\"290.697\"",
            "value=\"much\"",
            "line 20: `much` is no `value`",
        ),
        (
            "value=\"290.697\"",
            "value=\"inf\"",
            "line 20: `inf` is no `value`",
        ),
        (
            "value=\"290.697\"",
            "valeu=\"1\"",
            "line 20: `value` lacks its `value`",
        ),
        (
            "error=\"false\" value=\"294.801\"",
            "error=\"maybe\"",
            "line 21: `maybe` is no `error`",
        ),
        (
            "<var name=\"randomInstance.stringLength\" value=\"0.0\"/>",
            "<var value=\"0.0\"/>",
            "line 19: `var` lacks its `name`",
        ),
        ("start=\"0\"", "strat=\"0\"", "line 15: "),
        (
            "app-name=\"throughput1\" error=\"false\"",
            "round=\"-1\" error=\"false\"",
            "line 20: `-1` is no `round`",
        ),
    ];
    for (from, to, message) in cases {
        let text = FIGURE_4.replacen(from, to, 1);
        assert_ne!(text, FIGURE_4, "{from}");
        let why = Results::parse(&text).unwrap_err();
        assert!(why.starts_with(message), "{to}: {why}");
    }
}

#[test]
fn values_are_what_they_read_as_unless_they_are_said_to_be_texts() {
    use milieu_bench::Value;
    let text = r#"<test-group><test>
        <server><app class="a"/></server>
        <var name="v"><value>7</value><value type="text">7</value><value> a </value>
            <value type="text"> b </value></var>
        <param name="n" value="1000"/>
        <param name="t" value="1000" type="text"/>
        <param name="l"><value>c24</value><value>8080</value></param>
    </test></test-group>"#;
    let group = read(Language::Xml, text);
    let test = &group.tests[0];
    let of = |text: &str| Value::Text(text.into());
    assert_eq!(
        test.variables[0].all(),
        [Value::Integer(7), of("7"), of("a"), of(" b ")]
    );
    assert_eq!(test.parameters["n"], Value::Integer(1000));
    assert_eq!(test.parameters["t"], of("1000"));
    assert_eq!(
        test.parameters["l"],
        Value::List(vec![of("c24"), Value::Integer(8080)])
    );
    for (from, to, message) in [
        (
            "type=\"text\"/>",
            "type=\"number\"/>",
            "`number` is no `type`",
        ),
        (
            "name=\"n\"",
            "name=\"n\" unit=\"s\"",
            "a `param` has no `unit`",
        ),
        (
            "<value>7</value>",
            "<value>7<b/></value>",
            "a `value` is a text alone",
        ),
        ("<value>c24</value>", "<var/>", "`var` has no meaning here"),
        (
            "name=\"l\"",
            "name=\"l\" value=\"x\"",
            "a `param` has one `value` or several",
        ),
    ] {
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text);
        let source = Source::new("wrong", &*wrong);
        let found = parse(Language::Xml, &source, &Catalogue::default()).unwrap_err();
        assert_eq!(found[0].message, message);
        assert!(found[0].span().is_some());
    }
}
