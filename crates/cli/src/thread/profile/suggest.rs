//! `milieu thread profile --suggest`: lines for a file of patterns.
//!
//! A line is proposed where it says what it is meant to say of the threads that were seen,
//! and of no others. Where no pattern can do that there is none, and a remark says why.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use milieu_device::monitor::{Process, Sample, Thread};
use milieu_device::profile::{Profile as Learned, Start, Symbols};
use milieu_threads::attributes::Role;
use milieu_threads::run::{Rule, matches, rules};
use milieu_threads::stack::{Entry, Key, Place};
use serde_json::{Value, json};

/// A line, or why there is none.
type Proposal = Result<String, String>;

/// A pattern that is about this text; of what no pattern can have, it takes any byte.
fn pattern_of(text: &str) -> String {
    let mut pattern = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            // Some bytes that are no text.
            '\u{fffd}' => pattern.push('*'),
            // The kernel writes so what stands for itself or the end of a line.
            '\\' => {
                characters.next();
                pattern.push('*');
            }
            '#' | '>' => pattern.push('?'),
            it if it.is_whitespace() || it.is_control() => {
                pattern.push_str(&"?".repeat(it.len_utf8()));
            }
            it => pattern.push(it),
        }
    }
    pattern
}

/// A line that is what it looks like.
fn checked(line: String) -> Proposal {
    let said: Result<Vec<Rule<'_>>, _> = rules(&line).collect();
    match said {
        Ok(said) if said.len() == 1 => Ok(line),
        _ => Err("patterns cannot say its name".to_owned()),
    }
}

/// A role of what is readable there.
fn role_of(text: &str) -> String {
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || "._".contains(it) {
            it
        } else {
            '-'
        }
    };
    let role: String = text.chars().map(plain).take(Role::BYTES_MAX).collect();
    match role.trim_matches('-') {
        "" => "thread".to_owned(),
        role => role.to_owned(),
    }
}

/// What may stand in a remark.
fn remark(text: &str) -> String {
    let plain = |it: char| if it.is_control() { '?' } else { it };
    text.chars().map(plain).collect()
}

/// A thread that wakes often and then runs briefly: the paper's time-critical threads
/// "handle user-level events during a short time period" (section V-A).
pub(super) struct Waker {
    process: String,
    number: u32,
    name: String,
    /// For each second.
    wakes: f64,
    /// Milliseconds that it runs each time, and waits for a processor before.
    run: f64,
    wait: f64,
    has_role: bool,
    proposal: Proposal,
}

/// Fewer wake-ups are no service, longer runs are work.
const WAKES_MIN: f64 = 1.0;
const RUN_MS_MAX: f64 = 10.0;
const SHARE_MAX: f64 = 0.5;

fn wakes_often(thread: &Thread) -> bool {
    thread.since.is_some_and(|since| {
        let run = since.run * 1000.0 / since.voluntary.max(1e-9);
        since.voluntary >= WAKES_MIN && run <= RUN_MS_MAX && since.run <= SHARE_MAX
    })
}

/// The most often first.
pub(super) fn wakers(sample: &Sample, is_any: bool) -> Vec<Waker> {
    let served = sample
        .threads()
        .filter(|(process, _)| is_any || process.is_served);
    let wakers = served.filter_map(|(process, thread)| {
        let since = thread.since.filter(|_| wakes_often(thread))?;
        thread.critical.is_none().then(|| Waker {
            process: process.name.clone(),
            number: thread.number,
            name: thread.name.clone(),
            wakes: since.voluntary,
            run: since.run * 1000.0 / since.voluntary,
            wait: since.wait * 1000.0 / since.voluntary,
            has_role: !thread.role.is_none(),
            proposal: by_name(process, thread, was_forked(process.number)),
        })
    });
    let mut wakers: Vec<Waker> = wakers.collect();
    wakers.sort_by(|a, b| b.wakes.total_cmp(&a.wakes).then(a.number.cmp(&b.number)));
    wakers
}

/// Whether the process is a copy of another, in which it began as no thread of a program.
fn was_forked(process: u32) -> bool {
    const FORKED: u64 = 0x40;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(')').map(|it| it.1).unwrap_or_default();
    // They are numbered from 1, and after the name comes the third.
    let flags = fields.split_whitespace().nth(9 - 3);
    let flags = flags.and_then(|it| it.parse::<u64>().ok());
    flags.is_some_and(|it| it & FORKED != 0)
}

/// A line that knows a running thread by its name.
///
/// Patterns about names count for a program's first thread from its begin on, and for
/// another when it is given one: what that has of its creator is not its own.
fn by_name(process: &Process, thread: &Thread, was_forked: bool) -> Proposal {
    let is_first = thread.number == process.number;
    if is_first && was_forked {
        return Err("it began as a copy of a process, and patterns are not about it".to_owned());
    }
    let pattern = pattern_of(&thread.name);
    if pattern.is_empty() {
        return Err("it has no name".to_owned());
    }
    let is_of_program = |it: &str| matches(&pattern, it.as_bytes());
    if !is_first && first_names(process).iter().any(|it| is_of_program(it)) {
        return Err(format!(
            "it has the name of its program, as threads have that nobody gives one{}",
            by_number(process, thread)
        ));
    }
    let others = process.threads.iter().filter(|it| {
        // What has the program's name is not given it.
        let is_other = it.number != thread.number && (!is_first || it.name != thread.name);
        is_other && matches(&pattern, it.name.as_bytes())
    });
    let mut others = others.filter(|it| !wakes_often(it) && it.critical.is_none());
    if others.next().is_some() {
        return Err("threads that do not wake often have its name, too".to_owned());
    }
    // Who has a role keeps it.
    let role = thread.role.as_str();
    let line = |role: &str| checked(format!("name {pattern} => {role} critical"));
    match role {
        "" => line(&role_of(&thread.name)),
        role => line(role).or_else(|_| line(&role_of(role))),
    }
}

/// What the first thread of a program is called, and may have been when it created others.
fn first_names(process: &Process) -> Vec<String> {
    const KERNEL_BYTES: usize = 15;
    let file = fs::read_link(format!("/proc/{}/exe", process.number)).ok();
    let file = file.as_deref().map(Path::to_string_lossy);
    // Of a script it is that of the script, which is not the first word.
    let paths = process.words.iter().map(String::as_str);
    let paths = paths.chain(file.as_deref());
    let names = paths.filter_map(|it| {
        let name = it.rsplit('/').next()?;
        Some(head(name, KERNEL_BYTES).to_owned())
    });
    names.chain([process.name.clone()]).collect()
}

/// Whole characters of so many bytes at most.
fn head(text: &str, bytes: usize) -> &str {
    let mut ends = (0..=bytes.min(text.len())).rev();
    ends.find_map(|it| text.get(..it)).unwrap_or_default()
}

/// What may be said of a thread by its order of creation, of which only that is known of
/// those that are there.
fn by_number(process: &Process, thread: &Thread) -> String {
    // Those that are not the program's have no line in its table.
    let is_own = |it: &&Thread| !process.is_served || it.region.is_some();
    let is_before = |it: &&Thread| (it.start, it.number) < (thread.start, thread.number);
    let before = process.threads.iter().filter(is_own).filter(is_before);
    format!(
        "; it is `number {}` if those created before it are there still",
        before.count()
    )
}

impl Waker {
    pub(super) fn text(&self) -> String {
        let said = match self.has_role {
            true => "#   it has a role; where the program itself says so, patterns do not count\n",
            false => "",
        };
        format!(
            "# {} {}: wakes {:.0} times a second, runs {:.2} ms each time, having waited {:.2} \
             ms\n{said}",
            remark(&self.process),
            self.number,
            self.wakes,
            self.run,
            self.wait,
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "is": "wakes-often",
            "process": self.process,
            "thread": self.number,
            "name": self.name,
            "wakes_per_second": self.wakes,
            "run_ms_each": self.run,
            "wait_ms_each": self.wait,
            "line": self.proposal.as_ref().ok(),
            "why_no_line": self.proposal.as_ref().err(),
        })
    }
}

/// A start function of which a profile knows, with what tells its threads from others.
struct Site {
    entry: Entry,
    start: Start,
    creations: Vec<Creation>,
    text: Option<String>,
    kind: Option<Place>,
}

/// Where threads are created, as far as that was noted: the function, and who calls it, of
/// whom the first ones say enough.
#[derive(PartialEq)]
struct Creation {
    by: Start,
    called_by: Vec<String>,
}

impl Creation {
    /// Each once.
    fn all(learned: &Learned, key: &Key, symbols: &mut Symbols) -> Vec<Creation> {
        const CALLERS: usize = 3;
        let mut creations = Vec::new();
        for (_, calls) in learned.sites.iter().filter(|it| it.0 == *key) {
            let mut functions = symbols.creators(calls).into_iter();
            let creation = functions.next().map(|by| Creation {
                by,
                called_by: functions.map(|it| it.name).take(CALLERS).collect(),
            });
            creations.extend(creation.filter(|it| !creations.contains(it)));
        }
        creations
    }

    fn text(&self) -> String {
        let mut text = format!("#   created by {}", place(&self.by));
        for caller in &self.called_by {
            let _ = write!(text, ", from {}", remark(caller));
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "function": self.by.name,
            "position": self.by.position,
            "called_by": self.called_by,
        })
    }
}

/// Start functions whose threads have no role.
pub(super) struct Sites {
    /// Those that most threads begin with first.
    nameless: Vec<Site>,
    proposals: HashMap<Key, Proposal>,
}

impl Sites {
    pub(super) fn of(learned: &Learned) -> Sites {
        let mut symbols = Symbols::of(learned);
        let site = |entry: &Entry| Site {
            entry: *entry,
            start: symbols.start(&entry.key),
            creations: Creation::all(learned, &entry.key, &mut symbols),
            text: symbols.pattern_text(&entry.key).map(cut),
            kind: symbols.kind(&entry.key),
        };
        let mut all: Vec<Site> = learned.entries.iter().map(site).collect();
        all.sort_by(|a, b| {
            let threads = b.entry.threads.cmp(&a.entry.threads);
            threads.then_with(|| a.start.name.cmp(&b.start.name))
        });
        let mut roles = Roles::default();
        for site in &all {
            let role = String::from_utf8_lossy(site.entry.role.as_bytes());
            roles.taken.push(role.into_owned());
        }
        let mut proposals = HashMap::new();
        for site in all.iter().filter(|it| it.entry.role.is_empty()) {
            proposals.insert(site.entry.key, by_start(site, &all, &mut roles));
        }
        let nameless = all.into_iter().filter(|it| it.entry.role.is_empty());
        Sites {
            nameless: nameless.collect(),
            proposals,
        }
    }

    /// Where threads of a key are created that have no role.
    pub(super) fn creations(&self, key: &Key) -> Vec<Value> {
        let mut sites = self.nameless.iter();
        let site = sites.find(|it| it.entry.key == *key);
        site.map_or(Vec::new(), |it| {
            it.creations.iter().map(Creation::json).collect()
        })
    }

    /// What is proposed for a key whose threads have no role.
    pub(super) fn proposal(&self, key: &Key) -> Option<&Proposal> {
        self.proposals.get(key)
    }

    pub(super) fn text(&self) -> String {
        let mut lines = Lines::default();
        for site in &self.nameless {
            let mut about = format!("# {}: {} threads\n", place(&site.start), site.entry.threads);
            for creation in &site.creations {
                let _ = writeln!(about, "{}", creation.text());
            }
            if let Some(proposal) = self.proposal(&site.entry.key) {
                lines.add(about, proposal);
            }
        }
        lines.text()
    }
}

fn place(start: &Start) -> String {
    let position = start.position.as_deref();
    let position = position.unwrap_or("no debug information");
    format!("{}, {}", remark(&start.name), remark(position))
}

/// As the preload has it, which has no room for more.
fn cut(text: String) -> String {
    const ROOM: usize = 256;
    head(&text, ROOM).to_owned()
}

/// Roles of which each is given once.
#[derive(Default)]
struct Roles {
    taken: Vec<String>,
    /// By pattern.
    given: HashMap<String, String>,
}

impl Roles {
    /// That of a pattern, after a name.
    fn give(&mut self, pattern: &str, name: &str) -> String {
        if let Some(role) = self.given.get(pattern) {
            return role.clone();
        }
        let wanted = role_of(name);
        let another = |number: u32| match number {
            1 => wanted.clone(),
            _ => {
                let end = format!("-{number}");
                let room = Role::BYTES_MAX - end.len();
                format!("{}{end}", wanted.get(..room).unwrap_or(&wanted))
            }
        };
        let mut all = (1..).map(another);
        let role = all.find(|it| !self.taken.contains(it)).unwrap_or_default();
        self.taken.push(role.clone());
        self.given.insert(pattern.to_owned(), role.clone());
        role
    }
}

/// A line that knows threads by their start function, if all that begin with it are of one
/// kind.
fn by_start(site: &Site, all: &[Site], roles: &mut Roles) -> Proposal {
    let Some(text) = &site.text else {
        return Err("the file that has it is not there, or is another by now".to_owned());
    };
    let same = || all.iter().filter(|it| it.text.as_ref() == Some(text));
    if same().any(|it| it.entry.key.start != site.entry.key.start) {
        return Err(format!(
            "several files have a function that patterns know as {}; name the profile of one \
             program",
            remark(text)
        ));
    }
    if same().any(|it| it.kind != site.kind) {
        return Err(format!(
            "threads of other kinds begin with {} as well, and no `start` tells them apart; \
             where they are given names, `name` does",
            remark(text)
        ));
    }
    let pattern = pattern_of(text);
    let mut others = all.iter().filter_map(|it| it.text.as_ref());
    if others.any(|it| it != text && matches(&pattern, it.as_bytes())) {
        return Err("patterns that are about it are about others as well".to_owned());
    }
    // What begins all threads of a language says nothing of these.
    let name = match site.kind {
        Some(_) => "thread",
        None => short(&site.start.name),
    };
    let role = roles.give(&pattern, name);
    checked(format!("start {pattern} => {role}"))
}

/// The last part of a function's name, without what it is made for.
fn short(name: &str) -> &str {
    let name = name.split(['<', '(']).next().unwrap_or_default();
    name.rsplit("::").next().unwrap_or_default()
}

/// Lines with remarks before them, each once.
#[derive(Default)]
pub(super) struct Lines {
    lines: Vec<(String, Proposal)>,
}

impl Lines {
    /// What it is about, as remarks, and what is proposed.
    pub(super) fn add(&mut self, about: String, proposal: &Proposal) {
        let is_same = |it: &&mut (String, Proposal)| it.1.is_ok() && it.1 == *proposal;
        match self.lines.iter_mut().find(is_same) {
            Some((text, _)) => text.push_str(&about),
            None => self.lines.push((about, proposal.clone())),
        }
    }

    pub(super) fn text(&self) -> String {
        if self.lines.is_empty() {
            return "# none\n".to_owned();
        }
        let mut text = String::new();
        for (about, proposal) in &self.lines {
            let _ = match proposal {
                Ok(line) => writeln!(text, "{about}{line}"),
                Err(why) => writeln!(text, "{about}#   no line: {why}"),
            };
        }
        text
    }
}

/// The file that is proposed.
pub(super) fn text(wakers: &[Waker], sites: &Sites) -> String {
    let mut critical = Lines::default();
    for waker in wakers {
        critical.add(waker.text(), &waker.proposal);
    }
    format!(
        "# Threads that wake often and then run briefly, the most often first:\n{}\n\
         # Start functions whose threads have no role:\n{}",
        critical.text(),
        sites.text(),
    )
}

#[cfg(test)]
mod tests {
    use milieu_device::monitor::Since;
    use milieu_threads::run::Thread as About;

    use super::*;
    use crate::thread::top::order;

    fn thread(number: u32, name: &str, wakes: f64) -> Thread {
        Thread {
            since: Some(Since {
                run: 0.01,
                wait: 0.0,
                voluntary: wakes,
                involuntary: 0.0,
            }),
            ..order::tests::thread(number, name, "", 0.0)
        }
    }

    /// A program that nobody runs, with these threads beside the first one.
    fn player(others: &[(&str, f64)]) -> Process {
        let others = (1..).zip(others);
        let others = others.map(|(at, (name, wakes))| thread(u32::MAX - at, name, *wakes));
        Process {
            number: u32::MAX,
            parent: 1,
            name: "gui".to_owned(),
            words: vec!["/usr/bin/player-of-everything".to_owned()],
            user: 0,
            virtual_bytes: 0,
            resident_bytes: 0,
            is_served: true,
            threads: [thread(u32::MAX, "gui", 0.0)]
                .into_iter()
                .chain(others)
                .collect(),
        }
    }

    #[test]
    fn a_line_is_about_the_name_that_it_was_made_of() {
        for name in ["audio-1", "a b # c", "größe", "####", "a=>b", "a\u{a0}b"] {
            let process = player(&[(name, 50.0)]);
            let line = by_name(&process, &process.threads[1], false);
            let line = line.unwrap_or_else(|why| panic!("{name}: {why}"));
            let said: Result<Vec<Rule<'_>>, _> = rules(&line).collect();
            let said = said.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(said.len() == 1 && said[0].attributes.is_time_critical());
            let is_about = |name: &str| {
                said[0].is_about(&About {
                    name: Some(name.as_bytes()),
                    ..About::default()
                })
            };
            assert!(
                is_about(name) && !is_about("gui") && !is_about(""),
                "{line}"
            );
        }
    }

    #[test]
    fn there_is_no_line_where_a_name_is_not_a_threads_own() {
        let why = |process: &Process, at: usize| {
            let proposal = by_name(process, &process.threads[at], false);
            proposal.expect_err("there is a line")
        };
        // What the first one is called, and was when it began.
        let process = player(&[("gui", 50.0), ("player-of-every", 50.0), ("", 50.0)]);
        assert!(why(&process, 1).contains("the name of its program"));
        assert!(why(&process, 2).contains("the name of its program"));
        assert!(why(&process, 3).contains("no name"));
        // One of two, and a name that is a pattern about another.
        let process = player(&[("net", 50.0), ("net", 0.0), ("a*", 50.0), ("ab", 0.0)]);
        assert!(why(&process, 1).contains("do not wake often"));
        assert!(why(&process, 3).contains("do not wake often"));
        // Both wake, and the first one may have that name.
        let mut process = player(&[("net", 50.0), ("net", 9.0), ("gui", 0.0)]);
        process.threads[0] = thread(u32::MAX, "gui", 50.0);
        for (at, line) in [
            (0, "name gui => gui critical"),
            (1, "name net => net critical"),
        ] {
            let proposal = by_name(&process, &process.threads[at], false);
            assert_eq!(proposal.as_deref(), Ok(line));
        }
        let forked = by_name(&process, &process.threads[0], true);
        assert!(forked.is_err());
    }

    #[test]
    fn a_role_stays() {
        let mut process = player(&[("net", 50.0)]);
        for (role, line) in [
            ("net/in", "name net => net/in critical"),
            ("a b", "name net => a-b critical"),
        ] {
            process.threads[1].role = Role::new(role).expect("a role");
            let proposal = by_name(&process, &process.threads[1], false);
            assert_eq!(proposal.as_deref(), Ok(line));
        }
    }

    #[test]
    fn a_start_function_of_several_kinds_has_no_line() {
        let site = |key: &str, text: Option<&str>, name: &str| {
            let key = Key::parse(key.as_bytes()).expect("a key");
            Site {
                entry: Entry::new(key),
                start: Start {
                    name: name.to_owned(),
                    position: None,
                },
                creations: Vec::new(),
                text: text.map(str::to_owned),
                kind: key.argument,
            }
        };
        let all = [
            site("ab+10", Some("a+0x10"), "net::accept<int>(void*)"),
            site("ab+20/ab+1", Some("a+0x20"), "first"),
            site("ab+20/ab+2", Some("a+0x20"), "second"),
            site("cd+30", Some("work"), "work"),
            site("ef+30", Some("work"), "work"),
            site("ab+40", None, "ab+40"),
            site("ab+50/ab+3", Some("a b#c+0x50"), "third"),
            site("ab+60", Some("accept"), "accept"),
        ];
        let mut roles = Roles::default();
        let proposals = all.iter().map(|it| by_start(it, &all, &mut roles));
        let proposals: Vec<Proposal> = proposals.collect();
        assert_eq!(proposals[0].as_deref(), Ok("start a+0x10 => accept"));
        for at in [1, 2] {
            assert!(
                proposals[at]
                    .as_ref()
                    .is_err_and(|it| it.contains("other kinds"))
            );
        }
        for at in [3, 4] {
            assert!(
                proposals[at]
                    .as_ref()
                    .is_err_and(|it| it.contains("several files"))
            );
        }
        assert!(
            proposals[5]
                .as_ref()
                .is_err_and(|it| it.contains("not there"))
        );
        assert_eq!(proposals[6].as_deref(), Ok("start a?b?c+0x50 => thread"));
        assert_eq!(proposals[7].as_deref(), Ok("start accept => accept-2"));
    }
}
