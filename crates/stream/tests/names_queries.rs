//! Queries mean what a matcher says that is too simple to be wrong.
//!
//! All questions about queries are answered by trying all names of a small
//! world: those of up to six levels, each one of three texts, of which queries
//! use two.

use crate::random::Random;
use milieu_stream::names::{Query, name};

/// As the words of the guide have it, trying everything.
fn means(query: &[&str], name: &[&str]) -> bool {
    match (query, name) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            means(rest, name) || (!name.is_empty() && means(query, &name[1..]))
        }
        ([level, rest @ ..], [text, below @ ..]) => {
            (*level == "*" || level == text) && means(rest, below)
        }
        _ => false,
    }
}

fn levels(text: &str) -> Vec<&str> {
    text.split('/')
        .skip(1)
        .filter(|level| !level.is_empty())
        .collect()
}

fn names() -> Vec<String> {
    let mut all = vec!["/".to_owned()];
    let mut longest = vec![String::new()];
    for _ in 0..6 {
        let below = |name: &String| ["a", "b", "z"].map(|level| format!("{name}/{level}"));
        longest = longest.iter().flat_map(below).collect();
        all.extend_from_slice(&longest);
    }
    all
}

fn random_query(random: &mut Random) -> String {
    let count = 1 + random.below(4);
    (0..count)
        .map(|_| format!("/{}", random.of(&["a", "b", "*", "**", "**"])))
        .collect()
}

#[test]
fn queries_mean_what_their_words_say() {
    let names = names();
    let mut random = Random::new(1);
    let mut contained = 0;
    for round in 0..500 {
        let [one, other] = [random_query(&mut random), random_query(&mut random)];
        let parsed = [&one, &other].map(|text| Query::parse(text).expect("a query"));
        let meant = [&one, &other].map(|text| -> Vec<bool> {
            let query = levels(text);
            names
                .iter()
                .map(|name| means(&query, &levels(name)))
                .collect()
        });
        for (query, meant) in parsed.iter().zip(&meant) {
            assert_eq!(Query::parse(query.as_str()).as_ref(), Ok(query));
            for (name, meant) in names.iter().zip(meant) {
                assert_eq!(query.matches(name), *meant, "{round}: {query} and {name}");
            }
        }
        let mut pairs = meant[0].iter().zip(&meant[1]);
        let both = pairs.clone().any(|(one, other)| *one && *other);
        assert_eq!(
            parsed[0].intersects(&parsed[1]),
            both,
            "{round}: {one} and {other}"
        );
        assert_eq!(
            parsed[1].intersects(&parsed[0]),
            both,
            "{round}: {other} and {one}"
        );
        let contains = pairs.all(|(one, other)| *one || !*other);
        // Seven levels may tell more than six: nothing that random queries of
        // four levels hold does.
        assert_eq!(
            parsed[0].contains(&parsed[1]),
            contains,
            "{round}: {one} over {other}"
        );
        contained += usize::from(contains);
        assert_eq!(
            parsed[0] == parsed[1],
            parsed[0].as_str() == parsed[1].as_str()
        );
    }
    assert!(contained > 20, "the world is too large to find containment");
}

/// Equal meaning is equal text, and the other way round.
#[test]
fn the_canonical_form_is_one_for_each_meaning() {
    let names = names();
    let mut random = Random::new(2);
    for _ in 0..300 {
        let [one, other] =
            [(); 2].map(|()| Query::parse(&random_query(&mut random)).expect("a query"));
        let same = names
            .iter()
            .all(|name| one.matches(name) == other.matches(name));
        assert_eq!(one == other, same, "{one} and {other}");
    }
}

/// Whatever comes: a name that is accepted is meant by itself, by wildcards, and
/// by nothing else.
#[test]
fn names_of_any_characters_are_refused_or_mean_themselves() {
    let mut random = Random::new(3);
    let pieces = [
        "/", "a", "..", ".", "*", "**", "#", "+", "%", "\\", "\n", "?", "ä", " ", "$", "\u{0}",
    ];
    let mut accepted = 0;
    for _ in 0..100_000 {
        let count = random.below(6);
        let text: String = std::iter::once("/")
            .chain((0..count).map(|_| random.of(&pieces)))
            .collect();
        let Ok(name) = name(&text) else { continue };
        accepted += 1;
        assert_eq!(name.as_str(), text);
        let itself = Query::parse(&text).expect("a name is a query");
        assert!(itself.is_exact() && itself.matches(&text), "{text:?}");
        assert!(
            Query::parse("/*/**").expect("a query").matches(&text),
            "{text:?}"
        );
        assert!(
            !Query::parse("/other/**").expect("a query").matches(&text),
            "{text:?}"
        );
    }
    assert!(accepted > 1000, "{accepted}");
}
