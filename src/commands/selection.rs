//! Which batches the command line asks for, checked before any request is sent.

use chrono::{DateTime, Utc};

use crate::batch::filter::Condition;
use crate::batch::range::Range;
use crate::cli::SelectionArgs;
use crate::error::Failure;
use crate::pipeline::Selection;

pub(super) struct SelectionRequest {
    pub(super) range: Range,
    pub(super) conditions: Vec<Condition>,
    /// The time that `today` and `7d` are relative to.
    pub(super) now: DateTime<Utc>,
}

impl SelectionRequest {
    pub(super) fn new(args: &SelectionArgs) -> Result<Self, Failure> {
        let now = Utc::now();
        let conditions = args.conditions.iter();
        Ok(Self {
            range: Range::parse(args.range.start.as_deref(), args.range.end.as_deref(), now)?,
            conditions: conditions
                .map(|text| Condition::parse(text, now))
                .collect::<Result<_, _>>()?,
            now,
        })
    }

    pub(super) fn selection(&self) -> Selection {
        Selection {
            conditions: self.conditions.clone(),
            ..Selection::new(&self.range)
        }
    }
}
