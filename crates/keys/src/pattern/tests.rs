use super::*;
use std::collections::HashMap;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).expect(text)
}

fn resolve(text: &str, values: &[(&str, &str)]) -> String {
    pattern(text)
        .resolve(|layer| {
            let found = values.iter().find(|(name, _)| *name == layer);
            found.map(|(_, value)| *value)
        })
        .into()
}

fn literal(text: &str) -> Piece {
    Piece::Literal(text.into())
}

fn layer(name: &str) -> Piece {
    Piece::Layer(name.into())
}

#[test]
fn pieces_concatenate_to_the_text() {
    let language = pattern("/sw/pi/%session%/language");
    assert_eq!(
        language.pieces(),
        [literal("/sw/pi/"), layer("session"), literal("/language")]
    );
    let odd = pattern("/a/\\%%x%%y  z%-\\.//./%/\\./%x%");
    assert_eq!(odd.as_str(), "/a/\\%%x%%y z%-./%/\\./%x%");
    assert_eq!(
        odd.pieces(),
        [
            literal("/a/\\%"),
            layer("x"),
            Piece::Group(vec!["y".into(), "z".into()]),
            literal("-./%/\\./"),
            layer("x"),
        ]
    );
    assert_eq!(odd.layers().collect::<Vec<_>>(), ["x", "y", "z"]);
    assert_eq!(odd.level_patterns().len(), 5);
    assert_eq!(odd.level_patterns()[3].literal(), Some("\\."));
    assert_eq!(odd.level_patterns()[4].layer(), Some("x"));
    assert_eq!(odd.identifiers(), ["a", "."]);
    assert_eq!(pattern("/").pieces(), [literal("/")]);
    assert_eq!(pattern("/").resolve(|_| None).as_str(), "/");
    assert!(!pattern("/a/%").is_contextual());
    assert!(odd.is_contextual());
}

#[test]
fn placeholders_resolve_as_the_module_says() {
    let (both, one) = (&[("a", "x"), ("b", "y")][..], &[("a", "x"), ("b", "")][..]);
    for (text, with_both, with_one, with_none) in [
        ("/%a%", "/x", "/x", "/%"),
        ("/pre-%a%", "/pre-x", "/pre-x", "/pre-%"),
        ("/%a%%b%", "/xy", "/x%", "/%%"),
        ("/%a b%", "/%x%y", "/%x", "/%"),
        ("/%b a%", "/%y%x", "/%", "/%"),
        ("/%a%/%a%/n", "/x/x/n", "/x/x/n", "/%/%/n"),
    ] {
        assert_eq!(resolve(text, both), with_both);
        assert_eq!(resolve(text, one), with_one);
        assert_eq!(resolve(text, &[]), with_none);
    }
}

#[test]
fn values_never_add_a_level_climb_or_look_inactive() {
    for (text, a, b, expected) in [
        ("/p/%a%/q", "x/y", "", "/p/x\\/y/q"),
        ("/p/%a%/q", "..", "", "/p/\\../q"),
        ("/p/%a%/q", ".", "", "/p/\\./q"),
        ("/p/%a%/q", "%", "", "/p/\\%/q"),
        ("/p/%a%/q", "\\", "", "/p/\\\\/q"),
        ("/p/%a%%b%/q", ".", ".", "/p/\\../q"),
        ("/p/%a%%b%/q", "\\", ".", "/p/\\\\./q"),
        ("/p/%a%./q", ".", "", "/p/\\../q"),
        ("/p/.%a%/q", "..", "", "/p/.../q"),
        ("/p/%a b%/q", "..", "%", "/p/%..%\\%/q"),
    ] {
        assert_eq!(resolve(text, &[("a", a), ("b", b)]), expected, "{text}");
        assert!(pattern(text).matches(expected), "{text}");
    }
}

#[test]
fn what_is_no_pattern_says_why_and_how_to_mend_it() {
    for (text, place, message, help) in [
        ("x", 0..1, "a name starts with `/`", "write `/x`"),
        (
            "/a/%%/b",
            3..5,
            "the placeholder is empty",
            "write the name of a layer between the percent signs, as in `%session%`, or `\\%` for each percent sign that is meant as one",
        ),
        (
            "/watchdog%/enable",
            9..10,
            "the placeholder is not closed in its level",
            "write `/watchdog/%/enable` (an inactive layer is a level of its own), `/watchdog/%layer%/enable`, or `\\%` for a percent sign",
        ),
        (
            "/sw/%session/x",
            4..12,
            "the placeholder is not closed in its level",
            "close it: `%session%`, or write `\\%` for a percent sign",
        ),
        (
            "/%a\\/b%",
            3..4,
            "`\\\\` cannot be in the name of a layer",
            "use letters, digits, `_` and `-`; a space between two layers makes a group",
        ),
        (
            "/%a%/../b",
            5..7,
            "`..` would climb to the level above",
            "write the name it leads to, or `\\..` for a level that is two dots",
        ),
    ] {
        let error = Pattern::parse(text).expect_err(text);
        assert_eq!((&*error.message, &*error.help), (message, help));
        assert_eq!(error.at..error.end, place, "{text}");
    }
}

#[test]
fn matching_is_exact_about_the_edges_of_levels() {
    for (text, name, expected) in [
        ("/a/%x%", "/a/b", true),
        ("/a/%x%", "/a/%", true),
        ("/a/%x%", "/a/b%", false),
        ("/a/%x%", "/a/\\%", true),
        ("/a/%x%", "/a/b/c", false),
        ("/a/%x%", "/a/b\\/c", true),
        ("/a/%x%", "/a", false),
        ("/a/%x%", "a/b", false),
        ("/a/%", "/a/%", true),
        ("/a/%", "/a/b", false),
        ("/a/pre-%x%", "/a/pre-", false),
        ("/a/pre-%x%", "/a/pre-%", true),
        ("/a/%x%.", "/a/\\..", true),
        ("/a/%x y%", "/a/%", true),
        ("/a/%x y%", "/a/%b%c", true),
        ("/a/%x y%", "/a/%b%c%d", false),
        ("/a/%x y%", "/a/b", false),
        ("/a/%x%%y%", "/a/b", false),
        ("/a/%x%%y%", "/a/bc", true),
        ("/a/%x%%y%", "/a/\\/", false),
        ("/%x%/%x%", "/a/b", false),
        ("/%x%/%x%", "/a/a", true),
        ("/", "/", true),
        ("/", "/a", false),
    ] {
        assert_eq!(pattern(text).matches(name), expected, "{text} {name}");
    }
}

#[test]
fn unification_says_no_only_where_it_is_certain() {
    for (one, other, expected) in [
        ("/a/%x%", "/a/%y%", true),
        ("/a/%x%", "/a/b", true),
        ("/a/%x%/c", "/a/b", false),
        ("/a/%x%/c", "/%y%/b/%z%", true),
        ("/a/%x%/c", "/a/%y%/d", false),
        ("/a-%x%", "/b-%x%", false),
        ("/%x%-a", "/%x%-b", false),
        ("/a-%x%", "/%y%-b", true),
        ("/a", "/a", true),
        ("/a", "/b", false),
        ("/%", "/%x%", true),
        ("/%", "/a-%x%", false),
    ] {
        assert_eq!(
            pattern(one).unifies(&pattern(other)),
            expected,
            "{one} {other}"
        );
        assert_eq!(
            pattern(other).unifies(&pattern(one)),
            expected,
            "{other} {one}"
        );
    }
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

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn text(&mut self, from: &[&str], longest: usize) -> String {
        (0..self.below(longest + 1))
            .map(|_| self.pick(from))
            .collect()
    }
}

const VALUE: [&str; 8] = [".", "/", "\\", "%", "a", "b", "ä", " "];
const PART: [&str; 12] = [
    "a", "b", ".", "\\.", "\\/", "\\\\", "\\%", "%x%", "%y%", "%z%", "%x y%", "%y z x%",
];

fn random_pattern(random: &mut Random, part: &[&str], longest: usize) -> Pattern {
    loop {
        let text: String = (0..=random.below(3))
            .map(|_| format!("/{}", random.text(part, longest)))
            .collect();
        // Only a level of dots can be refused, and only it may be.
        match Pattern::parse(&text) {
            Ok(pattern) => return pattern,
            Err(error) => assert_eq!(
                error.message, "`..` would climb to the level above",
                "{text}"
            ),
        }
    }
}

#[test]
fn resolutions_are_canonical_match_and_keep_their_levels() {
    for seed in 1..4000 {
        let mut random = Random(seed);
        let pattern = random_pattern(&mut random, &PART, 4);
        assert_eq!(
            Pattern::parse(pattern.as_str()).unwrap(),
            pattern,
            "seed {seed}"
        );
        let values: Vec<String> = (0..3).map(|_| random.text(&VALUE, 3)).collect();
        let name =
            pattern.resolve(|layer| Some(values[usize::from(layer.as_bytes()[0] - b'x')].as_str()));
        let place = format!("seed {seed}: {pattern} with {values:?} is {name}");
        assert_eq!(Name::parse(name.as_str()).as_ref(), Ok(&name), "{place}");
        assert_eq!(
            name.levels().count(),
            pattern.level_patterns().len(),
            "{place}"
        );
        assert!(pattern.matches(name.as_str()), "{place}");
    }
}

#[test]
fn names_show_the_layers_that_they_were_resolved_with() {
    let one_each = [
        "a", "ä\\%", "%x%", "%y%", "%", "#", ".%x%", "a%y%\\/", "\\.", "%z%.", "\\\\%x%b",
    ];
    for seed in 1..8000 {
        let mut random = Random(seed);
        let levels: String = (0..=random.below(4))
            .map(|_| format!("/{}", random.pick(&one_each)))
            .collect();
        let pattern = pattern(&levels);
        let values: Vec<String> = (0..3).map(|_| random.text(&VALUE, 3)).collect();
        let value_of = |layer: &str| values[usize::from(layer.as_bytes()[0] - b'x')].as_str();
        let name = pattern.resolve(|layer| Some(value_of(layer)));
        let expected = pattern.layers().map(|id| (id, value_of(id).to_owned()));
        let read = pattern.layers_of(name.as_str());
        assert_eq!(
            read,
            Some(expected.collect()),
            "seed {seed}: {pattern} {name}"
        );
    }
}

#[test]
fn what_a_name_does_not_show_is_left_out() {
    let of = |text, name| {
        let pattern = pattern(text);
        let layers = pattern.layers_of(name)?.into_iter();
        let layers = layers.map(|(layer, value)| format!("{layer}={value}"));
        Some(layers.collect::<Vec<_>>().join(" "))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(of("/%a%/%b%%c%", "/x/yz"), some("a=x"));
    assert_eq!(of("/%a%/%b c%", "/x/%y%z"), some("a=x"));
    assert_eq!(of("/%a%/#/%b%", "/x/#_10/%"), some("a=x b="));
    assert_eq!(of("/%a%/#", "/x/#"), some("a=x"));
    assert_eq!(of("/%a%/#", "/x/y"), None);
    assert_eq!(of("/%a%/%a%", "/x/y"), None);
    assert_eq!(of("/%a%/%b c%", "/x/y"), None);
    assert_eq!(of("/%a%", "/x/y"), None);
    assert_eq!(of("/%a%/y", "/x"), None);
    assert_eq!(of("/", "/"), some(""));
}

#[test]
fn patterns_with_a_common_resolution_unify() {
    let mut seen: HashMap<Name, Vec<Pattern>> = HashMap::new();
    let part = ["a", "b", ".", "%x%", "%y%", "%x y%"];
    let mut met = 0;
    for seed in 1..6000 {
        let mut random = Random(seed);
        let pattern = random_pattern(&mut random, &part, 3);
        let values: Vec<String> = (0..2).map(|_| random.text(&["a", "b", "."], 2)).collect();
        let name =
            pattern.resolve(|layer| Some(values[usize::from(layer.as_bytes()[0] - b'x')].as_str()));
        let others = seen.entry(name.clone()).or_default();
        for other in others.iter() {
            met += usize::from(*other != pattern);
            assert!(
                other.unifies(&pattern),
                "seed {seed}: {other} and {pattern}: {name}"
            );
            assert!(
                pattern.unifies(other),
                "seed {seed}: {pattern} and {other}: {name}"
            );
        }
        if !others.contains(&pattern) {
            others.push(pattern);
        }
    }
    assert!(met > 1000, "only {met} pairs met");
}

#[test]
fn different_values_give_different_names() {
    // Every text of up to three of these characters, in pairs.
    let alphabet = [".", "/", "\\", "%", "a"];
    let mut values = vec![String::new()];
    for length in 1..=3_u32 {
        for number in 0..5_usize.pow(length) {
            let digits = (0..length).map(|place| alphabet[number / 5_usize.pow(place) % 5]);
            values.push(digits.collect());
        }
    }
    for text in ["/%x%/%y%", "/p/a%x%/.%y%/q", "/%x%./%y%"] {
        let pattern = pattern(text);
        let mut names = std::collections::HashSet::new();
        for x in &values {
            for y in &values {
                let name = pattern.resolve(|layer| Some(if layer == "x" { x } else { y }));
                assert!(names.insert(name), "{text} with {x:?} and {y:?}");
            }
        }
    }
}

#[test]
fn arrays_declare_their_elements() {
    for (pattern, name, declared) in [
        ("/hosts/#", "/hosts/#0", true),
        ("/hosts/#", "/hosts/#_12", true),
        ("/hosts/#", "/hosts/#", true),
        ("/hosts/#", "/hosts/#a", false),
        ("/hosts/#", "/hosts/0", false),
        ("/hosts/#", "/hosts/#0/port", false),
        ("/hosts/#/ports/#", "/hosts/#1/ports/#2", true),
        ("/%room%/hosts/#", "/hall/hosts/#1", true),
        ("/%room%/hosts", "/#1/hosts", true),
        ("/hosts/#1", "/hosts/#1", true),
        ("/hosts/#1", "/hosts/#2", false),
    ] {
        let found = Pattern::parse(pattern).unwrap().declares(name);
        assert_eq!(found, declared, "{pattern} {name}");
    }
}
