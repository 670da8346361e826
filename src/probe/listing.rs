//! The batches of one response: which are read, and what is kept of each.

use std::collections::BTreeSet;

use crate::secret::Secret;
use crate::batch::json::Shape;
use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::batch::{Batch, CREATION_DATE, Timestamp, unquote};
use crate::client::{Response, ServiceError, Version};

/// A batch that was seen.
#[derive(Clone, Debug)]
pub(super) struct SampledBatch {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created: Timestamp,
    /// As the service wrote it.
    pub(super) written: String,
    /// Fields that the interface does not know, and their values where those are dates.
    pub(super) others: Vec<(String, Option<Timestamp>)>,
}

/// The column next to the identifier.
const NAME: usize = 1;

impl SampledBatch {
    /// Takes what is of use; nothing where the date is none.
    pub(super) fn of(batch: &Batch) -> Option<Self> {
        let others = batch.unknown().map(|(name, value)| {
            let date = Timestamp::parse(&unquote(value));
            (unquote(name).into_owned(), date)
        });
        Some(Self {
            id: batch.id().into_owned(),
            name: batch.plain(NAME).unwrap_or_default().into_owned(),
            created: batch.created()?,
            written: batch.typed(CREATION_DATE)?.into_owned(),
            others: others.collect(),
        })
    }

    /// Tells whether it was created at the very start of a second.
    pub(super) fn is_whole(&self) -> bool {
        self.created == Timestamp::at(self.created.second)
    }

    pub(super) fn second(&self) -> i64 {
        self.created.second
    }
}

/// The batches of an answer.
#[derive(Clone, Debug)]
pub(super) struct BatchList {
    pub(super) batches: Vec<SampledBatch>,
    pub(super) next: Option<Secret>,
    /// All of the answer was read; otherwise there is more of it than anybody needs.
    pub(super) whole: bool,
}

impl BatchList {
    /// Returns the identifiers, in an order of their own: a service may shuffle each answer anew.
    pub(super) fn ids(&self) -> BTreeSet<&str> {
        self.batches.iter().map(|batch| batch.id.as_str()).collect()
    }

    /// Tells whether the batch called `id` is there; nothing where it may be on a further page.
    pub(super) fn holds(&self, id: &str) -> Option<bool> {
        let found = self.batches.iter().any(|batch| batch.id == id);
        (found || (self.whole && self.next.is_none())).then_some(found)
    }
}

/// Says how many batches there are.
pub(super) fn batches(count: usize) -> String {
    match count {
        1 => "1 batch".to_owned(),
        count => format!("{count} batches"),
    }
}

/// The most batches that are read of one answer: version 1 may answer all there are.
const MOST_BATCHES: usize = 5000;
/// What is read of an answer at a time.
const PIECE: usize = 64 * 1024;

/// Reads the batches of an answer, as many as anybody needs.
pub(super) async fn read(
    version: Version,
    answer: &mut Response,
) -> Result<BatchList, ServiceError> {
    let mut splitter = Splitter::new(match version {
        Version::V1 => Shape::Flat,
        Version::V2 => Shape::Page,
    });
    let mut batches = Vec::new();
    let mut is_enough = false;
    while let Some(text) = answer.text(PIECE).await? {
        let fed = splitter.feed(&text, &mut |found| {
            is_enough = batches.len() >= MOST_BATCHES;
            if is_enough {
                return Err(ParseError::Cut);
            }
            let batch = match found {
                Item::Batch(batch) => Some(batch),
                Item::Text(text) => Batch::read(text).batch,
            };
            // A batch that breaks the interface is for `export` to complain of.
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
        fed.map_err(|unreadable| answer.unreadable(unreadable))?;
    }
    let next = splitter
        .finish()
        .map_err(|unreadable| answer.unreadable(unreadable))?;
    Ok(BatchList {
        batches,
        next: next.map(Secret::cursor),
        whole: true,
    })
}
