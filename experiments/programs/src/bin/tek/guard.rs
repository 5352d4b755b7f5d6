//! A critical thread per processor that never lets go of it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use experiments::{Failed, number as parameter};
use milieu::threads::Priority;
use milieu_bench::run::protocol::Start;

use super::work::{self, Ending, Gate};
use super::{Numbers, number, options, rung};

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let cores = thread::available_parallelism()?.get();
    let (seconds, rung) = (parameter(start, "seconds")?, rung(start)?);
    let (tell, told) = channel();
    let told_of = move |_: &milieu::threads::Entry| {
        // Who listened has heard enough.
        let _ = tell.send(work::now());
    };
    let mediator = options(rung).on_demotion(told_of).start()?;
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let used = Mutex::new(0.0);
    let (told_ms, elapsed) = thread::scope(|scope| -> Result<(f64, f64), Failed> {
        let (gate, is_over, used) = (&gate, &is_over, &used);
        let _ending = Ending { gate, is_over };
        let spin = |is_critical: bool| {
            move || {
                gate.pass();
                let begun = work::processor();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                if !is_critical {
                    let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
                    *used += work::processor() - begun;
                }
            }
        };
        for _ in 0..cores {
            let runaway = mediator.thread("runaway")?.critical(Priority::default());
            runaway.spawn_scoped(scope, spin(true))?;
            mediator
                .thread("worker")?
                .spawn_scoped(scope, spin(false))?;
        }
        let begun = work::now();
        gate.open();
        let mut told_ms = 0.0;
        if rung.is_some() {
            for _ in 0..cores {
                let when = told.recv_timeout(Duration::from_secs(300));
                told_ms = (when.map_err(|_| "nobody was demoted")? - begun) * 1e3;
            }
        }
        let rest = begun + seconds - work::now();
        thread::sleep(Duration::from_secs_f64(rest.max(0.0)));
        let elapsed = work::now() - begun;
        is_over.store(true, Ordering::Relaxed);
        Ok((told_ms, elapsed))
    })?;
    let used = used.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(vec![
        ("works", f64::from(u8::from(rung.is_some()))),
        ("told_ms", told_ms),
        ("others_share", used / elapsed / number(cores as u64)),
    ])
}
