//! The newest batches, one by one: what the charts and the list of what needs attention point at.

use super::parse::BatchNumbers;
use crate::analysis::statistics::Decimal;
use crate::batch::{ANALYSIS_LINK, BATCH_NAME, Batch, COMMENT, CROP_TYPE, SCANNED_BY, WARNINGS};
use crate::text::brief;

/// So many are kept: far more than a page shows.
pub(super) const KEPT: usize = 5000;

/// So many characters of a text are kept: far more than are shown of it.
const CHARACTERS: usize = 1000;

/// One batch, as far as the page shows it. Its texts are as they came: few of them are ever shown.
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
    /// Only where it leads to the web.
    pub(super) link: Option<String>,
    comment: Option<String>,
    email: Option<String>,
    pub(super) warnings: bool,
}

/// The newest batches of all that came, whatever their order.
#[derive(Default)]
pub(super) struct NewestBatches {
    scans: Vec<Scan>,
    /// Older ones need not be looked at.
    floor: Option<i64>,
    /// All that came with a date.
    pub(super) offered: usize,
}

impl NewestBatches {
    pub(super) fn offer(&mut self, batch: &Batch, reading: &BatchNumbers) {
        let Some(created) = reading.created else {
            return;
        };
        self.offered += 1;
        if self.floor.is_some_and(|floor| created < floor) {
            return;
        }
        self.scans.push(Scan::of(batch, created, reading));
        if self.scans.len() >= 2 * KEPT {
            self.prune();
        }
    }

    /// Returns them, newest first.
    pub(super) fn sorted(&self) -> Vec<&Scan> {
        let mut scans: Vec<&Scan> = self.scans.iter().collect();
        scans.sort_unstable_by(|left, right| right.order().cmp(&left.order()));
        scans.truncate(KEPT);
        scans
    }

    fn prune(&mut self) {
        self.scans
            .sort_unstable_by(|left, right| right.order().cmp(&left.order()));
        self.scans.truncate(KEPT);
        self.floor = self.scans.last().map(|scan| scan.created);
    }
}

impl Scan {
    fn of(batch: &Batch, created: i64, reading: &BatchNumbers) -> Self {
        let text = |column: usize| {
            let text = batch.typed(column)?;
            (!text.is_empty()).then(|| text.chars().take(CHARACTERS).collect())
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
            germination_rate: reading.germination_rate,
            usable_rate: reading.usable_rate,
            variation: reading.variation,
            link: link.map(Into::into),
            comment: text(COMMENT),
            email: text(SCANNED_BY),
            warnings: batch.typed(WARNINGS).as_deref() == Some("true"),
        }
    }

    /// What it is called: on one line, and harmless on a screen.
    pub(super) fn name(&self) -> String {
        brief(self.name.as_ref().unwrap_or(&self.id))
    }

    pub(super) fn comment(&self) -> String {
        self.comment.as_deref().map(brief).unwrap_or_default()
    }

    pub(super) fn email(&self) -> String {
        self.email.as_deref().map(brief).unwrap_or_default()
    }

    /// One order for the same batches, whatever order they came in.
    fn order(&self) -> (i64, &str) {
        (self.created, &self.id)
    }
}

/// Tells whether a link leads to the web and nowhere else; overlong ones are no links.
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
    fn only_the_web_is_linked_to() {
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
