//! Reads batches from an archive, page by page, in the order they were received.

use std::ops::Range as Span;
use std::sync::Arc;

use rusqlite::{Row, Statement};

use super::database::{Archive, damaged};
use super::schema;
use crate::batch::Page;
use crate::batch::dedup::HashKeys;
use crate::batch::json::Shape;
use crate::batch::json::split::{Item, Splitter};
use crate::batch::range::{Range, written};
use crate::batch::{Batch, Timestamp, whole_second};
use crate::error::{Failure, Kind};
use crate::fetch::DataIssues;
use crate::secret;

/// The approximate size of a page, in bytes.
const PAGE: usize = 1 << 19;
/// Rows are looked up one by one if they are at most one in this many.
const MANY: usize = 8;

/// Reads the batches of an archive that the service still has, in the order they were first received.
pub(crate) struct ArchivePages<'a> {
    archive: &'a Archive,
    statement: Statement<'a>,
    range: Range,
    /// Skip batches that break the interface.
    lenient: bool,
    findings: DataIssues,
    keys: Arc<HashKeys>,
    /// The last row read, and the number of rows read.
    row: i64,
    count: u64,
    /// The rows left to read; `None` for all.
    rows: Option<std::vec::IntoIter<i64>>,
}

impl Archive {
    /// Prepares to read the batches created within `range`.
    pub(crate) fn pages(&self, range: Range, lenient: bool) -> Result<ArchivePages<'_>, Failure> {
        let rows = self.query(|_| self.few_rows(&range))?;
        self.pages_of(rows, range, lenient)
    }

    /// Returns the second in which the newest batch was created.
    pub(crate) fn newest_second(&self) -> Result<Option<i64>, Failure> {
        let sql = "SELECT (SELECT batch_creation_date FROM batches
            WHERE batch_creation_date IS NOT NULL AND vanished IS NULL
            ORDER BY batch_creation_date DESC LIMIT 1)";
        let date: Option<String> = self.value(sql, [])?;
        Ok(date.and_then(|date| whole_second(date.get(..19)?)))
    }

    /// Finds the rows of batches created within `range`, or without a valid date, by the index. `None` if they are a
    /// large part of the archive, because reading all of it is faster then. May return a few rows outside the range.
    fn few_rows(&self, range: &Range) -> rusqlite::Result<Option<Vec<i64>>> {
        if range.start.is_none() && range.end.is_none() || !schema::has_date_index(&self.db)? {
            return Ok(None);
        }
        // A leap second is written before the second that it is read as.
        let bound = |second: Option<i64>, margin: i64| {
            let text = written(second?.checked_add(margin)?);
            let text = text.strip_suffix('Z').filter(|text| text.len() == 19);
            text.map(str::to_owned)
        };
        let start = bound(range.start, -2).unwrap_or_default();
        let end = bound(range.end, 2).unwrap_or_else(|| "~".to_owned());
        let sql = "SELECT max(rowid) FROM batches";
        let all: Option<usize> = self.db.query_row(sql, [], |row| row.get(0))?;
        let most = all.unwrap_or_default() / MANY;
        let sql = "SELECT rowid FROM batches WHERE batch_creation_date IS NULL
            UNION ALL
            SELECT rowid FROM batches WHERE batch_creation_date >= ?1 AND batch_creation_date < ?2
            LIMIT ?3";
        let mut found = self.db.prepare(sql)?;
        let found = found.query_map((start, end, most + 1), |row| row.get(0))?;
        let mut rows: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
        rows.sort_unstable();
        Ok((rows.len() <= most).then_some(rows))
    }

    /// Prepares to read these rows, in this order, if they were created within `range`. `None` reads all rows.
    pub(crate) fn pages_of(
        &self,
        rows: Option<Vec<i64>>,
        range: Range,
        lenient: bool,
    ) -> Result<ArchivePages<'_>, Failure> {
        let which = match rows {
            Some(_) => "rowid = ?1 AND vanished IS NULL",
            None => "rowid > ?1 AND vanished IS NULL ORDER BY rowid",
        };
        let sql = format!("SELECT rowid, received FROM batches WHERE {which}");
        Ok(ArchivePages {
            archive: self,
            statement: self.query(|db| db.prepare(&sql))?,
            range,
            lenient,
            findings: DataIssues::default(),
            keys: Arc::new(HashKeys::new(fastrand::u64(..))),
            row: 0,
            count: 0,
            rows: rows.map(Vec::into_iter),
        })
    }
}

impl ArchivePages<'_> {
    /// Returns the next page; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Page>, Failure> {
        let mut texts = String::with_capacity(PAGE + PAGE / 4);
        let rows = self.read(&mut texts)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let texts = Arc::new(texts);
        let mut page = Page::new(&self.keys);
        for (row, span) in rows {
            let batch = match Batch::scan(&texts, span.start) {
                Some((batch, length)) if length == span.len() => {
                    self.findings.absent |= batch.absent();
                    Some(batch)
                }
                _ => self.unusual(row, &texts[span])?,
            };
            if let Some(batch) = batch.filter(|batch| self.range.holds_creation(batch)) {
                page.push(batch);
            }
        }
        Ok(Some(page))
    }

    /// Reads the next rows, and appends their content to `texts`.
    fn read(&mut self, texts: &mut String) -> Result<Vec<(i64, Span<usize>)>, Failure> {
        let archive = self.archive;
        let failure = |error| archive.failure(error);
        let mut found = Vec::new();
        let mut take = |row: &Row<'_>, texts: &mut String| -> Result<i64, Failure> {
            let number = row.get(0).map_err(failure)?;
            let received = row.get_ref(1).map_err(failure)?.as_str();
            let received = received.map_err(|_| damaged(&archive.path, number))?;
            found.push((number, texts.len()..texts.len() + received.len()));
            texts.push_str(received);
            Ok(number)
        };
        if let Some(rows) = &mut self.rows {
            while texts.len() < PAGE
                && let Some(number) = rows.next()
            {
                let mut rows = self.statement.query([number]).map_err(failure)?;
                if let Some(row) = rows.next().map_err(failure)? {
                    take(row, texts)?;
                }
            }
            return Ok(found);
        }
        let mut rows = self.statement.query([self.row]).map_err(failure)?;
        while texts.len() < PAGE
            && let Some(row) = rows.next().map_err(failure)?
        {
            let number = take(row, texts)?;
            if number <= self.row {
                return Err(archive.corrupt());
            }
            self.row = number;
            self.count += 1;
        }
        // The count is from an index. SQLite does not notice that a page of the table has other rows.
        if found.is_empty() && self.count != archive.count()?.0 {
            return Err(archive.corrupt());
        }
        Ok(found)
    }

    /// Reads a batch with a flaw or a rare spelling; `None` if it is skipped.
    fn unusual(&mut self, row: i64, received: &str) -> Result<Option<Batch>, Failure> {
        let mut found = Vec::new();
        let mut splitter = Splitter::new(Shape::Flat);
        let text = Arc::new(format!("[{received}]"));
        let split = splitter.feed(&text, &mut |object| {
            found.push(match object {
                Item::Batch(batch) => Batch::read(batch.text()),
                Item::Text(text) => Batch::read(text),
            });
            Ok(())
        });
        let split = split.and_then(|()| splitter.finish());
        let (Ok(_), [read]) = (split, &mut found[..]) else {
            return Err(damaged(&self.archive.path, row));
        };
        self.findings.absent |= read.absent;
        let batch = read.batch.take();
        let Some(flaw) = read.flaws.first() else {
            return Ok(batch);
        };
        let name = batch.as_ref().map_or_else(String::new, |batch| {
            format!(" (`{}`)", secret::brief(&batch.id()))
        });
        let why = format!("row {row}{name}: {}", secret::brief(&flaw.to_string()));
        if !self.lenient {
            let path = self.archive.path.display();
            let message = format!("`{path}` has an invalid batch, kept by `sync --lenient`: {why}");
            return Err(Failure::new(Kind::Protocol, message).hint(
                "add `--lenient`, which keeps such batches, except those without a valid `batch_id`",
            ));
        }
        self.findings.flawed += 1;
        self.findings.skipped += u64::from(batch.is_none());
        self.findings.example.get_or_insert(why);
        Ok(batch)
    }

    /// Returns the problems found in the batches so far.
    pub(crate) fn findings(&self) -> DataIssues {
        self.findings.clone()
    }
}

impl Range {
    /// Returns whether `batch` was created within the range: an archive has no other date. One without a valid date may
    /// belong to any range.
    pub(crate) fn holds_creation(&self, batch: &Batch) -> bool {
        let Self { start, end, .. } = *self;
        if start.is_none() && end.is_none() {
            return true;
        }
        batch.created().is_none_or(|created| {
            start.is_none_or(|start| created >= Timestamp::at(start))
                && end.is_none_or(|end| created <= Timestamp::at(end))
        })
    }
}
