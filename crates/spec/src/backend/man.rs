//! Manual pages: section 1 for a program with a command line, 5 for a
//! configuration alone.
//!
//! Only the classic `man` macros and escapes occur, and nothing but ASCII, so
//! that every roff renders the page alike. There is no date: a page says the
//! same whenever it is generated.

use milieu_diagnostics::Diagnostic;
use milieu_keys::options::Entry;

use crate::{
    backend::{Backend, Capabilities, File, Settings},
    facts::{self, Part, Phrase},
    ir::{Branch, Environment, Member, Value},
    prose::is_unwelcome,
};

/// The back end for manual pages.
#[derive(Clone, Copy, Debug)]
pub struct Man;

impl Backend for Man {
    fn name(&self) -> &'static str {
        "man"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identifiers: false,
            inside_arrays: true,
        }
    }

    fn generate(
        &self,
        environment: &Environment,
        settings: &Settings,
    ) -> Result<Vec<File>, Vec<Diagnostic>> {
        let section = if environment.has_command_line() { 1 } else { 5 };
        let mut page = Page::default();
        page.header(&settings.program, section, environment);
        if section == 1 {
            page.synopsis(environment);
            page.commands(environment);
        }
        page.layers(environment);
        page.request(".SH CONFIGURATION");
        page.branch(&environment.root, environment);
        page.removed(environment);
        page.variables(environment);
        Ok(vec![File {
            name: format!("{}.{section}", settings.program),
            text: page.0,
        }])
    }
}

/// Lines of roff.
#[derive(Default)]
struct Page(String);

impl Page {
    /// A line that may be a request.
    fn request(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// A line of text, which is never taken for a request.
    fn text(&mut self, line: &str) {
        if line.starts_with(['.', '\'']) {
            self.0.push_str("\\&");
        }
        self.request(line);
    }

    /// Paragraphs of prose, each line of the original on a line of its own.
    fn prose(&mut self, text: &str) {
        for line in text.lines().map(str::trim) {
            if line.is_empty() {
                self.request(".PP");
            } else {
                self.text(&prose(line));
            }
        }
    }

    fn header(&mut self, program: &str, section: u8, environment: &Environment) {
        let kind = if section == 1 {
            "User Commands"
        } else {
            "File Formats"
        };
        self.request(&format!(
            ".TH \"{}\" \"{section}\" \"\" \"{}\" \"{kind}\"",
            argument(&program.to_uppercase()),
            argument(program)
        ));
        self.request(".SH NAME");
        let description = environment.description();
        let summary = description
            .and_then(|text| text.lines().next())
            .unwrap_or(if section == 1 {
                "a program and its configuration"
            } else {
                "configuration"
            });
        self.text(&format!(
            "{} \\- {}",
            literal(program),
            prose(summary.trim().trim_end_matches('.'))
        ));
        if let Some((_, more)) = description.and_then(|text| text.split_once('\n')) {
            self.request(".SH DESCRIPTION");
            self.prose(more.trim());
        }
    }

    fn synopsis(&mut self, environment: &Environment) {
        self.request(".SH SYNOPSIS");
        let options = &environment.options;
        let shown = options.commands().filter(|(_, command)| !command.hidden());
        for (position, (path, _)) in shown.enumerate() {
            if position > 0 {
                self.request(".br");
            }
            self.text(&synopsis(&options.synopsis(&path), path.len() + 1));
        }
    }

    /// The options of the program, then those of each command.
    fn commands(&mut self, environment: &Environment) {
        let mut heading = Some(".SH COMMANDS");
        for (path, command) in environment.options.commands() {
            if path.is_empty() {
                self.request(".SH OPTIONS");
            } else if command.hidden() {
                continue;
            } else {
                heading
                    .take()
                    .into_iter()
                    .for_each(|line| self.request(line));
                self.request(&format!(".SS \"{}\"", argument(&path.join(" "))));
                command.help().into_iter().for_each(|help| self.prose(help));
            }
            let entries: Vec<_> = environment.options.entries_of(&path).collect();
            for value in &environment.values {
                let belongs = value.entry.as_ref().is_some_and(|entry| {
                    entries.iter().any(|own| own.pattern() == entry.pattern())
                });
                if belongs && !facts::is_hidden(value) {
                    self.option(value);
                }
            }
            if path.is_empty() {
                self.help_option(&entries);
            }
        }
    }

    /// `-h` and `--help` ask for help, unless a key takes them.
    fn help_option(&mut self, entries: &[&Entry]) {
        let short = !entries.iter().any(|entry| entry.short().contains(&'h'));
        let long = !entries
            .iter()
            .any(|entry| entry.long().iter().any(|long| long == "help"));
        let names = [(short, "\\fB\\-h\\fR"), (long, "\\fB\\-\\-help\\fR")];
        let free: Vec<_> = names
            .iter()
            .filter(|(free, _)| *free)
            .map(|(_, name)| *name)
            .collect();
        if !free.is_empty() {
            self.request(".TP");
            self.text(&free.join(", "));
            self.text("Shows a short help and exits.");
        }
    }

    fn option(&mut self, value: &Value) {
        let Some(option) = facts::option(value) else {
            return;
        };
        self.request(".TP");
        self.text(&phrase(&option));
        match value.entry.as_ref().and_then(|entry| entry.help()) {
            Some(help) => self.prose(help),
            None => self.text(&format!("Sets \\fB{}\\fR.", literal(&value.pattern))),
        }
    }

    fn layers(&mut self, environment: &Environment) {
        if environment.layers.is_empty() {
            return;
        }
        self.request(".SH LAYERS");
        for layer in &environment.layers {
            self.request(".TP");
            self.text(&format!(
                "\\fB{}\\fR ({})",
                literal(&layer.name),
                phrase(&facts::layer_value(&layer.shape))
            ));
            match layer.metadata("description") {
                Some(description) => self.prose(description),
                None => self.text(&format!(
                    "Takes the place of \\fB{}\\fR in the names below.",
                    literal(&format!("%{}%", layer.name))
                )),
            }
        }
    }

    fn branch(&mut self, branch: &Branch, environment: &Environment) {
        let values = facts::values_of(branch, environment);
        // The description of the root is that of the page.
        let described = branch.description.as_deref().filter(|_| branch.name != "/");
        if !values.is_empty() || described.is_some() {
            self.request(&format!(".SS \"{}\"", argument(&branch.name)));
            if let Some(description) = described {
                self.prose(description);
            }
            for value in values {
                self.value(value);
            }
        }
        for member in &branch.members {
            if let Member::Branch(below) = member {
                self.branch(below, environment);
            }
        }
    }

    fn value(&mut self, value: &Value) {
        self.request(".TP");
        self.text(&format!("\\fB{}\\fR", literal(&value.pattern)));
        if let Some(description) = value.metadata("description") {
            self.prose(description);
        }
        for (position, (label, words)) in facts::lines(value).into_iter().enumerate() {
            if position > 0 || value.metadata("description").is_some() {
                self.request(".br");
            }
            if words.0.is_empty() {
                self.text(&prose(label));
            } else {
                self.text(&format!("{}: {}", prose(label), phrase(&words)));
            }
        }
    }

    fn removed(&mut self, environment: &Environment) {
        for (at, (key, reason)) in facts::removed(environment).into_iter().enumerate() {
            if at == 0 {
                self.request(".SH REMOVED KEYS");
            }
            self.request(".TP");
            self.text(&format!("\\fB{}\\fR", literal(key)));
            self.prose(reason);
        }
    }

    fn variables(&mut self, environment: &Environment) {
        let mut heading = Some(".SH ENVIRONMENT");
        for value in &environment.values {
            for variable in facts::variables(value) {
                if let Some(heading) = heading.take() {
                    self.request(heading);
                }
                self.request(".TP");
                self.text(&format!("\\fB{}\\fR", literal(variable)));
                self.text(&format!("Sets \\fB{}\\fR.", literal(&value.pattern)));
            }
        }
    }
}

/// How a command is called: its own words are bold, what stands for something
/// else is italic.
fn synopsis(text: &str, own: usize) -> String {
    let words = text.split(' ').enumerate().map(|(position, word)| {
        if position < own {
            return format!("\\fB{}\\fR", literal(word));
        }
        let name = word.trim_matches(['[', ']', '.']);
        let italic = format!("\\fI{}\\fR", literal(name));
        literal(word).replacen(&literal(name), &italic, 1)
    });
    words.collect::<Vec<_>>().join(" ")
}

fn phrase(phrase: &Phrase) -> String {
    phrase
        .0
        .iter()
        .map(|part| match part {
            Part::Words(words) => prose(words),
            Part::Literal(text) => format!("\\fB{}\\fR", literal(text)),
            Part::Placeholder(name) => format!("\\fI{}\\fR", literal(name)),
        })
        .collect()
}

/// Prose: `code` is bold, hyphens may break lines.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut pieces = text.split('`').peekable();
    let mut inside = false;
    while let Some(piece) = pieces.next() {
        if inside && pieces.peek().is_some() {
            out.push_str(&format!("\\fB{}\\fR", literal(piece)));
            inside = false;
        } else {
            if inside {
                out.push_str("\\(ga");
            }
            escape(piece, false, &mut out);
            inside = true;
        }
    }
    out
}

/// What is typed to the letter: hyphens are minus signs, quotes are straight.
fn literal(text: &str) -> String {
    let mut out = String::new();
    escape(text, true, &mut out);
    out
}

/// The argument of a macro, between double quotes.
fn argument(text: &str) -> String {
    literal(text).replace('"', "\\(dq")
}

fn escape(text: &str, to_the_letter: bool, out: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\(rs"),
            '-' if to_the_letter => out.push_str("\\-"),
            '\'' if to_the_letter => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '\n' | '\t' => out.push(' '),
            _ if is_unwelcome(character) => {}
            _ if character.is_ascii() => out.push(character),
            _ => out.push_str(&format!("\\[u{:04X}]", character as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Page, literal, prose, synopsis};

    #[test]
    fn what_roff_would_interpret_is_escaped() {
        assert_eq!(literal("a\\b-c'd"), "a\\(rsb\\-c\\(aqd");
        assert_eq!(literal("größe"), "gr\\[u00F6]\\[u00DF]e");
        assert_eq!(
            prose("say `-x`, or a ` alone"),
            "say \\fB\\-x\\fR, or a \\(ga alone"
        );
        let mut page = Page::default();
        page.text(".SH is no request here");
        assert_eq!(page.0, "\\&.SH is no request here\n");
    }

    #[test]
    fn what_is_typed_is_bold_and_what_is_replaced_italic() {
        assert_eq!(
            synopsis("copy [OPTION]... FROM [TO]", 1),
            "\\fBcopy\\fR [\\fIOPTION\\fR]... \\fIFROM\\fR [\\fITO\\fR]"
        );
    }
}
