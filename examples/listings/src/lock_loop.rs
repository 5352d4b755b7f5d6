//! IV-B: the loop that holds the coordinator's lock, while requests are served.
//! In the paper a lock that is not released soon reduces their number; here
//! they do not wait for it, which the loop insists on before it releases it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use milieu::{Context, Coordinator, Error};

use crate::specifications::http::{Environment, at::sw::pi::language, layer::Session};

/// The time during which no lock is held.
const L: Duration = Duration::from_millis(1);
const ROUNDS: u32 = 3;

fn lock(t: &mut Context<Environment>, c: &Coordinator, served: &AtomicU64) {
    for _ in 0..ROUNDS {
        thread::sleep(L);
        t.sync();
        let _l = c.require_lock();
        let before = served.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(10));
        while served.load(Ordering::Relaxed) < before + 10 {
            thread::yield_now();
        }
    }
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    let served = AtomicU64::new(0);
    let mut t = coordinator.context::<Environment>()?;
    let mut request = coordinator.context::<Environment>()?;
    thread::scope(|scope| {
        let locking = scope.spawn(|| lock(&mut t, &coordinator, &served));
        while !locking.is_finished() {
            request.sync();
            let mut session = request.enter(Session("4711"));
            let number = served.fetch_add(1, Ordering::Relaxed);
            let chosen = if number % 2 == 0 { "german" } else { "english" };
            session.set::<language>(chosen)?;
            assert_eq!(session.sw.pi.language, chosen);
        }
        locking.join().expect("the loop ends");
        Ok::<(), Error>(())
    })?;
    t.sync();
    request.sync();
    let chosen = request.enter(Session("4711")).sw.pi.language.to_string();
    assert_eq!(t.enter(Session("4711")).sw.pi.language, chosen);
    Ok("requests were served under each of 3 locks".to_owned())
}
