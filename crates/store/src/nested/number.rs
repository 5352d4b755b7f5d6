//! Numbers as JSON writes them, which is how people write them elsewhere too.

/// Whether a word is a number of any size.
pub(crate) fn is_number(word: &str) -> bool {
    let bytes = word.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || whole > 1 && bytes[at] == b'0' {
        return false;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at);
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == bytes.len()
}

/// Whether a word is a whole number.
pub(crate) fn is_whole(word: &str) -> bool {
    is_number(word) && !word.contains(['.', 'e', 'E'])
}

/// Whether it has a value as a floating-point number of 64 bits.
pub(crate) fn is_finite(word: &str) -> bool {
    is_number(word) && word.parse::<f64>().is_ok_and(f64::is_finite)
}
