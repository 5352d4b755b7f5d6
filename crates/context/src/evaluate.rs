//! Evaluating values: finding them by their names of now, and putting them into
//! their fields.

use crate::{
    core::{Core, Undo},
    field::Cell,
    resolve::Layers,
    schema::{Planned, Touched},
};

impl Core {
    /// Marks no value.
    pub fn begin_round(&mut self) {
        self.mark += 1;
        self.marks.resize(self.plan.values.len(), 0);
    }

    /// Marks the values whose current names are among `hashes`, and those whose
    /// names are several; says whether there are any.
    pub fn mark_keys(&mut self, hashes: &[u64]) -> bool {
        self.begin_round();
        let mut any = false;
        let values = self.plan.values.iter().zip(&self.hashes);
        for ((planned, hash), mark) in values.zip(&mut self.marks) {
            if hashes.contains(hash) || planned.spec.has_alternates() {
                *mark = self.mark;
                any = true;
            }
        }
        any
    }

    /// Evaluates every value.
    ///
    /// # Safety
    ///
    /// As [`reevaluate`](Core::reevaluate).
    pub unsafe fn evaluate_all(&mut self, environment: *mut u8) {
        let plan = self.plan_ref();
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.evaluate_touched(environment, &plan.all, false) };
    }

    /// Evaluates all that `touched` lists.
    ///
    /// One piece of code for whoever enters, switches or synchronizes: what one
    /// of them has run, the next one finds in the cache.
    ///
    /// # Safety
    ///
    /// As [`reevaluate`](Core::reevaluate).
    #[inline(never)]
    pub unsafe fn evaluate_touched(
        &mut self,
        environment: *mut u8,
        touched: &Touched,
        record: bool,
    ) {
        // SAFETY: as the caller vouches.
        unsafe { self.evaluate(environment, touched, record, |_, _| true) };
    }

    /// Evaluates the values in `touched` for which `wanted` holds.
    ///
    /// # Safety
    ///
    /// As [`reevaluate`](Core::reevaluate).
    #[inline]
    pub unsafe fn evaluate(
        &mut self,
        environment: *mut u8,
        touched: &Touched,
        record: bool,
        wanted: impl Fn(&mut Marks<'_>, u32) -> bool,
    ) {
        let layers = Layers(&self.layers);
        let values = &self.plan.values;
        let mut marks = Marks {
            marks: &mut self.marks,
            mark: self.mark,
        };
        let mut put = |index: u32, planned: &Planned, cell: Cell, hash: u64| {
            // SAFETY: the plan's offsets and kinds are those of the environment;
            // the cell was made for the value's kind (`ValueSpec::cell`).
            let cell = unsafe {
                let field = environment.add(planned.offset as usize);
                cell.exchange(planned.shape, field)
            };
            let hash = std::mem::replace(&mut self.hashes[index as usize], hash);
            if record {
                self.undo.push(Undo {
                    value: index,
                    cell,
                    hash,
                });
            }
        };
        for group in &touched.groups {
            let mut found = None;
            for &index in &group.values {
                if !wanted(&mut marks, index) {
                    continue;
                }
                // Of most groups nothing is wanted when a key has changed.
                let (parent, row) = *found.get_or_insert_with(|| {
                    let parent = group.parent.hash(layers);
                    (parent, self.root.row(parent))
                });
                let planned = &values[index as usize];
                let base = planned.base(layers);
                let guess = &mut self.guesses[index as usize];
                let column = row.and_then(|row| row.column_near(&self.root, base, guess));
                put(index, planned, planned.cell(column), parent.then(base).main);
            }
        }
        for &index in &touched.single {
            if wanted(&mut marks, index) {
                let planned = &values[index as usize];
                let column = planned.spec.find(&self.root, layers);
                let hash = planned.spec.own.place(layers).hash();
                put(index, planned, planned.cell(column), hash);
            }
        }
    }
}

/// Which values this round has evaluated already.
pub struct Marks<'a> {
    marks: &'a mut [u64],
    mark: u64,
}

/// Wants each value once a round.
pub fn changed_once(marks: &mut Marks<'_>, index: u32) -> bool {
    std::mem::replace(&mut marks.marks[index as usize], marks.mark) != marks.mark
}

/// Wants the values that are marked.
pub fn marked(marks: &mut Marks<'_>, index: u32) -> bool {
    marks.marks[index as usize] == marks.mark
}
