//! Text in XML, as Excel writes it, and escapes for text that XML cannot store.

/// Appends the text of a cell. Excel reads `_x000D_` as a carriage return, and XML could not store one; a text
/// that looks like such an escape is escaped itself.
pub(super) fn put_text(xml: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    if !bytes
        .iter()
        .any(|byte| matches!(byte, b'&' | b'<' | b'>' | b'\r' | b'_'))
    {
        return xml.extend_from_slice(bytes);
    }
    put_escaped(xml, bytes, |at| match bytes[at] {
        b'\r' => Some("_x000D_"),
        b'_' if is_escape(&bytes[at..]) => Some("_x005F_"),
        byte => markup(byte),
    });
}

/// Appends the value of an attribute.
pub(super) fn put_attribute(xml: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    put_escaped(xml, bytes, |at| match bytes[at] {
        b'"' => Some("&quot;"),
        byte => markup(byte),
    });
}

fn markup(byte: u8) -> Option<&'static str> {
    match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        _ => None,
    }
}

fn put_escaped(xml: &mut Vec<u8>, bytes: &[u8], escape: impl Fn(usize) -> Option<&'static str>) {
    let mut start = 0;
    for at in 0..bytes.len() {
        if let Some(escape) = escape(at) {
            xml.extend_from_slice(&bytes[start..at]);
            xml.extend_from_slice(escape.as_bytes());
            start = at + 1;
        }
    }
    xml.extend_from_slice(&bytes[start..]);
}

/// Returns whether `bytes` start with an escape such as `_x000D_`. A carriage return ends one, too: its own escape
/// starts with `_`.
fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'_', b'x', digits @ ..] if digits.len() > 4
        && digits[..4].iter().all(u8::is_ascii_hexdigit)
        && matches!(digits[4], b'_' | b'\r'))
}

/// Returns whether `text` has characters that XML cannot store.
pub(super) fn has_foreign(text: &str) -> bool {
    text.contains(is_foreign)
}

fn is_foreign(letter: char) -> bool {
    matches!(letter, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// The most hexadecimal digits of a character.
const DIGITS: usize = 6;

/// Returns `text` with visible escapes, such as `\u{1}`, for characters that XML cannot store; `None` if there
/// are none. Text that looks like an escape is escaped, too, so that the reader can undo each.
pub(super) fn escape(text: &str) -> Option<String> {
    // The first bytes of what is looked for below.
    let is_suspect = |byte: u8| matches!(byte, b'\0'..=0x1f | b'\\' | 0xef);
    if !text.bytes().any(is_suspect) {
        return None;
    }
    let is_escape = |rest: &str| {
        let digits = rest.strip_prefix("\\u{").and_then(|rest| {
            // The reader undoes no longer escapes, and a longer search would take quadratic time.
            let end = rest.bytes().take(DIGITS + 1).position(|byte| byte == b'}');
            end.map(|end| &rest[..end])
        });
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let letter = code.and_then(char::from_u32);
        letter.is_some_and(|letter| letter == '\\' || is_foreign(letter))
    };
    if !has_foreign(text)
        && !text
            .match_indices("\\u{")
            .any(|(at, _)| is_escape(&text[at..]))
    {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for (at, letter) in text.char_indices() {
        if is_foreign(letter) || letter == '\\' && is_escape(&text[at..]) {
            escaped.extend(letter.escape_unicode());
        } else {
            escaped.push(letter);
        }
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::xlsx::read::cell_value::unescape;
    use proptest::prelude::*;

    #[test]
    fn text_and_attributes_are_escaped_as_excel_does() {
        for (text, in_cell, in_attribute) in [
            ("a & <b>", "a &amp; &lt;b&gt;", "a &amp; &lt;b&gt;"),
            ("\"\t\n", "\"\t\n", "&quot;\t\n"),
            ("a\r\n", "a_x000D_\n", "a\r\n"),
            ("_x000D_", "_x005F_x000D_", "_x000D_"),
            ("_x0041\rz", "_x005F_x0041_x000D_z", "_x0041\rz"),
            (
                "__x00e9__x0041_",
                "__x005F_x00e9__x005F_x0041_",
                "__x00e9__x0041_",
            ),
            (
                "_x000G_ _x00_ _x000D",
                "_x000G_ _x00_ _x000D",
                "_x000G_ _x00_ _x000D",
            ),
            ("_xé12_", "_xé12_", "_xé12_"),
        ] {
            let mut xml = Vec::new();
            put_text(&mut xml, text);
            assert_eq!(xml, in_cell.as_bytes(), "{text}");
            xml.clear();
            put_attribute(&mut xml, text);
            assert_eq!(xml, in_attribute.as_bytes(), "{text}");
        }
    }

    #[test]
    fn a_control_character_and_a_text_that_looks_like_its_escape_differ() {
        assert_eq!(escape("\u{1}").as_deref(), Some(r"\u{1}"));
        assert_eq!(escape(r"\u{1}").as_deref(), Some(r"\u{5c}u{1}"));
        assert_eq!(escape(r"\u{5c}u{1}").as_deref(), Some(r"\u{5c}u{5c}u{1}"));
    }

    #[test]
    fn text_that_only_looks_like_an_escape_is_unchanged() {
        for text in [r"\u{9}", r"\u{a}", r"\u{d}", r"\u{41}", r"\u{0001}", r"\u{"] {
            let escaped = escape(text).unwrap_or_else(|| text.to_owned());
            assert_eq!(unescape(&escaped), text);
        }
    }

    // In quadratic time, this would take hours.
    #[test]
    fn escapes_without_an_end_take_no_longer_than_other_text() {
        let text = r"\u{".repeat(1_000_000);
        assert_eq!(escape(&text), None);
        let text = format!("\0{text}");
        assert_eq!(escape(&text), Some(text.replace('\0', r"\u{0}")));
    }

    proptest! {
        #[test]
        fn escapes_can_be_undone(text in r"(\\|u\{|[0-9a-f]{1,4}|\}|\\u\{(1|9|5c|0001|fffe|41)\}|[\x00-\x1f\u{fffe}é])*") {
            let escaped = escape(&text).unwrap_or_else(|| text.clone());
            prop_assert_eq!(unescape(&escaped), text);
        }
    }
}
