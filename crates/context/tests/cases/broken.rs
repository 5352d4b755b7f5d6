//! Cases of `layers.txt` that are not as described, to see that this is noticed.

/// What each line is that expects something.
const EXPECTS: [&str; 8] = [
    "is",
    "name",
    "layers",
    "news",
    "everywhere",
    "new",
    "keys",
    "ran",
];

/// For each line that expects something: its number, and the whole description
/// with another expectation there, and with none but the case that it is in.
pub fn broken(cases: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = cases.lines().collect();
    let first = lines
        .iter()
        .position(|line| is_case(line))
        .expect("there are cases");
    let mut all = Vec::new();
    for (place, line) in lines.iter().enumerate().skip(first) {
        let Some(other) = other(line) else { continue };
        let before = lines[..place].iter().rposition(|line| is_case(line));
        let from = before.expect("it stands in a case");
        let to = lines[place..].iter().position(|line| is_case(line));
        let to = to.map_or(lines.len(), |after| place + after);
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            let is_kept = number < first || (from..to).contains(&number);
            text += match is_kept {
                _ if number == place => &other,
                true => line,
                false => "",
            };
            text.push('\n');
        }
        all.push((place + 1, text));
    }
    all
}

fn is_case(line: &str) -> bool {
    line.starts_with("case ")
}

/// The same line with another expectation, if it has one.
fn other(line: &str) -> Option<String> {
    if let Some(fails) = line.strip_prefix("fails ") {
        // What does not fail as it is said to.
        let (_, step) = fails.split_once(' ')?;
        return Some(step.to_owned());
    }
    if let Some(count) = line.strip_prefix("persist ") {
        return Some(format!("persist {count}1"));
    }
    let words: Vec<&str> = line.split(' ').collect();
    let verb = match words[0] {
        "here" | "there" => words[1],
        verb => verb,
    };
    EXPECTS.contains(&verb).then(|| match verb {
        "news" if words[2] == "yes" => line.replace("yes", "no"),
        "news" => line.replace("no", "yes"),
        "ran" => format!("{line} x"),
        "layers" | "keys" => format!("{line} x=y"),
        _ => format!("{line}7"),
    })
}
