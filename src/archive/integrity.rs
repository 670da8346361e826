//! Integrity checks: pages, indexes, and columns that match the batches as received.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::database::{Archive, damaged};
use super::schema;
use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType};
use crate::error::{Failure, Kind};
use crate::storage::sqlite::{check_indexes, check_pages, check_table};

impl Archive {
    /// Checks the whole archive: pages, indexes, and that the columns users query match the batches as
    /// received.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        check_pages(&self.db, &self.path)?;
        check_table(&self.db, &self.path)?;
        check_indexes(&self.db, &self.path)?;
        self.check_views()?;
        let failure = |error| self.failure(error);
        let names = COLUMNS.map(|column| column.name).join(", ");
        let sql = format!("SELECT {names}, received, rowid FROM batches WHERE vanished IS NULL");
        let mut rows = self.db.prepare(&sql).map_err(failure)?;
        let mut rows = rows.query([]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            let number: i64 = row.get(COLUMNS.len() + 1).map_err(failure)?;
            let received = row.get_ref(COLUMNS.len()).map_err(failure)?.as_str();
            let received = received.map_err(|_| damaged(&self.path, number))?;
            let batch = Batch::read(received).batch;
            let batch = batch.ok_or_else(|| damaged(&self.path, number))?;
            if let Some(column) = differing(row, &batch).map_err(failure)? {
                let (path, name) = (self.path.display(), COLUMNS[column].name);
                return Err(modified(format!(
                    "row {number} of `{path}`: the column `{name}` differs from the batch as received"
                )));
            }
        }
        Ok(())
    }

    /// Checks that the views show what is in the tables. A user may drop one, but not put something else in its place.
    fn check_views(&self) -> Result<(), Failure> {
        let own = self.query(|_| {
            let new = Connection::open_in_memory()?;
            schema::create(&new)?;
            let mut views =
                new.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'view'")?;
            let views = views.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            views.collect::<rusqlite::Result<Vec<(String, String)>>>()
        })?;
        for (name, sql) in own {
            let others = "SELECT count(*) FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE AND sql IS NOT ?2";
            let others: u64 =
                self.query(|db| db.query_row(others, [&name, &sql], |row| row.get(0)))?;
            if others > 0 {
                let path = self.path.display();
                return Err(modified(format!(
                    "the view `{name}` of `{path}` is not that of an archive"
                )));
            }
        }
        Ok(())
    }
}

fn modified(message: String) -> Failure {
    Failure::new(Kind::Protocol, message)
        .hint("the archive was modified; `trayscan sync` to a new file fetches all batches again")
}

/// Returns the first column of a row that differs from `batch`.
fn differing(row: &Row<'_>, batch: &Batch) -> rusqlite::Result<Option<usize>> {
    for (index, column) in COLUMNS.iter().enumerate() {
        let expected = match index {
            BATCH_ID => batch.plain(index),
            _ => batch.typed(index),
        };
        let expected = expected.as_deref();
        let same = match (row.get_ref(index)?, column.kind) {
            (ValueRef::Null, FieldType::Integer) => {
                expected.is_none_or(|text| text.parse::<i64>().is_err())
            }
            (ValueRef::Null, _) => expected.is_none(),
            (ValueRef::Text(text), FieldType::Text | FieldType::Date) => {
                expected.is_some_and(|expected| expected.as_bytes() == text)
            }
            (ValueRef::Integer(number), FieldType::Integer) => {
                expected.and_then(|text| text.parse().ok()) == Some(number)
            }
            (ValueRef::Integer(number), FieldType::Boolean) => match number {
                0 => expected == Some("false"),
                1 => expected == Some("true"),
                _ => false,
            },
            (ValueRef::Real(number), FieldType::Decimal) => {
                expected.and_then(|text| text.parse::<f64>().ok()) == Some(number)
            }
            _ => false,
        };
        if !same {
            return Ok(Some(index));
        }
    }
    Ok(None)
}
