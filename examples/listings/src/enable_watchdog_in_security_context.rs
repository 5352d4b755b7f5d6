//! II: `enableWatchdogInSecurityContext`, and the key set that results.
//!
//! The paper prints the name `/watchdog%/enable` where the layer is inactive;
//! it means `/watchdog/%/enable`.

use milieu::{Context, Coordinator, Error};

use crate::specifications::watchdog::{Environment, at::watchdog::enable, layer::Security};

fn enable_watchdog_in_security_context(cx: &mut Context<Environment>) -> Result<(), Error> {
    let originally_enabled = cx.watchdog.enable;
    assert_eq!(cx.name::<enable>(), "/watchdog/%/enable");
    cx.with(Security("A"), |cx| {
        cx.set::<enable>(true)?; // security context "A" active here
        assert_eq!(cx.name::<enable>(), "/watchdog/A/enable");
        Ok::<(), Error>(())
    })?; // end of security context "A"
    assert_eq!(cx.watchdog.enable, originally_enabled);
    assert_eq!(cx.name::<enable>(), "/watchdog/%/enable");
    Ok(())
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    let mut cx = coordinator.context::<Environment>()?;
    cx.set::<enable>(false)?;
    enable_watchdog_in_security_context(&mut cx)?;
    let keys = coordinator.require_lock();
    let keys = keys.entries();
    let keys: Vec<String> = keys
        .iter()
        .map(|key| format!("{}={}", key.name, key.text))
        .collect();
    assert_eq!(
        keys,
        ["/watchdog/%/enable=false", "/watchdog/A/enable=true"]
    );
    Ok(keys.join(" "))
}
