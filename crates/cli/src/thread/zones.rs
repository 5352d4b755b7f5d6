//! Bounds of the zones of stacks: those of a command, else those of the environment, else
//! those of the device, as the paper has them in a file (section IV-C).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_store::Format;
use milieu_store::toml::Toml;
use milieu_threads::stack::Zones;

use super::{Failure, Outcome};
use crate::terminal;

/// Has the bounds, as `--zones` does.
const VARIABLE: &str = "MILIEU_THREAD_ZONES";

/// Where the settings of the device are.
const FILE: &str = "/etc/milieu/threads.toml";

/// Names another file in the place of that one.
const FILE_VARIABLE: &str = "MILIEU_THREAD_SETTINGS";

/// Reads the bounds as they are on the command line.
pub(super) fn parse(text: &str) -> Result<Zones, String> {
    Zones::parse(text).map_err(|error| error.to_string())
}

/// The bounds that count, where a command asks for these or for none.
pub(super) fn chosen(asked: Option<Zones>) -> Outcome<Zones> {
    if let Some(zones) = asked {
        return Ok(zones);
    }
    let variable = |name| env::var_os(name).filter(|it| !it.is_empty());
    if let Some(text) = variable(VARIABLE) {
        return of_variable(&text.to_string_lossy());
    }
    let named = variable(FILE_VARIABLE);
    let is_named = named.is_some();
    let path = PathBuf::from(named.unwrap_or(OsString::from(FILE)));
    match fs::read_to_string(&path) {
        Ok(text) => of_file(&path, &text),
        // Nobody has to have one.
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => Ok(Zones::default()),
        Err(error) => Err(Failure::new(
            format!("{} cannot be read: {error}", path.display()),
            format!("give the bounds with `--zones`, or another file in {FILE_VARIABLE}"),
        )),
    }
}

fn of_variable(text: &str) -> Outcome<Zones> {
    parse(text).map_err(|error| {
        Failure::new(
            format!("{VARIABLE} is `{text}`: {error}"),
            "mend the variable, remove it, or give the bounds with `--zones`",
        )
    })
}

fn of_file(path: &Path, text: &str) -> Outcome<Zones> {
    read(text).map_err(|found| {
        let place = Source::new(path.display().to_string(), text);
        Failure::Wrong(place, found, terminal::ERROR)
    })
}

/// What a file says, or what is wrong with it.
fn read(text: &str) -> Result<Zones, Vec<Diagnostic>> {
    let (document, found) = Toml.parse(text);
    if found.iter().any(Diagnostic::is_error) {
        let helped = found.into_iter().map(|it| match it.help.is_empty() {
            true => it.help(HELP),
            false => it,
        });
        return Err(helped.collect());
    }
    let mut found = Vec::new();
    let mut bounds = Vec::new();
    for entry in document.keys() {
        let name = entry.name.as_str();
        let message = match name {
            "/zones/#0" | "/zones/#1" => match entry.value.parse::<u8>() {
                Ok(percent) => {
                    bounds.push((percent, entry.span));
                    continue;
                }
                Err(_) => format!("`{}` is no percentage", entry.value),
            },
            _ if name.split('/').nth(1) == Some("zones") => {
                "the bounds of stack zones are a list of two percentages".to_owned()
            }
            _ => format!("there is no setting `{}`", name.trim_start_matches('/')),
        };
        found.push(wrong(message, entry.span));
    }
    if !found.is_empty() {
        return Err(found);
    }
    let first = first_line(text);
    let zones = match bounds[..] {
        [(low, _), (high, _)] => Zones::new(low, high).ok(),
        [] if first.is_none() => Some(Zones::default()),
        // A list of nothing has no keys.
        _ => None,
    };
    zones.ok_or_else(|| {
        let message = "the bounds of stack zones are two percentages in ascending order";
        let of_bounds = bounds.first().and_then(|it| it.1);
        vec![wrong(message, of_bounds.or(first))]
    })
}

const HELP: &str = "write `zones = [25, 75]`, the one setting that there is";

fn wrong(message: impl Into<String>, span: Option<Span>) -> Diagnostic {
    let found = Diagnostic::error(message).help(HELP);
    match span {
        Some(span) => found.label(span, ""),
        None => found,
    }
}

/// The first line that is no remark.
fn first_line(text: &str) -> Option<Span> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let says = line.trim();
        if !says.is_empty() && !says.starts_with('#') {
            return Some(Span::new(start, start + line.trim_end().len()));
        }
        start += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(low: u8, high: u8) -> Zones {
        Zones::new(low, high).expect("bounds")
    }

    #[test]
    fn a_file_has_bounds_or_nothing() {
        for (text, expected) in [
            ("", Zones::default()),
            ("# of this device\n\n", Zones::default()),
            ("zones = [25, 75]\n", Zones::default()),
            ("# tight\nzones = [ 10, 90 ] # percent\n", zones(10, 90)),
            ("zones = [\n  0,\n  100,\n]\n", zones(0, 100)),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_a_file_has_wrong_is_told_with_its_line() {
        for (text, message, line) in [
            ("zones = [90, 10]\n", "in ascending order", 1),
            ("\nzones = [25, 101]\n", "in ascending order", 2),
            ("# zones = []\nzones = []\n", "in ascending order", 2),
            ("zones = [25]\n", "in ascending order", 1),
            ("zones = [25,\n 50,\n 75]\n", "a list of two", 3),
            ("zones = [25, -1]\n", "`-1` is no percentage", 1),
            ("zones = \"25,75\"\n", "a list of two", 1),
            ("zones.low = 25\n", "a list of two", 1),
            ("\n\nzone = [25, 75]\n", "no setting `zone/#0`", 3),
            ("zones = [25, 75\n", "unclosed", 1),
            ("[zones]\n", "in ascending order", 1),
        ] {
            let found = read(text).expect_err(text);
            let first = &found[0];
            assert!(first.message.contains(message), "{text}: {first}");
            assert!(!first.help.is_empty(), "{text}: {first}");
            let at = first.span().map_or(0, |it| it.start);
            let (found, _) = Source::new("threads.toml", text).line_column(at);
            assert_eq!(found, line, "{text}: {first}");
        }
    }
}
