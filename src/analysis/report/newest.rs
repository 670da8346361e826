//! Keeps the newest batches one by one, for the charts and the list of batches that need attention.

use super::parse::BatchNumbers;
use crate::analysis::statistics::Decimal;
use crate::batch::{ANALYSIS_LINK, BATCH_NAME, Batch, COMMENT, CROP_TYPE, SCANNED_BY, WARNINGS};
use crate::text::brief;

/// The number of batches to keep: far more than a page shows.
pub(super) const MAX_KEPT: usize = 5000;

/// The number of characters to keep of a text: far more than are shown.
const MAX_CHARACTERS: usize = 1000;

/// The parts of a batch that the page shows. Texts are only shortened when they are shown.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// Seconds since 1970.
    pub(super) created: i64,
    pub(super) id: String,
    name: Option<String>,
    pub(super) crop: Option<String>,
    pub(super) germination_rate: Option<Decimal>,
    pub(super) usable_rate: Option<Decimal>,
    pub(super) variation: Option<Decimal>,
    /// `None` if it is not a web link.
    pub(super) link: Option<String>,
    comment: Option<String>,
    email: Option<String>,
    pub(super) warnings: bool,
}

/// The newest of all batches, received in any order.
#[derive(Default)]
pub(super) struct NewestBatches {
    scans: Vec<Scan>,
    /// Older batches are ignored.
    floor: Option<i64>,
    /// The number of all batches with a date.
    pub(super) dated: usize,
}

impl NewestBatches {
    pub(super) fn add(&mut self, batch: &Batch, numbers: &BatchNumbers) {
        let Some(created) = numbers.created else {
            return;
        };
        self.dated += 1;
        if self.floor.is_some_and(|floor| created < floor) {
            return;
        }
        self.scans.push(Scan::of(batch, created, numbers));
        if self.scans.len() >= 2 * MAX_KEPT {
            self.prune();
        }
    }

    /// Returns the batches, newest first.
    pub(super) fn sorted(&self) -> Vec<&Scan> {
        let mut scans: Vec<&Scan> = self.scans.iter().collect();
        scans.sort_unstable_by(|left, right| right.order().cmp(&left.order()));
        scans.truncate(MAX_KEPT);
        scans
    }

    fn prune(&mut self) {
        self.scans
            .sort_unstable_by(|left, right| right.order().cmp(&left.order()));
        self.scans.truncate(MAX_KEPT);
        self.floor = self.scans.last().map(|scan| scan.created);
    }
}

impl Scan {
    fn of(batch: &Batch, created: i64, numbers: &BatchNumbers) -> Self {
        let text = |column: usize| {
            let text = batch.typed(column)?;
            (!text.is_empty()).then(|| text.chars().take(MAX_CHARACTERS).collect())
        };
        let link = batch.typed(ANALYSIS_LINK);
        let link = link.filter(|link| is_web(link));
        Self {
            created,
            id: batch.id().into_owned(),
            name: text(BATCH_NAME),
            crop: batch
                .typed(CROP_TYPE)
                .filter(|crop| !crop.is_empty())
                .map(Into::into),
            germination_rate: numbers.germination_rate,
            usable_rate: numbers.usable_rate,
            variation: numbers.variation,
            link: link.map(Into::into),
            comment: text(COMMENT),
            email: text(SCANNED_BY),
            warnings: batch.typed(WARNINGS).as_deref() == Some("true"),
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
    use crate::analysis::report::newest::is_web;

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
