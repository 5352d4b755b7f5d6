//! Charts: what stands where.

use std::collections::BTreeSet;

use milieu_bench::report::{Column, Options, Picture, Scale, Statistic, choose, get};
use milieu_bench::result::Results;
use roxmltree::{Document, Node};

/// Figure 4 of the Solar paper, without what it omits.
const FIGURE_4: &str = include_str!("data/figure4.xml");

/// What the applications of one step measured.
struct Measured<'a> {
    variables: Vec<(&'a str, String)>,
    metric: &'a str,
    values: Vec<f64>,
}

/// Results of tests, in the paper's XML.
fn results(tests: &[(&str, Vec<Measured>)]) -> Results {
    let mut xml = String::from("<test-group name=\"Throughput\">");
    for (name, measured) in tests {
        xml += &format!("<test name=\"{name}\"><server><app name=\"a\" class=\"a\"/></server>");
        for Measured {
            variables,
            metric,
            values,
        } in measured
        {
            xml += &format!("<result name=\"{metric}\">");
            for (name, value) in variables {
                xml += &format!("<var name=\"{name}\" value=\"{value}\"/>");
            }
            for value in values {
                xml += &format!("<value app-name=\"a\" error=\"false\" value=\"{value:?}\"/>");
            }
            xml += "</result>";
        }
        xml += "</test>";
    }
    Results::parse(&(xml + "</test-group>")).unwrap()
}

/// A curve for each of these modes, measured three times at each size.
fn curves(modes: &[&str], sizes: &[u32]) -> Results {
    let mut measured = Vec::new();
    for (index, mode) in (1_u32..).zip(modes) {
        for size in sizes {
            let value = f64::from(index * 100 + size / 10);
            measured.push(Measured {
                variables: vec![("mode", (*mode).to_owned()), ("size", size.to_string())],
                metric: "rate",
                values: vec![value * 0.98, value, value * 1.03],
            });
        }
    }
    results(&[("test", measured)])
}

fn svg(form: &str, results: &Results, options: &Options) -> String {
    let svg = get(form).unwrap().write(results, options);
    String::from_utf8(svg.unwrap()).unwrap()
}

fn number(node: &Node, attribute: &str) -> f64 {
    node.attribute(attribute).unwrap().parse().unwrap()
}

fn texts<'a>(document: &'a Document) -> Vec<&'a str> {
    let all = document.descendants();
    all.filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect()
}

#[test]
fn the_paper_s_results_give_its_chart() {
    let results = Results::parse(FIGURE_4).unwrap();
    let svg = svg("line", &results, &Options::default());
    let document = Document::parse(&svg).unwrap();
    let texts = texts(&document);
    for text in [
        "Throughput (2 Receivers)",
        "Message Length (characters)",
        "Throughput (messages / second)",
        "0",
        "100",
        "300",
    ] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    // One curve with two marks; applications of one round give no interval.
    let curves = document
        .descendants()
        .filter(|node| node.attribute("stroke-dasharray").is_some());
    assert_eq!(curves.count(), 1);
}

#[test]
fn lines_differ_in_colour_dash_and_mark_and_their_names_stand_below_all() {
    let modes = [
        "byte",
        "string",
        "object",
        "a name that is rather long",
        "e",
        "f",
    ];
    let results = curves(&modes, &[0, 500, 1000]);
    let svg = svg("line", &results, &Options::default());
    let document = Document::parse(&svg).unwrap();
    let strokes: BTreeSet<(&str, &str)> = document
        .descendants()
        .filter_map(|node| {
            Some((
                node.attribute("stroke")?,
                node.attribute("stroke-dasharray")?,
            ))
        })
        .collect();
    assert_eq!(strokes.len(), modes.len(), "{strokes:?}");
    let dashes: BTreeSet<&str> = strokes.iter().map(|(_, dash)| *dash).collect();
    assert!(dashes.len() >= 5, "{dashes:?}");
    // The curves' panel moves within the picture; the names stand below it.
    let lowest = document
        .descendants()
        .find(|node| node.text() == Some("size"));
    let panel = lowest
        .unwrap()
        .parent()
        .unwrap()
        .attribute("transform")
        .unwrap();
    let down: f64 = panel.split([' ', ')']).nth(1).unwrap().parse().unwrap();
    let end = down + number(&lowest.unwrap(), "y");
    for mode in modes {
        let name = document
            .descendants()
            .find(|node| node.text() == Some(mode));
        assert!(number(&name.unwrap(), "y") > end, "{mode}");
    }
    // Each of three values at 18 points has an interval.
    assert_eq!(svg.matches(" m-2.5 0 h5 ").count(), 18);
}

#[test]
fn sizes_are_those_that_are_asked_for() {
    let results = curves(&["a", "b", "c", "d"], &[1, 2]);
    for (width, panels, columns) in [
        (84.0, None, 1),
        (170.0, Some("mode"), 3),
        (60.0, Some("mode"), 1),
    ] {
        let options = Options {
            panels: panels.map(str::to_owned),
            picture: Picture {
                width_mm: Some(width),
                ..Picture::default()
            },
            ..Options::default()
        };
        let svg = svg("line", &results, &options);
        let document = Document::parse(&svg).unwrap();
        let root = document.root_element();
        assert_eq!(root.attribute("width"), Some(&*format!("{width:.2}mm")));
        let lefts: BTreeSet<&str> = document
            .descendants()
            .filter_map(|node| node.attribute("transform")?.strip_prefix("translate("))
            .filter_map(|place| place.split(' ').next())
            .collect();
        assert_eq!(lefts.len(), columns, "{lefts:?}");
    }
}

#[test]
fn panels_of_one_thing_have_one_scale() {
    let results = curves(&["a", "b"], &[0, 1000]);
    let options = Options {
        panels: Some("mode".into()),
        ..Options::default()
    };
    let svg = svg("line", &results, &options);
    let document = Document::parse(&svg).unwrap();
    let texts = texts(&document);
    // Up to 300 in both, although one of them ends at 200.
    assert_eq!(
        texts.iter().filter(|text| **text == "300").count(),
        2,
        "{texts:?}"
    );
    assert!(texts.contains(&"mode = a") && texts.contains(&"mode = b"));
}

#[test]
fn several_metrics_have_panels_and_names_of_their_own() {
    let measured = |metric, factor: f64| {
        [1, 2, 3].map(|n: u32| Measured {
            variables: vec![("n", n.to_string())],
            metric,
            values: vec![f64::from(n) * factor, f64::from(n) * factor * 1.1],
        })
    };
    let all = measured("rate", 1e6)
        .into_iter()
        .chain(measured("latency", 1e-5));
    let mut results = results(&[("test", all.collect())]);
    let name = "value-axis.latency".to_owned();
    results
        .group
        .properties
        .insert(name, milieu_bench::Value::Text("Latency (s)".into()));
    let svg = svg("bar", &results, &Options::default());
    let document = Document::parse(&svg).unwrap();
    let texts = texts(&document);
    for text in ["rate", "Latency (s)", "×10⁶", "×10⁻⁶"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

#[test]
fn logarithmic_axes_have_powers_and_refuse_what_has_no_place() {
    let sizes = [1, 10, 100, 1000, 10000];
    let log = |x_scale, y_scale| Options {
        picture: Picture {
            x_scale,
            y_scale,
            ..Picture::default()
        },
        ..Options::default()
    };
    let (linear, logarithmic) = (Scale::Linear, Scale::Log);
    let svg = svg(
        "line",
        &curves(&["a"], &sizes),
        &log(logarithmic, logarithmic),
    );
    let document = Document::parse(&svg).unwrap();
    // Each power is as far from the next.
    let places: Vec<f64> = sizes
        .iter()
        .map(|size| {
            let size = size.to_string();
            let label = document.descendants().find(|node| {
                node.text() == Some(&size) && node.attribute("text-anchor") == Some("middle")
            });
            number(&label.unwrap(), "x")
        })
        .collect();
    let first = places[1] - places[0];
    assert!(
        places
            .windows(2)
            .all(|two| (two[1] - two[0] - first).abs() < 0.2),
        "{places:?}"
    );
    let refused = |form: &str, results: &Results, options: &Options| {
        get(form).unwrap().write(results, options).unwrap_err()
    };
    let zero = curves(&["a"], &[0, 10]);
    assert!(refused("line", &zero, &log(logarithmic, linear)).contains("only numbers above 0"));
    let below = results(&[(
        "t",
        vec![Measured {
            variables: vec![("n", "1".into())],
            metric: "m",
            values: vec![-1.0],
        }],
    )]);
    for form in ["line", "bar", "box"] {
        let why = refused(form, &below, &log(linear, logarithmic));
        assert!(why.contains("only numbers above 0"), "{why}");
    }
    let why = refused("bar", &zero, &log(logarithmic, linear));
    assert!(why.contains("side by side"), "{why}");
}

#[test]
fn what_is_not_there_is_said_with_what_was_meant() {
    let results = curves(&["a", "b"], &[1, 2]);
    let some = |text: &str| Some(text.to_owned());
    let cases = [
        (
            Options {
                metric: some("raet"),
                ..Options::default()
            },
            "there is no metric `raet`; did you mean `rate`?",
        ),
        (
            Options {
                metric: some("latency"),
                ..Options::default()
            },
            "there is no metric `latency`; there are rate",
        ),
        (
            Options {
                x: some("siez"),
                ..Options::default()
            },
            "there is no variable `siez`; did you mean `size`?",
        ),
        (
            Options {
                panels: some("modus"),
                ..Options::default()
            },
            "there is no variable `modus`; did you mean `mode`?",
        ),
        (
            Options {
                test: some("tset"),
                ..Options::default()
            },
            "there is no test `tset`; did you mean `test`?",
        ),
    ];
    for (options, message) in cases {
        assert_eq!(choose(&results, &options).unwrap_err(), message);
        // Tables have no axes and panels.
        if options.x.is_none() && options.panels.is_none() {
            for form in ["csv", "markdown", "html"] {
                let said = get(form).unwrap().write(&results, &options);
                assert_eq!(said.unwrap_err(), message, "{form}");
            }
        }
    }
    let baseline = Options {
        baseline: Some(("mdoe".into(), "a".into())),
        ..Options::default()
    };
    let said = get("ratios").unwrap().write(&results, &baseline);
    assert_eq!(
        said.unwrap_err(),
        "there is no variable `mdoe`; did you mean `mode`?"
    );
}

#[test]
fn what_is_computed_is_drawn_like_what_is_measured() {
    let results = curves(&["a"], &[10, 1000]);
    let options = Options {
        columns: vec![Column::new("per_size", "rate.mean / double(size)").unwrap()],
        metric: Some("per_size".into()),
        ..Options::default()
    };
    let chosen = choose(&results, &options).unwrap();
    assert_eq!(chosen.y_label, "per_size");
    let samples = &chosen.panels[0].lines[0].samples;
    let mean = |value: f64| value * (0.98 + 1.0 + 1.03) / 3.0;
    for (sample, (size, value)) in samples.iter().zip([(10.0, 101.0), (1000.0, 200.0)]) {
        assert!((sample.y - mean(value) / size).abs() < 1e-9, "{sample:?}");
    }
    let text = svg("line", &results, &options);
    assert!(text.contains(">per_size</text>"));
}

#[test]
fn statistics_are_named_at_the_axis() {
    let options = Options {
        statistic: Statistic::Percentile(50.0),
        ..Options::default()
    };
    let svg = svg("bar", &curves(&["a"], &[1]), &options);
    assert!(svg.contains(">rate (p50)</text>"), "{svg}");
    // Only means have intervals.
    assert!(!svg.contains("m-2.5 0 h5"));
}

#[test]
fn boxes_are_tukey_s() {
    // Quartiles 2, 3, 4: whiskers to 1 and 5; 20 is far away.
    let measured = Measured {
        variables: vec![("n", "x".into())],
        metric: "m",
        values: vec![1.0, 2.0, 3.0, 4.0, 20.0],
    };
    let results = results(&[("t", vec![measured])]);
    let svg = svg("box", &results, &Options::default());
    let document = Document::parse(&svg).unwrap();
    let find = |tag: &'static str| {
        let all = document.descendants();
        all.filter(move |node| node.has_tag_name(tag))
            .collect::<Vec<_>>()
    };
    let circles = find("circle");
    assert_eq!(circles.len(), 1);
    let level = |label: &str| {
        let node = document
            .descendants()
            .find(|node| node.text() == Some(label));
        number(&node.unwrap(), "y")
    };
    // The axis has marks at 0, 5, 10, 15 and 20.
    let unit = (level("0") - level("20")) / 20.0;
    let of = |value: f64| level("0") - 7.0 * 0.36 - value * unit;
    assert!((number(&circles[0], "cy") - of(20.0)).abs() < 0.2);
    let box_ = find("rect")
        .into_iter()
        .find(|node| node.attribute("y").is_some());
    let box_ = box_.unwrap();
    assert!((number(&box_, "y") - of(4.0)).abs() < 0.2, "{svg}");
    assert!((number(&box_, "height") - 2.0 * unit).abs() < 0.2);
}

#[test]
fn long_names_and_many_of_them_stay_within_the_picture() {
    let long = "a rather long name of a variant that nobody wants to abbreviate at all ".repeat(3);
    let names: Vec<String> = (0..30).map(|index| format!("{long}{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let results = curves(&names, &[1, 100_000, 3_000_000_000]);
    for (form, x) in [
        ("line", "size"),
        ("bar", "size"),
        ("bar", "mode"),
        ("box", "mode"),
    ] {
        let options = Options {
            x: Some(x.into()),
            ..Options::default()
        };
        let svg = svg(form, &results, &options);
        let document = Document::parse(&svg).unwrap();
        let frame = document.root_element().attribute("viewBox").unwrap();
        let frame: Vec<f64> = frame.split(' ').map(|it| it.parse().unwrap()).collect();
        let down = document.descendants().find_map(|node| {
            let place = node
                .attribute("transform")?
                .strip_prefix("translate(0.00 ")?;
            place.trim_end_matches(')').parse::<f64>().ok()
        });
        for node in document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
        {
            let is_in_panel = node.parent() != Some(document.root_element());
            let y = number(&node, "y") + if is_in_panel { down.unwrap() } else { 0.0 };
            assert!(y <= frame[3], "{form} {y}: {:?}", node.text());
            if node.attribute("transform").is_some() {
                continue;
            }
            // Half of its size is less than what a letter takes on average.
            let text = node.text().unwrap_or_default().chars().count();
            let width = f64::from(u32::try_from(text).unwrap()) * number(&node, "font-size") / 2.0;
            let x = number(&node, "x");
            let (start, end) = match node.attribute("text-anchor").unwrap() {
                "start" => (x, x + width),
                "end" => (x - width, x),
                _ => (x - width / 2.0, x + width / 2.0),
            };
            let is_within = start >= 0.0 && end <= frame[2];
            assert!(is_within, "{form} {start} to {end}: {:?}", node.text());
        }
    }
}
