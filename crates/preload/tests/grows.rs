//! Threads whose stacks were made smaller go as deep as they could without that.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Machine, NATIVE, World, compile, has, scratch, skipped};

/// A program whose threads were light so far.
struct Scene {
    program: PathBuf,
    profile: PathBuf,
}

impl Scene {
    fn new(name: &str, machine: Machine, compiler: &'static str, flags: &[&str]) -> Option<Scene> {
        let folder = scratch(name);
        let program = compile(machine.compiler(compiler), "grows.c", &folder, flags)?;
        let profile = folder.join("profile");
        let scene = Scene { program, profile };
        let settings = scene.settings("stacks=learn");
        for _ in 0..3 {
            World::served(&settings).run(&scene.program, &["1"]).well();
        }
        Some(scene)
    }

    fn settings(&self, stacks: &str) -> String {
        format!("{stacks};profile={}", self.profile.display())
    }

    /// In this world it is as without us, however deep it goes, with what was learned when it
    /// was light.
    fn is_the_same(&self, world: &World<'_>) {
        let learned = fs::read(&self.profile).expect("it was learned");
        for levels in ["1", "300", "6000"] {
            fs::write(&self.profile, &learned).expect("a file");
            let run = world.run(&self.program, &[levels]);
            assert_eq!(run.stderr, "", "{levels}");
            let native = NATIVE.run(&self.program, &[levels]).well();
            assert_eq!(run.well(), native, "{levels}");
        }
    }
}

fn is_small_here(program: &Path) -> bool {
    let runs = NATIVE.run(program, &["1"]).status == "exit status: 0";
    if !runs || !support::has_small_preload() {
        skipped("programs of 32 bits do not run here");
        return false;
    }
    true
}

#[test]
fn stacks_grow_wherever_sizes_are_applied() {
    let Some(scene) = Scene::new("grows", Machine::Own, "gcc", &[]) else {
        return;
    };
    scene.is_the_same(&World::served(&scene.settings("stacks=force")));
    scene.is_the_same(&World::served(&scene.settings("stacks=force;rung=nice")));
}

#[test]
fn stacks_grow_under_sanitizers() {
    for kind in ["address", "thread", "undefined"] {
        let flag = format!("-fsanitize={kind}");
        let name = format!("grows-{kind}");
        let Some(scene) = Scene::new(&name, Machine::Own, "clang", &[&flag]) else {
            return;
        };
        scene.is_the_same(&World::served(&scene.settings("stacks=force")));
    }
}

#[test]
fn stacks_grow_in_32_bits() {
    let Some(scene) = Scene::new("grows-small", Machine::Small, "gcc", &[]) else {
        return;
    };
    if is_small_here(&scene.program) {
        scene.is_the_same(&World::served(&scene.settings("stacks=force")));
    }
}

/// Where something else is in the way, a thread overflows its stack, and is told of.
#[test]
fn what_cannot_grow_is_told_of() {
    let Some(scene) = Scene::new("grows-not", Machine::Own, "gcc", &[]) else {
        return;
    };
    let settings = scene.settings("stacks=force");
    let run = World::served(&settings).run(&scene.program, &["6000", "neighbour"]);
    let words = "has overflowed its stack of";
    assert!(!run.status.contains("status: 0"), "{run:?}");
    assert!(run.stderr.contains(words), "{run:?}");
    let text = fs::read_to_string(&scene.profile).expect("it was learned");
    assert!(text.contains(" overflow="), "{text}");
}

/// By default, in a space that runs short.
#[test]
fn stacks_grow_in_short_space() {
    if !has("prlimit") {
        return;
    }
    let Some(scene) = Scene::new("grows-short", Machine::Own, "gcc", &[]) else {
        return;
    };
    let settings = scene.settings("quiet=yes");
    let limited = World {
        // Of which an eighth is what the program has anyway.
        starter: &["prlimit", "--as=40000000"],
        ..World::served(&settings)
    };
    let run = |levels| limited.run(&scene.program, &[levels, "alone"]).well();
    for levels in ["1", "6000"] {
        run(levels);
    }
}
