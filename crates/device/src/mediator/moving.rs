//! What is done to threads, once it is written down, and what programs do meanwhile.

use milieu_threads::kernel::{self, Errno};
use milieu_threads::mediator::{Action, Kind, Placement, Watch};
use milieu_threads::rung::{self, Return, Rung, scheduling};
use milieu_threads::table::{Region, Scheduling, Slot};

use super::groups::{self, LazyGroup};
use super::journal::{Record, is_as_given, own_nice};
use super::{Device, GONE, Known, News};
use crate::proc::{Files, Reader};

/// What the kernel says of threads of all programs.
pub(super) struct OfTheDevice<'d> {
    pub known: &'d [Option<Known>],
    pub reader: &'d mut Reader,
    /// Of how many of them files may be open.
    pub room: usize,
}

impl Watch for OfTheDevice<'_> {
    fn takes_ns(&self) -> u64 {
        1_200
    }

    fn processors(&self) -> u64 {
        kernel::processors()
    }

    fn cpu_ns(&mut self, slot: Slot, tid: u32) -> Option<u64> {
        let at = slot.0 as usize;
        let known = self.known.get(at)?.as_ref()?;
        let files = match known.files.get() {
            Some(files) => files,
            None => {
                let has_room = at < self.room;
                let files = has_room.then(|| Files::of(known.process, tid)).flatten();
                let stat = files.as_ref().map(|it| self.reader.stat_of(it));
                // Its number may be that of another by now.
                if stat.is_some_and(|it| it.is_none_or(|it| it.start != known.start)) {
                    return None;
                }
                known.files.get_or_init(|| files)
            }
        };
        let times = match files {
            Some(files) => self.reader.times_of(files),
            None => self.reader.times(known.process, tid),
        };
        times.map(|it| it.run_ns)
    }

    fn is_runnable(&mut self, slot: Slot, tid: u32) -> bool {
        let known = self.known.get(slot.0 as usize).and_then(Option::as_ref);
        let stat = known.and_then(|it| match it.files.get() {
            Some(Some(files)) => self.reader.stat_of(files),
            _ => self.reader.stat(it.process, tid),
        });
        stat.is_some_and(|it| it.state == 'R')
    }
}

impl Device<'_> {
    /// Demotes critical threads that have run away.
    pub(super) fn observe(&mut self) {
        let fast: Vec<(Slot, u32)> = self.machine.fast_threads().collect();
        for (slot, thread) in fast {
            let Some(known) = &self.known[slot.0 as usize] else {
                continue;
            };
            let process = known.process;
            let times = self.reader.times(process, thread);
            let switches = self.reader.switches(process, thread);
            let (Some(times), Some(switches)) = (times, switches) else {
                continue;
            };
            let mut actions = Vec::new();
            let (run, blockings) = (times.run_ns, switches.voluntary);
            let is_demoted = self
                .machine
                .observe(slot, run, blockings, &mut |it| actions.push(it));
            if is_demoted {
                if let Some(known) = &mut self.known[slot.0 as usize] {
                    known.is_demoted = true;
                    let program = self.programs.get(&process);
                    self.news.push(News::Demoted {
                        thread,
                        role: known.attributes.role(),
                        program: program.map_or(String::new(), |it| it.name.name.clone()),
                    });
                }
            }
            if self.machine.settings().leaves_while_blocked {
                let is_blocked = !self.runs(slot, thread);
                self.machine
                    .set_blocked(slot, is_blocked, &mut |it| actions.push(it));
            }
            self.perform(actions);
        }
    }

    /// Critical threads that were blocked and go on count again.
    pub(super) fn observe_blocked(&mut self) {
        let blocked: Vec<(Slot, u32)> = self.machine.blocked_threads().collect();
        for (slot, thread) in blocked {
            if self.runs(slot, thread) {
                let mut actions = Vec::new();
                self.machine
                    .set_blocked(slot, false, &mut |it| actions.push(it));
                self.perform(actions);
            }
        }
    }

    /// Whether a thread has a processor or wants one.
    fn runs(&mut self, slot: Slot, thread: u32) -> bool {
        OfTheDevice {
            known: &self.known,
            reader: &mut self.reader,
            room: 0,
        }
        .is_runnable(slot, thread)
    }

    /// What a program has changed of a thread that is elsewhere is what it returns to.
    pub(super) fn take_wishes(&mut self) {
        let moved: Vec<u32> = match &self.journal {
            Some(journal) => journal.moved().keys().copied().collect(),
            None => return,
        };
        for thread in moved {
            let Some(slot) = self.by_thread.get(&thread).copied() else {
                continue;
            };
            let Some(known) = &mut self.known[slot as usize] else {
                continue;
            };
            let Ok(here) = scheduling::of(thread) else {
                continue;
            };
            let nice = own_nice(&here, &known.given, &known.own);
            if nice != known.own.nice {
                known.own.nice = nice;
                let record = record(known);
                self.note(vec![record]);
                continue;
            }
            if is_as_given(&here, &known.given) {
                continue;
            }
            if scheduling::is_realtime(here.policy) {
                // It runs in real time from now on, and is left alone.
                known.region = Region::Own;
                known.kind = Kind::Excluded;
                known.is_realtime = true;
                let mut actions = Vec::new();
                self.machine
                    .set_kind(Slot(slot), Kind::Excluded, &mut |it| actions.push(it));
                self.forget(&[thread]);
                continue;
            }
            known.take_wish(&here);
            self.give_again(slot);
        }
    }

    /// What a thread returns to that is elsewhere has changed: so does what it has there.
    pub(super) fn give_again(&mut self, slot: u32) {
        let placement = self.machine.placement(Slot(slot));
        let known = self.known[slot as usize].as_mut();
        let (Some(placement), Some(known)) = (placement, known) else {
            return;
        };
        if !known.is_there(&mut self.reader) {
            return;
        }
        known.given = rung::wanted(self.rung, Return::Always, placement, &known.own);
        let (thread, given, record) = (known.thread, known.given, record(known));
        if self.note(vec![record]) {
            let slice_ns = rung::slice_ns(self.rung, placement);
            let _ = scheduling::set_with_slice(thread, &given, slice_ns);
        }
    }

    /// Does what the machine says, once it is written down.
    pub(super) fn perform(&mut self, actions: Vec<Action>) {
        let mut todo = Vec::new();
        let mut records = Vec::new();
        for action in actions {
            let slot = action.slot.0 as usize;
            let Some(known) = self.known.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            if known.thread != action.tid {
                continue;
            }
            // It goes where it belongs when it leaves.
            if known.visits > 0 && action.placement != Placement::Own {
                continue;
            }
            if !known.is_there(&mut self.reader) {
                continue;
            }
            let Ok(own) = scheduling::of(known.thread) else {
                continue;
            };
            if known.region != Region::Own {
                known.take_wish(&own);
            }
            if action.placement == Placement::Own {
                if known.region != Region::Own {
                    todo.push(action);
                }
                continue;
            }
            if known.region == Region::Own {
                // By ways that nobody has told of: it is the program's.
                if scheduling::is_realtime(own.policy) {
                    continue;
                }
                known.own = own;
                known.home = match &self.group {
                    Some(_) => groups::home_of(known.process, known.thread),
                    None => None,
                };
            }
            known.given = rung::wanted(self.rung, Return::Always, action.placement, &known.own);
            records.push(record(known));
            todo.push(action);
        }
        if !self.note(records) {
            todo.retain(|it| it.placement == Placement::Own);
        }
        let mut back = Vec::new();
        for action in todo {
            let slot = action.slot.0 as usize;
            let Some(known) = self.known[slot].as_mut() else {
                continue;
            };
            match put(known, self.rung, self.group.as_ref(), action.placement) {
                Ok(()) => known.region = action.placement.region(),
                Err(error) if error == GONE => {}
                Err(error) => {
                    let (process, thread) = (known.process, known.thread);
                    if let Some(program) = self.programs.get_mut(&process) {
                        if !std::mem::replace(&mut program.was_refused, true) {
                            self.news.push(News::Refused {
                                thread,
                                program: program.name.name.clone(),
                                error,
                            });
                        }
                    }
                }
            }
            let is_back = self.known[slot].as_ref();
            if is_back.is_some_and(|it| it.region == Region::Own) {
                back.push(action.tid);
            }
        }
        self.forget(&back);
    }

    /// Whether it is written down, and so may be done.
    pub(super) fn note(&mut self, records: Vec<Record>) -> bool {
        let Some(journal) = &mut self.journal else {
            return false;
        };
        match journal.note(records) {
            Ok(()) => true,
            Err(error) => {
                if !std::mem::replace(&mut self.is_journal_lost, true) {
                    self.news.push(News::NoJournal(error.to_string()));
                }
                false
            }
        }
    }

    pub(super) fn forget(&mut self, threads: &[u32]) {
        if let Some(journal) = &mut self.journal {
            // What is not forgotten is undone once more, which does no harm.
            let _ = journal.forget(threads);
        }
    }
}

impl Known {
    /// Whether it has not ended. Its number may be that of another by now, which its files
    /// would not tell of.
    pub(super) fn is_there(&self, reader: &mut Reader) -> bool {
        match self.files.get() {
            Some(Some(files)) => reader.times_of(files).is_some(),
            _ => {
                let stat = reader.stat(self.process, self.thread);
                stat.is_some_and(|it| it.start == self.start)
            }
        }
    }

    /// Of what a thread has, which is elsewhere, only what differs from what it was
    /// given was the program's doing.
    pub(super) fn take_wish(&mut self, here: &Scheduling) {
        self.own.nice = own_nice(here, &self.given, &self.own);
        if is_as_given(here, &self.given) || scheduling::is_realtime(here.policy) {
            return;
        }
        if here.policy != self.given.policy {
            self.own.policy = here.policy;
        }
        if here.nice != self.given.nice {
            self.own.nice = here.nice;
        }
    }
}

pub(super) fn record(known: &Known) -> Record {
    Record {
        process: known.process,
        thread: known.thread,
        start: known.start,
        own: known.own,
        given: known.given,
        home: known.home.clone(),
    }
}

/// Puts a thread where it belongs.
fn put(known: &Known, rung: Rung, group: Option<&LazyGroup>, to: Placement) -> Result<(), Errno> {
    let is_lazy = to.region() == Region::Lazy;
    if let (Some(group), Some(home)) = (group, &known.home) {
        if is_lazy {
            group.take(known.thread)?;
        } else {
            groups::bring_home(known.thread, home)?;
        }
    }
    let wanted = if to == Placement::Own {
        known.own
    } else {
        known.given
    };
    scheduling::set_with_slice(known.thread, &wanted, rung::slice_ns(rung, to))
}
