//! Reading the batches of an answer, and what is wrong with them.

use std::fmt;
use std::sync::Arc;

use crate::batch::Batch;
use crate::batch::Page;
use crate::batch::json::Shape;
use crate::batch::json::split::{Item, ParseError, Splitter};
use crate::batch::range::Range;
use crate::client::Version;
use crate::text::brief;

/// What was wrong with batches that were carried on nevertheless.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataIssues {
    /// Batches that break the interface, and an example.
    pub(crate) flawed: u64,
    pub(crate) example: Option<String>,
    /// Batches that were left out, for they have no identifier.
    pub(crate) skipped: u64,
    /// Nullable fields that were not even there, one bit each.
    pub(crate) absent: u32,
    /// Seconds to which version 1 answered as much as it may, so that there may be more; and the first.
    pub(crate) held_back: u64,
    pub(crate) crowded: Option<String>,
}

impl DataIssues {
    pub(crate) fn add(&mut self, more: Self) {
        self.flawed += more.flawed;
        self.skipped += more.skipped;
        self.example = self.example.take().or(more.example);
        self.absent |= more.absent;
        self.held_back += more.held_back;
        self.crowded = self.crowded.take().or(more.crowded);
    }

    /// Notes a second that may hold more than came.
    pub(super) fn add_truncated(&mut self, what: String) {
        self.held_back += 1;
        self.crowded.get_or_insert(what);
    }
}

/// Which answer is read, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseInfo {
    /// A window, where the range was cut.
    pub(super) window: Option<Range>,
    pub(super) page: u64,
}

impl fmt::Display for ResponseInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.page)?;
        match &self.window {
            Some(window) => write!(f, " of {}", window.describe()),
            None => Ok(()),
        }
    }
}

/// Reads one answer, piece by piece.
pub(super) struct PageDecoder {
    splitter: Splitter,
    lenient: bool,
    info: ResponseInfo,
    /// What was read and not taken yet.
    pub(super) decoded: DecodedPage,
}

/// What an answer held.
#[derive(Default)]
pub(super) struct DecodedPage {
    pub(super) page: Page,
    /// Batches received, also those that are left out.
    pub(super) received: usize,
    pub(super) issues: DataIssues,
}

impl PageDecoder {
    /// Prepares to read an answer of `version` onto `page`, a blank_page one.
    pub(super) fn new(version: Version, lenient: bool, info: ResponseInfo, page: Page) -> Self {
        Self {
            splitter: Splitter::new(match version {
                Version::V1 => Shape::Flat,
                Version::V2 => Shape::Page,
            }),
            lenient,
            info,
            decoded: DecodedPage {
                page,
                ..DecodedPage::default()
            },
        }
    }

    /// Takes more of the answer.
    pub(super) fn feed(&mut self, text: &Arc<String>) -> Result<(), ParseError> {
        let Self {
            splitter,
            lenient,
            info,
            decoded,
        } = self;
        decoded.page.texts.push(Arc::clone(text));
        let fed = splitter.feed(text, &mut |item| decoded.take(item, *lenient, info));
        fed.map_err(|error| match (error, splitter.limit_passed()) {
            (ParseError::Broken(why), Some(place)) => {
                ParseError::Broken(format!("{info}, {place}: {why}"))
            }
            (error, _) => error,
        })
    }

    /// Hands out the batches that were read, while more are to come onto `blank_page`.
    pub(super) fn take(&mut self, blank_page: Page) -> DecodedPage {
        DecodedPage {
            page: std::mem::replace(&mut self.decoded.page, blank_page),
            received: self.decoded.received,
            issues: std::mem::take(&mut self.decoded.issues),
        }
    }

    /// Ends the answer; returns the cursor of the next page with what was not taken yet.
    pub(super) fn finish(self) -> Result<(DecodedPage, Option<String>), ParseError> {
        let next_token = self.splitter.finish()?;
        Ok((self.decoded, next_token))
    }
}

impl DecodedPage {
    fn take(
        &mut self,
        item: Item<'_>,
        lenient: bool,
        info: &ResponseInfo,
    ) -> Result<(), ParseError> {
        self.received += 1;
        let text = match item {
            Item::Batch(batch) => {
                self.page.push(batch);
                return Ok(());
            }
            Item::Text(text) => text,
        };
        let read = Batch::read(text);
        if let Some(flaw) = read.flaws.first() {
            let id = read
                .batch
                .as_ref()
                .map_or_else(String::new, |batch| format!(" (`{}`)", brief(&batch.id())));
            let item = format!(
                "{info}, batch {}{id}: {}",
                self.received,
                brief(&flaw.to_string())
            );
            if !lenient {
                return Err(ParseError::Broken(item));
            }
            self.issues.flawed += 1;
            self.issues.skipped += u64::from(read.batch.is_none());
            self.issues.example.get_or_insert(item);
        }
        self.issues.absent |= read.absent;
        if let Some(batch) = read.batch {
            self.page.push(batch);
        }
        Ok(())
    }
}
