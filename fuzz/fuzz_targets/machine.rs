//! Files of procfs and sysfs, whatever a kernel or driver writes into them:
//! sources publish what is possible, and tell the rest as a failure.
//!
//! The first character says which source, the texts are its files.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use milieu_adapters::machine::{self, Sampler};
use milieu_fuzz::texts;
use milieu_stream::Status;
use milieu_stream::drive::Stepped;
use milieu_transfer::{Origin, Rights, Span, Stream, Time, Value};

/// A source and the files that it reads.
type Reads = (fn() -> Sampler, &'static [&'static str]);

const SUPPLY: &[&str] = &[
    "sys/class/power_supply/A/type",
    "sys/class/power_supply/A/online",
    "sys/class/power_supply/A/capacity",
    "sys/class/power_supply/A/energy_now",
    "sys/class/power_supply/A/energy_full",
    "sys/class/power_supply/A/current_now",
    "sys/class/power_supply/A/voltage_now",
    "sys/class/power_supply/A/status",
];

const SOURCES: &[Reads] = &[
    (
        machine::load,
        &["proc/loadavg", "sys/devices/system/cpu/online"],
    ),
    (machine::memory, &["proc/meminfo"]),
    (
        machine::network,
        &["proc/net/dev", "sys/class/net/eth0/operstate"],
    ),
    (machine::disk_space, &["proc/self/mountinfo"]),
    (machine::disk_traffic, &["proc/diskstats"]),
    (
        machine::pressure,
        &[
            "proc/pressure/cpu",
            "proc/pressure/io",
            "proc/pressure/memory",
        ],
    ),
    (
        machine::thermal,
        &[
            "sys/class/thermal/thermal_zone0/temp",
            "sys/class/thermal/thermal_zone0/type",
        ],
    ),
    (
        machine::hwmon,
        &[
            "sys/class/hwmon/hwmon0/name",
            "sys/class/hwmon/hwmon0/temp1_input",
            "sys/class/hwmon/hwmon0/humidity1_input",
            "sys/class/hwmon/hwmon0/in0_label",
            "sys/class/hwmon/hwmon0/in0_input",
        ],
    ),
    (machine::battery, SUPPLY),
    (machine::mains, SUPPLY),
];

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("milieu-fuzz-machine-{}", std::process::id());
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let folder = folder.join(name);
    for file in SOURCES.iter().flat_map(|(_, files)| *files) {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
    std::fs::create_dir_all(folder.join("sys/block/sda")).unwrap();
    folder
});

fuzz_target!(|input: &str| {
    let Some(first) = input.bytes().next().filter(u8::is_ascii_digit) else {
        return;
    };
    let (source, files) = SOURCES[usize::from(first - b'0')];
    let contents: [&str; 8] = texts(&input[1..]);
    let write = |from: usize| {
        for (at, file) in files.iter().enumerate() {
            std::fs::write(FOLDER.join(file), contents[(at + from) % 8]).unwrap();
        }
    };
    let stream = Stream {
        name: "/fuzz".parse().unwrap(),
        origin: Origin("fuzz".into()),
        incarnation: 1,
    };
    let mut sources = Stepped::new(Time::from_seconds(0));
    let id = sources.add(stream, source().below(&*FOLDER));
    // Counters have rates from the second time on, whether they grow or not.
    for text in [0, files.len(), 0] {
        write(text);
        for event in sources.poll(id) {
            possible("", &event.value(Rights::ALL).unwrap());
        }
        if let Some(Status::Failing(why)) = sources.status(id) {
            assert!(!why.is_empty() && why.len() < 1000, "{why}");
        }
        sources.leap(Span::from_nanoseconds(3_600_000_000_000));
    }
});

/// Numbers are finite, and nothing counted or shared out is negative.
fn possible(name: &str, value: &Value) {
    match value {
        Value::Double(number) => {
            assert!(number.is_finite(), "{name} is {number}");
            let counted = name.ends_with("_percent") || name.ends_with("_per_second");
            assert!(!counted || *number >= 0.0, "{name} is {number}");
        }
        Value::Map(map) => {
            for (name, value) in map.iter() {
                let Value::Text(name) = name else {
                    panic!("{name:?} is no name");
                };
                possible(name, value);
            }
        }
        _ => {}
    }
}
