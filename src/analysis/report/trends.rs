//! The usable rate over the steps, one chart per crop.

use super::charts::{Spread, TrendChart, trend};
use super::crops::by_size;
use super::format::{StepWords, drawn, figure, plural};
use super::gather::ReportData;
use super::page::{Chart, crop_name, spread};
use super::svg::{AltText, rounded_out, tick_label};
use crate::analysis::Targets;
use crate::analysis::statistics::{Decimal, Period};

/// Steps in a chart, at most: a year of weeks.
const STEPS: usize = 53;
/// Charts, at most.
const CHARTS: usize = 12;

/// What is drawn of one crop.
struct TrendLine {
    name: String,
    target: Option<f64>,
    steps: Vec<Option<Spread>>,
    medians: Vec<Option<Decimal>>,
}

/// The charts, what is said of them, and the same as a table.
#[derive(Default)]
pub(super) struct Trends {
    pub(super) charts: Vec<Chart>,
    pub(super) note: String,
    /// What a step is called.
    pub(super) step: &'static str,
    /// Each step with the medians of the charts.
    pub(super) rows: Vec<(String, Vec<String>)>,
}

impl Trends {
    /// Draws the steps up to `newest`; nothing where no batch has a step.
    pub(super) fn new(gathered: &ReportData, targets: &Targets, newest: Option<Period>) -> Self {
        let Some(newest) = newest else {
            return Self::default();
        };
        // Oldest first, those without batches too.
        let shown = last_steps(gathered, newest, STEPS);
        let lines = lines(gathered, targets, &shown);
        let rows = shown.iter().enumerate().map(|(place, period)| {
            let medians = lines.iter().map(|line| line.medians[place]);
            (period.label(), medians.map(figure).collect())
        });
        Self {
            rows: rows.collect(),
            note: note(gathered, &lines, &shown),
            charts: charts(gathered, &lines, &shown),
            step: gathered.step_words().one,
        }
    }
}

/// Returns the last steps up to `newest`, as many as `most` and as the range has, but two at least.
pub(super) fn last_steps(gathered: &ReportData, newest: Period, most: usize) -> Vec<Period> {
    let first = gathered.first_step().unwrap_or(newest);
    let mut steps = vec![newest];
    while steps.len() < most {
        let before = steps[steps.len() - 1].previous();
        if before < first && steps.len() >= 2 {
            break;
        }
        steps.push(before);
    }
    steps.reverse();
    steps
}

fn lines(gathered: &ReportData, targets: &Targets, shown: &[Period]) -> Vec<TrendLine> {
    let lines = by_size(gathered).into_iter().filter_map(|(crop, figures)| {
        let rates = |period: &Period| Some(&figures.steps.get(period)?.usable_rate);
        let steps = shown.iter().map(|period| spread(rates(period)?, "%"));
        let steps: Vec<Option<Spread>> = steps.collect();
        let medians = shown
            .iter()
            .map(|period| rates(period)?.distribution.median());
        let target = targets.of(crop).and_then(|target| target.usable_rate_min);
        let is_empty = steps.iter().all(Option::is_none);
        (!is_empty).then(|| TrendLine {
            name: crop_name(crop),
            target: target.map(drawn),
            steps,
            medians: medians.collect(),
        })
    });
    lines.take(CHARTS).collect()
}

fn charts(gathered: &ReportData, lines: &[TrendLine], shown: &[Period]) -> Vec<Chart> {
    let labels: Vec<String> = shown.iter().map(|period| period.label()).collect();
    let lows = lines.iter().flat_map(|line| line.steps.iter().flatten());
    let lows = lows.map(|spread| spread.low).collect();
    let scale = scale(lows, lines.iter().filter_map(|line| line.target));
    lines
        .iter()
        .enumerate()
        .map(|(place, line)| {
            let TrendLine {
                name,
                target,
                steps,
                ..
            } = line;
            let with: Vec<&Spread> = steps.iter().flatten().collect();
            let StepWords { one, many } = gathered.step_words();
            let title = format!(
                "Usable rate of {name} in percent, {one} by {one} ({})",
                plural(labels.len() as u64, one, many)
            );
            let description = with.last().map_or_else(String::new, |last| {
                let last_label = steps
                    .iter()
                    .rposition(Option::is_some)
                    .map_or("", |place| labels[place].as_str());
                format!(
                    "{} with values between {} and {}. The last, {last_label}: {}.",
                    plural(with.len() as u64, one, many),
                    labels.first().map_or("", String::as_str),
                    labels.last().map_or("", String::as_str),
                    last.words
                )
            });
            let svg = trend(&TrendChart {
                words: AltText {
                    id: &format!("trend{place}"),
                    title: &title,
                    description: &description,
                },
                steps,
                labels: &labels,
                target: *target,
                scale,
            });
            Chart {
                caption: name.clone(),
                aside: target.map_or_else(
                    || "usable rate, %".to_owned(),
                    |target| format!("usable rate, %; target {}", tick_label(target)),
                ),
                svg,
                ..Chart::default()
            }
        })
        .collect()
}

/// One scale for all, up to 100. The lowest twentieth does not decide where it begins, or one failed week
/// would flatten all the others.
pub(super) fn scale(mut values: Vec<f64>, targets: impl Iterator<Item = f64>) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let usual = values.get(values.len() / 20).copied();
    let least = targets.chain(usual).fold(90.0, f64::min).max(0.0);
    (rounded_out(least, 100.0, 4).0, 100.0)
}

fn note(gathered: &ReportData, lines: &[TrendLine], shown: &[Period]) -> String {
    let words = gathered.step_words();
    let mut notes = vec![format!(
        "Median per {} as a line, the middle half of the batches as a band, on one scale; the orange dot is the newest {}, a triangle lies below the scale.",
        words.one, words.one
    )];
    if lines.iter().any(|line| line.target.is_some()) {
        notes.push("The dashed line is your target.".to_owned());
    }
    let (first, oldest) = (shown.first(), gathered.first_step());
    if let (Some(first), Some(oldest)) = (first, oldest)
        && oldest < *first
    {
        notes.push(format!(
            "The charts show the last {} {}; the table has all since {}.",
            shown.len(),
            words.many,
            oldest.label()
        ));
    }
    let crops = gathered.crops.len();
    if crops > CHARTS {
        notes.push(format!("The {CHARTS} crops with the most batches."));
    }
    notes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::report::ReportSpan;
    use crate::analysis::statistics::Step;
    use crate::batch::range::Range;

    /// Returns what is gathered of one batch in each of these weeks, counted from 1970.
    fn gathered(weeks: &[i64]) -> ReportData {
        let all = Range::default();
        let mut gathered = ReportData::new(Step::Week, ReportSpan::new(&all, &all, i64::MAX));
        let crop = gathered.crops.entry(Some("Tomato".to_owned())).or_default();
        for week in weeks {
            let period = Step::Week.period(week * 7 * 86_400);
            crop.steps.entry(period).or_default().batches = 1;
        }
        gathered
    }

    #[test]
    fn charts_show_the_last_steps_without_a_gap_and_two_at_least() {
        for (weeks, most, count) in [
            (&[100][..], 12, 2),
            (&[99, 100], 12, 2),
            (&[95, 100], 12, 6),
            (&[10, 100], 12, 12),
            (&[0, 100], 53, 53),
        ] {
            let gathered = gathered(weeks);
            let newest = gathered.last_step().expect("a step");
            let steps = last_steps(&gathered, newest, most);
            assert_eq!(steps.len(), count, "{weeks:?}");
            assert_eq!(steps.last(), Some(&newest));
            assert!(steps.windows(2).all(|pair| pair[0].next() == pair[1]));
        }
    }

    #[test]
    fn one_failed_week_does_not_flatten_the_others() {
        let none = std::iter::empty;
        let mut values = vec![85.0; 39];
        assert!(same(scale(values.clone(), none()), (85.0, 100.0)));
        values.push(3.0);
        assert!(same(scale(values.clone(), none()), (85.0, 100.0)));
        values.extend([3.0, 3.0]);
        assert!(same(scale(values, none()), (0.0, 100.0)));
        assert!(same(scale(vec![99.0], [55.0].into_iter()), (40.0, 100.0)));
        assert!(same(scale(Vec::new(), none()), (90.0, 100.0)));
        assert!(same(scale(vec![-50.0], none()), (0.0, 100.0)));
    }

    fn same(left: (f64, f64), right: (f64, f64)) -> bool {
        (left.0 - right.0).abs() < 1e-9 && (left.1 - right.1).abs() < 1e-9
    }
}
