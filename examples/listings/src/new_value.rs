//! III-C: a new context, and a value that it holds, is up to date at once.

use milieu::{Coordinator, Error};

use crate::specifications::number::{Environment, at::value};

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let c = Coordinator::new();
    let mut cx = c.context::<Environment>()?;
    cx.set::<value>(5)?;

    let tc = c.context::<Environment>()?;
    assert_eq!(tc.value, 5);
    Ok(format!("value is {}", tc.value))
}
