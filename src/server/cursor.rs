//! `next_token`: the position of the next page, signed so that only this server can create one.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac::{HMAC_SHA256, Key, sign};
use subtle::ConstantTimeEq as _;

/// A position in the batches of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Bounds of the range, in seconds since 1970.
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    /// The number of batches in the range before this page.
    pub(super) position: u64,
    /// The previous page was empty because of a fault, so this one is not.
    pub(super) after_empty: bool,
}

/// Length of the unsigned cursor: flags, two bounds, position.
const PLAIN: usize = 1 + 8 + 8 + 8;
/// Length of the snapshot number.
const SNAPSHOT: usize = 8;
/// Length of the signature. Half of the digest is safe against guessing and keeps URLs short.
const SEAL: usize = 16;

/// Signs cursors and verifies them. The key is new on each start, so cursors of another run are invalid.
pub(super) struct Sealer {
    key: Key,
}

impl Sealer {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self {
            key: Key::new(HMAC_SHA256, &key),
        }
    }

    /// Returns the text of a `cursor` for one snapshot of the batches.
    pub(super) fn seal(&self, cursor: &Cursor, snapshot: u64) -> String {
        let mut bytes = cursor.to_bytes().to_vec();
        bytes.extend_from_slice(&snapshot.to_be_bytes());
        let seal = sign(&self.key, &bytes);
        bytes.extend_from_slice(&seal.as_ref()[..SEAL]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the cursor and the snapshot number of `text`. `None` if this sealer did not create it.
    pub(super) fn open(&self, text: &str) -> Option<(Cursor, u64)> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (sealed, seal) = bytes.split_at_checked(PLAIN + SNAPSHOT)?;
        let expected = sign(&self.key, sealed);
        // Compares in constant time.
        if !bool::from(expected.as_ref()[..SEAL].ct_eq(seal)) {
            return None;
        }
        let (plain, snapshot) = sealed.split_first_chunk::<PLAIN>()?;
        let snapshot = u64::from_be_bytes(snapshot.try_into().ok()?);
        Some((Cursor::from_bytes(plain), snapshot))
    }
}

impl Cursor {
    pub(super) fn to_bytes(self) -> [u8; PLAIN] {
        let flags = [self.start.is_some(), self.end.is_some(), self.after_empty];
        let flags = flags
            .iter()
            .rev()
            .fold(0, |all, flag| all << 1 | u8::from(*flag));
        let words = [
            self.start.unwrap_or_default().to_be_bytes(),
            self.end.unwrap_or_default().to_be_bytes(),
            self.position.to_be_bytes(),
        ];
        let mut bytes = [flags; PLAIN];
        bytes[1..].copy_from_slice(words.as_flattened());
        bytes
    }

    fn from_bytes(bytes: &[u8; PLAIN]) -> Self {
        let has = |flag: u8| bytes[0] >> flag & 1 == 1;
        let (words, _) = bytes[1..].as_chunks();
        Self {
            start: has(0).then(|| i64::from_be_bytes(words[0])),
            end: has(1).then(|| i64::from_be_bytes(words[1])),
            position: u64::from_be_bytes(words[2]),
            after_empty: has(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_round_trips(
            start: Option<i64>, end: Option<i64>, position: u64, after_empty: bool,
            snapshot: u64,
        ) {
            let cursor = Cursor { start, end, position, after_empty };
            let sealer = Sealer::new([7; 32]);
            prop_assert_eq!(sealer.open(&sealer.seal(&cursor, snapshot)), Some((cursor, snapshot)));
            prop_assert_eq!(Sealer::new([8; 32]).open(&sealer.seal(&cursor, snapshot)), None);
        }

        #[test]
        fn an_altered_cursor_is_refused(position: u64, index: prop::sample::Index, to in "[A-Za-z0-9_-]") {
            let sealer = Sealer::new([7; 32]);
            let cursor = Cursor { start: None, end: None, position, after_empty: false };
            let mut text = sealer.seal(&cursor, 0);
            let index = index.index(text.len());
            prop_assume!(text[index..=index] != to);
            text.replace_range(index..=index, &to);
            prop_assert_eq!(sealer.open(&text), None);
        }

        #[test]
        fn any_text_is_refused_quietly(text: String) {
            prop_assert_eq!(Sealer::new([7; 32]).open(&text), None);
        }
    }
}
