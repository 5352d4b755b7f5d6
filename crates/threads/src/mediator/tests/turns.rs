//! Turns: when they come, for whom, and how long they are.

use super::*;

#[test]
fn the_lazy_get_their_turn() {
    let mut nodes = [Node::default(); 2];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    let second = 1_000_000_000;
    assert_eq!(machine.tick(7, &mut Asleep, &mut nobody), None);
    machine.add(Slot(0), 10, nice(0), &mut |_| {});
    machine.add(Slot(1), 11, Kind::Ordinary, &mut |_| {});
    let mut now = 5;
    let mut turns = 0;
    while turns == 0 {
        let next = machine.tick(now, &mut Asleep, &mut |_| turns += 1);
        let next = next.expect("somebody waits");
        assert!(next > now);
        if turns == 0 {
            now = next;
        }
    }
    assert_eq!((turns, now), (2, 5 + second));
    let begun = now;
    while machine.is_turn() {
        assert_eq!(machine.placement(Slot(1)), Some(Placement::Own));
        let next = machine.tick(now, &mut Asleep, &mut |_| {});
        if machine.is_turn() {
            now = next.expect("it ends");
        }
    }
    let share = (now - begun) as f64 / (now - 5) as f64;
    assert!((0.045..=0.055).contains(&share), "{share}");
    assert_eq!(machine.placement(Slot(1)), Some(Placement::Lazy));
}

const MILLISECOND: u64 = 1_000_000;

/// What a thread runs at a time, by the clock of a kernel that looks 250 times a second.
const SLICE: u64 = 4 * MILLISECOND;

/// Processors, each with as many lazy threads that always want it, but for those that sleep,
/// and a critical one that never gives it away: who is lazy then never runs. That of the
/// second comes late.
struct Processors {
    count: usize,
    cpu_ns: Vec<u64>,
    waited_since: Vec<u64>,
    waits: Vec<u64>,
    sleeping: usize,
    turns_ns: u64,
    runs_next: Vec<usize>,
}

/// When the second critical thread comes.
const LATE: u64 = 350 * MILLISECOND;

impl Watch for Processors {
    fn takes_ns(&self) -> u64 {
        500
    }

    fn processors(&self) -> u64 {
        self.count as u64
    }

    fn cpu_ns(&mut self, slot: Slot, _: u32) -> Option<u64> {
        self.cpu_ns.get(slot.0 as usize).copied()
    }

    fn is_runnable(&mut self, slot: Slot, _: u32) -> bool {
        slot.0 as usize >= self.sleeping
    }
}

impl Processors {
    /// A slice goes by, of each: that of the next one, the critical one among them, which may
    /// run.
    fn run(&mut self, machine: &Machine<'_>, now: u64) {
        self.turns_ns += u64::from(machine.is_turn()) * SLICE;
        let lazy = self.waited_since.len();
        for processor in 0..self.count {
            let is_busy = now >= processor as u64 * LATE;
            let may_run = |at: usize| {
                let is_lazy = at < lazy && at % self.count == processor;
                let is_own = machine.placement(Slot(at as u32)) == Some(Placement::Own);
                let may_lazy = is_lazy && at >= self.sleeping && (is_own || !is_busy);
                may_lazy || is_busy && at == lazy + processor
            };
            let all = lazy + self.count;
            let mut next = (0..all).map(|it| (self.runs_next[processor] + it) % all);
            let Some(next) = next.find(|it| may_run(*it)) else {
                continue;
            };
            self.runs_next[processor] = next + 1;
            self.cpu_ns[next] += SLICE;
            if next < lazy {
                self.waits.push(now - self.waited_since[next]);
                self.waited_since[next] = now + SLICE;
            }
        }
    }
}

/// What so many lazy threads of which some sleep have seen in a long time.
struct Seen {
    waits: Vec<u64>,
    /// Of the time.
    turns: f64,
    was_too_short: bool,
}

impl Seen {
    /// In milliseconds.
    fn worst(&self) -> u64 {
        self.waits.iter().max().expect("they wait") / MILLISECOND
    }
}

fn seen(threads: usize, sleeping: usize, settings: Settings) -> Seen {
    seen_on(1, threads, sleeping, settings)
}

fn seen_on(count: usize, threads: usize, sleeping: usize, settings: Settings) -> Seen {
    let mut nodes = vec![Node::default(); threads + count];
    let mut machine = Machine::new(&mut nodes, settings);
    let mut processors = Processors {
        count,
        cpu_ns: vec![0; threads + count],
        waited_since: vec![SLICE; threads],
        waits: Vec::new(),
        sleeping,
        turns_ns: 0,
        runs_next: vec![0; count],
    };
    let threads = threads as u32;
    for slot in 0..threads {
        machine.add(Slot(slot), slot, Kind::Ordinary, &mut |_| {});
    }
    for slot in threads..threads + count as u32 {
        machine.add(Slot(slot), slot, nice(0), &mut |_| {});
    }
    let begun = SLICE;
    let end = begun + 20 * settings.lazy_wait_ns_max.expect("there is one");
    let (mut now, mut next) = (begun, 0);
    while now < end {
        if next <= now {
            let due = machine.tick(now, &mut processors, &mut |_| {});
            next = due.expect("somebody waits");
        }
        processors.run(&machine, now);
        now += SLICE;
    }
    let mut waits = processors.waits;
    let left = processors.waited_since.iter().skip(sleeping);
    waits.extend(left.map(|it| now.saturating_sub(*it)));
    Seen {
        waits,
        turns: processors.turns_ns as f64 / (now - begun) as f64,
        was_too_short: machine.was_too_short(),
    }
}

/// Each of them, and not only the lazy region as a whole.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn nobody_waits_for_longer_than_is_set() {
    for (wait, most, percent) in [
        (250, 16, 50),
        (1000, 64, 50),
        (250, 40, 80),
        (1000, 150, 80),
    ] {
        for threads in [1, 2, 7, 16, 24, 40, 64, 150]
            .into_iter()
            .filter(|it| *it <= most)
        {
            let settings = Settings {
                lazy_wait_ns_max: Some(wait * MILLISECOND),
                turn_percent_max: percent,
                ..Settings::default()
            };
            let seen = seen(threads, 0, settings);
            let case = (wait, threads, seen.worst(), seen.turns);
            assert!(seen.worst() <= wait + 4 && !seen.was_too_short, "{case:?}");
            assert!(
                (0.045..=f64::from(percent) / 100.0).contains(&seen.turns),
                "{case:?}"
            );
        }
    }
}

/// Also where those of one processor have had a part lately, and those of the other have not.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn nobody_waits_for_the_turn_of_another_processor() {
    for threads in [2, 16, 64, 150] {
        let settings = Settings::keeping(1_000 * MILLISECOND);
        let seen = seen_on(2, 2 * threads, 0, settings);
        let case = (threads, seen.worst(), seen.turns);
        assert!(seen.worst() <= 1004 && !seen.was_too_short, "{case:?}");
    }
}

/// Where both cannot be had, the share counts, and it is told.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn turns_are_no_more_of_the_time_than_is_set() {
    for percent in [10, 30, 50, 80] {
        let settings = Settings {
            lazy_wait_ns_max: Some(250 * MILLISECOND),
            turn_percent_max: percent,
            ..Settings::default()
        };
        let seen = seen(300, 0, settings);
        assert!(seen.worst() > 250 && seen.was_too_short, "{}", seen.worst());
        let most = f64::from(percent) / 100.0;
        assert!(
            (most * 0.8..=most + 0.02).contains(&seen.turns),
            "{percent} {}",
            seen.turns
        );
    }
}

/// Whoever does not want a processor does not wait for one.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn who_sleeps_has_no_turn() {
    let settings = Settings::default();
    let share = seen(300, 299, settings).turns;
    assert!((0.04..=0.06).contains(&share), "{share}");
}

/// A critical thread that has so much of each of two processors, in percent, beside others
/// that go on, but for the first ones.
struct Beside {
    now_ns: u64,
    percent: u64,
    starving: u32,
}

/// Its slot.
const CRITICAL: u32 = 4;

impl Watch for Beside {
    fn takes_ns(&self) -> u64 {
        500
    }

    fn processors(&self) -> u64 {
        2
    }

    fn cpu_ns(&mut self, slot: Slot, _: u32) -> Option<u64> {
        Some(match slot.0 {
            CRITICAL => self.now_ns / 100 * 2 * self.percent,
            lazy if lazy < self.starving => 0,
            _ => self.now_ns,
        })
    }

    fn is_runnable(&mut self, _: Slot, _: u32) -> bool {
        true
    }
}

/// Who of so many others had a turn in ten seconds, and whether there was one.
fn turns_beside(others: u32, percent: u64, starving: u32) -> (Vec<u32>, bool) {
    let mut nodes = [Node::default(); CRITICAL as usize + 1];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    for slot in 0..others {
        machine.add(Slot(slot), slot, Kind::Ordinary, &mut |_| {});
    }
    machine.add(Slot(CRITICAL), CRITICAL, nice(0), &mut |_| {});
    let mut beside = Beside {
        now_ns: 1,
        percent,
        starving,
    };
    let (mut had, mut was_turn) = (Vec::new(), false);
    while beside.now_ns < 10_000 * MILLISECOND {
        let now_ns = beside.now_ns;
        let next = machine.tick(now_ns, &mut beside, &mut |it| {
            if it.placement == Placement::Own && it.tid < CRITICAL && !had.contains(&it.tid) {
                had.push(it.tid);
            }
        });
        assert!(next.expect("somebody waits") > beside.now_ns);
        was_turn |= machine.is_turn();
        beside.now_ns += MILLISECOND;
    }
    had.sort_unstable();
    (had, was_turn)
}

/// Where critical threads leave enough, nobody comes before them but who is due.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn who_leaves_enough_needs_no_turns() {
    let all = CRITICAL;
    assert_eq!(turns_beside(all, 94, 0), (vec![], false));
    assert_eq!(turns_beside(all, 96, 0), (vec![0, 1, 2, 3], true));
    assert_eq!(turns_beside(all, 94, 1), (vec![0], true));
}

/// Where it is not known who waits, it may be for the processor that a critical thread has.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn who_has_a_processor_beside_threads_unknown_leaves_it_at_times() {
    assert_eq!(turns_beside(0, 40, 0), (vec![], false));
    assert_eq!(turns_beside(0, 50, 0), (vec![], true));
}

/// Nobody has waited for long who was not there.
#[test]
fn who_has_just_begun_is_not_due() {
    let mut nodes = [Node::default(); CRITICAL as usize + 1];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    machine.add(Slot(CRITICAL), CRITICAL, nice(0), &mut |_| {});
    let mut beside = Beside {
        now_ns: 0,
        percent: 50,
        starving: CRITICAL,
    };
    for slot in 0..CRITICAL {
        beside.now_ns += 100 * MILLISECOND;
        let (now_ns, is_turn) = (beside.now_ns, machine.is_turn());
        machine.tick(now_ns, &mut beside, &mut |_| {});
        machine.add(Slot(slot), slot, Kind::Ordinary, &mut |_| {});
        machine.tick(now_ns + 1, &mut beside, &mut |_| {});
        assert!(!is_turn && !machine.is_turn(), "{slot}");
    }
}

/// Wants a processor and gets none, for as long as it is awake.
struct Drowsy {
    is_awake: bool,
}

impl Watch for Drowsy {
    fn takes_ns(&self) -> u64 {
        500
    }

    fn processors(&self) -> u64 {
        1
    }

    fn cpu_ns(&mut self, _: Slot, _: u32) -> Option<u64> {
        Some(0)
    }

    fn is_runnable(&mut self, _: Slot, _: u32) -> bool {
        self.is_awake
    }
}

/// Whoever wants a processor no more before it had one does not prolong a turn.
#[test]
fn who_falls_asleep_in_a_turn_does_not_prolong_it() {
    for is_awake in [true, false] {
        let mut nodes = [Node::default(); 2];
        let mut machine = Machine::new(&mut nodes, Settings::default());
        machine.add(Slot(0), 1, Kind::Ordinary, &mut |_| {});
        machine.add(Slot(1), 2, nice(0), &mut |_| {});
        let mut drowsy = Drowsy { is_awake: true };
        let mut now = 1;
        while !machine.is_turn() {
            let next = machine.tick(now, &mut drowsy, &mut |_| {});
            now = next.expect("somebody waits");
        }
        let begun = now;
        drowsy.is_awake = is_awake;
        while machine.is_turn() {
            let next = machine.tick(now, &mut drowsy, &mut |_| {});
            now = next.expect("somebody waits");
        }
        let turn = (now - begun) / MILLISECOND;
        assert_eq!(turn > 500, is_awake, "{turn}");
        assert_eq!(machine.was_too_short(), is_awake);
    }
}

/// Whoever is not lazy may have to wait for critical threads all the same.
#[test]
fn who_is_spared_has_a_turn() {
    let mut nodes = [Node::default(); 2];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    machine.add(Slot(0), 1, Kind::Spared, &mut nobody);
    machine.add(Slot(1), 2, nice(0), &mut |_| {});
    let mut waits = Drowsy { is_awake: true };
    let mut now = 1;
    while !machine.is_turn() {
        let next = machine.tick(now, &mut waits, &mut |_| {});
        now = next.expect("somebody waits");
    }
    assert!(now < 1000 * MILLISECOND, "{now}");
    assert_eq!(machine.placement(Slot(1)), Some(Placement::Own));
    // It goes on until it had a processor.
    machine.tick(now, &mut waits, &mut |_| {});
    assert!(machine.is_turn());
    let mut runs = Beside {
        now_ns: 100 * MILLISECOND,
        percent: 100,
        starving: 0,
    };
    machine.tick(now + 1, &mut runs, &mut |_| {});
    assert_eq!(machine.placement(Slot(0)), Some(Placement::Own));
}

/// Whoever is not due leaves a turn to those that are, as far as the rung can have it so.
#[test]
fn who_has_had_a_part_makes_way() {
    for makes_way in [true, false] {
        let mut nodes = [Node::default(); 3];
        let mut machine = Machine::new(&mut nodes, Settings::default());
        machine.set_makes_way(makes_way);
        for slot in 0..2 {
            machine.add(Slot(slot), slot, Kind::Ordinary, &mut |_| {});
        }
        machine.add(Slot(2), 2, nice(0), &mut |_| {});
        let mut one = OneRuns { cpu_ns: 0 };
        let mut now = 1;
        while !machine.is_turn() {
            let next = machine.tick(now, &mut one, &mut |_| {});
            now = next.expect("somebody waits");
            one.cpu_ns += MILLISECOND;
        }
        let others = match makes_way {
            true => Placement::Bound,
            false => Placement::Lazy,
        };
        let placements = |it: &Machine<'_>| [0, 1].map(|slot| it.placement(Slot(slot)));
        assert_eq!(placements(&machine), [Some(Placement::Own), Some(others)]);
        while machine.is_turn() {
            let next = machine.tick(now, &mut one, &mut |_| {});
            now = next.expect("somebody waits");
        }
        assert_eq!(placements(&machine), [Some(Placement::Lazy); 2]);
    }
}

/// Of two lazy threads the second has a processor again and again.
struct OneRuns {
    cpu_ns: u64,
}

impl Watch for OneRuns {
    fn takes_ns(&self) -> u64 {
        0
    }

    fn processors(&self) -> u64 {
        1
    }

    fn cpu_ns(&mut self, slot: Slot, _: u32) -> Option<u64> {
        Some(if slot == Slot(1) { self.cpu_ns } else { 0 })
    }

    fn is_runnable(&mut self, _: Slot, _: u32) -> bool {
        true
    }
}

/// Two processors, each with as many lazy threads that always want it and run one after
/// another, but for a critical one that has it for some tenths of the time.
struct Rotating {
    busy: u64,
    lazy: usize,
    cpu_ns: Vec<u64>,
    next: [usize; 2],
    since: Vec<u64>,
    worst_ns: u64,
}

impl Watch for Rotating {
    fn takes_ns(&self) -> u64 {
        500
    }

    fn processors(&self) -> u64 {
        2
    }

    fn cpu_ns(&mut self, slot: Slot, _: u32) -> Option<u64> {
        self.cpu_ns.get(slot.0 as usize).copied()
    }

    fn is_runnable(&mut self, _: Slot, _: u32) -> bool {
        true
    }
}

impl Rotating {
    /// A slice of each processor goes by. In a turn it is of those that it is for, if the
    /// critical thread does not want it.
    fn run(&mut self, machine: &Machine<'_>, now: u64) {
        for processor in 0..2 {
            let critical = self.lazy + processor;
            let is_busy = now / SLICE * 7 % 10 < self.busy;
            let is_own = |at: usize| machine.placement(Slot(at as u32)) == Some(Placement::Own);
            let of_it = (processor..self.lazy).step_by(2);
            let is_for_some = machine.is_turn() && of_it.clone().any(is_own);
            let at = if is_busy && !is_for_some {
                critical
            } else {
                let from = self.next[processor];
                let mut order = of_it.clone().skip(from).chain(of_it.take(from));
                let next = order.find(|it| !is_for_some || is_own(*it));
                next.expect("somebody is lazy")
            };
            self.cpu_ns[at] += SLICE;
            if at != critical {
                self.next[processor] = at / 2 + 1;
                self.worst_ns = self.worst_ns.max(now - self.since[at]);
                self.since[at] = now + SLICE;
            }
        }
    }
}

/// The longest that one of so many on each processor waits, in milliseconds, and how much of
/// the time turns are, beside critical threads that have so many tenths of it.
fn seen_rotating(each: usize, busy: u64) -> (u64, f64) {
    let mut nodes = vec![Node::default(); 2 * each + 2];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    for slot in 0..2 * each as u32 {
        machine.add(Slot(slot), slot, Kind::Ordinary, &mut |_| {});
    }
    for slot in 2 * each as u32..2 * each as u32 + 2 {
        machine.add(Slot(slot), slot, nice(0), &mut |_| {});
    }
    let mut rotating = Rotating {
        busy,
        lazy: 2 * each,
        cpu_ns: vec![0; 2 * each + 2],
        next: [0; 2],
        since: vec![SLICE; 2 * each],
        worst_ns: 0,
    };
    let (mut next, mut turns) = (0, 0);
    let slices = 5000;
    for now in (1..slices).map(|it| it * SLICE) {
        if next <= now {
            let due = machine.tick(now, &mut rotating, &mut |_| {});
            next = due.expect("somebody waits");
        }
        turns += u64::from(machine.is_turn());
        rotating.run(&machine, now);
    }
    let worst = rotating.worst_ns / MILLISECOND;
    (worst, turns as f64 / slices as f64)
}

/// As long as everybody goes on soon enough by himself there are no turns, however many they
/// are.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn who_goes_on_by_himself_needs_no_turns() {
    for (each, busy) in [(1, 9), (16, 8), (64, 5), (80, 3)] {
        let (worst, share) = seen_rotating(each, busy);
        assert!(share == 0.0, "{each} {busy} {worst} {share}");
    }
}

/// Where it is not quite enough, turns are for those alone that have waited for longest.
#[cfg_attr(miri, ignore = "a long simulation, of code that is safe")]
#[test]
fn turns_are_no_longer_than_they_must_be() {
    for (each, busy, most) in [(64, 6, 0.06), (100, 4, 0.06), (150, 2, 0.08)] {
        let case = seen_rotating(each, busy);
        let (worst, share) = case;
        assert!(worst <= 1004 && share < most, "{each} {busy} {case:?}");
    }
}
