//! The text library of lockstep: tokenizers, chat templates and grammars. C++ sees what the bridge below
//! declares and nothing else; every function runs in guard(), so that no panic crosses.

mod bytes;
mod decoder;
mod error;
mod gguf;
mod gguf_pre;
mod grammar;
mod hf;
mod model;
mod pre_tokenizer;
mod split;
mod spm;
mod template;
mod tokenizer;

use error::{guard, utf8, Code, Result, TextError};
use gguf::GgufMetadata;
use grammar::{CompiledGrammar, GrammarFactory, GrammarMatcher};
use template::TextTemplate;
use tokenizer::TextTokenizer;

#[cxx::bridge(namespace = "lockstep::rust_text")]
mod ffi {
    /// Strings laid end to end: string i ends at ends[i].
    struct Strings<'a> {
        bytes: &'a [u8],
        ends: &'a [u32],
    }

    /// An absent id is -1; a flag is -1 absent, 0 false, 1 true.
    struct GgufInput<'a> {
        model: &'a [u8],
        pre: &'a [u8],
        tokens: Strings<'a>,
        types: &'a [i32],
        scores: &'a [f32],
        merges: Strings<'a>,
        bos: i32,
        eos: i32,
        unknown: i32,
        add_bos: i8,
        add_eos: i8,
        add_space_prefix: i8,
    }

    /// Entry i of each list is token i. flags: 1 special, 2 present.
    struct TokenTable {
        texts: Vec<u8>,
        text_ends: Vec<u32>,
        bytes: Vec<u8>,
        byte_ends: Vec<u32>,
        flags: Vec<u8>,
        strip_leading_space: bool,
    }

    extern "Rust" {
        type TextTokenizer;
        fn tokenizer_from_json(json: &[u8]) -> Result<Box<TextTokenizer>>;
        fn tokenizer_from_gguf(input: &GgufInput) -> Result<Box<TextTokenizer>>;
        fn tokenizer_table(tokenizer: &mut TextTokenizer) -> Result<TokenTable>;
        fn tokenizer_encode(
            tokenizer: &TextTokenizer,
            text: &[u8],
            add_special: bool,
            parse_special: bool,
        ) -> Result<Vec<i32>>;

        type TextTemplate;
        fn template_compile(source: &[u8], bos: &[u8], eos: &[u8]) -> Result<Box<TextTemplate>>;
        fn template_render(
            text_template: &TextTemplate,
            context: &[u8],
            time: i64,
        ) -> Result<String>;

        type GrammarFactory;
        fn grammar_factory(
            tokens: &Strings,
            special: &[u8],
            end: &[u32],
        ) -> Result<Box<GrammarFactory>>;
        type CompiledGrammar;
        fn grammar_compile(factory: &GrammarFactory, spec: &[u8]) -> Result<Box<CompiledGrammar>>;
        type GrammarMatcher;
        fn grammar_start(grammar: &CompiledGrammar) -> Result<Box<GrammarMatcher>>;
        fn grammar_mask(matcher: &mut GrammarMatcher, mask: &mut [u32]) -> Result<()>;
        fn grammar_accept(matcher: &mut GrammarMatcher, token: u32) -> Result<bool>;
    }
}

fn tokenizer_from_json(json: &[u8]) -> Result<Box<TextTokenizer>> {
    guard("reading the tokenizer", || {
        let json = utf8(json, "the file").map_err(|e| TextError { code: Code::DataLoss, ..e })?;
        hf::tokenizer_from_json(json).map(Box::new)
    })
}

fn strings(list: &ffi::Strings, key: &str) -> Result<Vec<String>> {
    let mut start = 0usize;
    let mut result = Vec::with_capacity(list.ends.len());
    for (i, end) in list.ends.iter().enumerate() {
        let bytes = &list.bytes[start..*end as usize];
        let text = std::str::from_utf8(bytes).map_err(|_| {
            TextError::new(Code::DataLoss, key, format!("{key}: entry {i} is not valid UTF-8"))
        })?;
        result.push(text.to_string());
        start = *end as usize;
    }
    Ok(result)
}

fn tokenizer_from_gguf(input: &ffi::GgufInput) -> Result<Box<TextTokenizer>> {
    guard("reading the vocabulary", || {
        let id = |id: i32| u32::try_from(id).ok();
        let flag = |flag: i8| (flag >= 0).then_some(flag == 1);
        let metadata = GgufMetadata {
            model: utf8(input.model, "tokenizer.ggml.model")?.to_string(),
            pre: utf8(input.pre, "tokenizer.ggml.pre")?.to_string(),
            tokens: strings(&input.tokens, "tokenizer.ggml.tokens")?,
            types: input.types.to_vec(),
            scores: input.scores.to_vec(),
            merges: strings(&input.merges, "tokenizer.ggml.merges")?,
            bos: id(input.bos),
            eos: id(input.eos),
            unknown: id(input.unknown),
            add_bos: flag(input.add_bos),
            add_eos: flag(input.add_eos),
            add_space_prefix: flag(input.add_space_prefix),
        };
        gguf::tokenizer_from_gguf(&metadata).map(Box::new)
    })
}

/// Hands the table over: the tokenizer keeps none of it.
fn tokenizer_table(tokenizer: &mut TextTokenizer) -> Result<ffi::TokenTable> {
    guard("reading the token table", || {
        let mut table = ffi::TokenTable {
            texts: Vec::new(),
            text_ends: Vec::new(),
            bytes: Vec::new(),
            byte_ends: Vec::new(),
            flags: Vec::new(),
            strip_leading_space: tokenizer.strip_leading_space,
        };
        for entry in std::mem::take(&mut tokenizer.entries) {
            table.texts.extend_from_slice(entry.text.as_bytes());
            table.text_ends.push(table.texts.len() as u32);
            table.bytes.extend_from_slice(&entry.bytes);
            table.byte_ends.push(table.bytes.len() as u32);
            table.flags.push(entry.special as u8 | (entry.present as u8) << 1);
        }
        Ok(table)
    })
}

fn tokenizer_encode(
    tokenizer: &TextTokenizer,
    text: &[u8],
    add_special: bool,
    parse_special: bool,
) -> Result<Vec<i32>> {
    guard("tokenizing", || tokenizer.encode(utf8(text, "the text")?, add_special, parse_special))
}

fn template_compile(source: &[u8], bos: &[u8], eos: &[u8]) -> Result<Box<TextTemplate>> {
    guard("compiling the chat template", || {
        let source = utf8(source, "the chat template")?;
        let (bos, eos) = (utf8(bos, "bos_token")?, utf8(eos, "eos_token")?);
        TextTemplate::compile(source, bos, eos).map(Box::new)
    })
}

fn template_render(text_template: &TextTemplate, context: &[u8], time: i64) -> Result<String> {
    guard("rendering the chat template", || {
        text_template.render(utf8(context, "the context")?, time)
    })
}

fn grammar_factory(
    tokens: &ffi::Strings,
    special: &[u8],
    end: &[u32],
) -> Result<Box<GrammarFactory>> {
    guard("preparing the vocabulary for grammars", || {
        grammar::factory(tokens, special, end).map(Box::new)
    })
}

fn grammar_compile(factory: &GrammarFactory, spec: &[u8]) -> Result<Box<CompiledGrammar>> {
    guard("compiling the grammar", || {
        grammar::compile(factory, utf8(spec, "the grammar")?).map(Box::new)
    })
}

fn grammar_start(grammar: &CompiledGrammar) -> Result<Box<GrammarMatcher>> {
    guard("starting the grammar", || Ok(Box::new(grammar::start(grammar))))
}

fn grammar_mask(matcher: &mut GrammarMatcher, mask: &mut [u32]) -> Result<()> {
    guard("computing a token mask", || matcher.fill_mask(mask))
}

fn grammar_accept(matcher: &mut GrammarMatcher, token: u32) -> Result<bool> {
    guard("advancing the grammar", || matcher.accept(token))
}
