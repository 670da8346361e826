//! A PostgreSQL table instead of a file: it may contain many exports, and only one of them is compared.

use super::expected::Expected;
use crate::batch::range::Range;
use crate::cli::VerifyArgs;
use crate::commands::context::Context;
use crate::config::Settings;
use crate::error::Failure;
use crate::postgres::Reach;
use crate::terminal;
use crate::verify::RecordSource;

/// The part of a table to compare.
#[derive(Clone, Debug, Default)]
pub(super) struct TableRequest {
    range: Option<Range>,
    columns: Option<Vec<usize>>,
}

impl TableRequest {
    /// Takes the range from the manifest, or from the dates on the command line.
    pub(super) fn new(args: &VerifyArgs, expected: Option<&Expected>) -> Result<Self, Failure> {
        let range = match expected {
            Some(expected) => Some(expected.range),
            None if args.range.start.is_some() || args.range.end.is_some() => Some(Range::parse(
                args.range.start.as_deref(),
                args.range.end.as_deref(),
                chrono::Utc::now(),
            )?),
            None => None,
        };
        Ok(Self {
            range: range.filter(|range| range.start.is_some() || range.end.is_some()),
            columns: expected.map(|expected| expected.columns.clone()),
        })
    }
}

/// Sets how to connect to the server of a table and which batches to read; leaves a file unchanged.
pub(super) fn prepare(
    mut source: RecordSource,
    context: &Context,
    args: &VerifyArgs,
    request: TableRequest,
) -> Result<RecordSource, Failure> {
    let name = source.name().to_owned();
    let Some(table) = source.as_table() else {
        return Ok(source);
    };
    let settings = Settings::read(&args.source, &context.from_environment)?;
    table.reach_as(Reach::new(&settings.client_options()?));
    if let Some(range) = request.range {
        terminal::note(&format!(
            "a table may contain many exports; of {name}, only the batches of {} are compared",
            range.describe()
        ));
    }
    table.limit(request.range, request.columns);
    Ok(source)
}
