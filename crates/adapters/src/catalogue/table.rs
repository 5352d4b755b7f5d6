//! The table of all sources.

use milieu_stream::{Declared, Kind};
use milieu_transfer::Value;

use super::given::Given;
use super::{Definition, Made};
use crate::failure::Failure;
use crate::files;
use crate::format::Format;
use crate::machine::{self, Sampler};
use crate::replay::{self, Column, Pace, Replay, TimeFormat};
use crate::serial::{self, Parity, Serial};
use crate::{command, nmea, timer};

type Result<T = Made> = std::result::Result<T, Failure>;

const FORMATS: &[&str] = &["text", "number", "json", "positions"];

const FORMAT: Declared = Declared {
    name: "format",
    kind: Kind::Choice(FORMATS),
    positional: false,
    default: Some("text"),
    summary: "what each text becomes: Text, Number, a value, or a Position of NMEA sentences",
};

/// A parameter that must be given, and whose name may be left out.
const fn first(name: &'static str, summary: &'static str) -> Declared {
    Declared {
        name,
        kind: Kind::Text,
        positional: true,
        default: None,
        summary,
    }
}

/// A parameter that need not be given.
const fn also(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    summary: &'static str,
) -> Declared {
    Declared {
        name,
        kind,
        positional: false,
        default: Some(default),
        summary,
    }
}

const fn every(default: &'static str) -> Declared {
    also("every", Kind::Span, default, "how often it looks")
}

const ROOT: Declared = also(
    "root",
    Kind::Text,
    "/",
    "the folder in which proc and sys are",
);

macro_rules! machine {
    ($($name:ident $events:literal $every:literal $summary:literal,)*) => {
        &[$(Definition {
            name: concat!("machine.", stringify!($name)),
            summary: $summary,
            events: $events,
            needs: "",
            parameters: &[every($every), ROOT],
            make: |given| sampled(machine::$name(), given),
        },)*]
    };
}

pub(super) static MACHINE: &[Definition] = machine! {
    load "Load" "5s" "Load averages.",
    pressure "Pressure" "5s" "How long threads wait for processors, disks and memory.",
    memory "Memory" "5s" "Main memory and swap.",
    network "Network" "5s" "Traffic and links of network interfaces.",
    disk_space "DiskSpace" "1m" "How full local file systems are.",
    disk_traffic "DiskTraffic" "5s" "What disks read and write.",
    thermal "Thermal" "5s" "Temperatures of thermal zones.",
    hwmon "Sensor" "5s" "What hardware monitors measure.",
    battery "Battery" "15s" "Levels of batteries.",
    mains "Mains" "15s" "Whether adapters give power.",
};

pub(super) static OTHERS: &[Definition] = &[
    Definition {
        name: "command.shell",
        summary: "Output lines of a program, which is started again when it ends.",
        events: "Text, Number, Position or a value",
        needs: "what the program needs",
        parameters: &[
            first("run", "what `sh` is to run"),
            FORMAT,
            also(
                "every",
                Kind::Span,
                "",
                "how often it is run, if not all the time",
            ),
            also("once", Kind::Flag, "false", "whether it is run only once"),
            also("folder", Kind::Text, "", "the folder that it is run in"),
        ],
        make: shell,
    },
    Definition {
        name: "file.content",
        summary: "What is in a file, whenever that changes.",
        events: "Text, Number, Position or a value",
        needs: "reading the file and its folder",
        parameters: &[
            first("path", "the file"),
            FORMAT,
            also("every", Kind::Span, "", "how often it is looked at besides"),
        ],
        make: content,
    },
    Definition {
        name: "file.folder",
        summary: "What is new, different and gone in a folder.",
        events: "FolderChange",
        needs: "reading the folder",
        parameters: &[
            first("path", "the folder"),
            also(
                "existing",
                Kind::Flag,
                "false",
                "whether what is there already is told",
            ),
        ],
        make: folder,
    },
    Definition {
        name: "gpio.lines",
        summary: "Levels of lines of a GPIO chip.",
        events: "Level",
        needs: "opening the chip: mostly the group `gpio`",
        parameters: &[
            first("chip", "the chip: /dev/gpiochip0"),
            Declared {
                name: "lines",
                kind: Kind::Text,
                positional: true,
                default: None,
                summary: "names or numbers of lines, with commas",
            },
            also(
                "bias",
                Kind::Choice(&["as_is", "pull_up", "pull_down", "disabled"]),
                "as_is",
                "what holds the lines while nothing drives them",
            ),
            also(
                "active_low",
                Kind::Flag,
                "false",
                "whether low means active",
            ),
            also(
                "debounce",
                Kind::Span,
                "0s",
                "how long a level lasts before it counts",
            ),
        ],
        make: gpio,
    },
    Definition {
        name: "replay.csv",
        summary: "Rows of a CSV file, as they were recorded.",
        events: "a value with the columns as fields",
        needs: "reading the file",
        parameters: &[
            RECORDING,
            TIME,
            TIME_FORMAT,
            also(
                "separator",
                Kind::Text,
                ",",
                "what stands between fields; `tab`",
            ),
            also(
                "texts",
                Kind::Text,
                "",
                "columns that are texts, with commas",
            ),
            also(
                "integers",
                Kind::Text,
                "",
                "columns that are whole numbers, with commas",
            ),
            FROM,
            UNTIL,
            PACE,
            PASSES,
            AT_REPLAY,
            LEAD,
        ],
        make: csv,
    },
    Definition {
        name: "replay.json_lines",
        summary: "Lines of JSON of a file, as they were recorded.",
        events: "a value",
        needs: "reading the file",
        parameters: &[
            RECORDING,
            TIME,
            TIME_FORMAT,
            FROM,
            UNTIL,
            PACE,
            PASSES,
            AT_REPLAY,
            LEAD,
        ],
        make: |given| {
            let replay = given.recording(replay::json_lines)?;
            replayed(timed(replay, given)?, given)
        },
    },
    Definition {
        name: "replay.nmea",
        summary: "Positions of recorded NMEA sentences.",
        events: "Position",
        needs: "reading the file",
        parameters: &[RECORDING, FROM, UNTIL, PACE, PASSES, AT_REPLAY, LEAD],
        make: |given| replayed(given.recording(replay::nmea)?, given),
    },
    Definition {
        name: "serial.bytes",
        summary: "Bytes that come over a serial line.",
        events: "Bytes",
        needs: "opening the device: mostly the group `dialout`",
        parameters: &[DEVICE, BAUD, PARITY, STOP_BITS, FLOW_CONTROL],
        make: |given| {
            let serial = serial::bytes(given.needed("path")?);
            Ok(Made::of(line(serial, given)?))
        },
    },
    Definition {
        name: "serial.lines",
        summary: "Lines that come over a serial line.",
        events: "Text, Number, Position or a value",
        needs: "opening the device: mostly the group `dialout`",
        parameters: &[DEVICE, FORMAT, BAUD, PARITY, STOP_BITS, FLOW_CONTROL],
        make: |given| {
            let serial = serial::lines(given.needed("path")?).format(format(given));
            Ok(Made::of(line(serial, given)?))
        },
    },
    Definition {
        name: "timer.daily",
        summary: "Ticks at times of day.",
        events: "Tick",
        needs: "",
        parameters: &[
            first("at", "times of day, with commas: 07:30,12:00"),
            also(
                "zone",
                Kind::Text,
                "",
                "their time zone, if not this machine's",
            ),
        ],
        make: daily,
    },
    Definition {
        name: "timer.every",
        summary: "Ticks every so often, aligned to the clock.",
        events: "Tick",
        needs: "",
        parameters: &[Declared {
            name: "interval",
            kind: Kind::Span,
            positional: true,
            default: None,
            summary: "how far the ticks are apart",
        }],
        make: |given| {
            let interval = given.span("interval")?.unwrap_or_default();
            Ok(Made::of(timer::every(interval)))
        },
    },
];

const RECORDING: Declared = first("path", "the file");

const TIME: Declared = also(
    "time",
    Kind::Text,
    "time",
    "the field that says when it was",
);

const TIME_FORMAT: Declared = also(
    "time_format",
    Kind::Choice(&["rfc3339", "utc", "seconds", "milliseconds", "nanoseconds"]),
    "rfc3339",
    "how that is written: with or without a zone, or counted since 1970",
);

const FROM: Declared = also("from", Kind::Text, "", "where it begins, in RFC 3339");

const UNTIL: Declared = also("until", Kind::Text, "", "where it ends, in RFC 3339");

const PACE: Declared = also(
    "pace",
    Kind::Text,
    "1",
    "how many times as fast as it was recorded, or `immediate`",
);

const PASSES: Declared = also("passes", Kind::Text, "1", "how often, or `forever`");

const AT_REPLAY: Declared = also(
    "at_replay",
    Kind::Flag,
    "false",
    "whether events have the time of replay instead of the recorded one",
);

const LEAD: Declared = also(
    "lead",
    Kind::Span,
    "",
    "from how long before a time that is sought rows come at once",
);

const DEVICE: Declared = first("path", "the device: /dev/serial/by-id/…");

const BAUD: Declared = also("baud", Kind::Integer, "9600", "bits in a second");

const PARITY: Declared = also(
    "parity",
    Kind::Choice(&["none", "even", "odd"]),
    "none",
    "a bit that tells errors",
);

const STOP_BITS: Declared = also(
    "two_stop_bits",
    Kind::Flag,
    "false",
    "whether two bits end a character",
);

const FLOW_CONTROL: Declared = also(
    "flow_control",
    Kind::Flag,
    "false",
    "whether the wires RTS and CTS stop the sender",
);

fn sampled(sampler: Sampler, given: &Given<'_>) -> Result {
    let sampler = match given.span("every")? {
        Some(every) => sampler.every(every),
        None => sampler,
    };
    Ok(Made::of(sampler.below(given.needed("root")?)))
}

fn format(given: &Given<'_>) -> Format {
    if let Some(own) = given.format() {
        return own;
    }
    match given.text("format") {
        Some("number") => Format::number(),
        Some("json") => Format::json::<Value>(),
        Some("positions") => nmea::positions(),
        _ => Format::text(),
    }
}

fn shell(given: &Given<'_>) -> Result {
    let mut command = command::shell(given.needed("run")?).format(format(given));
    if let Some(every) = given.span("every")? {
        command = command.every(every);
    }
    if given.flag("once")? {
        command = command.once();
    }
    if let Some(folder) = given.text("folder") {
        command = command.folder(folder);
    }
    Ok(Made::of(command))
}

fn content(given: &Given<'_>) -> Result {
    let content = files::content(given.needed("path")?).format(format(given));
    Ok(match given.span("every")? {
        Some(every) => Made::of(content.every(every)),
        None => Made::of(content),
    })
}

fn folder(given: &Given<'_>) -> Result {
    let folder = files::folder(given.needed("path")?);
    Ok(match given.flag("existing")? {
        true => Made::of(folder.with_existing()),
        false => Made::of(folder),
    })
}

#[cfg(feature = "gpio")]
fn gpio(given: &Given<'_>) -> Result {
    use crate::gpio::{self, Bias};
    let mut lines = gpio::lines(given.needed("chip")?, given.list("lines"));
    let bias = match given.text("bias") {
        Some("pull_up") => Some(Bias::PullUp),
        Some("pull_down") => Some(Bias::PullDown),
        Some("disabled") => Some(Bias::Disabled),
        _ => None,
    };
    if let Some(bias) = bias {
        lines = lines.bias(bias);
    }
    if given.flag("active_low")? {
        lines = lines.active_low();
    }
    let debounce = given.span("debounce")?.unwrap_or_default();
    Ok(Made::of(lines.debounce(debounce)))
}

#[cfg(not(feature = "gpio"))]
fn gpio(given: &Given<'_>) -> Result {
    Err(given.refuse("this program was built without GPIO lines; build it with feature `gpio`"))
}

fn csv(given: &Given<'_>) -> Result {
    let mut replay = given.recording(replay::csv)?;
    if given.text("separator") == Some("tab") {
        replay = replay.separator('\t');
    } else if let Some(separator) = given.parsed("separator", "one character or `tab`")? {
        replay = replay.separator(separator);
    }
    for column in given.list("texts") {
        replay = replay.column(column, Column::Text);
    }
    for column in given.list("integers") {
        replay = replay.column(column, Column::Integer);
    }
    replayed(timed(replay, given)?, given)
}

fn timed(replay: Replay, given: &Given<'_>) -> Result<Replay> {
    let format = match given.text("time_format") {
        Some("utc") => TimeFormat::Utc,
        Some("seconds") => TimeFormat::UnixSeconds,
        Some("milliseconds") => TimeFormat::UnixMilliseconds,
        Some("nanoseconds") => TimeFormat::UnixNanoseconds,
        _ => TimeFormat::Rfc3339,
    };
    Ok(replay.time(given.needed("time")?, format))
}

fn replayed(mut replay: Replay, given: &Given<'_>) -> Result {
    const POINT: &str = "a point in time as 2013-05-08T14:00:00Z";
    if let Some(from) = given.parsed("from", POINT)? {
        replay = replay.from(from);
    }
    if let Some(until) = given.parsed("until", POINT)? {
        replay = replay.until(until);
    }
    let pace = match given.text("pace") {
        Some("immediate") => Pace::Immediate,
        _ => Pace::Times(
            given
                .parsed("pace", "a number or `immediate`")?
                .unwrap_or(1.0),
        ),
    };
    let replay = match given.text("passes") {
        Some("forever") => replay.forever(),
        _ => replay.passes(
            given
                .parsed("passes", "a whole number or `forever`")?
                .unwrap_or(1),
        ),
    };
    let mut replay = replay.pace(pace);
    if given.flag("at_replay")? {
        replay = replay.at_replay();
    }
    if let Some(lead) = given.span("lead")? {
        replay = replay.lead(lead.into());
    }
    let control = Some(replay.control());
    Ok(Made {
        control,
        ..Made::of(replay)
    })
}

fn line(serial: Serial, given: &Given<'_>) -> Result<Serial> {
    let parity = match given.text("parity") {
        Some("even") => Parity::Even,
        Some("odd") => Parity::Odd,
        _ => Parity::None,
    };
    let mut serial = serial.parity(parity);
    if let Some(baud) = given.parsed("baud", "a whole number")? {
        serial = serial.baud(baud);
    }
    if given.flag("two_stop_bits")? {
        serial = serial.two_stop_bits();
    }
    if given.flag("flow_control")? {
        serial = serial.flow_control();
    }
    Ok(serial)
}

fn daily(given: &Given<'_>) -> Result {
    let times: Result<Vec<timer::TimeOfDay>> =
        given.list("at").into_iter().map(str::parse).collect();
    let times = times.map_err(|failure| given.failure("at", failure))?;
    let timer = timer::daily(times);
    Ok(match given.text("zone") {
        Some(zone) => {
            let zoned = timer.zone(zone);
            Made::of(zoned.map_err(|failure| given.failure("zone", failure))?)
        }
        None => Made::of(timer),
    })
}
