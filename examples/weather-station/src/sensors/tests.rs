//! Machines made of files.

use super::*;

struct Machine(tempfile::TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        for (file, text) in files {
            machine.write(file, text.as_bytes());
        }
        machine
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        let path = self.0.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn sample(&self) -> Snapshot {
        Sampler::new(self.0.path()).sample(Duration::ZERO)
    }
}

const NET: &str = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n  eth0: 1000 9749    0    0    0     0          0         0   500    7058    0    0    0     0       0          0\n";

#[test]
fn a_machine_without_sensors_has_none() {
    let snapshot = Machine::new(&[]).sample();
    assert_eq!(snapshot, Snapshot::default());
}

#[test]
fn what_is_there_is_read() {
    let machine = Machine::new(&[
        ("proc/loadavg", "0.04 0.39 0.23 1/123 4567\n"),
        ("sys/devices/system/cpu/online", "0-2,5\n"),
        (
            "proc/pressure/cpu",
            "some avg10=1.50 avg60=0.39 avg300=0.23 total=5584267\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        ),
        (
            "proc/meminfo",
            "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n",
        ),
        ("proc/net/dev", NET),
        ("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n"),
        ("sys/class/thermal/thermal_zone0/temp", "48312\n"),
        ("sys/class/hwmon/hwmon0/name", "nct6775\n"),
        ("sys/class/hwmon/hwmon0/temp1_input", "31000\n"),
        ("sys/class/hwmon/hwmon0/temp1_label", "Board\n"),
        ("sys/class/hwmon/hwmon0/fan2_input", "1250\n"),
        ("sys/class/hwmon/hwmon0/in0_input", "1104\n"),
        ("sys/class/hwmon/hwmon0/power1_input", "15500000\n"),
        ("sys/class/power_supply/BAT0/type", "Battery\n"),
        ("sys/class/power_supply/BAT0/capacity", "87\n"),
        ("sys/class/power_supply/BAT0/status", "Discharging\n"),
        ("sys/class/power_supply/AC/type", "Mains\n"),
        ("sys/class/power_supply/AC/online", "0\n"),
    ]);
    let snapshot = machine.sample();
    assert_eq!(
        snapshot.load,
        Some(Ok(Load {
            one: 0.04,
            five: 0.39,
            fifteen: 0.23,
            processors: Some(4)
        }))
    );
    assert_eq!(
        snapshot.pressure,
        [(
            Resource::Cpu,
            Ok(Pressure {
                ten_seconds: 1.5,
                minute: 0.39
            })
        )]
    );
    assert_eq!(
        snapshot.memory,
        Some(Ok(Memory {
            total: 1_024_000,
            available: 409_600
        }))
    );
    let channel = |label: &str, kind, value| Channel {
        label: label.to_owned(),
        kind,
        value: Ok(value),
    };
    assert_eq!(
        snapshot.channels,
        [
            channel("cpu-thermal", Kind::Temperature, 48.312),
            channel("nct6775 Board", Kind::Temperature, 31.0),
            channel("nct6775 fan2", Kind::Fan, 1250.0),
            channel("nct6775 in0", Kind::Voltage, 1.104),
            channel("nct6775 power1", Kind::Power, 15.5),
        ]
    );
    assert_eq!(
        snapshot.supplies,
        [
            Supply {
                name: "AC".to_owned(),
                state: Ok(SupplyState::Adapter { online: false })
            },
            Supply {
                name: "BAT0".to_owned(),
                state: Ok(SupplyState::Battery {
                    percent: 87,
                    status: BatteryStatus::Discharging
                })
            },
        ]
    );
    assert_eq!(snapshot.curves["load"], [0.04]);
}

#[test]
fn malformed_files_are_failures_that_name_the_file() {
    let machine = Machine::new(&[
        ("proc/loadavg", "a lot"),
        ("proc/pressure/io", "nothing of use\n"),
        ("proc/pressure/memory", "some avg60=0.39\n"),
        ("proc/meminfo", "MemTotal: many\n"),
        ("proc/net/dev", "\n\nno colon here\n"),
        ("sys/class/thermal/thermal_zone0/temp", "-274000\n"),
        ("sys/class/hwmon/hwmon3/temp1_input", ""),
        ("sys/class/power_supply/BAT0/type", "Battery\n"),
        ("sys/class/power_supply/BAT0/capacity", "400\n"),
    ]);
    machine.write("proc/pressure/cpu", b"some avg10=\xff\n");
    let snapshot = machine.sample();
    let reason = |failure: &Failure| failure.to_string();
    assert_eq!(
        reason(&snapshot.load.unwrap().unwrap_err()),
        "/proc/loadavg: `a` is not a number from 0 up"
    );
    let pressure: Vec<_> = snapshot
        .pressure
        .iter()
        .map(|(_, p)| reason(p.as_ref().unwrap_err()))
        .collect();
    assert_eq!(
        pressure,
        [
            "/proc/pressure/cpu: it is not UTF-8 text",
            "/proc/pressure/io: it has no line that begins with `some`",
            "/proc/pressure/memory: its line `some` has no `avg10`",
        ]
    );
    assert_eq!(
        reason(&snapshot.memory.unwrap().unwrap_err()),
        "/proc/meminfo: its `MemTotal` is not a number of kB"
    );
    assert_eq!(
        reason(&snapshot.network.unwrap().unwrap_err()),
        "/proc/net/dev: line 3 is not a name, a colon and counters"
    );
    let channels: Vec<_> = snapshot
        .channels
        .iter()
        .map(|c| reason(c.value.as_ref().unwrap_err()))
        .collect();
    assert_eq!(
        channels,
        [
            "/sys/class/thermal/thermal_zone0/temp: -274 cannot be; the sensor is probably not connected",
            "/sys/class/hwmon/hwmon3/temp1_input: `` is not a whole number",
        ]
    );
    assert_eq!(
        reason(snapshot.supplies[0].state.as_ref().unwrap_err()),
        "/sys/class/power_supply/BAT0/capacity: 400 is not a percentage"
    );
}

#[test]
fn a_folder_in_a_files_place_is_a_failure() {
    let machine = Machine::new(&[("proc/loadavg/oddly/a/folder", "")]);
    let failure = machine.sample().load.unwrap().unwrap_err();
    assert!(
        failure.reason.starts_with("it cannot be read: "),
        "{failure}"
    );
}

#[test]
fn rates_come_with_the_second_look_and_survive_a_restart_of_the_counters() {
    let machine = Machine::new(&[("proc/net/dev", NET)]);
    let mut sampler = Sampler::new(machine.0.path());
    let rates = |snapshot: &Snapshot| snapshot.network.as_ref().unwrap().as_ref().unwrap()[0].rates;
    assert_eq!(rates(&sampler.sample(Duration::from_secs(1))), None);
    machine.write(
        "proc/net/dev",
        NET.replace("1000", "3000")
            .replace("500 ", "600 ")
            .as_bytes(),
    );
    assert_eq!(
        rates(&sampler.sample(Duration::from_secs(3))),
        Some((1000.0, 50.0))
    );
    assert_eq!(rates(&sampler.sample(Duration::from_secs(3))), None);
    machine.write("proc/net/dev", NET.as_bytes());
    assert_eq!(rates(&sampler.sample(Duration::from_secs(5))), None);
}

#[test]
fn curves_are_bounded_and_go_with_their_sensor() {
    let machine = Machine::new(&[("proc/loadavg", "0.5 0 0\n")]);
    let mut sampler = Sampler::new(machine.0.path());
    for second in 0..100 {
        sampler.sample(Duration::from_secs(second));
    }
    assert_eq!(
        sampler.sample(Duration::from_secs(100)).curves["load"].len(),
        CURVE
    );
    std::fs::remove_file(machine.0.path().join("proc/loadavg")).unwrap();
    assert!(sampler.sample(Duration::from_secs(101)).curves.is_empty());
}
