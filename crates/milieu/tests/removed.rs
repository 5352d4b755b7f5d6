//! Keys that an environment says are no more.

use crate::support::Machine;
use milieu::{Environment, keys::migration::Fate, specification_of};

mod part {
    use milieu::Environment;

    #[derive(Environment)]
    #[environment(removed("/old" = "nobody reads it"))]
    pub struct Part {
        #[key("/now", default = 1)]
        pub now: i32,
    }
}

#[derive(Environment)]
#[environment(root = "/sw/hello", removed("hours" = "since 2.0 the clock decides", "/sw/%who%/x" = "why"))]
struct Settings {
    #[key(default = 1)]
    times: i32,
    #[part("/sw/part")]
    part: part::Part,
}

#[test]
fn those_who_have_them_are_told() {
    let machine =
        Machine::new().user("[/sw/hello]\nhours = 8\ntimes = 2\n[/sw]\npart/old = 1\nben/x = 1\n");
    let milieu = machine.open();
    let cx = milieu.context::<Settings>().unwrap();
    assert_eq!((cx.times, cx.part.now), (2, 1));
    let notices = milieu.notices();
    let mut told: Vec<(&str, &str)> = notices
        .iter()
        .map(|notice| match &notice.fate {
            Fate::Removed(why) => (notice.key.name(), &**why),
            other => panic!("{other:?}"),
        })
        .collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            ("/sw/ben/x", "why"),
            ("/sw/hello/hours", "since 2.0 the clock decides"),
            ("/sw/part/old", "nobody reads it"),
        ]
    );
    let specification = specification_of::<Settings>();
    for part in [
        "[/sw/hello/hours]\n",
        "removed",
        "the clock decides",
        "[/sw/part/old]\n",
    ] {
        assert!(specification.contains(part), "{part}: {specification}");
    }
}
