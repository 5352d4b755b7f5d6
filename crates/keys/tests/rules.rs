//! Every type and every metadata key: a value that is accepted and one that is
//! refused, and what the refusal says.

use milieu_keys::rules::{FileKind, FileSystem, KNOWN, known, nearest};
use milieu_keys::{RuleError, Rules, Scalar, Type};

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Reads `type=short check/port` into pairs; `;` separates.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    text.split(';')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect()
}

fn rules(text: &str) -> Rules {
    Rules::from_metadata(&pairs(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn rule_error(metadata: Pairs<'_>) -> RuleError {
    Rules::from_metadata(metadata).expect_err("metadata that cannot be meant")
}

/// Metadata that restricts values: what it is, a value that is accepted with its
/// canonical text, a value that is refused with a part of what is said.
const VALUES: &[(&str, &str, &str, &str, &str)] = &[
    ("type=boolean", "Yes", "true", "maybe", "`true` or `false`"),
    ("type=short", "-32768", "-32768", "32768", "-32768 to 32767"),
    ("type=unsigned_short", "+007", "7", "-1", "0 to 65535"),
    (
        "type=long",
        "2147483647",
        "2147483647",
        "2147483648",
        "-2147483648 to 2147483647",
    ),
    (
        "type=unsigned_long",
        "4294967295",
        "4294967295",
        "4294967296",
        "0 to 4294967295",
    ),
    (
        "type=long_long",
        "-9223372036854775808",
        "-9223372036854775808",
        "9223372036854775808",
        "does not fit long_long",
    ),
    (
        "type=unsigned_long_long",
        "18446744073709551615",
        "18446744073709551615",
        "999999999999999999999999999999999999999999",
        "0 to 18446744073709551615",
    ),
    (
        "type=float",
        "0.10",
        "0.1",
        "1e39",
        "-3.4028235e38 to 3.4028235e38",
    ),
    ("type=double", "1e300", "1e300", "nan", "is not a number"),
    ("type=string", "", "", "\u{0}", ""),
    (
        "type=enum;check/enum/#0=red;check/enum/#1=green",
        "green",
        "green",
        "gren",
        "mean `green`?",
    ),
    ("type=long;range=0-10", "10", "10", "11", "0 to 10"),
    (
        "type=short;check/range=-5--1,8",
        "8",
        "8",
        "0",
        "-5 to -1, 8",
    ),
    ("check/enum=red, green", "red", "red", "blue", "red, green"),
    (
        "check/enum=#1;check/enum/#0=a;check/enum/#1=b",
        "a",
        "a",
        "c",
        "a, b",
    ),
    (
        "check/enum/#0=a;check/enum/#1=b;check/enum/multi=,",
        "b, a",
        "b, a",
        "a,c",
        "a, b",
    ),
    (
        "check/validation=^[a-z]+$",
        "abc",
        "abc",
        "ab1",
        "match the expression",
    ),
    (
        "check/validation=^a;check/validation/message=begin with a",
        "ab",
        "ab",
        "b",
        "begin with a",
    ),
    (
        "check/validation=b;check/validation/match=ANY",
        "abc",
        "abc",
        "ac",
        "does not match",
    ),
    (
        "check/validation=b;check/validation/match=WORD",
        "a b c",
        "a b c",
        "abc",
        "does not match",
    ),
    (
        "check/validation=b|c;check/validation/match=LINE",
        "c",
        "c",
        "bc",
        "does not match",
    ),
    (
        "check/validation=^[[:alpha:]]$;check/validation/ignorecase",
        "A",
        "A",
        "1",
        "does not match",
    ),
    (
        "check/validation=^A$;check/validation/ignorecase=false",
        "A",
        "A",
        "a",
        "does not match",
    ),
    (
        "check/validation=^a;check/validation/invert",
        "b",
        "b",
        "ab",
        "give one that does not",
    ),
    (
        "check/length=2-3",
        "äöü",
        "äöü",
        "a",
        "at least 2 and at most 3",
    ),
    ("check/length=3", "", "", "abcd", "at most 3"),
    (
        "check/length/min=2",
        "ab",
        "ab",
        "a",
        "has 1 character; give at least 2",
    ),
    ("check/length/max=2", "ab", "ab", "abc", "at most 2"),
    (
        "check/path",
        "/etc/../x",
        "/etc/../x",
        "etc",
        "begin it with `/` or `~/`",
    ),
    (
        "check/path=file",
        "~/context/pi",
        "~/context/pi",
        "",
        "not an absolute path",
    ),
    (
        "check/path=directory",
        "~",
        "~",
        "~anna",
        "not an absolute path",
    ),
    (
        "check/path=device",
        "/dev/sda",
        "/dev/sda",
        "/dev/\u{0}",
        "NUL",
    ),
    ("check/port", "65535", "65535", "65536", "1 to 65535"),
    (
        "type=unsigned_short;check/port",
        "1",
        "1",
        "0",
        "1 to 65535",
    ),
    (
        "check/ipaddr",
        "::1",
        "::1",
        "127.0.0.1337",
        "an IP address",
    ),
    (
        "check/ipaddr=ipv4",
        "127.0.0.1",
        "127.0.0.1",
        "::1",
        "an IPv4 address",
    ),
    (
        "check/ipaddr=ipv6",
        "fe80::1",
        "fe80::1",
        "127.0.0.1",
        "an IPv6 address",
    ),
    (
        "check/email",
        "a.b+c@example.org",
        "a.b+c@example.org",
        "a..b@example.org",
        "mail address",
    ),
    (
        "check/date",
        "2024-02-29",
        "2024-02-29",
        "2023-02-29",
        "ISO 8601",
    ),
    (
        "check/date=ISO8601",
        "20130506T120000Z",
        "20130506T120000Z",
        "2013-13-01",
        "ISO 8601",
    ),
    (
        "check/date=date",
        "2015-W53-7",
        "2015-W53-7",
        "2016-W53-7",
        "a date of ISO 8601",
    ),
    (
        "check/date=date",
        "2012-366",
        "2012-366",
        "2013-366",
        "a date of ISO 8601",
    ),
    (
        "check/date=time",
        "23:59:60.5+01:00",
        "23:59:60.5+01:00",
        "24:01",
        "12:00:00",
    ),
    (
        "check/date=datetime",
        "2013-05-06 12:00",
        "2013-05-06 12:00",
        "2013-05-06",
        "and time",
    ),
    (
        "check/date=RFC3339",
        "2013-05-06T12:00:00.25-08:00",
        "2013-05-06T12:00:00.25-08:00",
        "2013-05-06T12:00:00",
        "RFC 3339",
    ),
    (
        "check/date=RFC2822",
        "Mon, 06 May 2013 12:00:00 +0000",
        "Mon, 06 May 2013 12:00:00 +0000",
        "Tue, 06 May 2013 12:00:00 +0000",
        "RFC 2822",
    ),
    (
        "check/date=POSIX;check/date/format=%d.%m.%Y %R",
        "29.2.2024 8:05",
        "29.2.2024 8:05",
        "31.4.2024 8:05",
        "%d.%m.%Y",
    ),
    ("check/unit", "10 MB", "10 MB", "10", "has no unit"),
    (
        "check/unit=memory",
        "1.5 GiB",
        "1.5 GiB",
        "10 X\nB",
        "unknown unit `X\\nB`",
    ),
    (
        "check/unit=time",
        "5min",
        "5min",
        "5 minutes",
        "ns, us, µs, ms, s, min, h, d",
    ),
    (
        "check/unit=hPa",
        "1013.2 hPa",
        "1013.2 hPa",
        "1013 mbar",
        "is not in hPa",
    ),
    (
        "type=unsigned_long;check/unit=memory",
        "1.5 kB",
        "1500",
        "5 GB",
        "is 5000000000 B and",
    ),
    (
        "type=long;check/unit=time;unit=ms",
        "2 min",
        "120000",
        "2 us",
        "whole number of ms",
    ),
    (
        "type=double;check/unit=time",
        "90 min",
        "5400",
        "90 ´",
        "unknown unit",
    ),
    (
        "type=long;check/unit=time;unit=ms;range=0-999",
        "0.5 s",
        "500",
        "1 s",
        "0 to 999",
    ),
    (
        "check/unit=time;range=0-10",
        "10 s",
        "10 s",
        "11 s",
        "0 to 10 s",
    ),
    (
        "type=double;range=0.5-inf",
        "inf",
        "inf",
        "0.25",
        "0.5 to inf",
    ),
    (
        "type=long;check/validation=^0",
        "007",
        "007",
        "7",
        "does not match",
    ),
    ("type=long;check/enum=1,2", "2", "2", "3", "1, 2"),
];

#[test]
fn values_are_accepted_and_refused() {
    for &(metadata, accepted, canonical, refused, said) in VALUES {
        let rules = rules(metadata);
        match rules.canonical(accepted) {
            Ok(text) => assert_eq!(text, canonical, "{metadata}"),
            Err(violation) => panic!("{metadata}: {violation}"),
        }
        // What is written is accepted again and means the same.
        assert_eq!(
            rules.check(&rules.canonical(canonical).unwrap()),
            rules.check(canonical),
            "{metadata}"
        );
        assert_eq!(rules.canonical(canonical).unwrap(), canonical, "{metadata}");
        if metadata == "type=string" {
            // Any text is a string.
            assert_eq!(rules.check(refused), Ok(Scalar::Text(refused)));
            continue;
        }
        let violation = rules.check(refused).expect_err(metadata);
        let shown = violation.to_string();
        assert!(shown.contains(said), "{metadata}: {shown}");
        assert_eq!(violation.value, refused);
        assert!(!shown.contains(char::is_control), "{metadata}: {shown}");
    }
}

/// Metadata by its own form: what is accepted, what is refused, and the part of
/// the message that shows the way out.
const METADATA: &[(&str, &str, &str)] = &[
    ("type=long", "type=lnog", "`long`"),
    ("type=string", "type=int", "did you mean `long`?"),
    ("default=x", "type=long;default=x", "keeps the rules"),
    ("readonly", "readonly=perhaps", "`true` or `false`"),
    ("range=1.5-2.5,7", "range=5-1", "5 is more than 1"),
    (
        "type=long;range=0-5",
        "type=boolean;range=0-5",
        "type that is a number",
    ),
    ("require=true", "require=x", "write the key alone"),
    (
        "array/min=1;array/max=1",
        "array/min=2;array/max=1",
        "exchange",
    ),
    ("array/max=3", "array/max=-3", "from 0"),
    ("opt=-V", "opt=verbose", "`opt/long`"),
    ("opt=#1;opt/#0=a;opt/#1=-b", "opt/#0=--", "one character"),
    ("opt/long=--dry-run", "opt/long=a b", "a word"),
    ("opt/long/#0=all", "opt/long/#0=", "a word"),
    (
        "opt/arg=optional",
        "opt/arg=maybe",
        "none, optional, required",
    ),
    ("opt/arg/name=FILE", "opt/arg/name=A FILE", "without spaces"),
    ("opt/arg/help=A file", "opt/arg/help", "write some"),
    (
        "opt/flagvalue=x",
        "type=long;opt/flagvalue=x",
        "keeps the rules",
    ),
    ("opt/help=Shows more", "opt/help", "write some"),
    ("opt/hidden", "opt/hidden=secret", "nor a boolean"),
    ("args=remaining", "args=some", "indexed, remaining"),
    (
        "args=indexed;args/index=0",
        "args=indexed",
        "add `args/index=0`",
    ),
    (
        "args=indexed;args/index=1",
        "args=indexed;args/index=one",
        "from 0",
    ),
    (
        "args=indexed;args/index=1",
        "args/index=1",
        "without `args`",
    ),
    ("command=get", "command=-get", "does not begin with `-`"),
    ("env=LANG", "env=MY LANG", "such as `LANG`"),
    ("env/#0=A;env/#1=B", "env/#0=", "such as `LANG`"),
    ("override/#0=/sw/%a%/b", "override/#0=b", "begins with `/`"),
    ("fallback/#0=/a", "fallback/#0=/a/../b", "climb"),
    ("check/range=0-10", "check/range=", "a number is missing"),
    ("check/enum=a,b", "check/enum=a,,b", "empty element"),
    (
        "check/enum/#0=a;check/enum/#1=b",
        "check/enum/#0=a;check/enum/#2=b",
        "without gaps",
    ),
    (
        "check/enum/#0=a",
        "check/enum/#0=a;check/enum/#1=a",
        "twice",
    ),
    ("type=enum;check/enum/#0=a", "type=enum", "list them"),
    (
        "check/enum=a;check/enum/multi=,",
        "check/enum=a;check/enum/multi",
        "such as `,`",
    ),
    (
        "check/validation=^a$",
        "check/validation=(",
        "no regular expression",
    ),
    (
        "check/validation=a;check/validation/message=x",
        "check/validation/message=x",
        "`check/validation`",
    ),
    (
        "check/validation=a;check/validation/match=LINE",
        "check/validation=a;check/validation/match=ALL",
        "WORD",
    ),
    (
        "check/validation=a;check/validation/ignorecase",
        "check/validation=a;check/validation/ignorecase=x",
        "boolean",
    ),
    (
        "check/validation=a;check/validation/invert",
        "check/validation/invert",
        "without `check/validation`",
    ),
    ("check/length=1-2", "check/length=2-1", "exchange"),
    ("check/length=7", "check/length=seven", "write `20`"),
    ("check/length/min=1", "check/length/min=-1", "from 0"),
    (
        "check/length/max=1",
        "type=long;check/length/max=1",
        "a string",
    ),
    (
        "check/path=file",
        "check/path=socket",
        "file, directory, device",
    ),
    (
        "check/port=true",
        "type=double;check/port",
        "a whole number",
    ),
    ("check/ipaddr=ipv6", "check/ipaddr=ipv5", "ipv4, ipv6"),
    ("check/email", "type=long;check/email", "a string"),
    ("check/date=date", "check/date=someday", "RFC3339"),
    (
        "check/date=POSIX;check/date/format=%F",
        "check/date=POSIX",
        "`check/date/format",
    ),
    (
        "check/date=;check/date/format=%T",
        "check/date=;check/date/format=%Q",
        "not known",
    ),
    ("check/unit=time", "check/unit=2 h", "`memory`, `time`"),
    (
        "check/unit=time;unit=ms",
        "check/unit=time;unit=kg",
        "one of ns",
    ),
    ("unit=hPa", "unit=", "one word"),
    ("description=What it is for", "description", "write some"),
    ("rationale=Since", "rationale=  ", "write some"),
    ("example=7", "type=boolean;example=7", "keeps the rules"),
    ("deprecated=since 2.0, use /b", "deprecated", "write some"),
    ("removed=nobody asks", "removed", "write some"),
    ("was/#0=/a/%b%", "was/#0=a", "begins with `/`"),
    ("was/#0=/a;was/#1=/b", "was/#0=/a;was/#1=/a", "listed twice"),
    ("was/#0=/a", "was/#1=/a", "without gaps"),
    (
        "was/#0=/a;was/#0/convert=a -> b",
        "was/#0=/a;was/#1/convert=a -> b",
        "there is no `was/#1`",
    ),
    (
        "was/#0=/a;was/#0/convert='a, b' -> \"\", c->d",
        "was/#0=/a;was/#0/convert=a, b",
        "no table",
    ),
    (
        "was/#0=/a;was/#0/convert=a -> b",
        "was/#0=/a;was/#0/convert=a -> b,",
        "no table",
    ),
    (
        "was/#0=/a;was/#0/convert='a'->'b'",
        "was/#0=/a;was/#0/convert='a' 'b' -> c",
        "no table",
    ),
    (
        "was/#0=/a;was/#0/convert=a->b,c->b",
        "was/#0=/a;was/#0/convert=a->b,a->c",
        "listed twice",
    ),
    (
        "type=short;was/#0=/a;was/#0/convert=none -> 0",
        "type=short;was/#0=/a;was/#0/convert=none -> zero",
        "keep the rules",
    ),
    (
        "type=boolean;was/#0=/a;was/#0/convert=not",
        "was/#0=/a;was/#0/convert=not",
        "make it `type=boolean`",
    ),
    (
        "type=long;was/#0=/a;was/#0/convert=* 9 / 5 + 32",
        "type=long;was/#0=/a;was/#0/convert=* x",
        "`* 1000`",
    ),
    (
        "type=long;was/#0=/a;was/#0/convert=-1 -> 0",
        "was/#0=/a;was/#0/convert=* 2",
        "only numbers",
    ),
    (
        "type=double;was/#0=/a;was/#0/convert=/ 2",
        "type=double;was/#0=/a;was/#0/convert=/ 0",
        "no calculation",
    ),
    (
        "check/unit=time;was/#0=/a;was/#0/unit=ms",
        "check/unit=time;was/#0=/a;was/#0/unit=kB",
        "cannot have that unit",
    ),
    (
        "check/unit=hPa;was/#0=/a;was/#0/unit=hPa",
        "type=long;was/#0=/a;was/#0/unit=hPa",
        "add a `check/unit`",
    ),
    (
        "type=long;check/unit=time;was/#0=/a;was/#0/unit=ms",
        "type=long;check/unit=time;was/#0=/a;was/#0/unit=ms;was/#0/convert=* 2",
        "keep one",
    ),
    ("secret", "secret=perhaps", "`true` or `false`"),
    (
        "secret;default=",
        "secret;default=a",
        "no place for a secret",
    ),
    (
        "secret=no;default=a",
        "secret;default=a",
        "`default=(secret)`",
    ),
    ("order=-1", "order=first", "whole number"),
    (
        "layer/name=BatteryLow",
        "layer/name=battery-low",
        "letters, digits and `_`",
    ),
    ("layer/order=3", "layer/order=3.5", "whole number"),
];

#[test]
fn metadata_is_accepted_and_refused() {
    for &(accepted, refused, remedy) in METADATA {
        rules(accepted);
        let error = rule_error(&pairs(refused)).to_string();
        assert!(error.contains(remedy), "{refused}: {error}");
    }
}

/// A machine without a file.
struct Nowhere;

impl FileSystem for Nowhere {
    fn kind(&self, _: &str) -> Option<FileKind> {
        None
    }
}

#[test]
fn what_refuses_a_secret_does_not_show_it() {
    for &(metadata, _, _, refused, _) in VALUES {
        // A string without checks refuses nothing.
        let Err(open) = rules(metadata).check(refused) else {
            continue;
        };
        let secret = rules(&format!("{metadata};secret"));
        let violation = secret.check(refused).unwrap_err();
        assert_eq!(violation.rule, open.rule, "{metadata}");
        let shown = format!("{violation} {violation:?}");
        let in_rule = open.rule.contains(refused);
        assert!(
            refused.len() < 2 || in_rule || !shown.contains(refused),
            "{shown}"
        );
        assert_eq!(secret.canonical(refused), Err(violation));
    }
    let worded = rules("secret;check/validation=[0-9];check/validation/message=it needs a digit");
    assert_eq!(
        worded.check("hunter").unwrap_err().to_string(),
        "`(secret)` is refused: it needs a digit (rule check/validation=[0-9])"
    );
    let path = rules("secret;check/path=file");
    let violation = path.check_with("/hunter2", &Nowhere).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "`(secret)` breaks this rule; give one that keeps it (rule check/path=file)"
    );
}

#[test]
fn every_known_key_and_type_has_its_rows() {
    for key in KNOWN {
        let mentions = |text: &str| {
            pairs(text)
                .iter()
                .any(|(name, _)| known(name).is_some_and(|known| known.name == key.name))
        };
        let accepted = METADATA.iter().any(|(accepted, ..)| mentions(accepted))
            || VALUES.iter().any(|(metadata, ..)| mentions(metadata));
        let refused = METADATA.iter().any(|(_, refused, _)| mentions(refused))
            || VALUES.iter().any(|(metadata, ..)| mentions(metadata));
        assert!(accepted && refused, "{} has no rows", key.name);
        assert!(!key.description.is_empty());
        assert!(!key.form().to_string().is_empty());
    }
    for type_ in Type::ALL {
        let row = format!("type={type_}");
        let begins = |metadata: &str| metadata.split(';').next() == Some(&row);
        assert!(VALUES.iter().any(|(m, ..)| begins(m)), "{row} has no row");
    }
}

/// The rules of a key, a value of its old name, and the value today, or what is
/// said where there is none.
const CONVERSIONS: &[(&str, &str, Result<&str, &str>)] = &[
    ("", "anything", Ok("anything")),
    ("type=long", "5", Ok("5")),
    ("type=long", "x", Err("`x` is not a whole number")),
    ("convert=yes -> true, no -> false", "yes", Ok("true")),
    ("convert=yes -> true, no -> false", "Yes", Ok("Yes")),
    ("convert='a, b' -> '->', '' -> none", "a, b", Ok("->")),
    ("convert='a, b' -> '->', '' -> none", "", Ok("none")),
    ("type=long;convert=none -> 0, -1 -> 0", "-1", Ok("0")),
    ("type=long;convert=none -> 0, -1 -> 0", "7", Ok("7")),
    (
        "check/enum=x,y;convert=a -> x",
        "b",
        Err("`b` is not one of the texts allowed"),
    ),
    ("type=boolean;convert=not", "ON", Ok("false")),
    ("type=boolean;convert=not", "0", Ok("true")),
    (
        "type=boolean;convert=not",
        "maybe",
        Err("`maybe` is not a boolean; give `true` or `false` (rule was/#0/convert=not)"),
    ),
    ("type=long;convert=* 1000", "5", Ok("5000")),
    ("type=long;convert=* 1000", "0.005", Ok("5")),
    ("type=long;convert=* 1000", "-5e-1", Ok("-500")),
    (
        "type=long;convert=* 1000",
        "0.0005",
        Err("`0.5` is not a whole number"),
    ),
    (
        "type=long;convert=* 1000",
        "5 s",
        Err("is not a number that can be converted"),
    ),
    (
        "type=double;convert=* 1000",
        "inf",
        Err("is not a number that can be converted"),
    ),
    (
        "type=double;convert=* 1000",
        "1e38",
        Err("too large or too exact"),
    ),
    ("type=double;convert=/ 3", "1", Ok("0.3333333333333333")),
    ("type=double;convert=/ 3", "6", Ok("2")),
    ("type=double;convert=/ 7 * 7", "0.1", Ok("0.1")),
    ("type=double;convert=* 9 / 5 + 32", "-40", Ok("-40")),
    ("type=double;convert=* 9 / 5 + 32", "36.6", Ok("97.88")),
    ("type=double;convert=- 32 / 1.8", "212", Ok("100")),
    ("type=double;convert=* 1e-3", "-0.25", Ok("-0.00025")),
    (
        "type=short;range=1-10;convert=/ 60",
        "6000",
        Err("`100` is out of range"),
    ),
    (
        "type=double;check/unit=time;unit=s;was=ms",
        "1500",
        Ok("1500 ms"),
    ),
    (
        "type=double;check/unit=time;unit=s;was=ms",
        "2 s",
        Ok("2 s"),
    ),
    (
        "type=long;check/unit=time;unit=s;was=ms",
        "1500",
        Err("not a whole number of s"),
    ),
    ("check/unit=time;was=ms", "1500", Ok("1500 ms")),
    (
        "secret;type=long;convert=* 2",
        "4711x",
        Err("`(secret)` breaks this rule"),
    ),
    (
        "secret;type=long;range=0-9;convert=* 2",
        "4711",
        Err("`(secret)` breaks this rule"),
    ),
];

#[test]
fn values_of_old_names_are_converted_exactly() {
    for &(metadata, value, expected) in CONVERSIONS {
        let mut pairs = pairs(metadata);
        for (key, _) in &mut pairs {
            *key = match *key {
                "convert" => "was/#0/convert",
                "was" => "was/#0/unit",
                key => key,
            };
        }
        pairs.push(("was/#0", "/old"));
        let rules = Rules::from_metadata(&pairs).unwrap();
        let [old] = rules.old_names() else {
            panic!("one old name")
        };
        assert_eq!(old.name(), "/old");
        match (rules.convert(old, value), expected) {
            (Ok(converted), Ok(expected)) => assert_eq!(converted, expected, "{metadata}"),
            (Err(violation), Err(part)) => {
                let shown = violation.to_string();
                assert!(shown.contains(part), "{metadata}: {shown}");
            }
            (outcome, _) => panic!("{metadata}: {value} gives {outcome:?}"),
        }
    }
}

#[test]
fn scalars_come_by_type() {
    assert_eq!(
        rules("type=boolean").check("OFF"),
        Ok(Scalar::Boolean(false))
    );
    assert_eq!(
        rules("type=boolean").check("Enabled"),
        Ok(Scalar::Boolean(true))
    );
    assert_eq!(rules("type=short").check("-3"), Ok(Scalar::Signed(-3)));
    assert_eq!(
        rules("type=unsigned_long").check("3"),
        Ok(Scalar::Unsigned(3))
    );
    assert_eq!(rules("").check("x"), Ok(Scalar::Text("x")));
    let colours = rules("type=enum;check/enum=red,green");
    assert_eq!(colours.variants(), ["red", "green"]);
    assert_eq!(colours.check("green"), Ok(Scalar::Variant(1)));
    // A float is rounded once, to the nearest float.
    let Ok(Scalar::Float(third)) = rules("type=float").check("0.33333334") else {
        panic!("a float is a float");
    };
    assert_eq!(third as f32, 0.333_333_34_f32);
}

#[test]
fn floats_read_back_as_they_are_written() {
    let (float, double) = (rules("type=float"), rules("type=double"));
    let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..10_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for (rules, number) in [
            (&double, f64::from_bits(bits)),
            (&float, f64::from(f32::from_bits((bits >> 32) as u32))),
        ] {
            if !number.is_finite() {
                continue;
            }
            let text = rules.text(Scalar::Float(number));
            assert_eq!(rules.check(&text), Ok(Scalar::Float(number)), "{text}");
        }
    }
    for literal in ["0.1", "20", "-0.5", "1000000", "0.00001", "1e-7", "3e20"] {
        assert_eq!(double.canonical(literal).unwrap(), literal);
        assert_eq!(float.canonical(literal).unwrap(), literal);
    }
}

#[test]
fn the_initial_value_is_the_default_or_the_zero() {
    for (metadata, zero) in [
        ("type=boolean", Scalar::Boolean(false)),
        ("type=short", Scalar::Signed(0)),
        ("type=unsigned_long_long", Scalar::Unsigned(0)),
        ("type=double", Scalar::Float(0.0)),
        ("", Scalar::Text("")),
        ("check/ipaddr", Scalar::Text("")),
        ("type=enum;check/enum=b,a", Scalar::Variant(0)),
    ] {
        assert_eq!(rules(metadata).initial(), Ok(zero), "{metadata}");
        assert_eq!(rules(metadata).default(), None);
    }
    let ten = rules("type=short;default=10;range=1-10");
    assert_eq!(ten.default(), Some("10"));
    assert_eq!(ten.initial(), Ok(Scalar::Signed(10)));
    // A zero that nobody may set is a mistake of the specification.
    let violation = rules("type=short;range=1-10").initial().unwrap_err();
    assert_eq!(violation.rule, "range=1-10");
}

#[test]
fn flags_and_arrays_are_told() {
    let all = rules("readonly;require;array/min=1;array/max=3");
    assert!(all.read_only() && all.required());
    assert_eq!(all.array(), (Some(1), Some(3)));
    let none = rules("readonly=false;require=0");
    assert!(!none.read_only() && !none.required());
    assert_eq!(none.array(), (None, None));
}

#[test]
fn paths_are_looked_up_by_those_who_can() {
    struct Files;
    impl FileSystem for Files {
        fn kind(&self, path: &str) -> Option<FileKind> {
            match path {
                "/etc" => Some(FileKind::Directory),
                "/etc/passwd" => Some(FileKind::File),
                _ => None,
            }
        }
    }
    let directory = rules("check/path=directory");
    assert!(directory.check_with("/etc", &Files).is_ok());
    let found = directory.check_with("/etc/passwd", &Files).unwrap_err();
    assert!(
        found
            .to_string()
            .contains("is a file; give the path of a directory")
    );
    let missing = directory.check_with("/nowhere", &Files).unwrap_err();
    assert!(missing.to_string().contains("does not exist"));
    assert!(rules("check/path").check_with("/nowhere", &Files).is_ok());
    assert!(
        directory.check("/nowhere").is_ok(),
        "only the text is checked"
    );
}

#[test]
fn messages_are_one_short_line() {
    let long = format!("{}\n\u{1b}[31m", "x".repeat(10_000));
    let violation = rules("type=long").check(&long).unwrap_err();
    let shown = violation.to_string();
    assert!(
        shown.len() < 300 && !shown.contains(char::is_control),
        "{shown}"
    );
    assert_eq!(
        rules("type=short;range=1-10")
            .check("11")
            .unwrap_err()
            .to_string(),
        "`11` is out of range; give a number of 1 to 10 (rule range=1-10)"
    );
    assert_eq!(
        rule_error(&[("type", "lnog")]).to_string(),
        "metadata `type=lnog`: there is no such type; did you mean `long`?"
    );
}

#[test]
fn unknown_metadata_is_the_users_own() {
    assert!(known("check/enmu").is_none());
    assert_eq!(known("env/#_12").map(|key| key.name), Some("env/#"));
    rules("my/own=1");
    let names = || KNOWN.iter().map(|key| key.name);
    assert_eq!(nearest("check/enmu", names()), Some("check/enum"));
    assert_eq!(nearest("defualt", names()), Some("default"));
    assert_eq!(nearest("zebra", names()), None);
}

#[test]
fn an_expression_cannot_be_made_slow() {
    // Backtracking would take longer than the universe lasts.
    let hostile = rules("check/validation=^(a+)+$");
    assert!(hostile.check(&format!("{}b", "a".repeat(5_000))).is_err());
}

#[test]
fn nothing_makes_it_panic() {
    let parts = [
        "0",
        "9",
        "-",
        "+",
        ".",
        "e",
        "inf",
        "nan",
        ":",
        "T",
        "W",
        "Z",
        "%",
        "d",
        "Y",
        "#",
        "_",
        "/",
        "~",
        "@",
        ",",
        " ",
        "\n",
        "\u{0}",
        "é",
        "µs",
        "MB",
        "KiB",
        "(",
        "[",
        "*",
        "{9}",
        "2013",
        "05",
        "Mon, ",
        "May",
        "PM",
        "..",
        "170141183460469231731687303715884105727",
        "true",
        "ipv4",
        "POSIX",
        "RFC2822",
        "time",
        "LINE",
        "indexed",
    ];
    let mut random = 1_u64;
    let (mut built, mut accepted) = (0, 0);
    for _ in 0..30_000 {
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut metadata: Vec<(String, String)> = Vec::new();
        for _ in 0..next(4) {
            let key = KNOWN[next(KNOWN.len())].name.replace('#', "#0");
            let value: String = (0..next(4)).map(|_| parts[next(parts.len())]).collect();
            metadata.push((key, value));
        }
        if next(2) == 0 {
            let type_ = Type::ALL[next(Type::ALL.len())];
            metadata.push(("type".to_owned(), type_.to_string()));
        }
        let borrowed: Vec<(&str, &str)> = metadata.iter().map(|(k, v)| (&**k, &**v)).collect();
        let Ok(rules) = Rules::from_metadata(&borrowed) else {
            continue;
        };
        built += 1;
        let _ = rules.initial();
        for _ in 0..4 {
            let value: String = (0..next(6)).map(|_| parts[next(parts.len())]).collect();
            let Ok(canonical) = rules.canonical(&value) else {
                continue;
            };
            accepted += 1;
            assert_eq!(
                rules.canonical(&canonical).as_deref(),
                Ok(&*canonical),
                "{metadata:?} {value:?}"
            );
        }
    }
    assert!(built > 1_000 && accepted > 1_000, "{built} {accepted}");
}
