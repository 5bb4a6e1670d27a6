//! Values as Python writes them.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Output, State, Value};

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

/// repr() of a string: single quotes unless only the text has those.
fn quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c < ' ' || ('\u{7f}'..='\u{a0}').contains(&c) || c == '\u{ad}' => {
                out.push_str(&format!("\\x{:02x}", c as u32))
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// repr(): how Python writes a value within a list or a dictionary.
fn repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > 200 {
        return Err(Error::new(ErrorKind::InvalidOperation, "nested too deeply"));
    }
    match value.kind() {
        ValueKind::String => quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq => {
            out.push('[');
            for (i, item) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                repr(&item, depth + 1, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                repr(&key, depth + 1, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        _ => match as_float(value) {
            Some(number) => out.push_str(&float(number)),
            None => out.push_str(&value.to_string()),
        },
    }
    Ok(())
}

/// str(): what `{{ }}` prints.
pub fn text(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    match value.kind() {
        ValueKind::Seq | ValueKind::Map => repr(value, 0, &mut out)?,
        _ => match as_float(value) {
            Some(number) => out = float(number),
            None => out = value.to_string(),
        },
    }
    Ok(out)
}

pub fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let plain = !matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Number);
    if plain {
        return minijinja::escape_formatter(out, state, value);
    }
    out.write_str(&text(value)?).map_err(Error::from)
}
