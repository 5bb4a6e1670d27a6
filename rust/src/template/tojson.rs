//! The tojson filter as transformers defines it: json.dumps with ensure_ascii off, no HTML escapes,
//! keys in their own order.

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::python;

struct Style {
    ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort: bool,
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Positional order: ensure_ascii, indent, separators, sort_keys.
fn style(args: &[Value], kwargs: &Kwargs) -> Result<Style, Error> {
    let argument = |at: usize, name: &str| -> Result<Option<Value>, Error> {
        let given: Option<Value> = kwargs.get(name)?;
        Ok(given.or_else(|| args.get(at).cloned()).filter(|v| !v.is_none() && !v.is_undefined()))
    };
    let indent = match argument(1, "indent")? {
        None => None,
        Some(v) if v.kind() == ValueKind::String => Some(v.to_string()),
        Some(v) => {
            let width = i64::try_from(v)?;
            Some(" ".repeat(width.clamp(0, 64) as usize))
        }
    };
    let (mut item, mut key) = (", ".to_string(), ": ".to_string());
    if indent.is_some() {
        item = ",".to_string();
    }
    if let Some(separators) = argument(2, "separators")? {
        item = separators.get_item(&Value::from(0))?.to_string();
        key = separators.get_item(&Value::from(1))?.to_string();
    }
    let flag = |at, name| Ok::<_, Error>(argument(at, name)?.is_some_and(|v| v.is_true()));
    let (ascii, sort) = (flag(0, "ensure_ascii")?, flag(3, "sort_keys")?);
    kwargs.assert_all_used()?;
    Ok(Style { ascii, indent, item, key, sort })
}

fn string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || (ascii && (c as u32) > 0x7e) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn number(value: &Value) -> String {
    match python::as_float(value) {
        Some(f) if f.is_nan() => "NaN".into(),
        Some(f) if f.is_infinite() => {
            if f > 0.0 {
                "Infinity".into()
            } else {
                "-Infinity".into()
            }
        }
        Some(f) => python::float(f),
        None => value.to_string(),
    }
}

fn scalar_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.to_string()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true".into() } else { "false".into() }),
        ValueKind::Number => Ok(number(key)),
        other => Err(invalid(format!("a key of type {other} is not JSON serializable"))),
    }
}

fn line(style: &Style, depth: usize, out: &mut String) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn write(value: &Value, style: &Style, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > 200 {
        return Err(invalid("tojson: nested too deeply"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => string(&value.to_string(), style.ascii, out),
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                entries.push((scalar_key(&key)?, value.get_item(&key)?));
            }
            if style.sort {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
            }
            out.push('{');
            for (i, (key, item)) in entries.iter().enumerate() {
                if i > 0 {
                    out.push_str(&style.item);
                }
                line(style, depth + 1, out);
                string(key, style.ascii, out);
                out.push_str(&style.key);
                write(item, style, depth + 1, out)?;
            }
            if !entries.is_empty() {
                line(style, depth, out);
            }
            out.push('}');
        }
        ValueKind::Seq => {
            let items: Vec<Value> = value.try_iter()?.collect();
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(&style.item);
                }
                line(style, depth + 1, out);
                write(item, style, depth + 1, out)?;
            }
            if !items.is_empty() {
                line(style, depth, out);
            }
            out.push(']');
        }
        other => {
            return Err(invalid(format!(
                "tojson: a value of type {other} is not JSON serializable"
            )))
        }
    }
    Ok(())
}

pub fn tojson(
    state: &State,
    value: &Value,
    args: Rest<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let style = style(&args, &kwargs)?;
    let mut out = String::new();
    write(value, &style, 0, &mut out)?;
    state.consume_fuel(out.len() as u64 / 64)?;
    Ok(Value::from(out))
}
