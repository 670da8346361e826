//! A table of PostgreSQL.

use std::ops::ControlFlow;

use crate::formats::record::{Each, Place, Record, Remarks, Schema, Unreadable};
use crate::postgres::Reading;

pub(crate) fn read(reading: &Reading, each: &mut Each<'_>) -> Result<Remarks, Unreadable> {
    let mut rows = reading.open().map_err(Unreadable::Told)?;
    let remarks = Remarks {
        columns: Some(rows.columns),
        unknown: std::mem::take(&mut rows.unknown),
        keeps_unknown_fields: rows.has_extra,
        schema: Schema::Shared,
        ..Remarks::default()
    };
    let mut count = 0;
    while let Some(row) = rows.next().map_err(Unreadable::Told)? {
        count += 1;
        let record = Record {
            values: &row,
            columns: rows.columns,
            sound: false,
            place: Place::Batch(count),
        };
        if each(&record).map_err(Unreadable::Told)? == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(remarks)
}
