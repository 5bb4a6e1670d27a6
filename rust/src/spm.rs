//! SentencePiece's BPE over a vocabulary with scores (Kudo and Richardson, "SentencePiece", 2018):
//! of all neighbouring pairs whose concatenation is a token, merge the one with the best score, the
//! leftmost of equals, until none is left. What is then no token is written as its bytes.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenizers::models::bpe::BpeTrainer;
use tokenizers::{Model, Token};

pub struct SpmVocabulary {
    pub tokens: Vec<String>,
    pub scores: Vec<f32>,
    /// Every token text; of equal texts the lowest id.
    pub ids: HashMap<String, u32>,
    /// The tokens that merging may make: no control, unknown or byte tokens.
    pub mergeable: HashMap<String, u32>,
    pub byte_ids: Vec<Option<u32>>,
    pub unknown_id: Option<u32>,
}

#[derive(Clone)]
pub struct Spm {
    vocabulary: Arc<SpmVocabulary>,
    longest: usize,
}

struct Candidate {
    score: f32,
    left: usize,
    right: usize,
    end: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}
impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Candidate {}

const NONE: usize = usize::MAX;

/// A stretch of the text; `start == end` once merged into its left neighbour.
struct Symbol {
    start: usize,
    end: usize,
    previous: usize,
    next: usize,
}

impl Spm {
    pub fn new(vocabulary: SpmVocabulary) -> Self {
        let longest = vocabulary.mergeable.keys().map(String::len).max().unwrap_or(0);
        Self { vocabulary: Arc::new(vocabulary), longest }
    }

    fn candidate(
        &self,
        text: &str,
        symbols: &[Symbol],
        left: usize,
        right: usize,
    ) -> Option<Candidate> {
        if left == NONE || right == NONE {
            return None;
        }
        let (start, end) = (symbols[left].start, symbols[right].end);
        if end - start > self.longest {
            return None;
        }
        let id = *self.vocabulary.mergeable.get(&text[start..end])?;
        Some(Candidate { score: self.vocabulary.scores[id as usize], left, right, end })
    }

    fn emit(&self, text: &str, start: usize, out: &mut Vec<Token>) -> tokenizers::Result<()> {
        let v = &self.vocabulary;
        let offsets = (start, start + text.len());
        if let Some(id) = v.mergeable.get(text) {
            out.push(Token::new(*id, text.to_string(), offsets));
            return Ok(());
        }
        for byte in text.bytes() {
            let id = v.byte_ids[byte as usize].or(v.unknown_id);
            let id =
                id.ok_or_else(|| format!("no token for byte {byte:#04x} and no unknown token"))?;
            out.push(Token::new(id, v.tokens[id as usize].clone(), offsets));
        }
        Ok(())
    }
}

impl Model for Spm {
    type Trainer = BpeTrainer;

    fn tokenize(&self, text: &str) -> tokenizers::Result<Vec<Token>> {
        let mut symbols: Vec<Symbol> = Vec::with_capacity(text.len());
        for (i, (start, c)) in text.char_indices().enumerate() {
            let end = start + c.len_utf8();
            let next = if end == text.len() { NONE } else { i + 1 };
            symbols.push(Symbol { start, end, previous: i.wrapping_sub(1), next });
        }
        let mut queue: BinaryHeap<Candidate> = (1..symbols.len())
            .filter_map(|right| self.candidate(text, &symbols, right - 1, right))
            .collect();
        while let Some(best) = queue.pop() {
            let (left, right) = (best.left, best.right);
            let stale = symbols[left].start == symbols[left].end
                || symbols[right].start == symbols[right].end
                || symbols[left].next != right
                || symbols[right].end != best.end;
            if stale {
                continue;
            }
            let next = symbols[right].next;
            symbols[left].end = best.end;
            symbols[left].next = next;
            symbols[right].start = best.end;
            if next != NONE {
                symbols[next].previous = left;
            }
            let previous = symbols[left].previous;
            queue.extend(self.candidate(text, &symbols, previous, left));
            queue.extend(self.candidate(text, &symbols, left, next));
        }
        let mut out = Vec::new();
        let mut at = if symbols.is_empty() { NONE } else { 0 };
        while at != NONE {
            let symbol = &symbols[at];
            self.emit(&text[symbol.start..symbol.end], symbol.start, &mut out)?;
            at = symbol.next;
        }
        Ok(out)
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.vocabulary.ids.get(token).copied()
    }
    fn id_to_token(&self, id: u32) -> Option<String> {
        self.vocabulary.tokens.get(id as usize).cloned()
    }
    fn get_vocab(&self) -> HashMap<String, u32> {
        self.vocabulary.ids.clone()
    }
    fn get_vocab_size(&self) -> usize {
        self.vocabulary.tokens.len()
    }
    fn save(&self, _folder: &Path, _prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        Err("saving is not supported".into())
    }
    fn get_trainer(&self) -> BpeTrainer {
        BpeTrainer::default()
    }
}
