//! Where a thread is while it has the mediator's lock, or waits for it: never in the lazy
//! region, or whoever needs the lock next would wait until a lazy thread goes on.
//!
//! Threads are moved by whoever has the lock, with two exceptions, both of this thread
//! alone. It *comes home* before it asks for the lock ([`come_home`]), and is left where it
//! is from then on; and when it has let the lock go and belongs in the lazy region, it
//! *goes* there by itself ([`go`]). Its line of the table says so, so that whoever has the
//! lock meanwhile, and has perhaps begun to move it right before, takes back what would make
//! it lazy ([`put`]); and so that what it does to itself too late is not the last word.

#[cfg(all(test, loom))]
mod models;

use crate::kernel::Errno;
use crate::mediator::{Action, Placement};
use crate::table::{Lines, Region, Scheduling, Slot};

/// Who moves threads: a rung, or what a model has in its place.
pub(crate) trait Mover {
    /// How the kernel schedules a thread.
    fn own(&self, tid: u32) -> Result<Scheduling, Errno>;

    /// Whether this is none of ours to change.
    fn is_left_alone(&self, own: &Scheduling) -> bool;

    /// Puts a thread from one place to another.
    fn apply(
        &self,
        tid: u32,
        from: Placement,
        to: Placement,
        own: &Scheduling,
    ) -> Result<(), Errno>;
}

/// A thread that is at home, and is not made lazy, until it leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visitor {
    pub identity: u64,
    pub slot: Slot,
    pub tid: u32,
    /// It has been lazy, so it may have been told meanwhile to be elsewhere.
    pub has_come: bool,
}

/// A thread that is to make itself lazy, and has let the lock go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Going {
    pub visitor: Visitor,
    to: Placement,
    own: Scheduling,
}

/// This thread is about to ask for the lock. `is_lazy` if it may be lazy, whatever its line
/// says. None if it is not listed, visits already, or cannot come home.
pub(crate) fn come_home(
    lines: Lines<'_>,
    identity: u64,
    tid: u32,
    is_lazy: bool,
    mover: &impl Mover,
) -> Option<Visitor> {
    let mut before = None;
    let updated = lines.update(identity, |it| {
        if it.tid == tid && !it.is_visiting {
            before = Some(*it);
            it.is_visiting = true;
            it.is_going = false;
        }
    });
    let (slot, before) = (updated.ok()?, before?);
    let has_come = is_lazy || before.is_going || before.region == Region::Lazy;
    if has_come {
        let mut own = before.own;
        loop {
            if mover
                .apply(tid, Placement::Lazy, Placement::Own, &own)
                .is_err()
            {
                let _ = lines.update(identity, |it| it.is_visiting = false);
                return None;
            }
            let applied = own;
            let _ = lines.update(identity, |it| {
                own = it.own;
                if own == applied && it.region == Region::Lazy {
                    it.region = Region::Own;
                }
            });
            // The program has wished for something else meanwhile.
            if own == applied {
                break;
            }
        }
    }
    Some(Visitor {
        identity,
        slot,
        tid,
        has_come,
    })
}

/// It has the lock: the region where it is.
pub(crate) fn arrive(lines: Lines<'_>, visitor: &Visitor) -> Region {
    let mut region = Region::Own;
    let _ = lines.update(visitor.identity, |it| {
        // Whoever has made it urgent meanwhile may have done so before it was home.
        if visitor.has_come || it.region == Region::Lazy {
            it.region = Region::Own;
        }
        region = it.region;
    });
    region
}

/// It is about to let the lock go, and stays where it is or goes `to` the lazy region.
pub(crate) fn leave(
    lines: Lines<'_>,
    visitor: Visitor,
    to: Option<Placement>,
    mover: &impl Mover,
) -> Option<Going> {
    let going = to.filter(|it| it.region() == Region::Lazy).and_then(|to| {
        let own = mover.own(visitor.tid).ok()?;
        (!mover.is_left_alone(&own)).then_some(Going { visitor, to, own })
    });
    let _ = lines.update(visitor.identity, |it| {
        it.is_visiting = false;
        if let Some(Going { own, .. }) = going {
            it.own = own;
            it.region = Region::Lazy;
            it.is_going = true;
        }
    });
    going
}

/// It has let the lock go, and goes. True if it was moved meanwhile: then it may have made
/// itself lazy too late, and has to come home once more.
pub(crate) fn go(lines: Lines<'_>, going: &Going, mover: &impl Mover) -> Result<bool, Errno> {
    let tid = going.visitor.tid;
    let said = mover.apply(tid, Placement::Own, going.to, &going.own);
    let mut was_moved = false;
    let updated = lines.update(going.visitor.identity, |it| {
        it.is_going = false;
        if it.region != Region::Lazy {
            was_moved = true;
        } else if said.is_err() {
            it.region = Region::Own;
        }
    });
    said.map(|()| updated.is_ok() && was_moved)
}

/// What became of a thread that was to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is there, or is left alone.
    Done,
    /// It is about to make itself lazy, and may do so afterwards.
    Doubtful,
}

/// Whoever has the lock puts a thread elsewhere.
pub(crate) fn put(lines: Lines<'_>, action: Action, mover: &impl Mover) -> Result<Put, Errno> {
    let gone = Errno(libc::ESRCH);
    let Action {
        slot,
        tid,
        placement,
    } = action;
    let entry = lines.at(slot).map_err(|_| gone)?;
    if entry.tid != tid {
        return Err(gone);
    }
    let region = placement.region();
    if entry.is_visiting && [entry.region, region].contains(&Region::Lazy) {
        // It is looked at when it has the lock. What it does to come home is done here as
        // well: it may not have a processor for it.
        if entry.region == Region::Lazy {
            mover.apply(tid, Placement::Lazy, Placement::Own, &entry.own)?;
        }
        return Ok(Put::Done);
    }
    let (from, own) = match entry.region {
        Region::Own => (Placement::Own, mover.own(tid)?),
        Region::Fast => (Placement::Fast(entry.attributes.priority()), entry.own),
        Region::Lazy => (Placement::Lazy, entry.own),
    };
    // By ways that nobody has told of: it is the program's, and stays where it is.
    if mover.is_left_alone(&own) {
        return Ok(Put::Done);
    }
    mover.apply(tid, from, placement, &own)?;
    let (mut is_visiting, mut is_going) = (false, false);
    let updated = lines.update(entry.identity, |it| {
        (is_visiting, is_going) = (it.is_visiting, it.is_going);
        it.region = region;
        it.own = own;
    });
    updated.map_err(|_| Errno(libc::EAGAIN))?;
    if entry.is_going && !is_going && region != Region::Lazy {
        // It has made itself lazy since, perhaps afterwards, and has not seen that it was moved.
        mover.apply(tid, Placement::Lazy, placement, &own)?;
    }
    if region == Region::Lazy && is_visiting {
        // It is at home by its own account, or waits for the lock by now.
        mover.apply(tid, placement, Placement::Own, &own)?;
        let _ = lines.update(entry.identity, |it| it.region = Region::Own);
    }
    Ok(match is_going && region != Region::Lazy {
        true => Put::Doubtful,
        false => Put::Done,
    })
}

/// Puts those once more where they belong that were about to make themselves lazy. False if
/// none of them is any more.
pub(crate) fn put_again(lines: Lines<'_>, mover: &impl Mover) -> bool {
    let mut is_left = false;
    for (_, entry) in lines.iter().filter(|(_, it)| it.is_going) {
        let to = match entry.region {
            Region::Own => Placement::Own,
            Region::Fast => Placement::Fast(entry.attributes.priority()),
            // As it is about to be.
            Region::Lazy => continue,
        };
        is_left |= mover
            .apply(entry.tid, Placement::Lazy, to, &entry.own)
            .is_ok();
    }
    is_left
}
