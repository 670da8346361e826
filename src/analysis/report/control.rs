//! The control chart of the usable rate: the batches in chronological order, with their mean and limits. Only for a single
//! crop: crops differ by more than chance.

use super::chart::{Chart, EdgeNumbers, WIDTH, crop_name, usual_least};
use super::format::{day, minute, to_f64};
use super::gather::ReportData;
use super::recent::{LinkBudget, Scan};
use super::svg::{AltText, Anchor, Axis, Svg, rounded_out, tick_label};
use crate::analysis::statistics::{Decimal, Period, two_digits};
use crate::text;

/// The minimum number of values for useful limits.
const MIN_BATCHES: usize = 10;
/// The maximum number of batches in the chart.
const MAX_BATCHES: usize = 100;
/// The maximum size of all links in the table, in bytes.
const LINKS_SIZE: usize = 64 * 1024;

const HEIGHT: f64 = 220.0;
const LEFT: f64 = 34.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 22.0;

pub(super) fn chart(data: &ReportData, newest: Option<Period>) -> Option<Chart> {
    let mut crops = data.history.crops.iter();
    let (Some((crop, history)), None) = (crops.next(), crops.next()) else {
        return None;
    };
    if crop.is_empty() {
        return None;
    }
    let scans = data.recent.scans.iter();
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
            let step = data.step_words().0;
            (before, format!(", of the batches before the newest {step}"))
        }
        _ => (&rates[..], String::new()),
    };
    let figures = Control::of(base)?;
    let outside = rates.iter().filter(|rate| figures.excludes(**rate)).count() as u64;
    let crop = crop_name(crop);
    let [low, mean, high] = [figures.low, figures.mean, figures.high].map(two_digits);
    let words = AltText {
        id: "control",
        title: &format!("Usable rate of {crop} in percent, batch by batch in chronological order"),
        description: &format!(
            "{}. The mean is {mean}, the limits are {low} and {high}{since}; {outside} outside them.",
            text::count(rates.len() as u64, "batch", "batches"),
        ),
    };
    let scale = scale(&rates, &figures);
    let is_beyond = |rate: &&Decimal| !(scale.0..=scale.1).contains(&to_f64(**rate));
    let beyond = rates.iter().filter(is_beyond).count() as u64;
    let svg = draw(&batches, &figures, scale, &words);
    let all = history.total().usable_rate.distribution.count();
    let (rows, links) = table(&batches, &figures);
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
        legend: legend([&low, &mean, &high], &since, &figures, outside, beyond),
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
    beyond: u64,
) -> Vec<(&'static str, String)> {
    let range = two_digits(figures.moving_range);
    let is_possible = |rate: Decimal| rate >= Decimal::ZERO && rate <= Decimal::ONE_HUNDRED;
    let not_drawn = if is_possible(figures.low) && is_possible(figures.high) {
        ""
    } else {
        "; one that no rate can reach is not drawn"
    };
    let mut legend = vec![
        ("mean", format!("mean {mean}{since}")),
        (
            "limit",
            format!(
                "limits {low} and {high}: the mean ± 2.66 times the average difference from batch to batch, {range}{not_drawn}"
            ),
        ),
    ];
    if outside > 0 {
        let batches = text::count(outside, "batch", "batches");
        let mark = if beyond > 0 {
            "diamond or orange triangle"
        } else {
            "diamond"
        };
        let words = format!("{mark}: outside the limits, {batches}; look for a cause");
        legend.push(("out", words));
    }
    if beyond > 0 {
        let batches = text::count(beyond, "batch", "batches");
        let words = format!("triangle with a number: beyond the scale, {batches}");
        legend.push(("beyond", words));
    }
    legend
}

/// Returns a scale with the limits and all values except outliers, as far as rates are possible.
fn scale(rates: &[Decimal], figures: &Control) -> (f64, f64) {
    let [low, high] = [figures.low, figures.high].map(to_f64);
    let values = rates.iter().map(|rate| (to_f64(*rate), 1)).collect();
    let least = usual_least(values).unwrap_or(low).min(low);
    let all = rates.iter().map(|rate| to_f64(*rate));
    let most = all.fold(high, f64::max);
    // Wide enough to show a line between its ends.
    let (least, most) = (least.max(0.0), most.min(100.0));
    let (least, most) = rounded_out(least.min(most - 1.0), most, 5);
    (least.max(0.0), most.min(100.0))
}

fn table(
    batches: &[(&Scan, Decimal)],
    figures: &Control,
) -> (Vec<Vec<String>>, Vec<Option<String>>) {
    let rows = batches.iter().map(|(scan, rate)| {
        let limits = if figures.excludes(*rate) {
            "outside"
        } else {
            "within"
        };
        let (created, rate) = (minute(scan.created), two_digits(*rate));
        vec![scan.name(), created, rate, limits.to_owned()]
    });
    let mut budget = LinkBudget(LINKS_SIZE);
    let links = batches.iter().map(|(scan, _)| budget.take(scan));
    (rows.collect(), links.collect())
}

fn draw(
    batches: &[(&Scan, Decimal)],
    figures: &Control,
    scale: (f64, f64),
    alt: &AltText<'_>,
) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, alt);
    let y = Axis::new(scale, (BOTTOM, TOP));
    for tick in y.ticks(5) {
        svg.line("grid", (LEFT, y.position(tick)), (RIGHT, y.position(tick)));
        let index = (LEFT - 5.0, y.position(tick) + 4.0);
        svg.label("tick", index, Anchor::End, &tick_label(tick));
    }
    let last = batches.len().saturating_sub(1);
    let width = (RIGHT - LEFT) / batches.len().max(1) as f64;
    let x = |index: usize| LEFT + width * (index as f64 + 0.5);
    for (class, index, anchor, x) in [
        ("tick", 0, Anchor::Start, LEFT),
        // There is no room for it on paper.
        ("tick middle", last / 2, Anchor::Middle, x(last / 2)),
        ("tick", last, Anchor::End, RIGHT),
    ] {
        if let Some((scan, _)) = batches.get(index) {
            svg.label(class, (x, HEIGHT - 6.0), anchor, &day(scan.created));
        }
    }
    for (class, value) in [
        ("limit", figures.low),
        ("mean", figures.mean),
        ("limit", figures.high),
    ] {
        let value = to_f64(value);
        if value >= scale.0 && value <= scale.1 {
            svg.line(class, (LEFT, y.position(value)), (RIGHT, y.position(value)));
        }
    }
    let points = batches.iter().enumerate();
    let points = points.map(|(index, (_, rate))| (x(index), y.position(to_f64(*rate))));
    let points: Vec<(f64, f64)> = points.collect();
    svg.path("course", &points);
    let mut numbers = EdgeNumbers::new(LEFT, RIGHT);
    let mut beyond: Vec<((f64, f64), f64)> = Vec::new();
    for ((scan, rate), point) in batches.iter().zip(points) {
        let (name, created) = (scan.name(), minute(scan.created));
        let tooltip = format!("{name}, {created}: usable {} %", two_digits(*rate));
        let value = to_f64(*rate);
        let is_outside = figures.excludes(*rate);
        if value < scale.0 || value > scale.1 {
            let class = if is_outside { "beyond now" } else { "beyond" };
            svg.triangle(class, point, value < scale.0, Some(&tooltip));
            beyond.push((point, value));
        } else if is_outside {
            svg.diamond("edge now", point, &tooltip);
        } else {
            svg.dot("mark", point, 2.2, Some(&tooltip));
        }
        numbers.avoid(point);
    }
    for (point, value) in beyond {
        numbers.write(&mut svg, point, value, value > scale.1);
    }
    svg.finish()
}

/// The figures of an individuals control chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Control {
    mean: Decimal,
    /// The average distance between consecutive values.
    moving_range: Decimal,
    /// The mean minus and plus 2.66 times the moving range.
    low: Decimal,
    high: Decimal,
}

impl Control {
    /// Returns whether `rate` is outside the limits, which few values are by chance.
    fn excludes(&self, rate: Decimal) -> bool {
        rate < self.low || rate > self.high
    }

    /// Computes the figures of `values` in chronological order, each with a single division. `None` if there
    /// are fewer than two values, or if they are too large.
    fn of(values: &[Decimal]) -> Option<Self> {
        let count = Decimal::from(values.len());
        let steps = Decimal::from(values.len().checked_sub(1)?);
        let mut sum = Decimal::ZERO;
        let mut ranges = Decimal::ZERO;
        for value in values {
            sum = sum.checked_add(*value)?;
        }
        for pair in values.windows(2) {
            ranges = ranges.checked_add(pair[1].checked_sub(pair[0])?.abs())?;
        }
        // sum / count ± 2.66 ranges / steps, with a common denominator.
        let denominator = count.checked_mul(steps)?;
        let middle = sum.checked_mul(steps)?;
        let reach = ranges
            .checked_mul(count)?
            .checked_mul(Decimal::new(266, 2))?;
        Some(Self {
            mean: sum.checked_div(count)?,
            moving_range: ranges.checked_div(steps)?,
            low: middle.checked_sub(reach)?.checked_div(denominator)?,
            high: middle.checked_add(reach)?.checked_div(denominator)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_depend_on_the_average_moving_range() {
        // Mean 90.2; ranges 2, 3, 1, 4, so 2.5 on average: 6.65 to either side.
        let values = [90, 92, 89, 88, 92].map(Decimal::from);
        let control = Control::of(&values).expect("figures");
        assert_eq!(two_digits(control.mean), "90.20");
        assert_eq!(two_digits(control.moving_range), "2.50");
        assert_eq!(two_digits(control.low), "83.55");
        assert_eq!(two_digits(control.high), "96.85");
        let alike = Control::of(&[Decimal::TEN; 3]).expect("figures");
        assert_eq!((alike.low, alike.high), (Decimal::TEN, Decimal::TEN));
        assert_eq!(Control::of(&values[..1]), None);
        assert_eq!(Control::of(&[]), None);
        assert_eq!(Control::of(&[Decimal::MAX, Decimal::MAX]), None);
    }
}
