//! Pieces of the parts of a workbook, each compressed on its own.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::path::Path;

use flate2::Crc;

use crate::storage::Encoder;

/// On rows, the default level takes half as long again, for the same size.
const LEVEL: flate2::Compression = flate2::Compression::new(5);

/// A piece that is being written. Large pieces are compressed on a thread of their own.
pub(super) struct PieceWriter<W> {
    encoder: Encoder,
    output: W,
    crc: Crc,
    size: u64,
}

/// A compressed piece.
pub(super) struct Piece {
    pub(super) content: Box<dyn Read + Send>,
    pub(super) packed_size: u64,
    pub(super) crc: Crc,
    pub(super) size: u64,
}

impl<W: Read + Write + Seek + Send + 'static> PieceWriter<W> {
    fn new(output: W) -> Self {
        Self {
            encoder: Encoder::deflate(LEVEL),
            output,
            crc: Crc::new(),
            size: 0,
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        self.size += bytes.len() as u64;
        self.encoder.write(bytes, &mut self.output)
    }

    pub(super) fn end(mut self) -> io::Result<Piece> {
        self.encoder.flush(&mut self.output)?;
        let packed_size = self.output.stream_position()?;
        self.output.rewind()?;
        Ok(Piece {
            packed_size,
            content: Box::new(self.output),
            crc: self.crc,
            size: self.size,
        })
    }
}

impl PieceWriter<Cursor<Vec<u8>>> {
    pub(super) fn in_memory() -> Self {
        Self::new(Cursor::default())
    }
}

impl PieceWriter<File> {
    /// Compresses into an unnamed temporary file.
    pub(super) fn in_file(folder: &Path) -> io::Result<Self> {
        Ok(Self::new(tempfile::tempfile_in(folder)?))
    }
}

impl Piece {
    pub(super) fn of(text: &str) -> io::Result<Self> {
        let mut piece = PieceWriter::in_memory();
        piece.write_all(text.as_bytes())?;
        piece.end()
    }
}
