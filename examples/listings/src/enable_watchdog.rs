//! III-A: `enableWatchdog`, which activates a layer for good and for everybody.

use milieu::{Context, Coordinator, Error};

use crate::specifications::watchdog::{Environment, at::watchdog::enable, layer::Security};

fn enable_watchdog(cx: &mut Context<Environment>) -> Result<(), Error> {
    assert_eq!(cx.name::<enable>(), "/watchdog/%/enable");
    cx.activate(Security("A"))?;
    assert_eq!(cx.name::<enable>(), "/watchdog/A/enable");
    assert!(cx.watchdog.enable);
    Ok(())
} // Security Layer A stays active

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    coordinator.assign("/watchdog/A/enable", "true", None)?;
    let mut cx = coordinator.context()?;
    enable_watchdog(&mut cx)?;
    assert_eq!(cx.layer_named("security").as_deref(), Some("A"));
    let other = coordinator.context::<Environment>()?;
    Ok(other.name::<enable>())
}
