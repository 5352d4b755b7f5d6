//! The texts of the page, in every language.
//!
//! English stands in the specification, as defaults of
//! `/sw/pi/%language%/text/…`; each other language is a file of values below
//! its layer. A text may have places for values, `{value}`.

use std::collections::BTreeMap;

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

macro_rules! texts {
    ($($name:ident),* $(,)?) => {
        /// One text for each key below `/sw/pi/%language%/text`; the
        /// specification describes them.
        #[derive(Clone, Debug, Default)]
        #[allow(missing_docs, reason = "the specification describes each text")]
        pub struct Texts { $(pub $name: String,)* }

        impl Texts {
            fn from_values(values: &BTreeMap<&str, &str>) -> Texts {
                let text = |name: &str| values.get(name).map_or_else(String::new, |t| (*t).to_owned());
                Texts { $($name: text(stringify!($name)),)* }
            }

            #[cfg(test)]
            fn all(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($name), self.$name.as_str()),)*]
            }
        }
    };
}

texts! {
    title, tagline, skip, station, language, choose, live, offline, still, tamper_alarm,
    tamper_detail, temperature, dew_point, humidity, wind, wind_direction, pressure,
    precipitation, visibility, feels_like, high, low, within_day, calm, variable,
    from_direction, rising, falling, steady, within_three_hours, last_hour, sum_of_day,
    humidity_dry, humidity_pleasant, humidity_damp, sight_clear, sight_fair, sight_poor,
    not_reported, implausible, no_observation, no_observation_yet, implausible_range,
    implausible_spike, hours_without, rows_skipped, dry, mist, fog, rain, heavy_rain, snow,
    unknown_condition, history, range_day, range_two_days, range_week, chart_summary,
    no_data, table, time, notes, replay, replay_detail, speed, pause, real_time,
    minutes_a_second, hours_a_second, jump, go, progress, machine, load, load_detail,
    processors, stall_cpu, stall_io, stall_memory, stall_detail, memory, memory_detail,
    network, network_detail, measuring, battery, charging, discharging, full, idle, adapter,
    plugged, unplugged, sensor_failed, no_sensors, tamper_input, tamper_quiet,
    tamper_active, tamper_none, profile, profile_none, source, made_with, summer_time,
    winter_time, celsius, metres_a_second, kilometres_an_hour, hectopascal, millimetres,
    kilometres, percent, degrees, kilobytes, megabytes, gigabytes, a_second, turns_a_minute,
    volts, amperes, watts, date, short_date, months, months_short, weekdays, compass,
    decimal, digits, direction, name,
}

impl Texts {
    /// The texts of a language.
    #[must_use]
    pub fn of(language: Language) -> Texts {
        Texts::from_values(&match language {
            Language::En => defaults(include_str!("../weather-station.ini")),
            Language::De => values(include_str!("../texts/de.ini")),
            Language::Fr => values(include_str!("../texts/fr.ini")),
            Language::Es => values(include_str!("../texts/es.ini")),
            Language::Ar => values(include_str!("../texts/ar.ini")),
        })
    }
}

/// The defaults of the specification's texts.
fn defaults(specification: &'static str) -> BTreeMap<&'static str, &'static str> {
    let mut name = None;
    let mut found = BTreeMap::new();
    for line in specification.lines() {
        if let Some(section) = line.strip_prefix('[') {
            name = section
                .strip_prefix("/sw/pi/%language%/text/")
                .and_then(|s| s.strip_suffix(']'));
        } else if let (Some(name), Some(text)) = (name, line.strip_prefix("default=")) {
            found.insert(name, text);
        }
    }
    found
}

/// The values of a file with one section.
fn values(file: &'static str) -> BTreeMap<&'static str, &'static str> {
    let lines = file.lines().filter(|line| !line.starts_with(['#', '[']));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, text)| (name.trim(), text.trim()))
        .collect()
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

    #[test]
    fn every_language_has_every_text_with_the_same_places() {
        let english = Texts::of(Language::En);
        for language in Language::ALL {
            let texts = Texts::of(language);
            for ((name, text), (_, model)) in texts.all().into_iter().zip(english.all()) {
                assert!(
                    !text.is_empty() || name == "digits",
                    "{name} is missing in {language:?}"
                );
                assert_eq!(places(text), places(model), "{name} in {language:?}");
                assert_eq!(
                    text.split('|').count(),
                    model.split('|').count(),
                    "{name} in {language:?}"
                );
            }
            assert_eq!(texts.name, language.name());
        }
    }

    #[test]
    fn no_file_has_a_text_that_the_page_does_not() {
        let known: Vec<&str> = Texts::of(Language::En)
            .all()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for file in [
            include_str!("../texts/de.ini"),
            include_str!("../texts/fr.ini"),
            include_str!("../texts/es.ini"),
            include_str!("../texts/ar.ini"),
        ] {
            for name in values(file).keys() {
                assert!(known.contains(name), "{name}");
            }
        }
        for name in defaults(include_str!("../weather-station.ini")).keys() {
            assert!(known.contains(name), "{name}");
        }
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
