//! Checks that a link leads to the address in its cell.

use std::collections::{BTreeSet, HashMap};

use url::Url;

/// The links of a sheet, by the row and column of their cells.
#[derive(Debug, Default)]
pub(super) struct Links {
    targets: HashMap<(u32, u32), String>,
    /// The columns that have links: usually one.
    columns: BTreeSet<u32>,
    checked: usize,
}

impl Links {
    pub(super) fn new(targets: HashMap<(u32, u32), String>) -> Self {
        Self {
            columns: targets.keys().map(|(_, column)| *column).collect(),
            targets,
            checked: 0,
        }
    }

    /// Returns whether the link of a cell, if any, leads to the address in its `text`.
    pub(super) fn check(&mut self, cell: (u32, u32), text: impl FnOnce() -> String) -> bool {
        if !self.columns.contains(&cell.1) {
            return true;
        }
        let Some(target) = self.targets.get(&cell) else {
            return true;
        };
        self.checked += 1;
        leads_to(target, &text())
    }

    /// Returns whether every link belongs to a cell that was checked.
    pub(super) fn all_checked(&self) -> bool {
        self.checked == self.targets.len()
    }
}

/// Returns whether `target` is the address in `text`, regardless of encoding.
fn leads_to(target: &str, text: &str) -> bool {
    // Programs turn mail addresses into links, too.
    if target == text || target.strip_prefix("mailto:") == Some(text) {
        return true;
    }
    let is_on_the_web = |address: &Url| matches!(address.scheme(), "http" | "https");
    let address = |text: &str| Url::parse(text).ok().filter(is_on_the_web);
    match (address(target), address(text)) {
        (Some(target), Some(text)) => same_escapes(target.as_str()) == same_escapes(text.as_str()),
        _ => false,
    }
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
    fn a_link_without_a_cell_is_found() {
        let mut links = Links::new(HashMap::from([(
            (1, 15),
            "https://example.org/".to_owned(),
        )]));
        assert!(links.check((2, 15), || "anything".to_owned()));
        assert!(!links.all_checked());
        assert!(links.check((1, 15), || "https://example.org/".to_owned()));
        assert!(links.all_checked());
    }
}
