//! From the metadata of all keys to the table of options.

use super::{Argument, Command, DeclarationError, Entry, Options, Position, Program};
use crate::name::{Name, split, unescape};
use crate::pattern::Pattern;
use crate::rules::{self, Metadata, RuleError, Rules, Type};

/// The width of help texts where nobody says otherwise.
const WIDTH: usize = 80;

/// The metadata of one key.
struct Given<'a> {
    metadata: Metadata<'a>,
}

impl<'a> Given<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        let mut found = self.metadata.iter().rev();
        found
            .find(|(name, _)| *name == key)
            .map(|&(_, value)| value)
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(str::to_owned)
    }

    /// The value of a key and of its array, unless the value only announces how
    /// many elements the array has.
    fn all(&self, key: &str) -> Vec<&'a str> {
        let single = self
            .get(key)
            .filter(|value| rules::array_index(value).is_none());
        let mut elements: Vec<(usize, &str)> = self
            .metadata
            .iter()
            .filter_map(|&(name, value)| {
                let level = name.strip_prefix(key)?.strip_prefix('/')?;
                Some((rules::array_index(level)?, value))
            })
            .collect();
        elements.sort_by_key(|&(index, _)| index);
        let elements = elements.into_iter().map(|(_, value)| value);
        single.into_iter().chain(elements).collect()
    }

    fn takes_part(&self) -> bool {
        self.metadata.iter().any(|(key, _)| {
            let first = key.split('/').next().unwrap_or(key);
            matches!(first, "opt" | "args" | "env")
        })
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(rules::flag).unwrap_or(false)
    }

    fn help(&self) -> Option<String> {
        self.text("opt/help").or_else(|| self.text("description"))
    }
}

pub(super) fn options<'a>(
    program: Program,
    keys: impl IntoIterator<Item = (&'a str, Metadata<'a>)>,
) -> Result<Options, DeclarationError> {
    let mut declared = Vec::new();
    let mut options = Options {
        commands: vec![Command {
            name: String::new(),
            parent: None,
            key: None,
            base: String::new(),
            help: program.description.clone(),
            hidden: false,
        }],
        program,
        entries: Vec::new(),
        width: WIDTH,
    };
    for (pattern, metadata) in keys {
        let given = Given { metadata };
        let is_command = given.get("command").is_some();
        if !is_command && !given.takes_part() {
            continue;
        }
        let at = |error| DeclarationError {
            pattern: pattern.to_owned(),
            error,
        };
        let parsed = Pattern::parse(pattern)
            .map_err(|error| at(RuleError::new("", pattern, error.message, error.help)))?;
        let rules = Rules::from_metadata(metadata).map_err(at)?;
        let name = parsed.resolve(|_| None);
        if is_command {
            command(&mut options, &name, &given, &rules).map_err(at)?;
        }
        if given.takes_part() {
            declared.push((pattern, parsed, name, given, rules));
        }
    }
    nest(&mut options)?;
    for (pattern, parsed, name, given, rules) in declared {
        let at = |error| DeclarationError {
            pattern: pattern.to_owned(),
            error,
        };
        let entry = entry(&options, parsed, name, &given, rules).map_err(at)?;
        check_unclaimed(&options, &entry).map_err(at)?;
        options.entries.push(entry);
    }
    check_positions(&options)?;
    Ok(options)
}

/// Takes in a command; its place among the others is found later.
fn command(
    options: &mut Options,
    name: &Name,
    given: &Given<'_>,
    rules: &Rules,
) -> Result<(), RuleError> {
    let command = given.get("command").unwrap_or("");
    let complain =
        |message: &str, help: &str| Err(RuleError::new("command", command, message, help));
    if *rules.type_() != Type::String {
        return complain(
            "the value of a command is the name of a subcommand, so it is a string",
            "make it `type=string`",
        );
    }
    let base = unescape(split(name.as_str()).1).into_owned();
    if !command.is_empty() {
        options.commands.push(Command {
            name: command.to_owned(),
            parent: Some(0),
            key: Some(name.clone()),
            base,
            help: given.help(),
            hidden: given.flag("opt/hidden"),
        });
        return Ok(());
    }
    let root = &mut options.commands[0];
    if root.key.is_some() {
        return complain(
            "another key has `command=` and stands for the program already",
            "give this one the name of a subcommand",
        );
    }
    root.key = Some(name.clone());
    root.base = base;
    root.help = root.help.take().or_else(|| given.help());
    Ok(())
}

/// Finds the parent of each command: the nearest command above.
fn nest(options: &mut Options) -> Result<(), DeclarationError> {
    for at in 1..options.commands.len() {
        let Some(key) = options.commands[at].key.clone() else {
            continue;
        };
        let parent = owner(options, &key);
        let name = &options.commands[at].name;
        let twin = options.commands[1..at]
            .iter()
            .find(|other| other.parent == Some(parent) && other.name == *name);
        if let Some(twin) = twin {
            let twin = twin.key.as_ref().map_or("", |key| key.as_str());
            return Err(DeclarationError {
                pattern: key.to_string(),
                error: RuleError::new(
                    "command",
                    name,
                    format!("{twin} is a command of that name already"),
                    "give one of them another name",
                ),
            });
        }
        options.commands[at].parent = Some(parent);
    }
    Ok(())
}

/// The nearest command above a name.
fn owner(options: &Options, name: &Name) -> usize {
    let commands = options.commands.iter().enumerate().skip(1);
    commands
        .filter_map(|(at, command)| {
            let key = command.key.as_ref()?;
            // A key is not above itself, nor above another one of its name.
            let above = key != name && name.is_below_or_same(key.as_str());
            above.then_some((key.as_str().len(), at))
        })
        .max()
        .map_or(0, |(_, at)| at)
}

fn entry(
    options: &Options,
    pattern: Pattern,
    name: Name,
    given: &Given<'_>,
    rules: Rules,
) -> Result<Entry, RuleError> {
    let command = owner(options, &name);
    let (parent, level) = split(name.as_str());
    let array = level == "#";
    let called = if array { split(parent).1 } else { level };
    let boolean = *rules.type_() == Type::Boolean;
    let argument = match given.get("opt/arg") {
        Some("none") => Argument::None,
        Some("optional") => Argument::Optional,
        Some(_) => Argument::Required,
        None if boolean => Argument::Optional,
        None => Argument::Required,
    };
    let short = given.all("opt").into_iter();
    let long = given.all("opt/long").into_iter();
    // Elektra's users name the argument with `opt/arg/help`; where it is a
    // sentence, it explains the argument instead.
    let argument_help = given.text("opt/arg/help");
    let is_word = |text: &String| !text.contains(char::is_whitespace);
    let placeholder = given
        .text("opt/arg/name")
        .or_else(|| argument_help.clone().filter(is_word))
        .unwrap_or_else(|| unescape(called).to_uppercase());
    let entry = Entry {
        short: short.filter_map(rules::short_option).collect(),
        long: long
            .filter_map(|long| rules::long_option(long).map(str::to_owned))
            .collect(),
        flag_value: given.get("opt/flagvalue").map_or_else(
            || if boolean { "true" } else { "1" }.to_owned(),
            str::to_owned,
        ),
        argument_help: argument_help.filter(|help| *help != placeholder),
        help: given.help(),
        hidden: given.flag("opt/hidden"),
        position: position(given, array)?,
        variables: given.all("env").into_iter().map(str::to_owned).collect(),
        notes: notes(given, &rules),
        pattern,
        name,
        command,
        array,
        argument,
        placeholder,
        rules,
    };
    let is_option = !entry.short.is_empty() || !entry.long.is_empty();
    if is_option && entry.argument != Argument::Required {
        if let Err(violation) = entry.rules.check(&entry.flag_value) {
            return Err(RuleError::new(
                "opt/flagvalue",
                &entry.flag_value,
                format!("the option without argument sets a value that is refused: {violation}"),
                "give `opt/flagvalue` a value that keeps the rules, or make it `opt/arg=required`",
            ));
        }
    }
    Ok(entry)
}

fn position(given: &Given<'_>, array: bool) -> Result<Option<Position>, RuleError> {
    let index = given.get("args/index").unwrap_or("");
    match given.get("args") {
        None => Ok(None),
        Some("remaining") if array => Ok(Some(Position::Remaining)),
        Some("remaining") => Err(RuleError::new(
            "args",
            "remaining",
            "one value cannot take several arguments",
            "let the name of the key end in `/#`, which makes it an array",
        )),
        Some(args) if array => Err(RuleError::new(
            "args",
            args,
            "an array takes the remaining arguments, not the one of an index",
            "make it `args=remaining`, or remove `/#` from the name of the key",
        )),
        // `Rules` has seen to it that the index is a number.
        Some(_) => Ok(index.parse().ok().map(Position::Indexed)),
    }
}

fn notes(given: &Given<'_>, rules: &Rules) -> Vec<String> {
    let mut notes = Vec::new();
    if !rules.variants().is_empty() {
        notes.push(format!("one of: {}", rules.variants().join(", ")));
    }
    if let Some(range) = given.get("check/range").or_else(|| given.get("range")) {
        notes.push(format!("range: {range}"));
    }
    if let Some(unit) = given.get("unit") {
        notes.push(format!("unit: {unit}"));
    }
    let zero_of_flag = |default: &&str| {
        *rules.type_() == Type::Boolean && rules::parse_boolean(default) == Some(false)
    };
    let default = rules.default().filter(|default| !default.is_empty());
    if let Some(default) = default.filter(|default| !zero_of_flag(default)) {
        notes.push(format!("default: {default}"));
    }
    notes
}

/// Refuses an option that another key of the command has.
fn check_unclaimed(options: &Options, entry: &Entry) -> Result<(), RuleError> {
    let others = || options.entries_at(entry.command);
    let claimed = |key: &str, option: &str, other: &Entry| {
        Err(RuleError::new(
            key,
            option,
            format!("{} has this option already", other.pattern.as_str()),
            "give one of them another option",
        ))
    };
    for (at, short) in entry.short.iter().enumerate() {
        let own = entry.short[..at].contains(short).then_some(entry);
        let other = others().find(|other| other.short.contains(short));
        if let Some(other) = own.or(other) {
            return claimed("opt", &short.to_string(), other);
        }
    }
    for (at, long) in entry.long.iter().enumerate() {
        let own = entry.long[..at].contains(long).then_some(entry);
        let other = others().find(|other| other.long.contains(long));
        if let Some(other) = own.or(other) {
            return claimed("opt/long", long, other);
        }
    }
    let same = |other: &&Entry| entry.position.is_some() && other.position == entry.position;
    if let Some(other) = others().find(same) {
        let (key, value) = match entry.position {
            Some(Position::Indexed(index)) => ("args/index", index.to_string()),
            _ => ("args", "remaining".to_owned()),
        };
        return Err(RuleError::new(
            key,
            value,
            format!("{} takes the same already", other.pattern.as_str()),
            "let each argument go to one key",
        ));
    }
    Ok(())
}

/// Refuses an argument whose predecessor nobody takes, since it could never be
/// given alone.
fn check_positions(options: &Options) -> Result<(), DeclarationError> {
    for entry in &options.entries {
        let Some(Position::Indexed(index)) = entry.position else {
            continue;
        };
        let taken = |index| {
            let mut others = options.entries_at(entry.command);
            others.any(|other| other.position == Some(Position::Indexed(index)))
        };
        if index > 0 && !taken(index - 1) {
            return Err(DeclarationError {
                pattern: entry.pattern.as_str().to_owned(),
                error: RuleError::new(
                    "args/index",
                    index.to_string(),
                    format!("no key of the command takes the argument {}", index - 1),
                    "number the arguments from 0 on without gaps",
                ),
            });
        }
    }
    Ok(())
}
