//! The names of the columns: what is before a value in the usual order, and which column a name belongs to.

use super::layout::is_equal;
use crate::batch::COLUMNS;

/// The name of a column in quotes, with the colon.
#[derive(Clone, Copy)]
pub(super) struct KnownName {
    bytes: [u8; LONGEST],
    /// Which bits of the bytes belong to it.
    mask: [u8; LONGEST],
    pub(super) length: usize,
}

/// Any known name fits in this many bytes.
const LONGEST: usize = 32;

impl KnownName {
    const fn new(column: usize) -> Self {
        let opening = &OPENINGS[column];
        let (mut bytes, mut mask) = ([0; LONGEST], [0; LONGEST]);
        let length = opening.length - 1;
        let mut position = 0;
        while position < length {
            bytes[position] = opening.bytes[position + 1];
            mask[position] = u8::MAX;
            position += 1;
        }
        Self {
            bytes,
            mask,
            length,
        }
    }

    /// Returns whether a text that begins with `block` begins with the name.
    #[allow(clippy::inline_always, reason = "it is called for each field")]
    #[inline(always)]
    fn begins(&self, block: &[u8; LONGEST]) -> bool {
        is_equal(block, &self.bytes, &self.mask)
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
    let block = text.first_chunk::<LONGEST>()?;
    let [first, second] = BY_NAME[slot(block)];
    if NAMES[usize::from(first)].begins(block) {
        return Some(first);
    }
    NAMES[usize::from(second)].begins(block).then_some(second)
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
