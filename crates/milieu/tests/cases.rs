//! What layers, contexts and the key set do: `crates/context/tests/cases/layers.txt`,
//! which C and C++ run as well, so that all of them mean the same.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

use crate::broken;
use milieu::{
    Activation, Context, ContextOptions, Coordinator, Error, Milieu, Named, Registration, Start,
    Threads,
    context::{Invalid, Switch, SwitchError, each_named},
    store::Locations,
};

mod specified {
    milieu::environment!("../context/tests/cases/cases.ini");
}
use specified::{Environment, at};

milieu::layer! { struct Session(String) = "session"; }

const CASES: &str = include_str!("../../context/tests/cases/layers.txt");

type Cx = Context<Environment>;

/// A line of the description, and where the block ends that it begins.
struct Line<'t> {
    number: usize,
    text: &'t str,
    end: usize,
}

/// Reads steps; blocks know their ends.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut open = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let place = lines.len();
        if text == "}" {
            let begin: usize = open
                .pop()
                .unwrap_or_else(|| panic!("line {number}: a `}}`"));
            lines[begin].end = place;
        } else if text.ends_with('{') {
            open.push(place);
        }
        let end = place;
        lines.push(Line { number, text, end });
    }
    assert!(open.is_empty(), "a block has no end");
    lines
}

/// What is not as described: the line, what is there, and what was expected.
type Wrong = String;

/// What a `throw` unwinds with, and an action that fails.
struct Thrown;

macro_rules! values {
    ($($name:literal $value:path, $cx:ident => $field:expr, $text:ident => $input:expr;)*) => {
        fn read(cx: &Cx, name: &str) -> String {
            match name {
                $($name => { let $cx = cx; $field.to_string() })*
                _ => panic!("there is no value `{name}`"),
            }
        }
        fn set(cx: &mut Cx, name: &str, text: &str) -> Result<(), Invalid> {
            match name {
                $($name => { let $text = text; cx.set::<$value>($input) })*
                _ => panic!("there is no value `{name}`"),
            }
        }
        fn unset(cx: &mut Cx, name: &str) {
            match name { $($name => cx.unset::<$value>(),)* _ => panic!("no value `{name}`") }
        }
        fn name(cx: &Cx, name: &str) -> String {
            match name { $($name => cx.name::<$value>(),)* _ => panic!("no value `{name}`") }
        }
        fn follow(cx: &mut Cx, name: &str) -> Result<(), SwitchError> {
            match name {
                $($name => cx.activate(milieu::value::<$value>()),)*
                _ => panic!("there is no value `{name}`"),
            }
        }
        fn following(name: &str) -> Box<dyn Switch> {
            match name {
                $($name => Box::new(milieu::value::<$value>()),)*
                _ => panic!("there is no value `{name}`"),
            }
        }
    };
}
values! {
    "v" at::v, cx => cx.v, text => number(text);
    "joined" at::joined, cx => cx.joined, text => number(text);
    "twice" at::twice, cx => cx.twice, text => number(text);
    "group" at::group, cx => cx.group, text => number(text);
    "shared" at::shared, cx => cx.shared, text => number(text);
    "one.shared" at::one::shared, cx => cx.one.shared, text => number(text);
    "language" at::p::language, cx => cx.p.language, text => text;
    "hello" at::p::hello, cx => cx.p.hello, text => text;
    "reply" at::p::reply, cx => cx.p.reply, text => text;
    "first" at::c::first, cx => cx.c.first, text => text;
    "second" at::c::second, cx => cx.c.second, text => text;
    "interval" at::low::interval, cx => cx.low.interval, text => number(text);
}

fn number(text: &str) -> i32 {
    text.parse().expect("a number")
}

/// What stands before and behind the first of these.
fn cut<'t>(text: &'t str, at: &str) -> (&'t str, &'t str) {
    text.split_once(at).unwrap_or((text, ""))
}

/// A layer's identifier and value.
fn layer(text: &str) -> Named<'_> {
    let (id, value) = cut(text, " ");
    Named(id, if value == "''" { "" } else { value })
}

/// What actions and evaluations have left, in their order.
type Ran = Arc<Mutex<Vec<String>>>;

fn note(ran: &Ran, what: String) {
    ran.lock().unwrap().push(what);
}

fn activation(ran: &Ran) -> impl Fn(&mut Activation<'_>) + Send + Sync + use<> {
    let ran = ran.clone();
    move |it| note(&ran, format!("{}+{}", it.layer(), it.value()))
}

/// Refused, and why.
fn why(error: Error) -> &'static str {
    match error {
        Error::Invalid(_) => "invalid",
        Error::Switch(_) => "cycle",
        Error::Store(_) => "conflict",
        Error::Key(error) => match *error {
            milieu::context::KeyError::Invalid(_) => "invalid",
            milieu::context::KeyError::Name(_) => "name",
        },
        error => panic!("{error}"),
    }
}

/// A case while it runs.
struct Running<'t> {
    lines: &'t [Line<'t>],
    folder: &'t Path,
    main: ThreadId,
    milieu: Option<Milieu>,
    registrations: Arc<Mutex<Vec<Registration>>>,
    ran: Ran,
}

impl Running<'_> {
    fn open(&self) -> Milieu {
        let locations = Locations {
            user: Some(self.folder.to_path_buf()),
            system: Vec::new(),
            etc: self.folder.to_path_buf(),
        };
        match Milieu::builder("cases").locations(locations).start() {
            Ok(Start::Run(milieu)) => *milieu,
            other => panic!("{other:?}"),
        }
    }

    fn milieu(&self) -> &Milieu {
        self.milieu.as_ref().expect("it is not closed")
    }

    fn coordinator(&self) -> &Coordinator {
        self.milieu().coordinator()
    }

    /// Opens, and has every switch noted.
    fn start(&mut self) -> (Cx, Cx) {
        self.milieu = Some(self.open());
        let coordinator = self.coordinator().clone();
        let mut registrations = Vec::new();
        for id in ["a", "b", "c"] {
            registrations.push(coordinator.on_activation_named(id, activation(&self.ran)));
            let ran = self.ran.clone();
            let noted = move |it: &mut Activation<'_>| note(&ran, format!("{}-", it.layer()));
            registrations.push(coordinator.on_deactivation_named(id, noted));
        }
        *self.registrations.lock().unwrap() = registrations;
        (self.context("here"), self.context("there"))
    }

    fn context(&self, who: &str) -> Cx {
        let options = ContextOptions::new().role(format!("/{who}"));
        let made = self.milieu().context_with::<Environment, Threads>(options);
        made.expect("the keys are right")
    }

    fn action(&self, id: &str, what: &str) {
        let (verb, rest) = cut(what, " ");
        let (verb, rest) = (verb.to_owned(), rest.to_owned());
        let coordinator = self.coordinator().clone();
        let (ran, registrations) = (self.ran.clone(), self.registrations.clone());
        let action = move |it: &mut Activation<'_>| {
            let done = match &*verb {
                "fails" => false,
                "activates" => it.activate(layer(&rest)).is_ok(),
                "deactivates" => it.deactivate_named(&rest).is_ok(),
                "assigns" => {
                    let (name, text) = cut(&rest, "=");
                    coordinator.assign(name, text, None).is_ok()
                }
                "registers" => {
                    let more = coordinator.on_activation_named(&rest, activation(&ran));
                    registrations.lock().unwrap().push(more);
                    true
                }
                "owns" => {
                    let mut own = coordinator.context::<Environment>().unwrap();
                    own.activate(layer(&rest)).is_ok()
                }
                verb => panic!("there is no action that {verb}"),
            };
            if !done {
                resume_unwind(Box::new(Thrown));
            }
        };
        let registration = self.coordinator().on_activation_named(id, action);
        self.registrations.lock().unwrap().push(registration);
    }

    /// A layer that contexts evaluate.
    fn each(&self, cx: &mut Cx, text: &str) -> Result<(), Error> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let (ran, main) = (self.ran.clone(), self.main);
        let depends_on = match &*words[1] {
            "OF" => vec![words[2].clone()],
            _ => Vec::new(),
        };
        let evaluate = move |scope: &milieu::Scope<'_>| {
            let is_main = thread::current().id() == main;
            note(
                &ran,
                format!("{}?{}", words[0], if is_main { "" } else { "!" }),
            );
            let text = match &*words[1] {
                "OF" => scope.get(&words[2]).unwrap_or_default(),
                _ if scope.role() == words[2] => &words[3],
                _ => "",
            };
            if text == "boom" {
                resume_unwind(Box::new(Thrown));
            }
            text.to_owned()
        };
        Ok(cx.activate(each_named(cut(text, " ").0, depends_on, evaluate))?)
    }

    /// Runs the steps from one line to another.
    fn run(&mut self, here: &mut Cx, there: &mut Cx, from: usize, to: usize) -> Result<(), Wrong> {
        let mut at = from;
        while at < to {
            let Line { number, text, end } = self.lines[at];
            let inside = (at + 1, end);
            at = end + 1;
            let (text, expected) = match text.strip_prefix("fails ").map(|text| cut(text, " ")) {
                Some((why, step)) => (step, why),
                None => (text, ""),
            };
            let step = || self.step(here, there, text, inside);
            let failed = match catch_unwind(AssertUnwindSafe(step)) {
                Ok(Ok(Ok(()))) => "",
                Ok(Ok(Err(error))) => why(error),
                Ok(Err(wrong)) if wrong.starts_with("line ") => return Err(wrong),
                Ok(Err(wrong)) => return Err(format!("line {number}: {wrong}")),
                Err(thrown) if !text.contains(" activate ") => resume_unwind(thrown),
                Err(_) => "callback",
            };
            if failed != expected {
                return Err(format!(
                    "line {number}: fails by `{failed}`, not `{expected}`"
                ));
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        here: &mut Cx,
        there: &mut Cx,
        text: &str,
        (from, to): (usize, usize),
    ) -> Result<Result<(), Error>, Wrong> {
        let (verb, rest) = cut(text.trim_end_matches(" {"), " ");
        match verb {
            "here" => return self.act("here", (here, there), rest, (from, to)),
            "there" => return self.act("there", (there, here), rest, (from, to)),
            "elsewhere" => {
                let run = || self.run(here, there, from, to);
                thread::scope(|scope| scope.spawn(run).join().unwrap())?;
            }
            "hold" => {
                let _held = self.coordinator().require_lock();
                self.run(here, there, from, to)?;
            }
            "try" => {
                let run = || self.run(here, there, from, to);
                match catch_unwind(AssertUnwindSafe(run)) {
                    Err(thrown) if thrown.is::<Thrown>() => {}
                    Err(other) => resume_unwind(other),
                    Ok(Ok(())) => return Err("nothing is thrown".into()),
                    Ok(wrong) => wrong?,
                }
            }
            "throw" => resume_unwind(Box::new(Thrown)),
            "key" => {
                let (name, text) = cut(rest, "=");
                let assigned = self.coordinator().assign(name, text, None);
                return Ok(assigned.map_err(Error::from));
            }
            "remove" => self.coordinator().remove(rest).unwrap(),
            "action" => {
                let (id, what) = cut(rest, " ");
                self.action(id, what);
            }
            "another" => {
                let (name, text) = cut(rest, "=");
                let another = self.open();
                another.coordinator().assign(name, text, None).unwrap();
                another.persist().unwrap();
            }
            "persist" => match self.milieu().persist() {
                Ok(persisted) => same(persisted.names.len(), rest)?,
                Err(error) => return Ok(Err(error)),
            },
            "reopen" => (*here, *there) = self.start(),
            "close" => self.milieu = None,
            "everywhere" => {
                let (value, expected) = cut(rest, " ");
                here.sync();
                there.sync();
                same(read(here, value), expected)?;
                same(read(there, value), expected)?;
            }
            "new" => {
                let (value, expected) = cut(rest, " ");
                same(read(&self.context("new"), value), expected)?;
            }
            "keys" => {
                let held = self.coordinator().require_lock();
                let keys = held.entries();
                let keys = keys.iter().map(|key| format!("{}={}", key.name, key.text));
                same(keys.collect::<Vec<_>>().join(" "), rest)?;
            }
            "ran" => {
                let ran = std::mem::take(&mut *self.ran.lock().unwrap());
                same(ran.join(" "), rest)?;
            }
            _ => panic!("there is no step `{text}`"),
        }
        Ok(Ok(()))
    }

    /// A step of one context.
    fn act(
        &mut self,
        who: &str,
        (cx, other): (&mut Cx, &mut Cx),
        text: &str,
        (from, to): (usize, usize),
    ) -> Result<Result<(), Error>, Wrong> {
        let (verb, rest) = cut(text, " ");
        let (first, second) = cut(rest, " ");
        let mut inside = |cx: &mut Cx| match who {
            "here" => self.run(cx, other, from, to),
            _ => self.run(other, cx, from, to),
        };
        match verb {
            "enter" => {
                let layers: Vec<Named<'_>> = rest.split(", ").map(layer).collect();
                let layers: Vec<&dyn Switch> = layers.iter().map(|it| it as _).collect();
                inside(&mut cx.enter(&layers[..]))?;
            }
            "without" => inside(&mut cx.enter(Named(first, "")))?,
            "enter-value" => inside(&mut cx.enter(&[&*following(first)][..]))?,
            "activate" => return Ok(cx.activate(layer(rest)).map_err(Error::from)),
            "deactivate" => return Ok(cx.deactivate_named(first).map_err(Error::from)),
            "follow" => return Ok(follow(cx, first).map_err(Error::from)),
            "each" => return Ok(self.each(cx, rest)),
            "sync" => cx.sync(),
            "set" => return Ok(set(cx, first, second).map_err(Error::from)),
            "unset" => unset(cx, first),
            "forget" => {
                assert_eq!(first, "session");
                cx.forget(Session(second.into()));
            }
            "renew" => *cx = self.context(who),
            "is" => same(read(cx, first), second)?,
            "name" => same(name(cx, first), second)?,
            "news" => same(if cx.has_news() { "yes" } else { "no" }, first)?,
            "layers" => {
                let mut layers: Vec<_> = cx.layers();
                layers.sort();
                let layers = layers.iter().map(|(id, value)| format!("{id}={value}"));
                same(layers.collect::<Vec<_>>().join(" "), rest)?;
            }
            _ => panic!("there is no step `{who} {text}`"),
        }
        Ok(Ok(()))
    }
}

fn same(is: impl ToString, expected: &str) -> Result<(), Wrong> {
    match is.to_string() {
        is if is == expected => Ok(()),
        is => Err(format!("`{is}`, not `{expected}`")),
    }
}

/// Runs all cases of a description; returns how many.
fn run(text: &str) -> Result<usize, Wrong> {
    let lines = lines(text);
    let is_case = |line: &&Line<'_>| line.text.starts_with("case ");
    let begins: Vec<usize> = (0..lines.len())
        .filter(|&at| is_case(&&lines[at]))
        .collect();
    for (place, &begin) in begins.iter().enumerate() {
        let end = begins.get(place + 1).copied().unwrap_or(lines.len());
        let folder = tempfile::tempdir().expect("a folder for files");
        let mut running = Running {
            lines: &lines,
            folder: folder.path(),
            main: thread::current().id(),
            milieu: None,
            registrations: Arc::default(),
            ran: Ran::default(),
        };
        let (mut here, mut there) = running.start();
        running.run(&mut here, &mut there, 0, begins[0])?;
        here.sync();
        there.sync();
        running.run(&mut here, &mut there, begin + 1, end)?;
        // Actions go after their coordinator.
        drop(running.milieu.take());
    }
    Ok(begins.len())
}

#[test]
fn every_case_is_as_described() {
    let count = run(CASES).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(count > 50, "the rows of the table, and more");
}

/// Whatever is expected, something else in its place is noticed.
#[test]
fn what_is_not_as_described_is_noticed() {
    let broken = broken::broken(CASES);
    assert!(broken.len() > 200, "all that is expected");
    for (line, text) in broken {
        let wrong = run(&text).expect_err(&format!("line {line} is not looked at"));
        let place = format!("line {line}: ");
        assert!(wrong.starts_with(&place), "line {line}: found as {wrong}");
    }
}
