//! The batches of one response: which are read, and what is kept of each.

use std::collections::BTreeSet;

use crate::batch::json::Shape;
use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::batch::{BATCH_NAME, Batch, CREATION_DATE, Timestamp, unquote};
use crate::client::{Response, ServiceError, Version};
use crate::secret::Secret;

/// A batch in a response.
#[derive(Clone, Debug)]
pub(super) struct SampledBatch {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created: Timestamp,
    /// The creation date as the service wrote it.
    pub(super) written: String,
    /// Fields that are not in the interface, with their values if these are dates.
    pub(super) others: Vec<(String, Option<Timestamp>)>,
}

impl SampledBatch {
    /// Reads the fields that the probe needs. `None` if the creation date is not valid.
    pub(super) fn of(batch: &Batch) -> Option<Self> {
        let others = batch.unknown().map(|(name, value)| {
            let date = Timestamp::parse(&unquote(value));
            (unquote(name).into_owned(), date)
        });
        Some(Self {
            id: batch.id().into_owned(),
            name: batch.plain(BATCH_NAME).unwrap_or_default().into_owned(),
            created: batch.created()?,
            written: batch.typed(CREATION_DATE)?.into_owned(),
            others: others.collect(),
        })
    }

    /// Returns whether it was created on a whole second.
    pub(super) fn is_whole(&self) -> bool {
        self.created == Timestamp::at(self.created.second)
    }

    pub(super) fn second(&self) -> i64 {
        self.created.second
    }
}

/// The batches of one response.
#[derive(Clone, Debug)]
pub(super) struct BatchList {
    pub(super) batches: Vec<SampledBatch>,
    pub(super) next: Option<Secret>,
    /// Whether the whole response was read. Otherwise it has more batches than needed.
    pub(super) whole: bool,
}

impl BatchList {
    /// Returns the identifiers, sorted: a service may shuffle each response.
    pub(super) fn ids(&self) -> BTreeSet<&str> {
        self.batches.iter().map(|batch| batch.id.as_str()).collect()
    }

    /// Returns whether the batch `id` is included. `None` if it may be on another page.
    pub(super) fn contains(&self, id: &str) -> Option<bool> {
        let found = self.batches.iter().any(|batch| batch.id == id);
        (found || (self.whole && self.next.is_none())).then_some(found)
    }
}

/// Formats a number of batches.
pub(super) fn batches(count: usize) -> String {
    match count {
        1 => "1 batch".to_owned(),
        count => format!("{count} batches"),
    }
}

/// The maximum number of batches to read from one response: version 1 may return all.
const MAX_BATCHES: usize = 5000;

/// Reads the batches of a response, up to [`MAX_BATCHES`].
pub(super) async fn read(
    version: Version,
    response: &mut Response,
) -> Result<BatchList, ServiceError> {
    let mut splitter = Splitter::new(match version {
        Version::V1 => Shape::Flat,
        Version::V2 => Shape::Page,
    });
    let mut batches = Vec::new();
    let mut is_enough = false;
    while let Some(text) = response.text().await? {
        let result = splitter.feed(&text, &mut |found| {
            is_enough = batches.len() >= MAX_BATCHES;
            if is_enough {
                return Err(ParseError::Cut);
            }
            let batch = match found {
                Item::Batch(batch) => Some(batch),
                Item::Text(text) => Batch::read(text).batch,
            };
            // Invalid batches are ignored here; `export` reports them.
            batches.extend(batch.as_ref().and_then(SampledBatch::of));
            Ok(())
        });
        if is_enough {
            return Ok(BatchList {
                batches,
                next: None,
                whole: false,
            });
        }
        result.map_err(|error| response.parse_error(error))?;
    }
    let next = splitter
        .finish()
        .map_err(|error| response.parse_error(error))?;
    Ok(BatchList {
        batches,
        next: next.map(Secret::cursor),
        whole: true,
    })
}
