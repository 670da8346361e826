//! The control chart of the usable rate. Only for a single crop: crops differ by more than chance.

use super::chart::{Chart, crop_name};
use super::charts::{ControlLimits, ControlPoint, control};
use super::format::{day, minute, to_f64};
use super::gather::ReportData;
use super::outliers::usual_least;
use super::recent::{LinkBudget, Scan};
use super::svg::{AltText, rounded_out};
use crate::analysis::statistics::{Control, Decimal, Period, two_digits};
use crate::text;

/// The minimum number of values for useful limits.
const MIN_BATCHES: usize = 10;
/// The maximum number of batches in the chart.
const MAX_BATCHES: usize = 100;
/// The maximum size of all links in the table, in bytes.
const LINKS_SIZE: usize = 64 * 1024;

pub(super) fn chart(data: &ReportData, newest: Option<Period>) -> Option<Chart> {
    let mut crops = data.history.crops.iter();
    let (Some((crop, history)), None) = (crops.next(), crops.next()) else {
        return None;
    };
    if crop.is_empty() {
        return None;
    }
    let scans = data.recent.scans().iter();
    let rated = scans.filter_map(|scan| Some((scan, scan.usable_rate?)));
    let mut batches: Vec<(&Scan, Decimal)> = rated.take(MAX_BATCHES).collect();
    if batches.len() < MIN_BATCHES {
        return None;
    }
    batches.reverse();
    let rates: Vec<Decimal> = batches.iter().map(|(_, rate)| *rate).collect();
    // A crop that fell must not widen its own limits.
    let is_before = |scan: &Scan| Some(data.history.step.period(scan.created)) < newest;
    let before = batches.iter().filter(|(scan, _)| is_before(scan)).count();
    let (base, since) = match rates.get(..before) {
        Some(before) if before.len() >= MIN_BATCHES => {
            let step = data.step_words().one;
            (before, format!(", of the batches before the newest {step}"))
        }
        _ => (&rates[..], String::new()),
    };
    let figures = Control::of(base)?;
    let is_outside = |rate: Decimal| rate < figures.low || rate > figures.high;
    let outside = rates.iter().filter(|rate| is_outside(**rate)).count() as u64;
    let scanned: Vec<ControlPoint> = batches
        .iter()
        .map(|(scan, rate)| ControlPoint {
            rate: to_f64(*rate),
            day: day(scan.created),
            tooltip: format!(
                "{}, {}: usable {} %",
                scan.name(),
                minute(scan.created),
                two_digits(*rate)
            ),
            is_outside: is_outside(*rate),
        })
        .collect();
    let crop = crop_name(crop);
    let [low, mean, high] = [figures.low, figures.mean, figures.high].map(two_digits);
    let limits = ControlLimits {
        low: to_f64(figures.low),
        mean: to_f64(figures.mean),
        high: to_f64(figures.high),
    };
    let words = AltText {
        id: "control",
        title: &format!("Usable rate of {crop} in percent, batch by batch in chronological order"),
        description: &format!(
            "{}. The mean is {mean}, the limits are {low} and {high}{since}; {outside} outside them.",
            text::count(rates.len() as u64, "batch", "batches"),
        ),
    };
    let scale = scale(&rates, limits);
    let is_below = scanned.iter().any(|batch| batch.rate < scale.0);
    let svg = control(&scanned, limits, scale, &words);
    let all = history.total().usable_rate.distribution.count();
    let (rows, links) = table(&batches, is_outside);
    Some(Chart {
        caption: "Usable rate, batch by batch".to_owned(),
        aside: if all > rates.len() as u64 {
            format!(
                "%, the newest {} of {all} values in chronological order",
                rates.len()
            )
        } else {
            "%, in chronological order".to_owned()
        },
        legend: legend([&low, &mean, &high], &since, &figures, outside, is_below),
        svg,
        rows_caption: "As a table".to_owned(),
        head: vec!["batch", "created", "usable %", "limits"],
        rows,
        links,
    })
}

fn legend(
    [low, mean, high]: [&str; 3],
    since: &str,
    figures: &Control,
    outside: u64,
    is_below: bool,
) -> Vec<(&'static str, String)> {
    let range = two_digits(figures.moving_range);
    let is_possible = |rate: Decimal| rate >= Decimal::ZERO && rate <= Decimal::ONE_HUNDRED;
    let beyond = if is_possible(figures.low) && is_possible(figures.high) {
        ""
    } else {
        "; one that no rate can reach is not drawn"
    };
    let mut legend = vec![
        ("mean", format!("mean {mean}{since}")),
        (
            "limit",
            format!(
                "limits {low} and {high}: the mean ± 2.66 times the average difference from batch to batch, {range}{beyond}"
            ),
        ),
    ];
    if outside > 0 {
        let batches = text::count(outside, "batch", "batches");
        let below = if is_below {
            "; those at the lower edge are below the scale and have their number"
        } else {
            ""
        };
        legend.push((
            "out",
            format!("diamond: outside the limits, {batches}; look for a cause{below}"),
        ));
    }
    legend
}

/// Returns a scale with the limits and all values except outliers, as far as rates are possible.
fn scale(rates: &[Decimal], limits: ControlLimits) -> (f64, f64) {
    let values = rates.iter().map(|rate| (to_f64(*rate), 1)).collect();
    let least = usual_least(values).unwrap_or(limits.low).min(limits.low);
    let all = rates.iter().map(|rate| to_f64(*rate));
    let most = all.fold(limits.high, f64::max);
    // Wide enough to show a line between its ends.
    let (least, most) = (least.max(0.0), most.min(100.0));
    let (least, most) = rounded_out(least.min(most - 1.0), most, 5);
    (least.max(0.0), most.min(100.0))
}

fn table(
    batches: &[(&Scan, Decimal)],
    is_outside: impl Fn(Decimal) -> bool,
) -> (Vec<Vec<String>>, Vec<Option<String>>) {
    let rows = batches.iter().map(|(scan, rate)| {
        let is_outside = is_outside(*rate);
        let limits = if is_outside { "outside" } else { "within" }.to_owned();
        vec![scan.name(), minute(scan.created), two_digits(*rate), limits]
    });
    let mut budget = LinkBudget(LINKS_SIZE);
    let links = batches.iter().map(|(scan, _)| budget.take(scan));
    (rows.collect(), links.collect())
}
