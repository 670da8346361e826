//! Undoes the escapes of JSON, URLs and HTML.

use percent_encoding::percent_decode_str;

/// Returns `text` without the escapes of JSON, URLs and HTML, once each.
pub(super) fn unescaped(text: &str) -> String {
    let plain = without_backslashes(text);
    let plain = percent_decode_str(&plain).decode_utf8_lossy();
    without_entities(&plain)
}

/// Replaces the escapes of JSON, and `\x` with two digits.
fn without_backslashes(text: &str) -> String {
    let number = |digits: Option<&str>| char::from_u32(u32::from_str_radix(digits?, 16).ok()?);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        let (character, length) = match escape.bytes().next() {
            Some(b'u') => (number(escape.get(1..5)), 5),
            Some(b'x') => (number(escape.get(1..3)), 3),
            Some(b'n' | b'r' | b't' | b'b' | b'f') => (Some(' '), 1),
            Some(byte @ (b'"' | b'\'' | b'\\' | b'/')) => (Some(byte.into()), 1),
            _ => (None, 0),
        };
        plain.push_str(before);
        plain.push(character.unwrap_or('\\'));
        rest = match character {
            Some(_) => &escape[length..],
            None => escape,
        };
    }
    plain.push_str(rest);
    plain
}

/// Decodes the entities that error pages use; others stay as they are.
pub(crate) fn without_entities(text: &str) -> String {
    /// The longest entity to look for, such as `&#x10FFFF;`.
    const LONGEST: usize = 10;
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('&') {
        decoded.push_str(&rest[..place]);
        rest = &rest[place..];
        let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
        let letter = end.and_then(|end| entity(&rest[1..end]));
        decoded.push(letter.unwrap_or('&'));
        let length = letter.and(end).map_or(1, |end| end + 1);
        rest = &rest[length..];
    }
    decoded.push_str(rest);
    decoded
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
