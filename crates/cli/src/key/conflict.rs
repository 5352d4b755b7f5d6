//! What becomes of keys that others have changed as well.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::{Args, ValueEnum};
use milieu_store::{Conflict, Resolution, Resolve, Schema, ini};

use super::show::program;

/// How conflicts are decided.
#[derive(Args)]
pub(super) struct Conflicts {
    /// What happens to keys that others have changed as well
    ///
    /// Without this option they are asked about on a terminal, and refused
    /// elsewhere.
    #[arg(long, value_name = "HOW")]
    on_conflict: Option<Choice>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    /// Change nothing, and list them
    Refuse,
    /// Write what this command says
    Ours,
    /// Keep what the others wrote
    Theirs,
    /// Ask about each
    Ask,
}

impl Conflicts {
    /// Decides by what was chosen; nobody is shown what the specification calls
    /// secret.
    pub(super) fn resolve(&self, schema: Option<&Schema>) -> impl Resolve + use<> {
        let schema = schema.cloned();
        let asking = io::stdin().is_terminal() && io::stderr().is_terminal();
        let choice = self.on_conflict.unwrap_or(match asking {
            true => Choice::Ask,
            false => Choice::Refuse,
        });
        move |conflict: &Conflict| match choice {
            Choice::Refuse => Resolution::Refuse,
            Choice::Ours => Resolution::Ours,
            Choice::Theirs => Resolution::Theirs,
            Choice::Ask => {
                let shown = |schema: &Schema| schema.redact_conflict(conflict.clone());
                let shown = schema.as_ref().map_or_else(|| conflict.clone(), shown);
                ask(&shown, &mut io::stdin().lock())
            }
        }
    }
}

/// Asks until there is an answer; the end of the input refuses.
fn ask(conflict: &Conflict, answers: &mut dyn BufRead) -> Resolution {
    let shown = |value: &Option<String>| match value {
        Some(value) => ini::encode_value(value).into_owned(),
        None => "(no value)".to_owned(),
    };
    let who = conflict.by.as_ref().map_or_else(
        || "others".to_owned(),
        |by| format!("{}, {}", by.user, program(by)),
    );
    eprintln!(
        "{} has been changed meanwhile\n  was        {}\n  [t]heirs   {}  by {who}\n  [o]urs     {}",
        ini::encode_name(conflict.name.as_str()),
        shown(&conflict.base),
        shown(&conflict.theirs),
        shown(&conflict.ours),
    );
    loop {
        eprint!("[t]heirs, [o]urs, [a]bort, or =VALUE: ");
        let _ = io::stderr().flush();
        let mut answer = String::new();
        if !answers.read_line(&mut answer).is_ok_and(|read| read > 0) {
            return Resolution::Refuse;
        }
        let answer = answer.trim_end_matches(['\n', '\r']);
        match answer.trim() {
            "t" | "theirs" => return Resolution::Theirs,
            "o" | "ours" => return Resolution::Ours,
            "a" | "abort" => return Resolution::Refuse,
            other => {
                if let Some(value) = other.strip_prefix('=') {
                    return Resolution::Value(Some(value.trim().to_owned()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milieu_keys::Name;

    #[test]
    fn answers_are_understood_and_others_are_asked_again() {
        let conflict = Conflict {
            name: Name::parse("/a").unwrap(),
            base: None,
            ours: Some("1".into()),
            theirs: Some("2".into()),
            by: None,
            secret: false,
        };
        let answer = |text: &str| ask(&conflict, &mut text.as_bytes());
        assert_eq!(answer("o\n"), Resolution::Ours);
        assert_eq!(answer("what?\n\ntheirs\n"), Resolution::Theirs);
        assert_eq!(answer("= 3 \n"), Resolution::Value(Some("3".into())));
        assert_eq!(answer("a\n"), Resolution::Refuse);
        assert_eq!(answer(""), Resolution::Refuse);
    }
}
