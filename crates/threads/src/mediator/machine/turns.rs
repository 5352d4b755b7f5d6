//! Turns of the lazy region: when they begin, for whom, and how long they are.
//!
//! Each lazy thread that wants a processor shall have one before it has waited for
//! [`Settings::lazy_wait_ns_max`](super::super::Settings::lazy_wait_ns_max). Who has one is
//! seen by its processor time, which is looked at some times in that span. As long as they
//! go on one after another by themselves, and soon enough, there is no turn, however many
//! they are (`ages.rs`): urgent threads wait for the end of one that they meet. Else it begins
//! early enough that all who are *due* have their part of it in time, as far as earlier
//! turns tell how long a part is, and whoever would be due before there can be another one
//! has it as well. As long as somebody is due, the turn is for those alone: who has had a
//! part is lazy again. After it there is none until what urgent threads did not have in it
//! is no more than `turn_percent_max` of the time.
//!
//! Urgent threads leave `turn_percent` of the processors to others. If they left less since
//! the last turn, the next one comes without anybody who is due, and goes on for all until
//! turns were as much of the time. Where no lazy thread is known, somebody may wait for the
//! one processor that an urgent thread has, so that it is of one that they leave so much.

mod ages;

use super::super::Settings;
use super::{Machine, Node, Sink};
use crate::table::Slot;
use ages::{Ages, Known, OUT_OF_ORDER};

/// What is asked of threads that are lazy.
pub trait Watch {
    /// About how long it takes to ask for the processor time of one.
    fn takes_ns(&self) -> u64;

    /// How many processors there are for threads.
    fn processors(&self) -> u64;

    /// The processor time that a thread has had; none if it has ended.
    fn cpu_ns(&mut self, slot: Slot, tid: u32) -> Option<u64>;

    /// Whether a thread has a processor, or wants one.
    fn is_runnable(&mut self, slot: Slot, tid: u32) -> bool;
}

/// How often lazy threads are looked at while they may have to wait, at most.
const LOOKS: u64 = 16;

/// What a thread's part of a turn is taken to be until one was seen.
const PART_NS: u64 = 4_000_000;

/// Whoever had less of a processor has not gone on.
const RAN_NS: u64 = 500_000;

/// How often lazy threads are looked at in a turn, at most.
const POLL_NS: u64 = 2_000_000;

/// Looks are so many times as far apart as one takes, at least; in a turn, in which fewer and
/// fewer are looked at, they are closer.
const LOOKING: u64 = 10;
const LOOKING_IN_TURN: u64 = 5;

/// When lazy threads have their turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    /// Whether it is their turn.
    pub is_turn: bool,
    /// Whether a turn has ended for whom it was too short.
    pub was_too_short: bool,
    /// When the turn, or the wait for one, was first seen.
    since_ns: Option<u64>,
    looked_ns: u64,
    /// How long after the last turn there is none.
    pause_ns: u64,
    /// How long a turn is at least that has begun.
    owed_ns: u64,
    part_ns: u64,
    /// How many had their part in this turn, and when the last one was seen to.
    served: u32,
    served_ns: u64,
    /// How many are still to have theirs.
    due: u32,
    /// What urgent threads had of the processors since the last turn.
    fast_ns: u64,
    /// How many others went on by themselves of late, in how much time that was no turn.
    gone_on: u64,
    gone_on_ns: u64,
}

impl Turns {
    pub const NONE: Turns = Turns {
        is_turn: false,
        was_too_short: false,
        since_ns: None,
        looked_ns: 0,
        pause_ns: 0,
        owed_ns: 0,
        part_ns: PART_NS,
        served: 0,
        served_ns: 0,
        due: 0,
        fast_ns: 0,
        gone_on: 0,
        gone_on_ns: 0,
    };

    /// The fast region became empty, or ceases to be.
    pub fn end(&mut self) {
        *self = Turns {
            part_ns: self.part_ns,
            was_too_short: self.was_too_short,
            ..Turns::NONE
        };
    }

    /// A turn has shown how long a thread's part of it is.
    fn learn(&mut self, now_ns: u64, since: u64) {
        let span = match self.due {
            0 => self.served_ns.saturating_sub(since),
            _ => now_ns.saturating_sub(since),
        };
        self.was_too_short |= self.due > 0;
        if self.served > 0 {
            let part = span / u64::from(self.served);
            self.part_ns = part.max(self.part_ns / 4 * 3);
        }
    }

    /// Whether a thread that is not urgent is where the program wants it.
    pub fn is_for(&self, node: &Node) -> bool {
        self.is_turn && (self.due == 0 || node.is_due)
    }
}

impl Machine<'_> {
    /// Time goes on. Returns when to come again, if that matters: the first time
    /// soon after the fast region has ceased to be empty.
    pub fn tick(&mut self, now_ns: u64, watch: &mut dyn Watch, out: Sink<'_>) -> Option<u64> {
        let wait = self.settings.lazy_wait_ns_max?;
        if self.fast == 0 || !self.settings.is_reversible || !self.is_open {
            return None;
        }
        Some(match self.turns.since_ns {
            None => {
                self.turns.since_ns = Some(now_ns);
                self.turns.looked_ns = now_ns;
                self.each(|_, node| node.ran_ns = 0);
                self.look(now_ns, watch);
                now_ns.saturating_add(wait / LOOKS)
            }
            Some(since) if self.turns.is_turn => self.go_on(since, now_ns, watch, out),
            Some(since) => self.wait_for_turn(since, now_ns, watch, out),
        })
    }

    /// Whether it is the lazy threads' turn.
    #[must_use]
    pub fn is_turn(&self) -> bool {
        self.turns.is_turn
    }

    /// Whether turns were too short for all threads that have waited for too long.
    #[must_use]
    pub fn was_too_short(&self) -> bool {
        self.turns.was_too_short
    }

    fn wait_ns(&self) -> u64 {
        self.settings.lazy_wait_ns_max.unwrap_or(u64::MAX)
    }

    fn wait_for_turn(
        &mut self,
        since: u64,
        now_ns: u64,
        watch: &mut dyn Watch,
        out: Sink<'_>,
    ) -> u64 {
        let wait = self.wait_ns();
        let pace = (wait / LOOKS).max(LOOKING.saturating_mul(self.looking_ns(watch)));
        if now_ns >= self.turns.looked_ns.saturating_add(pace) {
            self.look(now_ns, watch);
        }
        let end = since.saturating_add(wait);
        let pause = since.saturating_add(self.turns.pause_ns);
        let (turn, out_of_order) = self.turn_ns(now_ns, watch);
        let most = wait / 100 * u64::from(self.percent_max().max(50));
        let ahead = turn.saturating_add(out_of_order);
        let ahead = ahead.saturating_add(wait / LOOKS).min(most);
        self.wake(now_ns, watch);
        let ages = self.ages(now_ns);
        let known = self.known(pace, watch);
        let go_on = ages.are_in_order(&known) && ages.go_on_in_time(&known);
        let is_due = now_ns >= pause && !go_on && self.mark_due(now_ns, ahead, watch) > 0;
        if now_ns < end && !is_due {
            let next_look = self.turns.looked_ns.saturating_add(pace);
            // Whoever goes on in a pause and is not seen there seems to have waited for all of it.
            let next = match ages.are_in_order(&known) {
                true if now_ns < pause => next_look.min(pause),
                true => next_look,
                false => next_look.max(pause),
            };
            return next.min(end);
        }
        self.look(now_ns, watch);
        // Whoever is due before there can be another turn has this one.
        let until = turn.saturating_add(self.pause_ns(turn, 0)).max(wait / 8);
        let due = match go_on {
            true => 0,
            false => self.mark_due(now_ns, ahead.saturating_add(until), watch),
        };
        if self.turns.pause_ns > 0 {
            let late = pause.saturating_sub(wait);
            let mut was_too_short = false;
            self.each_waiting(|_, it| was_too_short |= it.is_due && it.waits_since(late));
            self.turns.was_too_short |= was_too_short;
        }
        let percent = self.settings.turn_percent.clamp(1, 99);
        // Of those who are not known nobody is seen to wait.
        let all = watch.processors();
        let mut processors = all.min(1);
        self.each_waiting(|_, _| processors = all);
        let turns = &mut self.turns;
        let elapsed = now_ns.saturating_sub(since);
        let all_ns = elapsed.saturating_mul(processors);
        let have_left = turns.fast_ns < all_ns / 100 * u64::from(100 - percent);
        turns.since_ns = Some(now_ns);
        turns.fast_ns = 0;
        if have_left && due == 0 {
            turns.pause_ns = 0;
            return now_ns.saturating_add(wait / LOOKS);
        }
        turns.owed_ns = if have_left {
            0
        } else {
            beside(elapsed, percent)
        };
        turns.is_turn = true;
        (turns.due, turns.served, turns.served_ns) = (due, 0, now_ns);
        self.place_all(out);
        now_ns.saturating_add(POLL_NS)
    }

    fn go_on(&mut self, since: u64, now_ns: u64, watch: &mut dyn Watch, out: Sink<'_>) -> u64 {
        let elapsed = now_ns.saturating_sub(since);
        let (threads, mut due) = self.look(now_ns, watch);
        let served = self.turns.due.saturating_sub(due);
        let is_stuck = now_ns >= self.turns.served_ns.saturating_add(2 * PART_NS);
        if served == 0 && due > 0 && is_stuck {
            due = self.forget_asleep(now_ns, watch);
        }
        let wait = self.wait_ns();
        let most = beside(wait, self.percent_max())
            .min(wait)
            .max(self.turns.owed_ns);
        let had_ns = self.turns.fast_ns / watch.processors().max(1);
        let pause_ns = self.pause_ns(elapsed.min(most), had_ns);
        let turns = &mut self.turns;
        if served > 0 {
            turns.served += served;
            turns.served_ns = now_ns;
        }
        let is_changed = turns.due != due;
        turns.due = due;
        if elapsed >= most || (elapsed >= turns.owed_ns && due == 0) {
            turns.learn(now_ns, since);
            (turns.pause_ns, turns.fast_ns) = (pause_ns, 0);
            turns.is_turn = false;
            turns.since_ns = Some(now_ns);
            self.place_all(out);
            return now_ns.saturating_add(self.wait_ns() / LOOKS);
        }
        let end = since.saturating_add(if due == 0 { turns.owed_ns } else { most });
        if is_changed {
            self.place_all(out);
        }
        let poll = POLL_NS.max(LOOKING_IN_TURN.saturating_mul(threads * watch.takes_ns()));
        now_ns.saturating_add(poll).min(end)
    }

    /// About how long it takes to look at all that wait.
    fn looking_ns(&mut self, watch: &dyn Watch) -> u64 {
        let mut waiting = 0_u64;
        self.each_waiting(|_, _| waiting += 1);
        waiting.saturating_mul(watch.takes_ns())
    }

    /// How long a turn takes in which all have their part, and how much later in it than
    /// in the last one somebody may have his.
    fn turn_ns(&mut self, now_ns: u64, watch: &dyn Watch) -> (u64, u64) {
        let mut waiting = 0_u64;
        self.each_waiting(|_, node| {
            waiting += u64::from(node.waits_since(now_ns) && !node.is_asleep);
        });
        let out_of_order = waiting.min(OUT_OF_ORDER * watch.processors());
        // Critical threads have a part as well.
        let parts = [waiting + 1, out_of_order];
        parts.map(|it| self.turns.part_ns.saturating_mul(it)).into()
    }

    /// How long there is no turn after one of which urgent threads had so much of each
    /// processor: until what they did not have is no more than it may be.
    fn pause_ns(&self, turn_ns: u64, had_ns: u64) -> u64 {
        let had_ns = had_ns.min(turn_ns);
        let rest = beside(turn_ns - had_ns, 100 - self.percent_max().clamp(1, 90));
        rest.saturating_sub(had_ns)
    }

    fn percent_max(&self) -> u8 {
        let Settings {
            turn_percent,
            turn_percent_max,
            ..
        } = self.settings;
        turn_percent_max.max(turn_percent)
    }

    /// Sees who has run since the last look, and so is due no more, and what urgent threads
    /// had meanwhile. In a turn whoever is not due is not looked at, nor has a processor.
    /// Returns how many threads were looked at, and how many of them are still due.
    fn look(&mut self, now_ns: u64, watch: &mut dyn Watch) -> (u64, u32) {
        let before = core::mem::replace(&mut self.turns.looked_ns, now_ns);
        let (mut threads, mut due, mut fast_ns, mut gone_on) = (0, 0, 0_u64, 0);
        let turns = self.turns;
        self.each(|slot, node| {
            let may_run = !turns.is_turn || turns.is_for(node);
            if !(node.is_fast || node.is_waiting() && may_run) {
                return;
            }
            threads += 1;
            let cpu_ns = watch.cpu_ns(slot, node.tid);
            let is_known = cpu_ns.is_some() && node.ran_ns != 0;
            let had_ns = cpu_ns.map_or(u64::MAX, |it| it.saturating_sub(node.ran_cpu_ns));
            if node.is_fast && is_known {
                fast_ns += had_ns;
            }
            gone_on += u64::from(!node.is_fast && is_known && had_ns >= RAN_NS);
            if node.is_fast || !is_known || had_ns >= RAN_NS {
                // Perhaps right after it was looked at.
                node.ran_ns = if is_known { before } else { now_ns };
                node.ran_cpu_ns = cpu_ns.unwrap_or(0);
                (node.is_due, node.is_asleep) = (false, false);
            }
            due += u32::from(node.is_due);
        });
        let of_late = self.wait_ns() / 2;
        let turns = &mut self.turns;
        turns.fast_ns = turns.fast_ns.saturating_add(fast_ns);
        // In what there is to see at first they may have run at the end of the turn.
        if !turns.is_turn && turns.since_ns.is_some_and(|since| before > since) {
            turns.gone_on += gone_on;
            turns.gone_on_ns += now_ns.saturating_sub(before);
            if turns.gone_on_ns > of_late {
                (turns.gone_on, turns.gone_on_ns) = (turns.gone_on / 2, turns.gone_on_ns / 2);
            }
        }
        (threads, due)
    }

    /// Marks those that have waited for so long that they are due by then; how many.
    fn mark_due(&mut self, now_ns: u64, ahead_ns: u64, watch: &mut dyn Watch) -> u32 {
        let since = now_ns
            .saturating_add(ahead_ns)
            .saturating_sub(self.wait_ns());
        self.each_waiting(|_, node| node.is_due = node.waits_since(since));
        self.forget_asleep(now_ns, watch)
    }

    /// How long those have waited that wait.
    fn ages(&mut self, now_ns: u64) -> Ages {
        let mut ages = Ages::of(self.wait_ns());
        self.each_waiting(|_, node| {
            if node.waits_since(now_ns) && !node.is_asleep {
                ages.add(now_ns.saturating_sub(node.ran_ns));
            }
        });
        ages
    }

    fn known(&self, pace_ns: u64, watch: &dyn Watch) -> Known {
        Known {
            gone_on: self.turns.gone_on,
            gone_on_ns: self.turns.gone_on_ns,
            pace_ns,
            part_ns: self.turns.part_ns,
            processors: watch.processors(),
        }
    }

    /// Whoever was asleep half a wait ago, and is no more, has waited since then.
    fn wake(&mut self, now_ns: u64, watch: &mut dyn Watch) {
        let since = now_ns.saturating_sub(self.wait_ns() / 2);
        self.each_waiting(|slot, node| {
            if node.is_asleep && node.waits_since(since) {
                match watch.is_runnable(slot, node.tid) {
                    true => node.is_asleep = false,
                    false => node.ran_ns = now_ns,
                }
            }
        });
    }

    /// Whoever is due and wants no processor is due no more. Returns how many are.
    fn forget_asleep(&mut self, now_ns: u64, watch: &mut dyn Watch) -> u32 {
        let mut count = 0;
        self.each_waiting(|slot, node| {
            if node.is_due && !watch.is_runnable(slot, node.tid) {
                (node.is_due, node.is_asleep, node.ran_ns) = (false, true, now_ns);
            }
            count += u32::from(node.is_due);
        });
        count
    }

    /// All threads that have to wait for others, or would but for their turn.
    fn each_waiting(&mut self, mut act: impl FnMut(Slot, &mut Node)) {
        self.each(|slot, node| {
            if node.is_waiting() {
                act(slot, node);
            }
        });
    }

    fn each(&mut self, mut act: impl FnMut(Slot, &mut Node)) {
        let mut link = self.first;
        while let Some(at) = self.linked(link) {
            let node = &mut self.nodes[at];
            link = node.next;
            act(Slot(at as u32), node);
        }
    }
}

impl Node {
    /// Whether it has to wait for others, or would but for its turn.
    fn is_waiting(&self) -> bool {
        !(self.is_fast || self.is_excluded || self.is_bound || self.is_lazy)
    }

    /// Whether it is known not to have run since then.
    fn waits_since(&self, since_ns: u64) -> bool {
        self.ran_ns != 0 && self.ran_ns <= since_ns
    }
}

/// What is so much of the whole beside the rest.
fn beside(rest_ns: u64, percent: u8) -> u64 {
    let percent = u64::from(percent.clamp(1, 99));
    rest_ns / (100 - percent) * percent
}
