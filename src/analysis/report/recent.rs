//! Keeps the most recent batches one by one, for the charts and the list of batches that need attention.

use std::cmp::Ordering;

use super::format::{hide_emails, is_email};
use super::parse::BatchNumbers;
use super::svg::Escaped;
use crate::analysis::judgement::BatchValues;
use crate::analysis::statistics::{Decimal, ExactValue, Period, Step};
use crate::batch::{ANALYSIS_LINK, BATCH_NAME, Batch, COMMENT, SCANNED_BY};
use crate::text::{is_blank, shortened};

/// The number of batches to keep besides those of the newest step: far more than a page shows.
pub(super) const MAX_KEPT: usize = 5000;
/// The maximum number of batches of the newest step to keep, to limit memory.
const MAX_OF_STEP: usize = 20_000;

/// The number of characters to keep of a text: far more than are shown.
const MAX_CHARACTERS: usize = 1000;

/// The parts of a batch that the page shows. Texts are only shortened, and addresses hidden, when they are shown.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// The time on the clock on the wall, in seconds since 1970.
    pub(super) created: i64,
    pub(super) germination_rate: Option<Decimal>,
    pub(super) usable_rate: Option<Decimal>,
    pub(super) variation: Option<Decimal>,
    pub(super) has_warning: bool,
    has_emails: bool,
    /// The texts, one after another: most batches are dropped again, so each has only one allocation.
    texts: Box<str>,
    /// The end of each [`ScanText`].
    ends: [usize; 6],
}

/// A text of a [`Scan`]. Empty if absent.
#[derive(Clone, Copy)]
enum ScanText {
    Id,
    Name,
    Crop,
    Link,
    Comment,
    Email,
}

/// The most recent of all batches, received in any order.
pub(super) struct RecentBatches {
    step: Step,
    /// Later batches are in the future.
    now: i64,
    /// Newest first, once `finish` was called after the last one.
    pub(super) scans: Vec<Scan>,
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

    pub(super) fn add(&mut self, batch: &Batch, crop: &str, numbers: &BatchNumbers) {
        let Some(created) = numbers.created else {
            return;
        };
        if self.floor.is_some_and(|floor| created < floor) {
            return;
        }
        let scan = Scan::of(batch, created, crop, numbers, self.has_emails);
        self.scans.push(scan);
        if self.scans.len() >= self.limit {
            self.drop_oldest();
        }
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

    /// Sorts the batches, newest first.
    pub(super) fn finish(&mut self) {
        self.drop_oldest();
        self.scans.sort_unstable_by(Scan::newest_first);
    }

    /// Drops the oldest batches if there are too many.
    fn drop_oldest(&mut self) {
        let created = self.scans.iter().map(|scan| scan.created);
        let newest = created.clone().filter(|second| *second <= self.now).max();
        let of_step = newest.map_or(0, |newest| {
            let first = self.step.period(newest).first();
            created.filter(|second| *second >= first).count()
        });
        let kept = of_step.min(MAX_OF_STEP) + MAX_KEPT;
        self.limit = kept + kept / 2;
        if self.scans.len() > kept {
            let oldest = kept - 1;
            self.scans
                .select_nth_unstable_by(oldest, Scan::newest_first);
            self.floor = Some(self.scans[oldest].created);
            self.scans.truncate(kept);
        }
    }
}

impl Scan {
    fn of(
        batch: &Batch,
        created: i64,
        crop: &str,
        numbers: &BatchNumbers,
        has_emails: bool,
    ) -> Self {
        let text = |column: usize| batch.typed(column).unwrap_or_default();
        let (name, comment, email) = (text(BATCH_NAME), text(COMMENT), text(SCANNED_BY));
        let link = batch.typed(ANALYSIS_LINK);
        let link = link.filter(|link| is_web(link)).unwrap_or_default();
        // In the order of `ScanText`.
        let texts: [&str; 6] = [
            &batch.id(),
            start(&name),
            crop,
            &link,
            start(&comment),
            start(&email),
        ];
        let mut end = 0;
        Self {
            created,
            germination_rate: numbers.germination_rate.map(ExactValue::decimal),
            usable_rate: numbers.usable_rate.map(ExactValue::decimal),
            variation: numbers.variation.map(ExactValue::decimal),
            has_warning: numbers.has_warning,
            has_emails,
            texts: texts.concat().into(),
            ends: texts.map(|text| {
                end += text.len();
                end
            }),
        }
    }

    fn text(&self, which: ScanText) -> &str {
        let which = which as usize;
        let start = which.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[start..self.ends[which]]
    }

    /// Returns a text without e-mail addresses, unless they may be shown, shortened to one line and escaped.
    fn shown(&self, which: ScanText) -> String {
        let text = self.text(which);
        if self.has_emails {
            shortened(text)
        } else {
            shortened(&hide_emails(text))
        }
    }

    /// Returns the name, shortened to one line and escaped.
    pub(super) fn name(&self) -> String {
        self.shown(if is_blank(self.text(ScanText::Name)) {
            ScanText::Id
        } else {
            ScanText::Name
        })
    }

    /// Returns the crop. Empty if the batch has none.
    pub(super) fn crop(&self) -> &str {
        self.text(ScanText::Crop)
    }

    /// Returns the link to the analysis. `None` if it is not a web link, or contains an e-mail address that may not be shown.
    pub(super) fn link(&self) -> Option<String> {
        let link = self.text(ScanText::Link);
        let decoded = link.replace("%40", "@");
        let has_email = decoded.split(['/', '?', '#', '&', ';', '=']).any(is_email);
        (!link.is_empty() && (self.has_emails || !has_email)).then(|| link.to_owned())
    }

    pub(super) fn comment(&self) -> String {
        self.shown(ScanText::Comment)
    }

    pub(super) fn email(&self) -> String {
        shortened(self.text(ScanText::Email))
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

    /// The order of the list: the same batches always have the same order.
    fn newest_first(&self, other: &Self) -> Ordering {
        let created = other.created.cmp(&self.created);
        created.then_with(|| other.text(ScanText::Id).cmp(self.text(ScanText::Id)))
    }
}

/// The room that is left for links on a part of the page, in bytes.
pub(super) struct LinkBudget(pub(super) usize);

impl LinkBudget {
    /// Returns the link of a batch. `None` from the first one on that does not fit.
    pub(super) fn take(&mut self, scan: &Scan) -> Option<String> {
        let link = scan.link()?;
        let size = Escaped(&link).to_string().len();
        let left = self.0.checked_sub(size);
        self.0 = left.unwrap_or(0);
        left.map(|_| link)
    }
}

/// Returns as much of a text as is kept.
fn start(text: &str) -> &str {
    if text.len() <= MAX_CHARACTERS {
        return text;
    }
    let end = text.char_indices().nth(MAX_CHARACTERS);
    end.map_or(text, |(end, _)| &text[..end])
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
    use super::*;
    use crate::analysis::statistics::Measurements;

    #[test]
    fn the_newest_batches_are_kept_in_whatever_order_they_arrive() {
        const DAY: i64 = 86_400;
        let text = r#"{"batch_id":"a","batch_name":"x@y.z n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"comment":"c","warnings":true}"#;
        let batch = Batch::read(text).batch.expect("a batch");
        let mut numbers = BatchNumbers::of(&batch, &Measurements::of(&batch));
        // One a minute for fifteen days; the last day has begun, and the last two are in the future.
        let (count, now) = (15 * 1440, 13 * DAY);
        let mut minutes: Vec<i64> = (0..count).collect();
        for is_shuffled in [false, true] {
            let mut recent = RecentBatches::new(Step::Day, now, false);
            if is_shuffled {
                fastrand::Rng::with_seed(1).shuffle(&mut minutes);
            }
            for minute in &minutes {
                numbers.created = Some(minute * 60);
                recent.add(&batch, "crop", &numbers);
            }
            recent.finish();
            let kept = 5000 + 2 * 1440;
            let created: Vec<i64> = recent.scans.iter().map(|scan| scan.created).collect();
            let expected: Vec<i64> = (count - kept..count)
                .rev()
                .map(|minute| minute * 60)
                .collect();
            assert!(created == expected, "shuffled: {is_shuffled}");
            assert!(recent.has_dropped());
        }
        let scan = Scan::of(&batch, 0, "crop", &numbers, false);
        assert_eq!(scan.name(), "(e-mail hidden) n");
        assert_eq!(
            (scan.crop(), scan.link(), scan.email()),
            ("crop", None, String::new())
        );
        assert_eq!((scan.comment(), scan.has_warning), ("c".to_owned(), true));
    }

    #[test]
    fn a_name_that_cannot_be_seen_is_replaced_by_the_id() {
        for (name, shown) in [("", "a"), (" ", "a"), ("\u{a0}\u{200b}", "a"), (" b", " b")] {
            let text = format!(
                r#"{{"batch_id":"a","batch_name":"{name}","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"warnings":true}}"#
            );
            let batch = Batch::read(&text).batch.expect("a batch");
            let numbers = BatchNumbers::of(&batch, &Measurements::of(&batch));
            let scan = Scan::of(&batch, 0, "crop", &numbers, false);
            assert_eq!(scan.name(), shown);
        }
    }

    #[test]
    fn addresses_in_ids_and_links_are_hidden() {
        let text = |link: &str| {
            format!(
                r#"{{"batch_id":"a@b.example","batch_name":"","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"warnings":true,"analysis_link":"{link}"}}"#
            )
        };
        for (link, is_hidden) in [
            ("https://a.example/?u=a@b.example", true),
            ("https://a.example/?u=a%40b.example", true),
            ("https://a@b.example/1", true),
            ("https://a.example/1", false),
            ("https://a.example/tray@2x/1.5", false),
        ] {
            let batch = Batch::read(&text(link)).batch.expect("a batch");
            let numbers = BatchNumbers::of(&batch, &Measurements::of(&batch));
            let scan = |has_emails| Scan::of(&batch, 0, "crop", &numbers, has_emails);
            assert_eq!(scan(false).name(), "(e-mail hidden)");
            assert_eq!(scan(true).name(), "a@b.example");
            assert_eq!(scan(false).link().is_none(), is_hidden, "{link}");
            assert_eq!(scan(true).link().as_deref(), Some(link));
        }
    }

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
