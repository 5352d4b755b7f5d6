//! III-D: `calculateTask`, which synchronizes once and then calculates with an
//! accuracy that does not change, whatever other threads do meanwhile.

use milieu::{Coordinator, Error, Part};

use crate::specifications::algorithm::{Algorithm, Environment, layer::BatteryLow};

fn calculate_task(algorithm: &mut Part<'_, Algorithm>, mut step: impl FnMut()) -> i32 {
    algorithm.sync(); // sync accuracy
    let mut result = 0;
    for _ in 0..algorithm.accuracy {
        // calculate Task with given accuracy
        step();
        result += 1;
        // values will not change within loop
    }
    result
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    coordinator.assign("/algorithm/%/accuracy", "100", None)?;
    coordinator.assign("/algorithm/yes/accuracy", "10", None)?;
    let mut cx = coordinator.context::<Environment>()?;
    let mut sensor = coordinator.context::<Environment>()?;

    // In the middle of the first task the battery runs low.
    let mut failed = Ok(());
    let first = calculate_task(&mut cx.part(|e| &e.algorithm), || {
        if failed.is_ok() {
            failed = sensor.activate(BatteryLow("yes"));
        }
    });
    failed?;
    let second = calculate_task(&mut cx.part(|e| &e.algorithm), || ());
    assert_eq!((first, second), (100, 10));
    Ok(format!(
        "{first} steps, and {second} when the battery is low"
    ))
}
