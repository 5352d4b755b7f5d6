//! Results come from others: whatever stands in them, no report has it as markup or
//! as a formula.

use std::collections::BTreeSet;

use crate::generated;
use milieu_bench::Value;
use milieu_bench::report::{ALL, Column, Options, get};
use milieu_bench::result::{Host, Results};
use proptest::prelude::*;
use roxmltree::Document;

/// What stands everywhere where a text can stand.
const EVIL: &str = "=HYPERLINK(\"x\")|</td></text></title><script>alert('1')</script>\n\
                    # <img src=x onerror=alert(2)> [x](javascript:alert) `a` *b*, \"; --";

/// Results all of whose texts are evil.
fn evil() -> Results {
    let quoted = EVIL
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
        .replace('\n', "&#10;");
    let point = |value: &str| {
        format!(
            "<result name=\"EVIL\"><var name=\"EVIL\" value=\"{value}EVIL\"/>\
             <var name=\"other EVIL\" value=\"EVIL\"/>\
             <value app-name=\"EVIL\" error=\"false\" value=\"1\"/>\
             <value app-name=\"EVIL\" error=\"false\" value=\"2\"/>\
             <value app-name=\"EVIL\" error=\"true\" value=\"EVIL\"/></result>"
        )
    };
    let xml = format!(
        "<test-group name=\"EVIL\"><test name=\"EVIL\">\
         <server host=\"EVIL\"><app name=\"a\" class=\"EVIL\"/></server>\
         <param name=\"EVIL\" value=\"EVIL\"/>{}{}\
         <found variable=\"EVIL\" value=\"EVIL\"><undecided>EVIL</undecided></found></test>\
         <param name=\"EVIL\" value=\"EVIL\"/><param name=\"category-axis\" value=\"EVIL\"/>\
         <run milieu=\"EVIL\" started=\"EVIL\" ended=\"EVIL\"/></test-group>",
        point(""),
        point("b")
    );
    let mut results = Results::parse(&xml.replace("EVIL", &quoted)).unwrap();
    let text = EVIL.to_owned();
    let host = Host {
        name: text.clone(),
        system: text.clone(),
        kernel: text.clone(),
        processor: text.clone(),
        ..Host::default()
    };
    results.hosts.insert(text, host);
    results
}

fn options() -> Options {
    Options {
        columns: vec![Column::new(EVIL, "1.0").unwrap()],
        baseline: Some((EVIL.into(), EVIL.into())),
        ..Options::default()
    }
}

fn report(form: &str, results: &Results) -> Option<String> {
    let report = get(form).unwrap().write(results, &options());
    Some(String::from_utf8(report.ok()?).unwrap())
}

/// The elements of a text, none of which a result has made.
fn elements(text: &str, known: &[&str]) {
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    for node in document.descendants().filter(|node| node.is_element()) {
        let tag = node.tag_name().name();
        assert!(known.contains(&tag), "{tag}");
        for attribute in node.attributes() {
            let name = attribute.name();
            let loads = ["href", "src", "style", "action"].contains(&name);
            assert!(!name.starts_with("on") && !loads, "{tag} {name}");
        }
    }
}

const SVG: [&str; 9] = [
    "svg", "title", "rect", "text", "path", "g", "defs", "pattern", "circle",
];
const HTML: [&str; 20] = [
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "table", "thead", "tbody", "tr",
    "th", "td", "p", "ul", "li", "pre", "script", "br",
];

fn check_html(html: &str) {
    let xml = html.strip_prefix("<!DOCTYPE html>").unwrap();
    elements(xml, &[&HTML[..], &SVG].concat());
    let document = Document::parse(xml).unwrap();
    let scripts = document
        .descendants()
        .filter(|node| node.has_tag_name("script"));
    assert_eq!(scripts.count(), 1);
}

/// The rows of comma-separated values, as RFC 4180 has them.
fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut is_quoted = false;
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        let cell = row.last_mut().unwrap();
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => cell.push(chars.next().unwrap()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(String::new()),
            '\n' if !is_quoted => rows.push(vec![String::new()]),
            c => cell.push(c),
        }
    }
    rows.pop();
    rows
}

fn check_csv(csv: &str) {
    let rows = rows(csv);
    for row in &rows {
        assert_eq!(row.len(), rows[0].len(), "{csv}");
        for cell in row {
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!is_formula || cell.parse::<f64>().is_ok(), "{cell}");
        }
    }
}

fn check_markdown(markdown: &str) {
    // Neither markup, nor links, nor cells of its own.
    let is_plain = |before: char, c: char| before == '\\' || !"<[`*".contains(c);
    let mut before = ' ';
    for c in markdown.chars() {
        assert!(is_plain(before, c), "{c} in\n{markdown}");
        // A backslash that is escaped escapes nothing.
        before = if before == '\\' && c == '\\' { ' ' } else { c };
    }
    let table = markdown.lines().filter(|line| line.starts_with('|'));
    let cells = |line: &str| {
        line.replace("\\\\", "")
            .replace("\\|", "")
            .matches('|')
            .count()
    };
    let counts: BTreeSet<usize> = table.map(cells).collect();
    assert!(counts.len() <= 1, "{counts:?}\n{markdown}");
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    assert_eq!(headings.count(), 1, "{markdown}");
}

#[test]
fn what_is_evil_stays_text_in_every_report() {
    let results = evil();
    assert_eq!(
        results.group.properties["category-axis"],
        Value::Text(EVIL.into())
    );
    for form in ALL {
        let form = form.name();
        if form == "line" {
            // It needs numbers, below.
            continue;
        }
        let report = report(form, &results).unwrap_or_else(|| panic!("{form}"));
        assert!(report.contains("HYPERLINK"), "{form}");
        match form {
            "html" => check_html(&report),
            "bar" | "box" => elements(&report, &SVG),
            "csv" => check_csv(&report),
            "markdown" | "ratios" => check_markdown(&report),
            "json" | "xml" => {
                assert_eq!(Results::parse(&report).unwrap().to_xml(), results.to_xml())
            }
            other => panic!("{other} is not looked at"),
        }
    }
}

#[test]
fn curves_have_no_markup_either() {
    let mut results = evil();
    let points = &mut results.tests[0].points;
    for (point, number) in points.iter_mut().zip(1..) {
        point.variables.insert(EVIL.into(), Value::Integer(number));
    }
    let line = report("line", &results).unwrap();
    assert!(line.contains("HYPERLINK"), "{line}");
    elements(&line, &SVG);
}

#[test]
fn the_page_runs_its_own_script_alone_and_loads_nothing() {
    let html = report("html", &evil()).unwrap();
    let document = Document::parse(html.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
    let find = |tag: &str| {
        document
            .descendants()
            .find(|node| node.has_tag_name(tag))
            .unwrap()
    };
    let policy = document
        .descendants()
        .find_map(|node| {
            node.attribute("content")
                .filter(|_| node.has_attribute("http-equiv"))
        })
        .unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    // The hash is that of the script, as browsers make it.
    use base64::Engine as _;
    use sha2::Digest as _;
    let script = find("script").text().unwrap();
    let hash = sha2::Sha256::digest(script);
    let hash = base64::engine::general_purpose::STANDARD.encode(hash);
    assert!(
        policy.ends_with(&format!("script-src 'sha256-{hash}'")),
        "{policy}"
    );
    assert!(!script.contains("EVIL") && script.contains("aria-sort"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_stands_in_a_result_stays_text(results in generated::results()) {
        report("html", &results).iter().for_each(|html| check_html(html));
        report("csv", &results).iter().for_each(|csv| check_csv(csv));
        report("markdown", &results).iter().for_each(|markdown| check_markdown(markdown));
        for form in ["line", "bar", "box"] {
            report(form, &results).iter().for_each(|svg| elements(svg, &SVG));
        }
    }
}
