//! Functions, filters and tests beside minijinja's own.

use std::ffi::CString;
use std::fmt;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Value};

use super::{python, tojson};

/// The message of raise_exception, carried as the source of an engine's error.
#[derive(Debug)]
pub struct Raised(pub String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Raised {}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let raised = Raised(python::text(message)?);
    Err(Error::new(ErrorKind::InvalidOperation, "raised by the template").with_source(raised))
}

/// `time` in the machine's time zone.
pub fn strftime(format: &str, time: i64) -> Result<String, Error> {
    let invalid = || Error::new(ErrorKind::InvalidOperation, "strftime_now: invalid format");
    if format.is_empty() {
        return Ok(String::new());
    }
    if format.len() > 256 {
        return Err(invalid());
    }
    let format = CString::new(format).map_err(|_| invalid())?;
    let mut buffer = vec![0u8; 4096];
    let seconds = time as libc::time_t;
    // SAFETY: a zeroed tm is valid; both calls are given live buffers and the size of theirs.
    let written = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&seconds, &mut parts).is_null() {
            return Err(invalid());
        }
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), &parts)
    };
    buffer.truncate(written);
    String::from_utf8(buffer).map_err(|_| invalid())
}

/// Python: whatever has a length and can be indexed.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map)
        || value.is_undefined()
}

fn is_iterable(value: &Value) -> bool {
    !value.is_none() && (value.is_undefined() || value.try_iter().is_ok())
}

/// The string filter: str().
fn string(value: &Value) -> Result<String, Error> {
    python::text(value)
}

pub fn install(environment: &mut Environment<'static>) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_filter("tojson", tojson::tojson);
    environment.add_filter("string", string);
    environment.add_test("sequence", is_sequence);
    environment.add_test("iterable", is_iterable);
}
