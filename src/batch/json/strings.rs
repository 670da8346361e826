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
pub(in crate::batch) fn few_escapes(json: &str) -> Cow<'_, str> {
    let mut escape = memchr(b'\\', json.as_bytes());
    if escape.is_none() {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(position) = escape {
        text.push_str(&rest[..position]);
        let escaped = read_escape(&rest.as_bytes()[position + 1..]);
        let length = escaped.map_or(0, |(_, length)| length);
        if let Some((character, _)) = escaped {
            push_escaped(character, &mut text);
        } else {
            // Half of a surrogate pair has no other spelling.
            text.push('\\');
        }
        rest = &rest[position + 1 + length..];
        escape = memchr(b'\\', rest.as_bytes());
    }
    text.push_str(rest);
    Cow::Owned(text)
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

/// Returns the text of a JSON string without its escapes; `None` if one is not valid.
fn unescape(content: &str) -> Option<String> {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(position) = memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..position]);
        let (character, length) = read_escape(&rest.as_bytes()[position + 1..])?;
        text.push(character);
        rest = &rest[position + 1 + length..];
    }
    text.push_str(rest);
    Some(text)
}

/// Reads an escape without its backslash; returns the character and the length. `None` if it is not valid.
fn read_escape(escape: &[u8]) -> Option<(char, usize)> {
    let character = match escape.first()? {
        quoted @ (b'"' | b'\\' | b'/') => char::from(*quoted),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let unit = hex(&escape[1..])?;
            if !(0xd800..0xdc00).contains(&unit) {
                return Some((char::from_u32(unit)?, 5));
            }
            let second = hex(escape[5..].strip_prefix(b"\\u")?)?;
            let second = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            let character = char::from_u32(0x10000 + ((unit - 0xd800) << 10 | second))?;
            return Some((character, 11));
        }
        _ => return None,
    };
    Some((character, 1))
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
