//! Bytes as text: base 64 with padding, RFC 4648 section 4.

#[cfg(any(feature = "json", feature = "xml"))]
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(any(feature = "json", feature = "xml"))]
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let known = digit <= chunk.len();
            let index = (all >> (18 - 6 * digit) & 63) as usize;
            text.push(if known {
                char::from(DIGITS[index])
            } else {
                '='
            });
        }
    }
    text
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if text.len() % 4 != 0 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut all = 0;
        for digit in chunk {
            all = all << 6 | value(*digit)?;
        }
        all <<= 6 * (4 - chunk.len());
        let [_, first, second, third] = all.to_be_bytes();
        let whole = chunk.len() - 1;
        bytes.extend_from_slice(&[first, second, third][..whole]);
        // Bits that stand for nothing would give several texts to the same bytes.
        if [first, second, third][whole..]
            .iter()
            .any(|&rest| rest != 0)
        {
            return None;
        }
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(all(test, any(feature = "json", feature = "xml")))]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        for text in [
            "Z",
            "Zg=",
            "Zg",
            "Zh==",
            "Z===",
            "====",
            "Zg==Zg==",
            "Zm9\u{e4}",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
