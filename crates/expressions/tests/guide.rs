//! Every sample of docs/expressions.md gives what stands beside it.

use crate::support::run;
use milieu_transfer::Value;

const GUIDE: &str = include_str!("../../../docs/expressions.md");

/// The lines of all blocks of a kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    let opening = format!("```{kind}");
    let mut lines = GUIDE.lines();
    let mut found = Vec::new();
    while lines.any(|line| line == opening) {
        found.extend(lines.by_ref().take_while(|line| *line != "```"));
    }
    found
}

#[test]
fn samples_give_what_stands_beside_them() {
    let body = run(&blocks("body").join("\n"), &Value::Null).expect("a body");
    let samples = blocks("cel");
    assert!(
        samples.len() > 40,
        "only {} samples are found",
        samples.len()
    );
    for sample in samples {
        let (text, expected) = sample.split_once(" => ").expect(sample);
        let result = run(text, &body);
        match expected.strip_prefix("fault: ") {
            Some(fault) => {
                let found = result.expect_err(sample);
                assert_eq!(found.what().to_string(), fault, "{sample}");
            }
            None => {
                let expected = run(expected, &Value::Null).expect(sample);
                assert_eq!(result, Ok(expected), "{sample}");
            }
        }
    }
}
