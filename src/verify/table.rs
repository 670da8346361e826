//! A table of PostgreSQL.

use std::ops::ControlFlow;

use crate::formats::record::{Each, FileInfo, ReadError, Record, RecordPlace, Schema};
use crate::postgres::TableReader;

pub(crate) fn read(reading: &TableReader, each: &mut Each<'_>) -> Result<FileInfo, ReadError> {
    let mut rows = reading.open().map_err(ReadError::Aborted)?;
    let remarks = FileInfo {
        columns: Some(rows.columns),
        unknown: std::mem::take(&mut rows.unknown),
        keeps_unknown_fields: rows.has_extra,
        schema: Schema::Shared,
        ..FileInfo::default()
    };
    let mut count = 0;
    while let Some(row) = rows.next().map_err(ReadError::Aborted)? {
        count += 1;
        let record = Record {
            values: &row,
            columns: rows.columns,
            sound: false,
            place: RecordPlace::Batch(count),
        };
        if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(remarks)
}
