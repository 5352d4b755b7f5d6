use super::*;
use crate::rules::{KNOWN, known};
use milieu_diagnostics::render;

fn read(text: &str) -> (Specification, Vec<Diagnostic>) {
    Specification::parse(&Source::new("test.ini", text))
}

/// Reads what must be right.
fn right(text: &str) -> Specification {
    let source = Source::new("test.ini", text);
    let (specification, mut found) = Specification::parse(&source);
    found.extend(specification.check(&source));
    assert!(found.is_empty(), "{}", render(&source, &found, false));
    specification
}

#[test]
fn spans_point_at_names_words_and_values() {
    let text =
        "[%s%]\r\ntype = string\r\n\n  [ /a/\\u{2f}b ]\n\tdefault=\"x y\"\nreadonly\n/k = v\n";
    let specification = right(&format!("{text}/sw/%s%\n"));
    let at = |span: Span| &text[span.start..span.end];
    let (layer, key) = (&specification.layers[0], &specification.keys[0]);
    assert_eq!(at(layer.span), "%s%");
    assert_eq!(
        (at(layer.spans[0].key), at(layer.spans[0].value)),
        ("type", "string")
    );
    assert_eq!(key.pattern.as_str(), "/a/b");
    assert_eq!(at(key.span), "/a/\\u{2f}b");
    assert_eq!(
        (at(key.spans[0].key), at(key.spans[0].value)),
        ("default", "\"x y\"")
    );
    assert_eq!(
        (at(key.spans[1].key), at(key.spans[1].value)),
        ("readonly", "")
    );
    let short = &specification.keys[1];
    assert_eq!((at(short.span), at(short.spans[0].value)), ("/k", "v"));
}

#[test]
fn values_are_what_they_say() {
    for (written, expected) in [
        ("", ""),
        ("  x y \t", "x y"),
        ("\" x \"", " x "),
        ("~/context/pi", "~/context/pi"),
        ("-V", "-V"),
        ("a=b", "a=b"),
        ("a ; b # c", "a ; b # c"),
        ("C:\\new", "C:\\new"),
        ("a\\\\", "a\\\\"),
        ("a\\\n   b", "ab"),
        ("a \\\r\n\t b\\\nc", "a bc"),
        ("a\\\n; no comment", "a; no comment"),
        ("\"a\\\n   b\\n\\\nc\"", "ab\nc"),
        ("\"\\t\\r\\\"\\\\\\u{e4}\\u{1F980}\"", "\t\r\"\\ä🦀"),
        ("a \"quoted\" word", "a \"quoted\" word"),
    ] {
        let (specification, found) = read(&format!("[/a]\ndefault={written}\nreadonly\n"));
        assert!(found.is_empty(), "{written:?}: {found:?}");
        let metadata = specification.keys[0].borrowed();
        assert_eq!(
            metadata,
            [("default", expected), ("readonly", "")],
            "{written:?}"
        );
    }
}

#[test]
fn layers_come_declared_first_and_once() {
    let specification =
        right("[/a/%z%/%y z%]\nidentifier=b\n[%y%]\norder=1\n[/c/%y%%x%]\nidentifier=d\n");
    assert_eq!(specification.layers(), ["y", "z", "x"]);
    assert_eq!(
        specification
            .layer("y")
            .and_then(|layer| layer.get("order")),
        Some("1")
    );
    assert!(specification.key("/a/%z%/%y z%").is_some());
    assert!(LayerSpec::new("x", Vec::new()).is_ok());
    for name in ["", "a b", "a/b", "a%b", "a%%b", "a\nb"] {
        assert!(LayerSpec::new(name, Vec::new()).is_err(), "{name:?}");
    }
}

#[test]
fn identifiers_leave_placeholders_out() {
    let text = "[/sw/pi/%session%/language]\n[/sw/%a%/x]\nidentifier=y\n[/%a%]\nidentifier=z\n";
    let specification = right(text);
    let paths: Vec<_> = specification
        .keys
        .iter()
        .map(KeySpec::identifiers)
        .collect();
    assert_eq!(
        paths,
        [vec!["sw", "pi", "language"], vec!["sw", "y"], vec!["z"]]
    );
}

#[test]
fn every_known_metadata_is_accepted_where_it_belongs() {
    for known in KNOWN {
        let word = known.name.replace('#', "#0");
        let (specification, _) = read(&format!("[/sw/a]\n{word}=1\n"));
        let found = specification.check(&Source::new("test.ini", ""));
        let unknown = found
            .iter()
            .any(|found| found.code == Some("unknown-metadata"));
        assert!(!unknown, "{word}");
    }
    assert!(known("check/range").is_some());
}

#[test]
fn what_is_checked_without_a_text_points_nowhere() {
    let pattern = Pattern::parse("/sw/a").unwrap();
    let mut specification = Specification::default();
    let metadata = vec![("type".to_owned(), "lnog".to_owned())];
    specification.keys.push(KeySpec::new(pattern, metadata));
    let source = Source::new("<memory>", "");
    let found = specification.check(&source);
    assert_eq!(found.len(), 1);
    assert!(render(&source, &found, false).contains("there is no such type"));
}

/// A small generator (xorshift64*), so that a failure repeats from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        usize::try_from((mixed >> 33) % bound as u64).expect("below a usize")
    }

    fn text(&mut self, from: &[&str], longest: usize) -> String {
        let length = self.below(longest + 1);
        (0..length).map(|_| from[self.below(from.len())]).collect()
    }
}

const TOKENS: [&str; 52] = [
    "[",
    "]",
    "/",
    "%",
    "\\",
    "\"",
    "=",
    ";",
    "#",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    ".",
    "..",
    "a",
    "b",
    "ä",
    "\u{feff}",
    "\u{1b}",
    "\u{0}",
    "\u{2028}",
    "🦀",
    "\\n",
    "\\u{2f}",
    "\\u{",
    "}",
    "\n[/a",
    "\n[/%x%/",
    "]\n",
    "%x%",
    "%x y%",
    "\n[%x%]\n",
    "\n/b/",
    "\ntype=",
    "long",
    "enum",
    "\ndefault=",
    "1",
    "\"\n",
    "\\\n",
    "\noverride/#0=/",
    "\nidentifier=",
    "self",
    "\nrange=",
    "1-2",
    "\nreadonly",
    "\ncheck/enum/#",
    "0=",
    "\nallow/overlap",
    "\ncheck/validation=",
];

/// Everything that has to hold of any text.
fn holds_of(text: &str) {
    let source = Source::new("test.ini", text);
    let (specification, found) = Specification::parse(&source);
    let checked = specification.check(&source);
    for diagnostic in found.iter().chain(&checked) {
        for label in &diagnostic.labels {
            let Span { start, end } = label.span;
            assert!(text.get(start..end).is_some(), "{text:?}: {diagnostic:?}");
        }
        assert!(
            !diagnostic.help.iter().any(String::is_empty),
            "{text:?}: {diagnostic:?}"
        );
    }
    let exported = specification.to_ini();
    let (again, found) = read(&exported);
    assert_eq!(
        (&again, &*found),
        (&specification, &[][..]),
        "{text:?} gives {exported:?}"
    );
}

#[test]
fn any_text_is_read_and_exported_without_loss() {
    for seed in 1..6000 {
        let mut random = Random(seed);
        let text = random.text(&TOKENS, 24);
        holds_of(&text);
        if seed % 16 == 0 {
            let source = Source::new("test.ini", text);
            let (specification, mut found) = Specification::parse(&source);
            found.extend(specification.check(&source));
            let rendered = render(&source, &found, false);
            assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'));
        }
    }
}

#[test]
fn any_part_of_a_specification_is_read() {
    let paper = include_str!("../../tests/specification/pass/paper.ini");
    let values = include_str!("../../tests/specification/pass/values.ini");
    let syntax = include_str!("../../tests/specification/fail/syntax.ini");
    for text in [paper, values, syntax] {
        for (at, c) in text.char_indices() {
            holds_of(&text[..at]);
            holds_of(&text[at..]);
            holds_of(&format!("{}{}", &text[..at], &text[at + c.len_utf8()..]));
        }
    }
}

#[test]
fn any_specification_is_exported_without_loss() {
    let part = [
        "a", "%x%", "%y z%", "]", "\\/", "\\%", "\\\\", "\n", "=", " ", "\u{85}", "ä", ";", ".",
    ];
    let value = [
        "a", " ", "\t", "\n", "\r", "\"", "\\", "\\n", "=", ";", "ä", "\u{1b}", "[/a]",
    ];
    for seed in 1..4000 {
        let mut random = Random(seed);
        let mut specification = Specification::default();
        for _ in 0..random.below(3) {
            let levels: Vec<String> = (0..=random.below(2))
                .map(|_| random.text(&part, 3))
                .collect();
            let Ok(pattern) = Pattern::parse(&format!("/{}", levels.join("/"))) else {
                continue;
            };
            let words = ["default", "readonly", "x/y", "env/#0"];
            let metadata = (0..random.below(4))
                .map(|at| (words[at].to_owned(), random.text(&value, 4)))
                .collect();
            specification.keys.push(KeySpec::new(pattern, metadata));
        }
        let layer = random.text(&["a", "]", "=", "-", "é", ";", "\""], 3);
        if let Ok(layer) = LayerSpec::new(&layer, vec![("type".into(), random.text(&value, 4))]) {
            specification.layers.push(layer);
        }
        let exported = specification.to_ini();
        let (again, found) = read(&exported);
        assert_eq!(
            (&again, &*found),
            (&specification, &[][..]),
            "seed {seed}: {exported:?}"
        );
    }
}
