//! Names that were perhaps meant.

/// The most names that are suggested.
const NAMES_MAX: usize = 3;

/// The names that differ from this one by a slip or two, the nearest first.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let slips_max = 1 + name.chars().count() / 8;
    let mut near: Vec<(usize, &str)> = names
        .filter(|other| *other != name && other.len().abs_diff(name.len()) <= 4 * slips_max)
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .filter(|&(slips, _)| slips <= slips_max)
        .collect();
    near.sort();
    near.truncate(NAMES_MAX);
    near.into_iter().map(|(_, other)| other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognized_and_other_names_are_not() {
        let names = [
            "/sw/pi/anna/language",
            "/sw/pi/hanna/language",
            "/sw/pi/anna/volume",
            "/a",
        ];
        let of = |name| nearest(name, names.into_iter());
        assert_eq!(
            of("/sw/pi/ana/language"),
            ["/sw/pi/anna/language", "/sw/pi/hanna/language"]
        );
        assert_eq!(
            of("/sw/pi/anna/langauge"),
            ["/sw/pi/anna/language", "/sw/pi/hanna/language"]
        );
        assert_eq!(of("/b"), ["/a"]);
        assert_eq!(of("/hw/gpio"), Vec::<&str>::new());
    }
}
