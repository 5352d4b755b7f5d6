//! III-A: one thread deactivates a layer, another one then activates a layer
//! whose value is a contextual value.
//!
//! `activate` synchronizes before it switches, so that `cv` already considers
//! the inactive layer `BatteryLow`. In the paper the layer is constructed with
//! the value that `cv` has then; here it goes on following `cv`.

use std::thread;

use milieu::{Coordinator, Error, value};

use crate::specifications::device::{
    Environment,
    at::device::{cv, locked},
    layer::BatteryLow,
};

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    coordinator.assign("/device/yes/cv", "B", None)?;
    let mut c1 = coordinator.context::<Environment>()?;
    c1.activate(BatteryLow("yes"))?;
    let mut c2 = coordinator.context::<Environment>()?;
    assert_eq!(c2.device.cv, "B");

    let left = thread::spawn(move || {
        c1.deactivate::<BatteryLow>()?; // Security unchanged
        assert_eq!(c1.layers(), []);
        Ok::<(), Error>(())
    });
    left.join().expect("the left side ends")?;
    let right = thread::spawn(move || {
        assert_eq!(
            c2.device.cv, "B",
            "nothing changes between synchronizations"
        );
        c2.activate(value::<cv>())?; // BatteryLow inactive
        assert_eq!(c2.layers(), [("security".into(), "A".to_owned())]);
        Ok::<_, Error>(c2.name::<locked>())
    });
    right.join().expect("the right side ends")
}
