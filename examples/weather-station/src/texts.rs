//! The texts of the page, in every language.
//!
//! They are contextual values, `/sw/pi/%language%/text/…`: whoever enters the
//! layer `language` reads them in that language (CoElektra, IV-A). English
//! stands in the specification, as defaults; each other language is a file of
//! values below its layer. A text may have places for values, `{value}`.

use crate::environment::sw::pi;

/// The texts as a context has them.
pub use pi::Text as Texts;

/// The languages that the station speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English.
    En,
    /// German.
    De,
    /// French.
    Fr,
    /// Spanish.
    Es,
    /// Arabic.
    Ar,
}

impl Language {
    /// All of them, in the order of the menu.
    pub const ALL: [Language; 5] = [
        Language::En,
        Language::De,
        Language::Fr,
        Language::Es,
        Language::Ar,
    ];

    /// Two letters.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Language::En => "en",
            Language::De => "de",
            Language::Fr => "fr",
            Language::Es => "es",
            Language::Ar => "ar",
        }
    }

    /// Its own name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Language::En => "English",
            Language::De => "Deutsch",
            Language::Fr => "Français",
            Language::Es => "Español",
            Language::Ar => "العربية",
        }
    }

    /// The language of a code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Language> {
        Language::ALL
            .into_iter()
            .find(|language| language.code() == code)
    }

    /// What a visitor chose; nothing where the browser is to say it.
    #[must_use]
    pub fn chosen(choice: pi::Language) -> Option<Language> {
        Language::from_code(choice.as_str())
    }

    /// This language as a visitor's choice.
    #[must_use]
    pub fn choice(self) -> pi::Language {
        match self {
            Language::En => pi::Language::En,
            Language::De => pi::Language::De,
            Language::Fr => pi::Language::Fr,
            Language::Es => pi::Language::Es,
            Language::Ar => pi::Language::Ar,
        }
    }

    /// The language that suits a browser's `Accept-Language` best:
    /// `de-AT,de;q=0.9,en;q=0.8`.
    #[must_use]
    pub fn accepted(header: &str) -> Option<Language> {
        let mut best: Option<(f32, Language)> = None;
        for wish in header.split(',').take(32) {
            let (tag, parameters) = wish.split_once(';').unwrap_or((wish, ""));
            let primary = tag
                .trim()
                .split('-')
                .next()
                .unwrap_or("")
                .to_ascii_lowercase();
            let Some(language) = Language::from_code(&primary) else {
                continue;
            };
            let quality = match parameters.trim().strip_prefix("q=") {
                Some(q) => q.trim().parse().unwrap_or(0.0),
                None => 1.0,
            };
            if quality > 0.0 && best.is_none_or(|(q, _)| quality > q) {
                best = Some((quality, language));
            }
        }
        best.map(|(_, language)| language)
    }
}

/// Puts values into the places of a text: `{value}` for the name `value`.
#[must_use]
pub fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, place) = rest.split_at(open);
        filled.push_str(before);
        let value = place.find('}').and_then(|close| {
            let name = &place[1..close];
            values
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| (*value, close))
        });
        rest = match value {
            Some((value, close)) => {
                filled.push_str(value);
                &place[close + 1..]
            }
            None => {
                filled.push('{');
                &place[1..]
            }
        };
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults;
    use crate::environment::{Environment, layer};
    use milieu::Coordinator;
    use milieu::context::{Descriptor, Environment as _};
    use std::collections::BTreeMap;

    /// The places of a text, sorted.
    fn places(text: &str) -> Vec<&str> {
        let mut places: Vec<&str> = text
            .split('{')
            .skip(1)
            .map(|rest| rest.split_once('}').expect("a place ends").0)
            .collect();
        places.sort_unstable();
        places
    }

    /// The texts of the specification, by name, in English.
    fn english() -> BTreeMap<&'static str, &'static str> {
        let text = |value: &'static Descriptor| {
            let name = value.pattern.strip_prefix("/sw/pi/%language%/text/")?;
            let default = value.metadata.iter().find(|(key, _)| *key == "default");
            Some((name, default?.1))
        };
        Environment::VALUES.iter().filter_map(text).collect()
    }

    #[test]
    fn every_language_has_every_text_with_the_same_places() {
        let english = english();
        for language in Language::ALL {
            assert_eq!(Language::chosen(language.choice()), Some(language));
            if language == Language::En {
                continue;
            }
            let code = language.code();
            let file = format!("texts/{code}.ini");
            let (_, content) = defaults::FILES.iter().find(|(f, _)| *f == file).unwrap();
            let keys = defaults::keys(content);
            let texts: BTreeMap<&str, &str> = keys
                .iter()
                .map(|(name, text, _)| {
                    let prefix = format!("/sw/pi/{code}/text/");
                    (name.strip_prefix(&prefix).expect("a text"), *text)
                })
                .collect();
            assert_eq!(texts.len(), keys.len(), "{file} says something twice");
            assert!(texts.keys().eq(english.keys()), "{file}");
            for (name, text) in texts {
                let model = english[name];
                assert!(!text.is_empty() || name == "digits", "{name} in {file}");
                assert_eq!(places(text), places(model), "{name} in {file}");
                let count = |text: &str| text.split('|').count();
                assert_eq!(count(text), count(model), "{name} in {file}");
            }
        }
        assert_eq!(places("{b} and {a}"), ["a", "b"]);
    }

    #[test]
    fn a_layer_gives_its_language_and_a_file_of_the_users_counts_more() {
        let coordinator = Coordinator::new();
        coordinator
            .assign("/sw/pi/de/text/live", "Frisch", None)
            .unwrap();
        defaults::assign(&coordinator).unwrap();
        let mut cx = coordinator.context::<Environment>().unwrap();
        for language in Language::ALL {
            let cx = cx.enter(layer::Language(language.code()));
            assert_eq!(cx.sw.pi.text.name, language.name());
        }
        let cx = cx.enter(layer::Language("de"));
        assert_eq!(cx.sw.pi.text.live, "Frisch");
        assert_eq!(coordinator.require_lock().assigned().len(), 1);
    }

    #[test]
    fn places_are_filled_and_other_braces_stay() {
        assert_eq!(
            fill("{a} of {b}{c}, {", &[("a", "1"), ("b", "{a}")]),
            "1 of {a}{c}, {"
        );
    }

    #[test]
    fn a_browsers_wish_is_heard() {
        assert_eq!(
            Language::accepted("de-AT,de;q=0.9,en;q=0.8"),
            Some(Language::De)
        );
        assert_eq!(
            Language::accepted("it, en;q=0.5, fr;q=0.7"),
            Some(Language::Fr)
        );
        assert_eq!(Language::accepted("ar;q=0, *"), None);
        assert_eq!(Language::accepted("\u{e9};;q=,,;"), None);
    }
}
