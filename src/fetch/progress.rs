//! Estimates the progress through a range from the dates of batches, for the progress bar.

use chrono::Utc;

use crate::batch::Page;
use crate::batch::page::PageSpan;
use crate::batch::range::Range;

/// The progress through a range.
#[derive(Debug)]
pub(super) struct Progress {
    range: Range,
    /// Both ends, and the position of the latest page between them; `None` before the first page.
    position: Option<(i64, i64, i64)>,
    /// No estimate is possible: batches are not in date order, or the range is open at its far end.
    is_unknown: bool,
}

impl Progress {
    pub(super) fn new(range: Range) -> Self {
        Self {
            range,
            position: None,
            is_unknown: false,
        }
    }

    /// Adds a page; returns the fraction of the range that is done, from 0 to 1.
    pub(super) fn add(&mut self, page: &Page) -> Option<f64> {
        let PageSpan {
            first: begins,
            last: ends,
            ..
        } = page.span()?;
        let (first, last, reached) = match self.position {
            Some(position) => position,
            None => self.guess_ends(begins, ends)?,
        };
        let forward = last >= first;
        // A page in the opposite direction shows that there is no order. The same window may be received
        // twice.
        self.is_unknown |= ends != begins && (ends > begins) != forward;
        if self.is_unknown {
            return None;
        }
        let reached = if forward {
            ends.max(reached)
        } else {
            ends.min(reached)
        };
        self.position = Some((first, last, reached));
        let whole = last.abs_diff(first).max(1);
        let done = reached.abs_diff(first).min(whole);
        #[allow(clippy::cast_precision_loss, reason = "for display only")]
        Some(done as f64 / whole as f64)
    }

    /// Returns both ends of the range and the first position, by the dates of the first page.
    fn guess_ends(&mut self, begins: i64, ends: i64) -> Option<(i64, i64, i64)> {
        let now = Utc::now().timestamp();
        let end = self.range.end.map_or(now, |end| end.min(now));
        if ends >= begins {
            let first = self.range.start.unwrap_or(begins);
            return Some((first, end, first));
        }
        let first = self.range.end.map_or(begins, |_| end.max(begins));
        self.is_unknown |= self.range.start.is_none();
        self.range.start.map(|start| (first, start, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;

    fn page(seconds: &[i64]) -> Page {
        let mut page = Page::for_tests();
        for second in seconds {
            let date = crate::batch::range::written(*second);
            let text = format!(
                r#"{{"batch_id":"{second}","batch_name":"n","batch_creation_date":"{date}","number_of_images":1,"warnings":true}}"#
            );
            page.push(Batch::read(&text).batch.expect("a batch"));
        }
        page
    }

    #[test]
    fn the_share_grows_with_the_dates_in_either_direction() {
        let mut progress = Progress::new(Range::between(Some(1000), Some(2000)));
        assert_eq!(progress.add(&page(&[1100, 1250])), Some(0.25));
        assert_eq!(
            progress.add(&page(&[1100, 1200])),
            Some(0.25),
            "a repeated page"
        );
        assert_eq!(progress.add(&page(&[])), None);
        assert_eq!(progress.add(&page(&[1500, 1750])), Some(0.75));
        let mut backwards = Progress::new(Range::between(Some(1000), Some(2000)));
        assert_eq!(backwards.add(&page(&[1900, 1500])), Some(0.5));
        assert_eq!(backwards.add(&page(&[1000])), Some(1.0));
    }

    #[test]
    fn open_ends_are_guessed_and_no_order_says_nothing() {
        let now = Utc::now().timestamp();
        let mut open = Progress::new(Range::between(None, None));
        let share = open.add(&page(&[now - 1000, now - 500])).expect("a share");
        assert!((0.45..0.55).contains(&share), "{share}");
        assert_eq!(open.add(&page(&[now - 400, now - 600])), None, "no order");
        assert_eq!(
            open.add(&page(&[now - 400, now - 300])),
            None,
            "never again"
        );
        let mut no_start = Progress::new(Range::between(None, Some(2000)));
        assert_eq!(no_start.add(&page(&[1900, 1500])), None);
    }
}
