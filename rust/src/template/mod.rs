//! Chat templates: minijinja set up as the transformers library sets up Jinja.

mod functions;
mod generation;
mod methods;
mod python;
mod tojson;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value};
use serde_json::Value as Json;

use crate::error::{Code, Result, TextError};
use functions::Raised;

/// The budget of one rendering: about as many instructions, or 64 bytes of data each.
const FUEL: u64 = 16_000_000;
const NAME: &str = "chat template";

pub struct TextTemplate {
    environment: Environment<'static>,
}

/// The template's own message if it raised, else what the engine says, with the line.
fn describe(error: &Error) -> TextError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut line = None;
    while let Some(e) = cause {
        if let Some(raised) = e.downcast_ref::<Raised>() {
            return TextError::new(Code::InvalidArgument, "messages", raised.0.clone());
        }
        if let Some(inner) = e.downcast_ref::<Error>() {
            if inner.kind() == ErrorKind::OutOfFuel {
                let message = "the chat template takes too long or too much memory";
                return TextError::new(Code::ResourceExhausted, "messages", message);
            }
            line = inner.line().or(line);
        }
        cause = e.source();
    }
    let detail = error.detail().map(|d| format!(": {d}")).unwrap_or_default();
    let at = line.map(|l| format!(" (line {l})")).unwrap_or_default();
    let message = format!("chat template: {}{detail}{at}", error.kind());
    TextError::new(Code::InvalidArgument, "", message)
}

/// A JSON value as the engine's, keys in their order.
fn value(json: Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::from(items.into_iter().map(value).collect::<Vec<_>>()),
        Json::Object(fields) => Value::from_pairs(fields.into_iter().map(|(k, v)| (k, value(v)))),
    }
}

impl TextTemplate {
    pub fn compile(source: &str, bos: &str, eos: &str) -> Result<Self> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|e| describe(&e))?);
        environment.set_fuel(Some(FUEL));
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(methods::call);
        environment.set_formatter(python::write);
        functions::install(&mut environment);
        environment.add_global("bos_token", bos);
        environment.add_global("eos_token", eos);
        let source = generation::rewrite(source);
        environment.add_template_owned(NAME, source).map_err(|e| describe(&e))?;
        Ok(Self { environment })
    }

    /// `time` is what strftime_now tells, in seconds since 1970.
    pub fn render(&self, context: &str, time: i64) -> Result<String> {
        let json: Json = serde_json::from_str(context).map_err(|e| {
            TextError::new(Code::InvalidArgument, "", format!("malformed context: {e}"))
        })?;
        let Json::Object(fields) = json else {
            return Err(TextError::new(Code::InvalidArgument, "", "the context is not an object"));
        };
        let now = Value::from_function(move |format: &str| functions::strftime(format, time));
        let mut names = vec![("strftime_now".to_string(), now)];
        names.extend(fields.into_iter().map(|(name, field)| (name, value(field))));
        let template = self.environment.get_template(NAME).map_err(|e| describe(&e))?;
        template.render(Value::from_pairs(names)).map_err(|e| describe(&e))
    }
}
