//! JSON strings and their escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memchr;

use super::tokens::hex;

/// Returns the content of a JSON string; any other JSON text as it is.
pub(crate) fn unquote(json: &str) -> Cow<'_, str> {
    match json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        None => Cow::Borrowed(json),
        Some(content) if memchr(b'\\', content.as_bytes()).is_none() => Cow::Borrowed(content),
        // An unpaired surrogate has no text. With `--lenient`, it is kept as written.
        Some(content) => unescape(content).map_or(Cow::Borrowed(content), Cow::Owned),
    }
}

/// Returns JSON text with as few escapes as possible in its strings.
pub(crate) fn few_escapes(json: &str) -> Cow<'_, str> {
    if memchr(b'\\', json.as_bytes()).is_none() {
        return Cow::Borrowed(json);
    }
    let text = replace_escapes(json, push_escaped, |text| {
        // Half of a surrogate pair has no other spelling.
        text.push('\\');
        Some(())
    });
    text.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// Returns the text of a JSON string without its escapes; `None` if one is not valid.
fn unescape(content: &str) -> Option<String> {
    replace_escapes(content, |character, text| text.push(character), |_| None)
}

/// Returns `json` with another text for each escape. `push` appends one for the escaped character, and `push_invalid`
/// one for the backslash of an escape that is not valid; `None` if it cannot.
#[inline]
fn replace_escapes(
    json: &str,
    push: impl Fn(char, &mut String),
    push_invalid: impl Fn(&mut String) -> Option<()>,
) -> Option<String> {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(position) = memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..position]);
        rest = &rest[position..];
        // Many escapes follow another one.
        while let Some(escape) = rest.as_bytes().strip_prefix(b"\\") {
            if let Some((character, length)) = read_escape(escape) {
                push(character, &mut text);
                rest = &rest[1 + length..];
            } else {
                push_invalid(&mut text)?;
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    Some(text)
}

/// Appends a character of a JSON string.
fn push_escaped(character: char, text: &mut String) {
    let escape = match character {
        '"' | '\\' => character,
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\0'..' ' => {
            let _ = write!(text, "\\u{:04x}", u32::from(character));
            return;
        }
        _ => {
            text.push(character);
            return;
        }
    };
    text.extend(['\\', escape]);
}

/// Reads an escape without its backslash; returns the character and the length. `None` if it is not valid.
#[inline]
fn read_escape(escape: &[u8]) -> Option<(char, usize)> {
    let (kind, rest) = escape.split_first()?;
    if *kind == b'u' {
        let unit = hex(rest)?;
        return match char::from_u32(unit) {
            Some(character) => Some((character, 5)),
            None => Some((surrogate_pair(unit, rest)?, 11)),
        };
    }
    let character = match kind {
        b'"' | b'\\' | b'/' => char::from(*kind),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    };
    Some((character, 1))
}

/// Returns the character of two escapes, each for half of it: `first` and the one after its four digits.
fn surrogate_pair(first: u32, digits: &[u8]) -> Option<char> {
    let first = first.checked_sub(0xd800).filter(|high| *high < 0x400)?;
    let second = hex(digits.get(4..)?.strip_prefix(b"\\u")?)?;
    let second = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    char::from_u32(0x10000 + (first << 10 | second))
}

/// Appends `text` as a JSON string with as few escapes as possible.
pub(in crate::batch) fn quote(text: &str, out: &mut String) {
    let quoted = serde_json::to_string(text).expect("text is always JSON");
    out.push_str(&quoted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_do_not_change_the_content() {
        for (json, few) in [
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (
                r#"{"a":"\u0062","c":"d\/e","f":1}"#,
                r#"{"a":"b","c":"d/e","f":1}"#,
            ),
            (r#""\"\u0022\\\u005c""#, r#""\"\"\\\\""#),
            (
                r#"["\u00e4","ä","\n\u000a\u0001"]"#,
                r#"["ä","ä","\n\n\u0001"]"#,
            ),
            (r#"["\ud83c\udf31","x"]"#, r#"["🌱","x"]"#),
            (r#"["\ud83c","\u0078"]"#, r#"["\ud83c","x"]"#),
            (r#"["\ud83c\u0078\u007f"]"#, "[\"\\ud83cx\u{7f}\"]"),
            (r#"{"\u0061\"":"\\"}"#, r#"{"a\"":"\\"}"#),
        ] {
            assert_eq!(few_escapes(json), few, "{json}");
            assert_eq!(few_escapes(few), few, "{json}");
        }
    }

    proptest! {
        #[test]
        fn fewer_escapes_mean_the_same(
            texts in prop::collection::vec(r#"[a"\\/\n\x01ä🌱]{0,6}"#, 1..4),
            escaped in prop::collection::vec(any::<bool>(), 24),
        ) {
            let mut escaped = escaped.into_iter().cycle();
            let spell = |text: &String| {
                let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
                let units: String = units.collect();
                if escaped.next() == Some(true) { format!("\"{units}\"") } else { serde_json::to_string(text).expect("text") }
            };
            let spelled = format!("[{}]", texts.iter().map(spell).collect::<Vec<_>>().join(","));
            let plain = serde_json::to_string(&texts).expect("text");
            prop_assert_eq!(few_escapes(&spelled), few_escapes(&plain));
            prop_assert_eq!(&*few_escapes(&plain), &plain);
        }

        #[test]
        fn escapes_are_read_as_serde_json_reads_them(
            content in r#"([a-zé]|\\["\\/bfnrtx]|\\u[0-9a-fA-F]{4}|\\ud8[0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u[0-9g+ ]{0,4}){0,8}"#,
        ) {
            let json = format!("\"{content}\"");
            let judged = serde_json::from_str::<String>(&json).ok();
            prop_assert_eq!(unescape(&content), judged.clone());
            let unquoted = unquote(&json);
            prop_assert_eq!(unquoted.as_ref(), judged.as_deref().unwrap_or(&content));
        }
    }
}
