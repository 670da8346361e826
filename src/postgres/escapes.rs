//! Escapes for U+0000, the only character that PostgreSQL text cannot contain. `verify` decodes them.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

const ZERO: &str = r"\u{0}";
const HALF_PAIR: &str = "it contains an unpaired surrogate, which jsonb cannot store";
const BACKSLASH: &str = r"\u{5c}";

/// Returns `text` with escapes; `None` if it needs none. Text that looks like an escape is escaped too, so
/// that decoding is unambiguous.
pub(super) fn visible(text: &str) -> Option<String> {
    // Most texts contain neither.
    memchr2(0, b'\\', text.as_bytes())?;
    let is_escape = |rest: &str| rest.starts_with(ZERO) || rest.starts_with(BACKSLASH);
    let mut likely = memmem::find_iter(text.as_bytes(), r"\u{");
    if memchr(0, text.as_bytes()).is_none() && !likely.any(|at| is_escape(&text[at..])) {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for (at, letter) in text.char_indices() {
        match letter {
            '\0' => escaped.push_str(ZERO),
            '\\' if is_escape(&text[at..]) => escaped.push_str(BACKSLASH),
            other => escaped.push(other),
        }
    }
    Some(escaped)
}

/// Decodes the escapes in `text`.
pub(super) fn undone(text: &str) -> Cow<'_, str> {
    if memmem::find(text.as_bytes(), br"\u{").is_none() {
        return Cow::Borrowed(text);
    }
    let mut undone = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        undone.push_str(&rest[..at]);
        rest = &rest[at..];
        let (letter, length) = if rest.starts_with(ZERO) {
            ('\0', ZERO.len())
        } else if rest.starts_with(BACKSLASH) {
            ('\\', BACKSLASH.len())
        } else {
            ('\\', 1)
        };
        undone.push(letter);
        rest = &rest[length..];
    }
    undone.push_str(rest);
    Cow::Owned(undone)
}

/// The same for JSON, where U+0000 can only appear as `\u0000`; `None` if it needs none. The error says why
/// `jsonb` cannot store it.
pub(super) fn visible_in_json(json: &str) -> Result<Option<String>, &'static str> {
    let code = |rest: &str| {
        let digits = rest.strip_prefix(r"\u").and_then(|rest| rest.get(..4));
        digits.and_then(|digits| u16::from_str_radix(digits, 16).ok())
    };
    let mut escaped: Option<String> = None;
    let mut taken = 0;
    let mut at = 0;
    while let Some(more) = memchr(b'\\', &json.as_bytes()[at..]) {
        at += more;
        match code(&json[at..]) {
            Some(0) => {
                let text = escaped.get_or_insert_default();
                text.push_str(&json[taken..at]);
                text.push('\\');
                text.push_str(ZERO);
                at += 6;
                taken = at;
            }
            // An escaped backslash, as `\\` or by its code.
            other if other.map_or(json[at..].starts_with(r"\\"), |code| code == 0x5c) => {
                let length = if other.is_some() { 6 } else { 2 };
                let rest = &json[at + length..];
                if rest.starts_with(&ZERO[1..]) || rest.starts_with(&BACKSLASH[1..]) {
                    let text = escaped.get_or_insert_default();
                    text.push_str(&json[taken..at]);
                    text.push('\\');
                    text.push_str(BACKSLASH);
                    taken = at + length;
                }
                at += length;
            }
            Some(0xd800..=0xdbff) => match code(&json[at + 6..]) {
                Some(0xdc00..=0xdfff) => at += 12,
                _ => return Err(HALF_PAIR),
            },
            Some(0xdc00..=0xdfff) => return Err(HALF_PAIR),
            Some(_) => at += 6,
            // A backslash and the character it escapes.
            None => at += 2,
        }
    }
    Ok(escaped.map(|text| text + &json[taken..]))
}

/// Decodes the escapes in JSON as PostgreSQL writes it, with each backslash doubled.
pub(super) fn undone_in_json(json: &str) -> Cow<'_, str> {
    if memmem::find(json.as_bytes(), br"\\u{").is_none() {
        return Cow::Borrowed(json);
    }
    let mut undone = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        undone.push_str(&rest[..at]);
        rest = &rest[at..];
        let (text, length) = if rest.starts_with(r"\\u{0}") {
            (r"\u0000", 1 + ZERO.len())
        } else if rest.starts_with(r"\\u{5c}") {
            (r"\\", 1 + BACKSLASH.len())
        } else {
            // A backslash and the character it escapes.
            let length = rest
                .char_indices()
                .nth(2)
                .map_or(rest.len(), |(end, _)| end);
            (&rest[..length], length)
        };
        undone.push_str(text);
        rest = &rest[length..];
    }
    undone.push_str(rest);
    Cow::Owned(undone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_necessary_escapes_are_added() {
        for text in ["", "plain", r"\", r"\u{1}", r"\u{00}", r"\\n", "\u{1}"] {
            assert_eq!(visible(text), None, "{text}");
        }
        assert_eq!(visible("a\0b").as_deref(), Some(r"a\u{0}b"));
        assert_eq!(visible(r"\u{0}").as_deref(), Some(r"\u{5c}u{0}"));
    }

    #[test]
    fn zeros_in_json_are_escaped() {
        for (json, expected) in [
            (r#"{"a":"x"}"#, Ok(None)),
            (r#"{"a":"\\u0000"}"#, Ok(None)),
            (r#"{"a":"\ud83c\udf31é\n"}"#, Ok(None)),
            (
                r#"{"a":"x\u0000y\u0000"}"#,
                Ok(Some(r#"{"a":"x\\u{0}y\\u{0}"}"#)),
            ),
            (r#"{"a":"\\\u0000"}"#, Ok(Some(r#"{"a":"\\\\u{0}"}"#))),
            (r#"{"a":"\ud83c"}"#, Err(HALF_PAIR)),
            (r#"{"a":"\ud83c\n"}"#, Err(HALF_PAIR)),
            (r#"{"a":"\udf31"}"#, Err(HALF_PAIR)),
        ] {
            let found = visible_in_json(json);
            let found = found.as_ref().map(Option::as_deref);
            assert_eq!(found, expected.as_ref().map(|json| *json), "{json}");
        }
    }

    proptest! {
        #[test]
        fn escapes_can_be_decoded(text in r"(\\|u\{|0|5c|\}|\\u\{(0|5c|00)\}|[\x00é])*") {
            let escaped = visible(&text).unwrap_or_else(|| text.clone());
            prop_assert!(!escaped.contains('\0'));
            prop_assert_eq!(undone(&escaped), text);
        }
    }

    proptest! {
        #[test]
        fn escapes_in_json_can_be_decoded(text in r"(\\|\x00|u\{0\}|u\{5c\}|a|é){0,12}") {
            let json = serde_json::to_string(&text).expect("text is JSON");
            for json in [json.clone(), json.replace(r"\\", r"\u005c")] {
                let escaped = visible_in_json(&json).expect("no half pairs").unwrap_or(json);
                let stored: String = serde_json::from_str(&escaped).expect("JSON");
                prop_assert!(!stored.contains('\0'));
                // As PostgreSQL writes it.
                let written = serde_json::to_string(&stored).expect("text is JSON");
                let back: String = serde_json::from_str(&undone_in_json(&written)).expect("JSON");
                prop_assert_eq!(&back, &text);
            }
        }
    }
}
