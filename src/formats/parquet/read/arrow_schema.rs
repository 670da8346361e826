//! Reads the Arrow schema in the metadata of a file, a flatbuffer: tables whose fields have the numbers of `Message.fbs`
//! and `Schema.fbs` of Arrow.

/// What starts a message, and the type of one with a schema.
const START: [u8; 4] = [0xff; 4];
const SCHEMA: u8 = 1;

/// Reads the tables of the fields of a schema, and of its metadata; `None` if it is not a valid one.
pub(super) fn read(bytes: &[u8]) -> Option<[Vec<FlatTable<'_>>; 2]> {
    // After the start, which old writers left out, is the length.
    let bytes = bytes.strip_prefix(&START).unwrap_or(bytes).get(4..)?;
    let at = follow(bytes, 0)?;
    let message = FlatTable { bytes, at };
    let is_schema = message.byte(1) == Some(SCHEMA);
    let schema = message.table(2).filter(|_| is_schema)?;
    Some([schema.tables(1)?, schema.tables(2)?])
}

/// A table, whose position refers to a list of the positions of its fields.
#[derive(Clone, Copy)]
pub(super) struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> FlatTable<'a> {
    /// Returns the position of a field; `None` if it is absent.
    fn field(&self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(chunk(self.bytes, self.at)?);
        let list = i64::try_from(self.at).ok()? - i64::from(back);
        let list = usize::try_from(list).ok()?;
        let length = u16::from_le_bytes(chunk(self.bytes, list)?);
        // Before the positions are two lengths.
        let place = 4 + 2 * number;
        if place >= length.into() {
            return None;
        }
        let offset = u16::from_le_bytes(chunk(self.bytes, list + place)?);
        (offset > 0).then(|| self.at + usize::from(offset))
    }

    pub(super) fn byte(&self, number: usize) -> Option<u8> {
        self.bytes.get(self.field(number)?).copied()
    }

    fn table(&self, number: usize) -> Option<Self> {
        let at = follow(self.bytes, self.field(number)?)?;
        Some(Self { at, ..*self })
    }

    /// Returns the tables in a list; empty if it is absent, `None` if it is invalid.
    pub(super) fn tables(&self, number: usize) -> Option<Vec<Self>> {
        let Some(field) = self.field(number) else {
            return Some(Vec::new());
        };
        let list = follow(self.bytes, field)?;
        let count = length(self.bytes, list)?;
        let places = (0..count).map(|place| list + 4 + 4 * place);
        places
            .map(|place| {
                let at = follow(self.bytes, place)?;
                Some(Self { at, ..*self })
            })
            .collect()
    }

    pub(super) fn text(&self, number: usize) -> Option<&'a [u8]> {
        let at = follow(self.bytes, self.field(number)?)?;
        let length = length(self.bytes, at)?;
        self.bytes.get(at + 4..)?.get(..length)
    }
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn length(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(chunk(bytes, at)?)).ok()
}

/// Returns the position that the offset at `at` refers to.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(length(bytes, at)?)
}
