//! IV-A: hardware profiles, a layer that does not distinguish between states
//! but between setups. The configuration is the paper's; which profile it is is
//! read from an ordinary file, as an EEPROM and a device-tree node are too.

use std::{fs, path::Path};

use milieu::{Error, Milieu, Start, keys::Namespace, store::Place};

use crate::specifications::hardware::{Environment, at::hw::pi::gpio::tamper, layer::Profile};

/// Executes the listing.
///
/// # Errors
///
/// Where the files beside `Cargo.toml` cannot be read.
pub fn run() -> Result<String, Error> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = Place::new(Namespace::System, folder.join("hardware.ini"));
    let Start::Run(milieu) = Milieu::builder("hardware").files(vec![place]).start()? else {
        unreachable!("without a command line nobody asks for help");
    };
    let mut cx = milieu.context::<Environment>()?;
    assert_eq!(cx.hw.pi.gpio.folder, "");

    let profile = fs::read_to_string(folder.join("profile")).expect("the file beside Cargo.toml");
    cx.activate(Profile(profile.trim()))?;
    assert_eq!(cx.name::<tamper>(), "/hw/pi/elitebook/gpio/tamper");
    let gpio = &cx.hw.pi.gpio;
    let here = format!("{}/{}", gpio.folder, gpio.tamper);
    // Tests of other setups need no other hardware.
    cx.with(Profile("pi"), |cx| {
        let gpio = &cx.hw.pi.gpio;
        assert_eq!(
            (&*gpio.folder, &*gpio.tamper),
            ("/sys/class/gpio/", "gpio7")
        );
    });
    Ok(format!("the tamper input is {here}"))
}
