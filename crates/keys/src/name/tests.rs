use super::*;

fn canonical(text: &str) -> String {
    Name::parse(text).expect(text).into()
}

#[test]
fn names_become_canonical() {
    for (written, expected) in [
        ("/", "/"),
        ("//", "/"),
        ("/./", "/"),
        ("/a", "/a"),
        ("/a/", "/a"),
        ("/a//b/./c", "/a/b/c"),
        ("/\\.", "/\\."),
        ("/\\..", "/\\.."),
        ("/\\.\\.", "/\\.."),
        ("/.\\.", "/\\.."),
        ("/...", "/..."),
        ("/\\.hidden", "/.hidden"),
        ("/a\\/b", "/a\\/b"),
        ("/a\\\\/b", "/a\\\\/b"),
        ("/%/100\\%", "/%/100\\%"),
        ("/watchdog%/enable", "/watchdog%/enable"),
        ("/größe/\u{7}", "/größe/\u{7}"),
    ] {
        assert_eq!(canonical(written), expected);
        assert_eq!(canonical(expected), expected);
    }
}

#[test]
fn what_is_no_name_says_why_and_how_to_mend_it() {
    for (written, at, message, help) in [
        ("", 0, "the name is empty", "write `/` for the root"),
        ("a/b", 0, "a name starts with `/`", "write `/a/b`"),
        (
            "user:/a",
            0,
            "the namespace `user:` is not part of a name",
            "start with the slash: `/a`",
        ),
        (
            "/a/../b",
            3,
            "`..` would climb to the level above",
            "write the name it leads to, or `\\..` for a level that is two dots",
        ),
        (
            "/a\\",
            2,
            "the name ends in a backslash that escapes nothing",
            "write `\\\\` for a backslash",
        ),
        (
            "/a/b\\n",
            4,
            "`\\n` is no escape",
            "write `\\\\` for a backslash; only `/`, `\\`, `%` and `.` can be escaped",
        ),
    ] {
        let error = Name::parse(written).expect_err(written);
        assert_eq!(
            (error.at, &*error.message, &*error.help),
            (at, message, help)
        );
        assert_eq!(error.to_string(), format!("{message} (byte {at}); {help}"));
    }
}

#[test]
fn names_split_at_the_last_slash_that_is_not_escaped() {
    for (name, expected) in [
        ("/a/b\\/c", ("/a", "b\\/c")),
        ("/a/b\\\\/c", ("/a/b\\\\", "c")),
        ("/a", ("", "a")),
        ("/", ("", "")),
        ("/a\\/b", ("", "a\\/b")),
        ("a", ("", "a")),
    ] {
        assert_eq!(split(name), expected);
    }
}

#[test]
fn parents_and_children() {
    let name = Name::parse("/a/b\\/c").unwrap();
    assert_eq!(name.parent().unwrap().as_str(), "/a");
    assert_eq!(name.parent().unwrap().parent().unwrap(), Name::root());
    assert_eq!(Name::root().parent(), None);
    assert_eq!(Name::root().join("x/y").as_str(), "/x\\/y");
    assert_eq!(name.join("..").as_str(), "/a/b\\/c/\\..");
    assert_eq!(name.join("").as_str(), "/a/b\\/c/%");
    assert!(name.is_below_or_same("/"));
    assert!(name.is_below_or_same("/a"));
    assert!(name.is_below_or_same("/a/b\\/c"));
    assert!(!name.is_below_or_same("/a/b"));
    assert!(!Name::root().is_below_or_same("/a"));
    assert_eq!(Name::root().levels().count(), 0);
}

#[test]
fn whatever_the_value_it_stays_one_level_and_comes_back() {
    for value in [
        "x/y", "..", ".", "...", "%", "%%", "\\", "\\\\", "\\.", "\\..", "\\/", "a\\", "/", "//",
        "..\\", " ", "\n", "ä/ö",
    ] {
        let mut text = String::from("/top/");
        escape_value(value, &mut text);
        let name = Name::parse(&text).expect(value);
        assert_eq!(name.as_str(), text, "{value:?} is not canonical");
        let levels: Vec<_> = name.levels().collect();
        assert_eq!(levels.len(), 2);
        assert_ne!(levels[1], "%");
        assert_eq!(unescape(levels[1]), value);
    }
}

#[test]
fn levels_of_several_parts_are_sealed_as_a_whole() {
    for (parts, expected) in [
        (&[".", "."][..], "\\.."),
        (&["", "."], "\\."),
        (&[".", ".", "."], "..."),
        (&["..", "x"], "..x"),
        (&["\\", "."], "\\\\."),
        (&["\\", ".."], "\\\\.."),
        (&["\\.", "."], "\\\\.."),
    ] {
        let mut text = String::from("/");
        for part in parts {
            escape_value(part, &mut text);
        }
        seal_level(&mut text, 1);
        assert_eq!(&text[1..], expected);
        assert_eq!(canonical(&text), text);
        assert_eq!(unescape(&text[1..]), parts.concat());
    }
}
