//! The model's tokens as llguidance wants them.

use std::sync::Arc;

use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::error::{Code, Result, TextError};
use crate::ffi::Strings;

struct Environment {
    trie: TokTrie,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }
    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.greedy_tokenize(bytes)
    }
    /// The model chooses how its text is cut into tokens: nothing is forced.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

/// A control token is behind the marker, so that no text is ever written with it. A token without
/// bytes, or with a byte that no text has, is left out.
fn word(bytes: &[u8], special: bool) -> Vec<u8> {
    if special {
        let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
        word.extend_from_slice(bytes);
        return word;
    }
    if bytes.contains(&TokTrie::SPECIAL_TOKEN_MARKER) {
        return Vec::new();
    }
    bytes.to_vec()
}

pub fn environment(tokens: &Strings, special: &[u8], end: &[u32]) -> Result<TokEnv> {
    let size = tokens.ends.len();
    let fail = |message: &str| TextError::new(Code::InvalidArgument, "", message);
    if end.is_empty() || end.iter().any(|id| *id as usize >= size) {
        return Err(fail("the model has no token that ends a sequence"));
    }
    let mut first = 0usize;
    let mut words = Vec::with_capacity(size);
    for (last, special) in tokens.ends.iter().zip(special) {
        words.push(word(&tokens.bytes[first..*last as usize], *special != 0));
        first = *last as usize;
    }
    let info = TokRxInfo::new(size as u32, end[0]);
    let trie = TokTrie::from(&info, &words).with_eos_tokens(end);
    Ok(Arc::new(Environment { trie }))
}
