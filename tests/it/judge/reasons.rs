//! The reasons why a batch of a crop needs attention.

use super::numbers::{POINT, deviation, distinct, median, rounded, shortest};
use super::{Crop, GERMINATION, Pick, Tray, USABLE, is_missed, newest_first, values};

/// A batch that may need attention.
#[derive(Debug)]
pub(crate) struct Flagged<'a> {
    pub(crate) tray: &'a Tray,
    /// As the page words them, the most serious first.
    pub(crate) reasons: Vec<String>,
    /// Whether it is a total failure.
    pub(crate) has_failed: bool,
    /// How far the usable rate is below the target or the usual rate of the crop, whichever is more.
    pub(crate) below: i128,
}

impl<'a> Crop<'a> {
    /// Returns all batches of the step with the reasons why they need attention, failures and then the
    /// lowest first.
    pub(crate) fn flagged(&self) -> Vec<Flagged<'a>> {
        let usual = Usual::of(self);
        let newest = self.newest.iter();
        let mut all: Vec<Flagged<'a>> = newest.map(|tray| self.flag(tray, &usual)).collect();
        all.sort_by_key(|flagged| {
            (
                !flagged.has_failed,
                flagged.tray.usable.is_none(),
                -flagged.below,
                newest_first(flagged.tray),
            )
        });
        all
    }

    fn flag(&self, tray: &'a Tray, usual: &Usual) -> Flagged<'a> {
        let failures = failures(tray, usual);
        let has_failed = !failures.is_empty();
        let others = self.missed_targets(tray).into_iter();
        let others = others
            .chain(unusually_low(tray, usual))
            .chain(warning(tray));
        let reasons: Vec<String> = failures.into_iter().chain(others).collect();
        let target = self.target.and_then(|target| target.usable);
        let levels = [target, usual.usable];
        let below = |rate: i128| levels.into_iter().flatten().map(|level| level - rate).max();
        Flagged {
            tray,
            reasons,
            has_failed,
            below: tray.usable.and_then(below).unwrap_or(0),
        }
    }

    /// Returns the values that a batch of the step is compared with: those of the four steps before, or of the
    /// whole range if they are fewer than three.
    fn usual(&self, pick: Pick) -> Vec<i128> {
        let before = values(&self.before, pick);
        if before.len() < 3 {
            values(&self.all, pick)
        } else {
            before
        }
    }

    fn missed_targets(&self, tray: &Tray) -> Vec<String> {
        let target = self.target.unwrap_or_default();
        let limits = [
            ("usable", target.usable, tray.usable),
            ("germination", target.germination, tray.germination),
            ("CV", target.variation, tray.variation),
        ];
        let missed = limits.into_iter().filter_map(|(field, limit, value)| {
            let (value, limit) = value.zip(limit)?;
            let (own, shown) = (distinct(value, limit), shortest(limit));
            let words = match field {
                "usable" => format!("below target of {shown} %"),
                "CV" => format!("CV {own} %, above target of {shown} %"),
                _ => format!("germination {own} %, below target of {shown} %"),
            };
            is_missed(field, value, limit).then_some(words)
        });
        missed.collect()
    }
}

/// What is usual for a crop.
struct Usual {
    usable: Option<i128>,
    deviation: Option<i128>,
    germination: Option<i128>,
}

impl Usual {
    fn of(crop: &Crop<'_>) -> Self {
        let usable = crop.usual(USABLE);
        Self {
            usable: median(&usable),
            deviation: deviation(&usable),
            germination: median(&crop.usual(GERMINATION)),
        }
    }
}

/// A rate of 0, or below half of the median of its crop.
fn failures(tray: &Tray, usual: &Usual) -> Vec<String> {
    let half = |rate: Option<i128>, middle: Option<i128>| {
        let (rate, middle) = rate.zip(middle)?;
        (rate > 0 && 2 * rate < middle).then(|| format!("{} %", rounded(middle)))
    };
    let is_zero = |rate: Option<i128>| rate.is_some_and(|rate| rate <= 0);
    let reasons = [
        is_zero(tray.germination).then(|| "nothing germinated".to_owned()),
        is_zero(tray.usable).then(|| "no usable seedlings".to_owned()),
        half(tray.usable, usual.usable)
            .map(|usual| format!("less than half of its crop's usual {usual}")),
        half(tray.germination, usual.germination)
            .map(|usual| format!("germination less than half of the usual {usual}")),
    ];
    reasons.into_iter().flatten().collect()
}

/// More than three deviations and at least a point below the median.
fn unusually_low(tray: &Tray, usual: &Usual) -> Option<String> {
    let middle = usual.usable?;
    let below = middle - tray.usable?;
    let is_low = below > 3 * usual.deviation? && below >= POINT;
    is_low.then(|| {
        format!(
            "unusually low, the median of its crop is {} %",
            rounded(middle)
        )
    })
}

fn warning(tray: &Tray) -> Option<String> {
    let is_empty = tray.usable.is_none() && tray.germination.is_none();
    let words = if is_empty {
        "warning, no measurements"
    } else {
        "warning"
    };
    tray.has_warning.then(|| words.to_owned())
}

impl Flagged<'_> {
    /// Returns the one short reason that the page shows. If the crop is down, it does not say what is usual.
    pub(crate) fn reason(&self, is_down: bool) -> String {
        let Some(first) = self.reasons.first().cloned() else {
            return String::new();
        };
        let is_warning = first.starts_with("warning");
        let mut parts = vec![match first {
            first if is_down && first.starts_with("unusually low") => "unusually low".to_owned(),
            first if is_down && first.starts_with("below target") => "below target".to_owned(),
            first => first,
        }];
        if self.tray.has_warning && !is_warning {
            parts.push("with a warning".to_owned());
        }
        parts.join(", ")
    }

    /// Returns the usable rate as the page shows it. It does not look like the target that it misses.
    pub(crate) fn rate(&self, crop: &Crop<'_>) -> String {
        let target = crop.target.and_then(|target| target.usable);
        let first = self.reasons.first();
        let is_told = first.is_some_and(|first| first.starts_with("below target"));
        match (self.tray.usable, target) {
            (None, _) => "no rate".to_owned(),
            (Some(rate), Some(target)) if is_told => format!("{} %", distinct(rate, target)),
            (Some(rate), _) => format!("{} %", rounded(rate)),
        }
    }
}
