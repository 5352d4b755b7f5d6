//! Charts that no report of `milieu bench` is: of what applications have printed.
//!
//! ```text
//! {"event": [0.0, 41.2, 80.3]}                       sent, read, shown, in milliseconds
//! {"lane": "probe", "ran": [[1, 3.1, 5.9], …]}       on which processor, from, until
//! {"thread": {"used": 20, "given": 8192}}            a stack, in KiB
//! ```
//!
//! Each step is a panel, below the last one. Text of results becomes no markup.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Result, bail};
use milieu_bench::result::{Results, StepResult};
use serde::Deserialize;

/// Sizes in points, of text and of the parts of a panel.
const TEXT: f64 = 8.0;
const SMALL: f64 = 7.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 8.0;
const WIDTH: f64 = 482.0;
const ROW: f64 = 13.0;

/// The critical threads of a timeline, in colours that can be told apart by people who
/// see few of them.
const CRITICAL: [(&str, &str); 2] = [("probe", USED), ("display", "#d55e00")];
const USED: &str = "#0072b2";
const OTHERS: &str = "#a8a8a8";
const WAITS: &str = "#e6e6e6";

/// A line that an application has printed.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Event {
        event: [f64; 3],
    },
    Lane {
        lane: String,
        ran: Vec<(usize, f64, f64)>,
    },
    Thread {
        thread: Stack,
    },
}

#[derive(Deserialize)]
struct Stack {
    used: f64,
    given: f64,
}

/// The chart of this name, if there is one.
pub fn get(form: &str) -> Option<fn(&Results) -> Result<String>> {
    match form {
        "timeline" => Some(timeline),
        "threads" => Some(threads),
        _ => None,
    }
}

/// What was printed in each step, with what it was about.
fn printed(results: &Results) -> Vec<(String, Vec<Line>)> {
    let steps = results.tests.iter().flat_map(|test| &test.steps);
    let mut measured: Vec<&StepResult> = steps.filter(|it| !it.step.is_warm_up).collect();
    measured.sort_by_key(|it| (it.step.round, it.step.point));
    let of = |step: &StepResult| {
        let variables = step.variables.iter();
        let variables: Vec<String> = variables
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let outputs = step.runs.iter().flat_map(|run| run.output.lines());
        let lines = outputs.filter_map(|line| serde_json::from_str(line).ok());
        (variables.join(", "), lines.collect())
    };
    measured.into_iter().map(of).collect()
}

/// Which thread ran when, and where: critical threads as rows, and processors.
fn timeline(results: &Results) -> Result<String> {
    let panels = printed(results);
    let lines = || panels.iter().flat_map(|(_, lines)| lines);
    let (mut end, mut processors) = (0.0_f64, BTreeSet::new());
    for line in lines() {
        match line {
            Line::Event { event } => end = end.max(event[2]),
            Line::Lane { ran, .. } => processors.extend(ran.iter().map(|it| it.0)),
            Line::Thread { .. } => {}
        }
    }
    if end <= 0.0 {
        bail!("nobody has printed events");
    }
    let x = |ms: f64| LEFT + ms.clamp(0.0, end) / end * (WIDTH - LEFT - RIGHT);
    let rows = CRITICAL.len() + processors.len();
    let panel_height = 16.0 + number(rows) * ROW + 6.0;
    let height = 24.0 + panel_height * number(panels.len()) + 22.0;
    let mut out = head(&results.group.name, height);
    for (index, (about, lines)) in panels.iter().enumerate() {
        let top = 24.0 + panel_height * number(index);
        put(&mut out, LEFT, top + 9.0, "start", TEXT, about);
        let y = |row: usize| top + 16.0 + number(row) * ROW;
        for (row, (name, _)) in CRITICAL.iter().enumerate() {
            put(&mut out, LEFT - 4.0, y(row) + 9.0, "end", SMALL, name);
        }
        for (at, processor) in processors.iter().enumerate() {
            let name = format!("processor {processor}");
            put(
                &mut out,
                LEFT - 4.0,
                y(CRITICAL.len() + at) + 9.0,
                "end",
                SMALL,
                &name,
            );
        }
        // Where a thread wants a processor: the first until it has read, the second
        // from then on.
        let mut waits = String::new();
        for line in lines {
            if let Line::Event { event } = line {
                bar(&mut waits, x(event[0]), x(event[1]), y(0));
                bar(&mut waits, x(event[1]), x(event[2]), y(1));
            }
        }
        fill(&mut out, &waits, WAITS);
        for line in lines {
            let Line::Lane { lane, ran } = line else {
                continue;
            };
            let own = CRITICAL.iter().position(|(name, _)| name == lane);
            let mut path = String::new();
            for (processor, from, until) in ran {
                if let Some(row) = own {
                    bar(&mut path, x(*from), x(*until), y(row));
                }
                let at = processors.iter().position(|it| it == processor);
                let row = CRITICAL.len() + at.unwrap_or(0);
                bar(&mut path, x(*from), x(*until), y(row));
            }
            fill(&mut out, &path, own.map_or(OTHERS, |at| CRITICAL[at].1));
        }
    }
    let bottom = height - 22.0;
    for tick in ticks(end) {
        put(
            &mut out,
            x(tick),
            bottom + 8.0,
            "middle",
            SMALL,
            &tick.to_string(),
        );
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    put(&mut out, middle, bottom + 18.0, "middle", TEXT, "ms");
    Ok(out + "</svg>\n")
}

/// The stack of each thread: what was used of it, and what it was given.
fn threads(results: &Results) -> Result<String> {
    let panels = printed(results);
    let stacks = panels.into_iter().flat_map(|(_, lines)| lines);
    let stacks: Vec<Stack> = stacks
        .filter_map(|line| match line {
            Line::Thread { thread } => Some(thread),
            _ => None,
        })
        .collect();
    if stacks.is_empty() {
        bail!("nobody has printed threads");
    }
    const HEIGHT: f64 = 230.0;
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = HEIGHT - 30.0;
    // From 4 KiB to 16 MiB, by powers.
    let y = |kib: f64| BOTTOM - (kib.clamp(4.0, 16384.0) / 4.0).log2() / 12.0 * (BOTTOM - TOP);
    let step = (WIDTH - LEFT - RIGHT) / number(stacks.len());
    let x = |at: usize| LEFT + number(at) * step;
    let mut out = head(&results.group.name, HEIGHT);
    for (kib, name) in [
        (4.0, "4 KB"),
        (16.0, "16 KB"),
        (64.0, "64 KB"),
        (256.0, "256 KB"),
        (1024.0, "1 MB"),
        (4096.0, "4 MB"),
        (8192.0, "8 MB"),
    ] {
        put(&mut out, LEFT - 4.0, y(kib) + 2.5, "end", SMALL, name);
        let (at, end) = (y(kib), WIDTH - RIGHT);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1} H{end:.1}\" stroke=\"{WAITS}\" stroke-width=\"0.5\"/>"
        );
    }
    let (mut used, mut given) = (String::new(), String::new());
    for (at, stack) in stacks.iter().enumerate() {
        let (left, wide) = (x(at), step * 0.8);
        let block = |path: &mut String, from: f64, to: f64| {
            let high = y(from) - y(to);
            let _ = write!(
                path,
                "M{left:.1} {:.1} h{wide:.2} v{high:.1} h-{wide:.2}z",
                y(to)
            );
        };
        block(&mut given, stack.used, stack.given);
        block(&mut used, 4.0, stack.used);
    }
    fill(&mut out, &given, WAITS);
    fill(&mut out, &used, USED);
    for tick in ticks(number(stacks.len())) {
        let at = LEFT + tick * step;
        put(
            &mut out,
            at,
            BOTTOM + 9.0,
            "middle",
            SMALL,
            &tick.to_string(),
        );
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    let about = "threads, as they began: used (dark) of what they have (light)";
    put(&mut out, middle, HEIGHT - 6.0, "middle", TEXT, about);
    Ok(out + "</svg>\n")
}

/// Some round numbers from 0 on.
fn ticks(end: f64) -> impl Iterator<Item = f64> {
    let rough = end / 6.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0].map(|it| it * power);
    let step = factors.into_iter().find(|it| *it >= rough).unwrap_or(rough);
    let count = (0..).map(number).map(move |it| it * step);
    count.take_while(move |it| *it <= end)
}

#[expect(clippy::cast_precision_loss, reason = "rows of a picture")]
fn number(count: usize) -> f64 {
    count as f64
}

fn head(title: &str, height: f64) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"170mm\" viewBox=\"0 0 {WIDTH} \
         {height:.1}\" font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\" \
         role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n",
        escaped(title)
    );
    put(&mut out, WIDTH / 2.0, 13.0, "middle", 9.0, title);
    out
}

fn put(out: &mut String, x: f64, y: f64, anchor: &str, size: f64, text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

/// A bar in a row, seen however short it is.
fn bar(path: &mut String, from: f64, until: f64, y: f64) {
    let (wide, high) = ((until - from).max(0.15), ROW - 2.0);
    let _ = write!(path, "M{from:.2} {y:.1} h{wide:.2} v{high} h-{wide:.2}z");
}

fn fill(out: &mut String, path: &str, colour: &str) {
    let _ = writeln!(out, "<path d=\"{path}\" fill=\"{colour}\"/>");
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use milieu_bench::Value;
    use milieu_bench::result::{Outcome, TestResults};
    use milieu_bench::run::Run;

    use super::*;

    fn results(outputs: &[&str]) -> Results {
        let step = |output: &&str| StepResult {
            step: serde_json::from_str(
                r#"{"index": 0, "point": 0, "round": 0, "is-warm-up": false}"#,
            )
            .unwrap(),
            variables: [("rung".to_owned(), Value::Text("a<b".into()))].into(),
            started: String::new(),
            took_seconds: 0.0,
            outcome: Outcome::Measured,
            lost: Vec::new(),
            runs: vec![Run {
                output: (*output).to_owned(),
                ..Run::default()
            }],
        };
        let mut results = Results::default();
        results.group.name = "R & D".into();
        results.tests = vec![TestResults {
            steps: outputs.iter().map(step).collect(),
            ..TestResults::default()
        }];
        results
    }

    /// The bars of a colour.
    fn bars(svg: &str, colour: &str) -> usize {
        let paths = svg.lines().filter(|it| it.contains(colour));
        paths.map(|it| it.matches('z').count()).sum()
    }

    #[test]
    fn a_timeline_has_critical_threads_and_processors_as_rows() {
        let output = "remarks are left out\n{\"event\": [0, 4, 10]}\n\
                      {\"lane\": \"probe\", \"ran\": [[0, 1, 2], [1, 3, 4]]}\n\
                      {\"lane\": \"others\", \"ran\": [[0, 2, 3], [2, 3, 9]]}\n";
        let svg = timeline(&results(&[output, output])).unwrap();
        // Each piece of a critical thread is in its row and in its processor's.
        assert_eq!(bars(&svg, CRITICAL[0].1), 2 * 4);
        assert_eq!(bars(&svg, OTHERS), 2 * 2);
        assert_eq!(bars(&svg, WAITS), 2 * 2);
        for row in [
            "probe",
            "display",
            "processor 0",
            "processor 1",
            "processor 2",
        ] {
            assert_eq!(svg.matches(&format!(">{row}<")).count(), 2, "{row}");
        }
        assert!(
            svg.contains("R &amp; D") && svg.contains("rung: a&lt;b"),
            "{svg}"
        );
        let none = timeline(&results(&["nothing"])).unwrap_err().to_string();
        assert!(none.contains("nobody has printed events"), "{none}");
    }

    #[test]
    fn threads_have_what_they_use_before_what_they_have() {
        let output = "{\"thread\": {\"used\": 16, \"given\": 8192}}\n\
                      {\"thread\": {\"used\": 3000, \"given\": 8192}}\n";
        let svg = threads(&results(&[output])).unwrap();
        assert_eq!(bars(&svg, &format!("fill=\"{WAITS}\"")), 2);
        assert_eq!(bars(&svg, USED), 2);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            ticks(273.0).collect::<Vec<_>>(),
            [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]
        );
        assert!((2..=8).contains(&ticks(0.3).count()));
    }
}
