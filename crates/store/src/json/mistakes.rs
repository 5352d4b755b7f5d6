//! What is said of the mistakes in a text.

use super::text::Wrong;

/// What is said of a mistake: message, label, help.
pub(super) type Words = (String, String, String);

pub(super) fn control_character(byte: u8, help: &str) -> Words {
    let message = match byte {
        0 => "a zero byte: the file is damaged or is no text".to_owned(),
        _ => format!("the control character \\u{byte:04x} stands in the text as it is"),
    };
    (message, "here".to_owned(), help.to_owned())
}

/// What is wrong within quotes.
pub(super) fn in_quotes(wrong: Wrong, written: &str) -> Words {
    let (message, help) = match wrong {
        Wrong::Escape => (
            format!("`{written}` is no escape"),
            format!("write `\\{written}` for a backslash"),
        ),
        Wrong::Digits => (
            "`\\u` needs four hexadecimal digits".to_owned(),
            "write for example `\\u00e9`; write `\\\\u` for a backslash".to_owned(),
        ),
        Wrong::Half => (
            format!("`{written}` is half of a character"),
            "write both halves, for example `\\ud83d\\ude00`, or the character itself".to_owned(),
        ),
        Wrong::Control(byte) => {
            let help = match byte {
                b'\t' => "write it as `\\t`".to_owned(),
                byte => format!("write it as `\\u{byte:04x}`, or remove it"),
            };
            return control_character(byte, &help);
        }
    };
    (message, "here".to_owned(), help)
}

/// What is wrong with a word that is no value.
pub(super) fn no_value(word: &str) -> Words {
    let help = if word.starts_with('\'') {
        "texts stand in double quotes"
    } else if word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        "a number is written as `0.5`, `-1` or `1e-3`; other texts stand in double quotes"
    } else if ["True", "False", "None", "TRUE", "FALSE", "NULL"].contains(&word) {
        "write `true`, `false` or `null`"
    } else {
        "texts stand in double quotes"
    };
    // The word itself is where the label points; it may be a secret, whose line is not shown.
    (
        "this is no value".to_owned(),
        "here".to_owned(),
        help.to_owned(),
    )
}
