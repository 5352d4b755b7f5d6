//! A gas detector: one thread looks at the sensor and is time-critical; a pool
//! works out what was measured, and is lazy while the battery is low.

use std::sync::mpsc::{Receiver, channel};

use milieu::threads::{Mediator, Priority, Role};
use milieu::{Environment, Milieu, Text, layer};

layer! { /// The battery is low.
struct BatteryLow = "battery_low"; }

#[derive(Environment)]
struct Power {
    /// The best region that threads of the pool may be in: fast, own or lazy.
    #[key("/pool/%battery_low%/region", default = "fast")]
    region: Text,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let milieu = Milieu::in_memory();
    let coordinator = milieu.coordinator();
    coordinator.assign("/pool/active/region", "lazy", None)?;
    let mut cx = milieu.context::<Power>()?;

    let mediator = Mediator::start()?;
    for report in mediator.reports() {
        match report.verdict {
            Ok(returns) => eprintln!("{}: {returns}", report.rung),
            Err(obstacle) => eprintln!("{}: {obstacle}", report.rung),
        }
    }
    mediator.follow("pool", milieu.context::<Power>()?)?;

    let (measure, measured) = channel::<f64>();
    let pool = mediator.thread("pool")?.spawn(move || work_out(measured))?;
    let probe = mediator
        .thread("gas-detection")?
        .critical(Priority::new(-5)?)
        .spawn(move || (1..=3).try_for_each(|ppm| measure.send(f64::from(ppm))))?;
    probe.join().map_err(|_| "the probe has failed")??;

    println!("battery is full: the pool is {}", bound(&mediator)?);
    cx.activate(BatteryLow)?;
    mediator.settle();
    println!("battery is low: the pool is {}", bound(&mediator)?);
    cx.deactivate::<BatteryLow>()?;
    mediator.settle();
    println!("battery is full: the pool is {}", bound(&mediator)?);

    let mean = pool.join().map_err(|_| "the pool has failed")?;
    println!("{mean} ppm on average");
    Ok(())
}

fn work_out(measured: Receiver<f64>) -> f64 {
    let all: Vec<f64> = measured.iter().collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// What is known of the threads of the pool, also after they have ended.
fn bound(mediator: &Mediator) -> Result<&'static str, Box<dyn std::error::Error>> {
    let of_role = mediator.role(Role::new("pool")?);
    Ok(if of_role.is_some_and(|it| it.is_lazy()) {
        "lazy"
    } else {
        "as it wants"
    })
}
