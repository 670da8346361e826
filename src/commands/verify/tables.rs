//! A table in place of a file: it holds the batches of many exports, and only those that were asked for count.

use super::expected::Expected;
use crate::batch::range::Range;
use crate::cli::VerifyArgs;
use crate::config::Settings;
use crate::error::Failure;
use crate::postgres::Reach;
use crate::terminal;
use crate::verify::RecordSource;

/// What was asked for, where that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct TableRequest {
    range: Option<Range>,
    columns: Option<Vec<usize>>,
}

/// Finds out what was asked for: by the manifest, or by the dates that the service is asked with.
pub(super) fn asked(
    args: &VerifyArgs,
    expected: Option<&Expected>,
) -> Result<TableRequest, Failure> {
    let range = match expected {
        Some(expected) => Some(expected.range),
        None if args.range.start.is_some() || args.range.end.is_some() => Some(Range::parse(
            args.range.start.as_deref(),
            args.range.end.as_deref(),
            chrono::Utc::now(),
        )?),
        None => None,
    };
    Ok(TableRequest {
        range: range.filter(|range| range.start.is_some() || range.end.is_some()),
        columns: expected.map(|expected| expected.columns.clone()),
    })
}

/// Tells a table how its server is reached and which batches to read; does nothing to a file.
pub(super) fn prepared(
    mut source: RecordSource,
    from_environment: &[String],
    args: &VerifyArgs,
    asked: TableRequest,
) -> Result<RecordSource, Failure> {
    let name = source.name().to_owned();
    let Some(table) = source.as_table() else {
        return Ok(source);
    };
    let settings = Settings::read(&args.source, from_environment)?;
    table.reach_as(Reach::new(&settings.client_options()?));
    if let Some(range) = asked.range {
        terminal::note(&format!(
            "a table holds many exports: of {name}, the batches of {} are compared",
            range.describe()
        ));
    }
    table.limit(asked.range, asked.columns);
    Ok(source)
}
