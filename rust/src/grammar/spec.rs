//! What an answer must look like, as src/grammar/grammar.h describes it, and the way from there to
//! llguidance's grammars. The limits on size and nesting are here.

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde::Deserialize;
use serde_json::Value;

use super::{gbnf, schema};
use crate::error::{Code, Result, TextError};

const MAX_SCHEMA_BYTES: usize = 256 << 10;
const MAX_GRAMMAR_BYTES: usize = 64 << 10;
const MAX_REGEX_BYTES: usize = 16 << 10;
const MAX_CHOICES: usize = 10_000;
const MAX_NESTING: usize = 100;

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    JsonSchema,
    Regex,
    Choice,
    Lark,
    Gbnf,
    Calls,
}

/// One of the calls that an answer may make: fixed text around JSON of a schema.
#[derive(Deserialize, Clone)]
pub struct Call {
    pub before: String,
    pub schema: String,
    pub after: String,
}

#[derive(Deserialize, Clone)]
pub struct Spec {
    pub kind: Kind,
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub calls: Vec<Call>,
    /// How a list of calls begins, is separated and ends.
    #[serde(default)]
    pub open: String,
    #[serde(default)]
    pub separator: String,
    #[serde(default)]
    pub close: String,
    #[serde(default)]
    pub many: bool,
    /// The reasoning before the answer: its tags, and whether the prompt has opened it.
    #[serde(default)]
    pub think_begin: String,
    #[serde(default)]
    pub think_end: String,
    #[serde(default)]
    pub think_opened: bool,
    /// Parts of the fixed texts that are control tokens.
    #[serde(default)]
    pub controls: Vec<(String, u32)>,
}

fn refuse(message: String) -> TextError {
    TextError::new(Code::InvalidArgument, "", message)
}

fn check_size(text: &str, most: usize) -> Result<()> {
    if text.len() <= most {
        return Ok(());
    }
    Err(refuse(format!("it has {} bytes; at most {most} are taken", text.len())))
}

/// Parsers recurse at brackets: escaped ones and those in classes or strings are counted too, which
/// only makes the limit stricter.
fn check_nesting(text: &str) -> Result<()> {
    let mut depth = 0usize;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(refuse(format!("it is nested deeper than {MAX_NESTING} levels")));
        }
    }
    Ok(())
}

pub fn parse_schema(text: &str) -> Result<Value> {
    check_size(text, MAX_SCHEMA_BYTES)?;
    let value = serde_json::from_str(text)
        .map_err(|e| refuse(format!("the schema is not valid JSON: {e}")))?;
    schema::prepare(value)
}

fn parse_choices(text: &str) -> Result<Vec<String>> {
    check_size(text, MAX_SCHEMA_BYTES)?;
    let choices: Vec<String> = serde_json::from_str(text)
        .map_err(|_| refuse("the choices are not a list of strings".to_string()))?;
    if choices.is_empty() || choices.iter().all(String::is_empty) {
        return Err(refuse("there is nothing to choose from".to_string()));
    }
    if choices.len() > MAX_CHOICES {
        return Err(refuse(format!("there are more than {MAX_CHOICES} choices")));
    }
    Ok(choices)
}

/// As a string of the Lark dialect, which is JSON's.
pub fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

fn named(name: &str, mut grammar: GrammarWithLexer) -> GrammarWithLexer {
    grammar.name = Some(name.to_string());
    grammar
}

impl Spec {
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json)
            .map_err(|e| TextError::new(Code::Internal, "", format!("grammar description: {e}")))
    }

    pub fn grammar(&self) -> Result<TopLevelGrammar> {
        let mut grammars = match self.kind {
            Kind::Calls => self.call_grammars("")?,
            _ if self.calls.is_empty() => vec![self.body()?],
            _ => {
                let mut grammars = self.call_grammars(" | @body")?;
                grammars.push(named("body", self.body()?));
                grammars
            }
        };
        if !self.think_end.is_empty() {
            grammars[0].name = Some("answer".to_string());
            grammars.insert(0, self.reasoning());
        }
        Ok(TopLevelGrammar { grammars, max_tokens: None })
    }

    fn body(&self) -> Result<GrammarWithLexer> {
        let text = &self.text;
        match self.kind {
            Kind::JsonSchema => Ok(GrammarWithLexer::from_json_schema(parse_schema(text)?)),
            Kind::Regex => {
                check_size(text, MAX_REGEX_BYTES)?;
                check_nesting(text)?;
                if text.is_empty() {
                    return Err(refuse("the regular expression is empty".to_string()));
                }
                Ok(GrammarWithLexer::from_regex(text))
            }
            Kind::Choice => {
                let choices: Vec<_> = parse_choices(text)?.iter().map(|c| literal(c)).collect();
                Ok(GrammarWithLexer::from_lark(format!("start: {}", choices.join(" | "))))
            }
            Kind::Lark => {
                check_size(text, MAX_GRAMMAR_BYTES)?;
                check_nesting(text)?;
                schema::check_lark(text)?;
                Ok(GrammarWithLexer::from_lark(text.clone()))
            }
            Kind::Gbnf => {
                check_size(text, MAX_GRAMMAR_BYTES)?;
                check_nesting(text)?;
                Ok(GrammarWithLexer::from_lark(gbnf::to_lark(text)?))
            }
            Kind::Calls => Err(refuse("there are no calls".to_string())),
        }
    }

    /// Fixed text, its control tokens as such.
    fn fixed(&self, text: &str) -> String {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((at, control, id)) = self
            .controls
            .iter()
            .filter_map(|(control, id)| rest.find(control).map(|at| (at, control, id)))
            .min()
        {
            if at > 0 {
                parts.push(literal(&rest[..at]));
            }
            parts.push(format!("<[{id}]>"));
            rest = &rest[at + control.len()..];
        }
        if !rest.is_empty() {
            parts.push(literal(rest));
        }
        parts.join(" ")
    }

    /// The first is what the others are parts of; `instead`: what else the answer may be.
    fn call_grammars(&self, instead: &str) -> Result<Vec<GrammarWithLexer>> {
        let mut grammars = vec![GrammarWithLexer::default()];
        let mut options = Vec::new();
        for (i, call) in self.calls.iter().enumerate() {
            let schema = parse_schema(&call.schema).map_err(|e| TextError {
                param: format!("[{i}].{}", e.param).trim_end_matches('.').to_string(),
                ..e
            })?;
            let name = format!("arguments{i}");
            grammars.push(named(&name, GrammarWithLexer::from_json_schema(schema)));
            let (before, after) = (self.fixed(&call.before), self.fixed(&call.after));
            options.push(format!("{before} @{name} {after}"));
        }
        let more = match self.many {
            true => format!("({} call)*", self.fixed(&self.separator)),
            false => String::new(),
        };
        grammars[0] = GrammarWithLexer::from_lark(format!(
            "start: calls{instead}\ncalls: {} call {more} {}\ncall: {}\n",
            self.fixed(&self.open),
            self.fixed(&self.close),
            options.join(" | ")
        ));
        Ok(grammars)
    }

    fn reasoning(&self) -> GrammarWithLexer {
        let end = self.fixed(&self.think_end);
        // A control token ends the text of itself; a text that ends in others is looked for.
        let text = if end.starts_with('<') {
            format!("TEXT? {end} SPACE?\nTEXT: /(?s:.+)/\n")
        } else {
            let escaped: String =
                self.think_end.chars().map(|c| format!("\\x{{{:x}}}", c as u32)).collect();
            format!("text SPACE?\ntext[lazy]: /(?s:.*){escaped}/\n")
        };
        let (optional, begin) = match self.think_opened {
            true => ("", String::new()),
            false => ("?", self.fixed(&self.think_begin)),
        };
        GrammarWithLexer::from_lark(format!(
            "start: reasoning{optional} @answer\nreasoning: {begin} {text}\
             SPACE: /[ \\n]{{1,4}}/\n"
        ))
    }
}
