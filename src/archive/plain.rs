//! A plain database: the table of batches and nothing of an archive's own, for an export.

use std::path::Path;

use rusqlite::{CachedStatement, Connection, OpenFlags};

use super::schema::column_definition;
use crate::batch::{BATCH_ID, Batch, COLUMNS, CREATION_DATE, CROP_TYPE, Kind};

/// What REAL keeps of a decimal number: so many digits come back as they were.
const EXACT_DIGITS: usize = 15;
/// Pages of the file that are kept in memory, in KiB.
const CACHE: i64 = 16 * 1024;

/// A database in the making.
pub(crate) struct Plain {
    db: Connection,
    insert: String,
    columns: Vec<usize>,
    /// Fields that nobody announced go into a column of their own.
    has_extra: bool,
}

/// A number that a column cannot hold as it is.
#[derive(Debug)]
pub(crate) struct TooLong {
    pub(crate) column: usize,
}

impl Plain {
    /// Begins a database with these columns in the empty file at `path`. Nobody else knows the file yet, so
    /// no journal is needed: it is published whole or not at all.
    pub(crate) fn create(
        path: &Path,
        columns: &[usize],
        has_extra: bool,
    ) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = super::connect(path, flags)?;
        db.pragma_update(None, "journal_mode", "OFF")?;
        db.pragma_update(None, "synchronous", "OFF")?;
        db.pragma_update(None, "cache_size", -CACHE)?;
        let mut definitions: Vec<String> = columns
            .iter()
            .map(|&column| column_definition(column))
            .collect();
        let mut names: Vec<&str> = columns.iter().map(|&column| COLUMNS[column].name).collect();
        if has_extra {
            definitions.push("extra TEXT".to_owned());
            names.push("extra");
        }
        let places: Vec<String> = (1..=names.len()).map(|place| format!("?{place}")).collect();
        db.execute_batch(&format!(
            "BEGIN; CREATE TABLE batches (\n    {}\n) STRICT",
            definitions.join(",\n    ")
        ))?;
        Ok(Self {
            db,
            insert: format!(
                "INSERT INTO batches ({}) VALUES ({})",
                names.join(", "),
                places.join(", ")
            ),
            columns: columns.to_vec(),
            has_extra,
        })
    }

    /// Adds `batch`; tells where a number of it cannot be kept.
    pub(crate) fn add(&self, batch: &Batch) -> rusqlite::Result<Result<(), TooLong>> {
        let mut insert = self.db.prepare_cached(&self.insert)?;
        for (place, &column) in (1..).zip(&self.columns) {
            if let Err(too_long) = bind(&mut insert, place, batch, column)? {
                insert.clear_bindings();
                return Ok(Err(too_long));
            }
        }
        if self.has_extra {
            insert.raw_bind_parameter(self.columns.len() + 1, extra(batch))?;
        }
        insert.raw_execute()?;
        Ok(Ok(()))
    }

    /// Builds the indexes that people want, and ends the one transaction.
    pub(crate) fn finish(self) -> rusqlite::Result<()> {
        for column in [CREATION_DATE, CROP_TYPE] {
            if self.columns.contains(&column) {
                let name = COLUMNS[column].name;
                let sql = format!("CREATE INDEX batches_by_{name} ON batches ({name})");
                self.db.execute_batch(&sql)?;
            }
        }
        self.db.execute_batch("COMMIT")?;
        self.db.close().map_err(|(_, error)| error)
    }
}

fn bind(
    insert: &mut CachedStatement<'_>,
    place: usize,
    batch: &Batch,
    column: usize,
) -> rusqlite::Result<Result<(), TooLong>> {
    if column == BATCH_ID {
        return insert.raw_bind_parameter(place, batch.id()).map(Ok);
    }
    let value = batch.typed(column);
    let text = value.as_deref();
    match COLUMNS[column].kind {
        Kind::Text | Kind::Date => insert.raw_bind_parameter(place, text)?,
        Kind::Boolean => insert.raw_bind_parameter(place, text.map(|text| text == "true"))?,
        Kind::Integer => match text.map(str::parse::<i64>).transpose() {
            Ok(number) => insert.raw_bind_parameter(place, number)?,
            Err(_) => return Ok(Err(TooLong { column })),
        },
        Kind::Decimal => {
            if text.is_some_and(|text| significant_digits(text) > EXACT_DIGITS) {
                return Ok(Err(TooLong { column }));
            }
            let number = text.and_then(|text| text.parse::<f64>().ok());
            insert.raw_bind_parameter(place, number)?;
        }
    }
    Ok(Ok(()))
}

/// Counts the digits of a decimal number from the first that is not zero to the last.
fn significant_digits(text: &str) -> usize {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    // Zeros at the end of a fraction say nothing.
    let digits = if text.contains('.') {
        digits.trim_end_matches('0')
    } else {
        digits
    };
    digits.len()
}

/// Returns the fields that nobody announced, as one JSON object; nothing where there are none.
fn extra(batch: &Batch) -> Option<String> {
    let fields: Vec<String> = batch
        .unknown()
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
}

#[cfg(test)]
mod tests {
    use super::significant_digits;

    #[test]
    fn digits_count_from_the_first_that_says_something() {
        for (text, count) in [
            ("87.50", 3),
            ("-0.00", 0),
            ("0.0012", 2),
            ("1200", 4),
            ("123456789012345.6", 16),
            ("1.00000000000000000", 1),
        ] {
            assert_eq!(significant_digits(text), count, "{text}");
        }
    }
}
