use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::attributes::{Attributes, Priority, Role, StackSize};

fn parsed(text: &str) -> (Settings<'_>, Vec<String>) {
    let mut wrong = Vec::new();
    let settings = Settings::parse(text, &mut |it| wrong.push(it.to_string()));
    (settings, wrong)
}

#[test]
#[cfg_attr(miri, ignore = "defaults depend on a limit that Miri does not know")]
fn settings_are_what_they_say() {
    assert_eq!(parsed("").0, Settings::default());
    let text = "stacks=force; set-sizes=shrink;floor=64K;margin=50;runs=0;threads=1;\
                profile=/p;sites=yes;roles=/r s;rung=idle;blocked=leave;wait=never;turn=7;turn-max=9;spin=20;\
                capacity=9;mediator=/m;quiet=yes;";
    let (settings, wrong) = parsed(text);
    assert_eq!(wrong, [""; 0]);
    let stacks = &settings.stacks;
    assert_eq!(stacks.mode, Mode::Force);
    assert!(stacks.shrinks_set_sizes);
    assert_eq!((stacks.floor_bytes, stacks.margin_percent), (65536, 50));
    assert_eq!((stacks.runs_min, stacks.threads_min), (0, 1));
    let texts = [settings.profile, settings.roles, settings.socket];
    assert_eq!(texts, [Some("/p"), Some("/r s"), Some("/m")]);
    assert_eq!(settings.rung, Choice::Only(Rung::Idle));
    let mediator = &settings.mediator;
    assert!(mediator.leaves_while_blocked);
    assert_eq!(mediator.lazy_wait_ns_max, None);
    assert_eq!((mediator.turn_percent, mediator.turn_percent_max), (7, 9));
    assert_eq!(mediator.spin_ns_max, 20_000_000);
    assert_eq!((settings.capacity, settings.is_quiet), (9, true));
    assert!(settings.notes_sites);
    assert_eq!(
        parsed("wait=5").0.mediator,
        mediator::Settings::keeping(5_000_000)
    );
    let texts = ["wait=5;turn-max=60", "turn-max=60; wait=5", "turn-max=60"];
    for text in texts {
        assert_eq!(parsed(text).0.mediator.turn_percent_max, 60);
    }
    assert_eq!(parsed("rung=off").0.rung, Choice::Off);
}

#[test]
#[cfg_attr(miri, ignore = "defaults depend on a limit that Miri does not know")]
fn what_is_no_setting_is_told_with_what_would_be_one() {
    for (text, word) in [
        ("stack=off", "`stacks`"),
        ("stacks", "`learn`"),
        ("floor=1G", "K or M"),
        ("floor=99999999999999999999M", "K or M"),
        ("margin=251", "0 to 250"),
        ("turn=0", "1 to 50"),
        ("turn-max=91", "1 to 90"),
        ("threads=0", "from 1 on"),
        ("runs=-1", "a number"),
        ("profile=p", "from `/` on"),
        ("rung=best", "`auto`"),
        ("wait=0", "`never`"),
        ("quiet=1", "`yes` or `no`"),
        ("sites=yes", "a `profile`"),
        ("blocked=", "`stay`"),
        ("set-sizes=x", "`shrink`"),
    ] {
        let (settings, wrong) = parsed(text);
        assert_eq!(settings, Settings::default(), "{text}");
        assert!(
            wrong.len() == 1 && wrong[0].contains(word),
            "{text}: {wrong:?}"
        );
    }
    // The others count.
    assert!(parsed("x=1;quiet=yes").0.is_quiet);
}

#[test]
fn patterns_are_about_whole_names() {
    for (pattern, text) in [
        ("", ""),
        ("*", ""),
        ("*", "abc"),
        ("a*c", "abc"),
        ("a*c", "abcabc"),
        ("a?c", "abc"),
        ("*b*", "abc"),
        ("**c", "abc"),
        ("a*b*c", "a-b-b-c"),
    ] {
        assert!(matches(pattern, text.as_bytes()), "{pattern} {text}");
    }
    for (pattern, text) in [
        ("", "a"),
        ("a", ""),
        ("?", ""),
        ("a", "ab"),
        ("b", "ab"),
        ("a*c", "abcd"),
        ("a*b*c", "acb"),
    ] {
        assert!(!matches(pattern, text.as_bytes()), "{pattern} {text}");
    }
}

#[test]
fn lines_say_what_threads_are_for() {
    let text = "# a remark\n\nstart worker_* => net/worker stack=256K # another\n\
                name audio-? => audio critical=-5\nnumber 3-5 => - exclude lazy\nnumber 7 => x critical";
    let rules: Vec<_> = rules(text).map(|it| it.expect("a rule")).collect();
    let role = |name| Attributes::of(Role::new(name).expect("a role"));
    let size = StackSize::of_bytes(256 << 10).expect("a size");
    let expected = [
        (
            What::Start("worker_*"),
            role("net/worker").with_stack(size),
            false,
        ),
        (
            What::Name("audio-?"),
            role("audio").time_critical(Priority::new(-5).expect("a nice value")),
            false,
        ),
        (What::Number(3, 5), Attributes::default().lazy(), true),
        (
            What::Number(7, 7),
            role("x").time_critical(Priority::default()),
            false,
        ),
    ];
    let said: Vec<_> = rules
        .iter()
        .map(|it| (it.what, it.attributes, it.is_excluded))
        .collect();
    assert_eq!(said, expected);
    let thread = |start: Option<&'static str>, name: Option<&'static str>, number| Thread {
        start: start.map(str::as_bytes),
        name: name.map(str::as_bytes),
        number,
    };
    let first = |thread: Thread<'_>| rules.iter().position(|it| it.is_about(&thread));
    assert_eq!(first(thread(Some("worker_a"), None, Some(4))), Some(0));
    assert_eq!(first(thread(None, Some("audio-1"), Some(9))), Some(1));
    assert_eq!(first(thread(Some("w"), Some("audio-"), Some(5))), Some(2));
    assert_eq!(first(thread(None, None, Some(6))), None);
    assert_eq!(first(Thread::default()), None);
}

#[test]
fn lines_that_say_nothing_are_told() {
    for (text, word) in [
        ("start a", "expected what it is about"),
        ("=> a", "expected what it is about"),
        ("name a =>", "expected what it is about"),
        ("names a => b", "`start`, `name` or `number`"),
        ("name a b => c", "one pattern"),
        ("name => c", "one pattern"),
        ("number x => c", "a number such as"),
        ("number 1- => c", "a number such as"),
        ("name a => b/", "empty part"),
        ("name a => b urgent", "`critical=NICE`"),
        ("name a => b critical=20", "-20 to 19"),
        ("name a => b stack=0", "`256K`"),
    ] {
        let lines = std::format!("\n{text}");
        let error = rules(&lines).next().expect("a line").expect_err(text);
        let error = error.to_string();
        assert!(error.starts_with("line 2, `"), "{error}");
        assert!(error.contains(word), "{text}: {error}");
    }
}
