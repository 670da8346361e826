//! Reads the archive of `sync`: batches as the service sent them, without those that vanished from it.

use std::ops::ControlFlow;
use std::path::Path;

use crate::archive::Archive;
use crate::batch::ALL_COLUMNS;
use crate::batch::range::Range;
use crate::error::{Failure, Kind};
use crate::formats::record::{FileInfo, ReadError, Record, RecordHandler, RecordPlace, Schema};
use crate::storage::sqlite::is_damage;

/// Reads the batches of the archive at `path`.
pub(crate) fn read(path: &Path, each: &mut RecordHandler<'_>) -> Result<FileInfo, ReadError> {
    let archive = Archive::read_source(path).map_err(or_damaged)?;
    let info = FileInfo {
        columns: Some(ALL_COLUMNS),
        keeps_unknown_fields: true,
        ..FileInfo::default()
    };
    let mut pages = archive.pages(Range::default(), true).map_err(or_damaged)?;
    let mut count = 0;
    while let Some(page) = pages.next().map_err(or_damaged)? {
        for batch in &page.batches {
            count += 1;
            let record = Record {
                values: batch,
                // A field that was not sent is null.
                columns: ALL_COLUMNS,
                schema: Schema::Fixed,
                known_valid: batch.is_valid(),
                place: RecordPlace::Batch(count),
            };
            if each(&record).map_err(ReadError::Aborted)? == ControlFlow::Break(()) {
                return Ok(info);
            }
        }
    }
    archive.check().map_err(or_damaged)?;
    Ok(info)
}

/// Damage, and a wrong schema, count as differences.
fn or_damaged(mut failure: Failure) -> ReadError {
    if is_damage(&failure) {
        failure.kind = Kind::Protocol;
    } else if failure.kind == Kind::Internal {
        failure.kind = Kind::Protocol;
        failure = failure.hint(
            "the archive was modified; `trayscan sync` to a new file fetches all batches again",
        );
    }
    ReadError::Aborted(failure)
}
