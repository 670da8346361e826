//! The history of batches: added, changed field by field, vanished, returned.

use std::collections::HashMap;

use rusqlite::Row;

use super::database::Archive;
use crate::batch::{Batch, COLUMNS, few_escapes, unquote};
use crate::error::Failure;

/// A change that a run detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchiveChange {
    pub(crate) noticed: String,
    /// `added`, `changed`, `vanished` or `returned`.
    pub(crate) kind: String,
    pub(crate) batch_id: String,
    pub(crate) batch_name: Option<String>,
    /// One entry per changed field; empty if the batch changed as a whole.
    pub(crate) fields: Vec<FieldChange>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldChange {
    pub(crate) field: String,
    /// Plain text; `None` if null or absent.
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

/// All changes, oldest first.
///
/// A change stores the old version. The new version is the old version of the next change of the same batch,
/// or else the current version.
const SQL: &str = "
SELECT noticed, kind, batch_id, batch_name, old, new FROM (
    SELECT first_seen AS noticed, 'added' AS kind, batch_id, batch_name, NULL AS old, NULL AS new, 0 AS number
    FROM batches
    WHERE last_changed >= ?1 AND first_seen >= ?1
    UNION ALL
    SELECT changes.noticed, changes.kind, changes.batch_id, batches.batch_name, changes.received,
        coalesce(
            (SELECT later.received FROM changes AS later
             WHERE later.batch_id = changes.batch_id AND later.change_id > changes.change_id
             ORDER BY later.change_id LIMIT 1),
            batches.received
        ), changes.change_id
    FROM changes JOIN batches USING (batch_id)
    WHERE changes.noticed >= ?1
) ORDER BY noticed, number, batch_id";

impl Archive {
    /// Passes each change detected at `since` or later to `take`, oldest first.
    pub(crate) fn each_change(
        &self,
        since: &str,
        mut take: impl FnMut(ArchiveChange) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let failure = |error| self.failure(error);
        let mut statement = self.db.prepare(SQL).map_err(failure)?;
        let mut rows = statement.query([since]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            take(read(row).map_err(failure)?)?;
        }
        Ok(())
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ArchiveChange> {
    let kind: String = row.get(1)?;
    let fields = if kind == "changed" {
        let (old, new): (String, String) = (row.get(4)?, row.get(5)?);
        differences(&old, &new)
    } else {
        Vec::new()
    };
    Ok(ArchiveChange {
        noticed: row.get(0)?,
        kind,
        batch_id: row.get(2)?,
        batch_name: row.get(3)?,
        fields,
    })
}

/// Compares two versions of a batch field by field, starting with the fields of the interface.
fn differences(old: &str, new: &str) -> Vec<FieldChange> {
    let (Some(old), Some(new)) = (Batch::read(old).batch, Batch::read(new).batch) else {
        return Vec::new();
    };
    let mut fields: Vec<FieldChange> = Vec::new();
    let mut compare = |field: &str, old: Option<&str>, new: Option<&str>| {
        // As in `is_same`, how a value is escaped does not count.
        if old.map(few_escapes) != new.map(few_escapes) {
            let plain = |json: Option<&str>| json.map(|json| unquote(json).into_owned());
            fields.push(FieldChange {
                field: field.to_owned(),
                old: plain(old),
                new: plain(new),
            });
        }
    };
    for (index, column) in COLUMNS.iter().enumerate() {
        compare(column.name, old.json(index), new.json(index));
    }
    let before: HashMap<&str, &str> = old.unknown().collect();
    let after: HashMap<&str, &str> = new.unknown().collect();
    for (name, json) in old.unknown() {
        compare(&unquote(name), Some(json), after.get(name).copied());
    }
    for (name, json) in new.unknown() {
        if !before.contains_key(name) {
            compare(&unquote(name), None, Some(json));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_differ_field_by_field() {
        let version = |rest: &str| {
            format!(
                r#"{{"batch_id":"a","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"warnings":true{rest}}}"#
            )
        };
        let change = |field: &str, old: Option<&str>, new: Option<&str>| FieldChange {
            field: field.to_owned(),
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
        };
        let old = version(r#","comment":"x","avg_germination_rate":"87.50","extra":[1]"#);
        let new = version(r#","comment":null,"avg_germination_rate":"88.00","other":"\"""#);
        assert_eq!(
            differences(&old, &new),
            [
                change("avg_germination_rate", Some("87.50"), Some("88.00")),
                change("comment", Some("x"), None),
                change("extra", Some("[1]"), None),
                change("other", None, Some("\"")),
            ]
        );
        assert_eq!(differences(&old, &old), []);
        let (escaped, plain) = (
            version(r#","comment":"\u00e9""#),
            version(r#","comment":"é""#),
        );
        assert_eq!(differences(&escaped, &plain), []);
    }
}
