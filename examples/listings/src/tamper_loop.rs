//! IV-B: the loop that stands in for physical movement: it tampers every N time
//! units, while requests are served.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use milieu::{Context, Coordinator, Error, layer};

use crate::specifications::http::Environment;

layer! { struct Tamper = "tamper"; }

/// The paper's shortest delay without decay.
const N: Duration = Duration::from_nanos(1);

fn tamper(tc: &mut Context<Environment>, shutdown: &AtomicBool) -> Result<(), Error> {
    while !shutdown.load(Ordering::Relaxed) {
        tc.activate(Tamper)?;
        thread::sleep(N);
        tc.deactivate::<Tamper>()?;
        thread::sleep(N);
    }
    Ok(())
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    coordinator.assign("/sw/pi/tamper/active", "yes", None)?;
    let shutdown = AtomicBool::new(false);
    let mut tc = coordinator.context::<Environment>()?;
    let mut request = coordinator.context::<Environment>()?;
    thread::scope(|scope| {
        let tampering = scope.spawn(|| tamper(&mut tc, &shutdown));
        // Serve until tampering has come and gone a few times.
        for round in 0..20 {
            while request.sw.pi.tamper.is_empty() == (round % 2 == 0) {
                assert!(!tampering.is_finished(), "the loop has failed");
                request.wait(None);
                request.sync();
            }
        }
        shutdown.store(true, Ordering::Relaxed);
        tampering.join().expect("the loop ends")
    })?;
    request.sync();
    assert_eq!(request.layers(), []);
    Ok("tampering has come and gone ten times".to_owned())
}
