//! The status as text: a calendar of what is complete, and the last runs.

use std::fmt::Write as _;

use chrono::{DateTime, Datelike as _, Months, NaiveDate, Utc};

use super::Status;
use crate::archive::{Span, read_second};
use crate::batch::range::written;
use crate::commands::messages::count;
use crate::terminal;
use crate::text;

/// Maximum number of months to show.
const MONTHS: u32 = 24;
const DAY: i64 = 86_400;

impl Status {
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{}\n", text::one_line(&self.path.display().to_string()));
        let owner = self.owner.as_ref();
        let owner = owner.map_or_else(|| "no service yet".to_owned(), ToString::to_string);
        let mut batches = count(self.batches, "batch", "batches");
        if self.vanished > 0 {
            // Writing to a string cannot fail, here and below.
            let _ = write!(batches, ", and {} vanished", self.vanished);
        }
        let gaps = self.coverage.gaps(self.since);
        let _ = write!(
            text,
            "  belongs to  {}\n  contains    {batches}\n  complete    {}\n",
            text::one_line(&owner),
            self.complete(),
        );
        for (start, end) in &gaps {
            let start = start.map_or_else(|| "the beginning".to_owned(), written);
            let _ = writeln!(text, "  gap         {start} through {}", written(*end));
        }
        let now = Utc::now().timestamp();
        text.push_str(&self.calendar(now));
        text.push_str(&self.last_runs());
        text.push_str(&self.failed_runs());
        text
    }

    fn complete(&self) -> String {
        let Some(end) = self.coverage.end().map(written) else {
            return "nothing yet".to_owned();
        };
        let start = self
            .since
            .map_or_else(|| "the beginning".to_owned(), written);
        match self.coverage.gaps(self.since).len() as u64 {
            0 => format!("from {start} through {end}"),
            gaps => {
                let gaps = count(gaps, "gap", "gaps");
                format!("from {start} through {end}, except for {gaps}")
            }
        }
    }

    /// Returns one row per month with one mark per day: complete, partial or missing.
    fn calendar(&self, now: i64) -> String {
        let months = self.shown_months(now);
        let Some(first) = months.first() else {
            return String::new();
        };
        let mut text = String::from("\n         1    5    10   15   20   25   30  batches\n");
        let count_of = |name: &str| {
            let found = self.months.iter().find(|(month, _)| month == name);
            found.map_or(0, |(_, count)| *count)
        };
        for month in &months {
            let name = month.format("%Y-%m").to_string();
            let days = month.iter_days().take(31).map(|day| match day.month() {
                other if other != month.month() => ' ',
                _ => self.mark(day, now),
            });
            let days: String = days.collect();
            let _ = writeln!(text, "{name}  {days}  {:>7}", count_of(&name));
        }
        let first = first.format("%Y-%m").to_string();
        let earlier = self.months.iter().filter(|(month, _)| *month < first);
        let earlier: u64 = earlier.map(|(_, count)| count).sum();
        if earlier > 0 {
            let _ = writeln!(text, "earlier  {:31}  {earlier:>7}", "");
        }
        text.push_str("█ complete   ▒ partial   · missing\n");
        text
    }

    fn shown_months(&self, now: i64) -> Vec<NaiveDate> {
        let month_of = |second: i64| {
            let date = DateTime::from_timestamp(second, 0)?.date_naive();
            date.with_day(1)
        };
        let end = self.coverage.end().unwrap_or(now);
        let last = month_of(end.max(now.min(self.newest())));
        let named = |name: &str| NaiveDate::parse_from_str(&format!("{name}-01"), "%Y-%m-%d").ok();
        let oldest = self.months.iter().find_map(|(month, _)| named(month));
        let since = self.since.and_then(month_of);
        let first = since.into_iter().chain(oldest).min();
        let (Some(first), Some(last)) = (first, last) else {
            return Vec::new();
        };
        let most = last.checked_sub_months(Months::new(MONTHS - 1));
        let first = first.max(most.unwrap_or(first));
        let next = |month: &NaiveDate| month.checked_add_months(Months::new(1));
        let months = std::iter::successors(Some(first), next);
        months.take_while(|month| *month <= last).collect()
    }

    /// Returns a time near the end of the month of the newest batch.
    fn newest(&self) -> i64 {
        let newest = self.months.last();
        let newest = newest.and_then(|(month, _)| read_second(&format!("{month}-28T00:00:00Z")));
        newest.unwrap_or(0)
    }

    fn mark(&self, day: NaiveDate, now: i64) -> char {
        let start = day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
        let end = start + DAY;
        if start > now {
            return ' ';
        }
        let spans = self.coverage.spans();
        let is_whole =
            |span: &Span| span.start.is_none_or(|first| first <= start) && span.end >= end;
        let is_part = |span: &Span| span.start.is_none_or(|first| first < end) && span.end > start;
        if spans.iter().any(is_whole) {
            '█'
        } else if spans.iter().any(is_part) {
            '▒'
        } else {
            '·'
        }
    }

    fn last_runs(&self) -> String {
        if self.runs.is_empty() {
            return String::new();
        }
        let header = [
            "last runs",
            "outcome",
            "from",
            "requests",
            "added",
            "changed",
            "unchanged",
            "vanished",
        ];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for run in &self.runs {
            let kind = if run.full { " (full)" } else { "" };
            rows.push(vec![
                run.started.clone(),
                format!("{}{kind}", run.outcome.name()),
                run.range_start
                    .clone()
                    .unwrap_or_else(|| "the beginning".to_owned()),
                run.requests.to_string(),
                run.added.to_string(),
                run.changed.to_string(),
                run.unchanged.to_string(),
                run.vanished.to_string(),
            ]);
        }
        format!("\n{}", terminal::grid(&rows, &[3, 4, 5, 6, 7]))
    }

    /// Returns the runs that did not complete: what they requested, and why they ended.
    fn failed_runs(&self) -> String {
        if self.failed_runs.is_empty() {
            return String::new();
        }
        let header = ["failed runs", "exit code", "asked for", "cause"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for run in &self.failed_runs {
            let start = run.range_start.as_deref().unwrap_or("the beginning");
            let end = run.range_end.as_deref();
            let code = run.exit_code.map(|code| code.to_string());
            rows.push(vec![
                run.started.clone(),
                code.unwrap_or_else(|| "none".to_owned()),
                end.map_or_else(String::new, |end| format!("{start} through {end}")),
                run.message.clone().unwrap_or_default(),
            ]);
        }
        format!("\n{}", terminal::grid(&rows, &[1]))
    }
}
