//! Quantities: a number and a unit, such as `10 MB` or `1.5 h`.

use super::Shortened;

/// What unit a value is given in.
#[derive(Clone, Debug)]
pub(super) enum Unit {
    /// A known dimension, whose units convert into each other.
    Known {
        dimension: &'static Dimension,
        /// The unit that numbers are in, and how many of the smallest one it
        /// has.
        base: (&'static str, i128),
    },
    /// A unit that is only a word, written exactly so.
    Word(String),
}

/// Units that convert into each other.
#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) name: &'static str,
    /// What a number without a unit is in, unless the metadata `unit` says.
    pub(super) base: &'static str,
    example: &'static str,
    /// Units and how many of the smallest one they have.
    units: &'static [(&'static str, i128)],
}

static MEMORY: Dimension = Dimension {
    name: "memory",
    base: "B",
    example: "10 MB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("PB", 1_000_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("PiB", 1 << 50),
    ],
};

static TIME: Dimension = Dimension {
    name: "time",
    base: "s",
    example: "500 ms",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
};

impl Dimension {
    pub(super) fn parse(name: &str) -> Option<&'static Dimension> {
        [&MEMORY, &TIME].into_iter().find(|d| d.name == name)
    }

    fn units_listed(&self) -> String {
        let names: Vec<&str> = self.units.iter().map(|&(name, _)| name).collect();
        names.join(", ")
    }

    fn find(&self, unit: &str) -> Option<(&'static str, i128)> {
        self.units.iter().copied().find(|&(name, _)| name == unit)
    }
}

impl Unit {
    /// The unit that `check/unit` names; `base` is the metadata `unit`.
    pub(super) fn parse(text: &str, base: Option<&str>) -> Result<Unit, (String, String)> {
        // Nothing stands for memory, as Elektra's plugin checks only that.
        let name = if text.is_empty() { "memory" } else { text };
        if let Some(dimension) = Dimension::parse(name) {
            let base = base.unwrap_or(dimension.base);
            return match dimension.find(base) {
                Some(base) => Ok(Unit::Known { dimension, base }),
                None => Err((
                    format!("the metadata `unit={base}` is no unit of {name}"),
                    format!("make `unit` one of {}", dimension.units_listed()),
                )),
            };
        }
        let is_unit = !text.contains(|c: char| {
            c.is_whitespace() || c.is_control() || c.is_ascii_digit() || c == '-' || c == '+'
        });
        if is_unit {
            return Ok(Unit::Word(text.to_owned()));
        }
        Err((
            "a unit is one word without digits".to_owned(),
            "write `memory`, `time`, or the unit itself, such as `hPa`".to_owned(),
        ))
    }

    /// Whether the unit may stand behind a number.
    pub(super) fn knows(&self, unit: &str) -> bool {
        match self {
            Unit::Word(word) => word == unit,
            Unit::Known { dimension, .. } => dimension.find(unit).is_some(),
        }
    }

    /// Reads a quantity into the number that it is in the base unit. Whether a
    /// bare number is enough is for the caller to say.
    pub(super) fn read(&self, text: &str, bare: bool) -> Result<Quantity, String> {
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
            .unwrap_or(text.len());
        let (digits, unit) = (&text[..end], text[end..].trim_start_matches(' '));
        let decimal = Decimal::parse(digits)
            .ok_or_else(|| format!("does not begin with a number; write {}", self.example()))?;
        if unit.is_empty() && !bare {
            return Err(format!("has no unit; write {}", self.example()));
        }
        let (factor, base) = match self {
            _ if unit.is_empty() => (1, 1),
            Unit::Word(word) if word == unit => (1, 1),
            Unit::Word(word) => {
                return Err(format!("is not in {word}; write {}", self.example()));
            }
            Unit::Known { dimension, base } => match dimension.find(unit) {
                Some((_, factor)) => (factor, base.1),
                None => {
                    return Err(format!(
                        "has the unknown unit `{}`; use one of {}",
                        Shortened(unit),
                        dimension.units_listed()
                    ));
                }
            },
        };
        Ok(Quantity {
            decimal,
            factor,
            base,
        })
    }

    fn example(&self) -> String {
        match self {
            Unit::Known { dimension, .. } => format!("for example `{}`", dimension.example),
            Unit::Word(word) => format!("for example `10 {word}`"),
        }
    }
}

/// A number with its conversion to the base unit.
pub(super) struct Quantity {
    decimal: Decimal,
    factor: i128,
    base: i128,
}

impl Quantity {
    /// The number in the base unit when it is a whole one.
    pub(super) fn whole(&self) -> Option<i128> {
        let numerator = self.decimal.digits.checked_mul(self.factor)?;
        let denominator = 10_i128.checked_pow(self.decimal.places)?;
        let denominator = denominator.checked_mul(self.base)?;
        (numerator % denominator == 0).then(|| numerator / denominator)
    }

    /// The number in the base unit, rounded.
    pub(super) fn float(&self) -> f64 {
        let places = i32::try_from(self.decimal.places).unwrap_or(i32::MAX);
        self.decimal.digits as f64 / 10_f64.powi(places) * (self.factor as f64 / self.base as f64)
    }
}

/// A decimal number without rounding: `digits / 10^places`.
pub(super) struct Decimal {
    pub(super) digits: i128,
    pub(super) places: u32,
}

impl Decimal {
    pub(super) fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        if !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let places = u32::try_from(fraction.len()).ok()?;
        Some(Decimal { digits, places })
    }
}

impl Unit {
    /// The unit that numbers without one are in.
    pub(super) fn base(&self) -> &str {
        match self {
            Unit::Word(word) => word,
            Unit::Known { base, .. } => base.0,
        }
    }
}

impl std::fmt::Display for Unit {
    /// As the specification writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unit::Word(word) => word,
            Unit::Known { dimension, .. } => dimension.name,
        })
    }
}
