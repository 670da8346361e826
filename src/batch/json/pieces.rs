//! A text that is put together from many short pieces.

/// Bytes that are copied at a time. Most pieces are shorter.
pub(super) const BLOCK: usize = 32;

/// A text that is put together from many short pieces.
#[derive(Default)]
pub(crate) struct Pieces {
    /// Only the first `length` bytes belong to the text.
    bytes: Vec<u8>,
    length: usize,
}

impl Pieces {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Makes room for this many bytes.
    pub(in crate::batch) fn reserve(&mut self, length: usize) {
        let needed = self.length + length + BLOCK;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
    }

    /// Appends the first `length` bytes of `source`. A block of it is copied at once, if it has one.
    #[allow(
        clippy::inline_always,
        reason = "it is short, and called for each piece"
    )]
    #[inline(always)]
    pub(crate) fn push(&mut self, source: &[u8], length: usize) {
        if length <= BLOCK
            && let Some(from) = source.first_chunk::<BLOCK>()
            && let Some(to) = self.bytes.get_mut(self.length..self.length + BLOCK)
        {
            to.copy_from_slice(from);
            self.length += length;
        } else {
            self.push_any(&source[..length]);
        }
    }

    /// Appends all of `source`, and `end` after it.
    pub(crate) fn push_with_end(&mut self, source: &[u8], end: u8) {
        self.append(source);
        // There is room for a block after it.
        self.bytes[self.length] = end;
        self.length += 1;
    }

    /// Returns the free memory after the text. What is written there belongs to the text after [`Pieces::extend`].
    pub(crate) fn free(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.length..).unwrap_or_default()
    }

    /// Adds the first `length` bytes of the free memory to the text.
    pub(crate) fn extend(&mut self, length: usize) {
        self.length += length;
    }

    /// Replaces the byte at `position`.
    pub(crate) fn set(&mut self, position: usize, byte: u8) {
        self.bytes[position] = byte;
    }

    /// Appends all of `source`.
    #[inline(never)]
    pub(crate) fn push_any(&mut self, source: &[u8]) {
        self.append(source);
    }

    #[inline]
    fn append(&mut self, source: &[u8]) {
        let end = self.length + source.len();
        if end + BLOCK > self.bytes.len() {
            self.bytes.resize(end + end / 2 + BLOCK, 0);
        }
        self.bytes[self.length..end].copy_from_slice(source);
        self.length = end;
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Takes the text.
    pub(in crate::batch) fn take(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(std::mem::take(&mut self.length));
        if bytes.capacity() > 2 * bytes.len() {
            bytes.shrink_to_fit();
        }
        String::from_utf8(bytes).expect("the pieces are text")
    }
}
