//! II: `printWatchdogStatus`, a function that knows one part of the
//! environment and reads contextual values as the variables that they are.

use std::fmt::Write;

use milieu::{Coordinator, Error};

use crate::specifications::watchdog::{Environment, Watchdog, at};

fn print_watchdog_status(watchdog: &Watchdog, out: &mut impl Write) -> std::fmt::Result {
    if watchdog.enable {
        write!(out, "Watchdog is enabled")?;
    }
    Ok(())
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let mut cx = Coordinator::new().context::<Environment>()?;
    let mut out = String::new();
    print_watchdog_status(&cx.watchdog, &mut out).expect("a string takes any text");
    assert_eq!(out, "");
    cx.set::<at::watchdog::enable>(true)?;
    print_watchdog_status(&cx.watchdog, &mut out).expect("a string takes any text");
    Ok(out)
}
