//! Checks that a link leads to the address in its cell.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use memchr::{memchr, memchr2};
use url::Url;

/// The most addresses that are kept: more than the rows of a sheet.
const MAX_FOUND: usize = 4 << 20;

/// The addresses in the cells of a sheet that its links, which come after the cells, may lead to.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The hashes of all targets, without what is after `#`, and whether all look like addresses.
    targets: HashSet<u64>,
    has_others: bool,
    /// The cells with such an address, in order, and the hash of it.
    found: Vec<((u32, u32), u64)>,
    /// With random keys, so that nobody can find two addresses with the same hash.
    hasher: RandomState,
}

impl Links {
    /// `targets` are those of the relationships of the sheet.
    pub(super) fn new<'a>(targets: impl Iterator<Item = &'a str>) -> Self {
        let mut links = Self::default();
        for target in targets {
            for address in addresses(target) {
                links.has_others |= !is_like_address(address);
                links.targets.insert(links.hash(page(address)));
            }
        }
        links
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(&*address(text))
    }

    /// Keeps the text of a cell, if a link may lead to it. Cells are in order. Returns false if there are too many.
    pub(super) fn add(&mut self, cell: (u32, u32), text: &str) -> bool {
        if !self.targets.is_empty()
            && (self.has_others || is_like_address(text))
            && self.targets.contains(&self.hash(page(text)))
        {
            self.found.push((cell, self.hash(text)));
        }
        self.found.len() < MAX_FOUND
    }

    /// Returns whether `target` is the address in the text of a cell.
    pub(super) fn leads_to(&self, target: &str, cell: (u32, u32)) -> bool {
        let found = self.found.binary_search_by_key(&cell, |(cell, _)| *cell);
        let is_found = |place: usize, address| self.hash(address) == self.found[place].1;
        found.is_ok_and(|place| addresses(target).any(|address| is_found(place, address)))
    }
}

fn is_like_address(text: &str) -> bool {
    memchr2(b':', b'@', text.as_bytes()).is_some()
}

/// Returns the texts that a cell with this target may have: programs turn mail addresses into links, too.
fn addresses(target: &str) -> impl Iterator<Item = &str> {
    let mail = target.strip_prefix("mailto:");
    [Some(target), mail].into_iter().flatten()
}

/// Returns an address without the place in the page.
fn page(address: &str) -> &str {
    memchr(b'#', address.as_bytes()).map_or(address, |end| &address[..end])
}

/// Returns `text` so that the same address on the web is the same text, regardless of encoding.
fn address(text: &str) -> Cow<'_, str> {
    if is_usual(text) {
        return Cow::Borrowed(text);
    }
    let is_on_the_web = |address: &Url| matches!(address.scheme(), "http" | "https");
    match Url::parse(text).ok().filter(is_on_the_web) {
        Some(address) => Cow::Owned(same_escapes(address.as_str())),
        None => Cow::Borrowed(text),
    }
}

/// Returns whether `text` is an address that needs no parsing: it is surely its only form. Most are.
fn is_usual(text: &str) -> bool {
    let rest = text.strip_prefix("https://");
    let Some((host, path)) = rest.and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        // Others may be numbers or have an encoding.
        label.starts_with(|first: char| first.is_ascii_lowercase())
            && !label.contains("--")
            && bytes.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    let is_simple = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~/?&=".contains(&byte);
    host.split('.').all(is_label) && path.bytes().all(is_simple)
}

/// Returns `text` with the digits of all `%` escapes in upper case.
fn same_escapes(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut same = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        same.push('%');
        same.push_str(&digits.to_ascii_uppercase());
        same.push_str(rest);
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads_to(target: &str, text: &str) -> bool {
        let mut links = Links::new([page(target)].into_iter());
        assert!(links.add((1, 15), text));
        links.leads_to(target, (1, 15))
    }

    #[test]
    fn links_must_lead_to_the_address_in_their_text() {
        for (target, text) in [
            ("https://example.org/r/1?a=b", "https://example.org/r/1?a=b"),
            ("https://example.org/a%20b", "https://example.org/a b"),
            ("https://example.org/R", "HTTPS://Example.org/R"),
            (
                "https://example.org/ö#%2F",
                "https://example.org/%c3%b6#%2F",
            ),
            ("https://xn--mller-kva.example/", "https://müller.example/"),
            ("mailto:anna@example.org", "anna@example.org"),
        ] {
            assert!(leads_to(target, text), "{target} {text}");
        }
        for (target, text) in [
            ("https://evil.example/r/1", "https://example.org/r/1"),
            ("https://example.org/r/2", "https://example.org/r/1"),
            ("http://example.org/r/1", "https://example.org/r/1"),
            ("https://example.org/a%2Fb", "https://example.org/a/b"),
            ("file:///etc/passwd", "https://example.org/"),
            ("https://example.org/", "Tomato"),
            ("https://example.org/", ""),
        ] {
            assert!(!leads_to(target, text), "{target} {text}");
        }
    }

    #[test]
    fn usual_addresses_have_only_one_form() {
        let hosts = [
            "a",
            "scan.example.com",
            "a1.b2",
            "A.b",
            "1.2",
            "a.1",
            "xn--a",
            "a-b",
            "a..b",
            ".a",
            "a.",
            "0x1",
            "a:80",
            "a@b",
            "",
        ];
        let paths = [
            "", "r/1", "?a=b&c", "a//b", "a?/..", "./a", "..", "%41", "a b", "\u{e4}", "a#b",
            "\\a", "~a_b-c",
        ];
        let mut usual = 0;
        for (host, path) in hosts.iter().flat_map(|host| paths.map(|path| (host, path))) {
            for scheme in ["https", "http", "HTTPS"] {
                let text = format!("{scheme}://{host}/{path}");
                if is_usual(&text) {
                    usual += 1;
                    assert_eq!(Url::parse(&text).expect(&text).as_str(), text);
                }
            }
        }
        assert_eq!(usual, 20);
    }

    #[test]
    fn a_link_without_a_cell_is_found() {
        let target = "https://example.org/";
        let mut links = Links::new([target].into_iter());
        assert!(links.add((2, 15), "anything") && links.add((3, 15), target));
        assert!(!links.leads_to(target, (1, 15)) && !links.leads_to(target, (2, 15)));
        assert!(links.leads_to(target, (3, 15)));
    }
}
