//! III-F: `startupcode`, which has private keys removed as soon as somebody
//! tampers with the device, whichever thread notices.

use std::sync::{Arc, Mutex, PoisonError};

use milieu::{Coordinator, Error, Registration, layer};

use crate::specifications::http::Environment;

layer! { struct Tamper = "tamper"; }

type PrivateKeys = Arc<Mutex<Vec<&'static str>>>;

fn remove_private_keys(keys: &PrivateKeys) {
    keys.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

fn startupcode(c: &Coordinator, keys: PrivateKeys) -> Registration {
    c.on_activation::<Tamper>(move |_| remove_private_keys(&keys))
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let c = Coordinator::new();
    let keys: PrivateKeys = Arc::new(Mutex::new(vec!["tls", "firmware"]));
    let left = || keys.lock().unwrap_or_else(PoisonError::into_inner).len();
    let _registration = startupcode(&c, keys.clone());

    let mut cx = c.context::<Environment>()?;
    // It does not affect local with statements.
    cx.with(Tamper, |_| assert_eq!(left(), 2));
    cx.activate(Tamper)?;
    assert_eq!(left(), 0);
    Ok(format!("{} private keys left", left()))
}
