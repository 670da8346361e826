//! Addresses that a cell may link to.

use std::borrow::Cow;

use crate::text;

/// The longest link.
const LINK_LENGTH: usize = 2_079;

/// Recognises web addresses.
#[derive(Default)]
pub(super) struct WebAddresses {
    /// The start of an earlier address, up to the first slash after its host: most have the same.
    known_site: String,
}

impl WebAddresses {
    /// Returns the web address in `text`, encoded so that no program has to change it; `None` if it is not an
    /// address, or if people could see another address than the link has.
    pub(super) fn find<'a>(&mut self, text: &'a str) -> Option<Cow<'a, str>> {
        let is_simple = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/?&=".contains(&byte);
        let path = text.strip_prefix(&self.known_site);
        let is_known = !self.known_site.is_empty()
            && text.len() <= LINK_LENGTH
            && path.is_some_and(|path| path.bytes().all(is_simple));
        if is_known {
            return Some(Cow::Borrowed(text));
        }
        let address = web_address(text)?;
        if address != text {
            return Some(Cow::Owned(address));
        }
        if let Some(site) = site(text) {
            site.clone_into(&mut self.known_site);
        }
        Some(Cow::Borrowed(text))
    }
}

/// Returns the start of an address: with it, any simple path is an address, too.
fn site(address: &str) -> Option<&str> {
    let host = address.find("://")? + "://".len();
    let end = host + address[host..].find('/')? + 1;
    let site = &address[..end];
    // Whether an escape is good depends on the others.
    (!site.contains('%')).then_some(site)
}

/// Returns the web address in `text`, encoded so that no program has to change it; `None` if it is not an
/// address, or if people could see another address than the link has.
fn web_address(text: &str) -> Option<String> {
    let has_scheme = |scheme: &str| {
        let start = text.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let is_plain = |letter: char| match letter {
        ' ' => true,
        letter if letter.is_ascii() => {
            letter.is_ascii_graphic() && !"\"<>[]\\^`{|}".contains(letter)
        }
        // Invisible characters, and those that reverse the text after them.
        letter => !letter.is_control() && !letter.is_whitespace() && !text::is_invisible(letter),
    };
    let is_hexadecimal = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_good = (has_scheme("http://") || has_scheme("https://"))
        && text.trim() == text
        && text.chars().all(is_plain)
        && text.matches('#').count() <= 1
        // Programs drop a fragment that is empty.
        && !text.ends_with('#')
        && text.split('%').skip(1).all(is_hexadecimal);
    let parsed = url::Url::parse(text).ok().filter(|_| is_good)?;
    let is_usual = text.bytes().all(|byte| byte.is_ascii_graphic())
        && (text.starts_with("http://") || text.starts_with("https://"));
    let address = if is_usual {
        text.to_owned()
    } else {
        parsed.into()
    };
    as_written(address).filter(|address| address.len() <= LINK_LENGTH)
}

/// Returns `address` as a workbook has it: without escapes of characters beyond ASCII, and `None` if it has other
/// escapes, unless one of them is known to all programs.
fn as_written(address: String) -> Option<String> {
    const KNOWN: [&str; 11] = [
        "%20", "%22", "%25", "%3C", "%3E", "%5B", "%5D", "%5E", "%60", "%7B", "%7D",
    ];
    let (place, fragment) = address.split_at(address.find('#').unwrap_or(address.len()));
    let capitals = place.to_ascii_uppercase();
    if !place.contains('%') || KNOWN.iter().any(|escape| capitals.contains(escape)) {
        return Some(address);
    }
    // Characters beyond ASCII need no escape.
    let mut letters = Vec::with_capacity(place.len());
    let mut pieces = place.split('%');
    letters.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        letters.push(
            u8::from_str_radix(code, 16)
                .ok()
                .filter(|code| *code >= 0x80)?,
        );
        letters.extend_from_slice(rest.as_bytes());
    }
    let letters = String::from_utf8(letters).ok()?;
    (!letters.contains(text::is_invisible)).then(|| letters + fragment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_with_an_empty_fragment_is_only_text() {
        assert_eq!(web_address("https://example.org/a#"), None);
        assert!(web_address("https://example.org/a#b").is_some());
    }

    #[test]
    fn an_address_of_a_known_site_is_found_as_if_it_were_the_first() {
        let long = format!("https://example.org/{}", "a".repeat(LINK_LENGTH));
        let texts = [
            "https://example.org/a/b-1?c=d",
            "https://example.org/",
            "https://example.org/%20",
            "https://example.org/%2F",
            "https://example.org/%C3%A9",
            "https://example.org/\u{202e}a",
            "https://example.org/a b",
            "https://example.org/#a",
            "https://example.org/#a#b",
            "https://example.org",
            "https://example.orga/b",
            "https://example.org:99999/a",
            "https://ex%61mple.org/%20",
            "https://ex%61mple.org/a",
            "https://example.org?a=/b",
            "https://example.org?a=/[",
            "HTTPS://example.org/a",
            "example.org/a",
            "",
            &long,
            &long[..LINK_LENGTH],
        ];
        for first in texts {
            for second in texts {
                let mut addresses = WebAddresses::default();
                addresses.find(first);
                let found = addresses.find(second);
                assert_eq!(
                    found.as_deref(),
                    web_address(second).as_deref(),
                    "{first} {second}"
                );
            }
        }
    }
}
