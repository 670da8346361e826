//! Rows that wait in a temporary file without a name until all of them are there.

use std::io::{self, Read as _, Seek as _, Write as _};

use tempfile::SpooledTempFile;

use super::encode::RowChunk;
use crate::error::{Failure, Kind};

/// Bytes that are kept in memory before there is a file.
const IN_MEMORY: usize = 4 << 20;

/// Pieces that wait.
pub(super) struct RowSpool {
    file: SpooledTempFile,
    pieces: u64,
    /// Rows in them.
    pub(super) rows: u64,
}

impl RowSpool {
    pub(super) fn new() -> Self {
        Self {
            file: SpooledTempFile::new(IN_MEMORY),
            pieces: 0,
            rows: 0,
        }
    }

    pub(super) fn add(&mut self, piece: &RowChunk) -> Result<(), Failure> {
        self.append(piece).map_err(unkept)?;
        self.pieces += 1;
        self.rows += u64::from(piece.rows);
        Ok(())
    }

    fn append(&mut self, piece: &RowChunk) -> io::Result<()> {
        self.file.write_all(&piece.rows.to_be_bytes())?;
        for cells in &piece.columns {
            let length = cells.len() as u64;
            self.file.write_all(&length.to_be_bytes())?;
            self.file.write_all(cells)?;
        }
        Ok(())
    }

    /// Goes through all pieces, of so many columns each, from the first.
    pub(super) fn read(&mut self, columns: usize) -> Result<SpooledRows<'_>, Failure> {
        self.file.rewind().map_err(unread)?;
        Ok(SpooledRows {
            columns,
            left: self.pieces,
            spool: self,
        })
    }
}

/// Pieces that come back.
pub(super) struct SpooledRows<'a> {
    spool: &'a mut RowSpool,
    columns: usize,
    left: u64,
}

impl SpooledRows<'_> {
    /// Returns the next piece; nothing after the last.
    pub(super) fn next(&mut self) -> Result<Option<RowChunk>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.take().map(Some).map_err(unread)
    }

    fn take(&mut self) -> io::Result<RowChunk> {
        let file = &mut self.spool.file;
        let mut rows = [0; 4];
        file.read_exact(&mut rows)?;
        let mut columns = Vec::with_capacity(self.columns);
        for _ in 0..self.columns {
            let mut length = [0; 8];
            file.read_exact(&mut length)?;
            let length = usize::try_from(u64::from_be_bytes(length)).map_err(io::Error::other)?;
            let mut cells = vec![0; length];
            file.read_exact(&mut cells)?;
            columns.push(cells);
        }
        Ok(RowChunk {
            rows: u32::from_be_bytes(rows),
            columns,
        })
    }
}

fn unkept(error: io::Error) -> Failure {
    let folder = std::env::temp_dir();
    Failure::new(
        Kind::Output,
        format!(
            "cannot keep batches in {} until all are there for PostgreSQL",
            folder.display()
        ),
    )
    .caused_by(error)
    .hint("free some space there, or name another folder with TMPDIR")
}

fn unread(error: io::Error) -> Failure {
    Failure::new(
        Kind::Output,
        "cannot read back the batches that were kept for PostgreSQL",
    )
    .caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_as_often_as_they_are_asked_for() {
        let mut spool = RowSpool::new();
        let pieces: Vec<RowChunk> = (1..4)
            .map(|rows| RowChunk {
                rows,
                columns: vec![vec![7; IN_MEMORY / 2], Vec::new()],
            })
            .collect();
        for piece in &pieces {
            spool.add(piece).expect("kept");
        }
        assert_eq!(spool.rows, 6);
        for _ in 0..2 {
            let mut back = spool.read(2).expect("read");
            for piece in &pieces {
                assert_eq!(back.next().expect("read").as_ref(), Some(piece));
            }
            assert_eq!(back.next().expect("read"), None);
        }
    }
}
