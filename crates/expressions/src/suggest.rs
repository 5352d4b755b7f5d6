//! Names near one that is unknown.

/// The nearest of the names that is near enough to be a slip.
pub(crate) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = wrong.chars().count() / 3 + 1;
    names
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= limit.min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many characters must be inserted, removed, replaced or exchanged with
/// the next one; case does not count.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.chars().take(64).flat_map(char::to_lowercase).collect();
    let (a, b): (Vec<char>, Vec<char>) = (letters(a), letters(b));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let names = ["temperature", "humidity", "size"];
        let near = |wrong| nearest(wrong, names.into_iter());
        assert_eq!(near("temprature"), Some("temperature"));
        assert_eq!(near("Temperature"), Some("temperature"));
        assert_eq!(near("szie"), Some("size"));
        assert_eq!(near("pressure"), None);
        assert_eq!(near("x"), None);
    }
}
