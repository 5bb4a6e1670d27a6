//! Which part of a schema cannot be compiled: the deepest subschema that fails alone, and the
//! keyword without which it does not.

use std::time::{Duration, Instant};

use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value};

use super::schema;
use super::spec::{parse_schema, Kind, Spec};

/// Compiling is the only test there is; a schema of many parts is searched only so far.
const MAX_TRIALS: usize = 200;
const MAX_TIME: Duration = Duration::from_secs(1);

struct Search<'a> {
    compiles: &'a dyn Fn(TopLevelGrammar) -> bool,
    definitions: Map<String, Value>,
    trials: usize,
    since: Instant,
}

impl Search<'_> {
    fn over(&self) -> bool {
        self.trials >= MAX_TRIALS || self.since.elapsed() > MAX_TIME
    }

    fn fails(&mut self, part: &Value) -> bool {
        if self.over() {
            return false;
        }
        self.trials += 1;
        let mut alone = part.clone();
        if let Value::Object(object) = &mut alone {
            for (key, value) in &self.definitions {
                object.entry(key.clone()).or_insert_with(|| value.clone());
            }
            schema::add_options(object);
        }
        !(self.compiles)(TopLevelGrammar::from_json_schema(alone))
    }

    /// REQUIRES: `part` fails.
    fn descend(&mut self, part: &Value, path: &str) -> (String, String) {
        for (below, child) in schema::children(part, path) {
            if !child.is_boolean() && self.fails(child) {
                return self.descend(child, &below);
            }
        }
        for (keyword, _) in part.as_object().into_iter().flatten() {
            if keyword == "type" || self.definitions.contains_key(keyword) {
                continue;
            }
            let mut without = part.clone();
            if let Value::Object(object) = &mut without {
                object.shift_remove(keyword);
            }
            if !self.over() && !self.fails(&without) {
                return (schema::join(path, keyword), keyword.clone());
            }
        }
        (path.to_string(), String::new())
    }
}

fn in_schema(
    text: &str,
    compiles: &dyn Fn(TopLevelGrammar) -> bool,
    root: &str,
) -> Option<(String, String)> {
    let whole = parse_schema(text).ok()?;
    let mut definitions = Map::new();
    for key in ["$defs", "definitions"] {
        if let Some(value) = whole.get(key) {
            definitions.insert(key.to_string(), value.clone());
        }
    }
    let mut search = Search { compiles, definitions, trials: 0, since: Instant::now() };
    search.fails(&whole).then(|| search.descend(&whole, root))
}

/// Path and keyword; both may be empty.
pub fn find(spec: &Spec, compiles: &dyn Fn(TopLevelGrammar) -> bool) -> (String, String) {
    let body = match spec.kind {
        Kind::JsonSchema => in_schema(&spec.text, compiles, ""),
        _ => None,
    };
    let mut calls = spec.calls.iter().enumerate();
    let found = body.or_else(|| {
        calls.find_map(|(i, call)| in_schema(&call.schema, compiles, &format!("[{i}]")))
    });
    found.unwrap_or_default()
}
