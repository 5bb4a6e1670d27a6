//! A tokenizer from a tokenizer.json.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::Value;
use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::{AddedToken, Model, NormalizerWrapper, PostProcessorWrapper};

use crate::decoder::TokenDecoder;
use crate::error::{Code, Result, TextError};
use crate::model::TextModel;
use crate::pre_tokenizer::PreTokenizerSteps;
use crate::tokenizer::{Parts, PreTokenizerShared, TextTokenizer, TokenEntry};

/// Ids with more gaps than this are a corrupt file, not a vocabulary: the table has a place for each.
const MAX_IDS_PER_TOKEN: usize = 16;
const MIN_TOKENS: usize = 4096;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(default)]
    added_tokens: Vec<AddedTokenWithId>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
}

#[derive(Deserialize)]
struct AddedTokenWithId {
    id: u32,
    #[serde(flatten)]
    token: AddedToken,
}

/// The small fields of a model.
#[derive(Deserialize)]
struct ModelHead {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f32>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
}

fn data_loss(key: &str, reason: impl std::fmt::Display) -> TextError {
    TextError::new(Code::DataLoss, key, format!("{key}: {reason}"))
}

fn unimplemented(key: &str, reason: impl std::fmt::Display) -> TextError {
    TextError::new(Code::Unimplemented, key, format!("{key}: {reason}"))
}

fn field<T: for<'de> Deserialize<'de>>(value: Value, key: &str) -> Result<Option<T>> {
    if value.is_null() {
        return Ok(None);
    }
    T::deserialize(value).map(Some).map_err(|e| data_loss(key, e))
}

fn model(raw: &RawValue) -> Result<TextModel> {
    let head: ModelHead = serde_json::from_str(raw.get()).map_err(|e| data_loss("model", e))?;
    if head.dropout.is_some_and(|p| p != 0.0) {
        return Err(unimplemented("model.dropout", "ids would be random"));
    }
    for (key, value) in [
        ("model.continuing_subword_prefix", &head.continuing_subword_prefix),
        ("model.end_of_word_suffix", &head.end_of_word_suffix),
    ] {
        if value.as_ref().is_some_and(|text| !text.is_empty()) {
            return Err(unimplemented(key, "not supported"));
        }
    }
    match head.kind.as_deref() {
        // Old files of byte-level tokenizers leave the type out.
        Some("BPE") | None => serde_json::from_str::<BPE>(raw.get())
            .map(TextModel::Bpe)
            .map_err(|e| data_loss("model", e)),
        Some("Unigram") => serde_json::from_str::<Unigram>(raw.get())
            .map(TextModel::Unigram)
            .map_err(|e| data_loss("model", e)),
        Some(other) => Err(unimplemented("model.type", format!("{other:?} is not supported"))),
    }
}

fn entries(
    model: &TextModel,
    added: &[AddedTokenWithId],
    decoder: &TokenDecoder,
) -> Result<Vec<TokenEntry>> {
    let vocabulary = model.get_vocab();
    let added_ids = added.iter().map(|a| a.id);
    let largest = vocabulary.values().copied().chain(added_ids).max();
    let largest = largest.ok_or_else(|| data_loss("model.vocab", "empty"))?;
    let tokens = vocabulary.len() + added.len();
    if largest as usize / MAX_IDS_PER_TOKEN > tokens.max(MIN_TOKENS) {
        return Err(data_loss("model.vocab", format!("the id {largest} is out of range")));
    }
    let mut entries = vec![TokenEntry::default(); largest as usize + 1];
    let mut put = |id: u32, text: &str, special: bool| {
        let bytes = decoder.bytes(text);
        entries[id as usize] = TokenEntry { text: text.into(), bytes, special, present: true };
    };
    for (text, id) in &vocabulary {
        put(*id, text, false);
    }
    Ok({
        for a in added {
            put(a.id, &a.token.content, a.token.special);
        }
        entries
    })
}

pub fn tokenizer_from_json(json: &str) -> Result<TextTokenizer> {
    let file: File = serde_json::from_str(json)
        .map_err(|e| TextError::new(Code::DataLoss, "", format!("malformed JSON: {e}")))?;
    let model = model(file.model)?;
    let decoder = TokenDecoder::from_json(&file.decoder, &file.pre_tokenizer)?;
    let steps = PreTokenizerSteps::from_json(&file.pre_tokenizer)?;
    let entries = entries(&model, &file.added_tokens, &decoder)?;
    let parts = Parts {
        model,
        normalizer: field::<NormalizerWrapper>(file.normalizer, "normalizer")?,
        pre_tokenizer: PreTokenizerShared(Arc::new(steps)),
        post_processor: field::<PostProcessorWrapper>(file.post_processor, "post_processor")?,
        added: file.added_tokens.iter().map(|a| a.token.clone()).collect(),
    };
    let mut tokenizer = TextTokenizer::new(parts, entries)?;
    for (i, a) in file.added_tokens.iter().enumerate() {
        if tokenizer.token_to_id(&a.token.content) != Some(a.id) {
            let key = format!("added_tokens[{i}].id");
            return Err(data_loss(&key, format!("{} does not fit the vocabulary", a.id)));
        }
    }
    tokenizer.strip_leading_space = decoder.strips_leading_space();
    Ok(tokenizer)
}
