//! Keeps the most recent batches one by one, for the charts and the list of batches that need attention.

use super::format::hide_emails;
use super::parse::BatchNumbers;
use crate::analysis::judgement::BatchValues;
use crate::analysis::statistics::{Decimal, Period, Step};
use crate::batch::{ANALYSIS_LINK, BATCH_NAME, Batch, COMMENT, CROP_TYPE, SCANNED_BY, WARNINGS};
use crate::text::brief;

/// The number of batches to keep besides those of the newest step: far more than a page shows.
pub(super) const MAX_KEPT: usize = 5000;
/// The maximum number of batches of the newest step to keep, to limit memory.
pub(super) const MAX_OF_STEP: usize = 20_000;

/// The number of characters to keep of a text: far more than are shown.
const MAX_CHARACTERS: usize = 1000;

/// The parts of a batch that the page shows. Texts are only shortened when they are shown.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// The time on the clock on the wall, in seconds since 1970.
    pub(super) created: i64,
    pub(super) id: String,
    name: Option<String>,
    /// Empty if the batch has no crop.
    pub(super) crop: String,
    pub(super) germination_rate: Option<Decimal>,
    pub(super) usable_rate: Option<Decimal>,
    pub(super) variation: Option<Decimal>,
    /// `None` if it is not a web link.
    pub(super) link: Option<String>,
    comment: Option<String>,
    email: Option<String>,
    pub(super) has_warning: bool,
}

/// The most recent of all batches, received in any order.
pub(super) struct RecentBatches {
    step: Step,
    /// Later batches are in the future.
    now: i64,
    scans: Vec<Scan>,
    /// Older batches are ignored.
    floor: Option<i64>,
    /// The number of batches at which the oldest are dropped.
    limit: usize,
    /// Whether texts may contain e-mail addresses.
    has_emails: bool,
}

impl RecentBatches {
    pub(super) fn new(step: Step, now: i64, has_emails: bool) -> Self {
        Self {
            step,
            now,
            scans: Vec::new(),
            floor: None,
            limit: 2 * MAX_KEPT,
            has_emails,
        }
    }

    pub(super) fn add(&mut self, batch: &Batch, numbers: &BatchNumbers) {
        let Some(created) = numbers.created else {
            return;
        };
        if self.floor.is_some_and(|floor| created < floor) {
            return;
        }
        let scan = Scan::of(batch, created, numbers, self.has_emails);
        self.scans.push(scan);
        if self.scans.len() >= self.limit {
            self.prune();
        }
    }

    /// Returns the batches, newest first. `prune` must have been called after the last one.
    pub(super) fn scans(&self) -> &[Scan] {
        &self.scans
    }

    /// Returns the number of batches of `period`.
    pub(super) fn count(&self, period: Period) -> u64 {
        let scans = self.scans.iter();
        let scans = scans.filter(|scan| self.step.period(scan.created) == period);
        scans.count() as u64
    }

    /// Returns whether older batches were dropped.
    pub(super) fn has_dropped(&self) -> bool {
        self.floor.is_some()
    }

    /// Sorts the batches, newest first, and drops the oldest if there are too many.
    pub(super) fn prune(&mut self) {
        self.scans
            .sort_unstable_by(|left, right| right.order().cmp(&left.order()));
        let newest = self.scans.iter().find(|scan| scan.created <= self.now);
        let newest = newest.map(|scan| self.step.period(scan.created));
        let of_step = newest.map_or(0, |newest| {
            let first = newest.first();
            self.scans.partition_point(|scan| scan.created >= first)
        });
        let kept = of_step.min(MAX_OF_STEP) + MAX_KEPT;
        self.limit = 2 * kept;
        if self.scans.len() > kept {
            self.scans.truncate(kept);
            self.floor = self.scans.last().map(|scan| scan.created);
        }
    }
}

impl Scan {
    fn of(batch: &Batch, created: i64, numbers: &BatchNumbers, has_emails: bool) -> Self {
        let text = |column: usize| -> Option<String> {
            let text = batch.typed(column)?;
            (!text.is_empty()).then(|| text.chars().take(MAX_CHARACTERS).collect())
        };
        let without_emails = |column: usize| {
            let text = text(column)?;
            Some(if has_emails { text } else { hide_emails(&text) })
        };
        let link = batch.typed(ANALYSIS_LINK);
        let link = link.filter(|link| is_web(link));
        Self {
            created,
            id: batch.id().into_owned(),
            name: without_emails(BATCH_NAME),
            crop: batch.typed(CROP_TYPE).map_or_else(String::new, Into::into),
            germination_rate: numbers.germination_rate,
            usable_rate: numbers.usable_rate,
            variation: numbers.variation,
            link: link.map(Into::into),
            comment: without_emails(COMMENT),
            email: text(SCANNED_BY),
            has_warning: batch.typed(WARNINGS).as_deref() == Some("true"),
        }
    }

    /// Returns the name, shortened to one line and escaped.
    pub(super) fn name(&self) -> String {
        brief(self.name.as_ref().unwrap_or(&self.id))
    }

    pub(super) fn comment(&self) -> String {
        self.comment.as_deref().map(brief).unwrap_or_default()
    }

    pub(super) fn email(&self) -> String {
        self.email.as_deref().map(brief).unwrap_or_default()
    }

    /// Returns the values that decide whether it needs attention.
    pub(super) fn values(&self) -> BatchValues {
        BatchValues {
            usable_rate: self.usable_rate,
            germination_rate: self.germination_rate,
            variation: self.variation,
            has_warning: self.has_warning,
        }
    }

    /// The sort key: the same batches always have the same order.
    fn order(&self) -> (i64, &str) {
        (self.created, &self.id)
    }
}

/// Returns whether a link is a web link of reasonable length.
fn is_web(link: &str) -> bool {
    const LONGEST: usize = 2000;
    let lower = link.get(..8).unwrap_or(link).to_ascii_lowercase();
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| lower.starts_with(scheme).then(|| &link[scheme.len()..]));
    link.len() <= LONGEST
        && !link
            .chars()
            .any(|character| character.is_control() || character == ' ')
        && rest.is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::is_web;

    #[test]
    fn only_web_links_are_allowed() {
        for link in ["https://a.example/x", "http://a", "HTTPS://A.example"] {
            assert!(is_web(link), "{link}");
        }
        for link in [
            "javascript:alert(1)",
            "data:text/html,x",
            "https://",
            " https://a",
            "https://a\n",
            "//a.example",
            "vbscript:x",
            "ftp://a",
            "httpß://",
            "",
        ] {
            assert!(!is_web(link), "{link}");
        }
    }
}
