//! `milieu completion SHELL`: the script by which a shell asks this program what fits.
//!
//! The script is small: the shell runs the program with the words so far, and
//! the program, which knows its commands and can find out names, answers.

use std::process::ExitCode;

use clap::{ArgMatches, Args, CommandFactory, ValueEnum};
use clap_complete::env::{Bash, CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::terminal;

/// The variable by which a shell asks.
const VARIABLE: &str = "MILIEU_COMPLETE";

/// Print the completion script of a shell
///
/// With it, the shell completes commands, options, and the names of keys, streams
/// and programs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu completion bash > ~/.local/share/bash-completion/completions/milieu
  milieu completion fish > ~/.config/fish/completions/milieu.fish
  source <(milieu completion zsh)")]
pub(crate) struct Completion {
    /// The shell that reads the script
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Completion {
    pub(crate) fn run(&self) -> ExitCode {
        let shell: &dyn EnvCompleter = match self.shell {
            Shell::Bash => &Bash,
            Shell::Elvish => &Elvish,
            Shell::Fish => &Fish,
            Shell::Powershell => &Powershell,
            Shell::Zsh => &Zsh,
        };
        let mut script = Vec::new();
        let written = shell.write_registration(VARIABLE, "milieu", "milieu", "milieu", &mut script);
        let printed = written.and_then(|()| terminal::print(&String::from_utf8_lossy(&script)));
        terminal::finish(printed.map(|()| ExitCode::SUCCESS))
    }
}

/// Answers the shell and ends, if it is a shell that asks.
pub(crate) fn answer(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .bin("milieu")
        .completer("milieu")
        .complete();
}

/// The verb of the command line that is being written, as far as it can be
/// understood.
pub(crate) fn verb_so_far() -> Option<ArgMatches> {
    // The shell gives the words behind the first `--`.
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let command = crate::Milieu::command().ignore_errors(true);
    let mut matches = command.try_get_matches_from(words).ok()?;
    let (_, mut noun) = matches.remove_subcommand()?;
    let (_, verb) = noun.remove_subcommand()?;
    Some(verb)
}

/// The name up to the end of the level that is being written.
pub(crate) fn next_level(written: &str, name: &str) -> Option<String> {
    let rest = name.strip_prefix(written)?;
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '/' if !(written.is_empty() && at == 0) => {
                return Some(format!("{written}{}", &rest[..=at]));
            }
            _ => {}
        }
    }
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_completed_to_the_end_of_its_level() {
        let next = |written| next_level(written, "/sw/pi/a\\/b/c");
        assert_eq!(next("").as_deref(), Some("/sw/"));
        assert_eq!(next("/").as_deref(), Some("/sw/"));
        assert_eq!(next("/s").as_deref(), Some("/sw/"));
        assert_eq!(next("/sw/").as_deref(), Some("/sw/pi/"));
        assert_eq!(next("/sw/pi/a").as_deref(), Some("/sw/pi/a\\/b/"));
        assert_eq!(next("/sw/pi/a\\/b/").as_deref(), Some("/sw/pi/a\\/b/c"));
        assert_eq!(next("/x"), None);
    }
}
