//! The rules of the stack tuner, over anything that can be asked of it.

use milieu_threads::stack::{
    Asked, Decision, Learned, Mode, ModeError, Policy, Reason, page_bytes, signal_bytes,
};
use proptest::prelude::*;

fn modes() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Off, Mode::Learn, Mode::Tune, Mode::Force])
}

/// Sizes as they occur, and all others.
fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..16 << 20, any::<u64>(), Just(u64::MAX), Just(8 << 20)]
}

prop_compose! {
    fn policies()(
        mode in modes(),
        flags in any::<[bool; 2]>(),
        floor_bytes in sizes(),
        margin_percent in any::<u8>(),
        margin_bytes_min in sizes(),
        step_bytes in sizes(),
        runs_min in 0_u32..5,
        threads_min in 0_u64..5,
    ) -> Policy {
        Policy {
            mode,
            shrinks_set_sizes: flags[0],
            is_space_limited: flags[1],
            floor_bytes,
            margin_percent,
            margin_bytes_min,
            step_bytes,
            runs_min,
            threads_min,
        }
    }
}

prop_compose! {
    fn learned()(
        runs in 0_u32..8,
        threads in 0_u64..8,
        peak_bytes in sizes(),
        troubles in prop::sample::select(vec![(false, false), (true, false), (false, true)]),
    ) -> Learned {
        Learned {
            runs,
            threads,
            peak_bytes,
            has_overflowed: troubles.0,
            was_refused: troubles.1,
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        sizes().prop_map(Asked::Default),
        sizes().prop_map(Asked::Set),
        Just(Asked::Memory),
    ]
}

/// A policy that decides often enough for something else than to keep.
fn ordinary() -> impl Strategy<Value = Policy> {
    (modes(), any::<[bool; 2]>()).prop_map(|(mode, [shrinks_set_sizes, is_space_limited])| Policy {
        mode,
        shrinks_set_sizes,
        is_space_limited,
        ..Policy::default()
    })
}

proptest! {
    #[test]
    fn what_is_applied_keeps_every_rule(
        policy in prop_oneof![policies(), ordinary()],
        learned in prop::option::of(learned()),
        asked in asked(),
        guard in sizes(),
        is_space_short: bool,
    ) {
        let decided = policy.decide(learned.as_ref(), asked, guard, || is_space_short);
        let Decision::Apply { bytes, guard_bytes } = decided else {
            return Ok(());
        };
        let learned = learned.expect("nothing is applied to threads that nobody knows");
        prop_assert!(bytes >= policy.floor_bytes);
        prop_assert!(bytes - learned.peak_bytes >= signal_bytes().max(policy.margin_bytes_min));
        prop_assert_eq!(bytes % page_bytes(), 0);
        prop_assert!(guard_bytes >= guard.max(page_bytes()));
        prop_assert!(!learned.has_overflowed && !learned.was_refused);
        prop_assert!(learned.runs >= policy.runs_min && learned.threads >= policy.threads_min);
        prop_assert!(learned.threads > 0);
        match asked {
            Asked::Default(asked) => prop_assert!(bytes < asked),
            Asked::Set(asked) => prop_assert!(bytes < asked && policy.shrinks_set_sizes),
            Asked::Memory => prop_assert!(false, "memory of the program was taken from it"),
        }
        match policy.mode {
            Mode::Force => {}
            Mode::Tune => prop_assert!(policy.is_space_limited && is_space_short),
            Mode::Off | Mode::Learn => prop_assert!(false, "the mode applies nothing"),
        }
    }

    #[test]
    fn a_greater_peak_never_gives_a_smaller_stack(
        policy in policies(),
        peaks in any::<[u64; 2]>(),
    ) {
        let (least, most) = (peaks[0].min(peaks[1]), peaks[0].max(peaks[1]));
        prop_assert!(policy.enough_bytes(least) <= policy.enough_bytes(most));
    }

    #[test]
    fn observing_more_never_makes_a_stack_smaller(
        policy in ordinary(),
        before in learned(),
        more in learned(),
        asked in asked(),
    ) {
        let after = Learned {
            runs: before.runs + more.runs,
            threads: before.threads + more.threads,
            peak_bytes: before.peak_bytes.max(more.peak_bytes),
            has_overflowed: before.has_overflowed | more.has_overflowed,
            was_refused: before.was_refused | more.was_refused,
        };
        let [before, after] = [before, after].map(|it| policy.decide(Some(&it), asked, 4096, || true));
        if let (Decision::Apply { bytes: before, .. }, Decision::Apply { bytes: after, .. })
            = (before, after)
        {
            prop_assert!(before <= after);
        }
    }

    #[test]
    fn a_thread_is_created_again_at_most_once(
        policy in ordinary(),
        learned in learned(),
        asked in asked(),
        error in prop::sample::select(vec![0, libc::EINVAL, libc::EAGAIN, libc::EPERM]),
    ) {
        let first = policy.decide(Some(&learned), asked, 4096, || true);
        if !first.is_to_be_repeated(error) {
            return Ok(());
        }
        prop_assert_eq!(error, libc::EINVAL);
        let refused = Learned { was_refused: true, ..learned };
        let second = policy.decide(Some(&refused), asked, 4096, || true);
        prop_assert_eq!(second, Decision::Keep(Reason::Refused));
        prop_assert!(!second.is_to_be_repeated(error));
    }
}

#[test]
fn the_first_reason_is_the_one_that_can_be_helped() {
    let policy = Policy {
        mode: Mode::Force,
        ..Policy::default()
    };
    let known = Learned {
        runs: 3,
        threads: 3,
        peak_bytes: 20_000,
        ..Learned::default()
    };
    let decide = |policy: Policy, learned: Option<&Learned>, asked| {
        policy.decide(learned, asked, 0, || true)
    };
    let default = Asked::Default(8 << 20);
    let applied = Decision::Apply {
        bytes: policy.floor_bytes,
        guard_bytes: page_bytes(),
    };
    assert_eq!(decide(policy, Some(&known), default), applied);
    let rows = [
        (
            Policy {
                mode: Mode::Off,
                ..policy
            },
            Some(known),
            default,
            Reason::Mode,
        ),
        (
            Policy {
                mode: Mode::Learn,
                ..policy
            },
            Some(known),
            default,
            Reason::Mode,
        ),
        (
            Policy {
                mode: Mode::Tune,
                is_space_limited: false,
                ..policy
            },
            Some(known),
            default,
            Reason::SpaceIsAmple,
        ),
        (policy, Some(known), Asked::Memory, Reason::Memory),
        (policy, Some(known), Asked::Set(8 << 20), Reason::Set),
        (policy, None, default, Reason::TooFew),
        (
            policy,
            Some(Learned { runs: 2, ..known }),
            default,
            Reason::TooFew,
        ),
        (
            policy,
            Some(Learned {
                threads: 2,
                ..known
            }),
            default,
            Reason::TooFew,
        ),
        (
            policy,
            Some(Learned {
                has_overflowed: true,
                ..known
            }),
            default,
            Reason::Overflowed,
        ),
        (
            policy,
            Some(Learned {
                was_refused: true,
                ..known
            }),
            default,
            Reason::Refused,
        ),
        (
            policy,
            Some(known),
            Asked::Default(policy.floor_bytes),
            Reason::NotSmaller,
        ),
        (
            policy,
            Some(Learned {
                peak_bytes: 7 << 20,
                ..known
            }),
            default,
            Reason::NotSmaller,
        ),
    ];
    for (policy, learned, asked, reason) in rows {
        let decided = decide(policy, learned.as_ref(), asked);
        assert_eq!(
            decided,
            Decision::Keep(reason),
            "{policy:?} {learned:?} {asked:?}"
        );
    }
    let on_request = Policy {
        shrinks_set_sizes: true,
        ..policy
    };
    assert_eq!(
        decide(on_request, Some(&known), Asked::Set(8 << 20)),
        applied
    );
    let limited = Policy {
        mode: Mode::Tune,
        is_space_limited: true,
        ..policy
    };
    assert_eq!(decide(limited, Some(&known), default), applied);
    let ample = limited.decide(Some(&known), default, 0, || false);
    assert_eq!(ample, Decision::Keep(Reason::SpaceIsAmple));
    let forced = policy.decide(Some(&known), default, 0, || false);
    assert_eq!(forced, applied);
}

/// The goal for address space: what is used and a quarter, and the floor.
#[test]
fn together_they_take_little_more_than_they_use() {
    let policy = Policy::default();
    for peak in (4096..8 << 20).step_by(4096) {
        let enough = policy.enough_bytes(peak);
        let goal = peak + peak / 4 + policy.floor_bytes;
        assert!(enough <= goal, "{enough} for {peak}");
    }
}

#[test]
fn modes_are_words() {
    for mode in [Mode::Off, Mode::Learn, Mode::Tune, Mode::Force] {
        assert_eq!(mode.to_string().parse(), Ok(mode));
        assert_eq!(mode.learns(), mode != Mode::Off);
    }
    assert_eq!("Tune".parse::<Mode>(), Err(ModeError));
    assert_eq!("".parse::<Mode>(), Err(ModeError));
}
