//! Text in XML, as Excel writes it.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
