//! `{% generation %} … {% endgeneration %}` marks what the assistant wrote, for training. Rendering
//! only sees through it: it becomes a block that is always taken, white-space marks kept.

pub fn rewrite(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(open) = rest.find("{%") {
        let (before, tag) = rest.split_at(open);
        out.push_str(before);
        match tag.find("%}") {
            Some(close) => {
                let (tag, after) = tag.split_at(close + 2);
                out.push_str(&replace(tag));
                rest = after;
            }
            None => {
                out.push_str(tag);
                rest = "";
            }
        }
    }
    out.push_str(rest);
    out
}

fn replace(tag: &str) -> String {
    let inner = &tag[2..tag.len() - 2];
    let word = inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
    match word {
        "generation" => tag.replace("generation", "if true"),
        "endgeneration" => tag.replace("endgeneration", "endif"),
        _ => tag.to_string(),
    }
}
