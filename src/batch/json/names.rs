//! The names of the columns: what is before a value in the usual order, and which column a name belongs to.

use crate::batch::COLUMNS;

/// The name of a column in quotes, with the colon.
#[derive(Clone, Copy)]
pub(super) struct KnownName {
    words: [u64; NAME_WORDS],
    /// Which bits of the words belong to it.
    mask: [u64; NAME_WORDS],
    pub(super) length: usize,
}

/// Any known name fits in this many words of eight bytes.
const NAME_WORDS: usize = 4;

impl KnownName {
    const fn new(column: usize) -> Self {
        let opening = &OPENINGS[column];
        let (mut words, mut mask) = ([0; NAME_WORDS], [0; NAME_WORDS]);
        let length = opening.length - 1;
        let mut position = 0;
        while position < length {
            let (word, shift) = (position / 8, position % 8 * 8);
            words[word] |= (opening.bytes[position + 1] as u64) << shift;
            mask[word] |= 0xff << shift;
            position += 1;
        }
        Self {
            words,
            mask,
            length,
        }
    }

    /// Returns whether a text that begins with these words begins with the name.
    #[allow(clippy::inline_always, reason = "it is called for each field")]
    #[inline(always)]
    fn begins(&self, words: &[u64; NAME_WORDS]) -> bool {
        let difference = |word: usize| (words[word] ^ self.words[word]) & self.mask[word];
        difference(0) | difference(1) | difference(2) | difference(3) == 0
    }
}

pub(super) const NAMES: &[KnownName; COLUMNS.len()] = {
    let mut names = [KnownName::new(0); COLUMNS.len()];
    let mut column = 0;
    while column < COLUMNS.len() {
        names[column] = KnownName::new(column);
        column += 1;
    }
    &{ names }
};

/// Returns the place of a column in [`BY_NAME`], given its name in quotes.
const fn slot(name: &[u8]) -> usize {
    (name[6] as usize + name[9] as usize) % BY_NAME_SIZE
}

const BY_NAME_SIZE: usize = 64;

/// The columns by their names. At most two have the same place. A place that has fewer is filled with others.
const BY_NAME: [[u8; 2]; BY_NAME_SIZE] = {
    let mut table = [[0; 2]; BY_NAME_SIZE];
    let mut column = 0;
    while column < COLUMNS.len() {
        let [first, second] = &mut table[slot(OPENINGS[column].bytes.split_at(1).1)];
        assert!(*second == 0);
        *second = *first;
        #[allow(clippy::cast_possible_truncation, reason = "there are few columns")]
        {
            *first = column as u8;
        }
        column += 1;
    }
    table
};

/// Returns the column whose name, in quotes and with a colon, is at the start of `text`. `None` if there is none, or it
/// needs a closer look.
#[allow(clippy::inline_always, reason = "it is called for each field")]
#[inline(always)]
pub(super) fn known_name(text: &[u8]) -> Option<u8> {
    let block = text.first_chunk::<{ NAME_WORDS * 8 }>()?;
    let (words, _) = block.as_chunks::<8>();
    let words = [words[0], words[1], words[2], words[3]].map(u64::from_le_bytes);
    let mut columns = BY_NAME[slot(block)].into_iter();
    columns.find(|column| NAMES[usize::from(*column)].begins(&words))
}

/// Returns the column with this name.
pub(super) fn column(name: &[u8]) -> Option<u8> {
    let column = COLUMNS
        .iter()
        .position(|column| column.name.as_bytes() == name)?;
    u8::try_from(column).ok()
}

/// The text before a value: brace or comma, the name in quotes, and the colon.
pub(super) struct Opening<const COLUMN: usize>;

impl<const COLUMN: usize> Opening<COLUMN> {
    pub(super) const LENGTH: usize = COLUMNS[COLUMN].name.len() + 4;
    pub(super) const BYTES: [u8; 64] = {
        let name = COLUMNS[COLUMN].name.as_bytes();
        let mut bytes = [0; 64];
        bytes[0] = if COLUMN == 0 { b'{' } else { b',' };
        bytes[1] = b'"';
        let mut position = 0;
        while position < name.len() {
            bytes[2 + position] = name[position];
            position += 1;
        }
        bytes[2 + position] = b'"';
        bytes[3 + position] = b':';
        bytes
    };
}

/// The text before a value in the usual order: the first `length` bytes.
pub(in crate::batch) struct UsualOpening {
    pub(in crate::batch) bytes: [u8; 64],
    pub(in crate::batch) length: usize,
}

pub(in crate::batch) const OPENINGS: &[UsualOpening; COLUMNS.len()] = {
    macro_rules! openings {
        ($($column:literal)*) => {
            &[$(UsualOpening { bytes: Opening::<$column>::BYTES, length: Opening::<$column>::LENGTH }),*]
        };
    }
    openings!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17)
};
