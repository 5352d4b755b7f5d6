//! The ladder: by which means the kernel is told where threads belong, best first.
//!
//! | Rung | Fast region | Lazy region | Needs | Returns |
//! |---|---|---|---|---|
//! | [`Realtime`](Rung::Realtime) | `SCHED_RR`, not inherited, by priority | as before | CAP_SYS_NICE or RLIMIT_RTPRIO | policy, priority and nice value; "not inherited" stays without CAP_SYS_NICE |
//! | [`Cgroup`](Rung::Cgroup) | nice value below 0, where permitted | a group with `cpu.idle` | a control group that may be divided | group, policy and nice value |
//! | [`Idle`](Rung::Idle) | nice value below 0, where permitted | `SCHED_IDLE` | nothing | policy and nice value, with CAP_SYS_NICE or RLIMIT_NICE ≥ 20; else nothing |
//! | [`Nice`](Rung::Nice) | nice value below 0, where permitted | nice value 19 | nothing | as `Idle` |
//!
//! [`probe`] tries them, in a child that shares nothing that could be harmed, and
//! tells why one does not work and what would make it work. Threads that the
//! program itself runs in real time, or with a deadline, are left alone on every
//! rung, and so are those that it has put into a group of their own.
//!
//! Whoever gives a rung up brings threads back first. What a program leaves behind
//! that was killed are an empty group, which the next one removes, and nothing
//! else: policies, nice values and memberships end with its threads.

mod cgroup;
pub mod guard;
pub mod scheduling;
mod trial;

use core::fmt;

use crate::kernel::{self, Errno};
use crate::mediator::Placement;
use crate::table::Scheduling;
use cgroup::Groups;
use scheduling::{Haste, NICE_FIRST};

/// A means by which threads are put into regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// Critical threads run in real time, round robin.
    Realtime,
    /// The others are in a control group that is idle.
    Cgroup,
    /// The others are scheduled when nobody else wants the processor.
    Idle,
    /// The others have the least share.
    Nice,
}

impl Rung {
    /// All of them, best first.
    pub const ALL: [Rung; 4] = [Rung::Realtime, Rung::Cgroup, Rung::Idle, Rung::Nice];

    /// Its name on the command line and in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rung::Realtime => "realtime",
            Rung::Cgroup => "cgroup",
            Rung::Idle => "idle",
            Rung::Nice => "nice",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a rung does not work here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// No real-time priority without a privilege.
    NotPrivileged,
    /// Privileged, but the control group has no real-time budget.
    NoRealtimeBudget,
    /// A run-away could not be stopped, because its limit cannot be set.
    NoGuard(Errno),
    /// No control group of processors was found.
    NoGroup,
    /// The control group may not be divided.
    NotDelegated(Errno),
    /// The group has no switch `cpu.idle`, which came with Linux 5.15.
    NoIdleGroup(Errno),
    /// The kernel refused for another reason.
    Refused(Errno),
    /// A child to try it with could not be made.
    NotTried(Errno),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::NotPrivileged => f.write_str(
                "no permission for real-time priorities; grant CAP_SYS_NICE (setcap \
                 cap_sys_nice+ep PROGRAM, or AmbientCapabilities=CAP_SYS_NICE in its unit) or a \
                 limit (LimitRTPRIO=40, or `rtprio 40` in /etc/security/limits.conf)",
            ),
            Obstacle::NoRealtimeBudget => f.write_str(
                "the control group has no real-time budget; write one to its cpu.rt_runtime_us, \
                 or start the program in another group",
            ),
            Obstacle::NoGuard(error) => write!(
                f,
                "a critical thread that runs away could not be stopped, because RLIMIT_RTTIME \
                 cannot be set: {error}; raise its hard limit"
            ),
            Obstacle::NoGroup => f.write_str(
                "no control group with the controller `cpu` below /sys/fs/cgroup; start the \
                 program in one (systemd-run --user --scope -p Delegate=cpu PROGRAM)",
            ),
            Obstacle::NotDelegated(error) => write!(
                f,
                "the control group may not be divided: {error}; have it delegated \
                 (systemd-run --user --scope -p Delegate=cpu PROGRAM, or Delegate=cpu in its unit)"
            ),
            Obstacle::NoIdleGroup(error) => write!(
                f,
                "control groups cannot be idle here: {error}; it takes Linux 5.15"
            ),
            Obstacle::Refused(error) => write!(f, "the kernel refused: {error}"),
            Obstacle::NotTried(error) => write!(f, "it could not be tried: {error}; try again"),
        }
    }
}

impl core::error::Error for Obstacle {}

/// Whether lazy threads can return on a rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// Whenever the fast region is empty.
    Always,
    /// Never: whether a thread is lazy is decided when it begins.
    Never,
}

impl fmt::Display for Return {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Return::Always => "works",
            Return::Never => {
                "works, but whether a thread is lazy is decided when it begins; CAP_SYS_NICE or \
                 a limit (LimitNICE=20:20, or `nice -20` in /etc/security/limits.conf) lets it \
                 return"
            }
        })
    }
}

/// What one rung can do here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Which.
    pub rung: Rung,
    /// Whether threads return, or why it does not work.
    pub verdict: Result<Return, Obstacle>,
}

/// Tries all rungs, best first, and leaves nothing behind.
#[must_use]
pub fn probe() -> [Report; 4] {
    Rung::ALL.map(|rung| Report {
        rung,
        verdict: Means::open(rung).map(|means| means.returns()),
    })
}

/// The best rung that works and on which threads return, or the best that works.
#[must_use]
pub fn best(reports: &[Report]) -> Option<Rung> {
    let working = |returns: fn(Return) -> bool| {
        let works = |it: &&Report| it.verdict.is_ok_and(returns);
        reports.iter().find(works).map(|it| it.rung)
    };
    working(|it| it == Return::Always).or_else(|| working(|_| true))
}

/// A rung in use.
pub struct Means {
    rung: Rung,
    returns: Return,
    groups: Option<Groups>,
}

impl Means {
    /// Tries a rung and gets it ready.
    ///
    /// # Errors
    /// Why it does not work here.
    pub fn open(rung: Rung) -> Result<Means, Obstacle> {
        let groups = match rung {
            Rung::Cgroup => Some(Groups::new()?),
            _ => None,
        };
        let tried = trial::of(rung, groups.as_ref()).map_err(Obstacle::NotTried)?;
        if let Err(error) = tried.there {
            return Err(match (rung, error) {
                (Rung::Realtime, _) if scheduling::has_privilege() => Obstacle::NoRealtimeBudget,
                (Rung::Realtime, _) => Obstacle::NotPrivileged,
                (Rung::Cgroup, error) => Obstacle::NotDelegated(error),
                (_, error) => Obstacle::Refused(error),
            });
        }
        if rung == Rung::Realtime {
            guard::can_limit().map_err(Obstacle::NoGuard)?;
        }
        let returns = match tried.back {
            Ok(()) => Return::Always,
            Err(_) => Return::Never,
        };
        Ok(Means {
            rung,
            returns,
            groups,
        })
    }

    /// Which rung it is.
    #[must_use]
    pub fn rung(&self) -> Rung {
        self.rung
    }

    /// Whether threads return.
    #[must_use]
    pub fn returns(&self) -> Return {
        self.returns
    }

    /// Puts a thread of this process from one place to another. `own` is what the
    /// program wants of it.
    ///
    /// # Errors
    /// Why it stayed, [`Errno`] `ESRCH` if it has ended.
    pub fn apply(
        &self,
        tid: u32,
        from: Placement,
        to: Placement,
        own: &Scheduling,
    ) -> Result<(), Errno> {
        if scheduling::is_realtime(own.policy) {
            return Ok(());
        }
        if let Some(groups) = &self.groups {
            let is_lazy = |it: Placement| matches!(it, Placement::Lazy | Placement::Bound);
            match (is_lazy(from), is_lazy(to)) {
                (false, true) => groups.make_lazy(tid)?,
                (true, false) => groups.bring_home(tid)?,
                _ => {}
            }
        }
        scheduling::set_with_slice(tid, &self.wanted(to, own), slice_ns(self.rung, to))
    }

    /// How the kernel is to schedule a thread that belongs there, as [`wanted`] says.
    #[must_use]
    pub fn wanted(&self, to: Placement, own: &Scheduling) -> Scheduling {
        wanted(self.rung, self.returns, to, own)
    }

    /// Whether a thread may have been given this there, as [`is_given`] says.
    #[must_use]
    pub fn is_given(&self, to: Placement, own: &Scheduling, here: &Scheduling) -> bool {
        is_given(self.rung, to, own, here)
    }

    /// Whether a thread that has just begun is where lazy threads are, because it
    /// inherited that. `own` is what whoever began it is when it is not lazy.
    pub fn is_inherited(&self, tid: u32, here: &Scheduling, own: &Scheduling) -> bool {
        let is_last = self.rung == Rung::Nice && here.nice == 19 && own.nice != 19;
        let are_idle = [here, own].map(|it| i32::from(it.policy) == libc::SCHED_IDLE);
        match &self.groups {
            Some(groups) => groups.is_lazy(tid),
            None => is_last || are_idle == [true, false],
        }
    }

    /// Nobody is moved any more: the group goes.
    pub(crate) fn retire(&self) {
        if let Some(groups) = &self.groups {
            groups.remove();
        }
    }

    /// After `fork`, in the child: the group is the parent's to remove.
    pub fn after_fork(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.after_fork(kernel::process_id());
        }
    }
}

/// Has this thread, which mediates, come before all whom it moves, as far as that is
/// permitted: it could not stop one that has run away, or would wait among all whose turn
/// it is before it could end that. What it begins does not inherit it.
pub fn come_first(rung: Rung) {
    let tid = kernel::thread_id();
    let Ok(own) = scheduling::of(tid) else {
        return;
    };
    let most = scheduling::priority_max();
    let realtime = |realtime_priority| Scheduling {
        policy: libc::SCHED_RR as u8,
        realtime_priority,
        is_reset_on_fork: true,
        ..own
    };
    let nicest = Scheduling {
        nice: NICE_FIRST,
        is_reset_on_fork: true,
        ..own
    };
    let best = match rung {
        Rung::Realtime => [realtime(most + 1), realtime(most)],
        // A share, however large, is none that it may take ahead.
        _ => [realtime(1), nicest],
    };
    let _ = best.iter().any(|it| scheduling::set(tid, it).is_ok());
    // Nothing that ends with this.
    let _ = Haste::begin();
}

/// How the kernel is to schedule a thread that belongs there, on a rung that was
/// tried; `own` is what the program wants of it. Which control group it is in is
/// beside that.
#[must_use]
pub fn wanted(rung: Rung, returns: Return, to: Placement, own: &Scheduling) -> Scheduling {
    let may_have = |nice| returns == Return::Always && scheduling::may_have_nice(nice);
    wanted_by(rung, &may_have, to, own)
}

/// Whether a thread may have been given this there: by the rights that the process has, or
/// had then.
#[must_use]
pub fn is_given(rung: Rung, to: Placement, own: &Scheduling, here: &Scheduling) -> bool {
    let rights: [&dyn Fn(i8) -> bool; 3] = [&|_| true, &|nice| nice > NICE_FIRST, &|_| false];
    rights.into_iter().any(|may_have| {
        let given = wanted_by(rung, may_have, to, own);
        (given.policy, given.nice) == (here.policy, here.nice)
    })
}

fn wanted_by(
    rung: Rung,
    may_have: &dyn Fn(i8) -> bool,
    to: Placement,
    own: &Scheduling,
) -> Scheduling {
    match (rung, to) {
        (Rung::Realtime, Placement::Fast(priority)) => {
            scheduling::realtime(priority, own, scheduling::priority_max())
        }
        (Rung::Idle, Placement::Lazy | Placement::Bound) => idle(own),
        // Others come after critical ones anyway; this one comes last of all, where that can be
        // taken back.
        (Rung::Realtime | Rung::Nice, Placement::Bound) if may_have(own.nice) => idle(own),
        (Rung::Nice, Placement::Lazy | Placement::Bound) => Scheduling { nice: 19, ..*own },
        (Rung::Cgroup | Rung::Idle | Rung::Nice, Placement::Fast(priority)) => {
            // It orders critical threads where that can be taken back.
            let nice = match may_have(NICE_FIRST) {
                true => scheduling::raised(priority),
                false => priority.nice() as i8,
            };
            if may_have(nice.min(own.nice)) {
                Scheduling { nice, ..*own }
            } else {
                *own
            }
        }
        _ => *own,
    }
}

/// Whether lazy threads make way in the turn of others, of which they would have a part
/// otherwise: where they are lazy only because others come before them or weigh more.
#[must_use]
pub fn makes_way(rung: Rung) -> bool {
    matches!(rung, Rung::Realtime | Rung::Nice)
}

/// For how long a thread that belongs there runs at a time, 0 for as long as usual.
///
/// Whoever has worked for a slice is taken off for threads that have waited, lazy ones
/// among them, so critical threads have a longer one; but none that is much longer than
/// what the kernel makes good to a thread that it takes to another processor, a tick of its
/// clock. Of a longer one a thread that returns among many others still has the rest to do,
/// for which its turn is late; and if it is taken elsewhere again and again before that has
/// come, it never runs.
///
/// The longer the slice of a thread is, the later is its turn to begin it: those of little
/// weight come after critical ones then, and not only with a smaller share beside them. They
/// wait for one another for as long, each, so that it is no longer than that takes.
#[must_use]
pub fn slice_ns(rung: Rung, to: Placement) -> u64 {
    match (rung, to) {
        (Rung::Realtime, _) | (_, Placement::Own) => 0,
        (_, Placement::Fast(_)) => 8_000_000,
        (Rung::Nice, Placement::Lazy | Placement::Bound) => 7_000_000,
        (_, Placement::Lazy | Placement::Bound) => 0,
    }
}

fn idle(own: &Scheduling) -> Scheduling {
    Scheduling {
        policy: libc::SCHED_IDLE as u8,
        ..*own
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests;
