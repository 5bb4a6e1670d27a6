//! JSON schemas before llguidance sees them: what it would ignore or cannot enforce is refused with
//! its path, annotations are dropped, and objects that list their properties are closed.

use llguidance::JsonCompileOptions;
use serde_json::{Map, Number, Value};

use crate::error::{Code, Result, TextError};

/// Assertions that cannot be enforced, in any draft.
const UNSUPPORTED: [&str; 18] = [
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
    "disallow",
    "extends",
];

/// Known to a draft, but no assertion.
const ANNOTATIONS: [&str; 6] = [
    "deprecated",
    "contentSchema",
    "$vocabulary",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$comment",
];

const SCHEMA_MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const SCHEMA_LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SCHEMAS: [&str; 3] = ["items", "additionalItems", "additionalProperties"];

const MAX_PATTERN_BYTES: usize = 4096;
const MAX_PATTERN_NESTING: usize = 100;
const MAX_SUBSCHEMAS: usize = 20_000;

/// Between two parts of JSON. Without a bound a model may write white space until its tokens end.
const WHITE_SPACE: &str = r"[\x20\x0A\x0D\x09]{1,32}";

pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    }
}

/// The subschemas of `part` with their paths.
pub fn children<'a>(part: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (key, value) in part.as_object().into_iter().flatten() {
        let here = join(path, key);
        match value {
            Value::Object(map) if SCHEMA_MAPS.contains(&key.as_str()) => {
                found.extend(map.iter().map(|(name, value)| (join(&here, name), value)));
            }
            Value::Array(list) if SCHEMA_LISTS.contains(&key.as_str()) || key == "items" => {
                let indexed = list.iter().enumerate();
                found.extend(indexed.map(|(i, value)| (format!("{here}[{i}]"), value)));
            }
            Value::Object(_) | Value::Bool(_) if SCHEMAS.contains(&key.as_str()) => {
                found.push((here, value));
            }
            _ => {}
        }
    }
    found
}

fn refuse(path: String, message: String) -> TextError {
    TextError::new(Code::InvalidArgument, path, message)
}

fn check_pattern(pattern: &str, path: &str) -> Result<()> {
    let mut depth = 0usize;
    let mut deepest = 0usize;
    for byte in pattern.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if pattern.len() <= MAX_PATTERN_BYTES && deepest <= MAX_PATTERN_NESTING {
        return Ok(());
    }
    let message = format!(
        "a pattern may have {MAX_PATTERN_BYTES} bytes and be nested {MAX_PATTERN_NESTING} deep"
    );
    Err(refuse(path.to_string(), message))
}

fn check_reference(reference: &Value, path: &str) -> Result<()> {
    let fail = |reason: &str| Err(refuse(join(path, "$ref"), format!("\"$ref\" {reason}")));
    let Some(reference) = reference.as_str() else { return fail("is not a string") };
    if reference != "#" && !reference.starts_with("#/") {
        return fail("may only point into the schema itself, as \"#/$defs/name\"");
    }
    if reference.contains(['~', '%']) {
        return fail("with an escaped name is not supported");
    }
    Ok(())
}

fn check_keywords(part: &Map<String, Value>, path: &str) -> Result<()> {
    for (key, value) in part {
        if UNSUPPORTED.contains(&key.as_str()) {
            return Err(refuse(join(path, key), format!("\"{key}\" cannot be enforced")));
        }
        match (key.as_str(), value) {
            ("$ref", reference) => check_reference(reference, path)?,
            ("$id", _) if !path.is_empty() => {
                return Err(refuse(
                    join(path, key),
                    "\"$id\" below the root is not supported".into(),
                ))
            }
            ("pattern", Value::String(pattern)) => check_pattern(pattern, &join(path, key))?,
            ("patternProperties", Value::Object(map)) => {
                for pattern in map.keys() {
                    check_pattern(pattern, &join(path, key))?;
                }
            }
            (key, value) if SCHEMAS.contains(&key) && key != "items" => {
                if !value.is_object() && !value.is_boolean() {
                    return Err(refuse(join(path, key), format!("\"{key}\" is not a schema")));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn check(part: &Value, path: &str, count: &mut usize) -> Result<()> {
    *count += 1;
    if *count > MAX_SUBSCHEMAS {
        return Err(refuse(path.to_string(), format!("more than {MAX_SUBSCHEMAS} subschemas")));
    }
    match part {
        Value::Bool(_) => return Ok(()),
        Value::Object(object) => check_keywords(object, path)?,
        _ => return Err(refuse(path.to_string(), "a schema is an object or a boolean".into())),
    }
    children(part, path).into_iter().try_for_each(|(below, child)| check(child, &below, count))
}

/// An integer that no double holds becomes the next one inwards.
fn tighten(object: &mut Map<String, Value>) {
    for (key, down) in [
        ("maximum", true),
        ("exclusiveMaximum", true),
        ("minimum", false),
        ("exclusiveMinimum", false),
    ] {
        let Some(Value::Number(number)) = object.get(key) else { continue };
        let exact = match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => value as i128,
            (_, Some(value)) => value as i128,
            _ => continue,
        };
        let mut bound = exact as f64;
        if down && bound as i128 > exact {
            bound = bound.next_down();
        } else if !down && (bound as i128) < exact {
            bound = bound.next_up();
        }
        if bound as i128 != exact {
            object.insert(key.to_string(), Number::from_f64(bound).into());
        }
    }
}

fn for_each_mut(part: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(object) = part else { return };
    change(object);
    for (key, value) in object.iter_mut() {
        match value {
            Value::Object(map) if SCHEMA_MAPS.contains(&key.as_str()) => {
                map.values_mut().for_each(|child| for_each_mut(child, change));
            }
            Value::Array(list) if SCHEMA_LISTS.contains(&key.as_str()) || key == "items" => {
                list.iter_mut().for_each(|child| for_each_mut(child, change));
            }
            Value::Object(_) if SCHEMAS.contains(&key.as_str()) => for_each_mut(value, change),
            _ => {}
        }
    }
}

/// Whether several schemas speak of one object: then one of them does not know all properties.
fn combines(object: &Map<String, Value>) -> bool {
    const NEUTRAL: [&str; 8] =
        ["$defs", "definitions", "$schema", "$id", "title", "description", "default", "examples"];
    let others = object.keys().filter(|key| !NEUTRAL.contains(&key.as_str())).count();
    object.contains_key("allOf")
        || (others > 1 && ["$ref", "anyOf", "oneOf"].iter().any(|key| object.contains_key(*key)))
}

fn may_close(object: &Map<String, Value>) -> bool {
    let Some(Value::Object(properties)) = object.get("properties") else { return false };
    let listed = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
    let required = object.get("required").and_then(Value::as_array);
    required.is_none_or(|names| names.iter().all(listed))
        && !["additionalProperties", "patternProperties", "minProperties"]
            .iter()
            .any(|key| object.contains_key(*key))
}

pub fn add_options(object: &mut Map<String, Value>) {
    let options = JsonCompileOptions {
        whitespace_pattern: Some(WHITE_SPACE.to_string()),
        ..JsonCompileOptions::default()
    };
    let options = serde_json::to_value(options).unwrap_or_default();
    object.insert("x-guidance".to_string(), options);
}

pub fn prepare(mut schema: Value) -> Result<Value> {
    if schema == Value::Bool(true) {
        schema = Value::Object(Map::new());
    }
    for_each_mut(&mut schema, &mut |object| {
        if object.get("uniqueItems") == Some(&Value::Bool(false)) {
            object.shift_remove("uniqueItems");
        }
    });
    check(&schema, "", &mut 0)?;
    let mut combined = false;
    for_each_mut(&mut schema, &mut |object| {
        object.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()) && key != "x-guidance");
        tighten(object);
        combined |= combines(object);
    });
    if !combined {
        for_each_mut(&mut schema, &mut |object| {
            if may_close(object) {
                object.insert("additionalProperties".to_string(), Value::Bool(false));
            }
        });
    }
    match &mut schema {
        Value::Object(object) => add_options(object),
        _ => return Err(refuse(String::new(), "the schema allows nothing".into())),
    }
    Ok(schema)
}

/// Schemas within a Lark grammar keep llguidance's own rules; they must not switch its checks off.
pub fn check_lark(text: &str) -> Result<()> {
    if !text.contains("x-guidance") {
        return Ok(());
    }
    Err(refuse(String::new(), "\"x-guidance\" is not allowed in a grammar".into()))
}
