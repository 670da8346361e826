//! What the command line of `export` asks for, checked before any request is sent.

use std::time::Duration;

use crate::batch::Zone;
use crate::batch::digest::SetDigest;
use crate::batch::filter::{Fields, Sorting};
use crate::cli::{ExportArgs, OutputArgs};
use crate::commands::batches::BatchRequest;
use crate::error::Failure;
use crate::export::Destination;
use crate::formats;
use crate::formats::csv::CsvOptions;
use crate::formats::singer::SingerState;

/// The default of `--lookback`: how long before the end of the previous run to start.
const LOOKBACK: Duration = Duration::from_secs(7 * 86_400);

pub(super) struct ExportRequest {
    pub(super) destination: Destination,
    pub(super) fields: Fields,
    pub(super) sorting: Option<Sorting>,
    pub(super) batches: BatchRequest,
    /// The state that a previous run ended with.
    pub(super) state: Option<SingerState>,
}

impl ExportRequest {
    pub(super) fn new(args: &ExportArgs, zone: Zone) -> Result<Self, Failure> {
        let mut batches = BatchRequest::new(&args.selection, &args.source, zone)?;
        if args.output.only_changed && args.source.archive.is_none() {
            return Err(Failure::usage(
                "`--only-changed` needs `--archive`",
                "an archive records what has changed: create one with `trayscan sync batches.db`, then add \
                 `--archive batches.db`",
            ));
        }
        let state = args.output.state.as_deref();
        let state = state.map(SingerState::read).transpose()?;
        if let Some(state) = &state {
            let lookback = args.output.lookback.unwrap_or(LOOKBACK);
            batches.range = batches.range.continued(state.start(lookback))?;
        }
        let destination = Destination::new(&args.output)?;
        let fields = args.fields.as_deref();
        let fields = fields.map_or_else(|| Ok(Fields::all()), Fields::parse)?;
        formats::check_options(destination.format, &csv_options(&args.output), &fields)?;
        Ok(Self {
            destination,
            fields,
            sorting: args.sort.as_deref().map(Sorting::parse).transpose()?,
            batches,
            state,
        })
    }

    /// Returns a function that starts the digest of an output.
    pub(super) fn new_digest(&self) -> impl Fn() -> SetDigest + use<> {
        let keeps_unknown = self.destination.format.keeps_unknown_fields() && !self.fields.named;
        let kept = self.destination.format.representation();
        let columns = self.fields.columns.clone();
        move || {
            let digest = SetDigest::new(&columns).with_unknown_fields(keeps_unknown);
            digest.with_representation(kept)
        }
    }
}

pub(super) fn csv_options(args: &OutputArgs) -> CsvOptions {
    CsvOptions {
        delimiter: args.delimiter.clone(),
        decimal_comma: args.decimal_comma,
        bom: args.bom,
        no_header: args.no_header,
        excel: args.excel,
    }
}
