//! Topics, filters for topics, and names.

use milieu_stream::names::{self, Refusal};
use milieu_transfer::Name;

/// Whether a filter covers a topic: `+` is one level, `#` at the end any number.
/// Neither covers the `$` with which a broker's own topics begin.
///
/// ```
/// use milieu_adapters::mqtt::covers;
///
/// assert!(covers("home/+/heat", "home/kitchen/heat"));
/// assert!(covers("home/#", "home"));
/// assert!(!covers("#", "$SYS/broker/uptime"));
/// assert!(covers("$SYS/#", "$SYS/broker/uptime"));
/// ```
#[must_use]
pub fn covers(filter: &str, topic: &str) -> bool {
    if topic.is_empty() || topic.starts_with('$') && !filter.starts_with('$') {
        return false;
    }
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        match (wanted, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (wanted, Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// Most bytes of a topic; what is longer is no name either.
const BYTES_MAX: usize = 1024;

/// Whether it is a topic under which something can be published.
pub(super) fn is_topic(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= BYTES_MAX
        && !text.contains(['+', '#'])
        && !text.contains(char::is_control)
}

/// Whether it is a filter: wildcards are whole levels, `#` the last.
pub(super) fn is_filter(text: &str) -> bool {
    let levels: Vec<&str> = text.split('/').collect();
    let last = levels.len() - 1;
    let fits = |(at, level): (usize, &&str)| match *level {
        "#" => at == last,
        "+" => true,
        level => !level.contains(['+', '#']),
    };
    !text.is_empty()
        && text.len() <= BYTES_MAX
        && !text.contains(char::is_control)
        && levels.iter().enumerate().all(fits)
}

/// The name of a topic below another name.
pub(super) fn name(under: &str, topic: &str) -> Result<Name, Refusal> {
    if under == "/" {
        return names::name(&format!("/{topic}"));
    }
    // The last slash of a name can be an escaped one.
    let under = names::name(under)?;
    names::name(&format!("{}/{topic}", under.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_cover_what_they_should() {
        for (filter, topic, covered) in [
            ("a/b", "a/b", true),
            ("a/b", "a/b/c", false),
            ("a/+", "a", false),
            ("a/+", "a/", true),
            ("+/+", "/a", true),
            ("+", "/a", false),
            ("a/#", "a/b/c", true),
            ("a/#", "ab", false),
            ("#", "a/b", true),
            ("+/x", "$SYS/x", false),
            ("$SYS/+", "$SYS/x", true),
            ("#", "", false),
        ] {
            assert_eq!(covers(filter, topic), covered, "{filter} {topic}");
        }
    }

    #[test]
    fn topics_and_filters_are_what_the_standard_says() {
        for text in ["", "a/+", "#", "a\n", "a\0", &"a".repeat(1025)] {
            assert!(!is_topic(text), "{text:?}");
        }
        for text in ["", "a/#/b", "a+", "a/b#", "\0"] {
            assert!(!is_filter(text), "{text:?}");
        }
        assert!(is_topic("a b/ü") && is_filter("+/a/#"));
    }

    #[test]
    fn topics_that_climb_are_no_names() {
        assert_eq!(name("/mqtt", "a/b").unwrap().as_str(), "/mqtt/a/b");
        assert_eq!(name("/", "a").unwrap().as_str(), "/a");
        assert_eq!(name("/\\/", "a").unwrap().as_str(), "/\\//a");
        for topic in [
            "..",
            "a/../b",
            "a//b",
            "/a",
            "*",
            "a/%x%",
            "a?b",
            &"/".repeat(65_000),
        ] {
            assert!(name("/mqtt", topic).is_err(), "{topic:.20}");
        }
    }
}
