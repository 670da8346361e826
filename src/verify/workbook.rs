//! Reads a workbook, and checks the figures that it shows beside its batches.

use std::io::{Read, Seek};
use std::ops::ControlFlow;

use crate::analysis::KnownSpan;
use crate::analysis::summary::CropFigures;
use crate::batch::range::Range;
use crate::batch::{
    COEFFICIENT_OF_VARIATION, COLUMNS, CREATION_DATE, CROP_TYPE, GERMINATION_RATE, SEEDLING_SIZE,
    USABLE_RATE, WARNINGS,
};
use crate::formats::record::{FileInfo, ReadError, RecordHandler};
use crate::formats::xlsx::Workbook;

/// The columns that the figures are computed from.
const NEEDED: [usize; 7] = [
    CREATION_DATE,
    CROP_TYPE,
    GERMINATION_RATE,
    USABLE_RATE,
    COEFFICIENT_OF_VARIATION,
    SEEDLING_SIZE,
    WARNINGS,
];

/// Passes each batch of the workbook to `each`.
pub(crate) fn read(
    bytes: impl Read + Seek,
    each: &mut RecordHandler<'_>,
) -> Result<FileInfo, ReadError> {
    let mut book = Workbook::open(bytes)?;
    let mut figures = book.origin.take().map(|(asked, zone, range)| {
        let span = KnownSpan::new(&range, &Range::default(), asked, zone);
        CropFigures::new(span)
    });
    let (mut columns, mut is_whole) = (None, true);
    let mut info = book.read(&mut |record| {
        columns = Some(record.columns);
        if let Some(figures) = &mut figures {
            figures.add_values(record.values);
        }
        let flow = each(record)?;
        is_whole &= flow == ControlFlow::Continue(());
        Ok(flow)
    })?;
    if !is_whole {
        return Ok(info);
    }
    let columns = columns.or(info.columns).unwrap_or_default();
    let missing = NEEDED.iter().find(|&&column| columns & (1 << column) == 0);
    let summary = match (missing, figures.map(CropFigures::finish)) {
        (Some(&missing), _) => Err(format!("the workbook lacks `{}`", COLUMNS[missing].name)),
        (_, None) => Err("this version of trayscan did not write it".to_owned()),
        _ if info.wrong_type.is_some() => Err("some values have the wrong type".to_owned()),
        // Which of them are listed depends on the order of the batches.
        (_, Some(summary)) if summary.lists_all() => Ok(summary),
        _ => Err("it does not list all crops".to_owned()),
    };
    info.contradiction = book.finish(summary.as_ref().ok())?;
    info.unchecked_figures = summary.err().filter(|_| book.has_summary());
    Ok(info)
}
