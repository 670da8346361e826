//! The table: rows, goals, and how they are printed.

use std::time::Duration;

/// The goal of a figure.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    smaller_is_better: bool,
    bar: f64,
    moonshot: Option<f64>,
    unit: &'static str,
}

impl Goal {
    pub(crate) const fn at_most(bar: f64, moonshot: f64, unit: &'static str) -> Self {
        Self {
            smaller_is_better: true,
            bar,
            moonshot: Some(moonshot),
            unit,
        }
    }

    pub(crate) const fn at_least(bar: f64, moonshot: f64, unit: &'static str) -> Self {
        Self {
            smaller_is_better: false,
            bar,
            moonshot: Some(moonshot),
            unit,
        }
    }

    pub(crate) const fn without_moonshot(mut self) -> Self {
        self.moonshot = None;
        self
    }

    fn words(&self, limit: f64) -> String {
        let sign = if self.smaller_is_better { "<=" } else { ">=" };
        format!("{sign} {}{}", (limit * 100.0).round() / 100.0, self.unit)
    }

    fn holds(&self, value: f64, limit: f64) -> bool {
        if self.smaller_is_better {
            value <= limit
        } else {
            value >= limit
        }
    }
}

/// One line of the table.
pub(crate) struct Line {
    work: String,
    measured: String,
    goal: Option<Goal>,
    value: Option<f64>,
}

impl Line {
    /// A figure with a goal; `measured` is additional information.
    pub(crate) fn judged(work: &str, value: f64, goal: Goal, measured: &str) -> Self {
        Self {
            work: work.to_owned(),
            measured: format!("{value:.2}{} ({measured})", goal.unit),
            goal: Some(goal),
            value: Some(value),
        }
    }

    /// A goal whose figure cannot be measured here.
    pub(crate) fn missing(work: &str, goal: Goal, why: &str) -> Self {
        Self {
            work: work.to_owned(),
            measured: why.to_owned(),
            goal: Some(goal),
            value: None,
        }
    }

    /// A figure without a goal.
    pub(crate) fn told(work: &str, measured: &str) -> Self {
        Self {
            work: work.to_owned(),
            measured: measured.to_owned(),
            goal: None,
            value: None,
        }
    }

    pub(crate) fn print(&self, row: &str) {
        let none = || "-".to_owned();
        let bar = self.goal.map_or_else(none, |goal| goal.words(goal.bar));
        let moonshot = self
            .goal
            .and_then(|goal| Some(goal.words(goal.moonshot?)))
            .unwrap_or_else(none);
        let met = match (self.goal, self.value) {
            (Some(goal), Some(value)) => {
                if goal.moonshot.is_some_and(|limit| goal.holds(value, limit)) {
                    "moonshot"
                } else if goal.holds(value, goal.bar) {
                    "bar"
                } else {
                    "no"
                }
            }
            _ => "-",
        };
        let work = format!("{row}: {}", self.work);
        print_cells([&work, &self.measured, &bar, &moonshot, met]);
    }
}

/// Lines are printed as soon as they are measured, so the widths are fixed.
const WIDTHS: [usize; 5] = [49, 66, 13, 11, 8];

fn print_cells(cells: [&str; 5]) {
    let padded: Vec<_> = cells
        .into_iter()
        .zip(WIDTHS)
        .map(|(cell, width)| format!("{cell:width$}"))
        .collect();
    println!("| {} |", padded.join(" | "));
}

pub(crate) fn print_head() {
    print_cells(["work", "measured", "bar", "moonshot", "met"]);
    let dashes = WIDTHS.map(|width| "-".repeat(width));
    print_cells(dashes.each_ref().map(String::as_str));
}

/// Formats a number as `1,000,000`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the median of the values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Formats a short time in milliseconds, a longer one in seconds.
pub(crate) fn time(seconds: f64) -> String {
    if seconds < 0.02 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.3} s")
    }
}

/// Formats a time that may be unknown.
pub(crate) fn known(time_of: Option<Duration>) -> String {
    time_of.map_or_else(|| "not known".to_owned(), |it| time(it.as_secs_f64()))
}
