//! A battery that is low slows the program down, in every thread.

use milieu::stream::{Delivery, Status};
use milieu::{Environment, Milieu, layer};
use milieu_adapters::catalogue;

layer! { /// The battery is low.
struct BatteryLow = "battery_low"; }

#[derive(Environment)]
struct Settings {
    /// How often work is done, in seconds.
    #[key("/labs/%battery_low%/interval", default = 1, range = "1-3600")]
    interval: u32,
}

/// Follows the battery of this machine for ten events.
///
/// # Errors
/// If there are no threads left, or the settings are wrong.
pub fn watch() -> Result<(), milieu::Error> {
    let milieu = Milieu::open("labs")?;
    let mut cx = milieu.context::<Settings>()?;
    let driving = milieu.driving()?;
    let source = catalogue::make("machine.battery", &[]).expect("it takes no parameters");
    let name = "/power/battery";
    let source = driving
        .source(name, source)
        .expect("nobody else publishes here");

    // Every thread sees the layer at its next synchronization.
    let low = milieu.flow("/power/battery | hysteresis level_percent<15 off=level_percent>20")?;
    let _acting = low.activates(|event| {
        let body = event.value(milieu::transfer::Rights::NONE).ok()?;
        (body.field("value") == Some(&true.into())).then_some(BatteryLow)
    })?;

    let mut levels = milieu.flow(name)?.subscribe(Delivery::Latest)?;
    for _ in 0..10 {
        let event = levels.wait_for(std::time::Duration::from_secs(20));
        cx.sync();
        let level = event.and_then(|event| event.value(milieu::transfer::Rights::NONE).ok());
        println!("{level:?}; work is done every {} s", cx.interval);
        if let Status::Failing(reason) = source.status() {
            println!("{reason}");
            break;
        }
    }
    Ok(())
}
