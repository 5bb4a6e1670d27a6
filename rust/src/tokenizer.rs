//! TextTokenizer: a tokenizer ready to encode, and the table of what each token is.

use std::sync::OnceLock;

use tokenizers::{
    AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, TokenizerImpl,
};

use crate::error::{Code, Result, TextError};
use crate::model::TextModel;
use crate::pre_tokenizer::PreTokenizerSteps;

type Library = TokenizerImpl<
    TextModel,
    NormalizerWrapper,
    PreTokenizerShared,
    PostProcessorWrapper,
    DecoderWrapper,
>;

/// The steps, shared by the two instances that parse and do not parse special tokens.
#[derive(Clone)]
pub struct PreTokenizerShared(pub std::sync::Arc<PreTokenizerSteps>);

impl tokenizers::PreTokenizer for PreTokenizerShared {
    fn pre_tokenize(&self, text: &mut tokenizers::PreTokenizedString) -> tokenizers::Result<()> {
        self.0.pre_tokenize(text)
    }
}

/// What a tokenizer is made of.
#[derive(Clone)]
pub struct Parts {
    pub model: TextModel,
    pub normalizer: Option<NormalizerWrapper>,
    pub pre_tokenizer: PreTokenizerShared,
    pub post_processor: Option<PostProcessorWrapper>,
    pub added: Vec<AddedToken>,
}

/// One token: its text in the file, the bytes it adds to the output, and whether it is never shown.
#[derive(Clone, Default)]
pub struct TokenEntry {
    pub text: String,
    pub bytes: Vec<u8>,
    pub special: bool,
    pub present: bool,
}

pub struct TextTokenizer {
    parsing: Library,
    /// The same without special tokens in the text; made when first asked for, since it doubles the
    /// memory.
    plain: OnceLock<Library>,
    parts: Parts,
    pub entries: Vec<TokenEntry>,
    pub strip_leading_space: bool,
    /// Ids put before and after a text by add_special, when no post-processor does.
    pub bos: Option<u32>,
    pub eos: Option<u32>,
}

fn assemble(parts: &Parts, encode_special_tokens: bool) -> Result<Library> {
    let fail = |e: tokenizers::Error| TextError::new(Code::DataLoss, "", e.to_string());
    let mut library = Library::new(parts.model.clone());
    library.with_normalizer(parts.normalizer.clone()).map_err(fail)?;
    library.with_pre_tokenizer(Some(parts.pre_tokenizer.clone()));
    library.with_post_processor(parts.post_processor.clone());
    library.add_tokens(parts.added.iter().cloned()).map_err(fail)?;
    library.set_encode_special_tokens(encode_special_tokens);
    Ok(library)
}

impl TextTokenizer {
    pub fn new(parts: Parts, entries: Vec<TokenEntry>) -> Result<Self> {
        Ok(Self {
            parsing: assemble(&parts, false)?,
            plain: OnceLock::new(),
            parts,
            entries,
            strip_leading_space: false,
            bos: None,
            eos: None,
        })
    }

    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.parsing.token_to_id(token)
    }

    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<i32>> {
        let library = if parse_special {
            &self.parsing
        } else if let Some(plain) = self.plain.get() {
            plain
        } else {
            let plain = assemble(&self.parts, true)?;
            self.plain.get_or_init(|| plain)
        };
        let encoding = library.encode_fast(text, add_special).map_err(|e| {
            TextError::new(Code::InvalidArgument, "", format!("cannot tokenize: {e}"))
        })?;
        let ids = encoding.get_ids().iter().map(|id| *id as i32);
        if !add_special {
            return Ok(ids.collect());
        }
        let bos = self.bos.map(|id| id as i32);
        let eos = self.eos.map(|id| id as i32);
        Ok(bos.into_iter().chain(ids).chain(eos).collect())
    }
}
