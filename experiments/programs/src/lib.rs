//! What the applications of experiments have in common.

use milieu_bench::run::protocol::Start;

/// Why an application cannot measure.
pub type Failed = Box<dyn std::error::Error>;

/// A parameter that is a whole number, not below 0.
///
/// # Errors
/// It is none, or is not told.
pub fn whole(start: &Start, name: &str) -> Result<u64, Failed> {
    match start.parameters.get(name) {
        Some(milieu_bench::Value::Integer(value)) => Ok(u64::try_from(*value)?),
        _ => Err(format!("`{name}` has to be a whole number").into()),
    }
}

/// A parameter that is a number.
///
/// # Errors
/// It is none, or is not told.
pub fn number(start: &Start, name: &str) -> Result<f64, Failed> {
    let value = start
        .parameters
        .get(name)
        .and_then(milieu_bench::Value::number);
    value.ok_or_else(|| format!("`{name}` has to be a number").into())
}

/// A parameter as a text.
///
/// # Errors
/// It is not told.
pub fn text(start: &Start, name: &str) -> Result<String, Failed> {
    let value = start.parameters.get(name).map(ToString::to_string);
    value.ok_or_else(|| format!("nobody says what `{name}` is").into())
}
