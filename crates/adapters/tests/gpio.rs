//! Lines of a chip that the kernel simulates (gpio-sim). Where the kernel has no
//! simulation, or this user may not make a chip, the tests say so and see only
//! what becomes of chips that are not there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{self, Live};
use milieu_adapters::gpio::{self, Bias, Level};

/// A chip with four lines, of which the first is called `button`.
struct Chip {
    configuration: PathBuf,
    name: String,
    device: PathBuf,
}

impl Chip {
    /// Nothing, and why, where no chip can be made.
    fn new(test: &str) -> Option<Chip> {
        let root = Path::new("/sys/kernel/config/gpio-sim");
        let configuration = root.join(format!("milieu-{test}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&configuration) {
            let place = root.display();
            println!("skipped: no chip can be simulated: {place}: {error}");
            println!("(mount configfs at /sys/kernel/config, `modprobe gpio-sim`, be root)");
            return None;
        }
        let bank = configuration.join("bank");
        fs::create_dir(&bank).unwrap();
        fs::write(bank.join("num_lines"), "4").unwrap();
        fs::create_dir(bank.join("line0")).unwrap();
        fs::write(bank.join("line0/name"), "button").unwrap();
        let mut chip = Chip {
            configuration,
            name: String::new(),
            device: PathBuf::new(),
        };
        chip.plug(true);
        Some(chip)
    }

    fn plug(&mut self, is_in: bool) {
        let live = if is_in { "1" } else { "0" };
        fs::write(self.configuration.join("live"), live).unwrap();
        if is_in {
            let read = |path: PathBuf| fs::read_to_string(path).unwrap().trim().to_owned();
            self.name = read(self.configuration.join("dev_name"));
            let chip = read(self.configuration.join("bank/chip_name"));
            self.device = Path::new("/dev").join(chip);
            let start = Instant::now();
            while !self.device.exists() {
                assert!(start.elapsed() < Duration::from_secs(60), "no device comes");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// What the world outside does to a line.
    fn pull(&self, line: u32, is_up: bool) {
        let chip = self.device.file_name().unwrap().to_str().unwrap();
        let path = format!(
            "/sys/devices/platform/{}/{chip}/sim_gpio{line}/pull",
            self.name
        );
        let pull = if is_up { "pull-up" } else { "pull-down" };
        fs::write(&path, pull).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        let _ = fs::write(self.configuration.join("live"), "0");
        for folder in ["bank/line0", "bank", ""] {
            let _ = fs::remove_dir(self.configuration.join(folder));
        }
    }
}

fn level(line: &str, is_active: bool) -> Level {
    Level {
        line: line.to_owned(),
        is_active,
        lost: 0,
    }
}

#[test]
fn levels_are_events_at_first_and_when_they_change() {
    let Some(chip) = Chip::new("levels") else {
        return;
    };
    let mut source = Live::new(gpio::lines(&chip.device, ["button", "2"]));
    let first = source.bodies::<Level>(2);
    assert_eq!(first, [level("button", false), level("2", false)]);
    source.working();
    chip.pull(2, true);
    chip.pull(0, true);
    chip.pull(0, false);
    let events = source.events(3);
    let expected = [
        level("2", true),
        level("button", true),
        level("button", false),
    ];
    assert_eq!(support::bodies::<Level>(&events), expected);
    assert!(
        events
            .windows(2)
            .all(|pair| pair[0].time() < pair[1].time())
    );
}

#[test]
fn a_line_may_be_active_when_it_is_low() {
    let Some(chip) = Chip::new("low") else { return };
    let lines = gpio::lines(&chip.device, ["1"])
        .active_low()
        .bias(Bias::PullUp);
    let mut source = Live::new(lines);
    assert_eq!(source.bodies::<Level>(1), [level("1", false)]);
    chip.pull(1, false);
    assert_eq!(source.bodies::<Level>(1), [level("1", true)]);
}

#[test]
fn what_bounces_counts_once() {
    let Some(chip) = Chip::new("bounce") else {
        return;
    };
    let lines = gpio::lines(&chip.device, ["3"]).debounce(Duration::from_millis(200));
    let mut source = Live::new(lines);
    assert_eq!(source.bodies::<Level>(1), [level("3", false)]);
    for is_up in [true, false, true, false, true] {
        chip.pull(3, is_up);
    }
    assert_eq!(source.bodies::<Level>(1), [level("3", true)]);
    assert!(source.is_silent(400));
}

#[test]
fn a_chip_may_go_and_return() {
    let Some(mut chip) = Chip::new("return") else {
        return;
    };
    let mut source = Live::new(gpio::lines(&chip.device, ["0"]));
    source.events(1);
    chip.plug(false);
    source.failure("no such chip");
    chip.plug(true);
    assert_eq!(source.bodies::<Level>(1), [level("0", false)]);
    source.working();
}

#[test]
fn lines_that_are_taken_or_unknown_are_told() {
    let Some(chip) = Chip::new("taken") else {
        return;
    };
    let mut first = Live::new(gpio::lines(&chip.device, ["0"]));
    first.working();
    let mut second = Live::new(gpio::lines(&chip.device, ["0"]));
    second.failure("that are free");
    first.driver.remove(first.id);
    second.working();
    Live::new(gpio::lines(&chip.device, ["lever"])).failure("no line called `lever`");
}

#[test]
fn a_chip_that_is_not_there_is_named() {
    let mut source = Live::new(gpio::lines("/nowhere/gpiochip0", ["17", "27"]));
    let failure = source.failure("there is no such chip");
    assert!(failure.contains("/nowhere/gpiochip0 17, 27"), "{failure}");
    Live::new(gpio::lines("/dev/null", ["1"])).failure("name lines that the chip has");
}
