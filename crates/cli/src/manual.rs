//! `milieu manual`: the help of commands as pages for `man`.
//!
//! The pages are made of what parses the command line, so that they cannot say
//! anything else than `--help` does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use milieu_diagnostics::{Diagnostic, Source};

use crate::files::{self, Audience};
use crate::nearest::nearest;
use crate::terminal;

const SECTION: &str = "1";

/// Print the manual page of a command
///
/// It says what --help says, in the form that `man` reads. With --out, the pages
/// of all commands below it are made as well.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu manual key get | man -l -
  milieu manual --out ~/.local/share/man/man1")]
pub(crate) struct Manual {
    /// The command, such as `key get`; without it `milieu` itself
    command: Vec<String>,
    /// A folder that gets the page, and those of the commands below it
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Manual {
    pub(crate) fn run(&self) -> ExitCode {
        let root = crate::Milieu::command().bin_name("milieu");
        let mut root = root.disable_help_subcommand(true);
        root.build();
        let command = match find(&root, &self.command) {
            Ok(command) => command,
            Err(wrong) => return fail(wrong),
        };
        match &self.out {
            None => terminal::finish(
                page(command)
                    .and_then(|page| terminal::print(&page))
                    .map(|()| ExitCode::SUCCESS),
            ),
            Some(folder) => match write(command, folder) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(Diagnostic::error(format!(
                    "cannot write pages to {}: {error}",
                    folder.display()
                ))),
            },
        }
    }
}

fn fail(wrong: Diagnostic) -> ExitCode {
    terminal::report(&Source::new("the command line", ""), &[wrong], false);
    ExitCode::from(terminal::ERROR)
}

/// The command of this path below another.
fn find<'a>(root: &'a Command, path: &[String]) -> Result<&'a Command, Diagnostic> {
    path.iter().try_fold(root, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let of = command.get_bin_name().unwrap_or_default();
            let wrong = Diagnostic::error(format!("`{of}` has no command `{word}`"));
            let names = || visible(command).map(Command::get_name);
            match nearest(word, names()).first() {
                Some(near) => wrong.help(format!("perhaps `{near}` is meant")),
                None if names().next().is_some() => wrong.help(format!(
                    "there are {}",
                    names().collect::<Vec<_>>().join(", ")
                )),
                None => wrong.help(format!("`{of}` is a command without others below it")),
            }
        })
    })
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set())
}

/// Writes the pages of a command and of those below it.
fn write(command: &Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join(format!("{}.{SECTION}", name(command)));
    files::write_whole(&file, page(command)?, Audience::Usual)?;
    visible(command).try_for_each(|below| write(below, folder))
}

/// What the page of a command is called: `milieu-key-get`.
fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn page(command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone()).section(SECTION);
    let mut bytes = Vec::new();
    man.render_name_section(&mut bytes)?;
    synopsis(command).to_writer(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    if visible(command).next().is_some() {
        man.render_subcommands_section(&mut bytes)?;
    }
    man.render_options_section(&mut bytes)?;
    if let Some(after) = command.get_after_help() {
        sections(&after.to_string()).to_writer(&mut bytes)?;
    }
    see_also(command).to_writer(&mut bytes)?;
    let page = String::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(title(command) + &tidy(&page))
}

/// There is no date: a page says the version.
fn title(command: &Command) -> String {
    let name = name(command).to_uppercase();
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH \"{name}\" \"{SECTION}\" \"\" \"milieu {version}\" \"User Commands\"\n")
}

/// The usage as help says it, which knows what excludes what.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let name = command.get_bin_name().unwrap_or_default();
    let mut page = Roff::new();
    page.control("SH", ["SYNOPSIS"])
        .text([bold(name), roman(usage.strip_prefix(name).unwrap_or(usage))]);
    page
}

/// What stands behind the options in help: paragraphs, and lines that are indented
/// and stay as they are. A line above such lines that ends in a colon is a heading
/// if it begins a paragraph.
fn sections(after: &str) -> Roff {
    let mut page = Roff::new();
    for paragraph in after.split("\n\n") {
        let mut lines = paragraph.lines().peekable();
        let first = lines.next().unwrap_or_default();
        let is_above = lines.peek().is_some_and(|next| next.starts_with(' '));
        match first.strip_suffix(':') {
            Some(heading) if is_above => {
                page.control("SH", [heading.to_uppercase().as_str()]);
            }
            _ => {
                page.control("PP", []).text([roman(first)]);
            }
        }
        let mut is_shown = false;
        for line in lines {
            if line.starts_with("  ") != is_shown {
                is_shown = !is_shown;
                page.control(if is_shown { "nf" } else { "fi" }, []);
            }
            page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        if is_shown {
            page.control("fi", []);
        }
    }
    page
}

/// The page of the command above it, and those of its verbs are in the list of them.
fn see_also(command: &Command) -> Roff {
    let mut page = Roff::new();
    if let Some((above, _)) = name(command).rsplit_once('-') {
        page.control("SH", ["SEE ALSO"])
            .text([bold(above), roman(format!("({SECTION})"))]);
    }
    page
}

/// The page as every roff takes it without a warning: an empty line is a distance,
/// with which a break says nothing more; the apostrophe is defined once.
fn tidy(page: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in page.lines().map(str::trim_end) {
        let is_known = line.contains(".ds Aq ") && lines.iter().any(|before| before == line);
        let before = lines.last().map(String::as_str);
        match line {
            _ if is_known => {}
            ".br" if before == Some(".sp") => {}
            "" if before == Some(".sp") => {}
            "" => {
                if before == Some(".br") {
                    lines.pop();
                }
                lines.push(".sp".to_owned());
            }
            _ => lines.push(code(line)),
        }
    }
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// What stands between backticks is bold, as roff makes quotation marks of them.
fn code(line: &str) -> String {
    let mut out = String::new();
    for (at, part) in line.split('`').enumerate() {
        match at {
            0 => {}
            odd if odd % 2 == 1 => out += r"\fB",
            _ => out += r"\fR",
        }
        out += part;
    }
    if line.matches('`').count() % 2 == 1 {
        out += r"\fR";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_options_is_in_sections() {
        let page = sections(
            "Exit codes:\n  0  done\n  2  not\n\nOthers are told\nby a message:\n  'a  b'\n",
        );
        let lines = [
            ".SH \"EXIT CODES\"",
            ".nf",
            "0  done",
            "2  not",
            ".fi",
            ".PP",
            "Others are told",
            "by a message:",
            ".nf",
            "\\&'a  b'",
            ".fi",
            "",
        ];
        assert_eq!(page.to_roff(), lines.join("\n"));
    }

    #[test]
    fn code_is_bold_and_ends() {
        assert_eq!(code("see `a b`, `c`."), r"see \fBa b\fR, \fBc\fR.");
        assert_eq!(code("see `a b"), r"see \fBa b\fR");
        assert_eq!(code("see"), "see");
    }

    #[test]
    fn distances_are_as_they_are_meant() {
        assert_eq!(tidy("a\n\n.br\nb \n.br\n\nc\n"), "a\n.sp\nb\n.sp\nc\n");
    }
}
