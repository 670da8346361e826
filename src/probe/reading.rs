//! The batches of an answer, as far as anybody needs them.

use super::ask::BatchList;
use super::sample::SampledBatch;
use crate::batch::Batch;
use crate::batch::json::Shape;
use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::client::{Response, ServiceError, Version};
use crate::secret::Secret;

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
