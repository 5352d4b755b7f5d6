//! What the mediator of a device is told of programs: who is left alone, who comes
//! first, and which threads are critical in programs that say nothing themselves.
//!
//! ```text
//! # WORD PROGRAM …; patterns have `*` and `?`
//! only       *            # and nobody else; without such a line, everybody
//! exclude    sshd
//! urgent     fridge
//! service    crond
//! background *-updater
//! critical   fridge probe-* -5
//! user       anna
//! ```
//!
//! A program is known by its name, or by its path where a pattern has a `/`. The
//! first line counts that says anything of a program's group.

use std::fmt;
use std::fs;

use milieu_threads::attributes::{Attributes, Priority};
use milieu_threads::mediator::Kind;
use milieu_threads::run::matches;

/// The paper's groups (section V-C), which order critical threads of different
/// programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Group {
    /// Before all others.
    Urgent,
    /// Those of whom nothing is said.
    #[default]
    Normal,
    /// After normal ones.
    Service,
    /// None of its threads is critical; all are lazy, whether or not somebody is
    /// in the fast region.
    Background,
}

impl Group {
    /// All of them, in their order.
    pub const ALL: [Group; 4] = [
        Group::Urgent,
        Group::Normal,
        Group::Service,
        Group::Background,
    ];

    /// Its name in rules and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Urgent => "urgent",
            Group::Normal => "normal",
            Group::Service => "service",
            Group::Background => "background",
        }
    }

    /// What becomes of a thread with these attributes in a program of this group:
    /// every group has its own quarter of the priorities, so that the least critical
    /// thread of one comes before the most critical of the next.
    #[must_use]
    pub fn kind(self, attributes: &Attributes) -> Kind {
        match (self, Kind::from(attributes)) {
            (Group::Background, _) => Kind::Lazy,
            (group, Kind::Critical(priority)) => {
                let first = Priority::FIRST.nice();
                let within = (priority.nice() - first) / 4;
                let nice = first + 10 * group as i32 + within;
                Kind::Critical(Priority::new(nice).unwrap_or(Priority::LAST))
            }
            (_, kind) => kind,
        }
    }
}

/// Critical threads of a program that says nothing of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Critical {
    program: String,
    thread: String,
    priority: Priority,
}

/// What is said of programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    only: Vec<String>,
    excluded: Vec<String>,
    groups: Vec<(String, Group)>,
    critical: Vec<Critical>,
    users: Vec<u32>,
}

/// A line that says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Which, from 1 on.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for RuleError {}

impl Rules {
    /// Reads rules, or says what is wrong with each line.
    ///
    /// # Errors
    /// All lines that say nothing.
    pub fn parse(text: &str) -> Result<Rules, Vec<RuleError>> {
        let mut rules = Rules::default();
        let mut errors = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            if let Err(message) = rules.take(&words) {
                errors.push(RuleError { line, message });
            }
        }
        if errors.is_empty() {
            Ok(rules)
        } else {
            Err(errors)
        }
    }

    fn take(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [] => {}
            ["only", program] => self.only.push((*program).to_owned()),
            ["exclude", program] => self.excluded.push((*program).to_owned()),
            ["user", user] => {
                let number = user.parse().ok().or_else(|| number_of_user(user));
                self.users
                    .push(number.ok_or(format!("there is no user `{user}` here"))?);
            }
            ["critical", program, thread, rest @ ..] if rest.len() < 2 => {
                let priority = match rest {
                    [nice] => nice
                        .parse()
                        .ok()
                        .and_then(|nice| Priority::new(nice).ok())
                        .ok_or(format!("`{nice}` is no nice value from -20 to 19"))?,
                    _ => Priority::default(),
                };
                self.critical.push(Critical {
                    program: (*program).to_owned(),
                    thread: (*thread).to_owned(),
                    priority,
                });
            }
            [word, program] => {
                let group = Group::ALL.into_iter().find(|it| it.name() == *word);
                let group = group.ok_or_else(|| expected(word))?;
                self.groups.push(((*program).to_owned(), group));
            }
            [word, ..] => return Err(expected(word)),
        }
        Ok(())
    }

    /// Whether a program is mediated, and not left alone.
    #[must_use]
    pub fn is_meant(&self, program: &Name) -> bool {
        let is_one = self.only.is_empty() || self.only.iter().any(|it| program.fits(it));
        is_one && !self.excluded.iter().any(|it| program.fits(it))
    }

    /// The group of a program.
    #[must_use]
    pub fn group(&self, program: &Name) -> Group {
        let found = self.groups.iter().find(|(it, _)| program.fits(it));
        found.map_or(Group::default(), |(_, group)| *group)
    }

    /// Whether a program has threads that are critical by these rules.
    #[must_use]
    pub fn has_critical(&self, program: &Name) -> bool {
        self.critical.iter().any(|it| program.fits(&it.program))
    }

    /// The priority of a thread that is critical by these rules.
    #[must_use]
    pub fn critical(&self, program: &Name, thread: &str) -> Option<Priority> {
        let fits =
            |it: &&Critical| program.fits(&it.program) && matches(&it.thread, thread.as_bytes());
        self.critical.iter().find(fits).map(|it| it.priority)
    }

    /// Other users whose programs may have critical threads.
    #[must_use]
    pub fn users(&self) -> &[u32] {
        &self.users
    }
}

fn expected(word: &str) -> String {
    format!(
        "`{word}` and what follows it are no rule; expected `only PROGRAM`, `exclude PROGRAM`, \
         `urgent|normal|service|background PROGRAM`, `critical PROGRAM THREAD [NICE]` \
         or `user NAME`"
    )
}

/// The number of a user, by the list that every system has.
fn number_of_user(name: &str) -> Option<u32> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// By what a program is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Name {
    /// What its first thread is called.
    pub name: String,
    /// Where its file is; empty where that cannot be told.
    pub path: String,
}

impl Name {
    fn fits(&self, pattern: &str) -> bool {
        let file = self.path.rsplit('/').next().unwrap_or_default();
        if pattern.contains('/') {
            matches(pattern, self.path.as_bytes())
        } else {
            // The kernel cuts names after 15 bytes.
            matches(pattern, self.name.as_bytes()) || matches(pattern, file.as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> Name {
        let name = path.rsplit('/').next().unwrap_or_default();
        Name {
            name: name.chars().take(15).collect(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn rules_say_who_is_who() {
        let rules = Rules::parse(
            "# a device\nexclude ssh*\nurgent fridge\nbackground /opt/*/updater\n\
             service a-rather-long-name-of-a-daemon\ncritical fridge probe-* -5\n\
             critical fridge display # without a priority\nuser root\nuser 1000\n",
        )
        .expect("they are right");
        assert!(!rules.is_meant(&name("/usr/sbin/sshd")));
        assert!(rules.is_meant(&name("/usr/bin/fridge")));
        let some = Rules::parse("only fridge*\nexclude fridge-log").expect("they are right");
        let is_meant = |path| some.is_meant(&name(path));
        assert!(is_meant("/bin/fridge") && !is_meant("/bin/fridge-log") && !is_meant("/bin/sh"));
        let fridge = name("/usr/bin/fridge");
        assert_eq!(rules.group(&fridge), Group::Urgent);
        assert_eq!(rules.group(&name("/opt/x/updater")), Group::Background);
        assert_eq!(rules.group(&name("/usr/bin/updater")), Group::Normal);
        let long = name("/bin/a-rather-long-name-of-a-daemon");
        assert_eq!(rules.group(&long), Group::Service);
        let nice = |thread| rules.critical(&fridge, thread).map(Priority::nice);
        assert_eq!(nice("probe-1"), Some(-5));
        assert_eq!(nice("display"), Some(0));
        assert_eq!(nice("logger"), None);
        assert!(rules.has_critical(&fridge) && !rules.has_critical(&long));
        assert_eq!(rules.users(), [0, 1000]);
    }

    #[test]
    fn wrong_lines_are_all_told_with_their_numbers() {
        let errors = Rules::parse(
            "exclude\nurgent a b\nfast x\n\ncritical a b 20\ncritical a\nuser nobody-at-all\n",
        )
        .expect_err("nothing of it is right");
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 6, "{told:#?}");
        let lines: Vec<usize> = errors.iter().map(|it| it.line).collect();
        assert_eq!(lines, [1, 2, 3, 5, 6, 7]);
        assert!(told[2].contains("line 3: `fast`"), "{told:#?}");
        assert!(told[3].contains("no nice value"), "{told:#?}");
    }

    #[test]
    fn the_last_of_a_group_comes_before_the_first_of_the_next() {
        let of = |group: Group, nice| {
            let critical =
                Attributes::default().time_critical(Priority::new(nice).expect("a nice value"));
            match group.kind(&critical) {
                Kind::Critical(priority) => priority.nice(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((of(Group::Urgent, -20), of(Group::Service, 19)), (-20, 9));
        assert!(of(Group::Urgent, 19) < of(Group::Normal, -20));
        assert!(of(Group::Normal, 19) < of(Group::Service, -20));
        assert!((-20..19).all(|it| of(Group::Normal, it) <= of(Group::Normal, it + 1)));
        let lazy = Group::Background.kind(&Attributes::default());
        assert_eq!(lazy, Kind::Lazy);
    }
}
