//! III-C: assigning a contextual value and computing with it.

use milieu::{Coordinator, Error};

use crate::specifications::number::{Environment, at::value};

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let mut cx = Coordinator::new().context::<Environment>()?;
    cx.set::<value>(8)?;
    assert_eq!(cx.value, 8);
    cx.set::<value>(cx.value - 2)?;
    assert_eq!(cx.value, 6);
    Ok(format!("{} is {}", cx.name::<value>(), cx.value))
}
