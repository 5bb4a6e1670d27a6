//! The model of a tokenizer: one of the tokenizers library's, or the SentencePiece merging of GGUF
//! files, which have scores but no list of merges.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokenizers::models::bpe::{BpeTrainer, BPE};
use tokenizers::models::unigram::Unigram;
use tokenizers::{Model, Token};

use crate::spm::Spm;

#[derive(Clone)]
pub enum TextModel {
    Bpe(BPE),
    Unigram(Unigram),
    Spm(Spm),
}

macro_rules! each {
    ($self:ident, $model:ident => $body:expr) => {
        match $self {
            TextModel::Bpe($model) => $body,
            TextModel::Unigram($model) => $body,
            TextModel::Spm($model) => $body,
        }
    };
}

impl Model for TextModel {
    type Trainer = BpeTrainer;

    fn tokenize(&self, text: &str) -> tokenizers::Result<Vec<Token>> {
        each!(self, model => model.tokenize(text))
    }
    fn token_to_id(&self, token: &str) -> Option<u32> {
        each!(self, model => model.token_to_id(token))
    }
    fn id_to_token(&self, id: u32) -> Option<String> {
        each!(self, model => model.id_to_token(id))
    }
    fn get_vocab(&self) -> HashMap<String, u32> {
        each!(self, model => model.get_vocab())
    }
    fn get_vocab_size(&self) -> usize {
        each!(self, model => model.get_vocab_size())
    }
    fn save(&self, _folder: &Path, _prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        Err("saving is not supported".into())
    }
    fn get_trainer(&self) -> BpeTrainer {
        BpeTrainer::default()
    }
}
