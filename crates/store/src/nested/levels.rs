//! Members of objects as levels of names, and back, by the table in [`format`](crate::format).
//!
//! Property kept: every member has a level, and every level a member that leads
//! back to it.

use std::borrow::Cow;

use milieu_keys::Name;
use milieu_keys::name::unescape;

/// The name of a member of the object with that name.
#[cfg(any(test, feature = "json", feature = "toml"))]
pub(crate) fn below(parent: &Name, member: &str) -> Name {
    if member == "%" {
        return parent.join("");
    }
    if member.is_empty() {
        return parent.join("\\");
    }
    match written(member) {
        None => parent.join(member),
        Some(level) => {
            let parent = if parent.is_root() {
                ""
            } else {
                parent.as_str()
            };
            Name::parse(&format!("{parent}/{level}")).expect("a canonical level below a name")
        }
    }
}

/// The member that a level is written as.
pub(crate) fn member(level: &str) -> Cow<'_, str> {
    if !level.contains(['\\', '%']) || level == "%" {
        return Cow::Borrowed(level);
    }
    if misread(level) {
        return Cow::Owned(format!("\\{level}"));
    }
    unescape(level)
}

/// The level that stands behind the backslash of such a member.
fn written(member: &str) -> Option<&str> {
    let level = member.strip_prefix('\\')?;
    (level.contains('%') && is_canonical(level) && misread(level)).then_some(level)
}

/// Whether the text of a level, without its escapes, would be read as another level.
fn misread(level: &str) -> bool {
    if level == "%" {
        return false;
    }
    let plain = unescape(level);
    has_place(level) || plain == "%" || written(&plain).is_some()
}

/// Whether a percent sign stands for an inactive layer.
fn has_place(level: &str) -> bool {
    let mut escaped = false;
    level.bytes().any(|byte| {
        let place = byte == b'%' && !escaped;
        escaped = byte == b'\\' && !escaped;
        place
    })
}

fn is_canonical(level: &str) -> bool {
    Name::parse(&format!("/{level}")).is_ok_and(|name| name.levels().eq([level]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn level_of(member: &str) -> String {
        below(&Name::root(), member).as_str()[1..].to_owned()
    }

    #[test]
    fn members_have_the_levels_of_the_table() {
        for (member_text, level) in [
            ("language", "language"),
            ("and/or", "and\\/or"),
            ("..", "\\.."),
            (".", "\\."),
            ("...", "..."),
            ("%", "%"),
            ("50%", "50\\%"),
            ("\\a%", "a%"),
            ("\\\\%", "\\%"),
            ("\\a", "\\\\a"),
            ("\\", "\\\\"),
            ("#0", "#0"),
        ] {
            assert_eq!(level_of(member_text), level);
            assert_eq!(member(level), member_text);
        }
        assert_eq!(level_of(""), "\\\\");
    }

    fn text() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            4 => proptest::sample::select(vec!['\\', '%', '/', '.', 'a', '#', '0']),
            1 => any::<char>(),
        ];
        proptest::collection::vec(character, 1..8)
            .prop_map(|characters| characters.into_iter().collect())
    }

    proptest! {
        #[test]
        fn every_member_is_found_again(text in text()) {
            let level = level_of(&text);
            prop_assert!(is_canonical(&level), "{level:?}");
            prop_assert_eq!(member(&level), text);
        }

        #[test]
        fn every_level_is_found_again(text in text()) {
            if let Ok(name) = Name::parse(&format!("/{text}")) {
                for level in name.levels() {
                    prop_assert_eq!(level_of(&member(level)), level);
                }
            }
        }
    }
}
