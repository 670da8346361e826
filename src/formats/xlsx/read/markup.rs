//! XML tags: their attributes, and the cell references in them.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

/// Returns the value of the attribute `name` of a tag with these attributes; names may have a prefix.
pub(super) fn attribute(tag: &[u8], attributes: &[Attribute], name: &str) -> Option<String> {
    let is_it = |attribute: &&Attribute| {
        let found = attribute.name(tag);
        // Namespace declarations do not count.
        local(found) == name.as_bytes() && !found.starts_with(b"xmlns")
    };
    let value = attributes.iter().find(is_it)?.value(tag);
    Some(unescape(std::str::from_utf8(value).ok()?).into_owned())
}

/// The position of an attribute in its tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attribute {
    name: Range<usize>,
    value: Range<usize>,
}

impl Attribute {
    pub(super) fn name<'a>(&self, tag: &'a [u8]) -> &'a [u8] {
        &tag[self.name.clone()]
    }

    pub(super) fn value<'a>(&self, tag: &'a [u8]) -> &'a [u8] {
        &tag[self.value.clone()]
    }
}

/// Finds all attributes of a tag without its `<` and `>`; `None` if one is not well-formed. The vector is reused,
/// because there are millions of tags.
pub(super) fn find_attributes(tag: &[u8], found: &mut Vec<Attribute>) -> Option<()> {
    found.clear();
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let skip_blanks = |at: usize| {
        tag[at..]
            .iter()
            .position(|byte| !is_blank(byte))
            .map(|more| at + more)
    };
    let mut at = tag.iter().position(is_blank).unwrap_or(tag.len());
    loop {
        let Some(start) = skip_blanks(at) else {
            return Some(());
        };
        // Attributes must be separated by blanks.
        if start == at {
            return None;
        }
        let equals = start + memchr(b'=', &tag[start..])?;
        let name = start..start + tag[start..equals].trim_ascii_end().len();
        let quote = skip_blanks(equals + 1).filter(|at| matches!(tag[*at], b'"' | b'\''))?;
        let end = quote + 1 + memchr(tag[quote], &tag[quote + 1..])?;
        let value = quote + 1..end;
        found.push(Attribute { name, value });
        at = end + 1;
    }
}

/// Returns a name without its prefix.
pub(super) fn local(name: &[u8]) -> &[u8] {
    memchr(b':', name).map_or(name, |colon| &name[colon + 1..])
}

/// Replaces references with their characters.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut undone = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        let (name, more) = after.split_once(';').unwrap_or((after, ""));
        undone.push_str(before);
        undone.extend(character(name));
        rest = more;
    }
    undone.push_str(rest);
    Cow::Owned(undone)
}

/// Returns the character of a reference such as `amp` or `#33`; `None` if XML has no such one.
pub(super) fn character(name: &str) -> Option<char> {
    let (digits, radix) = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => match (name.strip_prefix("#x"), name.strip_prefix('#')) {
            (Some(digits), _) => (digits, 16),
            (None, digits) => (digits?, 10),
        },
    };
    // A sign would be parsed, too.
    let code = u32::from_str_radix(digits, radix).ok();
    let code = code.filter(|_| !digits.starts_with('+'));
    let letter = code.and_then(char::from_u32);
    letter.filter(|&letter| match letter {
        '\t' | '\n' | '\r' => true,
        letter => letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}'),
    })
}

/// Parses a reference such as `P12`: row and column, from 0.
pub(super) fn cell_at(text: &str) -> Option<(u32, u32)> {
    let text = text.replace('$', "");
    let digits = text.find(|letter: char| letter.is_ascii_digit())?;
    let (letters, digits) = text.split_at(digits);
    let mut column: u32 = 0;
    for letter in letters.bytes() {
        let place = letter
            .is_ascii_uppercase()
            .then(|| u32::from(letter - b'A') + 1)?;
        column = column.checked_mul(26)?.checked_add(place)?;
    }
    let row: u32 = digits.parse().ok()?;
    Some((row.checked_sub(1)?, column.checked_sub(1)?))
}

/// Parses a reference such as `A1:R19`: its first and last cell.
pub(super) fn cells_at(text: &str) -> Option<[(u32, u32); 2]> {
    match text.split_once(':') {
        Some((first, last)) => Some([cell_at(first)?, cell_at(last)?]),
        None => cell_at(text).map(|cell| [cell, cell]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_their_names() {
        let attribute = |tag: &[u8], name: &str| {
            let mut found = Vec::new();
            find_attributes(tag, &mut found)?;
            attribute(tag, &found, name)
        };
        let tag =
            b"hyperlink xmlns:id='x' ref = \"P2\" r:id='rId1' location=\"a&amp;b&#x21;&#33;\"";
        for (name, value) in [("ref", "P2"), ("id", "rId1"), ("location", "a&b!!")] {
            assert_eq!(attribute(tag, name).as_deref(), Some(value));
        }
        assert_eq!(attribute(tag, "display"), None);
        assert_eq!(attribute(b"c", "r"), None);
        assert_eq!(attribute(b"c r=1", "r"), None);
        assert_eq!(attribute(b"c r=\"1", "r"), None);
    }

    #[test]
    fn references_are_rows_and_columns() {
        for (text, cell) in [
            ("A1", Some((0, 0))),
            ("$P$12", Some((11, 15))),
            ("AA1048576", Some((1_048_575, 26))),
            ("A0", None),
            ("12", None),
            ("A", None),
            ("a1", None),
            ("AAAAAAAAAAAA1", None),
        ] {
            assert_eq!(cell_at(text), cell, "{text}");
        }
        assert_eq!(cells_at("A1:B3"), Some([(0, 0), (2, 1)]));
        assert_eq!(cells_at("B3"), Some([(2, 1), (2, 1)]));
        assert_eq!(cells_at("B3:"), None);
    }
}
