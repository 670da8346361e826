//! A PostgreSQL table instead of a file: it may contain many exports, and only one of them is compared.

use super::expected::Expected;
use crate::batch::date::Clock;
use crate::cli::VerifyArgs;
use crate::commands::batches;
use crate::commands::context::Context;
use crate::error::Failure;
use crate::terminal;
use crate::verify::RecordSource;

/// Sets how to connect to the server of a table; leaves a file unchanged.
pub(super) fn connect(source: &mut RecordSource, context: &Context) -> Result<(), Failure> {
    if let Some(table) = source.as_table() {
        let settings = context.settings()?;
        table.connect_with(settings.client_options()?);
    }
    Ok(())
}

/// Limits a table to the range of the manifest, or to the dates on the command line; leaves a file unchanged.
pub(super) fn limit(
    source: &mut RecordSource,
    context: &Context,
    args: &VerifyArgs,
    expected: Option<&Expected>,
) -> Result<(), Failure> {
    let name = source.name().to_owned();
    let Some(table) = source.as_table() else {
        return Ok(());
    };
    let range = match expected {
        Some(expected) => expected.range,
        None => batches::range(&args.range, Clock::new(context.settings()?.time_zone.value))?,
    };
    let range = Some(range).filter(|range| range.start.is_some() || range.end.is_some());
    if let Some(range) = range {
        terminal::note(&format!(
            "a table may contain many exports; of {name}, only this range is compared: {}",
            range.describe()
        ));
    }
    table.limit(range, expected.map(|expected| expected.columns.clone()));
    Ok(())
}
