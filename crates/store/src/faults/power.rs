//! Tests that let the power go at every instant of a commit.
//!
//! They look at everything that a disk may hold then ([`Model`]), go on from
//! there with another commit, and let the power go at every instant of that one.
//! What is tested has a past as well: a writer that was killed and has left what
//! it did not synchronize.

use std::collections::BTreeSet;
use std::fs;

use milieu_keys::{Name, Namespace};
use proptest::prelude::*;

use super::model::{Content, Model, Node};
use super::mutant::{Mutant, Mutation};
use super::recorder::{Recorder, look_at};
use super::{Fault, FaultyDisk, Folder, open};
use crate::ini::Document;
use crate::{Change, StoreError, Strategy as Merge};

/// What a path leads to, if it leads to a file.
type InForce = Option<Content>;

/// A file system, a file in it, and two writers.
struct Scenario {
    name: &'static str,
    before: Node,
    path: &'static str,
    first: Change,
    second: Change,
}

fn set(name: &str, value: &str) -> Change {
    Change::set(Name::parse(name).unwrap(), value)
}

fn scenarios() -> [Scenario; 4] {
    let long = format!("# {}\n[/a]\nx = 1\ny = 2\n", "long ".repeat(300));
    [
        Scenario {
            name: "a file",
            before: Node::folder([("a.ini", Node::file("# mine\n[/a]\nx = 1\n", 0o640))]),
            path: "a.ini",
            first: set("/a/y", "2"),
            second: set("/a/z", "3"),
        },
        Scenario {
            name: "a file of several sectors beside the rest of a killed writer",
            before: Node::folder([
                ("a.ini", Node::file(long, 0o604)),
                (".a.ini.new", Node::file("[/a]\nx =", 0o600)),
            ]),
            path: "a.ini",
            first: set("/a/x", &"wide ".repeat(100)),
            second: Change::remove(Name::parse("/a/y").unwrap()),
        },
        Scenario {
            name: "a new file in new folders",
            before: Node::folder([]),
            path: "config/app/app.ini",
            first: set("/a/x", "1"),
            second: set("/a/y", "2"),
        },
        Scenario {
            name: "a file behind a symbolic link",
            before: Node::folder([
                ("a.ini", Node::Link("real/b.ini".into())),
                (
                    "real",
                    Node::folder([("b.ini", Node::file("x = 1\n", 0o600))]),
                ),
            ]),
            path: "a.ini",
            first: Change::remove(Name::parse("/x").unwrap()),
            second: set("/x", "2"),
        },
    ]
}

/// What a writer makes of a file.
fn edited(old: &InForce, change: &Change) -> InForce {
    let text = old
        .as_ref()
        .map_or("", |content| std::str::from_utf8(&content.bytes).unwrap());
    let mut document = Document::parse(text).0;
    match &change.value {
        Some(value) => document.set(&change.name, value),
        None => document.remove(change.name.as_str()),
    };
    let edited = document.to_string();
    if edited == text {
        return old.clone();
    }
    Some(Content {
        bytes: edited.into(),
        mode: old.as_ref().map_or(0o600, |content| content.mode),
    })
}

/// Real files, the model of them, and what must be found after the power was lost.
struct World {
    folder: Folder,
    path: &'static str,
    recorder: Recorder,
    /// What was confirmed last, and what others could see since.
    allowed: BTreeSet<InForce>,
}

impl World {
    fn new(root: &Node, path: &'static str) -> World {
        let folder = Folder::reserved();
        root.make(&folder.0);
        let mut world = World {
            recorder: Recorder::new(&folder.0),
            folder,
            path,
            allowed: BTreeSet::new(),
        };
        world.allowed.insert(world.in_force());
        world
    }

    fn in_force(&self) -> InForce {
        let target = fs::canonicalize(self.folder.0.join(self.path)).ok()?;
        match look_at(&target) {
            Node::File(content) => Some(content),
            other => panic!("{other:?}"),
        }
    }

    /// Commits, and stops for ever at the given call of the disk.
    fn commit(
        &mut self,
        mutation: Option<Mutation>,
        change: &Change,
        killed_at: usize,
    ) -> Result<Run, String> {
        let old = self.in_force();
        let wanted = edited(&old, change);
        let path = self.folder.0.join(self.path);
        let mutant = Mutant::new(&self.recorder, mutation, &path);
        let result = open(&path).commit_on(
            &FaultyDisk::new(&mutant, killed_at, Fault::Dead),
            Namespace::User,
            std::slice::from_ref(change),
            Merge::Refuse,
        );
        let now = self.in_force();
        self.allowed.insert(now.clone());
        let mut instants: Vec<Instant> = Vec::new();
        for model in self.recorder.take_history() {
            instants.push((model, self.allowed.clone()));
        }
        match &result {
            Ok(_) if now == wanted => self.allowed = BTreeSet::from([now]),
            Err(StoreError::Unsettled { .. }) if now == wanted => {}
            Err(_) if now == old => {}
            _ => return Err(format!("{result:?}, and in force is {now:?}")),
        }
        instants.push((self.recorder.model(), self.allowed.clone()));
        Ok(Run {
            instants,
            is_confirmed: result.is_ok(),
        })
    }
}

/// The file system at an instant, and what may be in force if the power is lost then.
type Instant = (Model, BTreeSet<InForce>);

/// A commit that was made or attempted.
struct Run {
    /// After each operation and after the commit.
    instants: Vec<Instant>,
    is_confirmed: bool,
}

/// Goes through pasts and futures of a scenario.
struct Explorer<'a> {
    scenario: &'a Scenario,
    mutation: Option<Mutation>,
    /// Where it has been: a tree after a loss of power, what was allowed, and
    /// whether it is the second loss.
    seen: BTreeSet<(Node, BTreeSet<InForce>, bool)>,
    /// The same before the loss.
    seen_before: BTreeSet<(Instant, bool)>,
}

impl Explorer<'_> {
    /// How many states were looked at, or what was found to be wrong.
    fn explore(scenario: &Scenario, mutation: Option<Mutation>) -> Result<usize, String> {
        let mut explorer = Explorer {
            scenario,
            mutation,
            seen: BTreeSet::new(),
            seen_before: BTreeSet::new(),
        };
        let Scenario { first, second, .. } = scenario;
        for next in [first, second] {
            for killed_at in 1.. {
                let mut world = World::new(&scenario.before, scenario.path);
                let past = world.commit(mutation, first, killed_at)?;
                explorer.lose_power(&past.instants, false)?;
                let run = world.commit(mutation, next, usize::MAX)?;
                explorer.lose_power(&run.instants, false)?;
                if past.is_confirmed {
                    break;
                }
            }
        }
        Ok(explorer.seen.len())
    }

    fn lose_power(&mut self, instants: &[Instant], again: bool) -> Result<(), String> {
        for instant in instants {
            if !self.seen_before.insert((instant.clone(), again)) {
                continue;
            }
            let (model, allowed) = instant;
            for state in model.after_power_loss() {
                if self.seen.insert((state.clone(), allowed.clone(), again)) {
                    self.start_again(&state, allowed, again)?;
                }
            }
        }
        Ok(())
    }

    /// The machine is up again.
    fn start_again(
        &mut self,
        state: &Node,
        allowed: &BTreeSet<InForce>,
        again: bool,
    ) -> Result<(), String> {
        let mut world = World::new(state, self.scenario.path);
        let found = world.in_force();
        if !allowed.contains(&found) {
            return Err(format!(
                "found {found:?}\nallowed {allowed:?}\nin {state:?}"
            ));
        }
        let run = world.commit(self.mutation, &self.scenario.second, usize::MAX)?;
        let left = format!("{:?}", look_at(&world.folder.0));
        if world.in_force() != found && left.contains(".new") {
            return Err(format!("a temporary file is left over: {left}"));
        }
        if again {
            return Ok(());
        }
        self.lose_power(&run.instants, true)
    }
}

#[test]
fn no_loss_of_power_takes_what_was_confirmed_or_leaves_a_half_file() {
    for scenario in scenarios() {
        match Explorer::explore(&scenario, None) {
            Ok(states) => assert!(states > 100, "{}: {states} states", scenario.name),
            Err(found) => panic!("{}: {found}", scenario.name),
        }
    }
}

#[test]
fn every_wrong_way_to_write_a_file_is_found_out() {
    let [file, sectors, new, link] = scenarios();
    for (mutation, scenario) in [
        (Mutation::NoFile, &file),
        (Mutation::NoFile, &new),
        (Mutation::NoFolder, &file),
        (Mutation::NoFolder, &link),
        (Mutation::RenameFirst, &sectors),
        (Mutation::InPlace, &sectors),
        (Mutation::PermissionsLast, &file),
        (Mutation::TrustFiles, &file),
        (Mutation::TrustFolders, &new),
    ] {
        let Err(found) = Explorer::explore(scenario, Some(mutation)) else {
            panic!("{mutation:?} was not found out with {}", scenario.name);
        };
        assert!(found.starts_with("found "), "{mutation:?}: {found}");
    }
}

/// What happens to a file.
#[derive(Debug, Clone)]
enum Step {
    /// A commit that is killed at the call with this number, if it makes so many.
    Commit { change: Change, killed_at: usize },
    /// The power is lost, and of what may be found then it is this one.
    LosePower { choice: prop::sample::Index },
}

fn any_step() -> impl Strategy<Value = Step> {
    let change = (0..3, prop::option::weighted(0.8, 0..3)).prop_map(|(key, value)| Change {
        name: Name::parse(&format!("/a/{key}")).unwrap(),
        value: value.map(|value| format!("{value}")),
    });
    prop_oneof![
        3 => (change, 1..24_usize)
            .prop_map(|(change, killed_at)| Step::Commit { change, killed_at }),
        1 => any::<prop::sample::Index>().prop_map(|choice| Step::LosePower { choice }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_happens_in_whatever_order_the_confirmed_is_there(
        steps in prop::collection::vec(any_step(), 1..20),
    ) {
        let path = "config/app/app.ini";
        let mut world = World::new(&Node::folder([]), path);
        for step in steps {
            match step {
                Step::Commit { change, killed_at } => {
                    world.commit(None, &change, killed_at).map_err(TestCaseError::fail)?;
                }
                Step::LosePower { choice } => {
                    let states: Vec<Node> =
                        world.recorder.model().after_power_loss().into_iter().collect();
                    let next = World::new(choice.get(&states), path);
                    let found = next.in_force();
                    prop_assert!(world.allowed.contains(&found), "{found:?} of {:?}", world.allowed);
                    world = next;
                }
            }
        }
    }
}
