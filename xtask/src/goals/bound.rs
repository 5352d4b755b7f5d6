//! A bound on a figure: `<= 1.0`.

use std::fmt;
use std::str::FromStr;

/// What a measured figure must satisfy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    comparison: Comparison,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    AtMost,
    Below,
    AtLeast,
    Above,
}

const COMPARISONS: [(&str, Comparison); 4] = [
    // The longer signs first: `<` is a prefix of `<=`.
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

impl Bound {
    /// Whether the figure keeps the bound; what is no number keeps none.
    pub fn holds(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::AtMost => value <= self.limit,
            Comparison::Below => value < self.limit,
            Comparison::AtLeast => value >= self.limit,
            Comparison::Above => value > self.limit,
        }
    }
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        COMPARISONS
            .iter()
            .find_map(|(sign, comparison)| {
                let limit = text.trim().strip_prefix(sign)?.trim().parse().ok()?;
                Some(Self {
                    comparison: *comparison,
                    limit,
                })
            })
            .filter(|bound| bound.limit.is_finite())
            .ok_or_else(|| format!("`{text}` is no bound; write one like `<= 1.5` or `> 10`"))
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = COMPARISONS
            .iter()
            .find(|(_, comparison)| *comparison == self.comparison)
            .map_or("", |(sign, _)| sign);
        write!(out, "{sign} {}", self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::Bound;

    #[test]
    fn bounds_hold_up_to_their_limit() {
        for (bound, held, missed) in [
            ("<= 1.0", 1.0, 1.001),
            ("< 1.0", 0.99, 1.0),
            (">= 20", 20.0, 19.9),
            (">5", 5.1, 5.0),
        ] {
            let bound: Bound = bound.parse().unwrap();
            assert!(bound.holds(held), "{bound}");
            assert!(!bound.holds(missed), "{bound}");
            assert!(!bound.holds(f64::NAN), "{bound}");
        }
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        for text in ["", "1.0", "= 1", "<= fast", "<= inf"] {
            let message = text.parse::<Bound>().unwrap_err();
            assert!(message.contains("<= 1.5"), "{message}");
        }
    }
}
