//! From the levels of a name to identifiers of programming languages.
//!
//! Identifiers are neutral here: words in snake case (`max_speed`) or in camel
//! case (`MaxSpeed`). What a language does about its own keywords is the
//! business of its back end. Two levels that differ only in what identifiers
//! cannot express (`max-speed`, `maxSpeed`) become the same identifier, which
//! lowering reports.

/// The words of a level, in lower case.
///
/// A word ends where no identifier could go on, at an underscore, and where
/// camel case begins a new one.
fn words(level: &str) -> Vec<String> {
    let characters: Vec<char> = level.chars().collect();
    let mut words = vec![String::new()];
    for (index, &character) in characters.iter().enumerate() {
        if character == '_' || !unicode_ident::is_xid_continue(character) {
            words.push(String::new());
            continue;
        }
        if character.is_uppercase() && index > 0 {
            let before = characters[index - 1];
            let after_is_lower = characters
                .get(index + 1)
                .is_some_and(|next| next.is_lowercase());
            if before.is_lowercase() || (before.is_uppercase() && after_is_lower) {
                words.push(String::new());
            }
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `Max-speed` becomes `max_speed`; nothing, if there is no letter or digit.
#[must_use]
pub fn snake_case(level: &str) -> Option<String> {
    let joined = words(level).join("_");
    let first = joined.chars().next()?;
    Some(if unicode_ident::is_xid_start(first) {
        joined
    } else {
        format!("_{joined}")
    })
}

/// `max-speed` becomes `MaxSpeed`; nothing, if there is no letter or digit.
///
/// Signs that carry meaning in values become words, so that `c` and `c++`
/// differ.
#[must_use]
pub fn camel_case(text: &str) -> Option<String> {
    let mut spelled = String::with_capacity(text.len());
    for (index, character) in text.char_indices() {
        let word = match character {
            '+' => "plus",
            '*' => "star",
            '#' => "sharp",
            '%' => "percent",
            '&' => "and",
            '<' => "less",
            '=' => "equal",
            '>' => "greater",
            '!' => "not",
            '-' if index == 0 => "minus",
            other => {
                spelled.push(other);
                continue;
            }
        };
        spelled.push('_');
        spelled.push_str(word);
        spelled.push('_');
    }
    let mut camel = String::with_capacity(spelled.len());
    for word in words(&spelled) {
        let mut characters = word.chars();
        // Between digits the boundary of the words must stay visible, or `1.11`
        // and `11.1` would be the same.
        let digits_meet = camel.ends_with(|last: char| last.is_numeric())
            && word.starts_with(|first: char| first.is_numeric());
        if digits_meet {
            camel.push('_');
        }
        camel.extend(characters.next().into_iter().flat_map(char::to_uppercase));
        camel.extend(characters);
    }
    let first = camel.chars().next()?;
    Some(if unicode_ident::is_xid_start(first) {
        camel
    } else {
        format!("V{camel}")
    })
}

#[cfg(test)]
mod tests {
    use super::{camel_case, snake_case};

    #[test]
    fn levels_become_snake_case() {
        for (level, expected) in [
            ("language", "language"),
            ("max-speed", "max_speed"),
            ("maxSpeed", "max_speed"),
            ("HTTPServer", "http_server"),
            ("gpio7", "gpio7"),
            ("7segment", "_7segment"),
            ("two words", "two_words"),
            ("größe", "größe"),
            ("_private", "private"),
        ] {
            assert_eq!(snake_case(level).as_deref(), Some(expected), "{level}");
        }
        assert_eq!(snake_case("-"), None);
    }

    #[test]
    fn values_become_camel_case() {
        for (value, expected) in [
            ("en", "En"),
            ("en_GB.UTF-8", "EnGbUtf8"),
            ("very low", "VeryLow"),
            ("c", "C"),
            ("c++", "CPlusPlus"),
            ("10", "V10"),
            ("-1", "Minus1"),
            ("1.11", "V1_11"),
            ("11.1", "V11_1"),
        ] {
            assert_eq!(camel_case(value).as_deref(), Some(expected), "{value}");
        }
        assert_eq!(camel_case(""), None);
    }
}
