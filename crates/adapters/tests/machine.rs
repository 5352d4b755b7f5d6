//! This machine's sensors: those of a machine made of files, and the real ones.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{Watched, put};
use milieu_adapters::machine::{
    self, Battery, Charge, DiskSpace, DiskTraffic, Load, Mains, Memory, Network, Pressure,
    Quantity, Resource, Sampler, Sensor, Stall, Thermal,
};
use milieu_stream::Status;
use tempfile::{TempDir, tempdir};

fn below(root: &TempDir, source: Sampler) -> Watched {
    let every = Duration::from_secs(10);
    Watched::new(source.below(root.path()).every(every))
}

#[test]
fn load_says_how_many_threads_run_and_wait() {
    let root = tempdir().unwrap();
    put(root.path(), "proc/loadavg", "0.04 0.39 2.50 3/123 4567\n");
    put(root.path(), "sys/devices/system/cpu/online", "0-2,5\n");
    let expected = Load {
        one_minute: 0.04,
        five_minutes: 0.39,
        fifteen_minutes: 2.5,
        runnable_threads: Some(3),
        threads: Some(123),
        processors: Some(4),
    };
    let mut source = below(&root, machine::load());
    assert_eq!(source.bodies::<Load>(0.0), [expected]);
    assert_eq!(source.status(), &Status::Working);
    assert_eq!(source.bodies::<Load>(20.0).len(), 2);
}

#[test]
fn a_file_that_is_absent_or_broken_is_named_and_heals() {
    let root = tempdir().unwrap();
    let mut source = below(&root, machine::load());
    assert!(source.run(0.0).is_empty());
    let place = root.path().join("proc/loadavg").display().to_string();
    let reason = source.failure();
    assert!(reason.starts_with(&place), "{reason}");
    assert!(reason.contains("mount procfs at /proc"), "{reason}");
    for (broken, says) in [
        ("", "`` stands where a load average should"),
        ("0.1 0.2 -3 1/1 1", "`-3` stands"),
        ("0.1 nan 3 1/1 1", "`nan` stands"),
    ] {
        put(root.path(), "proc/loadavg", broken);
        assert!(source.run(10.0).is_empty());
        assert!(source.failure().contains(says), "{}", source.failure());
    }
    put(root.path(), "proc/loadavg", b"\xff\xff");
    assert!(source.run(10.0).is_empty());
    assert!(source.failure().contains("UTF-8"));
    put(root.path(), "proc/loadavg", "1 2 3");
    assert_eq!(source.run(10.0).len(), 1);
    assert_eq!(source.status(), &Status::Working);
}

#[test]
fn a_file_without_end_is_not_read() {
    let root = tempdir().unwrap();
    fs::create_dir_all(root.path().join("proc")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", root.path().join("proc/loadavg")).unwrap();
    let mut source = below(&root, machine::load());
    assert!(source.run(0.0).is_empty());
    assert!(source.failure().contains("longer than 4 MiB"));
}

#[test]
fn pressure_says_how_long_threads_waited() {
    let root = tempdir().unwrap();
    put(
        root.path(),
        "proc/pressure/memory",
        "some avg10=1.50 avg60=0.39 avg300=0.23 total=5500000\n\
         full avg10=0.50 avg60=0.00 avg300=0.00 total=250000\n",
    );
    let mut source = below(&root, machine::pressure());
    let memory = Pressure {
        resource: Resource::Memory,
        some: Stall {
            ten_seconds_percent: 1.5,
            one_minute_percent: 0.39,
            five_minutes_percent: 0.23,
            total_seconds: 5.5,
        },
        full: Some(Stall {
            ten_seconds_percent: 0.5,
            one_minute_percent: 0.0,
            five_minutes_percent: 0.0,
            total_seconds: 0.25,
        }),
    };
    assert_eq!(source.bodies::<Pressure>(0.0), [memory]);
    let reason = source.failure();
    assert!(
        reason.contains("proc/pressure/cpu: there is no"),
        "{reason}"
    );
    assert!(reason.contains("psi=1"), "{reason}");
    let cpu = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    put(root.path(), "proc/pressure/cpu", cpu);
    put(root.path(), "proc/pressure/io", cpu);
    let all = source.bodies::<Pressure>(10.0);
    let resources: Vec<Resource> = all.iter().map(|pressure| pressure.resource).collect();
    assert_eq!(resources, [Resource::Cpu, Resource::Io, Resource::Memory]);
    assert_eq!(all[0].full, None);
    assert_eq!(source.status(), &Status::Working);
}

#[test]
fn memory_is_what_programs_could_get() {
    let root = tempdir().unwrap();
    let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 250 kB\n\
                SwapTotal: 10 kB\nSwapFree: 4 kB\n";
    put(root.path(), "proc/meminfo", text);
    let mut source = below(&root, machine::memory());
    let expected = Memory {
        total_bytes: 1_024_000,
        available_bytes: 256_000,
        used_percent: 75.0,
        swap_total_bytes: 10_240,
        swap_free_bytes: 4_096,
    };
    assert_eq!(source.bodies::<Memory>(0.0), [expected]);
    let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 50 kB\nCached: 150 kB\n";
    put(root.path(), "proc/meminfo", text);
    assert_eq!(source.bodies::<Memory>(10.0)[0].available_bytes, 307_200);
    put(
        root.path(),
        "proc/meminfo",
        "MemTotal: 99999999999999999999 kB\n",
    );
    assert!(source.run(10.0).is_empty());
    assert!(
        source
            .failure()
            .contains("`MemTotal` is not a number of kB")
    );
}

fn interfaces(root: &Path, received: u64, sent: u64) {
    let text = format!(
        "Inter-|   Receive   |  Transmit\n face |bytes packets errs drop|bytes\n    \
         lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n  \
         eth0:{received} 7 1 2 0 0 0 0 {sent} 7 3 4 0 0 0 0\n"
    );
    put(root, "proc/net/dev", text);
}

#[test]
fn network_counts_and_measures_rates() {
    let root = tempdir().unwrap();
    interfaces(root.path(), 1000, 500);
    put(root.path(), "sys/class/net/eth0/operstate", "up\n");
    let mut source = below(&root, machine::network());
    let first = Network {
        interface: "eth0".to_owned(),
        is_up: Some(true),
        received_bytes: 1000,
        sent_bytes: 500,
        receive_failures: 3,
        send_failures: 7,
        received_bytes_per_second: None,
        sent_bytes_per_second: None,
    };
    assert_eq!(source.bodies::<Network>(0.0), [first]);
    interfaces(root.path(), 3000, 600);
    put(root.path(), "sys/class/net/eth0/operstate", "down\n");
    let [second] = &source.bodies::<Network>(10.0)[..] else {
        panic!("one interface")
    };
    assert_eq!(second.received_bytes_per_second, Some(200.0));
    assert_eq!(second.sent_bytes_per_second, Some(10.0));
    assert_eq!(second.is_up, Some(false));
    // The driver was loaded again: its counters are smaller.
    interfaces(root.path(), 10, 700);
    let third = &source.bodies::<Network>(10.0)[0];
    assert_eq!(third.received_bytes_per_second, None);
}

#[test]
fn one_broken_line_hides_no_other() {
    let root = tempdir().unwrap();
    interfaces(root.path(), 1, 1);
    let mut text = fs::read_to_string(root.path().join("proc/net/dev")).unwrap();
    text.push_str("  eth1: many\n  eth2: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
    put(root.path(), "proc/net/dev", text);
    let mut source = below(&root, machine::network());
    let all = source.bodies::<Network>(0.0);
    let names: Vec<&str> = all
        .iter()
        .map(|network| network.interface.as_str())
        .collect();
    assert_eq!(names, ["eth0", "eth2"]);
    assert!(source.failure().contains("line 5 is not a name"));
}

#[test]
fn disk_space_is_that_of_local_devices_once() {
    let root = tempdir().unwrap();
    fs::create_dir_all(root.path().join("data disk")).unwrap();
    let text = "22 1 0:20 / /proc rw - proc proc rw\n\
                36 35 98:0 / /data\\040disk rw,noatime shared:1 - ext4 /dev/sda1 rw\n\
                37 35 98:0 / /again rw - ext4 /dev/sda1 rw\n\
                38 35 0:99 / /far rw - nfs server:/far rw\n\
                39 35 98:1 / /unmounted rw - ext4 /dev/sdb1 rw\n";
    put(root.path(), "proc/self/mountinfo", text);
    let mut source = below(&root, machine::disk_space());
    let all = source.bodies::<DiskSpace>(0.0);
    let [space] = &all[..] else { panic!("{all:?}") };
    assert_eq!(space.mount_point, "/data disk");
    assert_eq!((&*space.device, &*space.file_system), ("/dev/sda1", "ext4"));
    assert!(space.available_bytes <= space.total_bytes && space.total_bytes > 0);
    assert!((0.0..=100.0).contains(&space.used_percent));
    assert_eq!(source.status(), &Status::Working);
    put(root.path(), "proc/self/mountinfo", "nonsense\n");
    assert!(source.run(10.0).is_empty());
    assert!(
        source
            .failure()
            .contains("line 1 does not describe a mount")
    );
}

#[test]
fn disk_traffic_is_that_of_whole_disks_in_use() {
    let root = tempdir().unwrap();
    for disk in ["sda", "loop0"] {
        fs::create_dir_all(root.path().join("sys/block").join(disk)).unwrap();
    }
    let text = |read: u64, written: u64, busy: u64| {
        format!(
            "   8       0 sda 5 0 {read} 9 6 0 {written} 9 0 {busy} 99\n   \
             8       1 sda1 5 0 {read} 9 6 0 {written} 9 0 {busy} 99\n   \
             7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    };
    put(root.path(), "proc/diskstats", text(10, 20, 1000));
    let mut source = below(&root, machine::disk_traffic());
    let first = source.bodies::<DiskTraffic>(0.0);
    assert_eq!(first.len(), 1);
    assert_eq!(
        (first[0].read_bytes, first[0].written_bytes),
        (5120, 10_240)
    );
    assert_eq!(first[0].busy_percent, None);
    put(root.path(), "proc/diskstats", text(30, 20, 3500));
    let second = &source.bodies::<DiskTraffic>(10.0)[0];
    assert_eq!(second.read_bytes_per_second, Some(1024.0));
    assert_eq!(second.written_bytes_per_second, Some(0.0));
    assert_eq!(second.busy_percent, Some(25.0));
}

#[test]
fn thermal_zones_stand_in_the_order_of_their_numbers() {
    let root = tempdir().unwrap();
    let zone = |number: u32, file: &str, text: &str| {
        let path = format!("sys/class/thermal/thermal_zone{number}/{file}");
        put(root.path(), &path, text);
    };
    zone(10, "temp", "-5500\n");
    zone(2, "temp", "45125\n");
    zone(2, "type", "x86_pkg_temp\n");
    zone(3, "temp", "-273200\n");
    let mut source = below(&root, machine::thermal());
    let thermal = |zone: &str, label: &str, temperature_celsius| Thermal {
        zone: zone.to_owned(),
        label: label.to_owned(),
        temperature_celsius,
    };
    let expected = [
        thermal("thermal_zone2", "x86_pkg_temp", 45.125),
        thermal("thermal_zone10", "thermal_zone10", -5.5),
    ];
    assert_eq!(source.bodies::<Thermal>(0.0), expected);
    let reason = source.failure();
    assert!(
        reason.contains("thermal_zone3/temp: -273.2 cannot be"),
        "{reason}"
    );
}

#[test]
fn hardware_monitors_say_what_each_channel_measures() {
    let root = tempdir().unwrap();
    let file = |name: &str, text: &str| {
        put(root.path(), &format!("sys/class/hwmon/hwmon0/{name}"), text);
    };
    file("name", "nct6775\n");
    for (name, text) in [
        ("temp1_input", "40000"),
        ("temp1_label", "CPU\n"),
        ("temp1_max", "90000"),
        ("fan2_input", "1200"),
        ("in0_input", "1056"),
        ("power1_input", "15000000"),
        ("curr1_input", "2500"),
        ("humidity1_input", "45500"),
        ("intrusion0_alarm", "1"),
        ("fan3_input", "turning"),
    ] {
        file(name, text);
    }
    let mut source = below(&root, machine::hwmon());
    let all = source.bodies::<Sensor>(0.0);
    let mut seen: Vec<(&str, &str, Quantity, f64)> = all
        .iter()
        .map(|sensor| {
            (
                &*sensor.channel,
                &*sensor.label,
                sensor.quantity,
                sensor.value,
            )
        })
        .collect();
    seen.sort_by_key(|(channel, ..)| *channel);
    let expected = [
        ("curr1", "curr1", Quantity::CurrentAmperes, 2.5),
        ("fan2", "fan2", Quantity::FanTurnsPerMinute, 1200.0),
        ("humidity1", "humidity1", Quantity::HumidityPercent, 45.5),
        ("in0", "in0", Quantity::VoltageVolts, 1.056),
        ("power1", "power1", Quantity::PowerWatts, 15.0),
        ("temp1", "CPU", Quantity::TemperatureCelsius, 40.0),
    ];
    assert_eq!(seen, expected);
    assert!(all.iter().all(|sensor| sensor.chip == "nct6775"));
    assert!(
        source
            .failure()
            .contains("fan3_input: `turning` is not a whole number")
    );
}

fn supply(root: &Path, name: &str, files: &[(&str, &str)]) {
    for (file, text) in files {
        put(root, &format!("sys/class/power_supply/{name}/{file}"), text);
    }
}

#[test]
fn batteries_say_how_full_they_are() {
    let root = tempdir().unwrap();
    supply(root.path(), "AC", &[("type", "Mains\n"), ("online", "1\n")]);
    let known = [
        ("type", "Battery\n"),
        ("capacity", "42\n"),
        ("status", "Discharging\n"),
        ("voltage_now", "12000000\n"),
        ("current_now", "-500000\n"),
    ];
    supply(root.path(), "BAT0", &known);
    let other = [
        ("type", "Battery\n"),
        ("energy_now", "30000000\n"),
        ("energy_full", "40000000\n"),
        ("power_now", "8000000\n"),
        ("status", "Not charging\n"),
    ];
    supply(root.path(), "BAT1", &other);
    let empty = [("type", "Battery\n"), ("present", "0\n")];
    supply(root.path(), "BAT2", &empty);
    let mouse = [
        ("type", "Battery\n"),
        ("capacity", "7\n"),
        ("scope", "Device\n"),
    ];
    supply(root.path(), "mouse", &mouse);
    let mut source = below(&root, machine::battery());
    let battery = |supply: &str, level_percent, charge| Battery {
        supply: supply.to_owned(),
        powers_machine: true,
        level_percent,
        charge,
        power_watts: None,
        voltage_volts: None,
    };
    let mut seen = source.bodies::<Battery>(0.0);
    seen.sort_by(|a, b| a.supply.cmp(&b.supply));
    let expected = [
        Battery {
            power_watts: Some(6.0),
            voltage_volts: Some(12.0),
            ..battery("BAT0", 42.0, Charge::Discharging)
        },
        Battery {
            power_watts: Some(8.0),
            ..battery("BAT1", 75.0, Charge::NotCharging)
        },
        Battery {
            powers_machine: false,
            ..battery("mouse", 7.0, Charge::Unknown)
        },
    ];
    assert_eq!(seen, expected);
    let mains = below(&root, machine::mains()).bodies::<Mains>(0.0);
    assert_eq!((mains.len(), mains[0].is_online), (1, true));
    supply(root.path(), "BAT0", &[("capacity", "700\n")]);
    assert_eq!(source.run(10.0).len(), 2);
    assert!(
        source
            .failure()
            .contains("BAT0/capacity: 700 is not a percentage")
    );
}

#[test]
fn a_machine_without_sensors_says_so_of_each() {
    let root = tempdir().unwrap();
    for (source, says) in [
        (machine::pressure(), "CONFIG_PSI"),
        (machine::memory(), "mount procfs"),
        (machine::network(), "mount procfs"),
        (machine::disk_space(), "mount procfs"),
        (machine::disk_traffic(), "mount procfs"),
        (machine::thermal(), "no thermal zones"),
        (machine::hwmon(), "no hardware monitors"),
        (machine::battery(), "no battery"),
        (machine::mains(), "no adapter"),
    ] {
        let mut source = below(&root, source);
        assert!(source.run(0.0).is_empty());
        let reason = source.failure();
        assert!(reason.contains(says), "{reason}");
        assert!(
            reason.starts_with(&root.path().display().to_string()),
            "{reason}"
        );
    }
}

/// Whatever this machine has, its sources see it or say why not.
#[test]
fn the_real_machine() {
    let memory = Watched::new(machine::memory()).bodies::<Memory>(0.0);
    assert!(memory[0].total_bytes > 1 << 20);
    let load = Watched::new(machine::load()).bodies::<Load>(0.0);
    assert!(load[0].processors.is_some_and(|processors| processors > 0));
    let mut space = Watched::new(machine::disk_space());
    assert!(!space.run(0.0).is_empty(), "{}", space.status());
    for source in [
        machine::pressure(),
        machine::network(),
        machine::disk_traffic(),
        machine::thermal(),
        machine::hwmon(),
        machine::battery(),
        machine::mains(),
    ] {
        let mut source = Watched::new(source);
        source.run(0.0);
        match source.status() {
            Status::Working => {}
            Status::Failing(why) if why.starts_with("/proc/") || why.starts_with("/sys/") => {}
            other => panic!("{other}"),
        }
    }
}
