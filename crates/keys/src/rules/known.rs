//! The metadata that specifications may use, and the form that each takes.

// Without the feature metadata is taken as the compiler of the specification left it.
#![cfg_attr(not(feature = "checks"), allow(dead_code))]

use super::RuleError;
use crate::pattern::Pattern;
use std::fmt;

/// A metadata key that has a meaning. `#` in the name stands for an index of an
/// array: `env/#` is written `env/#0`, `env/#1`.
#[derive(Debug)]
pub struct KnownKey {
    /// The name.
    pub name: &'static str,
    /// What it does, one sentence.
    pub description: &'static str,
    form: Form,
}

impl KnownKey {
    /// What its value has to be: `a whole number`.
    pub fn form(&self) -> impl fmt::Display {
        self.form.describe()
    }
}

/// What the value of a metadata key has to be. What only makes sense together
/// with other keys, or is a small language, is read where it is used.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Anything, also nothing; whoever uses the value checks it.
    Any,
    /// Some text.
    Text,
    /// One word.
    Word,
    /// Nothing, or a boolean.
    Flag,
    Integer,
    Unsigned,
    /// `V` or `-V`.
    Option,
    /// `version` or `--version`.
    LongOption,
    OneOf(&'static [&'static str]),
    /// The name of a key, placeholders allowed.
    Name,
    /// An environment variable.
    Variable,
    /// A name for generated code.
    Identifier,
    /// What the user types to call a subcommand; nothing for the program itself.
    Command,
}

impl Form {
    const fn describe(self) -> &'static str {
        match self {
            Form::Any => "as described",
            Form::Text => "text",
            Form::Word => "one word",
            Form::Flag => "nothing or a boolean",
            Form::Integer => "a whole number",
            Form::Unsigned => "a whole number from 0",
            Form::Option => "one character",
            Form::LongOption => "a word of letters, digits and `-`",
            Form::OneOf(_) => "one of the words described",
            Form::Name => "the name of a key",
            Form::Variable => "the name of an environment variable",
            Form::Identifier => "an identifier",
            Form::Command => "one word, or nothing",
        }
    }

    /// Checks a value; the error says why not, and the way out.
    fn check(self, value: &str) -> Result<(), (String, String)> {
        let complaint = |why: &str, remedy: &str| Err((why.to_owned(), remedy.to_owned()));
        match self {
            Form::Any => {}
            Form::Text if value.trim().is_empty() => {
                return complaint("the text is missing", "write some, or remove the key");
            }
            Form::Text => {}
            Form::Word if value.is_empty() || has_space(value) => {
                return complaint("it is not one word", "give a word without spaces");
            }
            Form::Word => {}
            Form::Flag => {
                if flag(value).is_none() {
                    return complaint(
                        "it is neither valueless nor a boolean",
                        "write the key alone, or give `true` or `false`",
                    );
                }
            }
            Form::Integer => {
                if value.parse::<i64>().is_err() {
                    return complaint("it is not a whole number", "give one such as `1`");
                }
            }
            Form::Unsigned => {
                if value.parse::<u32>().is_err() {
                    return complaint(
                        "it is not a whole number from 0",
                        "give one such as `0` or `1`",
                    );
                }
            }
            Form::Option => {
                if short_option(value).is_none() {
                    return complaint(
                        "an option is one character",
                        "give one such as `v` or `-v`, or use `opt/long` for a word",
                    );
                }
            }
            Form::LongOption => {
                if long_option(value).is_none() {
                    return complaint(
                        "a long option is a word that begins with a letter or digit",
                        "give one such as `verbose`, of letters, digits, `-`, `_` and `.`",
                    );
                }
            }
            Form::OneOf(words) => {
                if !words.contains(&value) {
                    let remedy = format!("give one of: {}", words.join(", "));
                    return Err(("it is not one of the words known here".to_owned(), remedy));
                }
            }
            Form::Name => {
                if !value.starts_with('/') {
                    return complaint(
                        "a name begins with `/`",
                        "give the whole name of the key, such as `/sw/pi/language`",
                    );
                }
                if let Err(error) = Pattern::parse(value) {
                    return Err((error.message, error.help));
                }
            }
            Form::Variable => {
                if value.is_empty() || has_space(value) || value.contains('=') {
                    return complaint(
                        "no environment variable can have that name",
                        "give one without spaces and `=`, such as `LANG`",
                    );
                }
            }
            Form::Identifier => {
                let begins = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if !begins || !value.chars().all(goes_on) {
                    return complaint(
                        "it is not an identifier",
                        "begin with a letter and use letters, digits and `_` only",
                    );
                }
            }
            Form::Command => {
                if value.starts_with('-') || has_space(value) {
                    return complaint(
                        "nobody can call a command of that name",
                        "give one word that does not begin with `-`",
                    );
                }
            }
        }
        Ok(())
    }
}

fn has_space(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// What a valueless or boolean metadata value says.
pub(crate) fn flag(value: &str) -> Option<bool> {
    if value.is_empty() {
        return Some(true);
    }
    super::types::parse_boolean(value)
}

/// The character of `opt=V` or `opt=-V`.
pub(crate) fn short_option(value: &str) -> Option<char> {
    let mut characters = value.strip_prefix('-').unwrap_or(value).chars();
    let option = characters.next()?;
    let valid = option != '-' && option != '=' && !option.is_whitespace() && !option.is_control();
    (valid && characters.next().is_none()).then_some(option)
}

/// The word of `opt/long=version` or `opt/long=--version`.
pub(crate) fn long_option(value: &str) -> Option<&str> {
    let word = value.strip_prefix("--").unwrap_or(value);
    let begins = word.starts_with(|c: char| c.is_alphanumeric());
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    (begins && word.chars().all(goes_on)).then_some(word)
}

/// The name of a metadata key with `#` for each index, and its last index.
fn shape(key: &str) -> (String, Option<usize>) {
    let mut index = None;
    let levels: Vec<&str> = key
        .split('/')
        .map(|level| match array_index(level) {
            Some(found) => {
                index = Some(found);
                "#"
            }
            None => level,
        })
        .collect();
    (levels.join("/"), index)
}

/// The index of an array element: `#0`, `#10`, or as Elektra writes it, `#_10`.
pub fn array_index(level: &str) -> Option<usize> {
    let digits = level.strip_prefix('#')?.trim_start_matches('_');
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// The level of an array element, as Elektra writes it: `#9`, `#_10`, `#__100`,
/// so that the order of names is the order of the elements.
pub fn array_level(index: usize) -> String {
    let digits = index.to_string();
    format!("#{}{digits}", "_".repeat(digits.len() - 1))
}

/// The known key that a metadata key is, if it is one.
pub fn known(key: &str) -> Option<&'static KnownKey> {
    if let Some(found) = KNOWN.iter().find(|known| known.name == key) {
        return Some(found);
    }
    let (shape, _) = shape(key);
    KNOWN.iter().find(|known| known.name == shape)
}

/// Checks the form of one value. Keys that are not known are the user's own.
pub(super) fn check_form(key: &str, value: &str) -> Result<(), RuleError> {
    let Some(known) = known(key) else {
        return Ok(());
    };
    // Elektra announces an array by its last index: `env=#1`.
    if array_index(value).is_some() && known_array(key) {
        return Ok(());
    }
    known
        .form
        .check(value)
        .map_err(|(message, help)| RuleError::new(key, value, message, help))
}

fn known_array(key: &str) -> bool {
    KNOWN
        .iter()
        .any(|known| known.name.strip_suffix("/#") == Some(key))
}

macro_rules! known {
    ($($name:literal $form:expr, $description:literal;)*) => {
        &[$(KnownKey { name: $name, description: $description, form: $form }),*]
    };
}

/// Every metadata key that has a meaning.
pub static KNOWN: &[KnownKey] = known! {
    "type" Form::Any, "The type of the value; `string` if it is not given.";
    "default" Form::Any, "The value as long as nobody gives another.";
    "readonly" Form::Flag, "The program cannot assign the value.";
    "range" Form::Any, "The numbers allowed, as `check/range`.";
    "require" Form::Flag, "Somebody has to give a value.";
    "secret" Form::Flag, "The value is for the program alone and never shown.";
    "array/min" Form::Unsigned, "The least number of elements of an array.";
    "array/max" Form::Unsigned, "The greatest number of elements of an array.";
    "opt" Form::Option, "The option of one character that sets the value.";
    "opt/#" Form::Option, "Several such options.";
    "opt/long" Form::LongOption, "The option of one word that sets the value.";
    "opt/long/#" Form::LongOption, "Several such options.";
    "opt/arg" Form::OneOf(&["none", "optional", "required"]),
        "Whether the option takes an argument: none, optional or required.";
    "opt/arg/name" Form::Word, "What the help calls the argument of the option.";
    "opt/arg/help" Form::Text, "What the help says about the argument of the option.";
    "opt/flagvalue" Form::Any, "The value that an option without argument sets.";
    "opt/help" Form::Text, "What the help says about the option, instead of the description.";
    "opt/hidden" Form::Flag, "The help does not show the option.";
    "args" Form::OneOf(&["indexed", "remaining"]),
        "The value comes from arguments that are no options: indexed or remaining.";
    "args/index" Form::Unsigned, "Which of these arguments it is, from 0.";
    "command" Form::Command, "The name of the subcommand whose options stand below this key.";
    "env" Form::Variable, "The environment variable that sets the value.";
    "env/#" Form::Variable, "Several such variables; the first one that is set wins.";
    "override/#" Form::Name, "Keys whose values are preferred to the own one.";
    "fallback/#" Form::Name, "Keys whose values are taken if there is no own one.";
    "check/range" Form::Any, "The numbers allowed: `0-10` or `1-5,8`.";
    "check/enum" Form::Any, "The texts allowed, as a list: `red, green`.";
    "check/enum/#" Form::Text, "The texts allowed, one by one; the variants of an enum.";
    "check/enum/multi" Form::Any, "The separator, if several of these texts may be given at once.";
    "check/validation" Form::Any, "A regular expression that the text has to match.";
    "check/validation/message" Form::Text, "What to say when it does not.";
    "check/validation/match" Form::OneOf(&["ANY", "WORD", "LINE"]),
        "Whether to match ANY part of the text, a WORD, or the whole LINE.";
    "check/validation/ignorecase" Form::Flag, "Match without regard to the case of letters.";
    "check/validation/invert" Form::Flag, "The text must not match.";
    "check/length" Form::Any, "How many characters are allowed: `1-20`, or `20` at most.";
    "check/length/min" Form::Unsigned, "The least number of characters.";
    "check/length/max" Form::Unsigned, "The greatest number of characters.";
    "check/path" Form::OneOf(&["", "file", "directory", "device"]),
        "An absolute path; of a file, a directory or a device, if one of these words is given.";
    "check/port" Form::Flag, "A number of a port, from 1 to 65535.";
    "check/ipaddr" Form::OneOf(&["", "ipv4", "ipv6"]), "An IP address, or one of that version.";
    "check/email" Form::Flag, "A mail address.";
    "check/date" Form::Any,
        "A date: ISO8601, date, time, datetime, RFC3339, RFC2822, or POSIX with `check/date/format`.";
    "check/date/format" Form::Text, "The format of the date, as for strptime: `%d.%m.%Y`.";
    "check/unit" Form::Any, "A number with a unit: memory, time, or the unit itself.";
    "unit" Form::Word, "The unit of the number.";
    "description" Form::Text, "What the key is for.";
    "rationale" Form::Text, "Why the key is as it is.";
    "example" Form::Any, "A value that the key may have.";
    "deprecated" Form::Text, "Since when or why not to use the key, and what to use instead.";
    "removed" Form::Text, "Why there is no such key any more; files that have it still work.";
    "was/#" Form::Name, "Names that the key had before; the one that counts first comes first.";
    "was/#/convert" Form::Text,
        "What values of the old key become: `yes -> true, no -> false`, `not`, or `* 1000`.";
    "was/#/unit" Form::Word, "The unit that numbers of the old key were in.";
    "order" Form::Integer, "The place of the key in documentation and files.";
    "layer/name" Form::Identifier,
        "What generated code calls the layer; of a value, the layer that it is.";
    "layer/order" Form::Integer, "The place of the layer among those that stack.";
};

/// The candidate that is most like a word, if one is alike enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(word, &mut candidates.into_iter())
}

/// As [`nearest`], once for all that gives candidates.
fn nearest_of<'a>(word: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing costs the product of the lengths; nobody mistypes a novel.
    let word: Vec<char> = word.chars().take(64).collect();
    let mut nearest = None;
    let mut least = word.len().div_ceil(3) + 1;
    for candidate in candidates {
        let distance = distance(&word, candidate);
        if distance < least && distance < candidate.chars().count() {
            (nearest, least) = (Some(candidate), distance);
        }
    }
    nearest
}

/// How many letters to insert, remove, change or swap with their neighbour.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = above[j] + usize::from(a[i] != b[j]);
            let mut best = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                let swapped: &Vec<usize> = &before;
                best = best.min(swapped[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
