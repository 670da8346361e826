//! The zip archive of a workbook: the parts from rust_xlsxwriter, with the rows and links of `rows` inserted.
//!
//! A part is compressed in pieces, because its start is known last: it has the widths of the columns.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read as _, Write as _};

use flate2::Crc;
use zip::ZipArchive;

use super::piece::Piece;
use super::rows::EndedSheet;

/// Ends the last piece of a part: an empty block that is marked as the last.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// Two tags, and a piece that replaces the text between them.
type Insertion = (&'static str, &'static str, Piece);

/// Writes `book`, a workbook from rust_xlsxwriter, with these rows in its first sheets. There, the last of its
/// own rows and links are dropped.
pub(super) fn write(book: Vec<u8>, sheets: Vec<EndedSheet>, output: File) -> io::Result<()> {
    let mut insertions: HashMap<String, Vec<Insertion>> = HashMap::new();
    for (number, sheet) in (1..).zip(sheets) {
        let mut pieces = vec![("</row>", "</sheetData>", sheet.rows)];
        if sheet.has_links {
            pieces.push(("<hyperlinks>", "</hyperlinks>", sheet.links));
            let relationships = ("/relationships\">", "</Relationships>", sheet.relationships);
            let name = format!("xl/worksheets/_rels/sheet{number}.xml.rels");
            insertions.insert(name, vec![relationships]);
        }
        insertions.insert(format!("xl/worksheets/sheet{number}.xml"), pieces);
    }
    let mut archive = ZipArchive::new(Cursor::new(book))?;
    let mut package = PackageWriter::new(output);
    for place in 0..archive.len() {
        let mut part = archive.by_index(place)?;
        let mut text = String::new();
        part.read_to_string(&mut text)?;
        let name = part.name()?;
        let insertions = insertions.remove(name.as_ref()).unwrap_or_default();
        package.add(&name, insert(&text, insertions)?)?;
    }
    package.finish()
}

/// Returns the pieces of a part.
fn insert(text: &str, insertions: Vec<Insertion>) -> io::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for (after, before, piece) in insertions {
        let start = rest.find(after).map(|at| at + after.len());
        let place = start.and_then(|start| {
            let length = rest[start..].find(before)?;
            Some((start, start + length))
        });
        let missing = || io::Error::other("the workbook has no place for the rows");
        let (start, end) = place.ok_or_else(missing)?;
        pieces.extend([Piece::of(&rest[..start])?, piece]);
        rest = &rest[end..];
    }
    pieces.push(Piece::of(rest)?);
    Ok(pieces)
}

/// A zip archive that is being written.
struct PackageWriter {
    output: BufWriter<File>,
    /// Bytes written.
    size: u64,
    directory: Vec<u8>,
    parts: u16,
}

impl PackageWriter {
    fn new(output: File) -> Self {
        Self {
            output: BufWriter::with_capacity(64 * 1024, output),
            size: 0,
            directory: Vec::new(),
            parts: 0,
        }
    }

    fn add(&mut self, name: &str, pieces: Vec<Piece>) -> io::Result<()> {
        let mut crc = Crc::new();
        for piece in &pieces {
            crc.combine(&piece.crc);
        }
        let size: u64 = pieces.iter().map(|piece| piece.size).sum();
        let packed_size: u64 = pieces.iter().map(|piece| piece.packed_size).sum();
        let packed_size = packed_size + LAST_BLOCK.len() as u64;
        // Version 2.0, no flags, deflated, 1980-01-01.
        let mut header = vec![20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0];
        header.extend_from_slice(&crc.sum().to_le_bytes());
        header.extend_from_slice(&short(packed_size)?);
        header.extend_from_slice(&short(size)?);
        // The lengths of the name and of further fields.
        header.extend_from_slice(&[u8::try_from(name.len()).unwrap_or(0), 0, 0, 0]);
        // From Unix, version 2.0.
        self.directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        self.directory.extend_from_slice(&header);
        // No comment, first disk, no attributes except that the owner may read and write.
        self.directory
            .extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x81]);
        self.directory.extend_from_slice(&short(self.size)?);
        self.directory.extend_from_slice(name.as_bytes());
        self.parts += 1;
        for bytes in [&b"PK\x03\x04"[..], &header, name.as_bytes()] {
            self.output.write_all(bytes)?;
            self.size += bytes.len() as u64;
        }
        for mut piece in pieces {
            io::copy(&mut piece.content, &mut self.output)?;
        }
        self.output.write_all(&LAST_BLOCK)?;
        self.size += packed_size;
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.output.write_all(&self.directory)?;
        let parts = self.parts.to_le_bytes();
        let directory_size = short(self.directory.len() as u64)?;
        self.output.write_all(b"PK\x05\x06\0\0\0\0")?;
        for bytes in [
            &parts[..],
            &parts,
            &directory_size,
            &short(self.size)?,
            &[0, 0],
        ] {
            self.output.write_all(bytes)?;
        }
        self.output.flush()
    }
}

/// Returns a size or an offset as it is stored. Readers of spreadsheets do not expect more than 4 GiB.
fn short(size: u64) -> io::Result<[u8; 4]> {
    let size = u32::try_from(size);
    let size = size.map_err(|_| io::Error::other("a spreadsheet holds at most 4 GiB"))?;
    Ok(size.to_le_bytes())
}
