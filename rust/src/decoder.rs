//! TokenDecoder: the "decoder" of a tokenizer.json, read as a map from the text of a token to its
//! bytes. Every decoder of a language model is one, but for the single leading space that some
//! strip from the whole text; a decoder that is not is refused.

use serde_json::Value;

use crate::bytes::{byte_level, fallback_byte};
use crate::error::{Code, Result, TextError};

enum Step {
    ByteLevel,
    ByteFallback,
    Replace(String, String),
}

#[derive(Default)]
pub struct TokenDecoder {
    steps: Vec<Step>,
    fused: bool,
    strips_leading_space: bool,
}

fn fault(key: &str, reason: impl std::fmt::Display) -> TextError {
    TextError::new(Code::Unimplemented, key, format!("{key}: {reason}"))
}

fn text<'a>(value: &'a Value, name: &str, key: &str) -> Result<&'a str> {
    let found = value.get(name).and_then(Value::as_str);
    found.ok_or_else(|| {
        TextError::new(Code::DataLoss, key, format!("{key}: {name} is not a string"))
    })
}

fn holds_byte_level(value: &Value) -> bool {
    let inner = value.get("pretokenizers").and_then(Value::as_array);
    value.get("type").and_then(Value::as_str) == Some("ByteLevel")
        || inner.is_some_and(|list| list.iter().any(holds_byte_level))
}

impl TokenDecoder {
    pub fn from_json(decoder: &Value, pre_tokenizer: &Value) -> Result<Self> {
        let mut result = Self::default();
        if !decoder.is_null() {
            result.add(decoder, "decoder")?;
        } else if holds_byte_level(pre_tokenizer) {
            result.steps.push(Step::ByteLevel);
        } else {
            return Err(fault("decoder", "missing"));
        }
        Ok(result)
    }

    fn add(&mut self, value: &Value, key: &str) -> Result<()> {
        match text(value, "type", key)? {
            "Sequence" => {
                let list = value.get("decoders").and_then(Value::as_array);
                let list = list.ok_or_else(|| fault(key, "decoders is not a list"))?;
                for (i, inner) in list.iter().enumerate() {
                    self.add(inner, &format!("{key}.decoders[{i}]"))?;
                }
            }
            "ByteLevel" => self.steps.push(Step::ByteLevel),
            "ByteFallback" => self.steps.push(Step::ByteFallback),
            "Fuse" => self.fused = true,
            "Replace" => {
                let pattern = value.get("pattern").unwrap_or(&Value::Null);
                let from = text(pattern, "String", key)?;
                // After Fuse a longer pattern could span tokens.
                if self.fused && from.chars().count() != 1 {
                    return Err(fault(key, "a pattern over several tokens is not supported"));
                }
                let to = text(value, "content", key)?;
                self.steps.push(Step::Replace(from.to_string(), to.to_string()));
            }
            "Metaspace" => {
                let mark = value.get("replacement").and_then(Value::as_str).unwrap_or("\u{2581}");
                self.steps.push(Step::Replace(mark.to_string(), " ".to_string()));
                let scheme = value.get("prepend_scheme").and_then(Value::as_str);
                let old_flag = value.get("add_prefix_space").and_then(Value::as_bool);
                self.strips_leading_space = match scheme {
                    Some(scheme) => scheme != "never",
                    None => old_flag.unwrap_or(true),
                };
            }
            "Strip" => {
                let number = |name| value.get(name).and_then(Value::as_u64).unwrap_or(0);
                let (start, stop) = (number("start"), number("stop"));
                if (start, stop) == (0, 0) {
                    return Ok(());
                }
                if !self.fused || text(value, "content", key)? != " " || (start, stop) != (1, 0) {
                    return Err(fault(
                        key,
                        "only one leading space of the whole text can be stripped",
                    ));
                }
                self.strips_leading_space = true;
            }
            other => return Err(fault(key, format!("{other:?} is not supported"))),
        }
        Ok(())
    }

    pub fn bytes(&self, token: &str) -> Vec<u8> {
        let mut text = token.to_string();
        for step in &self.steps {
            match step {
                Step::Replace(from, to) => text = text.replace(from.as_str(), to),
                Step::ByteLevel => return byte_level(&text),
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(&text) {
                        return vec![byte];
                    }
                }
            }
        }
        text.into_bytes()
    }

    pub fn strips_leading_space(&self) -> bool {
        self.strips_leading_space
    }
}
