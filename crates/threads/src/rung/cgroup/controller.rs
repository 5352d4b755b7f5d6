//! The controller of processors, which version 2 divides below a group only if that
//! group says so.
//!
//! Programs in one group share what it says. Whoever hands the controller on notes it at
//! the group, by an attribute of its folder, and who is the last to go takes it back:
//! never from others, who would not be idle any more, and also for one that was killed.

use core::ffi::CStr;

use super::{Path, is_lazy_group};
use crate::kernel::{self, Errno, File};

/// Says of a group's folder that the controller was handed on by one of us.
const NOTE: &CStr = c"user.milieu.cpu";

/// Hands it on to the groups below, if that is not so.
pub(super) fn hand_on(home: &Path) -> Result<(), Errno> {
    let control = control(home)?;
    let mut space = [0; 256];
    let handed_on = kernel::read_file(control.as_c_str(), &mut space)?;
    if handed_on
        .split(u8::is_ascii_whitespace)
        .any(|it| it == b"cpu")
    {
        return Ok(());
    }
    // Where it cannot be noted it stays handed on, which does no harm.
    let _ = kernel::set_note(home.as_c_str(), NOTE);
    let added = kernel::write_file(control.as_c_str(), b"+cpu");
    if added.is_err() {
        let _ = kernel::remove_note(home.as_c_str(), NOTE);
    }
    added
}

/// Takes it back, if one of us has handed it on and nobody needs it any more.
pub(super) fn take_back(home: &Path) {
    if !kernel::has_note(home.as_c_str(), NOTE) || any_lazy(home, |_| {}) {
        return;
    }
    let _ = kernel::remove_note(home.as_c_str(), NOTE);
    let _ = control(home).map(|it| kernel::write_file(it.as_c_str(), b"-cpu"));
    // Somebody may have begun to need it in between.
    if any_lazy(home, |_| {}) && hand_on(home).is_ok() {
        any_lazy(home, |name| {
            let home = home.as_str();
            let idle = Path::of(format_args!("{home}/{name}/cpu.idle"));
            let _ = idle.map(|it| kernel::write_file(it.as_c_str(), b"1"));
        });
    }
}

/// Tells the lazy groups below a group, and whether there is one.
fn any_lazy(home: &Path, mut tell: impl FnMut(&str)) -> bool {
    let mut is_any = false;
    let folder = File::open(home.as_c_str(), libc::O_RDONLY | libc::O_DIRECTORY);
    let _ = folder.and_then(|folder| {
        kernel::each_name(&folder, |name| {
            if is_lazy_group(name) {
                is_any = true;
                tell(name);
            }
        })
    });
    is_any
}

fn control(home: &Path) -> Result<Path, Errno> {
    let control = Path::of(format_args!("{}/cgroup.subtree_control", home.as_str()));
    control.ok_or(Errno(libc::ENAMETOOLONG))
}
