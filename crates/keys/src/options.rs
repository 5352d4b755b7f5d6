//! Command-line options, arguments, subcommands and environment variables.
//!
//! A specification says with the metadata `opt`, `args`, `command` and `env`
//! which keys the command line and the environment set. [`Options`] is the
//! table made of that: it parses, it writes the help, and it can be walked by
//! whoever documents the program. The meaning is that of Elektra's `gopts`:
//!
//! - `-p 80`, `-p80`, `--port 80`, `--port=80`; flags bundle: `-abc`;
//! - `opt/arg=none` makes a flag, `optional` an option whose argument must be
//!   attached: `--colour=never`; a boolean is a flag that also takes `--x=no`;
//! - `--` ends the options; a single `-` and negative numbers are arguments;
//! - an option of a key `/files/#` may be repeated: `/files/#0`, `/files/#1`;
//!   any other option is given once;
//! - a variable counts when no option or argument gives the key, and when it is
//!   not empty; a variable of an array is split at colons;
//! - options of a command stand before its subcommand; a command key has the
//!   last level of the key of the subcommand that was called, or is empty.
//!
//! Properties kept:
//! - nothing is printed, nothing exits, nothing panics, whatever is given;
//! - every value keeps the rules of its key and is in canonical form;
//! - errors name the option, argument or variable as the user wrote it.

mod declare;
mod help;
mod parse;

use crate::key_set::KeySet;
use crate::name::Name;
use crate::pattern::Pattern;
use crate::rules::{Metadata, OneLine, RuleError, Rules};
use std::ffi::OsString;
use std::fmt;

/// What the help says about the program as a whole.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// What the user types to run it.
    pub name: String,
    /// What `--version` says after the name; without it there is no `--version`.
    pub version: Option<String>,
    /// What the program is for, in a sentence or a paragraph.
    pub description: Option<String>,
}

impl Program {
    /// A program of that name.
    pub fn new(name: impl Into<String>) -> Program {
        Program {
            name: name.into(),
            ..Program::default()
        }
    }

    /// With that version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Program {
        self.version = Some(version.into());
        self
    }

    /// With that description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Program {
        self.description = Some(description.into());
        self
    }
}

impl From<&str> for Program {
    fn from(name: &str) -> Program {
        Program::new(name)
    }
}

/// Whether an option takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The option stands alone.
    None,
    /// The long form takes one after `=`.
    Optional,
    /// One follows.
    Required,
}

/// Which arguments that are no options a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The one of that index, from 0.
    Indexed(usize),
    /// All after the indexed ones.
    Remaining,
}

/// A key that the command line or the environment can set.
#[derive(Clone, Debug)]
pub struct Entry {
    pattern: Pattern,
    /// The pattern with every layer inactive.
    name: Name,
    command: usize,
    array: bool,
    short: Vec<char>,
    long: Vec<String>,
    argument: Argument,
    flag_value: String,
    placeholder: String,
    argument_help: Option<String>,
    help: Option<String>,
    hidden: bool,
    position: Option<Position>,
    variables: Vec<String>,
    rules: Rules,
    notes: Vec<String>,
}

impl Entry {
    /// The key, as the specification writes it.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The options of one character.
    pub fn short(&self) -> &[char] {
        &self.short
    }

    /// The options of one word, without the dashes.
    pub fn long(&self) -> &[String] {
        &self.long
    }

    /// Whether the options take an argument.
    pub fn argument(&self) -> Argument {
        self.argument
    }

    /// What the help calls the value.
    pub fn placeholder(&self) -> &str {
        &self.placeholder
    }

    /// What the argument of the options may be, if that is said.
    pub fn argument_help(&self) -> Option<&str> {
        self.argument_help.as_deref()
    }

    /// What the key does: `opt/help`, or the description.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Whether the help keeps quiet about the options.
    pub fn hidden(&self) -> bool {
        self.hidden
    }

    /// Which arguments the key takes.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// The environment variables, the preferred one first.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Whether options may be repeated, since the key is an array.
    pub fn is_array(&self) -> bool {
        self.array
    }

    /// Type, default and checks.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What the help adds in brackets: default, variants, range, unit.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The preferred way to write the option: `--port`, else `-p`.
    pub fn spelling(&self) -> Option<String> {
        let long = self.long.first().map(|long| format!("--{long}"));
        long.or_else(|| self.short.first().map(|short| format!("-{short}")))
    }
}

/// The program itself, or a subcommand.
#[derive(Clone, Debug)]
pub struct Command {
    /// Empty for the program itself.
    name: String,
    parent: Option<usize>,
    /// The key and the last level of its name; the program itself may lack one.
    key: Option<Name>,
    base: String,
    help: Option<String>,
    hidden: bool,
}

impl Command {
    /// What the user types; empty for the program itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the command does.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Whether the help keeps quiet about the command.
    pub fn hidden(&self) -> bool {
        self.hidden
    }
}

/// Everything that the command line and the environment can set.
///
/// ```
/// use milieu_keys::{Options, Parsed};
///
/// let options = Options::new(
///     "station",
///     [("/sw/station/port", &[("type", "unsigned_short"), ("opt", "p")][..])],
/// )?;
/// let parsed = options.parse(["-p", "8080"].map(Into::into), |_| None)?;
/// let Parsed::Keys(keys) = parsed else { unreachable!("no help was asked for") };
/// let port = keys.lookup("/sw/station/port").unwrap();
/// assert_eq!((port.value(), port.origin().to_string()), ("8080", "option -p".into()));
///
/// let error = options.parse(["-p", "80800"].map(Into::into), |_| None).unwrap_err();
/// assert!(error.to_string().starts_with("option -p: `80800` does not fit"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    program: Program,
    /// The program itself is the first.
    commands: Vec<Command>,
    entries: Vec<Entry>,
    width: usize,
}

impl Options {
    /// The table for keys given as pattern and metadata. Keys without `opt`,
    /// `args`, `command` or `env` are passed over.
    ///
    /// # Errors
    /// Metadata that cannot be meant, alone or together: an option that two keys
    /// of a command claim, an argument whose predecessor is missing.
    pub fn new<'a>(
        program: impl Into<Program>,
        entries: impl IntoIterator<Item = (&'a str, Metadata<'a>)>,
    ) -> Result<Options, DeclarationError> {
        declare::options(program.into(), entries)
    }

    /// With help texts of that many columns instead of 80.
    #[must_use]
    pub fn with_width(mut self, columns: usize) -> Options {
        self.width = columns;
        self
    }

    /// Reads the arguments, without the program's own name, and the variables
    /// that keys ask for.
    ///
    /// The keys are in the namespace `proc`, each under its name with every
    /// layer inactive. That a key is missing which `require` asks for is not an
    /// error here, since a file may give it.
    ///
    /// # Errors
    /// The first option, argument or variable that is not as it should be.
    pub fn parse(
        &self,
        arguments: impl IntoIterator<Item = OsString>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Parsed, OptionError> {
        parse::parse(self, arguments.into_iter(), variable)
    }

    /// The help of the program, or of the subcommand with that path.
    pub fn help<S: AsRef<str>>(&self, command: &[S]) -> String {
        help::help(self, self.command(command))
    }

    /// How the program or a subcommand is called, on one line:
    /// `copy [OPTION]... FROM [TO]`.
    pub fn synopsis<S: AsRef<str>>(&self, command: &[S]) -> String {
        help::synopsis(self, self.command(command))
    }

    /// What `--version` says.
    pub fn version(&self) -> Option<String> {
        let version = self.program.version.as_ref()?;
        Some(format!("{} {version}\n", self.program.name))
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Every key that takes part, in the order of the specification.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The keys that the program, or the subcommand with that path, takes.
    pub fn entries_of<S: AsRef<str>>(&self, command: &[S]) -> impl Iterator<Item = &Entry> {
        self.entries_at(self.command(command))
    }

    /// The paths of all commands, first the empty one of the program itself.
    pub fn commands(&self) -> impl Iterator<Item = (Vec<&str>, &Command)> {
        (0..self.commands.len()).map(|at| (self.path(at), &self.commands[at]))
    }

    /// The command of that path; as far as the path is known.
    fn command<S: AsRef<str>>(&self, path: &[S]) -> usize {
        let mut at = 0;
        for name in path {
            match self.subcommand(at, name.as_ref()) {
                Some(found) => at = found,
                None => break,
            }
        }
        at
    }

    fn path(&self, mut at: usize) -> Vec<&str> {
        let mut path = Vec::new();
        while let Some(parent) = self.commands[at].parent {
            path.push(&*self.commands[at].name);
            at = parent;
        }
        path.reverse();
        path
    }

    fn subcommands(&self, of: usize) -> impl Iterator<Item = (usize, &Command)> {
        let commands = self.commands.iter().enumerate();
        commands.filter(move |(_, command)| command.parent == Some(of))
    }

    fn subcommand(&self, of: usize, name: &str) -> Option<usize> {
        self.subcommands(of)
            .find(|(_, command)| command.name == name)
            .map(|(at, _)| at)
    }

    fn entries_at(&self, command: usize) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.command == command)
    }

    fn has_short(&self, command: usize, option: char) -> bool {
        self.entries_at(command)
            .any(|entry| entry.short.contains(&option))
    }

    fn has_long(&self, command: usize, option: &str) -> bool {
        self.entries_at(command)
            .any(|entry| entry.long.iter().any(|long| long == option))
    }

    /// Which of `-h` and `--help` ask for help: those that no key takes.
    fn help_options(&self, command: usize) -> (bool, bool) {
        (
            !self.has_short(command, 'h'),
            !self.has_long(command, "help"),
        )
    }

    /// Whether `--version` asks for the version.
    fn version_option(&self, command: usize) -> bool {
        command == 0 && self.program.version.is_some() && !self.has_long(command, "version")
    }
}

/// What a command line asks for.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// To run with these keys, all in the namespace `proc`.
    Keys(KeySet),
    /// To show this text, which ends in a line break.
    Help(String),
    /// To show this text, which ends in a line break.
    Version(String),
}

/// A command line or an environment that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// What is at fault, as the user wrote it: `option --port`.
    pub place: String,
    /// Why.
    pub message: String,
    /// The way out, where the message does not say it.
    pub help: Option<String>,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", OneLine(&self.place), OneLine(&self.message))?;
        if let Some(help) = &self.help {
            write!(f, "; {}", OneLine(help))?;
        }
        Ok(())
    }
}

impl std::error::Error for OptionError {}

/// Metadata from which no command line can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationError {
    /// The key, as the specification writes it.
    pub pattern: String,
    /// What is wrong with its metadata.
    pub error: RuleError,
}

impl fmt::Display for DeclarationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}: {}", OneLine(&self.pattern), self.error)
    }
}

impl std::error::Error for DeclarationError {}
