//! GBNF, the grammars of llama.cpp, to the Lark dialect of llguidance. Terminals become regular
//! expressions of one character each, so that no lexer decides what the rules leave open.

use std::collections::HashMap;
use std::fmt::Write;

use super::spec::literal;
use crate::error::{Code, Result, TextError};

struct Reader<'a> {
    text: &'a str,
    at: usize,
    names: HashMap<String, String>,
    defined: Vec<String>,
    used: Vec<(String, usize)>,
}

pub fn to_lark(text: &str) -> Result<String> {
    let mut reader =
        Reader { text, at: 0, names: HashMap::new(), defined: Vec::new(), used: Vec::new() };
    let mut lark = String::new();
    reader.skip(true);
    while reader.at < text.len() {
        let name = reader.name()?;
        if reader.defined.contains(&name) {
            return Err(reader.fail(&format!("the rule \"{name}\" is defined twice")));
        }
        reader.defined.push(name.clone());
        reader.skip(false);
        reader.expect("::=")?;
        reader.skip(true);
        let body = reader.alternatives(0)?;
        let _ = writeln!(lark, "{}: {body}", reader.lark_name(&name));
        reader.skip(true);
    }
    if !reader.defined.iter().any(|name| name == "root") {
        return Err(reader.fail("there is no rule \"root\""));
    }
    for (name, at) in &reader.used {
        if !reader.defined.contains(name) {
            return Err(fail_at(text, *at, &format!("there is no rule \"{name}\"")));
        }
    }
    Ok(lark)
}

fn fail_at(text: &str, at: usize, message: &str) -> TextError {
    let line = text[..at].matches('\n').count() + 1;
    TextError::new(Code::InvalidArgument, "", format!("line {line}: {message}"))
}

impl Reader<'_> {
    fn fail(&self, message: &str) -> TextError {
        fail_at(self.text, self.at, message)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn expect(&mut self, text: &str) -> Result<()> {
        if !self.rest().starts_with(text) {
            return Err(self.fail(&format!("\"{text}\" is expected")));
        }
        self.at += text.len();
        Ok(())
    }

    /// White space and comments; line ends too where a rule may go on.
    fn skip(&mut self, lines: bool) {
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\n' | '\r' if lines => self.at += 1,
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    fn name(&mut self) -> Result<String> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
            .unwrap_or(rest.len());
        if end == 0 {
            return Err(self.fail("the name of a rule is expected"));
        }
        let name = rest[..end].to_string();
        self.at += end;
        Ok(name)
    }

    /// Rules of Lark are in lower case.
    fn lark_name(&mut self, name: &str) -> String {
        if name == "root" {
            return "start".to_string();
        }
        let next = format!("rule_{}", self.names.len());
        self.names.entry(name.to_string()).or_insert(next).clone()
    }

    fn alternatives(&mut self, depth: usize) -> Result<String> {
        let mut all = vec![self.sequence(depth)?];
        loop {
            self.skip(depth > 0);
            if self.peek() != Some('|') {
                return Ok(all.join(" | "));
            }
            self.at += 1;
            self.skip(true);
            all.push(self.sequence(depth)?);
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<String> {
        let mut items = Vec::new();
        loop {
            self.skip(depth > 0);
            let item = match self.peek() {
                Some('"') => self.string()?,
                Some('[') => self.class()?,
                Some('.') => {
                    self.at += 1;
                    "/(?s:.)/".to_string()
                }
                Some('(') => {
                    self.at += 1;
                    self.skip(true);
                    let inner = self.alternatives(depth + 1)?;
                    self.skip(true);
                    self.expect(")")?;
                    format!("({inner})")
                }
                Some(c) if c.is_ascii_alphanumeric() || c == '_' || c == '-' => {
                    let at = self.at;
                    let name = self.name()?;
                    self.used.push((name.clone(), at));
                    self.lark_name(&name)
                }
                Some('|' | ')' | '\n' | '\r') | None => {
                    let empty = items.is_empty();
                    return Ok(if empty { "\"\"".to_string() } else { items.join(" ") });
                }
                Some(c) => return Err(self.fail(&format!("{c:?} is not expected"))),
            };
            let repeated = self.repetition(item)?;
            items.push(repeated);
        }
    }

    fn repetition(&mut self, item: String) -> Result<String> {
        match self.peek() {
            Some(c @ ('*' | '+' | '?')) => {
                self.at += 1;
                Ok(format!("({item}){c}"))
            }
            Some('{') => {
                let end = self.rest().find('}').ok_or_else(|| self.fail("\"}\" is missing"))?;
                let bounds: Vec<_> = self.rest()[1..end].split(',').map(str::trim).collect();
                let number = |text: &str| text.parse::<u32>().is_ok();
                let range = match bounds.as_slice() {
                    [n] if number(n) => format!("{{{n}}}"),
                    [low, ""] if number(low) => format!("{{{low},}}"),
                    [low, high] if number(low) && number(high) => format!("{{{low},{high}}}"),
                    _ => return Err(self.fail("a repetition is {n}, {n,} or {n,m}")),
                };
                self.at += end + 1;
                Ok(format!("({item}){range}"))
            }
            _ => Ok(item),
        }
    }

    fn character(&mut self) -> Result<char> {
        let c = self.take().ok_or_else(|| self.fail("the grammar ends in a terminal"))?;
        if c != '\\' {
            return Ok(c);
        }
        let kind = self.take().ok_or_else(|| self.fail("the grammar ends in an escape"))?;
        let digits = match kind {
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            'r' => return Ok('\r'),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '\\' | '"' | '[' | ']' | '-' | '^' | '/' => return Ok(kind),
            _ => return Err(self.fail(&format!("unknown escape \\{kind}"))),
        };
        let hex = self.rest().get(..digits).unwrap_or_default();
        let code = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
        let code = code.ok_or_else(|| self.fail("an escape names no character"))?;
        self.at += digits;
        Ok(code)
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        while self.peek() != Some('"') {
            text.push(self.character()?);
        }
        self.at += 1;
        Ok(literal(&text))
    }

    fn class(&mut self) -> Result<String> {
        self.at += 1;
        let mut class = String::from("/[");
        if self.peek() == Some('^') {
            self.at += 1;
            class.push('^');
        }
        let mut empty = true;
        while self.peek() != Some(']') {
            empty = false;
            let first = self.character()?;
            let _ = write!(class, "\\x{{{:x}}}", first as u32);
            if self.peek() == Some('-') && !self.rest().starts_with("-]") {
                self.at += 1;
                let last = self.character()?;
                if last < first {
                    return Err(self.fail("a range ends before it begins"));
                }
                let _ = write!(class, "-\\x{{{:x}}}", last as u32);
            }
        }
        self.at += 1;
        if empty {
            return Err(self.fail("an empty class"));
        }
        Ok(class + "]/")
    }
}
