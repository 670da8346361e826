//! The position of an archive in its history, and the changes since a position.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension as _, Row};
use serde::{Deserialize, Serialize};

use super::database::Archive;
use crate::batch::Batch;
use crate::batch::digest::hexadecimal;
use crate::error::Failure;

/// A state of an archive. Rows are never removed, and each change is recorded, so two numbers define a state.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Position {
    /// The last row of `batches`.
    rows: i64,
    /// The last row of `changes`.
    changes: i64,
    /// A hash of both rows, to detect another archive, or a copy that has diverged.
    check: String,
}

/// The change of one batch since a position.
pub(crate) struct Difference {
    /// The batch at that position, if the service had it then.
    pub(crate) before: Option<Batch>,
    /// The batch now, if the service has it.
    pub(crate) after: Option<Batch>,
}

/// The first change of each batch since a position, with the current version of the batch.
const CHANGED: &str = "
SELECT changes.kind, changes.received, batches.received, batches.vanished IS NULL, min(changes.change_id)
FROM changes JOIN batches USING (batch_id)
WHERE changes.change_id > ?1 AND batches.rowid <= ?2
GROUP BY batches.rowid
ORDER BY batches.rowid";

const ADDED: &str =
    "SELECT received FROM batches WHERE rowid > ?1 AND vanished IS NULL ORDER BY rowid";

impl Archive {
    /// Returns the current position.
    pub(crate) fn position(&self) -> Result<Position, Failure> {
        let rows = self.value("SELECT coalesce(max(rowid), 0) FROM batches", [])?;
        let changes = self.value("SELECT coalesce(max(rowid), 0) FROM changes", [])?;
        Ok(Position {
            rows,
            changes,
            check: self.position_check(rows, changes)?,
        })
    }

    /// Returns whether this archive was at `position` before.
    pub(crate) fn has_passed(&self, position: &Position) -> Result<bool, Failure> {
        let Position { rows, changes, .. } = position;
        Ok(self.position_check(*rows, *changes)? == position.check)
    }

    fn position_check(&self, rows: i64, changes: i64) -> Result<String, Failure> {
        let mut hash = blake3::Hasher::new_derive_key("trayscan archive position");
        for (sql, row) in [
            (
                "SELECT batch_id, first_seen FROM batches WHERE rowid = ?1",
                rows,
            ),
            (
                "SELECT batch_id, noticed FROM changes WHERE change_id = ?1",
                changes,
            ),
        ] {
            let texts = |row: &Row<'_>| Ok([row.get::<_, String>(0)?, row.get(1)?]);
            let found = self.query(|db| db.query_row(sql, [row], texts).optional())?;
            for text in found.iter().flatten() {
                hash.update(&(text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
            hash.update(&[u8::from(found.is_some())]);
        }
        Ok(hexadecimal(&hash.finalize().as_bytes()[..16]))
    }

    /// Passes each batch that was added, changed, vanished or returned since `position` to `take`.
    pub(crate) fn differences(
        &self,
        position: &Position,
        mut take: impl FnMut(Difference),
    ) -> Result<(), Failure> {
        let read = |received: &str| Batch::read(received).batch;
        self.query(|db| {
            let mut statement = db.prepare(CHANGED)?;
            let mut rows = statement.query([position.changes, position.rows])?;
            while let Some(row) = rows.next()? {
                let was_present = row.get_ref(0)?.as_str()? != "returned";
                let is_present: bool = row.get(3)?;
                let [before, after] = [row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?];
                take(Difference {
                    before: read(before).filter(|_| was_present),
                    after: read(after).filter(|_| is_present),
                });
            }
            let mut statement = db.prepare(ADDED)?;
            let mut rows = statement.query([position.rows])?;
            while let Some(row) = rows.next()? {
                take(Difference {
                    before: None,
                    after: read(row.get_ref(0)?.as_str()?),
                });
            }
            Ok(())
        })
    }

    /// Returns the rows of batches that the service still has and that were created in one of `spans`: dates
    /// as text, from the first, up to but excluding the second.
    pub(crate) fn rows_created(&self, spans: &BTreeSet<[String; 2]>) -> Result<Vec<i64>, Failure> {
        self.query(|db| {
            let sql = "SELECT rowid FROM batches
                WHERE batch_creation_date >= ?1 AND batch_creation_date < ?2 AND vanished IS NULL";
            let mut statement = db.prepare(sql)?;
            let mut found = BTreeSet::new();
            for [from, to] in spans {
                for row in statement.query_map([from, to], |row| row.get(0))? {
                    found.insert(row?);
                }
            }
            Ok(found.into_iter().collect())
        })
    }
}
