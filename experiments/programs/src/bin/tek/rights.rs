//! What most users may not: how their own threads are scheduled better than others'.

use experiments::Failed;
use milieu_threads::rung::scheduling;
use nix::sys::resource::{Resource, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// This thread, and what it begins here, may only be scheduled worse from now on, and not
/// return from that.
pub fn give_up() -> Result<(), Failed> {
    setrlimit(Resource::RLIMIT_NICE, 0, 0)?;
    setrlimit(Resource::RLIMIT_RTPRIO, 0, 0)?;
    let mut sets = capabilities(None)?;
    for set in [
        &mut sets.effective,
        &mut sets.permitted,
        &mut sets.inheritable,
    ] {
        set.remove(CapabilitySet::SYS_NICE);
    }
    set_capabilities(None, sets)?;
    if scheduling::has_privilege() || scheduling::may_have_nice(0) {
        return Err("the right to schedule threads cannot be given up here".into());
    }
    Ok(())
}
