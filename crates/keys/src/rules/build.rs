//! From the metadata of a key to its rules.

use super::checks::{Check, Kind};
use super::dates::Dates;
use super::formats::{FileKind, IpVersion};
use super::known::{self, array_index, flag, nearest};
use super::old_names;
use super::range::Range;
use super::units::Unit;
use super::{Metadata, REDACTED, RuleError, Rules, Type};
use regex_lite::RegexBuilder;
use std::collections::BTreeMap;

/// Metadata by key; the last one wins where a key is repeated.
pub(super) struct Given<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Given<'a> {
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.0.keys().copied()
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    /// Whether a valueless or boolean key is there and not false.
    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(flag).unwrap_or(false)
    }

    fn unsigned<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }

    /// The elements of an array in order; a gap is an error, since what comes
    /// after it would be lost.
    pub(super) fn array(&self, key: &str) -> Result<Vec<&'a str>, RuleError> {
        let mut elements: Vec<(usize, &str, &str)> = self
            .0
            .iter()
            .filter_map(|(&name, &value)| {
                let level = name.strip_prefix(key)?.strip_prefix('/')?;
                Some((array_index(level)?, name, value))
            })
            .collect();
        elements.sort_unstable();
        for (expected, &(index, name, value)) in elements.iter().enumerate() {
            if index != expected {
                return Err(RuleError::new(
                    name,
                    value,
                    format!("`{key}/#{expected}` is not there, or is there twice"),
                    "number the elements from `#0` on without gaps",
                ));
            }
        }
        Ok(elements.into_iter().map(|(_, _, value)| value).collect())
    }

    /// What a word says of one element of an array, however the index is
    /// written: the metadata key and its value.
    pub(super) fn of_element(
        &self,
        array: &str,
        index: usize,
        word: &str,
    ) -> Option<(&'a str, &'a str)> {
        let is_it = |key: &str| {
            let rest = key.strip_prefix(array)?.strip_prefix('/')?;
            let (level, last) = rest.split_once('/')?;
            Some(last == word && array_index(level) == Some(index))
        };
        let mut given = self.0.iter().map(|(&key, &value)| (key, value));
        given.find(|(key, _)| is_it(key) == Some(true))
    }
}

pub(super) fn rules(metadata: Metadata<'_>) -> Result<Rules, RuleError> {
    for &(key, value) in metadata {
        known::check_form(key, value)?;
    }
    let given = Given(metadata.iter().copied().collect());
    check_company(&given)?;

    let type_ = read_type(&given)?;
    let mut rules = Rules {
        type_,
        read_only: given.flag("readonly"),
        required: given.flag("require"),
        secret: given.flag("secret"),
        array: (given.unsigned("array/min"), given.unsigned("array/max")),
        ..Rules::unrestricted()
    };
    if let (Some(min), Some(max)) = rules.array {
        if min > max {
            return Err(RuleError::new(
                "array/min",
                min.to_string(),
                format!("it is more than `array/max={max}`"),
                "exchange the two",
            ));
        }
    }
    rules.unit = unit(&given, type_)?;
    choices(&given, &mut rules)?;
    ranges(&given, &mut rules)?;
    texts(&given, &mut rules)?;
    values(&given, &mut rules)?;
    rules.old_names = old_names::read(&given, &rules)?;
    Ok(rules)
}

/// Refuses metadata that says nothing without another one.
fn check_company(given: &Given<'_>) -> Result<(), RuleError> {
    const COMPANY: [(&str, &str); 7] = [
        ("check/validation/message", "check/validation"),
        ("check/validation/match", "check/validation"),
        ("check/validation/ignorecase", "check/validation"),
        ("check/validation/invert", "check/validation"),
        ("check/date/format", "check/date"),
        ("check/enum/multi", "check/enum/#0"),
        ("args/index", "args"),
    ];
    for (key, needed) in COMPANY {
        let Some(value) = given.get(key) else {
            continue;
        };
        let accompanied = given.get(needed).is_some()
            || (needed == "check/enum/#0" && given.get("check/enum").is_some());
        if !accompanied {
            return Err(RuleError::new(
                key,
                value,
                format!("it says nothing without `{needed}`"),
                format!("add `{needed}`, or remove `{key}`"),
            ));
        }
    }
    let args = given.get("args");
    match (args, given.get("args/index")) {
        (Some("indexed"), None) => Err(RuleError::new(
            "args",
            "indexed",
            "which argument it is, is not said",
            "add `args/index=0` for the first one",
        )),
        (Some("remaining"), Some(index)) => Err(RuleError::new(
            "args/index",
            index,
            "the remaining arguments have no index",
            "make it `args=indexed`, or remove `args/index`",
        )),
        _ => Ok(()),
    }
}

fn read_type(given: &Given<'_>) -> Result<Type, RuleError> {
    let Some(name) = given.get("type") else {
        return Ok(Type::String);
    };
    if let Some(type_) = Type::parse(name) {
        return Ok(type_);
    }
    let names = Type::ALL.map(Type::as_str);
    let replacement = match name {
        "char" | "wchar" | "wstring" | "any" | "text" => Some("string"),
        "octet" | "uint8" | "uint16" => Some("unsigned_short"),
        "bool" => Some("boolean"),
        "int" | "integer" | "int32" => Some("long"),
        "int16" => Some("short"),
        "int64" => Some("long_long"),
        "unsigned" | "uint" | "uint32" => Some("unsigned_long"),
        "uint64" => Some("unsigned_long_long"),
        "long_double" | "number" => Some("double"),
        _ => nearest(name, names),
    };
    let help = match replacement {
        Some(replacement) => format!("did you mean `{replacement}`?"),
        None => format!("use one of {}", names.join(", ")),
    };
    Err(RuleError::new("type", name, "there is no such type", help))
}

fn unit(given: &Given<'_>, type_: Type) -> Result<Option<Unit>, RuleError> {
    let Some(value) = given.get("check/unit") else {
        return Ok(None);
    };
    require_type(
        "check/unit",
        value,
        type_,
        type_.is_number() || type_ == Type::String,
        "a string or a number",
    )?;
    Unit::parse(value, given.get("unit"))
        .map(Some)
        .map_err(|(message, help)| RuleError::new("check/unit", value, message, help))
}

/// Refuses a check that values of the type never pass or always pass.
fn require_type(
    key: &str,
    value: &str,
    type_: Type,
    fits: bool,
    wanted: &str,
) -> Result<(), RuleError> {
    if fits {
        return Ok(());
    }
    Err(RuleError::new(
        key,
        value,
        format!("it does not fit `type={type_}`"),
        format!("give the key a type that is {wanted}, or remove `{key}`"),
    ))
}

fn choices(given: &Given<'_>, rules: &mut Rules) -> Result<(), RuleError> {
    let listed = given.get("check/enum");
    let mut choices: Vec<String> = given
        .array("check/enum")?
        .into_iter()
        .map(str::to_owned)
        .collect();
    let list = listed.filter(|list| !list.is_empty() && array_index(list).is_none());
    if let Some(list) = list {
        if !choices.is_empty() {
            return Err(RuleError::new(
                "check/enum",
                list,
                "the texts are listed a second time as `check/enum/#`",
                "keep one of the two lists",
            ));
        }
        choices = read_list(list)?;
    }
    for (index, choice) in choices.iter().enumerate() {
        if choices[..index].contains(choice) {
            return Err(RuleError::new(
                format!("check/enum/#{index}"),
                choice,
                "the text is listed twice",
                "remove one of the two",
            ));
        }
    }
    let multi = given.get("check/enum/multi");
    if rules.type_ == Type::Enum {
        if choices.is_empty() {
            return Err(RuleError::new(
                "type",
                "enum",
                "the variants are missing",
                "list them: `check/enum/#0=…`, `check/enum/#1=…`",
            ));
        }
        if let Some(multi) = multi {
            return Err(RuleError::new(
                "check/enum/multi",
                multi,
                "an enum has one variant at a time",
                "make it `type=string`, which may hold several",
            ));
        }
        rules.variants = choices;
        return Ok(());
    }
    if listed.is_none() && choices.is_empty() {
        return Ok(());
    }
    let value = listed.unwrap_or("");
    if choices.is_empty() {
        return Err(RuleError::new(
            "check/enum",
            value,
            "the texts allowed are missing",
            "list them: `check/enum/#0=…`, `check/enum/#1=…`",
        ));
    }
    require_type(
        "check/enum",
        value,
        rules.type_,
        rules.type_ != Type::Boolean,
        "an enum, a string or a number",
    )?;
    if multi == Some("") {
        return Err(RuleError::new(
            "check/enum/multi",
            "",
            "the separator is missing",
            "give one, such as `,`",
        ));
    }
    rules.checks.push(Check {
        key: "check/enum".to_owned(),
        value: list.unwrap_or("").to_owned(),
        kind: Kind::Choice {
            choices,
            separator: multi.map(str::to_owned),
        },
    });
    Ok(())
}

/// Reads `red, green` or `'red', 'green'`.
fn read_list(list: &str) -> Result<Vec<String>, RuleError> {
    list.split(',')
        .map(|item| {
            let item = item.trim();
            let quoted = ['\'', '"'].into_iter().find_map(|quote| {
                item.strip_prefix(quote)
                    .and_then(|item| item.strip_suffix(quote))
            });
            match quoted.unwrap_or(item) {
                "" => Err(RuleError::new(
                    "check/enum",
                    list,
                    "the list has an empty element",
                    "separate the texts by one comma each",
                )),
                item => Ok(item.to_owned()),
            }
        })
        .collect()
}

fn ranges(given: &Given<'_>, rules: &mut Rules) -> Result<(), RuleError> {
    for key in ["range", "check/range"] {
        let Some(value) = given.get(key) else {
            continue;
        };
        let fits = rules.type_.is_number() || rules.type_ == Type::String;
        require_type(key, value, rules.type_, fits, "a number")?;
        let range = Range::parse(value).map_err(|message| {
            RuleError::new(key, value, message, "write for example `0-10` or `1-5,8`")
        })?;
        rules.infinite |= range.is_infinite();
        let unit = rules.unit.clone().filter(|_| !rules.type_.is_number());
        rules.checks.push(Check {
            key: key.to_owned(),
            value: value.to_owned(),
            kind: Kind::Range(range, unit),
        });
    }
    Ok(())
}

/// The checks of what a text looks like.
fn texts(given: &Given<'_>, rules: &mut Rules) -> Result<(), RuleError> {
    let type_ = rules.type_;
    let is_string = type_ == Type::String;
    let mut add = |key: &str, value: &str, fits: bool, wanted: &str, kind: Kind| {
        require_type(key, value, type_, fits, wanted)?;
        rules.checks.push(Check {
            key: key.to_owned(),
            value: value.to_owned(),
            kind,
        });
        Ok(())
    };
    if let Some(value) = given.get("check/unit").filter(|_| is_string) {
        // Read before, so that it is there.
        if let Some(unit) = unit(given, type_)? {
            add("check/unit", value, true, "", Kind::Quantity(unit))?;
        }
    }
    if let Some(value) = given.get("check/validation") {
        let kind = expression(given, value)?;
        add("check/validation", value, true, "", kind)?;
    }
    if let Some((key, value, kind)) = length(given)? {
        add(key, &value, is_string, "a string", kind)?;
    }
    if let Some(value) = given.get("check/path") {
        let kind = match value {
            "file" => Some(FileKind::File),
            "directory" => Some(FileKind::Directory),
            "device" => Some(FileKind::Device),
            _ => None,
        };
        add("check/path", value, is_string, "a string", Kind::Path(kind))?;
    }
    if given.flag("check/port") {
        let fits = is_string || type_.integer_bounds().is_some();
        add("check/port", "", fits, "a whole number", Kind::Port)?;
    }
    if let Some(value) = given.get("check/ipaddr") {
        let version = match value {
            "ipv4" => IpVersion::V4,
            "ipv6" => IpVersion::V6,
            _ => IpVersion::Any,
        };
        let kind = Kind::IpAddress(version);
        add("check/ipaddr", value, is_string, "a string", kind)?;
    }
    if given.flag("check/email") {
        add("check/email", "", is_string, "a string", Kind::Email)?;
    }
    if let Some(value) = given.get("check/date") {
        let dates = dates(given, value)?;
        add(
            "check/date",
            value,
            is_string,
            "a string",
            Kind::Date(dates),
        )?;
    }
    Ok(())
}

fn expression(given: &Given<'_>, value: &str) -> Result<Kind, RuleError> {
    let pattern = match given.get("check/validation/match") {
        Some("LINE") => format!("^(?:{value})$"),
        Some("WORD") => format!(r"\b(?:{value})\b"),
        _ => value.to_owned(),
    };
    let expression = RegexBuilder::new(&pattern)
        .case_insensitive(given.flag("check/validation/ignorecase"))
        .build()
        .map_err(|error| {
            RuleError::new(
                "check/validation",
                value,
                format!("it is no regular expression: {error}"),
                r"escape characters that stand for themselves with `\`",
            )
        })?;
    Ok(Kind::Expression {
        expression,
        invert: given.flag("check/validation/invert"),
        message: given.get("check/validation/message").map(str::to_owned),
    })
}

fn length(given: &Given<'_>) -> Result<Option<(&'static str, String, Kind)>, RuleError> {
    let mut min: Option<usize> = given.unsigned("check/length/min");
    let mut max: Option<usize> = given.unsigned("check/length/max");
    let both = given.get("check/length");
    if let Some(value) = both {
        let (low, high) = value.split_once('-').unwrap_or(("0", value));
        match (low.trim().parse(), high.trim().parse()) {
            (Ok(low), Ok(high)) => {
                min = min.or(Some(low));
                max = max.or(Some(high));
            }
            _ => {
                return Err(RuleError::new(
                    "check/length",
                    value,
                    "it is neither a length nor a range of lengths",
                    "write `20` for at most 20 characters, or `1-20`",
                ));
            }
        }
    }
    let (key, value) = match (both, min, max) {
        (Some(both), _, _) => ("check/length", both.to_owned()),
        (None, Some(min), Some(max)) => ("check/length", format!("{min}-{max}")),
        (None, Some(min), None) => ("check/length/min", min.to_string()),
        (None, None, Some(max)) => ("check/length/max", max.to_string()),
        (None, None, None) => return Ok(None),
    };
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        return Err(RuleError::new(
            key,
            value,
            "the least length is more than the greatest",
            "exchange the two",
        ));
    }
    Ok(Some((key, value, Kind::Length { min, max })))
}

fn dates(given: &Given<'_>, value: &str) -> Result<Dates, RuleError> {
    if let Some(format) = given.get("check/date/format") {
        if !value.is_empty() && !value.eq_ignore_ascii_case("POSIX") {
            return Err(RuleError::new(
                "check/date/format",
                format,
                format!("`check/date={value}` has a format of its own"),
                "make it `check/date=POSIX`, or remove the format",
            ));
        }
        return Dates::format(format).map_err(|message| {
            let help = "use %Y %m %d %H %M %S and their like";
            RuleError::new("check/date/format", format, message, help)
        });
    }
    Dates::parse(value).ok_or_else(|| {
        let (message, help) = if value.eq_ignore_ascii_case("POSIX") {
            ("the format is missing", "add `check/date/format=%d.%m.%Y`")
        } else {
            (
                "there is no such form of dates",
                "use ISO8601, date, time, datetime, RFC3339, RFC2822, or POSIX",
            )
        };
        RuleError::new("check/date", value, message, help)
    })
}

/// The values that the specification itself gives; they keep the rules.
fn values(given: &Given<'_>, rules: &mut Rules) -> Result<(), RuleError> {
    for key in ["default", "example", "opt/flagvalue"] {
        let Some(value) = given.get(key) else {
            continue;
        };
        if rules.secret && key != "example" && !value.is_empty() {
            return Err(RuleError::new(
                key,
                REDACTED,
                "a specification is no place for a secret: many can read it",
                "remove it, and give the value in a file or a variable",
            ));
        }
        rules.check(value).map_err(|violation| {
            RuleError::new(
                key,
                value,
                violation.to_string(),
                format!("give `{key}` a value that keeps the rules, or change the rule"),
            )
        })?;
    }
    rules.default = given.get("default").map(str::to_owned);
    Ok(())
}
