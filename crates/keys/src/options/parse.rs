//! Reading a command line and the environment.

use super::{Argument, Entry, OptionError, Options, Parsed, Position};
use crate::key_set::{Key, KeySet, Namespace, Origin, SourceOf};
use crate::name::{Name, split};
use crate::rules::{REDACTED, Shortened, nearest};
use std::ffi::OsString;

/// A value that somebody gave to an entry, and how it was written.
struct Assignment {
    entry: usize,
    value: String,
    source: SourceOf,
    /// What may have been meant, should the value be refused.
    meant: Option<String>,
}

/// What has been read so far.
struct Reader<'o> {
    options: &'o Options,
    /// The commands called, the program itself first.
    called: Vec<usize>,
    assignments: Vec<Assignment>,
    arguments: Vec<String>,
}

/// Why reading ends early.
enum Stop {
    Error(OptionError),
    Help,
    Version,
}

impl From<OptionError> for Stop {
    fn from(error: OptionError) -> Stop {
        Stop::Error(error)
    }
}

pub(super) fn parse(
    options: &Options,
    arguments: impl Iterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Parsed, OptionError> {
    let mut reader = Reader {
        options,
        called: vec![0],
        assignments: Vec::new(),
        arguments: Vec::new(),
    };
    match reader.read(arguments) {
        Ok(()) => {}
        Err(Stop::Error(error)) => return Err(error),
        Err(Stop::Help) => {
            let text = super::help::help(options, reader.command());
            return Ok(Parsed::Help(text));
        }
        Err(Stop::Version) => {
            return Ok(Parsed::Version(options.version().unwrap_or_default()));
        }
    }
    reader.place_arguments()?;
    reader.read_environment(variable)?;
    reader.keys().map(Parsed::Keys)
}

impl<'o> Reader<'o> {
    /// The command that options now belong to.
    fn command(&self) -> usize {
        self.called.last().copied().unwrap_or(0)
    }

    fn read(&mut self, arguments: impl Iterator<Item = OsString>) -> Result<(), Stop> {
        let quoted = !has_secrets(self.options);
        let mut arguments = arguments.map(|argument| text(argument, quoted));
        let mut options_ended = false;
        while let Some(argument) = arguments.next() {
            let argument = argument?;
            if options_ended || !self.is_option(&argument) {
                options_ended |= self.argument(argument, options_ended)?;
            } else if argument == "--" {
                options_ended = true;
            } else if let Some(option) = argument.strip_prefix("--") {
                self.long(option, &mut arguments)?;
            } else {
                self.short(&argument[1..], &mut arguments)?;
            }
        }
        Ok(())
    }

    /// Whether an argument looks like an option. A negative number is one only
    /// where a digit is an option.
    fn is_option(&self, argument: &str) -> bool {
        let Some(rest) = argument.strip_prefix('-') else {
            return false;
        };
        let Some(first) = rest.chars().next() else {
            return false;
        };
        let number = (first.is_ascii_digit() || first == '.') && rest.parse::<f64>().is_ok();
        !number || self.options.has_short(self.command(), first)
    }

    /// Takes an argument that is no option: a command or a value. Tells whether
    /// no option can follow.
    fn argument(&mut self, argument: String, options_ended: bool) -> Result<bool, OptionError> {
        let at = self.command();
        let is_parent = self.options.subcommands(at).next().is_some();
        if is_parent && !options_ended && self.arguments.is_empty() {
            if let Some(found) = self.options.subcommand(at, &argument) {
                self.called.push(found);
                return Ok(false);
            }
            let takes_arguments = self
                .options
                .entries_at(at)
                .any(|entry| entry.position.is_some());
            if !takes_arguments {
                return Err(self.unknown_command(&argument));
            }
        }
        self.arguments.push(argument);
        // Where there are subcommands, what follows may be the command line of
        // another program.
        Ok(is_parent)
    }

    fn unknown_command(&self, argument: &str) -> OptionError {
        let commands = self.options.subcommands(self.command());
        let visible = commands.filter(|(_, command)| !command.hidden);
        let meant = nearest(argument, visible.map(|(_, command)| command.name()));
        OptionError {
            place: format!("command {}", Shortened(argument)),
            message: "there is no such command".to_owned(),
            help: Some(self.meant_or_help(meant.map(str::to_owned))),
        }
    }

    /// `did you mean …?`, or where to look.
    fn meant_or_help(&self, meant: Option<String>) -> String {
        if let Some(meant) = meant {
            return format!("did you mean `{meant}`?");
        }
        let command = self.command();
        let mut call = self.options.program.name.clone();
        for name in self.options.path(command) {
            call.push(' ');
            call.push_str(name);
        }
        match self.options.help_options(command) {
            (_, true) => format!("see `{call} --help`"),
            (true, false) => format!("see `{call} -h`"),
            (false, false) => format!("see the manual of `{call}`"),
        }
    }

    fn long(
        &mut self,
        option: &str,
        following: &mut impl Iterator<Item = Result<String, OptionError>>,
    ) -> Result<(), Stop> {
        let command = self.command();
        let (name, attached) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let written = format!("--{name}");
        let Some(entry) = self.find(|entry| entry.long.iter().any(|long| long == name)) else {
            if attached.is_none() {
                if name == "help" && self.options.help_options(command).1 {
                    return Err(Stop::Help);
                }
                if name == "version" && self.options.version_option(command) {
                    return Err(Stop::Version);
                }
            }
            return Err(self.unknown_long(name).into());
        };
        let declared = &self.options.entries[entry];
        let value = match (declared.argument, attached) {
            (Argument::None, Some(_)) => {
                return Err(OptionError {
                    place: format!("option {written}"),
                    message: "it takes no argument".to_owned(),
                    help: Some(format!("write `{written}` alone")),
                }
                .into());
            }
            (Argument::None | Argument::Optional, None) => declared.flag_value.clone(),
            (_, Some(value)) => value,
            (Argument::Required, None) => self.following(entry, &written, following)?,
        };
        self.assign(entry, value, written, None)?;
        Ok(())
    }

    fn short(
        &mut self,
        bundle: &str,
        following: &mut impl Iterator<Item = Result<String, OptionError>>,
    ) -> Result<(), Stop> {
        let mut options = bundle.chars();
        while let Some(option) = options.next() {
            let written = format!("-{option}");
            let Some(entry) = self.find(|entry| entry.short.contains(&option)) else {
                if option == 'h' && self.options.help_options(self.command()).0 {
                    return Err(Stop::Help);
                }
                return Err(self.unknown_short(option, bundle).into());
            };
            let declared = &self.options.entries[entry];
            if declared.argument != Argument::Required {
                let value = declared.flag_value.clone();
                self.assign(entry, value, written, None)?;
                continue;
            }
            let attached = options.as_str();
            if attached.is_empty() {
                let value = self.following(entry, &written, following)?;
                self.assign(entry, value, written, None)?;
            } else {
                let meant = self.with_another_dash(bundle);
                self.assign(entry, attached.to_owned(), written, meant)?;
            }
            break;
        }
        Ok(())
    }

    /// An entry of the command that options now belong to.
    fn find(&self, is_it: impl Fn(&Entry) -> bool) -> Option<usize> {
        let command = self.command();
        self.options
            .entries
            .iter()
            .position(|entry| entry.command == command && is_it(entry))
    }

    /// The argument that stands after an option of its own.
    fn following(
        &self,
        entry: usize,
        written: &str,
        following: &mut impl Iterator<Item = Result<String, OptionError>>,
    ) -> Result<String, OptionError> {
        following.next().unwrap_or_else(|| {
            let placeholder = &self.options.entries[entry].placeholder;
            let joint = if written.starts_with("--") { "=" } else { " " };
            Err(OptionError {
                place: format!("option {written}"),
                message: "its argument is missing".to_owned(),
                help: Some(format!("write `{written}{joint}{placeholder}`")),
            })
        })
    }

    fn assign(
        &mut self,
        entry: usize,
        value: String,
        written: String,
        meant: Option<String>,
    ) -> Result<(), OptionError> {
        let earlier = self.assignments.iter().find(|given| given.entry == entry);
        if let Some(earlier) = earlier.filter(|_| !self.options.entries[entry].array) {
            let earlier = Origin::new(earlier.source.clone());
            return Err(OptionError {
                place: format!("option {written}"),
                message: format!("the value is given a second time, after {earlier}"),
                help: Some("give it once".to_owned()),
            });
        }
        self.assignments.push(Assignment {
            entry,
            value,
            source: SourceOf::Option(written),
            meant,
        });
        Ok(())
    }

    fn unknown_long(&self, name: &str) -> OptionError {
        let command = self.command();
        let declared = self
            .options
            .entries_at(command)
            .filter(|entry| !entry.hidden)
            .flat_map(|entry| entry.long.iter().map(String::as_str));
        let help = self.options.help_options(command).1.then_some("help");
        let version = self.options.version_option(command).then_some("version");
        let meant = nearest(name, declared.chain(help).chain(version));
        OptionError {
            place: format!("option --{}", Shortened(name)),
            message: self.unknown_message(|entry| entry.long.iter().any(|long| long == name)),
            help: Some(self.meant_or_help(meant.map(|meant| format!("--{meant}")))),
        }
    }

    fn unknown_short(&self, option: char, bundle: &str) -> OptionError {
        let meant = self.with_another_dash(bundle);
        let mut place = String::from("option -");
        place.push_str(&Shortened(option.encode_utf8(&mut [0; 4])).to_string());
        if bundle.chars().count() > 1 {
            place.push_str(&format!(" in -{}", self.shown(bundle)));
        }
        OptionError {
            place,
            message: self.unknown_message(|entry| entry.short.contains(&option)),
            help: Some(self.meant_or_help(meant)),
        }
    }

    /// The long option that a bundle such as `-verbose` is if a dash is added.
    fn with_another_dash(&self, bundle: &str) -> Option<String> {
        let word = bundle.split_once('=').map_or(bundle, |(word, _)| word);
        let is_long = word.chars().count() > 1 && self.options.has_long(self.command(), word);
        is_long.then(|| format!("--{}", self.shown(bundle)))
    }

    /// A bundle as it may be shown: what stands behind `=` may be a secret.
    fn shown<'b>(&self, bundle: &'b str) -> Shortened<'b> {
        let word = bundle.split_once('=').map(|(word, _)| word);
        Shortened(word.filter(|_| has_secrets(self.options)).unwrap_or(bundle))
    }

    /// Says that there is no such option here, and where there is one.
    fn unknown_message(&self, is_it: impl Fn(&Entry) -> bool) -> String {
        let earlier = self.called.iter().rev().skip(1);
        for &command in earlier {
            if self.options.entries_at(command).any(&is_it) {
                let name = &self.options.commands[self.called_after(command)].name;
                return format!("there is such an option only before the command `{name}`");
            }
        }
        "there is no such option".to_owned()
    }

    /// The command that was called after `command`.
    fn called_after(&self, command: usize) -> usize {
        let mut called = self.called.iter().skip_while(|&&at| at != command);
        called.nth(1).copied().unwrap_or(command)
    }

    /// Gives the arguments that are no options to their keys.
    fn place_arguments(&mut self) -> Result<(), OptionError> {
        let arguments = std::mem::take(&mut self.arguments);
        let position_of = |position| self.find(|entry| entry.position == Some(position));
        let mut placed = Vec::new();
        for (index, value) in arguments.into_iter().enumerate() {
            let entry =
                position_of(Position::Indexed(index)).or_else(|| position_of(Position::Remaining));
            let Some(entry) = entry else {
                return Err(OptionError {
                    place: format!("argument {}", Shortened(&value)),
                    message: match index {
                        0 => "no arguments are expected".to_owned(),
                        1 => "only one argument is expected".to_owned(),
                        more => format!("only {more} arguments are expected"),
                    },
                    help: Some(self.meant_or_help(None)),
                });
            };
            placed.push((entry, value));
        }
        let by_option: Vec<usize> = self.assignments.iter().map(|given| given.entry).collect();
        for (entry, value) in placed {
            let declared = &self.options.entries[entry];
            if by_option.contains(&entry) && !declared.array {
                return Err(OptionError {
                    place: format!("argument {}", declared.placeholder),
                    message: format!(
                        "the value is given a second time, after option {}",
                        declared.spelling().unwrap_or_default()
                    ),
                    help: Some("give it once".to_owned()),
                });
            }
            let source = SourceOf::Argument(declared.placeholder.clone());
            self.assignments.push(Assignment {
                entry,
                value,
                source,
                meant: None,
            });
        }
        Ok(())
    }

    /// Asks the environment for what the command line does not give.
    fn read_environment(
        &mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(), OptionError> {
        for (at, entry) in self.options.entries.iter().enumerate() {
            let given = self.assignments.iter().any(|given| given.entry == at);
            if given || !self.called.contains(&entry.command) {
                continue;
            }
            let set = entry.variables.iter().find_map(|name| {
                let value = variable(name).filter(|value| !value.is_empty())?;
                Some((name, value))
            });
            let Some((name, value)) = set else {
                continue;
            };
            let value = value.into_string().map_err(|value| OptionError {
                place: format!("variable {name}"),
                message: match entry.rules.secret() {
                    true => format!("`{REDACTED}` is not UTF-8"),
                    false => format!("`{}` is not UTF-8", Shortened(&value.to_string_lossy())),
                },
                help: Some("set it to text in UTF-8, or unset it".to_owned()),
            })?;
            let values: Vec<&str> = match entry.array {
                true => value.split(':').collect(),
                false => vec![&value],
            };
            for value in values {
                self.assignments.push(Assignment {
                    entry: at,
                    value: value.to_owned(),
                    source: SourceOf::Variable(name.clone()),
                    meant: None,
                });
            }
        }
        Ok(())
    }

    /// Checks all values and makes keys of them.
    fn keys(self) -> Result<KeySet, OptionError> {
        let mut keys = KeySet::new();
        let mut lengths = vec![0_usize; self.options.entries.len()];
        for Assignment {
            entry: at,
            value,
            source,
            meant,
        } in self.assignments
        {
            let entry = &self.options.entries[at];
            let index = lengths[at];
            lengths[at] += 1;
            let (_, most) = entry.rules.array();
            if let Some(most) = most.filter(|&most| entry.array && index >= most as usize) {
                return Err(OptionError {
                    place: Origin::new(source).to_string(),
                    message: format!("at most {most} values are allowed"),
                    help: Some("give fewer".to_owned()),
                });
            }
            let value = entry
                .rules
                .canonical(&value)
                .map_err(|violation| OptionError {
                    place: Origin::new(source.clone()).to_string(),
                    message: match &meant {
                        // The value may be that of another option.
                        Some(_) if has_secrets(self.options) => violation.redacted().to_string(),
                        _ => violation.to_string(),
                    },
                    help: meant.map(|meant| format!("did you mean `{meant}`?")),
                })?;
            let element = entry.array.then(|| element(&entry.name, index));
            let name = element.as_ref().unwrap_or(&entry.name);
            let origin = Origin::new(source);
            keys.insert(Key::new(Namespace::Proc, name, &value, origin));
        }
        for (entry, length) in self.options.entries.iter().zip(lengths) {
            let (least, _) = entry.rules.array();
            let least = least.filter(|&least| entry.array && length > 0 && length < least as usize);
            if let Some(least) = least {
                let place = entry.spelling().map_or_else(
                    || format!("argument {}", entry.placeholder),
                    |option| format!("option {option}"),
                );
                return Err(OptionError {
                    place,
                    message: format!("{length} given, but at least {least} are needed"),
                    help: Some("give more, or none".to_owned()),
                });
            }
        }
        for (at, command) in self.options.commands.iter().enumerate() {
            let Some(key) = &command.key else {
                continue;
            };
            let next = Some(self.called.iter().position(|&called| called == at))
                .flatten()
                .and_then(|position| self.called.get(position + 1))
                .map(|&next| &self.options.commands[next]);
            let (value, written) = match next {
                Some(next) => (&*next.base, &*next.name),
                None => ("", "COMMAND"),
            };
            let origin = Origin::new(SourceOf::Argument(written.to_owned()));
            keys.insert(Key::new(Namespace::Proc, key, value, origin));
        }
        Ok(keys)
    }
}

/// The name of an element of an array whose name ends in `#`.
fn element(name: &Name, index: usize) -> Name {
    let (parent, _) = split(name.as_str());
    let level = crate::rules::array_level(index);
    Name::from_canonical(format!("{parent}/{level}"))
}

/// Whether some value must not be shown.
fn has_secrets(options: &Options) -> bool {
    options.entries.iter().any(|entry| entry.rules.secret())
}

/// An argument as text; the error quotes it where that is allowed.
fn text(argument: OsString, quoted: bool) -> Result<String, OptionError> {
    argument.into_string().map_err(|argument| OptionError {
        place: match quoted {
            true => format!("argument {}", Shortened(&argument.to_string_lossy())),
            false => "an argument".to_owned(),
        },
        message: "it is not UTF-8".to_owned(),
        help: Some("write it in UTF-8".to_owned()),
    })
}
