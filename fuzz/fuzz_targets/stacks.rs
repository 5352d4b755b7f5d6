//! Profiles of stacks: what cannot be understood is told and kept, what can be is
//! written and read again, and they merge in any order and more than once.
//!
//! The input is two profiles.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::texts;
use milieu_threads::stack::{Entry, Module, Policy, Profile, ProfileError, Room, Zones};

fuzz_target!(|input: &str| {
    let [a, b] = texts(input);
    let Ok(of_a) = joined(&[a.as_bytes()]) else {
        return;
    };
    let again = joined(&[&of_a.text]).expect("what is written is a profile");
    assert_eq!((&again.text, again.wrong), (&of_a.text, of_a.wrong));
    assert_eq!(again.entries, of_a.entries);
    for line in a
        .lines()
        .map(|line| line.trim_matches(|c: char| c.is_ascii_whitespace()))
    {
        let is_remark = line.starts_with('#');
        let has = |text: &[u8]| {
            text.split(|it| *it == b'\n')
                .any(|it| it == line.as_bytes())
        };
        assert!(!is_remark || has(&of_a.text), "{line:?} is lost");
    }
    for entry in &of_a.entries {
        let policy = Policy::default();
        let enough = policy.enough_bytes(entry.peak_bytes);
        assert!(enough >= policy.floor_bytes && enough >= entry.peak_bytes);
        let _ = Zones::default().verdict(entry.peak_bytes, entry.given_bytes, enough);
    }
    let Ok(of_b) = joined(&[b.as_bytes()]) else {
        return;
    };
    let both = joined(&[&of_a.text, &of_b.text]).expect("both are profiles");
    let turned = joined(&[&of_b.text, &of_a.text]).expect("both are profiles");
    assert_eq!(both.entries, turned.entries);
    let more = joined(&[&both.text, &of_b.text, &of_a.text]).expect("all are profiles");
    assert_eq!(more.text, both.text);
});

struct Joined {
    entries: Vec<Entry>,
    text: Vec<u8>,
    wrong: usize,
}

fn joined(texts: &[&[u8]]) -> Result<Joined, ProfileError> {
    let rooms: Vec<Room> = texts.iter().map(|text| Room::of(text)).collect();
    let sum = |count: fn(&Room) -> usize| rooms.iter().map(count).sum();
    let mut entries = vec![Entry::EMPTY; sum(|it| it.entries)];
    let mut modules = vec![Module::EMPTY; sum(|it| it.modules)];
    let mut kept = vec![&b""[..]; sum(|it| it.lines)];
    let mut profile = Profile::new(&mut entries, &mut modules, &mut kept);
    let mut wrong = 0;
    for text in texts {
        profile.read(text, &mut |error| {
            assert!(
                text.split(|it| *it == b'\n')
                    .nth(error.number - 1)
                    .is_some()
            );
            assert!(error.to_string().ends_with("but does not count"));
            wrong += 1;
        })?;
    }
    let mut text = Vec::new();
    profile.write(&mut |part| text.extend_from_slice(part));
    Ok(Joined {
        entries: profile.entries().to_vec(),
        text,
        wrong,
    })
}
