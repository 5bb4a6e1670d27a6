//! The errors that cross the bridge, and the guard that every bridged function runs in.

use std::cell::RefCell;
use std::fmt;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

/// A letter the C++ side maps to its status codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    InvalidArgument,
    DataLoss,
    Unimplemented,
    ResourceExhausted,
    Internal,
}

/// Code, message, and the key or field at fault (may be empty).
#[derive(Debug)]
pub struct TextError {
    pub code: Code,
    pub param: String,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, TextError>;

impl TextError {
    pub fn new(code: Code, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, param: param.into(), message: message.into() }
    }
}

/// Wire form: code letter, param, unit separator, message.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let letter = match self.code {
            Code::InvalidArgument => 'A',
            Code::DataLoss => 'D',
            Code::Unimplemented => 'U',
            Code::ResourceExhausted => 'R',
            Code::Internal => 'I',
        };
        write!(f, "{letter}{}\u{1f}{}", self.param.replace('\u{1f}', " "), self.message)
    }
}

thread_local! {
    /// Where this thread's latest panic came from.
    static PANIC_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `body`; a panic inside becomes an internal error. A panic that reached the bridge would
/// abort the process. Only its place is told: the message could quote the text at hand.
pub fn guard<T>(what: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        set_hook(Box::new(|info| {
            let at = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
            PANIC_AT.with(|place| *place.borrow_mut() = at.unwrap_or_default());
        }))
    });
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let at = PANIC_AT.with(|place| place.borrow().clone());
        let at = at.rsplit_once("/src/").map_or(at.as_str(), |(_, rest)| rest);
        Err(TextError::new(Code::Internal, "", format!("{what} failed at {at}")))
    })
}

pub fn utf8<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| {
        TextError::new(
            Code::InvalidArgument,
            "",
            format!("{what} is not valid UTF-8 at byte {}", e.valid_up_to()),
        )
    })
}
