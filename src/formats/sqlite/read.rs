//! Reads the table `batches` of a database that an export wrote.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::batch::{COLUMNS, FieldType, PlainRow, column_bits, find_column};
use crate::error::{self, Failure};
use crate::formats::record::{EXTRA, FileInfo, ReadError, Record, RecordHandler, RecordPlace};
use crate::storage::sqlite::{
    check_indexes, check_pages, check_table, connect, damage, is_damage_error, read_failure,
};

/// The page cache of SQLite: negative, so in KiB.
const CACHE: i32 = -8192;

/// Rejects a file that is shorter than its header says.
pub(crate) fn check_length(path: &Path, head: &[u8]) -> Result<(), ReadError> {
    let number = |place: usize| {
        let bytes = head.get(place..place + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    let size = |pages: u64| {
        let page_size = match head.get(16..18)? {
            [0, 1] => 65_536,
            bytes => u64::from(u16::from_be_bytes(bytes.try_into().ok()?)),
        };
        Some(pages * page_size)
    };
    let (Some(pages), Some(changes), Some(counted)) = (number(28), number(24), number(92)) else {
        return Err(ReadError::cut_short("it ends inside its header"));
    };
    // A length that cannot be read is not an error here.
    let length = path.metadata().map_or(u64::MAX, |metadata| metadata.len());
    // If the two differ, an old SQLite has changed the file without counting its pages.
    if changes == counted && size(pages).is_some_and(|size| size > length) {
        let why = "it has fewer pages than its header says";
        return Err(ReadError::cut_short(why));
    }
    Ok(())
}

/// Reads the rows of the database at `path`.
pub(crate) fn read(path: &Path, each: &mut RecordHandler<'_>) -> Result<FileInfo, ReadError> {
    let (db, columns, mut unknown) = open(path).map_err(ReadError::Aborted)?;
    let has_extra = unknown.iter().any(|name| name == EXTRA);
    unknown.retain(|name| name != EXTRA);
    let read = read_rows(&db, path, &columns, has_extra, each);
    read.map_err(ReadError::Aborted)?;
    Ok(FileInfo {
        columns: Some(column_bits(columns)),
        unknown,
        keeps_unknown_fields: has_extra,
        ..FileInfo::default()
    })
}

/// Opens the database; returns the fields that have a column, and the names of the other columns, too.
fn open(path: &Path) -> Result<(Connection, Vec<usize>, Vec<String>), Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let refused = || {
        let path = path.display();
        Failure::usage(
            format!("`{path}` is neither an archive nor an export with a table `batches`"),
            "pass a database that `trayscan export -f sqlite` wrote, or an archive",
        )
    };
    let failure = |error| {
        if is_damage_error(&error) {
            return damage(path, error.into());
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => read_failure(path, error),
            _ => refused().caused_by(error),
        }
    };
    let db = connect(path, flags).map_err(failure)?;
    // The check of the pages looks up each row in the index, in random order.
    db.pragma_update(None, "cache_size", CACHE)
        .map_err(failure)?;
    check_table(&db, path)?;
    check_indexes(&db, path)?;
    let (mut columns, mut unknown) = (Vec::new(), Vec::new());
    for name in column_names(&db).map_err(failure)? {
        match find_column(&name) {
            Some(column) => columns.push(column),
            None => unknown.push(name),
        }
    }
    if columns.is_empty() {
        return Err(refused());
    }
    Ok((db, columns, unknown))
}

/// Passes each row to `each`, until that returns `Break`.
fn read_rows(
    db: &Connection,
    path: &Path,
    columns: &[usize],
    has_extra: bool,
    each: &mut RecordHandler<'_>,
) -> Result<(), Failure> {
    let failure = |error| read_failure(path, error);
    let bits = column_bits(columns.iter().copied());
    let names = columns.iter().map(|&column| COLUMNS[column].name);
    let names: Vec<&str> = names.chain(has_extra.then_some(EXTRA)).collect();
    let sql = format!("SELECT {} FROM batches", names.join(", "));
    let mut rows = db.prepare(&sql).map_err(failure)?;
    let mut rows = rows.query([]).map_err(failure)?;
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failure)? {
        count += 1;
        let mut values = PlainRow::default();
        for (place, name) in names.iter().enumerate() {
            let column = columns.get(place).copied();
            let kind = column.map_or(FieldType::Text, |column| COLUMNS[column].kind);
            let text = text(row.get_ref(place).map_err(failure)?, kind).map_err(|found| {
                // If the file is damaged, that is the better explanation.
                let damage = check_pages(db, path).err();
                damage.unwrap_or_else(|| wrong_type(path, count, name, kind, found))
            })?;
            match column {
                Some(column) => values.texts[column] = text,
                None => values.extra = text,
            }
        }
        let record = Record::of_row(&values, bits, RecordPlace::Batch(count));
        if each(&record)? == ControlFlow::Break(()) {
            return Ok(());
        }
        // A caller that stops after the first row only needs the columns, and should not wait for this check.
        if count == 1 {
            check_pages(db, path)?;
        }
    }
    if count == 0 {
        check_pages(db, path)?;
    }
    Ok(())
}

fn wrong_type(path: &Path, row: u64, name: &str, kind: FieldType, found: &str) -> Failure {
    let expected = match kind {
        FieldType::Text | FieldType::Date => "text",
        FieldType::Integer => "an integer",
        FieldType::Decimal => "a number",
        FieldType::Boolean => "0 or 1",
    };
    let path = path.display();
    let message = format!("`{path}`, batch {row}: `{name}` is {found}, not {expected}");
    Failure::new(error::Kind::Protocol, message).hint("the database was modified; export it again")
}

/// Returns the names of the columns of the table.
fn column_names(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut names = db.prepare("SELECT name FROM pragma_table_xinfo('batches')")?;
    let names = names.query_map([], |row| row.get(0))?;
    names.collect()
}

/// Returns the text of a cell; the error names its type if that does not match the column.
fn text(cell: ValueRef<'_>, kind: FieldType) -> Result<Option<String>, &'static str> {
    Ok(Some(match (cell, kind) {
        (ValueRef::Null, _) => return Ok(None),
        (ValueRef::Integer(number @ 0..=1), FieldType::Boolean) => (number == 1).to_string(),
        (ValueRef::Integer(number), FieldType::Integer | FieldType::Decimal) => number.to_string(),
        // The shortest text that gives the same number has the digits that were written.
        (ValueRef::Real(number), FieldType::Decimal) if number.is_finite() => number.to_string(),
        (ValueRef::Text(text), FieldType::Text | FieldType::Date) => {
            match std::str::from_utf8(text) {
                Ok(text) => text.to_owned(),
                Err(_) => return Err("not UTF-8"),
            }
        }
        (ValueRef::Integer(_), _) => return Err("an integer"),
        (ValueRef::Real(_), _) => return Err("a floating-point number"),
        (ValueRef::Text(_), _) => return Err("text"),
        (ValueRef::Blob(_), _) => return Err("a blob"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_must_have_the_types_of_their_columns() {
        for (cell, kind, expected) in [
            (ValueRef::Null, FieldType::Decimal, Ok(None)),
            (ValueRef::Integer(1), FieldType::Boolean, Ok(Some("true"))),
            (ValueRef::Integer(2), FieldType::Boolean, Err("an integer")),
            (ValueRef::Integer(7), FieldType::Integer, Ok(Some("7"))),
            (ValueRef::Integer(87), FieldType::Decimal, Ok(Some("87"))),
            (ValueRef::Integer(7), FieldType::Text, Err("an integer")),
            (ValueRef::Real(87.5), FieldType::Decimal, Ok(Some("87.5"))),
            (
                ValueRef::Real(f64::INFINITY),
                FieldType::Decimal,
                Err("a floating-point number"),
            ),
            (
                ValueRef::Real(7.0),
                FieldType::Integer,
                Err("a floating-point number"),
            ),
            (ValueRef::Text(b"87.5"), FieldType::Decimal, Err("text")),
            (ValueRef::Text(b"true"), FieldType::Boolean, Err("text")),
            (ValueRef::Text(b"a\0b"), FieldType::Text, Ok(Some("a\0b"))),
            (ValueRef::Text(b"\xff"), FieldType::Text, Err("not UTF-8")),
            (ValueRef::Blob(b"a"), FieldType::Text, Err("a blob")),
        ] {
            let found = text(cell, kind);
            let found = found.as_ref().map(Option::as_deref).map_err(|found| *found);
            assert_eq!(found, expected, "{cell:?} as {kind:?}");
        }
    }
}
