//! `sqlite`: the table of batches that an export made.

use std::ops::ControlFlow;
use std::path::Path;

use super::database::{ExportRow, ExportTable};
use crate::formats::record::{Each, FileInfo, ReadError, Record, RecordPlace};

/// Refuses a file that is shorter than its beginning says.
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
        return Err(ReadError::cut_short("it ends within its header"));
    };
    // Where the two differ, an old SQLite has changed it and counted no pages.
    let is_counted = changes == counted;
    let is_short = is_counted && size(pages).is_some_and(|size| size > length(path));
    if is_short {
        return Err(ReadError::cut_short("it has fewer pages than it says"));
    }
    Ok(())
}

fn length(path: &Path) -> u64 {
    // Where it cannot be known, it is not held against it.
    path.metadata().map_or(u64::MAX, |metadata| metadata.len())
}

pub(crate) fn read(path: &Path, each: &mut Each<'_>) -> Result<FileInfo, ReadError> {
    let table = ExportTable::open(path).map_err(ReadError::Aborted)?;
    let columns = table.columns();
    let remarks = FileInfo {
        columns: Some(columns),
        unknown: table.unknown().to_vec(),
        keeps_unknown_fields: table.keeps_unknown_fields(),
        ..FileInfo::default()
    };
    let mut count = 0;
    let mut take = |row: &ExportRow| {
        count += 1;
        let record = Record {
            values: row,
            columns,
            sound: false,
            place: RecordPlace::Batch(count),
        };
        each(&record)
    };
    match table.each(&mut take).map_err(ReadError::Aborted)? {
        ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(remarks),
    }
}
