//! The verdict: what the newest step means, in up to three sentences.

use super::chart::crop_name;
use super::format::{listed, period_name, plural, prose};
use super::gather::{ReportData, StepWords};
use crate::analysis::judgement::{CropJudgement, MissedTarget, NewestStep, Verdict};
use crate::analysis::statistics::Decimal;

/// The maximum number of crops that a sentence names.
const NAMED: usize = 3;

/// The sentences about the newest step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VerdictText {
    /// The step with its days, such as `Week 46 (9 to 15 November 2026, 5 of 7 days so far)`.
    pub(super) period: String,
    /// The CSS class: `bad` if something needs action, else `good`, or `open` if nothing was judged.
    pub(super) class: &'static str,
    pub(super) sentences: Vec<String>,
}

impl VerdictText {
    pub(super) fn new(data: &ReportData, newest: &NewestStep<'_>) -> Self {
        let share = data.span.share(newest.period);
        let (name, dates) = period_name(newest.period);
        let details: Vec<String> = Some(dates)
            .filter(|dates| !dates.is_empty())
            .into_iter()
            .chain(share)
            .collect();
        let period = match details.as_slice() {
            [] => name,
            details => format!("{name} ({})", details.join(", ")),
        };
        let (class, sentences) = sentences(newest, data.step_words());
        Self {
            period,
            class,
            sentences,
        }
    }
}

fn sentences(newest: &NewestStep<'_>, words: StepWords) -> (&'static str, Vec<String>) {
    let present: Vec<&CropJudgement<'_>> = newest.present().collect();
    let (bad, rest): (Vec<_>, Vec<_>) = present
        .iter()
        .copied()
        .partition(|crop| crop.is_down() || !crop.missed.is_empty());
    let is = |verdict: Verdict| {
        let found = rest.iter().copied();
        found
            .filter(|crop| crop.comparison.verdict == verdict)
            .collect::<Vec<_>>()
    };
    let (up, usual, few) = (is(Verdict::Up), is(Verdict::Usual), is(Verdict::TooFew));
    let mut sentences = Vec::new();
    if !bad.is_empty() {
        sentences.push(format!(
            "{}.",
            named(&bad, trouble, "more crops in trouble")
        ));
    }
    let other = if bad.is_empty() { "" } else { " other" };
    let mut good = Vec::new();
    if !up.is_empty() {
        good.push(named(&up, rise, "more crops rose"));
    }
    match (usual.len(), bad.len() + up.len() + few.len()) {
        (0, _) => {}
        (1, 0) => good.push("the only crop is as usual".to_owned()),
        (all, 0) => good.push(format!("all {all} crops are as usual")),
        (1, _) => good.push(format!("1{other} crop as usual")),
        (some, _) => good.push(format!("{some}{other} crops as usual")),
    }
    if !good.is_empty() {
        sentences.push(format!("{}.", capital(&good.join("; "))));
    }
    let judged = present.len() - few.len();
    if judged == 0 && bad.is_empty() {
        let rule = format!(
            "no crop has 3 batches with a usable rate both in this {} and in the four {} before",
            words.one, words.many
        );
        sentences.push(format!("Too few batches to judge: {rule}."));
    } else if !few.is_empty() {
        let crops = plural(few.len() as u64, "crop has", "crops have");
        sentences.push(format!("{crops} too few batches to judge."));
    }
    let class = match (bad.is_empty(), judged) {
        (false, _) => "bad",
        (true, 0) => "open",
        (true, _) => "good",
    };
    (class, sentences)
}

/// Names the first crops, and counts the others.
fn named(
    crops: &[&CropJudgement<'_>],
    words: fn(&CropJudgement<'_>) -> String,
    more: &str,
) -> String {
    let shown = crops.iter().take(NAMED);
    let mut parts: Vec<String> = shown.map(|crop| words(crop)).collect();
    if crops.len() > NAMED {
        parts.push(format!("{} {more}", crops.len() - NAMED));
    }
    match parts.len() {
        // A part may have commas of its own.
        0..=2 => listed(&parts),
        _ => parts.join("; "),
    }
}

/// Says how far a crop fell, and which target it misses.
fn trouble(crop: &CropJudgement<'_>) -> String {
    let name = crop_name(crop.name);
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
    target.map_or(name.clone(), |missed| format!("{name} {}", misses(missed)))
}

fn rise(crop: &CropJudgement<'_>) -> String {
    format!(
        "{} rose {}",
        crop_name(crop.name),
        moved(crop, Decimal::MAX)
    )
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
    let MissedTarget {
        field,
        median,
        target,
    } = missed;
    let (is, limit) = match *field {
        "CV" => ("a CV of", "above"),
        "germination" => ("a germination of", "below"),
        _ => ("", "below"),
    };
    let value = prose(*median, *target);
    let target = target.normalize();
    if is.is_empty() {
        format!("is {limit} its target of {target}\u{a0}% with {value}\u{a0}% usable")
    } else {
        format!("has {is} {value}\u{a0}%, {limit} its target of {target}\u{a0}%")
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
