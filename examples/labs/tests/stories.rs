//! The stories are told as they were, and a wrong one is named.

use std::process::Command;

fn labs(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_labs"))
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn the_stories_are_told() {
    let expected = include_str!("stories.txt");
    assert_eq!(labs(&[]), (true, expected.to_owned()));
    let rooms = "rooms\n  anna is in: \"005\"\n  anna is in: \"006\"\n  anna is in: \"the hall\"\n";
    assert_eq!(labs(&["rooms"]), (true, rooms.to_owned()));
}

#[test]
fn a_story_that_there_is_not_is_named() {
    let (success, text) = labs(&["romance"]);
    assert!(
        !success && text.contains("`romance`") && text.contains("rooms"),
        "{text}"
    );
}
