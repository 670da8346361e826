//! The beginning of an object: enough to name it in a message.

use memchr::memchr2;

use crate::batch::unquote;

/// An object of which only the beginning was read: which one it is, and in which field it was interrupted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Interrupted {
    pub(super) id: Option<String>,
    pub(super) field: Option<String>,
}

impl Interrupted {
    /// Reads the beginning of an object, without blanks between its parts.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut interrupted = Self::default();
        let (mut depth, mut place, mut is_value) = (0, 0, false);
        while let Some(&byte) = text.get(place) {
            place += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b':' if depth == 1 => is_value = true,
                b',' if depth == 1 => is_value = false,
                b'"' => {
                    let start = place - 1;
                    place = string_end(text, place);
                    let string = || {
                        let string = String::from_utf8_lossy(&text[start..place]);
                        let content = unquote(&string);
                        // One that was interrupted has no quote at its end.
                        content.strip_prefix('"').unwrap_or(&content).to_owned()
                    };
                    if depth == 1 && !is_value {
                        interrupted.field = Some(string());
                    } else if depth == 1 && interrupted.field.as_deref() == Some("batch_id") {
                        interrupted.id = Some(string());
                    }
                }
                _ => {}
            }
        }
        interrupted
    }
}

/// Returns the place behind the quote that ends the string whose content begins at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut place = start;
    while let Some(found) = memchr2(b'"', b'\\', text.get(place..).unwrap_or_default()) {
        place += found + 1;
        match text[place - 1] {
            b'"' => return place,
            _ => place += 1,
        }
    }
    text.len()
}
