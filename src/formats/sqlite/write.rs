//! Writes a database with one table, `batches`.

use std::path::Path;

use rusqlite::{CachedStatement, Connection, OpenFlags};

use crate::batch::filter::Fields;
use crate::batch::{
    BATCH_ID, Batch, COLUMNS, CREATION_DATE, CROP_TYPE, Column, FieldType, exact_float,
};
use crate::error::Failure;
use crate::formats::record::EXTRA;
use crate::formats::writer::inexact;
use crate::formats::{BatchWriter, ExportOutcome, Finished, WriterReport};
use crate::storage::EncodedOutput;
use crate::storage::sqlite::{connect, io_error};

/// Pages of the file that are kept in memory, in KiB.
const CACHE: i64 = 2 * 1024;

pub(crate) struct Sqlite {
    /// Must be closed before its file is published or removed.
    db: Connection,
    insert: String,
    columns: Vec<usize>,
    /// Whether unknown fields go into a column of their own.
    has_extra: bool,
    output: EncodedOutput,
}

impl Sqlite {
    pub(crate) fn new(mut output: EncodedOutput, fields: &Fields) -> Result<Self, Failure> {
        output.expect_database()?;
        let path = output.write_by_path()?;
        let has_extra = !fields.named;
        let created = create(&path, &fields.columns, has_extra);
        let (db, insert) = created.map_err(|error| output.failure(io_error(error)))?;
        Ok(Self {
            db,
            insert,
            columns: fields.columns.clone(),
            has_extra,
            output,
        })
    }

    /// Adds `batch`; the inner error is the column of a number that cannot be stored exactly.
    fn add(&self, batch: &Batch) -> rusqlite::Result<Result<(), usize>> {
        let mut insert = self.db.prepare_cached(&self.insert)?;
        for (place, &column) in (1..).zip(&self.columns) {
            if !bind(&mut insert, place, batch, column)? {
                insert.clear_bindings();
                return Ok(Err(column));
            }
        }
        if self.has_extra {
            insert.raw_bind_parameter(self.columns.len() + 1, batch.extra())?;
        }
        insert.raw_execute()?;
        Ok(Ok(()))
    }
}

impl BatchWriter for Sqlite {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        let added = self.add(batch);
        let added = added.map_err(|error| self.output.failure(io_error(error)))?;
        added.map_err(|column| inexact(batch, column, "SQLite cannot keep"))
    }

    fn finish(self: Box<Self>, _: &ExportOutcome<'_>) -> Finished {
        let mut output = self.output;
        let finished = finish(self.db, &self.columns);
        finished.map_err(|error| output.failure(io_error(error)))?;
        Ok((output, WriterReport::default()))
    }
}

/// Creates a database with these columns in the empty file at `path`; returns the statement that inserts a row, too. It
/// needs no journal: the file is published complete or not at all.
fn create(
    path: &Path,
    columns: &[usize],
    has_extra: bool,
) -> rusqlite::Result<(Connection, String)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = connect(path, flags)?;
    db.pragma_update(None, "journal_mode", "OFF")?;
    db.pragma_update(None, "synchronous", "OFF")?;
    db.pragma_update(None, "cache_size", -CACHE)?;
    let mut definitions: Vec<String> = columns.iter().copied().map(column_definition).collect();
    let mut names: Vec<&str> = columns.iter().map(|&column| COLUMNS[column].name).collect();
    if has_extra {
        definitions.push(format!("{EXTRA} TEXT"));
        names.push(EXTRA);
    }
    let definitions = definitions.join(",\n    ");
    db.execute_batch(&format!(
        "BEGIN; CREATE TABLE batches (\n    {definitions}\n) STRICT"
    ))?;
    let places: Vec<String> = (1..=names.len()).map(|place| format!("?{place}")).collect();
    let (names, places) = (names.join(", "), places.join(", "));
    let insert = format!("INSERT INTO batches ({names}) VALUES ({places})");
    Ok((db, insert))
}

/// Creates the indexes, and commits the only transaction.
fn finish(db: Connection, columns: &[usize]) -> rusqlite::Result<()> {
    // Frees the cache first, so that sorting does not need memory on top of it.
    db.release_memory()?;
    for (column, kind) in [
        (BATCH_ID, "UNIQUE INDEX"),
        (CREATION_DATE, "INDEX"),
        (CROP_TYPE, "INDEX"),
    ] {
        if columns.contains(&column) {
            let name = COLUMNS[column].name;
            let sql = format!("CREATE {kind} batches_by_{name} ON batches ({name})");
            db.execute_batch(&sql)?;
        }
    }
    db.execute_batch("COMMIT")?;
    db.close().map_err(|(_, error)| error)
}

/// Binds the value of `column`; returns false if it is a number that cannot be stored exactly.
fn bind(
    insert: &mut CachedStatement<'_>,
    place: usize,
    batch: &Batch,
    column: usize,
) -> rusqlite::Result<bool> {
    if column == BATCH_ID {
        insert.raw_bind_parameter(place, batch.id())?;
        return Ok(true);
    }
    let value = batch.typed(column);
    let text = value.as_deref();
    match COLUMNS[column].kind {
        FieldType::Text | FieldType::Date => insert.raw_bind_parameter(place, text)?,
        FieldType::Boolean => insert.raw_bind_parameter(place, text.map(|text| text == "true"))?,
        FieldType::Integer => match text.map(str::parse::<i64>).transpose() {
            Ok(number) => insert.raw_bind_parameter(place, number)?,
            Err(_) => return Ok(false),
        },
        FieldType::Decimal => match text.map(exact_float) {
            Some(None) => return Ok(false),
            number => insert.raw_bind_parameter(place, number.flatten())?,
        },
    }
    Ok(true)
}

/// Returns the SQL definition of the column for a field. Indexes are created at the end: ids are random, and each would
/// change another page.
pub(crate) fn column_definition(column: usize) -> String {
    let Column { name, kind, .. } = COLUMNS[column];
    let kind = match kind {
        FieldType::Text | FieldType::Date => "TEXT",
        FieldType::Integer | FieldType::Boolean => "INTEGER",
        FieldType::Decimal => "REAL",
    };
    let required = if column == BATCH_ID { " NOT NULL" } else { "" };
    format!("{name} {kind}{required}")
}
