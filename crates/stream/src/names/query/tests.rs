//! What queries are, what they mean, and what is refused.

use super::*;
use crate::names::refusal::Why;
use crate::names::text::{BYTES_MAX, LEVELS_MAX};
use milieu_transfer::Time;

fn query(text: &str) -> Query {
    Query::parse(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"))
}

#[test]
fn there_is_one_canonical_form() {
    for (text, canonical) in [
        ("/**", "/**"),
        ("/**/**", "/**"),
        ("/a/**/**/**/b", "/a/**/b"),
        ("/**/*", "/*/**"),
        ("/a/**/*/**/*/b/*", "/a/*/*/**/b/*"),
        ("/labs/%room%/x-%a%", "/labs/%room%/x-%a%"),
        ("/a?b=1&a", "/a?a&b=1"),
        ("/a?a=1&a&a=1", "/a?a=1"),
        ("/a?x=a\\&b\\=\\\\c", "/a?x=a\\&b\\=\\\\c"),
        ("/a?x=", "/a?x="),
    ] {
        assert_eq!(query(text).as_str(), canonical, "{text}");
        assert_eq!(query(canonical).as_str(), canonical);
    }
}

#[test]
fn names_are_meant_or_not() {
    for (text, meant, others) in [
        ("/a/b", &["/a/b"][..], &["/a", "/a/b/c", "/a/c"][..]),
        (
            "/a/*",
            &["/a/b", "/a/%", "/a/\\/"],
            &["/a", "/a/b/c", "/b/a"],
        ),
        ("/a/**", &["/a", "/a/b", "/a/b/c"], &["/b", "/ab"]),
        ("/**/z", &["/z", "/a/z", "/z/z/z"], &["/z/a", "/"]),
        (
            "/a/**/b/**/c",
            &["/a/b/c", "/a/b/b/c/c", "/a/x/b/x/c"],
            &["/a/c/b", "/a/b"],
        ),
        ("/*/**", &["/a", "/a/b"], &["/"]),
        (
            "/r/%room%",
            &["/r/5", "/r/%", "/r/a\\/b"],
            &["/r", "/r/5/6", "/r/%x"],
        ),
        ("/r/x-%room%", &["/r/x-5", "/r/x-%"], &["/r/y-5", "/r/x-"]),
        ("/a?b=1", &["/a"], &["/b"]),
    ] {
        for name in meant {
            assert!(query(text).matches(name), "{text} means {name}");
        }
        for name in others {
            assert!(!query(text).matches(name), "{text} does not mean {name}");
        }
    }
}

#[test]
fn placeholders_may_be_anything_and_only_what_is_sure_is_contained() {
    assert!(query("/r/%room%/x").intersects(&query("/r/5/*")));
    assert!(query("/r/%room%").intersects(&query("/*/%floor%")));
    assert!(!query("/r/%room%/x").intersects(&query("/r/5/y")));
    assert!(!query("/r/a-%room%").intersects(&query("/r/b-%room%")));
    assert!(query("/r/*").contains(&query("/r/%room%")));
    assert!(query("/r/%room%").contains(&query("/r/%room%")));
    assert!(!query("/r/%room%").contains(&query("/r/*")));
    assert!(!query("/r/%room%").contains(&query("/r/%floor%")));
    assert!(!query("/r/5").contains(&query("/r/%room%")));
}

#[test]
fn conditions_are_about_attributes() {
    let service = |attributes: &[(&str, &str)]| {
        Service::new("", attributes.iter().copied(), Time::MAX).expect("a service")
    };
    let printer = service(&[("kind", "printer"), ("colour", "")]);
    assert!(query("/**?kind=printer").holds(&printer));
    assert!(query("/**?kind&colour").holds(&printer));
    assert!(!query("/**?kind=display").holds(&printer));
    assert!(!query("/**?paper").holds(&printer));
    assert!(!query("/a?x=1").intersects(&query("/a?x=2")));
    assert!(query("/a?x=1&y").intersects(&query("/a?x&z=3")));
    assert!(query("/**?x").contains(&query("/a?x=1&y=2")));
    assert!(!query("/**?x=1").contains(&query("/a?x")));
    assert!(!query("/**?x").contains(&query("/a")));
}

#[test]
fn values_of_layers_are_levels_whatever_they_are() {
    let resolved = |value: &str| {
        let layers = LayerValues::from_iter([("room", value)]);
        query("/r/%room%/*")
            .resolve(&layers)
            .map(|query| query.as_str().to_owned())
    };
    let is = |value, text: &str| assert_eq!(resolved(value).as_deref(), Some(text), "{value:?}");
    is("5", "/r/5/*");
    is("", "/r/%/*");
    is("a/b", "/r/a\\/b/*");
    is("../..", "/r/..\\/../*");
    is("..", "/r/\\../*");
    for value in [
        "*",
        "**",
        "a*",
        "#",
        "+",
        "a\nb",
        "?x",
        &"x".repeat(BYTES_MAX),
        // Slashes count, escaped ones too.
        &"/".repeat(LEVELS_MAX),
    ] {
        assert_eq!(resolved(value), None, "{value:?}");
    }
    let mixed = query("/r/a%room%b").resolve(&LayerValues::from_iter([("room", "#")]));
    assert_eq!(mixed.as_ref().map(Query::as_str), Some("/r/a#b"));
}

#[test]
fn a_refusal_names_place_and_way_out() {
    let mut shown = String::new();
    for text in [
        "",
        "labs",
        "/",
        "/a//b",
        "/a/",
        "/a/./b",
        "/a/../b",
        "/a\nb",
        "/a/b*",
        "/a/***",
        "/a/#",
        "/+/a",
        "/a/%room",
        "/a/%x y%",
        "/ä//b",
        "/a?",
        "/a?=1",
        "/a?x=1=2",
        "/a?x=1&x=2",
        "/a?x\\y",
    ] {
        let Err(refusal) = Query::parse(text) else {
            panic!("{text:?} is no query");
        };
        assert_eq!(refusal.why, Why::Text, "{text:?}");
        let span = refusal.span.expect("a place in the text");
        assert!(
            text.get(span.start..span.end).is_some(),
            "{text:?}: {span:?}"
        );
        assert!(!refusal.help.is_empty());
        shown += &format!("{text:?}: {refusal}\n");
    }
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'));
    assert_eq!(shown, include_str!("refusals.txt"));
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    for text in [
        "/".repeat(65_000),
        "/a".repeat(64),
        format!("/{}", "a".repeat(1024)),
    ] {
        let refusal = Query::parse(&text).expect_err("too long");
        assert_eq!(refusal.why, Why::Size);
        assert!(refusal.to_string().len() < 200);
        assert_eq!(
            crate::names::name(&text).expect_err("too long").why,
            Why::Size
        );
    }
    let most = "/a".repeat(63);
    assert!(query(&most).matches(&most));
    assert!(crate::names::name(&most).is_ok());
    let many: Vec<String> = (0..17).map(|i| format!("k{i}")).collect();
    let refusal = Query::parse(&format!("/a?{}", many.join("&"))).expect_err("too many");
    assert_eq!(refusal.why, Why::Size);
}

/// The worst that 63 levels can hold: a matcher that tries again would take
/// longer than anybody waits.
#[test]
fn many_wildcards_cost_no_more_than_few() {
    let stars = query(&format!("{}/**", "/**/a".repeat(31)));
    let other = query(&format!("{}/b", "/**/a".repeat(31)));
    let name = format!("{}/b", "/a".repeat(62));
    for _ in 0..100 {
        assert!(stars.matches(&name));
        assert!(!query(&format!("{}/c", "/**/a".repeat(31))).matches(&name));
        assert!(stars.intersects(&other) && stars.contains(&other) && !other.contains(&stars));
    }
}
