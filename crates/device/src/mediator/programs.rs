//! Which programs and threads there are, and what they are for.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use milieu_threads::attributes::Attributes;
use milieu_threads::mediator::{Kind, Placement};
use milieu_threads::rung::{self, Return, scheduling};
use milieu_threads::table::{Entry, Region, Scheduling, Slot, View};

use super::journal::is_as_given;
use super::moving::record;
use super::{Device, Known, Name, News, Program, SELDOM, SOON, groups};
use crate::proc;

impl Device<'_> {
    pub(super) fn processes(&mut self) {
        let listed = proc::processes();
        let there: HashSet<u32> = listed.iter().copied().collect();
        let ended: Vec<u32> = self
            .programs
            .keys()
            .copied()
            .filter(|it| !there.contains(it))
            .collect();
        // Those that are new may have been begun by those that have ended.
        for process in &listed {
            self.notice_exec(*process);
            if !self.programs.contains_key(process) {
                self.admit(*process);
            }
            self.look_for_table(*process);
            // Also where they are not moved: how long they wait is seen.
            let is_all = self.busy_since_ns.is_some();
            let program = self.programs.get(process);
            let counts = |it: &Program| !it.is_left_alone && (is_all || it.is_interesting());
            if program.is_some_and(counts) {
                let threads = proc::threads(*process);
                self.threads_of(*process, &threads);
            }
        }
        ended.into_iter().for_each(|it| self.drop_program(it));
    }

    /// Whoever begins a program is, for a moment, what begins it; and a shell can
    /// become any other. One that has registered has told that it is there.
    pub(super) fn notice_exec(&mut self, process: u32) {
        let Some(program) = self.programs.get(&process) else {
            return;
        };
        if program.view.is_some() || program.is_kernel {
            return;
        }
        let stat = self.reader.stat(process, process);
        if stat.is_none_or(|it| it.name != program.name.name) {
            self.drop_program(process);
        }
    }

    /// Gets to know a program.
    pub(super) fn admit(&mut self, process: u32) -> Option<()> {
        let stat = self.reader.stat(process, process)?;
        let user = proc::user(process)?;
        let path = std::fs::read_link(format!("/proc/{process}/exe"));
        let name = Name {
            name: stat.name,
            path: path.map_or(String::new(), |it| it.to_string_lossy().into_owned()),
        };
        let rules = &self.plan.rules;
        // Who starts all others waits for nobody, and is moved by nobody.
        let is_left_alone = stat.is_kernel
            || process == 1
            || process == std::process::id()
            || self.plan.left_alone.contains(&process)
            || !rules.is_meant(&name);
        let is_trusted = self.is_trusted(user);
        self.programs.insert(
            process,
            Program {
                group: rules.group(&name),
                is_left_alone,
                is_kernel: stat.is_kernel,
                is_trusted,
                has_rules: is_trusted && rules.has_critical(&name),
                name,
                view: None,
                was_refused: false,
                looks: 0,
                threads: HashSet::new(),
            },
        );
        Some(())
    }

    /// A program that has a table and has not registered mediates itself: two that
    /// move the same threads would each take the other's doing for the program's.
    pub(super) fn look_for_table(&mut self, process: u32) {
        let Some(program) = self.programs.get_mut(&process) else {
            return;
        };
        program.looks = program.looks.wrapping_add(1);
        let is_due = program.looks <= SOON || program.looks % SELDOM == 0;
        let is_wanted = program.view.is_none() && !program.is_left_alone;
        if is_due && is_wanted && View::of_process(process).is_ok() {
            program.is_left_alone = true;
            let threads = std::mem::take(&mut program.threads);
            threads.into_iter().for_each(|it| self.drop_thread(it));
        }
    }

    pub(super) fn drop_program(&mut self, process: u32) {
        let Some(program) = self.programs.remove(&process) else {
            return;
        };
        for thread in program.threads {
            self.drop_thread(thread);
        }
    }

    /// Takes in which threads a program has, and what they are for.
    pub(super) fn threads_of(&mut self, process: u32, listed: &[u32]) {
        let Some(program) = self.programs.get_mut(&process) else {
            return;
        };
        if program.is_left_alone {
            return;
        }
        let there: HashSet<u32> = listed.iter().copied().collect();
        // The list may lack some of those that are there, when others end meanwhile.
        let missing = program.threads.difference(&there).copied();
        let ended: Vec<u32> = missing.filter(|it| !proc::has(process, *it)).collect();
        program.threads.retain(|it| !ended.contains(it));
        ended.into_iter().for_each(|it| self.drop_thread(it));
        let program = &self.programs[&process];
        let entries: HashMap<u32, Entry> = match &program.view {
            Some(view) => view.iter().map(|(_, it)| (it.tid, it)).collect(),
            None => HashMap::new(),
        };
        for thread in listed {
            let entry = entries.get(thread);
            match self.known_slot(process, *thread) {
                Some(slot) => self.update_thread(slot, entry),
                None => self.admit_thread(process, *thread, entry),
            }
        }
    }

    /// What becomes of a thread, by what it is for and by the rules.
    pub(super) fn kind_of(
        &self,
        process: u32,
        name: &str,
        entry: Option<&Entry>,
    ) -> (Attributes, Kind) {
        let program = &self.programs[&process];
        let mut attributes = entry.map(|it| it.attributes).unwrap_or_default();
        let by_rules = self.plan.rules.critical(&program.name, name);
        if let Some(priority) = by_rules.filter(|_| !attributes.is_time_critical()) {
            attributes = attributes.time_critical(priority);
        }
        let kind = match program.group.kind(&attributes) {
            _ if entry.is_some_and(|it| it.is_excluded) => Kind::Excluded,
            Kind::Critical(_) if !program.is_trusted => Kind::Ordinary,
            kind => kind,
        };
        (attributes, kind)
    }

    pub(super) fn admit_thread(&mut self, process: u32, thread: u32, entry: Option<&Entry>) {
        let Some(stat) = self.reader.stat(process, thread) else {
            return;
        };
        // Another that had its number has ended.
        self.drop_thread(thread);
        let (attributes, kind) = self.kind_of(process, &stat.name, entry);
        let may_wait = kind != Kind::Excluded;
        let Ok(here) = scheduling::of(thread) else {
            return;
        };
        let raised = self.raised(process, stat.parent, stat.start, &here);
        let here = match raised.filter(|it| scheduling::set(thread, it).is_ok()) {
            Some(own) => own,
            None => here,
        };
        let inherited = self.inherited(process, thread, stat.parent, stat.start, &here);
        // Others are noted as well, to be seen and to be looked at again when they are named
        // or set.
        if (!may_wait && inherited.is_none() && entry.is_none())
            && !self.programs[&process].has_rules
        {
            return;
        }
        let is_realtime = scheduling::is_realtime(here.policy);
        let kind = if is_realtime { Kind::Excluded } else { kind };
        let Some(slot) = self.free.pop() else {
            if !std::mem::replace(&mut self.has_too_many, true) {
                self.news.push(News::TooMany);
            }
            return;
        };
        let from = match &inherited {
            Some(_) => Region::Lazy,
            None => Region::Own,
        };
        let (own, home) = inherited.unwrap_or((here, None));
        let known = Known {
            process,
            thread,
            files: OnceCell::new(),
            start: stat.start,
            attributes,
            kind,
            region: from,
            own,
            given: here,
            home,
            is_demoted: false,
            is_new: true,
            is_realtime,
            visits: 0,
        };
        if from == Region::Lazy {
            // It is as if it had been moved.
            let record = record(&known);
            if !self.note(vec![record]) {
                self.free.push(slot);
                return;
            }
        }
        self.known[slot as usize] = Some(known);
        self.by_thread.insert(thread, slot);
        if let Some(program) = self.programs.get_mut(&process) {
            program.threads.insert(thread);
        }
        let mut actions = Vec::new();
        let (at, kind) = (Slot(slot), self.moved_kind(kind));
        self.machine
            .add_from(at, thread, kind, from, &mut |it| actions.push(it));
        self.perform(actions);
    }

    /// What the machine is told of a thread: who is not to be moved is, unless a critical
    /// one waits for it.
    pub(super) fn moved_kind(&self, kind: Kind) -> Kind {
        if kind == Kind::Ordinary && !self.moves_others() {
            Kind::Spared
        } else {
            kind
        }
    }

    /// What a thread returns to that was begun by a lazy one: what that had.
    pub(super) fn inherited(
        &self,
        process: u32,
        thread: u32,
        parent: u32,
        start: u64,
        here: &Scheduling,
    ) -> Option<(Scheduling, Option<String>)> {
        let lazy = |of: &u32| {
            let slot = self.by_thread.get(of)?;
            let known = self.known[*slot as usize].as_ref()?;
            (known.region == Region::Lazy).then_some(known)
        };
        // Its process's threads, or those of the process that began this one: one that has
        // what this one has, or any.
        let lazy_of = |process: u32| {
            let threads = self.programs.get(&process)?.threads.iter();
            let mut all = threads.clone().filter_map(lazy);
            let same = all.find(|it| is_as_given(here, &it.given));
            same.or_else(|| threads.clone().find_map(lazy))
        };
        let creator = lazy_of(process).or_else(|| lazy_of(parent));
        // Or it began while others were lazy, and who began it has ended.
        let is_young = self.is_young(start);
        if creator.is_none() && !(is_young && self.moves_others()) {
            return None;
        }
        if self.group.is_some() {
            // If it is in our group, its home is that of its creator, or the root.
            if !groups::is_lazy(process, thread) {
                return None;
            }
            let home = creator.and_then(|it| it.home.clone());
            return Some((*here, Some(home.unwrap_or_else(|| "/".to_owned()))));
        }
        let default = Scheduling {
            is_reset_on_fork: here.is_reset_on_fork,
            ..Scheduling::default()
        };
        let own = creator.map_or(default, |it| it.own.handed_on());
        let placements: &[Placement] = match self.moves_others() {
            true => &[Placement::Lazy, Placement::Bound],
            false => &[Placement::Bound],
        };
        let lazy = |it: &Placement| rung::wanted(self.rung, Return::Always, *it, &own);
        let is_lazy = placements.iter().any(|it| is_as_given(here, &lazy(it)));
        (is_lazy && !is_as_given(here, &own)).then_some((own, None))
    }

    /// What a thread has by nature that was begun by one of the fast region, and is not in
    /// real time: the nice value of that is its own now.
    fn raised(
        &self,
        process: u32,
        parent: u32,
        start: u64,
        here: &Scheduling,
    ) -> Option<Scheduling> {
        let is_young = self.is_young(start);
        if !self.moves_others() || !is_young {
            return None;
        }
        let creators = [process, parent];
        let programs = creators.iter().filter_map(|it| self.programs.get(it));
        let threads = programs.flat_map(|it| it.threads.iter());
        let slots = threads.filter_map(|it| self.by_thread.get(it));
        let mut known = slots.filter_map(|it| self.known[*it as usize].as_ref());
        let is_it = |it: &&Known| {
            it.region == Region::Fast && is_as_given(here, &it.given) && !is_as_given(here, &it.own)
        };
        known.find(is_it).map(|it| it.own.handed_on())
    }

    /// Whether a thread began while somebody was in the fast region.
    fn is_young(&self, start: u64) -> bool {
        self.busy_since_ns.is_some_and(|since| {
            start.saturating_mul(crate::monitor::tick_ns()) >= since.saturating_sub(1_000_000_000)
        })
    }

    pub(super) fn update_thread(&mut self, slot: u32, entry: Option<&Entry>) {
        let Some(known) = &mut self.known[slot as usize] else {
            return;
        };
        let (process, thread) = (known.process, known.thread);
        let was_realtime = known.is_realtime;
        if was_realtime {
            let here = scheduling::of(thread);
            known.is_realtime = here.is_ok_and(|it| scheduling::is_realtime(it.policy));
        }
        let is_realtime = known.is_realtime;
        let needs_name = self.programs[&process].has_rules;
        if entry.is_none() && !needs_name && is_realtime == was_realtime {
            return;
        }
        let name = if needs_name {
            // Threads are named after they have begun.
            let stat = self.reader.stat(process, thread);
            stat.map_or(String::new(), |it| it.name)
        } else {
            String::new()
        };
        let (attributes, kind) = self.kind_of(process, &name, entry);
        let kind = if is_realtime { Kind::Excluded } else { kind };
        let Some(known) = &mut self.known[slot as usize] else {
            return;
        };
        if known.attributes == attributes && known.kind == kind {
            return;
        }
        known.attributes = attributes;
        known.is_demoted = false;
        known.kind = kind;
        let kind = self.moved_kind(kind);
        let mut actions = Vec::new();
        self.machine
            .set_kind(Slot(slot), kind, &mut |it| actions.push(it));
        self.perform(actions);
    }

    pub(super) fn drop_thread(&mut self, thread: u32) {
        let Some(slot) = self.by_thread.remove(&thread) else {
            return;
        };
        let mut actions = Vec::new();
        // It may be there, only not looked after any more: it returns first.
        self.machine
            .set_kind(Slot(slot), Kind::Excluded, &mut |it| actions.push(it));
        self.perform(std::mem::take(&mut actions));
        self.machine.remove(Slot(slot), &mut |it| actions.push(it));
        if let Some(known) = self.known[slot as usize].take() {
            if let Some(program) = self.programs.get_mut(&known.process) {
                program.threads.remove(&thread);
            }
        }
        self.free.push(slot);
        self.perform(actions);
        self.forget(&[thread]);
    }
}
