//! What a service says, made fit to be shown: short, and without the secrets that it may repeat.

use serde_json::Value;

use crate::settings::Secret;

/// Lines and characters that are worth showing of a page that is not for us.
const LINES: usize = 3;
const CHARACTERS: usize = 400;

/// Returns the `detail` of an error's body: the text for people, and the value for programs.
pub(super) fn detail(body: &[u8], secrets: &[Secret]) -> (Option<String>, Option<Value>) {
    let text = hide(&String::from_utf8_lossy(body), secrets);
    let detail = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|value| value.get("detail").cloned());
    match detail {
        Some(Value::String(detail)) => (
            Some(shorten(&detail)),
            Some(Value::String(shorten(&detail))),
        ),
        Some(Value::Array(entries)) if !entries.is_empty() => {
            let fields: Vec<String> = entries.iter().map(field).collect();
            (
                Some(shorten(&fields.join("; "))),
                Some(Value::Array(entries)),
            )
        }
        Some(other) => (Some(shorten(&other.to_string())), Some(other)),
        None => (Some(shorten(&text)).filter(|text| !text.is_empty()), None),
    }
}

/// Says one entry of a 422 as `query.start_date: Field required`.
fn field(entry: &Value) -> String {
    let words = |part: &Value| part.as_str().map_or_else(|| part.to_string(), String::from);
    let loc = entry.get("loc").and_then(Value::as_array);
    let loc: Vec<String> = loc.into_iter().flatten().map(words).collect();
    match entry.get("msg").and_then(Value::as_str) {
        Some(msg) => format!("{}: {msg}", loc.join(".")),
        None => entry.to_string(),
    }
}

fn hide(text: &str, secrets: &[Secret]) -> String {
    // Very short ones would blot out half of every text, and are no secrets.
    let long = secrets
        .iter()
        .map(Secret::expose)
        .filter(|secret| secret.len() >= 4);
    long.fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
}

fn shorten(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(LINES + 1)
        .collect();
    let mut short = lines[..lines.len().min(LINES)].join(" ");
    let cut = short.char_indices().nth(CHARACTERS).map(|(place, _)| place);
    if let Some(place) = cut {
        short.truncate(place);
    }
    if cut.is_some() || lines.len() > LINES {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> String {
        detail(body.as_bytes(), &[Secret::new("hunter2")])
            .0
            .unwrap_or_default()
    }

    #[test]
    fn every_shape_of_detail_is_said_in_words() {
        assert_eq!(text(r#"{"detail":"no such client"}"#), "no such client");
        assert_eq!(
            text(
                r#"{"detail":[{"type":"missing","loc":["body","x"],"msg":"Field required"},{"loc":["query",1],"msg":"b"}]}"#
            ),
            "body.x: Field required; query.1: b"
        );
        assert_eq!(text(r#"{"detail":{"a":1}}"#), r#"{"a":1}"#);
        assert_eq!(
            text("<html>\n\n <h1>Bad gateway</h1>\n</html>"),
            "<html> <h1>Bad gateway</h1> </html>"
        );
        assert_eq!(text(""), "");
    }

    #[test]
    fn secrets_that_are_repeated_are_hidden() {
        assert_eq!(text(r#"{"detail":"wrong: hunter2!"}"#), "wrong: …!");
        assert_eq!(text("hunter2"), "…");
    }

    #[test]
    fn long_pages_are_cut() {
        assert_eq!(text(&"x".repeat(1000)).chars().count(), CHARACTERS + 1);
        assert_eq!(text("1\n2\n3\n4\n5"), "1 2 3…");
    }
}
