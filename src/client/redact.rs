//! Prepares error details from the service for display: short, without markup, and without secrets that the service
//! repeats.

use std::borrow::Cow;

use serde_json::Value;

use crate::secret::{conceal, without_entities};

/// Maximum number of lines and characters to show of an error.
const LINES: usize = 3;
const CHARACTERS: usize = 400;
/// Maximum number of characters and entries to show of a 422.
const LIST_CHARACTERS: usize = 8000;
const ENTRIES: usize = 100;

/// Returns the `detail` of an error's body: as text for people, and as a value for programs.
pub(super) fn detail(body: &[u8]) -> (Option<String>, Option<Value>) {
    let text = String::from_utf8_lossy(body);
    let value = serde_json::from_str::<Value>(&text).ok().map(concealed);
    match value.and_then(|mut value| value.get_mut("detail").map(Value::take)) {
        Some(Value::String(detail)) => {
            let short = shorten(&detail, CHARACTERS);
            (Some(short.clone()), Some(Value::String(short)))
        }
        Some(Value::Array(mut entries)) if !entries.is_empty() => {
            entries.truncate(ENTRIES);
            let fields: Vec<String> = entries.iter().map(field).collect();
            (
                Some(shorten(&fields.join("; "), LIST_CHARACTERS)),
                Some(Value::Array(entries)),
            )
        }
        Some(other) => (Some(shorten(&other.to_string(), CHARACTERS)), Some(other)),
        None => {
            let text = title(&text).map_or(text, Cow::Owned);
            let short = shorten(&conceal(&text), CHARACTERS);
            (Some(short).filter(|text| !text.is_empty()), None)
        }
    }
}

/// Conceals secrets in every string of `value`. In parsed JSON, escapes cannot hide them.
fn concealed(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(conceal(&text).into_owned()),
        Value::Array(values) => Value::Array(values.into_iter().map(concealed).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| (conceal(&name).into_owned(), concealed(value)))
                .collect(),
        ),
        other => other,
    }
}

/// Formats one entry of a 422 as `query.start_date: Field required`.
fn field(entry: &Value) -> String {
    let words = |part: &Value| part.as_str().map_or_else(|| part.to_string(), String::from);
    let loc = entry.get("loc").and_then(Value::as_array);
    let loc: Vec<String> = loc.into_iter().flatten().map(words).collect();
    let said = match entry.get("msg").and_then(Value::as_str) {
        Some(msg) => format!("{}: {msg}", loc.join(".")),
        None => entry.to_string(),
    };
    shorten(&said, CHARACTERS)
}

fn shorten(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(LINES + 1)
        .collect();
    let mut short = lines[..lines.len().min(LINES)].join(" ");
    let cut = short.char_indices().nth(most).map(|(place, _)| place);
    if let Some(place) = cut {
        short.truncate(place);
    }
    if cut.is_some() || lines.len() > LINES {
        short.push('…');
    }
    short
}

/// Returns the title of an HTML page as plain text; without one, its first heading; otherwise its text.
/// Returns `None` if `body` is not markup.
fn title(body: &str) -> Option<String> {
    let body =
        body.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
    if !body.starts_with('<') {
        return None;
    }
    // Both have the same offsets: only ASCII letters change.
    let lower = body.to_ascii_lowercase();
    let texts = ["title", "h1"].map(|name| element(body, &lower, name).map(plain_text));
    let text = texts.into_iter().flatten().find(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| plain_text(body));
    Some(if text.is_empty() {
        "an HTML page without text".to_owned()
    } else {
        text
    })
}

/// Returns the content of the first element called `name`.
fn element<'a>(body: &'a str, lower: &str, name: &str) -> Option<&'a str> {
    let tag = format!("<{name}");
    let mut from = 0;
    loop {
        let after_name = from + lower[from..].find(&tag)? + tag.len();
        let ends_here = |byte: u8| byte == b'>' || byte.is_ascii_whitespace();
        if lower
            .as_bytes()
            .get(after_name)
            .copied()
            .is_some_and(ends_here)
        {
            let start = after_name + lower[after_name..].find('>')? + 1;
            let length = lower[start..].find(&format!("</{name}"));
            let end = length.map_or(lower.len(), |length| start + length);
            return Some(&body[start..end]);
        }
        from = after_name;
    }
}

/// Returns `markup` without tags, comments, scripts and styles, with entities decoded and in one line.
fn plain_text(markup: &str) -> String {
    let lower = markup.to_ascii_lowercase();
    let mut text = String::new();
    let mut rest = 0;
    while let Some(length) = markup[rest..].find('<') {
        let tag = rest + length;
        text.push_str(&markup[rest..tag]);
        text.push(' ');
        let end = [
            ("<!--", "-->"),
            ("<script", "</script"),
            ("<style", "</style"),
            ("<", ">"),
        ]
        .into_iter()
        .find(|(start, _)| lower[tag..].starts_with(start))
        .and_then(|(_, end)| Some(tag + lower[tag..].find(end)? + end.len()));
        rest = end.unwrap_or(markup.len());
        // The end of a script or a style is a tag too.
        if rest < markup.len() && !markup[..rest].ends_with('>') {
            rest = lower[rest..]
                .find('>')
                .map_or(markup.len(), |more| rest + more + 1);
        }
    }
    text.push_str(&markup[rest..]);
    let words: Vec<&str> = text.split_whitespace().collect();
    without_entities(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn text(body: &str) -> String {
        let _secret = Secret::new("hunter2");
        detail(body.as_bytes()).0.unwrap_or_default()
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
            "Bad gateway"
        );
        assert_eq!(text(""), "");
    }

    #[test]
    fn secrets_that_are_repeated_are_hidden() {
        assert_eq!(text(r#"{"detail":"wrong: hunter2!"}"#), "wrong: …!");
        assert_eq!(text("hunter2"), "…");
        assert_eq!(text("<title>no &#104;unter2</title>"), "no …");
    }

    #[test]
    fn long_pages_are_cut() {
        assert_eq!(text(&"x".repeat(1000)).chars().count(), CHARACTERS + 1);
        assert_eq!(text("1\n2\n3\n4\n5"), "1 2 3…");
        let title = format!("<title>{}</title>", "x".repeat(1000));
        assert_eq!(text(&title).chars().count(), CHARACTERS + 1);
    }

    #[test]
    fn every_part_of_a_value_is_searched_for_secrets() {
        for (body, shown) in [
            (r#"{"detail":[{"loc":["hunter2"],"msg":"x"}]}"#, "…: x"),
            (r#"{"detail":{"hunter2":1}}"#, r#"{"…":1}"#),
            (r#"{"detail":{"a":["hunter2"]}}"#, r#"{"a":["…"]}"#),
        ] {
            assert_eq!(text(body), shown);
        }
    }

    #[test]
    fn long_values_are_cut() {
        let long = "x".repeat(1000);
        for body in [
            format!(r#"{{"detail":"{long}"}}"#),
            format!(r#"{{"detail":{{"a":"{long}"}}}}"#),
            format!(r#"{{"detail":[{{"loc":[],"msg":"{long}"}}]}}"#),
        ] {
            assert_eq!(text(&body).chars().count(), CHARACTERS + 1, "{body}");
        }
        let entry = format!(r#"{{"loc":["a"],"msg":"{}"}}"#, &long[..200]);
        let list = format!(r#"{{"detail":[{}]}}"#, vec![entry; 150].join(","));
        let (shown, value) = detail(list.as_bytes());
        let shown = shown.expect("a text").chars().count();
        assert_eq!(shown, LIST_CHARACTERS + 1);
        let entries = value.as_ref().and_then(Value::as_array).map(Vec::len);
        assert_eq!(entries, Some(ENTRIES));
    }

    #[test]
    fn blank_lines_and_indents_are_left_out() {
        assert_eq!(text("  1\n\n\n 2  \n\n3\n"), "1 2 3");
        assert_eq!(text(r#"{"detail":[]}"#), "[]");
        assert_eq!(detail(b""), (None, None));
    }

    #[test]
    fn the_title_is_shown_without_tags() {
        let nginx = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
                     <center><h1>502 Bad Gateway</h1></center>\r\n<hr></body>\r\n</html>";
        for (body, text) in [
            (nginx, "502 Bad Gateway"),
            (
                "\u{feff} <!DOCTYPE html><TITLE lang=en>\n Wait&hellip; a &amp;\n &#60;b&#x3E;</TITLE>",
                "Wait&hellip; a & <b>",
            ),
            ("<titles>no</titles><title>yes", "yes"),
            ("<title></title><h1>Not <b>found</b></h1>", "Not found"),
            (
                "<style>p > a {}</style><!-- > --><script>if (a < b) c()</script ><p>Down</p>",
                "Down",
            ),
            ("<html></html>", "an HTML page without text"),
            ("<", "an HTML page without text"),
            ("<p", "an HTML page without text"),
        ] {
            assert_eq!(title(body).as_deref(), Some(text), "{body}");
        }
        assert_eq!(title("Bad gateway <b>"), None);
        assert_eq!(title(""), None);
    }

    #[test]
    fn odd_markup_neither_panics_nor_takes_long() {
        for body in [
            "<é>&é;&#xfffffffff;&#55296;&;&",
            "<script>é",
            "<!--",
            "<title",
            "<title>é</titl",
        ] {
            title(body).expect("markup");
        }
        for piece in ["<", "&", "<title", "<!--", "<script>", "<h1"] {
            title(&format!("<{}", piece.repeat(64 * 1024 / piece.len()))).expect("markup");
        }
    }
}
