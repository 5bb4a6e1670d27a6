//! The pre-tokeniser: that of the tokenizers library, with its regular expressions run by Splitter.

use serde::Deserialize;
use serde_json::Value;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::tokenizer::pattern::Invert;
use tokenizers::{PreTokenizedString, PreTokenizer, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::error::{Code, Result, TextError};
use crate::split::Splitter;

/// The pattern that ByteLevel with use_regex stands for (GPT-2's).
pub const GPT2_PATTERN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

enum Step {
    Split { splitter: Splitter, behavior: SplitDelimiterBehavior, invert: bool },
    PrefixSpace,
    Bytes(ByteLevel),
    Library(PreTokenizerWrapper),
}

/// The steps in order; none leaves the text whole.
#[derive(Default)]
pub struct PreTokenizerSteps(Vec<Step>);

#[derive(Deserialize)]
enum PatternField {
    String(String),
    Regex(String),
}

#[derive(Deserialize)]
struct SplitFields {
    pattern: PatternField,
    behavior: SplitDelimiterBehavior,
    #[serde(default)]
    invert: bool,
}

fn fault(key: &str, reason: impl std::fmt::Display) -> TextError {
    TextError::new(Code::DataLoss, key, format!("{key}: {reason}"))
}

/// A pattern that matches `literal` and nothing else.
fn escape(literal: &str) -> String {
    literal.chars().map(|c| format!("\\x{{{:x}}}", c as u32)).collect()
}

impl PreTokenizerSteps {
    /// From the "pre_tokenizer" value of a tokenizer.json, which may be null.
    pub fn from_json(value: &Value) -> Result<Self> {
        let mut steps = Self::default();
        steps.add_json(value, "pre_tokenizer")?;
        Ok(steps)
    }

    fn add_json(&mut self, value: &Value, key: &str) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        match value.get("type").and_then(Value::as_str) {
            Some("Sequence") => {
                let list = value.get("pretokenizers").and_then(Value::as_array);
                let list = list.ok_or_else(|| fault(key, "pretokenizers is not a list"))?;
                for (i, inner) in list.iter().enumerate() {
                    self.add_json(inner, &format!("{key}.pretokenizers[{i}]"))?;
                }
            }
            Some("Split") => {
                let fields = SplitFields::deserialize(value).map_err(|e| fault(key, e))?;
                let pattern = match fields.pattern {
                    PatternField::Regex(regex) => regex,
                    PatternField::String(text) => escape(&text),
                };
                let splitter =
                    Splitter::new(&pattern).map_err(|e| fault(&format!("{key}.pattern"), e))?;
                self.0.push(Step::Split {
                    splitter,
                    behavior: fields.behavior,
                    invert: fields.invert,
                });
            }
            Some("ByteLevel") => {
                let level = ByteLevel::deserialize(value).map_err(|e| fault(key, e))?;
                if level.add_prefix_space {
                    self.0.push(Step::PrefixSpace);
                }
                if level.use_regex {
                    self.isolate(GPT2_PATTERN).map_err(|e| fault(key, e))?;
                }
                self.bytes();
            }
            Some(_) => {
                let library = PreTokenizerWrapper::deserialize(value).map_err(|e| fault(key, e))?;
                self.0.push(Step::Library(library));
            }
            None => return Err(fault(key, "type is missing")),
        }
        Ok(())
    }

    /// Every match and every text between matches becomes a piece of its own.
    pub fn isolate(&mut self, pattern: &str) -> std::result::Result<(), String> {
        let splitter = Splitter::new(pattern)?;
        let behavior = SplitDelimiterBehavior::Isolated;
        self.0.push(Step::Split { splitter, behavior, invert: false });
        Ok(())
    }

    /// Writes each byte as the character that stands for it in byte-level vocabularies.
    pub fn bytes(&mut self) {
        self.0.push(Step::Bytes(ByteLevel::new(false, true, false)));
    }
}

impl PreTokenizer for PreTokenizerSteps {
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> tokenizers::Result<()> {
        for step in &self.0 {
            match step {
                Step::Split { splitter, behavior, invert: false } => {
                    text.split(|_, part| part.split(splitter, *behavior))?;
                }
                Step::Split { splitter, behavior, invert: true } => {
                    text.split(|_, part| part.split(Invert(splitter), *behavior))?;
                }
                Step::PrefixSpace => text.split(|_, mut part| {
                    if !part.get().starts_with(' ') {
                        part.prepend(" ");
                    }
                    Ok(vec![part])
                })?,
                Step::Bytes(level) => level.pre_tokenize(text)?,
                Step::Library(library) => library.pre_tokenize(text)?,
            }
        }
        Ok(())
    }
}
