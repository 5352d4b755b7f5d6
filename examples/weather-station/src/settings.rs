//! The settings that a type alone does not make ready for use.
//!
//! What the specification can say it says, and Milieu checks it; what remains
//! is checked here, with errors that name who gave the value.

use crate::NoStart;
use crate::environment::hw::pi::gpio::Kind;
use crate::environment::{Environment, at};
use crate::streams::Input;
use crate::time::Time;
use milieu::Context;
use milieu::context::Value;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings that are used once, when the station starts.
pub(crate) struct Settings {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) patience: Duration,
    pub(crate) root: PathBuf,
    pub(crate) interval: Duration,
    /// When the replay begins; without it at the time of year that it is now.
    pub(crate) start: Option<Time>,
    /// The recording; empty for the one in the program.
    pub(crate) recording: PathBuf,
    /// The file with the hardware profile's identifier.
    pub(crate) profile: PathBuf,
}

/// Who gave a value, and what it is called.
fn place<V: Value<Environment = Environment>>(cx: &Context<Environment>) -> String {
    let name = cx.name::<V>();
    match cx.origin::<V>() {
        Some(origin) => format!("{origin}: {name}"),
        None => name,
    }
}

impl Settings {
    pub(crate) fn of(cx: &Context<Environment>) -> Result<Settings, NoStart> {
        let (web, replay, sensors) = (&cx.sw.pi.web, &cx.sw.pi.replay, &cx.sw.pi.sensors);
        let address: IpAddr = web.address.parse().map_err(|_| {
            NoStart::setting(
                place::<at::sw::pi::web::address>(cx),
                format_args!(
                    "`{}` is no address; give one such as 127.0.0.1",
                    web.address
                ),
            )
        })?;
        let start = match &*replay.start {
            "" => None,
            text => Some(Time::parse(text).ok_or_else(|| {
                NoStart::setting(
                    place::<at::sw::pi::replay::start>(cx),
                    format_args!("`{text}` is no time; give one such as 2013-05-08T12:00"),
                )
            })?),
        };
        Ok(Settings {
            address: SocketAddr::new(address, web.port),
            connections: web.connections as usize,
            patience: Duration::from_secs_f64(web.patience),
            root: PathBuf::from(&*sensors.root),
            interval: Duration::from_secs(sensors.interval.into()),
            start,
            recording: PathBuf::from(&*replay.file),
            profile: PathBuf::from(&*cx.hw.pi.profile),
        })
    }
}

/// Who says where the hardware profile's identifier is.
pub(crate) fn profile_place(cx: &Context<Environment>) -> String {
    place::<at::hw::pi::profile>(cx)
}

/// The tamper input below `/hw/pi/%profile%/gpio`.
pub(crate) fn input(cx: &Context<Environment>) -> Option<Input> {
    let gpio = &cx.hw.pi.gpio;
    if gpio.tamper.is_empty() {
        return None;
    }
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let folder = match (gpio.folder.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(&*gpio.folder),
    };
    match gpio.kind {
        Kind::None => None,
        Kind::Line => Some(Input::Line {
            chip: folder,
            line: gpio.tamper.to_string(),
        }),
        Kind::File => {
            let file = folder.join(&*gpio.tamper);
            // The kernel's GPIO files: a folder for each line that was exported.
            let file = if file.is_dir() {
                file.join("value")
            } else {
                file
            };
            Some(Input::File(file))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::layer;
    use milieu::Coordinator;

    /// Layers are switched here, without the hardware that they stand for
    /// (CoElektra, IV-A: "we get hardware abstraction for free").
    #[test]
    fn the_papers_profiles_multiplex_the_tamper_input() {
        let coordinator = Coordinator::new();
        for (name, value) in [
            ("/hw/pi/pi/gpio/folder", "/sys/class/gpio/"),
            ("/hw/pi/pi/gpio/tamper", "gpio7"),
            ("/hw/pi/elitebook/gpio/folder", "context/pi"),
            ("/hw/pi/elitebook/gpio/tamper", "tamper.txt"),
            ("/hw/pi/chip/gpio/kind", "line"),
            ("/hw/pi/chip/gpio/folder", "/dev/gpiochip0"),
            ("/hw/pi/chip/gpio/tamper", "7"),
        ] {
            coordinator.assign(name, value, None).unwrap();
        }
        let mut cx = coordinator.context::<Environment>().unwrap();
        assert_eq!(input(&cx), None, "without a profile there is no input");
        cx.activate(layer::Profile("elitebook")).unwrap();
        let file = Input::File("context/pi/tamper.txt".into());
        assert_eq!(input(&cx), Some(file));
        cx.activate(layer::Profile("pi")).unwrap();
        let Some(Input::File(file)) = input(&cx) else {
            panic!("a file");
        };
        assert!(file.starts_with("/sys/class/gpio/gpio7"), "{file:?}");
        cx.activate(layer::Profile("chip")).unwrap();
        let line = Input::Line {
            chip: "/dev/gpiochip0".into(),
            line: "7".into(),
        };
        assert_eq!(input(&cx), Some(line));
    }
}
