//! Values as Python writes them.

use minijinja::value::ValueKind;
use minijinja::{Error, Output, State, Value};

/// repr() of a float: the shortest digits that read back, an exponent below 1e-4 and from 1e16.
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The float of a value that is one.
pub fn as_float(value: &Value) -> Option<f64> {
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    f64::try_from(value.clone()).ok()
}

/// str(): what `{{ }}` and `~` print.
pub fn text(value: &Value) -> String {
    match as_float(value) {
        Some(number) => float(number),
        None => value.to_string(),
    }
}

pub fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match as_float(value) {
        Some(number) => out.write_str(&float(number)).map_err(Error::from),
        None => minijinja::escape_formatter(out, state, value),
    }
}
