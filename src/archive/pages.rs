//! Batches that go out: page by page, as they came in.

use std::ops::Range as Span;
use std::sync::Arc;

use rusqlite::Statement;

use super::{Archive, damaged};
use crate::batch::{Batch, Moment};
use crate::dates::Range;
use crate::error::Failure;
use crate::fetch::Page;

/// Bytes on a page, about.
const PAGE: usize = 1 << 19;

/// Reads the batches of an archive that the service still has, in the order in which they first came.
pub(crate) struct ArchivePages<'a> {
    archive: &'a Archive,
    statement: Statement<'a>,
    range: Range,
    /// The row that was read last.
    row: i64,
}

impl Archive {
    /// Prepares to read the batches created within `range`.
    pub(crate) fn pages(&self, range: Range) -> Result<ArchivePages<'_>, Failure> {
        let sql = "SELECT rowid, received FROM batches WHERE rowid > ?1 AND vanished IS NULL ORDER BY rowid";
        let statement = self.db.prepare(sql).map_err(|error| self.failure(error))?;
        Ok(ArchivePages {
            archive: self,
            statement,
            range,
            row: 0,
        })
    }
}

impl ArchivePages<'_> {
    /// Returns the next batches; nothing after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Page>, Failure> {
        let mut texts = String::with_capacity(PAGE + PAGE / 4);
        let rows = self.read(&mut texts);
        let rows = rows.map_err(|error| self.archive.failure(error))?;
        if rows.is_empty() {
            return Ok(None);
        }
        let texts = Arc::new(texts);
        let mut page = Page::default();
        for (row, span) in rows {
            let batch = match Batch::scan(&texts, span.start) {
                Some((batch, length)) if length == span.len() => Some(batch),
                _ => Batch::read(&texts[span]).batch,
            };
            let batch = batch.ok_or_else(|| damaged(&self.archive.path, row))?;
            if self.holds(&batch) {
                page.push(batch);
            }
        }
        Ok(Some(page))
    }

    /// Reads the next rows, and puts one behind another what they hold.
    fn read(&mut self, texts: &mut String) -> rusqlite::Result<Vec<(i64, Span<usize>)>> {
        let mut found = Vec::new();
        let mut rows = self.statement.query([self.row])?;
        while texts.len() < PAGE
            && let Some(row) = rows.next()?
        {
            self.row = row.get(0)?;
            let received = row.get_ref(1)?.as_str()?;
            found.push((self.row, texts.len()..texts.len() + received.len()));
            texts.push_str(received);
        }
        Ok(found)
    }

    /// Tells whether `batch` was created within the range: in an archive there is no other date.
    fn holds(&self, batch: &Batch) -> bool {
        let Range { start, end, .. } = self.range;
        if start.is_none() && end.is_none() {
            return true;
        }
        batch.created().is_some_and(|created| {
            start.is_none_or(|start| created >= Moment::at(start))
                && end.is_none_or(|end| created <= Moment::at(end))
        })
    }
}
