//! The verdict: what the newest step means, in up to three sentences.

use std::cmp::Reverse;

use super::attention::Attention;
use super::chart::crop_name;
use super::format::{period_name, prose};
use super::gather::ReportData;
use crate::analysis::judgement::{CropJudgement, MIN_BATCHES, MissedTarget, NewestStep, Verdict};
use crate::analysis::statistics::Decimal;
use crate::text::{self, thousands};

/// The maximum number of crops that a sentence names.
const NAMED: usize = 3;

/// The sentences about the newest step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VerdictText {
    /// The step with its days, such as `Week 46 (9 to 15 November 2026, 5 of 7 days so far)`.
    pub(super) period: String,
    /// The CSS class: `bad` if a crop is in trouble or a batch failed, `good` if all is well, else `open`.
    pub(super) class: &'static str,
    /// Which crops are in trouble. Empty if there is none.
    pub(super) trouble: String,
    /// How many batches need attention. Empty if there is none.
    pub(super) attention: String,
    /// The other crops.
    pub(super) rest: String,
}

impl VerdictText {
    pub(super) fn new(data: &ReportData, newest: &NewestStep<'_>, attention: &Attention) -> Self {
        let share = data.span.share(newest.period);
        let (name, dates) = period_name(newest.period);
        let dates = Some(dates).filter(|dates| !dates.is_empty());
        let period = match &*text::join(dates.into_iter().chain(share), ", ") {
            "" => name,
            details => format!("{name} ({details})"),
        };
        let present: Vec<&CropJudgement<'_>> = newest.present().collect();
        let (bad, others): (Vec<_>, Vec<_>) = present
            .into_iter()
            .partition(|crop| crop.is_down() || !crop.missed.is_empty());
        let cut = newest.cut(data.span.start(), data.step_words().1);
        let is_judged = |crop: &&CropJudgement<'_>| crop.comparison.verdict != Verdict::TooFew;
        let is_unclear = |crop: &&CropJudgement<'_>| crop.comparison.is_unclear();
        let has_good = others.iter().any(is_judged) && !others.iter().any(is_unclear);
        let class = if !bad.is_empty() || attention.has_failure {
            "bad"
        } else if !attention.has_any && has_good {
            "good"
        } else {
            "open"
        };
        Self {
            period,
            class,
            trouble: sentence(newest, &named(&bad, trouble, "in trouble")),
            attention: attended(attention),
            rest: rest(newest, &others, bad.is_empty(), cut, data.step_words()),
        }
    }
}

/// Says how many batches need attention, and how many of them failed.
fn attended(attention: &Attention) -> String {
    let Attention { count, failed, .. } = *attention;
    let is_all = attention.looked_at.is_none();
    let least = if is_all { "" } else { "At least " };
    let needs = text::count(count, "batch needs attention", "batches need attention");
    let crop = attention.failed_crop.as_ref();
    let of = crop.map_or_else(String::new, |crop| format!(" of {crop}"));
    match (count, failed) {
        (0, _) if attention.has_any => "Some batches need attention".to_owned(),
        (0, _) => String::new(),
        (_, 0) => format!("{least}{needs}"),
        (1, _) if is_all => format!("1 batch{of} failed"),
        (count, failed) if count == failed && is_all => {
            format!("{} batches{of} failed", thousands(count))
        }
        _ => format!("{least}{needs}, {}{of} failed", thousands(failed)),
    }
}

/// Describes the crops that are not in trouble.
fn rest(
    newest: &NewestStep<'_>,
    crops: &[&CropJudgement<'_>],
    are_all: bool,
    cut: Option<String>,
    (step, steps): (&str, &str),
) -> String {
    let is = |verdict: Verdict| -> Vec<&CropJudgement<'_>> {
        let found = crops.iter().copied();
        found
            .filter(|crop| crop.comparison.verdict == verdict)
            .collect()
    };
    let (mut up, usual, few) = (is(Verdict::Up), is(Verdict::Usual), is(Verdict::TooFew));
    up.sort_by_key(|crop| Reverse(crop.comparison.change));
    let (unclear, usual): (Vec<_>, Vec<_>) = usual
        .into_iter()
        .partition(|crop| crop.comparison.is_unclear());
    // Crops that were not scanned recently are not missed.
    let absent = newest.crops.iter();
    let absent: Vec<&CropJudgement<'_>> = absent
        .filter(|crop| crop.newest.is_none() && crop.before.batches > 0)
        .collect();
    let absent = match absent.as_slice() {
        [] => String::new(),
        [crop] if crop.name.is_empty() => "no batches without a crop".to_owned(),
        [crop] => format!("no batches of {}", crop_name(crop.name)),
        some => match named_crops(some) {
            (1, _) => "no batches of 1 crop, and none without a crop".to_owned(),
            (count, "") => format!("no batches of {count} crops"),
            (count, _) => format!("no batches of {count} crops, and none without a crop"),
        },
    };
    let absent = match &*absent {
        "" => absent,
        _ => format!("{absent}, unlike in the four {steps} before"),
    };
    if are_all && few.len() == crops.len() {
        let on = if step == "day" { "on" } else { "in" };
        let why = cut.map_or_else(
            || {
                format!(
                    "Too few batches to compare: no crop has 3 batches with a usable rate both {on} this {step} and {on} the four {steps} before."
                )
            },
            |cut| format!("Too few batches to compare. {cut} Begin the range earlier to compare."),
        );
        return text::join(
            [why, sentence(newest, &absent)]
                .into_iter()
                .filter(|text| !text.is_empty()),
            " ",
        );
    }
    let other = if are_all { "" } else { " other" };
    let is_only = usual.len() == newest.crops.len();
    // The sentence before says that batches of them need attention.
    let as_usual = if usual.iter().any(|crop| crop.has_attention) {
        "otherwise as usual"
    } else {
        "as usual"
    };
    let usual = match named_crops(&usual) {
        (0, "") => String::new(),
        (0, _) => format!("the group without a crop is {as_usual}"),
        (1, "") if is_only => format!("the only crop is {as_usual}"),
        (1, and_group) if is_only => format!("the only crop{and_group} are {as_usual}"),
        (2, and_group) if is_only => format!("both crops{and_group} are {as_usual}"),
        (all, and_group) if is_only => format!("all {all} crops{and_group} are {as_usual}"),
        (1, and_group) => format!("1{other} crop{and_group} {as_usual}"),
        (some, and_group) => format!("{some}{other} crops{and_group} {as_usual}"),
    };
    let unclear = match unclear.as_slice() {
        [] => String::new(),
        [crop] => format!("{} varies too much to tell", subject(crop)),
        some => format!("{} vary too much to tell", count_crops(some)),
    };
    let few = match few.as_slice() {
        [] => String::new(),
        [crop] => format!("{} has too few batches to compare", subject(crop)),
        some => format!("{} have too few batches to compare", count_crops(some)),
    };
    let parts = [named(&up, rise, "rose"), usual, unclear, few, absent].into_iter();
    let parts = parts.filter(|part| !part.is_empty());
    sentence(newest, &text::join(parts, "; "))
}

/// Returns how many crops have a name, and words for the batches without one, if there are any.
fn named_crops(crops: &[&CropJudgement<'_>]) -> (usize, &'static str) {
    let named = crops.iter().filter(|crop| !crop.name.is_empty()).count();
    let and_group = match crops.len() - named {
        0 => "",
        _ => " and the group without a crop",
    };
    (named, and_group)
}

/// Counts crops, such as `3 crops` or `2 crops and the group without a crop`.
pub(super) fn count_crops(crops: &[&CropJudgement<'_>]) -> String {
    match named_crops(crops) {
        (0, and_group) if !and_group.is_empty() => "the group without a crop".to_owned(),
        (named, and_group) => text::count(named as u64, "crop", "crops") + and_group,
    }
}

/// Makes a sentence of `text`, which may be empty. A crop at its start is spelled as received: another crop may differ only in
/// its first letter.
fn sentence(newest: &NewestStep<'_>, text: &str) -> String {
    let mut crops = newest.crops.iter().filter(|crop| !crop.name.is_empty());
    if crops.any(|crop| text.starts_with(&crop_name(crop.name))) {
        return format!("{text}.");
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        let first = first.to_uppercase();
        first.chain(letters).chain(['.']).collect()
    })
}

/// Names the first crops, and counts the others.
fn named(
    crops: &[&CropJudgement<'_>],
    words: fn(&CropJudgement<'_>) -> String,
    more: &str,
) -> String {
    let shown = crops.iter().take(NAMED);
    let mut parts: Vec<String> = shown.map(|crop| words(crop)).collect();
    match crops.len().saturating_sub(NAMED) {
        0 => {}
        1 => parts.push(format!("1 more crop {more}")),
        others => parts.push(format!("{others} more crops {more}")),
    }
    // A part may have commas of its own.
    parts.join("; ")
}

/// Returns the subject of a sentence about a crop.
fn subject(crop: &CropJudgement<'_>) -> String {
    match crop.name {
        "" => "the group without a crop".to_owned(),
        name => crop_name(name),
    }
}

/// Says how far a crop fell, and which target it misses.
fn trouble(crop: &CropJudgement<'_>) -> String {
    let name = subject(crop);
    let target = crop.missed.first();
    if crop.is_down() {
        let below = match target {
            Some(missed) if missed.field == "usable" => {
                format!(", below its target of {}\u{a0}%", missed.target.normalize())
            }
            Some(missed) => format!(" and {}", misses(missed)),
            None => String::new(),
        };
        let limit = target.map_or(Decimal::MAX, |missed| missed.target);
        return format!("{name} fell {}{below}", moved(crop, limit));
    }
    let few = match crop.newest.map_or(0, |newest| newest.batches) {
        batches @ ..MIN_BATCHES => format!(" ({})", text::count(batches, "batch", "batches")),
        _ => String::new(),
    };
    target.map_or(name.clone(), |missed| {
        format!("{name} {}{few}", misses(missed))
    })
}

fn rise(crop: &CropJudgement<'_>) -> String {
    format!("{} rose {}", subject(crop), moved(crop, Decimal::MAX))
}

/// Returns how far a crop moved, and to which rate. The rate differs from `limit` as shown.
fn moved(crop: &CropJudgement<'_>, limit: Decimal) -> String {
    let judged = &crop.comparison;
    let [change, rate] = [judged.change, judged.newest].map(Option::unwrap_or_default);
    format!(
        "{}\u{a0}points to {}\u{a0}% usable",
        prose(change.abs(), Decimal::ZERO),
        prose(rate, limit)
    )
}

fn misses(missed: &MissedTarget) -> String {
    let value = prose(missed.median, missed.target);
    let target = missed.target.normalize();
    match missed.field {
        "CV" => format!("has a CV of {value}\u{a0}%, above its target of {target}\u{a0}%"),
        "germination" => {
            format!("has a germination of {value}\u{a0}%, below its target of {target}\u{a0}%")
        }
        _ => format!("is below its target of {target}\u{a0}% with {value}\u{a0}% usable"),
    }
}
