//! Splitter: the pattern of a pre-tokeniser, run in time linear in the text wherever the pattern
//! allows it.
//!
//! Almost every published pattern is free of look-around but for one alternative at its end,
//! `\s+(?!\S)`: white space, less its last character when a word follows. That alternative is
//! taken apart here, so that an automaton can run the rest. Other patterns with look-around or
//! possessive quantifiers go to a backtracking engine, whose limits are reported as errors.

use regex_automata::meta;
use regex_automata::util::syntax;
use tokenizers::tokenizer::pattern::Pattern;
use tokenizers::Offsets;

const TRAILING_SPACE: &str = r"\s+(?!\S)";
const BACKTRACK_LIMIT: usize = 50_000_000;

enum Engine {
    Automaton(meta::Regex),
    /// Pattern 0 is what comes before the trailing-space alternative, pattern 1 is `\s+`.
    /// The flag says whether a single white-space character before a word is a match of its own.
    TrailingSpace(meta::Regex, bool),
    Backtracking(fancy_regex::Regex),
}

pub struct Splitter {
    engine: Engine,
}

/// The alternatives of a pattern at its top level, or None when it cannot be told.
fn alternatives(pattern: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut groups, mut classes) = (Vec::new(), 0, 0i32, 0i32);
    let mut escaped = false;
    for (i, c) in pattern.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' => classes += 1,
            ']' if classes > 0 => classes -= 1,
            '(' if classes == 0 => groups += 1,
            ')' if classes == 0 => groups -= 1,
            '|' if classes == 0 && groups == 0 => {
                parts.push(&pattern[start..i]);
                start = i + 1;
            }
            _ => {}
        }
        if groups < 0 {
            return None;
        }
    }
    parts.push(&pattern[start..]);
    (groups == 0 && classes == 0 && !escaped).then_some(parts)
}

/// Look-around, back references, atomic groups and possessive quantifiers: what an automaton cannot
/// run, or would read as something else.
fn needs_backtracking(pattern: &str) -> bool {
    let (mut escaped, mut in_class, mut previous) = (false, 0i32, ' ');
    let mut skip_to = 0;
    for (i, c) in pattern.char_indices() {
        if i < skip_to {
            continue;
        }
        if escaped {
            // The braces of \p{L} are not those of a repetition.
            if matches!(c, 'p' | 'P' | 'x' | 'u') && pattern[i + 1..].starts_with('{') {
                skip_to = pattern[i..].find('}').map_or(0, |end| i + end + 1);
            }
            if c.is_ascii_digit()
                || matches!(c, 'k' | 'g' | 'G' | 'K' | 'Z' | 'h' | 'H' | 'R' | 'X')
            {
                return true;
            }
            escaped = false;
            previous = 'x';
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' => in_class += 1,
            ']' if in_class > 0 => in_class -= 1,
            '+' if in_class == 0 && matches!(previous, '+' | '*' | '?' | '}') => return true,
            '(' if in_class == 0 => {
                let rest = &pattern[i..];
                if ["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?("].iter().any(|p| rest.starts_with(p))
                {
                    return true;
                }
            }
            _ => {}
        }
        previous = c;
    }
    false
}

/// `^` and `$` match at line ends, as in the reference engine's default (Ruby) syntax.
fn automaton(patterns: &[&str]) -> Result<meta::Regex, String> {
    meta::Builder::new()
        .syntax(syntax::Config::new().multi_line(true))
        .build_many(patterns)
        .map_err(|e| match e.syntax_error() {
            Some(inner) => inner.to_string(),
            None => e.to_string(),
        })
}

impl Splitter {
    pub fn new(pattern: &str) -> Result<Self, String> {
        if !needs_backtracking(pattern) {
            return Ok(Self { engine: Engine::Automaton(automaton(&[pattern])?) });
        }
        if let Some(parts) = alternatives(pattern) {
            if let Some(at) = parts.iter().position(|p| *p == TRAILING_SPACE) {
                let head = parts[..at].join("|");
                let tail = &parts[at + 1..];
                let single = tail == [r"\s+"] || tail == [r"\s"];
                if at > 0 && (single || tail.is_empty()) && !needs_backtracking(&head) {
                    let regex = automaton(&[&head, r"\s+"])?;
                    return Ok(Self { engine: Engine::TrailingSpace(regex, single) });
                }
            }
        }
        fancy_regex::RegexBuilder::new(pattern)
            .multi_line(true)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .map(|regex| Self { engine: Engine::Backtracking(regex) })
            .map_err(|e| e.to_string())
    }

    /// Calls `found` for each match, in order.
    fn each_match(&self, text: &str, mut found: impl FnMut(usize, usize)) -> Result<(), String> {
        match &self.engine {
            Engine::Automaton(regex) => {
                regex.find_iter(text).for_each(|m| found(m.start(), m.end()))
            }
            Engine::Backtracking(regex) => {
                for m in regex.find_iter(text) {
                    let m = m.map_err(|e| e.to_string())?;
                    found(m.start(), m.end());
                }
            }
            Engine::TrailingSpace(regex, single) => {
                let mut at = 0;
                while at < text.len() {
                    let input = regex_automata::Input::new(text).range(at..);
                    let Some(m) = regex.find(input) else { break };
                    let (start, mut end) = (m.start(), m.end());
                    if start == end {
                        at = end + text[end..].chars().next().map_or(1, char::len_utf8);
                        continue;
                    }
                    at = end;
                    if m.pattern().as_usize() == 1 && end < text.len() {
                        // A word follows: the last white-space character is not part of the match.
                        let last = text[start..end].chars().next_back().map_or(0, char::len_utf8);
                        if end - start > last {
                            end -= last;
                            at = end;
                        } else if !single {
                            continue;
                        }
                    }
                    found(start, end);
                }
            }
        }
        Ok(())
    }
}

impl Pattern for &Splitter {
    fn find_matches(&self, inside: &str) -> tokenizers::Result<Vec<(Offsets, bool)>> {
        if inside.is_empty() {
            return Ok(vec![((0, 0), false)]);
        }
        let mut pieces = Vec::with_capacity(inside.len() / 4 + 1);
        let mut previous = 0;
        self.each_match(inside, |start, end| {
            if previous != start {
                pieces.push(((previous, start), false));
            }
            pieces.push(((start, end), true));
            previous = end;
        })?;
        if previous != inside.len() {
            pieces.push(((previous, inside.len()), false));
        }
        Ok(pieces)
    }
}
