//! Quantities in few letters, for people.

use super::picture::Latency;

/// Events in a second: `0/s`, `0.25/s`, `12.5/s`, `480/s`, `12.3k/s`.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        rate if rate >= 999_500.0 => format!("{}M/s", digits(rate / 1e6)),
        rate if rate >= 9_999.5 => format!("{}k/s", digits(rate / 1e3)),
        rate => format!("{}/s", digits(rate)),
    }
}

/// A duration: `850 µs`, `1.2 ms`, `3.5 s`, `12 min`.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.999_5e-6 => format!("{} ns", digits(s * 1e9)),
        s if s < 0.999_5e-3 => format!("{} µs", digits(s * 1e6)),
        s if s < 0.999_5 => format!("{} ms", digits(s * 1e3)),
        s if s < 119.5 => format!("{} s", digits(s)),
        s if s < 7_170.0 => format!("{} min", digits(s / 60.0)),
        s if s < 172_000.0 => format!("{} h", digits(s / 3600.0)),
        s => format!("{} d", digits(s / 86_400.0)),
    }
}

/// How many events were dropped for each reason, if there are any: `3 overflow`.
pub(super) fn reasons(dropped: &[(String, u64)], between: &str) -> Option<String> {
    let reasons = dropped.iter();
    let reasons: Vec<String> = reasons
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    (!reasons.is_empty()).then(|| reasons.join(between))
}

/// `p50 12 µs, p99 80 µs, max 1.2 ms`.
pub(super) fn latency(latency: &Latency) -> String {
    let [p50, p99, max] = [latency.p50, latency.p99, latency.max].map(duration);
    format!("p50 {p50}, p99 {p99}, max {max}")
}

/// Three digits that count, without zeros at the end of a fraction.
fn digits(number: f64) -> String {
    let places = match number {
        number if number >= 99.95 => 0,
        number if number >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let rates = [0.0, 0.25, 1.0, 12.54, 99.96, 480.4, 9999.0, 12_345.0, 2.5e6];
        let expected = [
            "0/s", "0.25/s", "1/s", "12.5/s", "100/s", "480/s", "9999/s", "12.3k/s", "2.5M/s",
        ];
        assert_eq!(rates.map(rate), expected);
        let seconds = [
            0.0, 5e-7, 8.5e-4, 0.9999, 3.5, 90.0, 720.0, 7200.0, 259_200.0,
        ];
        let expected = [
            "0 ns", "500 ns", "850 µs", "1 s", "3.5 s", "90 s", "12 min", "2 h", "3 d",
        ];
        assert_eq!(seconds.map(duration), expected);
    }
}
