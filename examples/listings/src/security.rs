//! II: `class Security`, a layer written by hand. By returning an empty text
//! the layer pretends to be inactive.

use std::borrow::Cow;

use milieu::{Coordinator, Error, Layer};

use crate::specifications::watchdog::{Environment, at::watchdog::enable};

struct Security {
    level: String,
}

impl Security {
    fn new(level: impl Into<String>) -> Security {
        Security {
            level: level.into(),
        }
    }
}

impl Layer for Security {
    const ID: &'static str = "security";
    fn value(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.level)
    }
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let mut cx = Coordinator::new().context::<Environment>()?;
    let inactive = cx.enter(Security::new("")).name::<enable>();
    assert_eq!(inactive, "/watchdog/%/enable");
    Ok(cx.enter(Security::new("A")).name::<enable>())
}
