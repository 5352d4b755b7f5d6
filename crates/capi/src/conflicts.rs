//! Functions of the program that decide conflicts.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use milieu::{
    Error,
    store::{Author, Conflict, Resolution, Strategy},
};

use crate::{
    abi::{MILIEU_OK, milieu_author, milieu_conflict, milieu_result, milieu_text},
    call::{Before, Failure, Said, call, null},
    coordinator::{Coordinator, milieu_coordinator},
    files::{branch_of, strategy_of},
    handle,
    lent::{Lend, Lent},
};

/// What becomes of a key.
pub struct Decision(Resolution);

impl Lend for Decision {
    const TAG: [u8; 4] = *b"deci";
    const NAME: &'static str = "milieu_decision";
}

/// See `files.h`.
#[allow(non_camel_case_types)]
pub type milieu_decision = Lent<Decision>;

type Decide = unsafe extern "C" fn(
    user: *mut c_void,
    conflict: *const milieu_conflict,
    decision: *mut milieu_decision,
) -> milieu_result;

/// See `files.h`.
#[allow(non_camel_case_types)]
pub type milieu_decide = Option<Decide>;

impl milieu_author {
    /// Nobody, as far as it is known.
    const UNKNOWN: milieu_author = milieu_author {
        user: milieu_text::EMPTY,
        program: milieu_text::EMPTY,
        host: milieu_text::EMPTY,
        process: 0,
    };

    /// As the other side reads it, for as long as the author is there.
    pub(crate) fn of(author: &Author) -> Self {
        milieu_author {
            user: milieu_text::of(&author.user),
            program: milieu_text::of(&author.program),
            host: milieu_text::of(&author.host),
            process: author.process,
        }
    }
}

/// Has the program decide what conflicts `work` meets.
pub(crate) fn deciding<T>(
    decide: Decide,
    user: *mut c_void,
    work: impl FnOnce(&mut dyn FnMut(&Conflict) -> Resolution) -> Result<T, Error>,
) -> Result<T, Failure> {
    let mut failed = None;
    let done = work(&mut |conflict| {
        // Of others it is not asked any more: nothing is written.
        if failed.is_some() {
            return Resolution::Refuse;
        }
        let decided = ask(decide, user, conflict);
        decided.unwrap_or_else(|failure| {
            failed = Some(failure);
            Resolution::Refuse
        })
    });
    match failed {
        Some(failure) => Err(failure),
        None => Ok(done?),
    }
}

fn ask(decide: Decide, user: *mut c_void, conflict: &Conflict) -> Result<Resolution, Failure> {
    let text = |value: &Option<String>| milieu_text::of_some(value.as_deref());
    let name = conflict.name.as_str();
    let shown = milieu_conflict {
        name: milieu_text::of(name),
        base: text(&conflict.base),
        ours: text(&conflict.ours),
        theirs: text(&conflict.theirs),
        by: conflict
            .by
            .as_ref()
            .map_or(milieu_author::UNKNOWN, milieu_author::of),
        secret: conflict.secret,
    };
    let before = Before::callback();
    let (result, Decision(resolution)) = Lent::during(Decision(Resolution::Refuse), |decision| {
        // SAFETY: the program has handed over both for this; everything is there
        // during the call.
        unsafe { decide(user, &raw const shown, decision) }
    });
    match result {
        MILIEU_OK => Ok(resolution),
        result => {
            let Said { why, with } = before.said(result);
            Err(Failure::of_callback(
                format_args!("the decision about `{name}` has failed: {why}"),
                with,
            ))
        }
    }
}

/// Decides for one of the values.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decision_choose(
    decision: *mut milieu_decision,
    strategy: c_int,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let Decision(decision) = unsafe { Lent::find(decision)? };
        *decision = match strategy_of(strategy)? {
            Strategy::Refuse => Resolution::Refuse,
            Strategy::Ours => Resolution::Ours,
            Strategy::Theirs => Resolution::Theirs,
        };
        Ok(())
    })
}

/// Decides for another value.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decision_value(
    decision: *mut milieu_decision,
    value: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Decision(decision), value) = unsafe { (Lent::find(decision)?, value.read("value")?) };
        *decision = Resolution::Value(Some(value.to_owned()));
        Ok(())
    })
}

/// Decides for no value.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decision_remove(decision: *mut milieu_decision) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let Decision(decision) = unsafe { Lent::find(decision)? };
        *decision = Resolution::Value(None);
        Ok(())
    })
}

/// Writes what the program has assigned, and asks about conflicts.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_persist_deciding(
    coordinator: *const milieu_coordinator,
    branch: milieu_text,
    decide: milieu_decide,
    user: *mut c_void,
    written: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), branch, written) = unsafe {
            (
                handle::shared(coordinator)?,
                branch.read("branch")?,
                written.as_mut(),
            )
        };
        let decide = decide.ok_or_else(|| null("decide"))?;
        // Whoever decides may give the handle back.
        let milieu = Arc::clone(milieu);
        let branch = branch_of(branch);
        let persisted = deciding(decide, user, |decide| {
            milieu.persist_with(&[branch], decide)
        })?;
        if let Some(written) = written {
            *written = persisted.names.len();
        }
        Ok(())
    })
}
