//! Constrained output over llguidance: what a request asks for, compiled once, and a matcher for
//! each answer. A mask depends on the grammar and on the answer's own tokens, never on what other
//! matchers of the grammar have seen: each starts from the same copy.

mod blame;
mod gbnf;
mod schema;
mod spec;
mod vocabulary;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{Matcher, ParserFactory};

use crate::error::{Code, Result, TextError};
use crate::ffi::Strings;

/// llguidance and the parsers below it recurse; what spec.rs lets through stays far below this.
const STACK_BYTES: usize = 64 << 20;

/// Of one or two KiB each, for each answer on its own.
const MAX_LEXER_STATES: usize = 50_000;

/// A vocabulary prepared for masks; one a model.
pub struct GrammarFactory {
    parsers: Arc<ParserFactory>,
    mask_words: usize,
}

/// A grammar, compiled. Its matcher is never advanced: answers use copies.
pub struct CompiledGrammar {
    initial: Mutex<Matcher>,
    mask_words: usize,
}

/// The place of one answer in its grammar.
pub struct GrammarMatcher {
    matcher: Matcher,
    mask_words: usize,
}

fn brief(message: &str) -> String {
    const MOST: usize = 300;
    let line = message.lines().next().unwrap_or_default();
    line.chars().take(MOST).collect()
}

/// `tokens`, `special` (1: a control token) and `end` (the ids that end an answer) are the model's.
pub fn factory(tokens: &Strings, special: &[u8], end: &[u32]) -> Result<GrammarFactory> {
    let fail = |message: String| TextError::new(Code::Internal, "", message);
    let env = vocabulary::environment(tokens, special, end)?;
    let slices = llguidance::earley::SlicedBiasComputer::general_slices();
    let mut parsers = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)
        .map_err(|e| fail(format!("cannot prepare the vocabulary for grammars: {e:#}")))?;
    parsers.quiet();
    parsers.limits_mut().verbose_errors = false;
    parsers.limits_mut().max_lexer_states = MAX_LEXER_STATES;
    Ok(GrammarFactory { parsers: Arc::new(parsers), mask_words: tokens.ends.len().div_ceil(32) })
}

/// A matcher at the start of `grammar`, whose first mask is known to exist.
fn initial_matcher(
    parsers: &ParserFactory,
    grammar: TopLevelGrammar,
) -> std::result::Result<Matcher, String> {
    let parser = parsers.create_parser(grammar).map_err(|e| format!("{e:#}"))?;
    let mut matcher = Matcher::new(Ok(parser));
    matcher.compute_mask_or_eos().map_err(|e| format!("{e:#}"))?;
    Ok(matcher)
}

/// On a thread of its own, for its stack; a panic inside is a grammar that cannot be compiled.
fn on_large_stack<T: Send>(body: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let failed = || TextError::new(Code::InvalidArgument, "", "the grammar cannot be compiled");
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || catch_unwind(AssertUnwindSafe(body)))
            .map_err(|e| TextError::new(Code::ResourceExhausted, "", e.to_string()))?;
        worker.join().unwrap_or_else(Err).unwrap_or_else(|_| Err(failed()))
    })
}

/// `spec` is the JSON that src/grammar writes (spec.rs). Errors name the place in the source, as
/// "properties.a.pattern", in their param.
pub fn compile(factory: &GrammarFactory, spec: &str) -> Result<CompiledGrammar> {
    let parsers = factory.parsers.clone();
    let matcher = on_large_stack(move || {
        let spec = spec::Spec::parse(spec)?;
        let grammar = spec.grammar()?;
        initial_matcher(&parsers, grammar).map_err(|message| {
            let compiles = |grammar| initial_matcher(&parsers, grammar).is_ok();
            let (path, keyword) = blame::find(&spec, &compiles);
            TextError::new(
                Code::InvalidArgument,
                path,
                if keyword.is_empty() {
                    brief(&message)
                } else {
                    format!("\"{keyword}\" cannot be enforced: {}", brief(&message))
                },
            )
        })
    })?;
    Ok(CompiledGrammar { initial: Mutex::new(matcher), mask_words: factory.mask_words })
}

pub fn start(grammar: &CompiledGrammar) -> GrammarMatcher {
    let initial = grammar.initial.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    GrammarMatcher { matcher: initial.deep_clone(), mask_words: grammar.mask_words }
}

impl GrammarMatcher {
    fn failed(message: String) -> TextError {
        TextError::new(Code::Internal, "", format!("the grammar failed: {}", brief(&message)))
    }

    /// Bit t of `mask` becomes whether token t may come next.
    pub fn fill_mask(&mut self, mask: &mut [u32]) -> Result<()> {
        let allowed =
            self.matcher.compute_mask_or_eos().map_err(|e| Self::failed(format!("{e:#}")))?;
        if mask.len() != self.mask_words {
            return Err(Self::failed("a mask of the wrong size".to_string()));
        }
        mask.copy_from_slice(&allowed.as_slice()[..self.mask_words]);
        Ok(())
    }

    /// Whether the answer is complete with `token`: nothing may follow.
    pub fn accept(&mut self, token: u32) -> Result<bool> {
        self.matcher.consume_token(token).map_err(|e| Self::failed(format!("{e:#}")))?;
        if !self.matcher.stop_reason().is_ok() {
            return Err(Self::failed(self.matcher.stop_reason().to_string()));
        }
        Ok(self.matcher.is_stopped())
    }
}
