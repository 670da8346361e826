//! `sqlite`: the table of batches that an export made.

use std::ops::ControlFlow;
use std::path::Path;

use super::{Each, Place, Record, Remarks, Unreadable};
use crate::archive::{PlainRow, PlainTable};

pub(super) fn read(path: &Path, each: &mut Each<'_>) -> Result<Remarks, Unreadable> {
    let table = PlainTable::open(path).map_err(Unreadable::Told)?;
    let columns = table.columns();
    let remarks = Remarks {
        columns: Some(columns),
        ..Remarks::default()
    };
    let mut count = 0;
    let mut take = |row: &PlainRow| {
        count += 1;
        let record = Record {
            values: row,
            columns,
            sound: false,
            place: Place::Batch(count),
        };
        each(&record)
    };
    match table.each(&mut take).map_err(Unreadable::Told)? {
        ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(remarks),
    }
}
