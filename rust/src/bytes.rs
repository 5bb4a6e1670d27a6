//! The bytes that a token's text stands for.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The character for each byte in byte-level vocabularies (GPT-2): printable Latin-1 characters
/// stand for themselves, the others are shifted beyond U+00FF in order.
static BYTE_OF_CHAR: LazyLock<HashMap<char, u8>> = LazyLock::new(|| {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 0x100u32;
    (0..=255u8)
        .map(|b| {
            let code = if printable(b) {
                b as u32
            } else {
                next += 1;
                next - 1
            };
            (char::from_u32(code).unwrap_or('\0'), b)
        })
        .collect()
});

/// A text with a character outside the alphabet is taken as it is.
pub fn byte_level(text: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| BYTE_OF_CHAR.get(&c).copied()).collect();
    bytes.unwrap_or_else(|| text.as_bytes().to_vec())
}

/// The byte of a fallback token such as "<0x0A>".
pub fn fallback_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let hex = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// SentencePiece's mark for a space (U+2581) is a space.
pub fn sentence_piece(text: &str) -> Vec<u8> {
    text.replace('\u{2581}', " ").into_bytes()
}
