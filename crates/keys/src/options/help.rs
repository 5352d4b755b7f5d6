//! The help text.

use super::{Argument, Entry, Options, Position};
use crate::rules::OneLine;

/// Spaces before every row.
const INDENT: usize = 2;
/// Texts that explain begin at this column at the latest.
const COLUMN_MOST: usize = 28;

/// What a row explains, and the explanation.
type Row = (String, String);

/// How a command is called, on one line.
pub(super) fn synopsis(options: &Options, command: usize) -> String {
    let mut words = vec![options.program.name.clone()];
    words.extend(options.path(command).into_iter().map(str::to_owned));
    let has_options = options.entries_at(command).any(is_shown_option)
        || options.help_options(command) != (false, false);
    if has_options {
        words.push("[OPTION]...".to_owned());
    }
    let arguments = arguments(options, command);
    if options.subcommands(command).next().is_some() {
        // A command that can do something by itself may be called alone.
        let optional = options.entries_at(command).next().is_some();
        words.push(if optional { "[COMMAND]" } else { "COMMAND" }.to_owned());
    }
    for argument in arguments {
        let name = &argument.placeholder;
        words.push(match argument.position {
            Some(Position::Remaining) if argument.rules.required() => format!("{name}..."),
            Some(Position::Remaining) => format!("[{name}]..."),
            _ if argument.rules.required() => name.clone(),
            _ => format!("[{name}]"),
        });
    }
    words.join(" ")
}

/// The keys that take arguments, in the order of the arguments.
fn arguments(options: &Options, command: usize) -> Vec<&Entry> {
    let entries = options.entries_at(command);
    let mut arguments: Vec<&Entry> = entries.filter(|entry| entry.position.is_some()).collect();
    arguments.sort_by_key(|entry| match entry.position {
        Some(Position::Indexed(index)) => index,
        _ => usize::MAX,
    });
    arguments
}

fn is_shown_option(entry: &Entry) -> bool {
    !entry.hidden && entry.spelling().is_some()
}

pub(super) fn help(options: &Options, command: usize) -> String {
    let mut text = String::new();
    let usage = format!("Usage: {}", synopsis(options, command));
    wrap(&usage, 0, "Usage: ".len(), options.width, &mut text);
    if let Some(description) = &options.commands[command].help {
        text.push('\n');
        wrap(description, 0, 0, options.width, &mut text);
    }
    let sections = [
        ("Arguments", argument_rows(options, command)),
        ("Options", option_rows(options, command)),
        ("Commands", command_rows(options, command)),
        ("Environment", environment_rows(options, command)),
    ];
    for (title, rows) in sections {
        if rows.is_empty() {
            continue;
        }
        text.push('\n');
        text.push_str(title);
        text.push_str(":\n");
        lay_out(&rows, options.width, &mut text);
    }
    text
}

fn argument_rows(options: &Options, command: usize) -> Vec<Row> {
    arguments(options, command)
        .into_iter()
        .map(|entry| {
            let more = if entry.array { "..." } else { "" };
            (format!("{}{more}", entry.placeholder), explanation(entry))
        })
        .collect()
}

fn option_rows(options: &Options, command: usize) -> Vec<Row> {
    let entries = options.entries_at(command);
    let mut rows: Vec<Row> = entries
        .filter(|entry| is_shown_option(entry))
        .map(|entry| (spellings(entry), explanation(entry)))
        .collect();
    let automatic = |short: Option<char>, long: Option<&str>, text: &str| {
        let long: Vec<String> = long.into_iter().map(str::to_owned).collect();
        let short: Vec<char> = short.into_iter().collect();
        (forms(&short, &long), text.to_owned())
    };
    let (short, long) = options.help_options(command);
    if short || long {
        let short = short.then_some('h');
        rows.push(automatic(
            short,
            long.then_some("help"),
            "show this help and exit",
        ));
    }
    if options.version_option(command) {
        rows.push(automatic(
            None,
            Some("version"),
            "show the version and exit",
        ));
    }
    rows
}

fn command_rows(options: &Options, command: usize) -> Vec<Row> {
    options
        .subcommands(command)
        .filter(|(_, command)| !command.hidden)
        .map(|(_, command)| {
            let help = command.help.clone().unwrap_or_default();
            (command.name.clone(), help)
        })
        .collect()
}

fn environment_rows(options: &Options, command: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for entry in options.entries_at(command).filter(|entry| !entry.hidden) {
        for (at, variable) in entry.variables.iter().enumerate() {
            let instead = entry.spelling().or_else(|| {
                let argument = entry.position.is_some();
                argument.then(|| entry.placeholder.clone())
            });
            let text = match (at, instead) {
                (1.., _) => format!("used if {} is not set", entry.variables[at - 1]),
                (0, Some(instead)) if entry.array => {
                    format!("used if {instead} is not given; separate values by colons")
                }
                (0, Some(instead)) => format!("used if {instead} is not given"),
                (0, None) => explanation(entry),
            };
            rows.push((variable.clone(), text));
        }
    }
    rows
}

/// `-p, --port=PORT`
fn spellings(entry: &Entry) -> String {
    let mut text = forms(&entry.short, &entry.long);
    let name = &entry.placeholder;
    let is_flag = entry.rules.type_().as_str() == "boolean";
    match entry.argument {
        Argument::Required if entry.long.is_empty() => text.push_str(&format!(" {name}")),
        Argument::Required => text.push_str(&format!("={name}")),
        // That a flag takes `=no` too is not worth the ink.
        Argument::Optional if !is_flag && !entry.long.is_empty() => {
            text.push_str(&format!("[={name}]"));
        }
        _ => {}
    }
    if entry.array {
        text.push_str("...");
    }
    text
}

fn forms(short: &[char], long: &[String]) -> String {
    let short_forms = short.iter().map(|short| format!("-{short}"));
    let long_forms = long.iter().map(|long| format!("--{long}"));
    let forms: Vec<String> = short_forms.chain(long_forms).collect();
    // Long options stand below each other, whether there is a short one or not.
    let gap = if short.is_empty() { "    " } else { "" };
    format!("{gap}{}", forms.join(", "))
}

fn explanation(entry: &Entry) -> String {
    let mut text = entry.help.clone().unwrap_or_default();
    if let Some(help) = &entry.argument_help {
        let gap = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!("{gap}{}: {help}", entry.placeholder));
    }
    if !entry.notes.is_empty() {
        let gap = if text.is_empty() { "" } else { " " };
        text.push_str(&format!("{gap}[{}]", entry.notes.join("; ")));
    }
    text
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Writes rows with their explanations in one column.
fn lay_out(rows: &[Row], width: usize, out: &mut String) {
    let rows: Vec<(String, &str)> = rows
        .iter()
        .map(|(left, right)| (OneLine(left).to_string(), &**right))
        .collect();
    let fits = |left: &&(String, &str)| INDENT + columns(&left.0) + 2 <= COLUMN_MOST;
    let widest = rows
        .iter()
        .filter(fits)
        .map(|(left, _)| columns(left))
        .max();
    let column = widest.map_or(COLUMN_MOST, |widest| INDENT + widest + 2);
    for (left, right) in &rows {
        out.push_str(&" ".repeat(INDENT));
        out.push_str(left);
        if right.trim().is_empty() {
            out.push('\n');
            continue;
        }
        let used = INDENT + columns(left);
        if used + 2 > column {
            out.push('\n');
            out.push_str(&" ".repeat(column));
        } else {
            out.push_str(&" ".repeat(column - used));
        }
        wrap(right, column, column, width, out);
    }
}

/// Writes a text in lines of at most `width` columns, where the first one begins
/// at column `at` and the others at `indent`. Ends the line.
fn wrap(text: &str, at: usize, indent: usize, width: usize, out: &mut String) {
    let mut column = at;
    let mut first = true;
    for word in text.split_whitespace() {
        let word = &OneLine(word).to_string();
        let length = columns(word);
        if !first && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if !first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        first = false;
    }
    out.push('\n');
}
