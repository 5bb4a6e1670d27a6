//! Python's methods that minijinja-contrib's pycompat lacks.

use minijinja::value::{from_args, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// A tuple of Python's, as the list that stands for it here.
fn list(parts: impl IntoIterator<Item = String>) -> Value {
    Value::from(parts.into_iter().map(Value::from).collect::<Vec<_>>())
}

fn rsplit(text: &str, separator: Option<&str>, limit: Option<i64>) -> Result<Value, Error> {
    let limit = limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let mut parts: Vec<String> = match separator {
        Some("") => return Err(invalid("empty separator")),
        Some(s) => text.rsplitn(limit.saturating_add(1), s).map(str::to_string).collect(),
        None => {
            let (mut parts, mut rest) = (Vec::new(), text.trim_end());
            while !rest.is_empty() {
                let cut = rest.rfind(char::is_whitespace).filter(|_| parts.len() < limit);
                let (head, word) = match cut {
                    Some(at) => {
                        let width = rest[at..].chars().next().map_or(1, char::len_utf8);
                        (&rest[..at], &rest[at + width..])
                    }
                    None => ("", rest),
                };
                parts.push(word.to_string());
                rest = head.trim_end();
            }
            parts
        }
    };
    parts.reverse();
    Ok(list(parts))
}

fn pad(
    text: &str,
    width: i64,
    fill: Option<&str>,
    left: bool,
    right: bool,
) -> Result<Value, Error> {
    let width = usize::try_from(width.clamp(0, 100_000)).unwrap_or(0);
    let fill = fill.unwrap_or(" ");
    if fill.chars().count() != 1 {
        return Err(invalid("the fill character must be exactly one character long"));
    }
    let missing = width.saturating_sub(text.chars().count());
    let before = match (left, right) {
        // str.center puts the odd one left when the width is odd.
        (true, true) => missing / 2 + (missing & width & 1),
        (true, false) => missing,
        _ => 0,
    };
    Ok(Value::from(format!("{}{text}{}", fill.repeat(before), fill.repeat(missing - before))))
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    match method {
        "rsplit" => {
            let (separator, limit): (Option<Value>, Option<i64>) = from_args(args)?;
            let separator = separator.filter(|s| !s.is_none()).map(|s| s.to_string());
            rsplit(text, separator.as_deref(), limit)
        }
        "removeprefix" | "removesuffix" => {
            let (part,): (&str,) = from_args(args)?;
            let cut = if method == "removeprefix" {
                text.strip_prefix(part)
            } else {
                text.strip_suffix(part)
            };
            Ok(Value::from(cut.unwrap_or(text)))
        }
        "index" | "rindex" => {
            let (part,): (&str,) = from_args(args)?;
            let at = if method == "index" { text.find(part) } else { text.rfind(part) };
            let at = at.ok_or_else(|| invalid("substring not found"))?;
            Ok(Value::from(text[..at].chars().count()))
        }
        "partition" | "rpartition" => {
            let (part,): (&str,) = from_args(args)?;
            if part.is_empty() {
                return Err(invalid("empty separator"));
            }
            let found = match method {
                "partition" => text.split_once(part),
                _ => text.rsplit_once(part),
            };
            Ok(match (found, method) {
                (Some((a, b)), _) => list([a.into(), part.into(), b.into()]),
                (None, "partition") => list([text.into(), String::new(), String::new()]),
                (None, _) => list([String::new(), String::new(), text.into()]),
            })
        }
        "ljust" | "rjust" | "center" => {
            let (width, fill): (i64, Option<&str>) = from_args(args)?;
            pad(text, width, fill, method != "ljust", method != "rjust")
        }
        "zfill" => {
            let (width,): (i64,) = from_args(args)?;
            let (sign, digits) = match text.strip_prefix(['-', '+']) {
                Some(rest) => text.split_at(text.len() - rest.len()),
                None => ("", text),
            };
            let width = width - sign.len() as i64;
            Ok(Value::from(format!("{sign}{}", pad(digits, width, Some("0"), true, false)?)))
        }
        "casefold" => Ok(Value::from(text.to_lowercase())),
        "swapcase" => Ok(Value::from(
            text.chars()
                .flat_map(|c| {
                    let swapped: Vec<char> = if c.is_uppercase() {
                        c.to_lowercase().collect()
                    } else {
                        c.to_uppercase().collect()
                    };
                    swapped
                })
                .collect::<String>(),
        )),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

pub fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    match pycompat::unknown_method_callback(state, value, method, args) {
        Err(e) if e.kind() == ErrorKind::UnknownMethod => {}
        done => return done,
    }
    match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or_default(), method, args),
        ValueKind::Map if method == "copy" => Ok(value.clone()),
        ValueKind::Seq if method == "copy" => Ok(value.clone()),
        ValueKind::Seq if method == "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            let at = value.try_iter()?.position(|item| item == *wanted);
            at.map(Value::from).ok_or_else(|| invalid("the value is not in the list"))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}
