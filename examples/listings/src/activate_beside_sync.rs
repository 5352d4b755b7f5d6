//! III-A: one thread activates a layer, another one synchronizes and then has
//! the same layers, without having switched any itself.

use std::thread;

use milieu::{Coordinator, Error};

use crate::specifications::algorithm::{Environment, layer::BatteryLow};

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    let mut c1 = coordinator.context::<Environment>()?;
    let mut c2 = coordinator.context::<Environment>()?;
    let left = thread::spawn(move || {
        c1.activate(BatteryLow("yes"))?;
        Ok::<_, Error>(c1.layers())
    });
    let right = thread::spawn(move || {
        assert!(
            c2.wait(None),
            "sleeps until there is something to synchronize"
        );
        assert_eq!(c2.layers(), []);
        c2.sync(); // BatteryLow active
        c2.layers()
    });
    let here = left.join().expect("the left side ends")?;
    let there = right.join().expect("the right side ends");
    assert_eq!(here, there);
    Ok(format!("{} is {}", there[0].0, there[0].1))
}
