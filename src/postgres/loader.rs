//! Loads batches into a table.
//!
//! Batches are buffered in a temporary file until all have arrived. So no connection or transaction is open
//! while waiting for the service, and server errors at the end can be retried.

use super::address::TableAddress;
use super::failure::with_retries;
use super::rows::{InexactCell, RowBuffer, RowSpool};
use super::session::{Connector, wait};
use super::table::{EXTRA, Layout};
use super::upsert::{Upsert, UpsertCounts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::batch::filter::Fields;
use crate::batch::{BATCH_ID, Batch, COLUMNS};
use crate::client::ClientOptions;
use crate::error::{Failure, Kind};
use crate::text;

/// The size of a chunk, in bytes.
const CHUNK: usize = 2 << 20;

/// Loads batches into a table. If it is dropped without [`CopyLoader::finish`], nothing is written.
pub(crate) struct CopyLoader {
    connector: Arc<Connector>,
    upsert: Upsert,
    rows: RowBuffer,
    spool: RowSpool,
}

impl CopyLoader {
    /// Checks that batches can be written.
    pub(crate) fn open(
        address: &TableAddress,
        options: ClientOptions,
        fields: &Fields,
        lenient: bool,
    ) -> Result<Self, Failure> {
        if !fields.columns.contains(&BATCH_ID) {
            return Err(Failure::usage(
                "without `batch_id`, rows of the table cannot be matched to batches",
                "add `batch_id` to `--fields`",
            ));
        }
        let address = address.clone();
        let connector = Arc::new(Connector { address, options });
        let layout = Layout::new(fields, lenient);
        let upsert = wait(with_retries(connector.options.retry_policy(), async || {
            Upsert::rehearse(&connector, layout.clone()).await
        }))?;
        Ok(Self {
            rows: RowBuffer::new(upsert.layout().clone()),
            spool: RowSpool::new(),
            connector,
            upsert,
        })
    }

    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.rows
            .add(batch)
            .map_err(|inexact| refused(batch, &inexact))?;
        if self.rows.len() >= CHUNK {
            self.spool.add(&self.rows.take())?;
        }
        Ok(())
    }

    /// Writes everything to the table; sets `is_committing` while the transaction may be committed. Also returns
    /// the number of texts with escapes.
    pub(crate) fn finish(self, is_committing: &AtomicBool) -> Result<(UpsertCounts, u64), Failure> {
        let Self {
            connector,
            upsert,
            mut rows,
            mut spool,
        } = self;
        if rows.len() > 0 {
            spool.add(&rows.take())?;
        }
        let table = connector.address.table.quoted();
        let counts =
            wait(upsert.run(&connector, &mut spool, is_committing)).map_err(|failure| {
                if is_committing.load(Ordering::SeqCst) {
                    return failure;
                }
                let message = format!("export stopped; the table {table} is unchanged");
                Failure::new(failure.kind, message).caused_by(failure)
            })?;
        Ok((counts, rows.escaped))
    }
}

/// Describes the state of the table after a run that did not finish.
pub(crate) fn left_behind(address: &TableAddress, is_committing: &AtomicBool) -> String {
    let table = address.table.quoted();
    if is_committing.load(Ordering::SeqCst) {
        format!("the table {table} is either unchanged or has all batches")
    } else {
        format!("the table {table} is unchanged")
    }
}

fn refused(batch: &Batch, inexact: &InexactCell) -> Failure {
    let name = inexact.column.map_or(EXTRA, |column| COLUMNS[column].name);
    let value = match inexact.column {
        Some(column) => batch.plain(column).unwrap_or_default().into_owned(),
        None => batch.extra().unwrap_or_default(),
    };
    let value = match &*value {
        "" => "null".to_owned(),
        value => text::brief(value),
    };
    let (id, why) = (text::brief(&batch.id()), &inexact.why);
    Failure::new(
        Kind::Protocol,
        format!("batch `{id}`: `{name}` is {value}: {why}"),
    )
    .hint("exclude the field with `--fields`, or write json or csv, which keep all values")
}
