//! A tokenizer from the metadata of a GGUF file.

use std::collections::HashMap;
use std::sync::Arc;

use tokenizers::models::bpe::{Vocab, BPE};
use tokenizers::normalizers::{Prepend, Replace, Sequence};
use tokenizers::{AddedToken, NormalizerWrapper};

use crate::bytes::{byte_level, fallback_byte, sentence_piece};
use crate::error::{Code, Result, TextError};
use crate::gguf_pre::gguf_pre;
use crate::model::TextModel;
use crate::pre_tokenizer::PreTokenizerSteps;
use crate::spm::{Spm, SpmVocabulary};
use crate::tokenizer::{Parts, PreTokenizerShared, TextTokenizer, TokenEntry};

/// Values of tokenizer.ggml.token_type.
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// The metadata, checked for shape by the caller: types and scores are empty or one a token.
pub struct GgufMetadata {
    pub model: String,
    pub pre: String,
    pub tokens: Vec<String>,
    pub types: Vec<i32>,
    pub scores: Vec<f32>,
    pub merges: Vec<String>,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub unknown: Option<u32>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub add_space_prefix: Option<bool>,
}

fn data_loss(key: &str, reason: impl std::fmt::Display) -> TextError {
    TextError::new(Code::DataLoss, key, format!("{key}: {reason}"))
}

impl GgufMetadata {
    fn kind(&self, id: usize) -> i32 {
        self.types.get(id).copied().unwrap_or(1)
    }

    /// Text to id; of equal texts the lowest id.
    fn ids(&self) -> HashMap<String, u32> {
        let mut ids = HashMap::with_capacity(self.tokens.len());
        for (id, text) in self.tokens.iter().enumerate() {
            if !text.is_empty() {
                ids.entry(text.clone()).or_insert(id as u32);
            }
        }
        ids
    }

    /// The tokens that are found in the text before anything else is done to it.
    fn added(&self) -> Vec<AddedToken> {
        let added = |id: &usize| matches!(self.kind(*id), UNKNOWN | CONTROL | USER_DEFINED);
        (0..self.tokens.len())
            .filter(added)
            .filter(|id| !self.tokens[*id].is_empty())
            .map(|id| {
                let special = self.kind(id) != USER_DEFINED;
                AddedToken::from(self.tokens[id].clone(), special).normalized(false)
            })
            .collect()
    }

    fn entries(&self, bytes_of_text: fn(&str) -> Vec<u8>) -> Vec<TokenEntry> {
        let entry = |(id, text): (usize, &String)| {
            let kind = self.kind(id);
            let bytes = match kind {
                UNKNOWN | CONTROL | USER_DEFINED => text.as_bytes().to_vec(),
                BYTE => fallback_byte(text).map_or_else(|| bytes_of_text(text), |b| vec![b]),
                _ => bytes_of_text(text),
            };
            let special = matches!(kind, UNKNOWN | CONTROL);
            TokenEntry { text: text.clone(), bytes, special, present: true }
        };
        self.tokens.iter().enumerate().map(entry).collect()
    }

    fn bpe(&self, ignore_merges: bool, byte_fallback: bool) -> Result<BPE> {
        const KEY: &str = "tokenizer.ggml.merges";
        if self.merges.is_empty() {
            return Err(data_loss(KEY, "missing or empty"));
        }
        let ids = self.ids();
        let mut merges = Vec::with_capacity(self.merges.len());
        for (i, merge) in self.merges.iter().enumerate() {
            // The first character may itself be a space.
            let first = merge.chars().next().map_or(0, char::len_utf8);
            let at = merge[first..].find(' ').map(|at| at + first);
            let at = at.ok_or_else(|| data_loss(KEY, format!("entry {i} is not two tokens")))?;
            let (left, right) = (&merge[..at], &merge[at + 1..]);
            let joined = format!("{left}{right}");
            for part in [left, right, &joined] {
                if !ids.contains_key(part) {
                    let reason = format!("entry {i} names {part:?}, which is not a token");
                    return Err(data_loss(KEY, reason));
                }
            }
            merges.push((left.to_string(), right.to_string()));
        }
        let unknown = self.unknown.filter(|_| byte_fallback);
        let mut builder = BPE::builder()
            .vocab_and_merges(ids.into_iter().collect::<Vocab>(), merges)
            .ignore_merges(ignore_merges)
            .byte_fallback(byte_fallback);
        if let Some(unknown) = unknown {
            builder = builder.unk_token(self.tokens[unknown as usize].clone());
        }
        builder.build().map_err(|e| data_loss(KEY, e))
    }

    fn spm(&self) -> Result<Spm> {
        const KEY: &str = "tokenizer.ggml.scores";
        if self.scores.is_empty() {
            return Err(data_loss(KEY, "missing"));
        }
        if let Some(id) = self.scores.iter().position(|score| score.is_nan()) {
            return Err(data_loss(KEY, format!("the score of token {id} is not a number")));
        }
        let mut byte_ids = vec![None; 256];
        let mut mergeable = HashMap::with_capacity(self.tokens.len());
        for (id, text) in self.tokens.iter().enumerate() {
            match self.kind(id) {
                BYTE => {
                    if let Some(byte) = fallback_byte(text) {
                        byte_ids[byte as usize].get_or_insert(id as u32);
                    }
                }
                UNKNOWN | CONTROL => {}
                _ if text.is_empty() => {}
                _ => {
                    mergeable.entry(text.clone()).or_insert(id as u32);
                }
            }
        }
        Ok(Spm::new(SpmVocabulary {
            tokens: self.tokens.clone(),
            scores: self.scores.clone(),
            ids: self.ids(),
            mergeable,
            byte_ids,
            unknown_id: self.unknown,
        }))
    }
}

fn mark_spaces(prefix: bool) -> Result<NormalizerWrapper> {
    let replace = Replace::new(" ", "\u{2581}")
        .map_err(|e| TextError::new(Code::Internal, "", e.to_string()))?;
    if !prefix {
        return Ok(replace.into());
    }
    let steps = vec![Prepend::new("\u{2581}".to_string()).into(), replace.into()];
    Ok(Sequence::new(steps).into())
}

pub fn tokenizer_from_gguf(data: &GgufMetadata) -> Result<TextTokenizer> {
    let (parts, entries, add_bos, strip);
    match data.model.as_str() {
        "gpt2" | "gemma4" => {
            let name = if data.model == "gemma4" { "gemma4" } else { &data.pre };
            let pre = gguf_pre(name).ok_or_else(|| {
                let key = "tokenizer.ggml.pre";
                let reason = if name.is_empty() {
                    "missing".into()
                } else {
                    format!("unknown pre-tokenizer {name:?}")
                };
                TextError::new(Code::Unimplemented, key, format!("{key}: {reason}"))
            })?;
            let mut steps = PreTokenizerSteps::default();
            for pattern in pre.patterns {
                steps.isolate(pattern).map_err(|e| TextError::new(Code::Internal, "", e))?;
            }
            if pre.byte_level {
                steps.bytes();
            }
            parts = Parts {
                model: TextModel::Bpe(data.bpe(pre.ignore_merges, !pre.byte_level)?),
                normalizer: if pre.byte_level { None } else { Some(mark_spaces(false)?) },
                pre_tokenizer: PreTokenizerShared(Arc::new(steps)),
                post_processor: None,
                added: data.added(),
            };
            entries = data.entries(if pre.byte_level { byte_level } else { sentence_piece });
            // Files of Gemma 4 say add_bos_token = false by mistake; the model needs it.
            add_bos = if name == "gemma4" { true } else { data.add_bos.unwrap_or(pre.add_bos) };
            strip = false;
        }
        "llama" => {
            let prefix = data.add_space_prefix.unwrap_or(true);
            parts = Parts {
                model: TextModel::Spm(data.spm()?),
                normalizer: Some(mark_spaces(prefix)?),
                pre_tokenizer: PreTokenizerShared(Arc::default()),
                post_processor: None,
                added: data.added(),
            };
            entries = data.entries(sentence_piece);
            add_bos = data.add_bos.unwrap_or(true);
            strip = prefix;
        }
        other => {
            let key = "tokenizer.ggml.model";
            let message = format!("{key}: {other:?} is not supported");
            return Err(TextError::new(Code::Unimplemented, key, message));
        }
    }
    let mut tokenizer = TextTokenizer::new(parts, entries)?;
    tokenizer.strip_leading_space = strip;
    // A default of the pre-tokeniser's needs no id; a flag of the file's does.
    if add_bos && (data.bos.is_some() || data.add_bos == Some(true)) {
        let key = "tokenizer.ggml.bos_token_id";
        let missing = || data_loss(key, "missing, but add_bos_token is set");
        tokenizer.bos = Some(data.bos.ok_or_else(missing)?);
    }
    if data.add_eos == Some(true) {
        let key = "tokenizer.ggml.eos_token_id";
        let missing = || data_loss(key, "missing, but add_eos_token is set");
        tokenizer.eos = Some(data.eos.ok_or_else(missing)?);
    }
    Ok(tokenizer)
}
