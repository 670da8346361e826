//! Checks of a whole database: its pages and indexes, and that its tables hold what they seem to hold.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::{Archive, damaged};
use crate::batch::{BATCH_ID, Batch, COLUMNS, Kind};
use crate::error::{self, Failure};

/// Checks every page and every index, and stops at the first problem.
pub(super) fn check_pages(db: &Connection, path: &Path) -> Result<(), Failure> {
    // `quick_check` would not compare the indexes with the rows.
    let found = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    let found: String = found.map_err(|error| {
        if super::tells_damage(&error) {
            damage(path, error.into())
        } else {
            super::failure(path, error)
        }
    })?;
    match found.as_str() {
        "ok" => Ok(()),
        _ => Err(damage(path, anyhow::Error::msg(found))),
    }
}

/// Refuses a `batches` that is no plain table: a view or a virtual table can show anything.
pub(super) fn check_table(db: &Connection, path: &Path) -> Result<(), Failure> {
    let sql = "SELECT type, coalesce(rootpage, 0) FROM sqlite_schema
        WHERE name = 'batches' COLLATE NOCASE AND type IN ('table', 'view')";
    let found: rusqlite::Result<Option<(String, i64)>> = db
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional();
    let is_a = match found {
        Ok(Some((kind, _))) if kind == "view" => "a view",
        Ok(Some((_, 0))) => "a virtual table",
        Ok(_) => return Ok(()),
        Err(error) if super::tells_damage(&error) => return Err(damage(path, error.into())),
        Err(error) => return Err(super::failure(path, error)),
    };
    let message = format!(
        "`{}`: `batches` is {is_a}, not a plain table",
        path.display()
    );
    Err(Failure::new(error::Kind::Protocol, message)
        .hint("somebody has changed the database; export it again"))
}

pub(super) fn damage(path: &Path, why: anyhow::Error) -> Failure {
    let message = format!("`{}` is damaged or cut short", path.display());
    Failure::new(error::Kind::Protocol, message)
        .caused_by(why)
        .hint("copy or export it again")
}

impl Archive {
    /// Checks the whole archive: pages, indexes, and that the columns which people query say the same as
    /// the batches as received.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        check_pages(&self.db, &self.path)?;
        check_table(&self.db, &self.path)?;
        let failure = |error| self.failure(error);
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        let sql = format!(
            "SELECT {}, received, rowid FROM batches WHERE vanished IS NULL",
            names.join(", ")
        );
        let mut rows = self.db.prepare(&sql).map_err(failure)?;
        let mut rows = rows.query([]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            let number: i64 = row.get(COLUMNS.len() + 1).map_err(failure)?;
            let received = row.get_ref(COLUMNS.len()).map_err(failure)?.as_str();
            let received = received.map_err(|_| damaged(&self.path, number))?;
            let batch = Batch::read(received).batch;
            let batch = batch.ok_or_else(|| damaged(&self.path, number))?;
            if let Some(column) = differing(row, &batch).map_err(failure)? {
                return Err(self.differs(number, column));
            }
        }
        Ok(())
    }

    fn differs(&self, row: i64, column: usize) -> Failure {
        let message = format!(
            "row {row} of `{}`: the column `{}` differs from the batch as received",
            self.path.display(),
            COLUMNS[column].name
        );
        Failure::new(error::Kind::Protocol, message)
            .hint("somebody has changed the archive; `trayscan sync` to a new file fetches all batches again")
    }
}

/// Returns the first column of a row that does not hold what `batch` says.
fn differing(row: &Row<'_>, batch: &Batch) -> rusqlite::Result<Option<usize>> {
    for (place, column) in COLUMNS.iter().enumerate() {
        let expected = match place {
            BATCH_ID => batch.plain(place),
            _ => batch.typed(place),
        };
        let expected = expected.as_deref();
        let same = match (row.get_ref(place)?, column.kind) {
            (ValueRef::Null, Kind::Integer) => {
                expected.is_none_or(|text| text.parse::<i64>().is_err())
            }
            (ValueRef::Null, _) => expected.is_none(),
            (ValueRef::Text(text), Kind::Text | Kind::Date) => {
                expected.is_some_and(|expected| expected.as_bytes() == text)
            }
            (ValueRef::Integer(number), Kind::Integer) => {
                expected.and_then(|text| text.parse().ok()) == Some(number)
            }
            (ValueRef::Integer(number), Kind::Boolean) => match number {
                0 => expected == Some("false"),
                1 => expected == Some("true"),
                _ => false,
            },
            (ValueRef::Real(number), Kind::Decimal) => {
                expected.and_then(|text| text.parse::<f64>().ok()) == Some(number)
            }
            _ => false,
        };
        if !same {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
